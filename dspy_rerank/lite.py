"""LiteLLM, whole: imported once, when it is first needed, whatever thread needs it."""

import importlib
from typing import Any


def litellm() -> Any:
    """The module, which takes seconds to import.

    DSPy imports it under a lock, and takes what another import has begun for ready: an import
    beside that lock, in another thread, would give DSPy half a module. DSPy's settings for it,
    which would undo those of others, are left to DSPy.
    """
    try:
        from dspy.utils.lazy_import import require
    except ImportError:  # a later release of DSPy, which may have another way
        return importlib.import_module("litellm")
    require("litellm").completion  # noqa: B018 - imports it
    return importlib.import_module("litellm")
