"""How many queries a DSPy optimizer can work on, end to end, within a number of rankings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from dspy.teleprompt.teleprompt import Teleprompter

from ..sorters import Reranker
from ..sorters.estimates import bounds

PASSES = 8
"""Rankings of each query, for optimizers of which nothing better is known."""
MIPRO = {"light": 6, "medium": 12, "heavy": 18}
"""Candidates that MIPROv2 draws under each name of a budget."""
GEPA_SHARE = 0.85
"""Of the rankings that there are calls for: GEPA ends its last round, and writes, beyond it."""
TRIES = 1.5
"""Training queries that are ranked for one demonstration, about."""


class Sizes(NamedTuple):
    """Numbers of training and validation queries."""

    train: int
    val: int


def calls_a_ranking(student: Reranker, queries: Sequence[Any], pilot: Any, took: int) -> float:
    """Judge calls that ranking one of these queries takes on average; at least 1.

    Args:
        student: What ranks.
        queries: With their documents.
        pilot: A query that was ranked.
        took: Calls that it took. A query with more documents takes more of them in proportion to
            what it takes at most.
    """
    sizes = [len(query.documents) for query in queries]
    most = {n: bounds(student.estimate(n).calls)[1] for n in {*sizes, len(pilot.documents)}}
    share = took / max(1, most[len(pilot.documents)])
    return max(1.0, share * fmean(most[size] for size in sizes))


def most_calls(student: Reranker, queries: Iterable[Any]) -> int:
    """Judge calls that ranking all of these queries takes at most, asking again aside."""
    told = (
        student.estimate(len(query.documents), query=query.text, documents=query.documents)
        for query in queries
    )
    return int(sum(bounds(each.calls)[1] for each in told))


def fitting(
    optimizer: Teleprompter, arguments: Mapping[str, Any], there: Sizes, most: float
) -> Sizes:
    """The largest share of both sets on which the optimizer comes to its end, about.

    Args:
        optimizer: As it will be run.
        arguments: Of its ``compile``.
        there: All labelled queries.
        most: Rankings.

    Returns:
        At least one query of each set, even where that is too much.
    """
    for val in range(there.val, 0, -1):
        sizes = Sizes(max(1, round(there.train * val / there.val)), val)
        if rankings(optimizer, arguments, sizes) <= most:
            return sizes
    return Sizes(1, 1)


def rankings(optimizer: Any, arguments: Mapping[str, Any], sizes: Sizes) -> float:
    """How many rankings an optimizer makes of so many queries, about."""
    kind = type(optimizer).__name__
    if kind == "LabeledFewShot":
        return 0
    if kind == "BootstrapFewShot":
        return _bootstrap(optimizer.max_bootstrapped_demos, sizes)
    if kind == "BootstrapFewShotWithRandomSearch":
        drawn = optimizer.num_candidate_sets
        bootstrapped = _bootstrap((1 + optimizer.max_num_samples) / 2, sizes)
        return (drawn + 1) * bootstrapped + (drawn + 3) * sizes.val
    if kind == "MIPROv2":
        drawn = optimizer.num_candidates or MIPRO[optimizer.auto]
        trials = arguments.get("num_trials") or max(4 * math.log2(drawn), 1.5 * drawn)
        bootstrapped = _bootstrap(optimizer.max_bootstrapped_demos, sizes)
        return (drawn - 2) * bootstrapped + (trials + 2) * sizes.val
    if kind == "SIMBA":
        return _step(optimizer, sizes) + _last(optimizer, sizes)
    if kind == "COPRO":
        return optimizer.breadth * optimizer.depth * sizes.train
    return PASSES * max(sizes)


def limit(optimizer: Any, most: float, sizes: Sizes) -> None:
    """Give an optimizer the budget and the batches that there is room for."""
    if hasattr(optimizer, "max_metric_calls"):
        optimizer.auto = optimizer.max_full_evals = None
        optimizer.max_metric_calls = max(1, int(most * GEPA_SHARE))
    if type(optimizer).__name__ == "SIMBA":
        optimizer.bsize = min(optimizer.bsize, sizes.train)
        steps = (most - _last(optimizer, sizes)) / _step(optimizer, sizes)
        optimizer.max_steps = max(1, min(optimizer.max_steps, int(steps)))


def _step(simba: Any, sizes: Sizes) -> int:
    """Rankings of one step of SIMBA: a batch under all candidates, before and after."""
    return (2 * simba.num_candidates + 1) * min(simba.bsize, sizes.train)


def _last(simba: Any, sizes: Sizes) -> int:
    """Rankings with which SIMBA ends: all queries under all candidates."""
    return (simba.num_candidates + 1) * sizes.train


def _bootstrap(demos: float, sizes: Sizes) -> float:
    """Training queries that are ranked until there are so many demonstrations, about."""
    return min(sizes.train, TRIES * demos)
