"""DSPy's asynchronous LM call without its detour over a thread, where nothing is on a disk.

DSPy prepares every call in a worker thread, since images and the like may have to be read from
files. Judges send text, and handing it over and back takes more time than preparing it.
"""

from collections.abc import Mapping
from functools import cache
from types import MethodType
from typing import Any

import dspy
from dspy.utils.callback import with_callbacks

_whole: Any = dspy.LM.acall
_dspys: Any = getattr(_whole, "__wrapped__", _whole)


@cache
def _steps() -> Any:
    """The steps of DSPy 3.4's call; ``None`` where a later release, which may, has others."""
    try:
        from dspy.clients._deprecation import warn_openai_messages
        from dspy.clients.execution import aexecute, finalize, prepare
    except ImportError:
        return None
    return prepare, warn_openai_messages, aexecute, finalize


async def acall(lm: dspy.LM, prompt: Any, messages: Any, kwargs: dict[str, Any]) -> Any:
    """What `dspy.LM.acall` gives, without its callbacks."""
    steps = _steps()
    if steps is None or not _text(messages) or prompt is not None or "request" in kwargs:
        return await _dspys(lm, prompt, messages=messages, **kwargs)
    prepare, warn, aexecute, finalize = steps
    call = prepare(lm, prompt, messages, kwargs, asynchronous=True)
    if not call.managed:
        return await _dspys(lm, prompt, messages=messages, **kwargs)
    warn(lm, messages)
    return finalize(lm, call, await aexecute(lm, call))


def _text(messages: Any) -> bool:
    """Whether all that is to be sent are strings."""
    return isinstance(messages, list) and all(
        isinstance(message, Mapping) and isinstance(message.get("content"), str)
        for message in messages
    )


@with_callbacks
async def _called(self: Any, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
    return await acall(self, prompt, messages, kwargs)


def straighten(lm: dspy.LM) -> None:
    """Have this very object called so; its class, which tracers name, stays what it is.

    Where somebody has put a call of theirs into the class, as some tracers do, that is left to see
    every call.
    """
    if dspy.LM.acall is _whole and "acall" not in vars(dspy.LM):
        lm.acall = MethodType(_called, lm)
