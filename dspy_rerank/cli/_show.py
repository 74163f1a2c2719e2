"""What commands print: tables for people, JSON for programs, progress on a terminal only."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..evaluation import Evaluation
from ..ranking import Ranking


def say(text: str = "") -> None:
    """A line for people, on standard output."""
    sys.stdout.write(text + "\n")


def emit(value: Any) -> None:
    """A value for programs: one line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def console() -> Console:
    """Standard output; wide enough for a table when it is not a terminal."""
    wide = None if sys.stdout.isatty() else 150
    return Console(file=sys.stdout, width=wide, highlight=False)


def show_table(rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Cells as a table, header first."""
    table = Table(title=title or None, title_justify="left", header_style="bold", box=None)
    for column, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if column == 0 else "right", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*row)
    console().print(table)


def show_evaluation(evaluation: Evaluation) -> None:
    """Means, paired gains and usage."""
    title = (
        f"{evaluation.dataset}: {evaluation.queries} queries; gain over "
        f"{evaluation.rows[0].name}, 95% interval (* excludes zero)"
    )
    show_table(evaluation.cells(), title)


def show_ranking(ranking: Ranking) -> None:
    """One line a document, then the bill."""
    table = Table(header_style="bold", box=None, expand=True)
    for name in ("rank", "was", "score"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name) + 2)
    table.add_column("document", overflow="ellipsis", no_wrap=True, ratio=1)
    for item in ranking:
        score = "-" if item.score is None else f"{item.score:.3f}"
        label = f"[{item.id}] " if item.id else ""
        text = label + " ".join(item.text.split())
        table.add_row(str(item.rank), str(item.index + 1), score, _plain(text))
    console().print(table)
    say(ranking.summary())


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function ``(what, done, total)`` that draws bars on a terminal's stderr."""
    screen = Console(stderr=True)
    shown = screen.is_terminal and not quiet
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn())  # fmt: skip # noqa: E501
    with Progress(*columns, console=screen, disable=not shown, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield update
