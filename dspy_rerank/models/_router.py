"""A group of deployments as one DSPy engine, over LiteLLM's Router."""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Self

from dspy import lm15

from dspy_rerank.errors import InputError
from dspy_rerank.models._answer import read_answer
from dspy_rerank.models._chat import openai_body
from dspy_rerank.models._config import Config
from dspy_rerank.models._failures import failure, seconds, without
from dspy_rerank.models._secret import resolved

logger = logging.getLogger(__name__)

RETRIES = 3
"""Deployments to try where the file does not say; a failing one is left alone for a while."""
COOLDOWN = 30.0


class _Group:
    """What the two engines share: the group's name, and the Router, made at the first call.

    Args:
        config: The whole file, since fallbacks lead to other groups.
        alias: The group.
    """

    supports_response_schema = True
    supported_params = frozenset(
        {
            "temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "frequency_penalty",
            "presence_penalty", "logprobs", "top_logprobs", "logit_bias", "response_format",
        }
    )  # fmt: skip

    def __init__(self, config: Config, alias: str) -> None:
        self.config = config
        self.alias = alias
        self._made: Any = None

    @property
    def router(self) -> Any:
        """LiteLLM's Router; imports LiteLLM, which takes seconds."""
        if self._made is None:
            self._made = _router(self.config, self.alias)
        return self._made

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
        more = {k: v for k, v in (request.config.extensions or {}).items() if k != "metadata"}
        return {"model": self.alias, **openai_body(request), **more}

    def _read(self, answer: Any, request: lm15.Request) -> lm15.Response:
        headers = (getattr(answer, "_hidden_params", None) or {}).get("additional_headers") or {}
        failed = int(headers.get("x-litellm-attempted-retries") or 0)
        moved = int(headers.get("x-litellm-attempted-fallbacks") or 0)
        body = answer.model_dump()
        if failed or moved:
            how = f"{failed} failed tries and {moved} fallbacks"
            logger.warning("%s: answered by %s after %s", self.alias, body.get("model"), how)
        return read_answer(body, request.model)

    def _failure(self, error: Exception) -> lm15.LM15Error:
        """The Router's error in DSPy's terms, without keys."""
        status = getattr(error, "status_code", None)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        text = without(str(getattr(error, "message", error)), _secrets(self.config, self.alias))
        return failure(
            status if isinstance(status, int) and status >= 400 else 500,
            text,
            provider=self.alias,
            retry_after=seconds(headers.get("retry-after")),
        )


class RouterEngine(_Group):
    """DSPy's engine contract over a Router."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer of whichever deployment the Router finds."""
        try:
            answer = self.router.completion(**self._body(request))
        except (InputError, lm15.LM15Error):
            raise
        except Exception as error:
            raise self._failure(error) from None
        return self._read(answer, request)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The answer as events; it is complete before the first of them."""
        yield from lm15.response_to_events(self.complete(request))


class AsyncRouterEngine(_Group):
    """`RouterEngine` for coroutines."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """The answer of whichever deployment the Router finds."""
        try:
            answer = await self.router.acompletion(**self._body(request))
        except (InputError, lm15.LM15Error):
            raise
        except Exception as error:
            raise self._failure(error) from None
        return self._read(answer, request)

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """The answer as events; it is complete before the first of them."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event


def _router(config: Config, alias: str) -> Any:
    from litellm.router import Router

    names = config.reachable(alias)
    models = [
        {
            "model_name": name,
            "litellm_params": {
                "model": deployment.model,
                **{key: resolved(value) for key, value in deployment.params.items()},
                **({"drop_params": True} if config.drop_params else {}),
            },
            "model_info": dict(deployment.info),
        }
        for name in names
        for deployment in config.groups[name]
    ]
    fallbacks = [{n: list(config.fallbacks[n])} for n in names if n in config.fallbacks]
    settings: Mapping[str, Any] = {
        "num_retries": RETRIES, "allowed_fails": 0, "cooldown_time": COOLDOWN, **config.router
    }  # fmt: skip
    skipped = ("fallbacks", "default_fallbacks", "model_group_alias")
    given = {key: value for key, value in settings.items() if key not in skipped}
    return Router(model_list=models, fallbacks=fallbacks, **given)


def _secrets(config: Config, alias: str) -> list[str]:
    """Every value of the group's deployments that may be a key."""
    found: list[str] = []
    for name in config.reachable(alias):
        for deployment in config.groups[name]:
            for key, value in deployment.params.items():
                if any(word in key for word in ("key", "token", "secret", "password")):
                    found.append(str(resolved(value)))
    return found
