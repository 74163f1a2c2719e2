"""One question with log-probabilities, as many as the model gives."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import dspy

from .. import calls, capability
from ..types import Usage

Call = Callable[[dict[str, Any]], Awaitable[calls.Reply]]
"""Asks, given the configuration that asks for log-probabilities, which may be empty."""


async def with_tokens(
    lm: Any, call: Call, *, quietly: bool = False, labels: Sequence[str] = ()
) -> tuple[calls.Reply, Usage]:
    """What came back, and what had to be spent before.

    Args:
        lm: Who is asked; ``None`` where log-probabilities are of no use.
        call: Asks once.
        quietly: Ask again where the model thought before it answered and can be kept from that:
            of an answer that reasoning has decided, the tokens say nothing.
        labels: All possible answers, where the bare label is the whole answer.
    """
    before = Usage()
    while True:
        asking = {} if lm is None else capability.asking(lm, quietly=quietly, labels=labels)
        try:
            reply = await call(asking)
        except dspy.LMError as error:
            if not asking or not capability.refused(lm, error, asking):
                raise
            before += Usage(failed_calls=1, cost=0.0)
            continue
        if asking and quietly and reply.thought and capability.thought(lm, asking):
            before += reply.usage
            continue
        if asking:
            capability.learn(lm, reply.text, bool(reply.tokens))
        return reply, before
