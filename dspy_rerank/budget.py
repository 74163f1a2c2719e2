"""What a ranking may still spend, and what it has spent.

Limits hold for calls in flight, too: before a call goes out, the most that it can take is held,
and once it is over that is replaced by what it took. A call that fits only when others turn out
cheaper than their worst waits for them; a call that fits in no case ends the ranking.

A bound is as exact as what is held: a prompt is counted by an estimate that errs upwards and is
put right by the first answer that shows it too low, an answer by the length it may have at most.
A call whose outcome is not known (it was abandoned, or broke off) counts as its worst.
"""

import asyncio
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, replace

from .bell import Bell
from .errors import RerankError
from .options import Options
from .types import Usage

TOLERANCE = 1e-12
"""Of sums of prices, which are no whole numbers."""


class LimitReached(RerankError):  # noqa: N818  (it is no error: the ranking ends with what it has)
    """A call was not made, since a limit forbids it; never leaves the engine."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens and US dollars: held for a call, or spent by it."""

    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens - other.tokens, self.cost - other.cost)


NOTHING = Amount()


class Meter:
    """Adds up the cost of one ranking and says when it has to stop.

    Args:
        options: The limits.
        above: Of all rankings of a run, whose limits hold, too.
        name: Stands before a limit in messages, such as ``the run's``.
    """

    def __init__(self, options: Options, above: "Meter | None" = None, name: str = ""):
        self.options, self.above, self.name = options, above, f"{name} " if name else ""
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._bell = Bell()
        self._started = 0
        self._spent = self._held = NOTHING
        self._holds = self._sent = 0
        self._usage = Usage()

    @property
    def limited(self) -> bool:
        """Whether calls have to say what they can take: tokens or money are limited."""
        own = self.options.max_tokens is not None or self.options.max_cost is not None
        return own or (self.above is not None and self.above.limited)

    @property
    def dear(self) -> bool:
        """Whether money is limited, so that prices have to be known."""
        above = self.above is not None and self.above.dear
        return above or self.options.max_cost is not None

    @property
    def spent(self) -> Amount:
        """What calls that are over have taken."""
        return self._spent

    def start_call(self) -> str:
        """Count one attempt; the name of the limit that forbids it, or an empty string."""
        with self._lock:
            reason = self._exhausted()
            if not reason and self.above is not None:
                reason = self.above.start_call()
            if not reason:
                self._started += 1
            return reason

    def _exhausted(self) -> str:
        limits = self.options
        if limits.max_calls is not None and self._started >= limits.max_calls:
            return f"{self.name}max_calls={limits.max_calls} was reached"
        if limits.max_tokens is not None and self._spent.tokens >= limits.max_tokens:
            return f"{self.name}max_tokens={limits.max_tokens} was reached"
        if limits.max_cost is not None and self._spent.cost >= limits.max_cost:
            return f"{self.name}max_cost={limits.max_cost} was reached"
        left = self.seconds_left()
        return limits.late if left is not None and left <= 0 else ""

    def try_hold(self, worst: Amount) -> tuple[str, bool]:
        """Hold the most that a call can take.

        Returns:
            The limit that leaves no room for it, or an empty string; and whether there may be
            room once calls in flight are over.
        """
        with self._lock:
            short, others = self._short_of(worst), False
            if not short and self.above is not None:
                short, others = self.above.try_hold(worst)
            if not short:
                self._held += worst
                self._holds += 1
                self._sent += 1
            return short, others or self._holds > 0

    def _short_of(self, worst: Amount) -> str:
        limits, taken = self.options, self._spent + self._held + worst
        if limits.max_tokens is not None and taken.tokens > limits.max_tokens:
            return f"{self.name}max_tokens={limits.max_tokens} was reached"
        if limits.max_cost is not None and taken.cost > limits.max_cost + TOLERANCE:
            return f"{self.name}max_cost={limits.max_cost} was reached"
        return ""

    def settle(self, held: Amount, spent: Amount) -> None:
        """Replace what was held for a call by what it took, which may be more."""
        with self._lock:
            self._held -= held
            self._holds -= 1
            self._spent += spent
            if not self._holds:
                self._held = NOTHING  # sums of prices leave a rest
        self._bell.ring()
        if self.above is not None:
            self.above.settle(held, spent)

    def over(self) -> asyncio.Future[None]:
        """What is done as soon as a call in flight is over."""
        return self._bell.listen() if self.above is None else self.above.over()

    def seconds_left(self) -> float | None:
        """Seconds until the deadline; ``None`` without one."""
        if self.options.deadline is None:
            return None
        return self.options.deadline - (time.monotonic() - self._begun)

    def add(self, usage: Usage) -> None:
        """Count what a call has cost."""
        with self._lock:
            self._usage = self._usage + usage

    def add_round(self) -> None:
        """Count one more step that had to wait for the one before."""
        self._usage = replace(self._usage, rounds=self._usage.rounds + 1)

    def total(self) -> Usage:
        """Everything so far, with the time it took."""
        used = replace(self._usage, seconds=time.monotonic() - self._begun)
        if self._sent and not used.calls + used.failed_calls:
            return replace(used, cost=None, cost_reason="no call was answered")
        return used


class Allowance:
    """What the calls for one question may take. Its first call is counted already.

    Args:
        meter: Of the ranking.
    """

    def __init__(self, meter: Meter):
        self.meter = meter
        self._counted = True

    def count(self) -> None:
        """Count a call that is about to go out.

        Raises:
            LimitReached: A limit forbids it.
        """
        if self._counted:
            self._counted = False
            return
        reason = self.meter.start_call()
        if reason:
            raise LimitReached(reason)


class Hold:
    """What is held for a call in flight, and for its further attempts.

    Args:
        allowance: Of the question.
        worst: The most that one attempt can take; it is held already.
        prompt: Tokens of the prompt in it; 0 where nobody has estimated them.
    """

    def __init__(self, allowance: Allowance, worst: Amount, prompt: int = 0):
        self._allowance = allowance
        self.worst = worst
        self.prompt = prompt
        self._open = True

    def settle(self, spent: Amount | None) -> None:
        """The call is over; ``None``: nobody knows what it took, so it counts as its worst."""
        if self._open:
            self._open = False
            self._allowance.meter.settle(self.worst, self.worst if spent is None else spent)

    def again(self, spent: Amount | None) -> None:
        """An attempt has failed and another is about to go out, counted like a call of its own.

        Raises:
            LimitReached: A limit forbids it.
        """
        self.settle(spent)
        meter = self._allowance.meter
        meter.add(Usage(failed_calls=1, cost=0.0))
        self._allowance.count()
        reason, _ = meter.try_hold(self.worst)
        if reason:
            raise LimitReached(reason)
        self._open = True


allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)
"""Of the question that is being answered; ``None`` outside of a ranking."""

shared_meter: ContextVar[Meter | None] = ContextVar("shared_meter", default=None)
"""Set around many rankings to let them share one budget, beside that of each."""

hold: ContextVar[Hold | None] = ContextVar("hold", default=None)
"""Of the call that is under way, for engines that try more than once."""
