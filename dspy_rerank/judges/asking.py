"""One question with log-probabilities, as many as the model gives."""

from collections.abc import Awaitable, Callable
from typing import Any

import dspy

from .. import calls, capability

Call = Callable[[dict[str, Any]], Awaitable[calls.Reply]]
"""Asks, given the configuration that asks for log-probabilities, which may be empty."""


async def with_tokens(lm: Any, call: Call) -> tuple[calls.Reply, int]:
    """What came back, and how often the model refused to give log-probabilities before.

    Args:
        lm: Who is asked; ``None`` where log-probabilities are of no use.
        call: Asks once.
    """
    refusals = 0
    while True:
        asking = {} if lm is None else capability.asking(lm)
        try:
            reply = await call(asking)
            break
        except dspy.LMError as error:
            if not asking or not capability.refused(lm, error, asking["top_logprobs"]):
                raise
            refusals += 1
    if asking:
        capability.learn(lm, reply.text, bool(reply.tokens))
    return reply, refusals
