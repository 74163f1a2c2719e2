"""Straight to an OpenAI-compatible server: vLLM, llama.cpp, Ollama, a gateway.

DSPy's own path to such a server costs a millisecond or more of CPU a judgment, most of it in
price look-ups and client layers; this engine writes the body, posts it and reads the answer.
Measured by ``benchmarks/overhead.py``.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import dspy
import orjson
from dspy import lm15

from dspy_rerank.background import run_sync
from dspy_rerank.capability import BY_EFFORT, BY_TEMPLATE
from dspy_rerank.errors import InputError
from dspy_rerank.hiding import without
from dspy_rerank.limits import Limit
from dspy_rerank.models._answer import read_answer
from dspy_rerank.models._chat import openai_body
from dspy_rerank.models._failures import failure, message_of, seconds
from dspy_rerank.models._hiding import HidingLM
from dspy_rerank.models._pool import closing, pool
from dspy_rerank.models._secret import Secret
from dspy_rerank.patience import TIMEOUT

LONGEST = 32 * 2**20
"""Bytes of an answer, far more than any completion has: a server that never stops is cut off."""


class _Server:
    """One model at one address, and everything about it that is no call.

    Args:
        url: Where the API is, with its version: ``http://127.0.0.1:8000/v1``.
        model: The model's name there.
        api_key: A key, ``os.environ/NAME``, or ``None``.
        timeout: Seconds for a whole request.
    """

    paced = True
    supports_response_schema = True
    supported_params = frozenset(
        {
            "temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "frequency_penalty",
            "presence_penalty", "logprobs", "top_logprobs", "logit_bias", "metadata",
            "response_format",
        }
    )  # fmt: skip

    thinking_off = (
        {"metadata": {"extra_body": {**BY_EFFORT, **BY_TEMPLATE}}},
        {"metadata": {"extra_body": BY_TEMPLATE}},
    )
    """How a model that thinks is kept from it, tried in this order."""

    def __init__(
        self, url: str, model: str, *, api_key: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        self.url = _checked(url)
        self.model = model
        self.timeout = timeout
        self.limit = Limit()
        self._secret = Secret(api_key)

    def secrets(self) -> list[str]:
        """The key, if there is one, to be blotted out of what is shown."""
        return [self._secret.reveal()]

    def dump_state(self) -> dict[str, Any]:
        """What rebuilds this engine; of the key only the environment variable that holds it."""
        return {
            "url": self.url, "model": self.model,
            "api_key": self._secret.reference, "timeout": self.timeout,
        }  # fmt: skip

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Self:
        """The engine that `dump_state` described."""
        kept = {name: state[name] for name in ("api_key", "timeout")}
        return cls(state["url"], state["model"], **kept)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {self.model!r})"


class AsyncDirectEngine(_Server):
    """DSPy's asynchronous engine contract over one HTTP request a call."""

    def __init__(self, url: str, model: str, **options: Any) -> None:
        super().__init__(url, model, **options)
        self._sessions: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer to one request."""
        body = openai_body(request) | dict(_extensions(request)) | {"model": self.model}
        content = orjson.dumps(body)
        about = len(content) // 4 + 1
        async with self.limit.turn(about):
            try:
                answer = read_answer(await self._post(content), request.model)
            except lm15.RateLimitError as error:
                self.limit.refused(error.retry_after)
                raise
            self.limit.correct(about, answer.usage.total_tokens or about)
        return answer

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """The answer as events; it is complete before the first of them."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event

    async def _post(self, body: bytes) -> Any:
        status, content, wait = await self._sent(f"{self.url}/chat/completions", body)
        return self._checked_body(status, content, wait)

    async def _exchange(self, url: str, body: Mapping[str, Any]) -> Any:
        """Any other request of the server's, and the object that answers it."""
        status, content, wait = await self._sent(url, orjson.dumps(body))
        return self._checked_body(status, content, wait, wanted=lambda found: bool(found))

    async def _sent(self, url: str, body: bytes) -> tuple[int, bytes, Any]:
        import aiohttp

        session = await self._session()
        try:
            async with session.post(url, data=body) as answer:
                content = await _whole(answer.content)
                status, wait = answer.status, answer.headers.get("Retry-After")
        except TimeoutError as error:
            why = f"{self.url} did not answer within {self.timeout:g} s"
            raise lm15.TimeoutError(why, provider="direct") from error
        except (aiohttp.ClientError, OSError) as error:
            why = without(f"{self.url} cannot be reached: {error}", self.secrets())
            raise lm15.TransportError(why, provider="direct") from None
        return status, content, wait

    def _checked_body(
        self, status: int, content: bytes, wait: Any, wanted: Callable[[Any], bool] | None = None
    ) -> Mapping[str, Any]:
        try:
            body: Any = orjson.loads(content)
        except orjson.JSONDecodeError:
            body = None
        if status == 200 and isinstance(body, Mapping) and (wanted or _is_completion)(body):
            return body
        text = content[:2000].decode("utf-8", "replace")
        said = without(message_of(body, text), self.secrets())
        if status == 200:
            said = f"no chat completion came back, but: {said}"
        raise failure(status, said, provider=self.url, retry_after=seconds(wait))

    async def _session(self) -> Any:
        """The connection pool of the running event loop, closed with it."""
        loop = asyncio.get_running_loop()
        known = self._sessions.get(loop)
        if known is None or known[1].closed:
            holder = pool(self._secret.reveal(), self.timeout)
            known = self._sessions[loop] = (holder, await anext(holder))
            closing(self, loop, holder)
        return known[1]

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        known = self._sessions.pop(asyncio.get_running_loop(), None)
        if known is not None:
            await known[0].aclose()


class DirectEngine(_Server):
    """The synchronous engine: the same requests, sent from the background loop.

    Attributes:
        twin: The asynchronous one, whose connections it uses and closes.
    """

    TWIN = AsyncDirectEngine

    def __init__(self, url: str, model: str, **options: Any) -> None:
        super().__init__(url, model, **options)
        self.twin = self.TWIN(url, model, **options)
        self.limit = self.twin.limit

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer to one request."""
        return run_sync(self.twin.complete(request))

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The answer as events; it is complete before the first of them."""
        yield from lm15.response_to_events(self.complete(request))

    def close(self) -> None:
        """Close the background loop's connections."""
        run_sync(self.twin.aclose())


def direct(
    url: str, *, model: str, api_key: str | None = None, timeout: float = TIMEOUT, **kwargs: Any
) -> dspy.LM:
    """A model behind an OpenAI-compatible server, with little in between.

    The LM's name holds the address, so two servers with the same model never share cached
    answers. The temperature is 0 unless one is given.

    Args:
        url: Where the API is, with its version: ``http://127.0.0.1:8000/v1``.
        model: The model's name there.
        api_key: A key, or ``os.environ/NAME``, which alone survives saving.
        timeout: Seconds for a whole request.
        **kwargs: Anything that `dspy.LM` takes; parameters that DSPy does not know go to the
            server as ``metadata={"extra_body": {...}}``.

    Raises:
        InputError: The address is none.
    """
    given: dict[str, Any] = {"api_key": api_key, "timeout": timeout}
    engine = DirectEngine(url, model, **given)
    place = engine.url.partition("://")[2]
    return HidingLM(
        f"direct/{place}/{model}",
        **{"temperature": 0.0, **kwargs},
        engine=engine,
        async_engine=engine.twin,
    )


async def _whole(stream: Any) -> bytes:
    """All of a body; an error where it does not end."""
    parts, size = [], 0
    async for part in stream.iter_any():
        parts.append(part)
        size += len(part)
        if size > LONGEST:
            why = f"the answer is longer than {LONGEST} bytes"
            raise lm15.ServerError(why, provider="direct")
    return b"".join(parts)


def _is_completion(body: Any) -> bool:
    choices = body.get("choices") if isinstance(body, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and isinstance(first.get("message"), Mapping)


def _extensions(request: lm15.Request) -> Iterator[tuple[str, Any]]:
    """Further parameters as they are, those in ``metadata["extra_body"]`` one level up.

    ``metadata`` is the one open-ended argument that DSPy lets through.
    """
    for name, value in (request.config.extensions or {}).items():
        inner: Any = value if name == "metadata" and isinstance(value, Mapping) else {}
        if name == "likelihood" or "likelihood" in inner:
            raise lm15.UnsupportedFeatureError("a server cannot score a text", feature="likelihood")
        if "extra_body" in inner:
            yield from inner["extra_body"].items()
        else:
            yield name, value


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"url={url!r}; expected an address such as http://127.0.0.1:8000/v1")
    if parts.username or parts.query:
        raise InputError("the url carries a user, password or query; pass a key as api_key=")
    return url.rstrip("/").removesuffix("/chat/completions")
