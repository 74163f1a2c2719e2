"""How a long run goes: rate, calls, cost and what is left, on a terminal's standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ..shown import count, dollars
from ..streaming import Summary


@contextmanager
def run_progress(
    total: Callable[[], int | None], quiet: bool = False
) -> Iterator[Callable[[Summary], None] | None]:
    """Gives a function that draws a summary; ``None`` where nobody would see it.

    Args:
        total: How many queries there are, asked only if it is shown.
        quiet: Draw nothing.
    """
    screen = Console(stderr=True)
    if quiet or not screen.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"))  # fmt: skip # noqa: E501
    with Progress(*columns, console=screen, transient=True) as bars:
        task = bars.add_task("ranking", total=total(), told="")
        begun = time.monotonic()

        def report(summary: Summary) -> None:
            said = told(summary, time.monotonic() - begun, bars.tasks[0].total)
            bars.update(task, completed=summary.done, told=said)

        yield report


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
