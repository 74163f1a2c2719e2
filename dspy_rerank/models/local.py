"""The embedded language model: a GGUF file run in this process, behind DSPy's engine contract."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import dspy
from dspy import lm15

from dspy_rerank.models import _gguf
from dspy_rerank.models._chat import chat_body, continuation, raw_prompt, response
from dspy_rerank.models._likelihood import likelihood
from dspy_rerank.models._llama import N_CTX, Llama, Settings, load, require

PREFIX = "local/"


class _Engine:
    """What the two engines share: which model, and everything that is no call.

    Args:
        model: An alias, a path or a hub name, as `dspy_rerank.models.local` takes it.
        n_ctx: Longest prompt and answer together, in tokens.
    """

    evidence = ("likelihood", "logprobs", "generate")
    """How to get a pointwise judgment out of this model, the best way first."""

    free = True
    """Calls cost nothing but time."""

    supports_response_schema = True
    supported_params = frozenset(
        {
            "temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "frequency_penalty",
            "presence_penalty", "logprobs", "top_logprobs", "logit_bias", "metadata",
            "response_format",
        }
    )  # fmt: skip

    def __init__(self, model: str, *, n_ctx: int = N_CTX) -> None:
        self.model = model
        self.n_ctx = n_ctx

    @property
    def llama(self) -> Llama:
        """The model itself, loaded at first use."""
        return load(_gguf.resolve(self.model), Settings(n_ctx=self.n_ctx))

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer."""
        return len(self.llama.tokenize(text))

    def dump_state(self) -> dict[str, Any]:
        """What rebuilds this engine."""
        return {"model": self.model, "n_ctx": self.n_ctx}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Self:
        """The engine that `dump_state` described."""
        return cls(state["model"], n_ctx=state["n_ctx"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, n_ctx={self.n_ctx})"

    def _answer(self, request: lm15.Request) -> lm15.Response:
        text = continuation(request)
        if text is None:
            return response(self.llama.chat(chat_body(request)), request.model)
        top = request.config.logprobs or 0
        return response(likelihood(self.llama, raw_prompt(request), text, top), request.model)


class LocalEngine(_Engine):
    """DSPy's engine contract on a model in this process.

    A request whose config carries ``extensions={"likelihood": text}`` (or, from keyword
    arguments, ``metadata={"likelihood": text}``) is not answered: the text itself comes back,
    with the log-probability of each of its tokens after the raw prompt.
    """

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer to one request."""
        return self._answer(request)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The answer as events; it is complete before the first of them."""
        yield from lm15.response_to_events(self.complete(request))

    def close(self) -> None:
        """Nothing: the model is shared, and stays loaded until the process ends."""


class AsyncLocalEngine(_Engine):
    """`LocalEngine` for coroutines: the model runs in a thread and never blocks the loop."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer to one request."""
        return await asyncio.to_thread(self._answer, request)

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """The answer as events; it is complete before the first of them."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event

    async def aclose(self) -> None:
        """Nothing: the model is shared, and stays loaded until the process ends."""


def local(model: str = _gguf.EMBEDDED, *, n_ctx: int = N_CTX, **kwargs: Any) -> dspy.LM:
    """A language model that runs in this process, named ``local/<model>``.

    Nothing is loaded before the first call. The temperature is 0 unless one is given; even so,
    scores of a text by a process's first call and by later ones may differ, by 0.07 where measured.

    Args:
        model: ``embedded`` (the file named by ``DSPY_RERANK_LOCAL_MODEL``, else
            ``smollm2-135m``), ``smollm2-135m``, the path of a ``.gguf`` file, or
            ``hf:org/repo:file.gguf``.
        n_ctx: Longest prompt and answer together, in tokens.
        **kwargs: Anything that `dspy.LM` takes.

    Raises:
        MissingExtraError: ``xllamacpp`` is not installed.
        NoModelError: At the first call: there is no such model here.
    """
    require()
    name = _gguf.canonical(model.removeprefix(PREFIX))
    engines = {
        "engine": LocalEngine(name, n_ctx=n_ctx),
        "async_engine": AsyncLocalEngine(name, n_ctx=n_ctx),
    }
    return dspy.LM(PREFIX + name, **{"temperature": 0.0, **kwargs}, **engines)


def available(model: str = _gguf.EMBEDDED) -> bool:
    """Whether `local` would work: xllamacpp is installed and the file is there. Loads nothing."""
    installed = importlib.util.find_spec("xllamacpp") is not None
    return installed and _gguf.found(model.removeprefix(PREFIX))


class Endpoint(NamedTuple):
    """An OpenAI-compatible API on loopback."""

    url: str
    api_key: str


@contextmanager
def serve(model: str = _gguf.EMBEDDED, *, n_ctx: int = N_CTX) -> Iterator[Endpoint]:
    """An OpenAI-compatible server on loopback, answered by the model in this process.

    The same loaded model as `local` with the same settings; ``litellm`` reaches it as
    ``openai/anything`` with ``api_base`` and ``api_key`` taken from the endpoint.
    """
    llama = LocalEngine(model.removeprefix(PREFIX), n_ctx=n_ctx).llama
    yield Endpoint(llama.url, llama.api_key)
