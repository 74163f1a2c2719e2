"""Language models: the embedded one, and everything else by its DSPy name."""

from typing import Any

import dspy

from dspy_rerank.models._chat import likelihood_config
from dspy_rerank.models.local import (
    PREFIX,
    AsyncLocalEngine,
    Endpoint,
    LocalEngine,
    available,
    local,
    serve,
)

__all__ = [
    "AsyncLocalEngine",
    "Endpoint",
    "LocalEngine",
    "available",
    "get",
    "likelihood_config",
    "local",
    "serve",
]


def get(name: str, **kwargs: Any) -> dspy.LM:
    """The language model of a name: ``local/...`` runs in this process, others are `dspy.LM`'s."""
    return local(name, **kwargs) if name.startswith(PREFIX) else dspy.LM(name, **kwargs)
