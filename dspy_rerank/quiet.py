"""LiteLLM without the advice that it prints, coloured, on standard output when something fails."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import lite

_lock = threading.Lock()
_calls = 0
_before = (False, False)


@contextmanager
def quiet() -> Iterator[Any]:
    """Within it LiteLLM, which it gives and imports, prints no advice.

    Its one switch is global, so it is turned for calls of ours alone, and turned back after the
    last of those under way at a time, unless DSPy has set it for good meanwhile.
    """
    litellm: Any = lite.litellm()
    global _calls, _before
    with _lock:
        if not _calls:
            _before = (litellm.suppress_debug_info, _settled(litellm))
        _calls += 1
        litellm.suppress_debug_info = True
    try:
        yield litellm
    finally:
        with _lock:
            _calls -= 1
            if not _calls and _settled(litellm) == _before[1]:
                litellm.suppress_debug_info = _before[0]


def _settled(litellm: Any) -> bool:
    """Whether DSPy has said what LiteLLM is to print."""
    return getattr(litellm, "_dspy_logging_configured", False)
