"""A group of deployments as one DSPy engine, over LiteLLM's Router."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Self
from weakref import WeakSet

from dspy import lm15
from dspy.utils.exceptions import LMTimeoutError

from dspy_rerank import lite
from dspy_rerank.background import run_sync
from dspy_rerank.budget import NOTHING, hold
from dspy_rerank.calls import refusal
from dspy_rerank.capability import BY_EFFORT, BY_TEMPLATE
from dspy_rerank.errors import InputError
from dspy_rerank.hiding import Blotting, keys_in, without
from dspy_rerank.limits import Limit
from dspy_rerank.models._answer import read_answer
from dspy_rerank.models._chat import OPENAI_LIKE, openai_body
from dspy_rerank.models._config import PRICES, Config, Deployment
from dspy_rerank.models._failures import failure, seconds
from dspy_rerank.models._group_prices import dearest, described, places, written
from dspy_rerank.models._secret import resolved_all
from dspy_rerank.models._tries import NONE_LEFT, tries
from dspy_rerank.patience import TIMEOUT, patience
from dspy_rerank.prices import Price

logger = logging.getLogger(__name__)

NO_KEY = "none"
LOGGERS = ("LiteLLM", "LiteLLM Router")
"""Where LiteLLM logs what providers say, the key that they refuse included."""
COOLDOWN = 30.0
"""Seconds for which a deployment that has failed is left alone, where the file does not say."""


class _Group:
    """What the two engines share: the group's name, and the Router, made at the first call.

    Args:
        config: The whole file, since fallbacks lead to other groups.
        alias: The group.
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
        {"metadata": {"extra_body": BY_EFFORT}},
        {"metadata": {"extra_body": {"extra_body": BY_TEMPLATE}}},
    )
    """How a model that thinks is kept from it, tried in this order."""

    def __init__(self, config: Config, alias: str) -> None:
        self.config = config
        self.alias = alias
        self.limit = Limit()
        self._made: Any = None

    @property
    def router(self) -> Any:
        """LiteLLM's Router; imports LiteLLM, which takes seconds."""
        if self._made is None:
            self._made = _router(self.config, self.alias)
            _groups.add(self)
            for name in LOGGERS:
                logging.getLogger(name).addFilter(_BLOTTING)  # which it takes once
        return self._made

    def secrets(self) -> list[str]:
        """Every value of the deployments that may be a key, to be blotted out of what is shown."""
        deployments = places(self.config, self.alias)
        params = (self.config.groups[name][place].params for name, place in deployments)
        return [key for given in params for key in keys_in(resolved_all(given))]

    def dump_state(self) -> dict[str, Any]:
        """The alias and the file's name; neither addresses nor keys."""
        return {"alias": self.alias, "config": self.config.source}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Self:
        """The engine of an alias, from the file that it came from."""
        from dspy_rerank.models._config import read_config

        return cls(read_config(state["config"]), state["alias"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.alias!r}, {self.config.source!r})"

    def _body(self, request: lm15.Request) -> dict[str, Any]:
        given = request.config.extensions or {}
        more = {k: v for k, v in given.items() if k != "metadata"}
        inner = given.get("metadata")
        further: Any = inner.get("extra_body", {}) if isinstance(inner, Mapping) else {}
        return {"model": self.alias, **openai_body(request), **more, **further}

    @property
    def dearest(self) -> Price | None:
        """The most that a token costs at any deployment that may answer, if all are known."""
        return dearest(self.config, self.alias)

    @cached_property
    def called(self) -> tuple[str, str]:
        """What the user calls it, in words and in code: the LM's own name holds a digest."""
        return described(self.config, self.alias), f"dspy_rerank.models.get({self.alias!r})"

    def _read(self, answer: Any, request: lm15.Request) -> lm15.Response:
        """The answer, with its price by the deployment that gave it."""
        hidden = getattr(answer, "_hidden_params", None) or {}
        response = read_answer(answer.model_dump(), request.model)
        name, _, place = str(hidden.get("model_id") or "").rpartition(":")
        cost = hidden.get("response_cost") or None  # LiteLLM's 0 may mean that it knows none
        price = written(self.config, name, place)
        used = response.usage
        if price is not None and used.input_tokens is not None and used.output_tokens is not None:
            again = used.cache_read_tokens or 0
            cost = price.of(used.input_tokens, used.output_tokens, again)
        return replace(response, provider_data={"cost": cost})

    def _failure(self, error: Exception) -> lm15.LM15Error:
        """The Router's error in DSPy's terms, without keys."""
        status = 408 if isinstance(error, LMTimeoutError) else getattr(error, "status_code", None)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        text = without(str(getattr(error, "message", error)), self.secrets())
        if not isinstance(status, int) or status < 400:
            status = 500
        if NONE_LEFT in text:
            lately = float(self.config.router.get("cooldown_time", COOLDOWN))
            status, text = 503, f"{NONE_LEFT}: all have failed in the last {lately:g} s"
        made = failure(
            status, text, provider=self.alias, retry_after=seconds(headers.get("retry-after"))
        )
        if not refusal(error):
            made.status = None  # nobody knows what the attempt has cost
        return made


class AsyncRouterEngine(_Group):
    """DSPy's asynchronous engine contract over a Router."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer of whichever deployment gives one; see :func:`._tries.tries`."""
        body = self._body(request)
        tokens = sum(len(str(message["content"])) for message in body["messages"]) // 4 + 1
        async with self.limit.turn(tokens):
            try:
                response = await self._tried(body, request)
            except lm15.RateLimitError as error:
                self.limit.refused(error.retry_after)
                raise
            self.limit.correct(tokens, response.usage.total_tokens or tokens)
        return response

    async def _tried(self, body: Mapping[str, Any], request: lm15.Request) -> lm15.Response:
        waiting = tries(self.config, self.alias)
        attempt, failed = next(waiting), 0
        while True:
            await asyncio.sleep(attempt.wait)
            try:
                asked = {**body, **ONCE, "model": attempt.group}
                async with patience(_longest(self.config, attempt.group), attempt.group):
                    answer = await self.router.acompletion(**asked)
            except (InputError, lm15.LM15Error):
                raise
            except Exception as raised:
                error, failed = self._failure(raised), failed + 1
                try:
                    attempt = waiting.send(error)
                except StopIteration as end:
                    raise end.value from None
                _count(error)
                continue
            if failed:
                how = f"{failed} failed tries and {attempt.moved} fallbacks"
                logger.warning("%s: answered by %s after %s", self.alias, attempt.group, how)
            return self._read(answer, request)

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """The answer as events; it is complete before the first of them."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event


class RouterEngine(_Group):
    """The synchronous engine: the same requests, sent from the background loop.

    Attributes:
        twin: The asynchronous one, which does the work.
    """

    def __init__(self, config: Config, alias: str) -> None:
        super().__init__(config, alias)
        self.twin = AsyncRouterEngine(config, alias)
        self.limit = self.twin.limit

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer of whichever deployment gives one."""
        return run_sync(self.twin.complete(request))

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The answer as events; it is complete before the first of them."""
        yield from lm15.response_to_events(self.complete(request))


_groups: WeakSet[_Group] = WeakSet()


def _secrets() -> Iterator[str]:
    """The keys of all groups that have asked something and are still there."""
    for group in list(_groups):
        with suppress(InputError):  # a variable that is no longer set
            yield from group.secrets()


_BLOTTING = Blotting(_secrets)

ONCE: Mapping[str, Any] = {"num_retries": 0, "disable_fallbacks": True, "max_retries": 0}
"""One attempt at one deployment: what comes after a failure is decided here."""


def _longest(config: Config, group: str) -> float | None:
    """Seconds for an attempt at any deployment of a group.

    A little more than the Router's own limit, which leaves one that is silent alone for a while.
    """
    usual = config.router.get("timeout", TIMEOUT)
    each = [deployment.params.get("timeout", usual) for deployment in config.groups[group]]
    known = [float(n) for n in each if isinstance(n, int | float) and n > 0]
    return 1.0 + max(known) if known and len(known) == len(each) else None


def _count(error: Exception) -> None:
    """Another attempt is about to go out: a ranking counts it, and may have no more of them."""
    held = hold.get()
    if held is not None:
        held.again(NOTHING if refusal(error) else None)


def _router(config: Config, alias: str) -> Any:
    lite.litellm()
    from litellm.router import Router

    models = [
        _entry(config, name, place, deployment)
        for name in config.reachable(alias)
        for place, deployment in enumerate(config.groups[name])
    ]
    settings: Mapping[str, Any] = {
        "allowed_fails": 0, "cooldown_time": COOLDOWN, "timeout": TIMEOUT, **config.router,
    }  # fmt: skip
    return Router(model_list=models, num_retries=0, **settings)


def _entry(config: Config, name: str, place: int, deployment: Deployment) -> dict[str, Any]:
    """One deployment, without its price, which is counted here.

    A server of the user's own gets no key that was not meant for it.
    """
    given = {k: v for k, v in resolved_all(deployment.params).items() if k not in PRICES}
    own = "api_base" in given and deployment.model.partition("/")[0] in OPENAI_LIKE
    return {
        "model_name": name,
        "litellm_params": {
            "model": deployment.model,
            **({"api_key": NO_KEY} if own and not given.get("api_key") else {}),
            **{key: value for key, value in given.items() if value is not None},
            **({"drop_params": True} if config.drop_params else {}),
        },
        "model_info": {
            **{key: value for key, value in deployment.info.items() if key not in PRICES},
            "id": f"{name}:{place}",
        },
    }
