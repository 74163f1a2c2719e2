"""What each sort reaches with an imperfect judge: nDCG@10 against calls, rounds and reads.

    python benchmarks/sorting.py [--seeds 20] [--first-seed 1000] [--judges fresh,repeating]

The simulation of the field: TREC DL 2019, 43 queries, BM25's first 100 with full labels. The
judge sees each label plus a tiny fixed jitter and errs in one of three ways:

- fresh: Gaussian noise, drawn anew for every call and passage;
- repeating: Gaussian noise, drawn once for every query and passage, so that asking again does
  not help;
- position: what is shown first is favoured (by half a grade, falling to minus half a grade for
  the last), on top of fresh noise of 0.5.

The data are read from ``$DSPY_RERANK_BENCH_DATA/dl19`` or ``../shared/data/dl19``. Standard errors
are over seeds, the queries being given. Settings were chosen on seeds below 1000.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dspy_rerank.datasets import load
from dspy_rerank.prior import first_stage
from dspy_rerank.sorters import plans
from dspy_rerank.types import Group, Judgment, Plan

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DSPY_RERANK_BENCH_DATA", ROOT.parent / "shared" / "data"))
TOP_K = 10

Labels = NDArray[np.float64]
See = Callable[[NDArray[np.intp]], Labels]
"""What a judge sees in each member of a group."""
Sorter = Callable[[int, list[float]], Plan]
"""A plan over n candidates with the first stage's z-scored evidence."""


class Task(NamedTuple):
    """One query: labels in the incoming order, the ideal gain, the first stage's evidence."""

    labels: Labels
    ideal: float
    evidence: list[float]


def tasks(depth: int = 100) -> list[Task]:
    """The labelled queries, each with its first ``depth`` candidates."""
    return list(_tasks(depth))


def _tasks(depth: int) -> Iterator[Task]:
    for query in load(DATA / "dl19"):
        cut = query.cut(depth)
        labels = np.array([grade or 0.0 for grade in cut.relevance])
        ideal = gain(sorted((*labels, *cut.ideal), reverse=True))
        yield Task(labels, ideal, first_stage(cut.documents))


def gain(grades: Sequence[float]) -> float:
    """Discounted gain of the first ten."""
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades[:TOP_K]))


# Judges: what is seen of a group, and how that becomes an answer.


def fresh(labels: Labels, noise: float, rng: np.random.Generator) -> See:
    """Noise drawn anew for every call and passage."""
    return lambda group: labels[group] + noise * rng.normal(size=len(group))


def repeating(labels: Labels, noise: float, rng: np.random.Generator) -> See:
    """Noise drawn once for every passage."""
    biased = labels + noise * rng.normal(size=len(labels))
    return lambda group: biased[group]


def position(labels: Labels, favour: float, rng: np.random.Generator) -> See:
    """What is shown first is favoured, on top of fresh noise of 0.5."""
    seen = fresh(labels, 0.5, rng)
    return lambda group: (
        seen(group) + favour * (0.5 - np.linspace(0, 1, max(2, len(group))))[: len(group)]
    )


JUDGES: dict[str, tuple[Callable[..., See], tuple[float, ...]]] = {
    "fresh": (fresh, (0.0, 0.5, 1.0)),
    "repeating": (repeating, (0.5, 1.0)),
    "position": (position, (1.0, 2.0)),
}


def answering(kind: str, see: See) -> Callable[[Group], Judgment]:
    """A judge of a kind that answers by what it sees."""

    def answer(group: Group) -> Judgment:
        seen = see(np.array(group))
        if kind == "pointwise":
            return Judgment("pointwise", group, "ok", score=float(seen[0]))
        order = tuple(group[place] for place in np.argsort(-seen, kind="stable"))
        if kind == "listwise":
            return Judgment("listwise", group, "ok", order=order)
        return Judgment("setwise", group, "ok", best=order[0])

    return answer


class Cell(NamedTuple):
    """nDCG@10 in points, its standard error over seeds, and the mean cost of a ranking."""

    ndcg: float
    error: float
    questions: float
    rounds: float
    reads: float


def measure(
    sorter: Sorter, kind: str, judge: str, noise: float, data: Sequence[Task], seeds: Sequence[int]
) -> Cell:
    """One sorter under one judge, averaged over queries and seeds."""
    runs = [[_run(sorter, kind, judge, noise, task, i, seed) for i, task in enumerate(data)]
            for seed in seeds]  # fmt: skip
    means = np.array(runs).mean(axis=1)
    error = float(means[:, 0].std(ddof=1) / math.sqrt(len(seeds))) if len(seeds) > 1 else 0.0
    ndcg, *costs = means.mean(axis=0).tolist()
    return Cell(ndcg, error, *costs)


def _run(
    sorter: Sorter, kind: str, judge: str, noise: float, task: Task, number: int, seed: int
) -> tuple[float, ...]:
    jitter = np.random.default_rng(number).uniform(0, 1e-3, len(task.labels))
    see = JUDGES[judge][0](task.labels + jitter, noise, np.random.default_rng([seed, number]))
    run = plans.drive(sorter(len(task.labels), task.evidence), answering(kind, see))
    found = gain([task.labels[p] for p in run.outcome.order])
    return 100 * found / task.ideal, run.questions, run.rounds, run.reads
