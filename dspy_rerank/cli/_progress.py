"""How a long run goes: bars on a terminal's standard error, a line a minute in a log."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..shown import count, dollars
from ..streaming import Summary
from ._show import note as written

EVERY = 60.0
"""Seconds between two lines of a log."""


class Lines:
    """Says on standard error how far a run is, about once a minute, where nobody sees bars.

    Args:
        now: Seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self.now = now
        self._begun = now()
        self._next: dict[str, float] = {}

    def due(self, what: str) -> bool:
        """Whether it is time for a line about this."""
        return self.now() >= self._next.get(what, self._begun + EVERY)

    def __call__(self, what: str, done: int, total: float | None, note: str = "") -> None:
        """Say it, if it is time; without the numbers where a total is not known."""
        if not self.due(what):
            return
        self._next[what] = self.now() + EVERY
        with suppress(OSError, ValueError, AttributeError):  # whoever read it may be gone
            written(f"{what}{note}" + ("" if total is None else f": {done} of {total:.0f}"))


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Gives a function ``(what, done, total, note="")`` that says how far a run is.

    Args:
        quiet: Say nothing.
    """
    screen = Console(stderr=True)
    if quiet:
        yield lambda *_, **__: None
    elif not screen.is_terminal:
        yield Lines()
    else:
        with Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeRemainingColumn(), console=screen, transient=True,
        ) as bars:  # fmt: skip
            yield _Bars(bars)


class _Bars:
    """A bar for each thing that goes on."""

    def __init__(self, bars: Progress):
        self.bars = bars
        self._tasks: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, what: str, done: int, total: float | None, note: str = "") -> None:
        """Draw it; where a total is not known, it only pulses."""
        with self._lock:  # optimizers call from many threads
            if what not in self._tasks:
                self._tasks[what] = self.bars.add_task(what, total=total)
        self.bars.update(
            self._tasks[what], completed=done, total=total, description=f"{what}{note}"
        )


@contextmanager
def run_progress(
    total: Callable[[], int | None], quiet: bool = False
) -> Iterator[Callable[[Summary], None] | None]:
    """Gives a function that shows a summary; ``None`` where nobody wants it.

    Args:
        total: How many queries there are, asked only if it is shown.
        quiet: Show nothing.
    """
    screen = Console(stderr=True)
    if quiet:
        yield None
        return
    if not screen.is_terminal:
        yield _logged(total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"))  # fmt: skip # noqa: E501
    with Progress(*columns, console=screen, transient=True) as bars:
        task = bars.add_task("ranking", total=total(), told="")
        begun = time.monotonic()

        def report(summary: Summary) -> None:
            said = told(summary, time.monotonic() - begun, bars.tasks[0].total)
            bars.update(task, completed=summary.done, told=said)

        yield report


def _logged(total: Callable[[], int | None]) -> Callable[[Summary], None]:
    """Lines of a log; how many queries there are is asked with the first."""
    lines, begun, queries = Lines(), time.monotonic(), cache(total)

    def report(summary: Summary) -> None:
        if not lines.due("ranking"):
            return
        said = told(summary, time.monotonic() - begun, queries())
        lines("ranking", summary.done, queries(), f" ({said})")

    return report


def told(summary: Summary, seconds: float, total: float | None) -> str:
    """Rate, calls, cost, failures and the time that is left at this rate."""
    fresh = summary.done - summary.skipped
    rate = fresh / seconds if seconds > 0 else 0.0
    cost = summary.usage.cost
    bad = summary.failed + summary.degraded
    left = (total - summary.done) / rate if total is not None and rate > 0 else None
    parts: list[Any] = [
        f"{rate:.1f}/s" if rate >= 1 or not rate else f"{60 * rate:.1f}/min",
        count(summary.usage.calls, "call"),
        None if cost is None else f"${dollars(cost)}",
        f"{bad} not ranked" if bad else None,
        f"{summary.unknowns} unknown" if summary.unknowns else None,
        None if left is None else f"{clock(max(0.0, left))} left",
    ]
    return " · ".join(part for part in parts if part)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
