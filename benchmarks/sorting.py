"""What each sort reaches with an imperfect judge: nDCG@10 against calls, rounds and reads.

    python benchmarks/sorting.py [--seeds 20] [--first-seed 1000] [--judges fresh,repeating,position]

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

import argparse
import math
import os
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dspy_rerank.datasets import load
from dspy_rerank.prior import first_stage
from dspy_rerank.sorters import plans
from dspy_rerank.types import Group, Judgment, Plan

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DSPY_RERANK_BENCH_DATA", ROOT.parent / "shared" / "data"))
TOP_K = 10

Answer = Callable[[Group], Judgment]
Sorter = Callable[[int, list[float]], Plan]
"""A plan over n candidates with the first stage's z-scored evidence."""


class Task(NamedTuple):
    """One query: labels in the incoming order, the ideal gain, the first stage's evidence."""

    labels: np.ndarray
    ideal: float
    evidence: list[float]


def tasks(depth: int = 100) -> list[Task]:
    """The labelled queries, each with its first ``depth`` candidates."""
    return list(_tasks(depth))


def _tasks(depth: int) -> Iterator[Task]:
    for query in load(DATA / "dl19"):
        count = min(depth, len(query.documents))
        labels = [float(query.relevance.get(i, 0)) for i in range(count)]
        yield Task(np.array(labels), gain(query.ideal), first_stage(query.documents[:count]))


def gain(grades) -> float:
    """Discounted gain of the first ten."""
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(list(grades)[:TOP_K]))


