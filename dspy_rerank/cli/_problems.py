"""What is wrong with labels, said on standard error before anything is spent on them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ..datasets import Dataset, Problem
from ..errors import DataError
from ..unlabelled import measurable, unlabelled, words
from ._show import complain

EACH = 3
"""Problems of one kind that are said."""


def measured_part(data: Dataset, splits: Iterable[str] = ()) -> Dataset:
    """The queries that have labels, with a line about the others.

    Args:
        data: Labelled queries.
        splits: Those in which some have to be left.

    Raises:
        DataError: None is left, or none of a split.
    """
    kept, left = measurable(data), unlabelled(data)
    if left:
        complain(f"warning: {words(left, data)}")
    lost = [name for name in splits if name in data.splits and name not in kept.splits]
    if lost:
        raise DataError(f"{data.name}: no query of the split {lost[0]!r} has a label")
    return kept


def warned(problems: Sequence[Problem]) -> list[str]:
    """The problems of a data set in words; the first few of each kind are said."""
    told: Counter[str] = Counter()
    for problem in problems:
        told[problem.kind] += 1
        if told[problem.kind] <= EACH and problem.kind != "unlabelled":  # which is said with ids
            complain(f"warning: {problem}")
    for kind, many in told.items():
        if many > EACH:
            complain(f"warning: {kind}: {many - EACH} more; dspy-rerank check lists them")
    return [str(problem) for problem in problems]
