"""Language models: the embedded one, those of a configuration, and all others by DSPy name."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import dspy

from dspy_rerank.calls import scoring as likelihood_config
from dspy_rerank.errors import InputError
from dspy_rerank.models import aliases
from dspy_rerank.models._exact import vllm
from dspy_rerank.models._hiding import HidingLM
from dspy_rerank.models.aliases import Aliases, load
from dspy_rerank.models.decision import PREFIX as DECIDING
from dspy_rerank.models.decision import decision
from dspy_rerank.models.direct import AsyncDirectEngine, DirectEngine, direct
from dspy_rerank.models.local import (
    PREFIX,
    AsyncLocalEngine,
    Endpoint,
    LocalEngine,
    available,
    local,
    serve,
)
from dspy_rerank.models.probe import Probe, probe
from dspy_rerank.prices import set_price
from dspy_rerank.quiet import quiet

__all__ = [
    "Aliases",
    "AsyncDirectEngine",
    "AsyncLocalEngine",
    "DirectEngine",
    "Endpoint",
    "LocalEngine",
    "Probe",
    "available",
    "decision",
    "direct",
    "get",
    "likelihood_config",
    "load",
    "local",
    "probe",
    "serve",
    "set_price",
    "vllm",
]

EXPECTED = (
    "expected PROVIDER/MODEL, such as openai/gpt-4o-mini, or an alias of a LiteLLM configuration "
    "that was loaded (--config FILE, or dspy_rerank.models.load)"
)

ROUTES = ("custom_llm_provider", "deployment_id")
"""Arguments by which LiteLLM knows the provider of any name."""


def get(name: str, **kwargs: Any) -> Any:
    """The language model of a name.

    Args:
        name: An alias that `load` has read; ``local/...`` for one in this process;
            ``typesafe/...`` for a decision model; else any name that `dspy.LM` takes.
        **kwargs: Anything that `dspy.LM` takes; of an alias, a copy with them is made.

    Raises:
        InputError: The name has no provider, nor have the further arguments, and neither is it an
            alias nor does DSPy or LiteLLM know whose model it is.
    """
    found = aliases.named(name)
    if found is not None:
        return found.copy(**kwargs) if kwargs else found
    if name.startswith(DECIDING):
        return decision(name, **kwargs)
    if name.startswith(PREFIX):
        return local(name, **kwargs)
    if "/" not in name and not _routed(kwargs) and (aliases.known() or not _provided(name, kwargs)):
        loaded = f"; loaded are {', '.join(aliases.known())}" if aliases.known() else ""
        raise InputError(f"there is no model {name!r}; {EXPECTED}{loaded}")
    return HidingLM(name, **kwargs)


def _routed(given: Mapping[str, Any]) -> bool:
    """Whether arguments say who answers, whatever the name is."""
    return given.get("engine", "auto") != "auto" or any(map(given.get, ROUTES))


def _provided(name: str, given: Mapping[str, Any]) -> bool:
    """Whether it is known whose model a name without a provider is, such as ``gpt-4o``.

    DSPy knows some itself. Without LiteLLM, which knows the others, every name may be one.
    """
    with suppress(dspy.lm15.UnknownModelError):
        return bool(dspy.lm15.LMRouter(config=dspy.lm15.RouterConfig(env={})).resolve(name))
    base = given.get("api_base") or given.get("base_url")
    try:
        with quiet() as litellm, suppress(litellm.BadRequestError):
            return bool(litellm.get_llm_provider(name, api_base=base)[1])
    except ImportError:
        return True
    return False
