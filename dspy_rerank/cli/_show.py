"""What commands print: tables for people, JSON for programs, progress on a terminal only."""

import json
import logging
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..evaluation import Evaluation, Row
from ..evaluation_table import table
from ..ranking import Ranking


def say(text: str = "") -> None:
    """A line for people, on standard output."""
    sys.stdout.write(text + "\n")


def emit(value: Any) -> None:
    """A value for programs: one line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def show_table(rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Cells as aligned columns, header first; never cut, since half a number is none."""
    for line in [title, *table(rows)] if title else table(rows):
        say(line.rstrip())


def show_evaluation(evaluation: Evaluation) -> None:
    """Means, paired gains and usage, and why rankings are degraded, if some are."""
    say(str(evaluation))
    complain_of_degraded(evaluation)


def complain_of_degraded(evaluation: Evaluation) -> None:
    """Say each reason once, and whether the model failed on all queries of a reranker."""
    for row in evaluation.rows:
        many = "all" if row.degraded == len(row.rankings) else f"{row.degraded} of"
        reasons = dict.fromkeys(r for ranking in row.rankings for r in ranking.reasons)
        for reason in list(reasons)[:3]:
            complain(f"{row.name}: {many} {len(row.rankings)} rankings are degraded: {reason}")
        if model_failed(row):
            complain(f"{row.name}: the model failed; its figures are those of the incoming order")


def model_failed(row: Row) -> bool:
    """Whether the model answered no question of any query."""
    return row.degraded > 0 and not any(ranking.judgments for ranking in row.rankings)


@contextmanager
def unlogged() -> Iterator[None]:
    """Without a line of the log for each degraded ranking, where the command says why once."""
    logger = logging.getLogger("dspy_rerank.sorters.base")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def show_ranking(ranking: Ranking) -> None:
    """One line a document, as wide as the terminal, then the bill."""
    say(ranking.table(shutil.get_terminal_size((120, 24)).columns))


def complain(text: str) -> None:
    """A line on standard error, where it disturbs no pipe."""
    sys.stderr.write(f"dspy-rerank: {' '.join(text.split())}\n")


def note(text: str) -> None:
    """A line for people on standard error, beside results."""
    sys.stderr.write(text + "\n")


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Gives a function ``(what, done, total, note="")`` that draws bars on a terminal's stderr."""
    screen = Console(stderr=True)
    shown = screen.is_terminal and not quiet
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn())  # fmt: skip # noqa: E501
    with Progress(*columns, console=screen, disable=not shown, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int, note: str = "") -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total, description=f"{what}{note}")

        yield update
