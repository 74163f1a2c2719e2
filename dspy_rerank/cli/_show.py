"""What commands print: tables for people, JSON for programs."""

import json
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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
    """Without a line of the log for each degraded ranking, or for each answer that was cut short.

    The command says once why rankings are degraded, and how many answers could not be read.
    """
    logger, model = map(logging.getLogger, ("dspy_rerank.sorters.base", "dspy.clients.lm"))
    before = logger.level
    logger.setLevel(logging.ERROR)
    model.addFilter(_not_cut)
    try:
        yield
    finally:
        logger.setLevel(before)
        model.removeFilter(_not_cut)


def _not_cut(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("LM response was truncated")


def show_ranking(ranking: Ranking) -> None:
    """One line a document, as wide as the terminal, then the bill."""
    say(ranking.table(shutil.get_terminal_size((120, 24)).columns))


def complain(text: str) -> None:
    """A line on standard error, where it disturbs no pipe."""
    sys.stderr.write(f"dspy-rerank: {' '.join(text.split())}\n")


def note(text: str) -> None:
    """A line for people on standard error, beside results."""
    sys.stderr.write(text + "\n")
