"""How long one call to a language model may take: one that hangs ends, and can be tried again.

Clients limit the wait for the next byte, if anything; a server that sends one now and then, or
none, would hold a ranking without a deadline for ever.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dspy.utils.exceptions import LMTimeoutError

TIMEOUT = 120.0
"""Seconds for one whole call, where the LM has no ``timeout`` of its own."""


def patience_with(lm: Any) -> float | None:
    """Seconds that one call to an LM may take; ``None`` is any number.

    An LM over DSPy's own clients or LiteLLM has its ``timeout=``, where that is a number or
    ``None``; an ``httpx.Timeout`` says all there is to say. Other engines see to it themselves:
    those of this package for servers do, the embedded model takes the time that it needs.
    """
    if not isinstance(getattr(lm, "engine", None), str):
        return None
    given = (getattr(lm, "kwargs", None) or {}).get("timeout", TIMEOUT)
    return float(given) if isinstance(given, int | float) and given > 0 else None


@asynccontextmanager
async def patience(seconds: float | None, model: str | None = None) -> AsyncIterator[None]:
    """What goes on inside is ended after so many seconds.

    Raises:
        LMTimeoutError: It was; a failure that may pass.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as late:
        if not limit.expired():
            raise
        why = f"no answer within {seconds:g} s; the LM's timeout= says how long to wait"
        raise LMTimeoutError(why, model=model) from late
