"""What a ranking may still spend, and what it has spent."""

import time
from dataclasses import replace

from .options import Options
from .types import Usage


class Meter:
    """Adds up the cost of one ranking and says when it has to stop.

    Args:
        options: The limits.
    """

    def __init__(self, options: Options):
        self._options = options
        self._begun = time.monotonic()
        self._started = 0
        self._usage = Usage()

    def start_call(self) -> str:
        """Reserve one attempt; the name of the limit that forbids it, or an empty string."""
        reason = self.exhausted()
        if not reason:
            self._started += 1
        return reason

    def exhausted(self) -> str:
        """The limit that has been reached, or an empty string."""
        limits, spent = self._options, self._usage
        if limits.max_calls is not None and self._started >= limits.max_calls:
            return f"max_calls={limits.max_calls} was reached"
        tokens = spent.prompt_tokens + spent.completion_tokens
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            return f"max_tokens={limits.max_tokens} was reached"
        if limits.max_cost is not None and (spent.cost or 0.0) >= limits.max_cost:
            return f"max_cost={limits.max_cost} was reached"
        left = self.seconds_left()
        return f"deadline={limits.deadline}s was reached" if left is not None and left <= 0 else ""

    def seconds_left(self) -> float | None:
        """Seconds until the deadline; ``None`` without one."""
        if self._options.deadline is None:
            return None
        return self._options.deadline - (time.monotonic() - self._begun)

    def add(self, usage: Usage) -> None:
        """Count what a call has cost."""
        self._usage = self._usage + usage

    def add_round(self) -> None:
        """Count one more step that had to wait for the one before."""
        self._usage = replace(self._usage, rounds=self._usage.rounds + 1)

    def total(self) -> Usage:
        """Everything so far, with the time it took."""
        return replace(self._usage, seconds=time.monotonic() - self._begun)
