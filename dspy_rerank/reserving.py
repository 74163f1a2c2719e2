"""How much a call can take at most, held before it goes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from .budget import NOTHING, Allowance, Amount, Hold, LimitReached, Meter
from .decisions import decides
from .limits import Shared
from .prices import price_of
from .reading.labels import estimate_tokens

ROOM = 2048
"""Tokens of an answer where tokens or money are limited and nobody has limited its length."""
LEAST = 16
"""Shorter answers are not worth asking for."""
FRAME = 8
"""Tokens of a chat template around each message."""
DECISION = 64
"""Tokens of the answer of a decision model, whose length cannot be limited."""

_low: Shared[float] = Shared()
"""By how much the estimate of a prompt has proved too low for an LM, as a factor."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is about to be asked.

    Attributes:
        lm: Who is asked.
        predict: By which predictor.
        adapter: How.
        signature: What.
        inputs: Its fields.
        config: Of the request.
    """

    lm: Any
    predict: dspy.Predict
    adapter: dspy.Adapter
    signature: Any
    inputs: Mapping[str, Any]
    config: Mapping[str, Any]

    def prompt(self) -> str:
        """The prompt as one text, with room for a chat template."""
        return "\n".join(self._texts())

    def prompt_tokens(self) -> int:
        """Tokens of the prompt, estimated on the safe side."""
        text = self.prompt()
        words = max(estimate_tokens(text), len(text.split()))
        return int((_low.get(self.lm) or 1.0) * words) + 1

    def _texts(self) -> list[str]:
        if decides(self.lm):
            given = [str(value) for value in self.inputs.values()]
            return [self.signature.instructions, str(self.signature.model_json_schema()), *given]
        with dspy.context(callbacks=[]):
            prompt: Any = self.adapter.format(self.signature, self.predict.demos, dict(self.inputs))
        texts = [f"{'. ' * FRAME}{message['content']}" for message in prompt]
        if isinstance(self.adapter, dspy.JSONAdapter):
            texts.append(str(self.signature.model_json_schema()))
        return texts

    def answer_tokens(self) -> int | None:
        """Tokens that the answer can have; ``None`` where nobody has limited it."""
        scored = (self.config.get("metadata") or {}).get("likelihood")
        if isinstance(scored, str):
            return max(estimate_tokens(scored), len(scored.split())) + FRAME
        if decides(self.lm):
            return DECISION
        sources = (self.config, self.predict.config, getattr(self.lm, "kwargs", None) or {})
        for source in sources:
            for name in ("max_tokens", "max_completion_tokens"):
                if source.get(name) is not None:
                    return int(source[name])
        return None


async def reserve(allowed: Allowance, call: Call) -> tuple[Hold, dict[str, Any]]:
    """Hold the most that a call can take, waiting for others where they leave too little.

    An answer whose length nobody has limited is limited to `ROOM` tokens, and to what is left
    where no other call is in flight.

    Returns:
        What is held, and configuration that has to go with the call.

    Raises:
        LimitReached: There is no room for the call, or too many were made.
        InputError: Money is limited and the price is not known.
    """
    if not allowed.meter.limited:
        allowed.count()
        allowed.meter.try_hold(NOTHING)
        return Hold(allowed, NOTHING), {}
    prompt, answer = call.prompt_tokens(), call.answer_tokens()
    wanted = [answer] if answer is not None else _shrinking(ROOM)
    hold, granted = await _fitting(allowed, call, prompt, wanted)
    return hold, {} if answer is not None else {"max_tokens": granted}


def _shrinking(answer: int) -> list[int]:
    lengths = [answer]
    while lengths[-1] // 2 >= LEAST:
        lengths.append(lengths[-1] // 2)
    return lengths


async def _fitting(
    allowed: Allowance, call: Call, prompt: int, answers: Sequence[int]
) -> tuple[Hold, int]:
    """Hold the prompt and the first of several lengths, or, with nobody else, the first to fit."""
    meter = allowed.meter
    while True:
        over = meter.over()
        reason = ""
        for answer in answers:
            worst = _worst(meter, call, prompt, answer)
            reason, may_change = meter.try_hold(worst)
            if not reason:
                over.cancel()
                return _counted(allowed, Hold(allowed, worst, prompt)), answer
            if may_change:
                break
        else:
            over.cancel()
            raise LimitReached(
                f"{reason}: the next call may take {prompt} tokens for its prompt and "
                f"{answers[-1]} for its answer"
            )
        await over


def _worst(meter: Meter, call: Call, prompt: int, answer: int) -> Amount:
    return Amount(prompt + answer, price_of(call.lm).most(prompt, answer) if meter.dear else 0.0)


def _counted(allowed: Allowance, hold: Hold) -> Hold:
    try:
        allowed.count()
    except LimitReached:
        hold.settle(NOTHING)
        raise
    return hold


def proved(lm: Any, estimated: int, counted: int) -> None:
    """Remember an estimate of a prompt that was too low, for all that follow."""
    if counted > estimated > 0:
        factor = _low.get(lm) or 1.0
        _low.put(lm, factor * counted / estimated)
