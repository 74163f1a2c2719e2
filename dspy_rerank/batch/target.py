"""Who answers a job: one deployment of one model, how it is reached and what it costs."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from .. import models
from ..errors import InputError
from ..models._config import NOT_FOR_THE_WIRE, PRICES, Deployment
from ..models._secret import resolved
from ..models.direct import DirectEngine
from ..prices import Price, listed_price, read_price

PROVIDERS = ("openai", "azure", "hosted_vllm", "litellm_proxy")
"""Those whose batches LiteLLM creates, lists and reads in OpenAI's format."""
SHARE = 0.5
"""Of the price of a live call, at OpenAI and Azure, where no price for batches is known."""

_CLIENT = frozenset(
    {
        "api_base", "base_url", "api_key", "api_version", "organization", "timeout", "max_retries",
        "stream_timeout", "extra_headers", "headers", "azure_ad_token", "tenant_id", "client_id",
        "client_secret", "azure_username", "azure_password", "ssl_verify",
    }
)  # fmt: skip
"""Parameters of the connection: never part of a request, never written down."""
_NEITHER = frozenset({"base_model", "num_retries", "drop_params", "cache", "rollout_id"})
_BATCHES = {
    "input_cost_per_token": "input_cost_per_token_batches",
    "output_cost_per_token": "output_cost_per_token_batches",
}
_REASONING = re.compile(r"^(o\d|gpt-5(?!.*-chat))")


@dataclass(frozen=True, slots=True)
class Target:
    """One deployment.

    Attributes:
        provider: As LiteLLM names it.
        model: Its name there.
        client: Arguments of LiteLLM's calls that make the connection, keys included.
        request: Parameters of every request.
        price: US dollars a token in a batch, where known.
    """

    provider: str
    model: str
    client: Mapping[str, Any] = field(repr=False)
    request: Mapping[str, Any]
    price: Price | None

    @property
    def identity(self) -> dict[str, Any]:
        """What must stay the same while a job goes on; holds no key."""
        base = self.client.get("api_base") or self.client.get("base_url")
        return {
            "provider": self.provider, "model": self.model, "api_base": base,
            "request": dict(self.request),
        }  # fmt: skip

    @property
    def native(self) -> bool:
        """Whether requests are read by OpenAI's or Azure's own servers."""
        return self.provider == "azure" or (
            self.provider == "openai" and self.identity["api_base"] is None
        )

    @property
    def secrets(self) -> list[str]:
        """Values that no message may show."""
        words = ("key", "token", "secret", "password")
        return [str(v) for k, v in self.client.items() if v and any(w in k for w in words)]

    def body(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A request as it goes into the file: what was asked, with this deployment's parameters."""
        body = {**self.request, **asked, "model": self.model}
        if self.native and body.get("max_tokens") is not None:
            body["max_completion_tokens"] = body.pop("max_tokens")
        if self.native and _REASONING.match(self.model):
            body.pop("temperature", None)
        return body


def target_of(lm: Any, config: str | Path | None = None) -> Target:
    """The deployment behind a name or a DSPy LM.

    Args:
        lm: An alias of a LiteLLM configuration, any name such as ``openai/gpt-4o-mini``, or a
            `dspy.LM` that reaches its provider itself.
        config: The LiteLLM configuration.

    Raises:
        InputError: There is no such model, several deployments answer for it, or its provider
            takes no batches that LiteLLM can read.
    """
    if isinstance(lm, str):
        return _named(lm, config)
    engine = getattr(lm, "engine", None)
    if isinstance(engine, DirectEngine):
        client = {"api_base": engine.url, "api_key": engine._secret.reveal() or None}  # pyright: ignore[reportPrivateUsage]
        return _made(
            "openai", engine.model, {**client, **lm.kwargs}, {}, getattr(lm, "price", None)
        )
    if isinstance(lm, dspy.LM) and isinstance(engine, str):
        provider, _, model = (
            lm.model.rpartition("/") if "/" in lm.model else ("openai", "", lm.model)
        )
        return _made(provider, model, lm.kwargs, {}, getattr(lm, "price", None))
    raise InputError(
        f"lm is {type(lm).__name__}; a batch needs an alias, a model's name or a dspy.LM that "
        "reaches a provider"
    )


def _named(name: str, config: str | Path | None) -> Target:
    aliases = None if config is None else models.load(config)
    found = None if aliases is None else aliases.config.with_name(name)
    if found is None:
        if "/" not in name:
            known = ", ".join(aliases or ()) or "none, since no configuration is given"
            raise InputError(f"there is no model {name!r}; aliases are: {known}")
        return _deployed(Deployment(name), name)
    for variable, value in found.environment.items():
        os.environ.setdefault(variable, str(resolved(value)))
    group = found.groups[name]
    if len(group) > 1:
        raise InputError(
            f"{name!r} has {len(group)} deployments, and a batch goes to one; give one of them an "
            "alias of its own"
        )
    return _deployed(next(iter(group)), name)


def _deployed(deployment: Deployment, name: str) -> Target:
    params = {key: resolved(value) for key, value in deployment.params.items()}
    kept = {k: v for k, v in params.items() if k not in NOT_FOR_THE_WIRE | PRICES}
    provider, _, model = deployment.model.partition("/")
    if not model:
        provider, model = "openai", provider
    try:
        return _made(provider, model, kept, {**deployment.info, **params}, deployment.price)
    except InputError as error:
        raise InputError(f"{name!r}: {error}") from None


def _made(
    provider: str,
    model: str,
    params: Mapping[str, Any],
    info: Mapping[str, Any],
    price: Price | None,
) -> Target:
    if provider not in PROVIDERS:
        raise InputError(
            f"{provider}/{model} takes no batches here; providers that do: {', '.join(PROVIDERS)}"
        )
    given = {k: v for k, v in params.items() if v is not None}
    client = {k: v for k, v in given.items() if k in _CLIENT}
    request = {k: v for k, v in given.items() if k not in _CLIENT | _NEITHER}
    request |= request.pop("extra_body", None) or {}
    listed = str(info.get("base_model") or f"{provider}/{model}")
    return Target(provider, model, client, request, _price(provider, listed, info, price))


def _price(
    provider: str, listed: str, info: Mapping[str, Any], price: Price | None
) -> Price | None:
    """The price for batches: as configured, as listed, else half of that of a live call."""
    own = read_price({name: info.get(theirs) for name, theirs in _BATCHES.items()})
    if own is not None:
        return own
    if price is None and (table := _listed(listed)) is not None:
        return table
    known = price or (listed_price(listed) if provider in ("openai", "azure") else None)
    return known and Price(known.read * SHARE, known.written * SHARE)


def _listed(name: str) -> Price | None:
    from ..prices import litellm_entry

    entry = litellm_entry(name)
    return read_price({n: entry.get(theirs) for n, theirs in _BATCHES.items()})
