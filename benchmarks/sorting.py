"""What each sort reaches with an imperfect judge: nDCG@10 against calls, rounds and reads.

    python benchmarks/sorting.py --seeds 20 --svg docs/frontier.svg
    python benchmarks/sorting.py --kinds listwise --judges fresh --seeds 5
    python benchmarks/sorting.py --constants    # the table of choose_sorter, seeds 1000 to 1003

The simulation of the field: TREC DL 2019, 43 queries, BM25's first 100 with full labels. The
judge sees each label plus a tiny fixed jitter and errs in one of four ways:

- fresh: Gaussian noise, drawn anew for every call and passage;
- repeating: Gaussian noise, drawn once for every query and passage, so that asking again does
  not help;
- mixed: half of the noise's variance repeating, half fresh;
- position: what is shown first is favoured (by half the grades given, falling to minus half for
  the last), on top of fresh noise of 0.5.

With ``--shuffled`` the candidates come in a random order, drawn anew for every seed.

The data are read from ``$DSPY_RERANK_BENCH_DATA/dl19`` or ``../shared/data/dl19``. Standard errors
are over seeds, the queries being given. Settings were chosen on seeds below 1000; a seed and the
number of a query give its noise.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _frontier import drawn
from numpy.typing import NDArray

import dspy_rerank as dr
from dspy_rerank.datasets import load
from dspy_rerank.prior import first_stage
from dspy_rerank.sorters import plans
from dspy_rerank.sorters.candidates import CANDIDATES
from dspy_rerank.types import Group, Judgment, Kind

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DSPY_RERANK_BENCH_DATA", ROOT.parent / "shared" / "data"))
TOP_K = 10
CONSTANT_SEEDS = range(1000, 1004)
"""Of the table of ``choose_sorter``; the noiseless column needs the first only."""

Labels = NDArray[np.float64]
See = Callable[[NDArray[np.intp]], Labels]
"""What a judge sees in each member of a group."""


class Task(NamedTuple):
    """One query: labels in the incoming order, the ideal gain, the first stage's evidence."""

    labels: Labels
    ideal: float
    evidence: list[float]


@cache
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


def mixed(labels: Labels, noise: float, rng: np.random.Generator) -> See:
    """Half of the noise's variance is repeating, half is fresh."""
    half = noise / math.sqrt(2)
    return fresh(labels + half * rng.normal(size=len(labels)), half, rng)


def position(labels: Labels, favour: float, rng: np.random.Generator) -> See:
    """What is shown first is favoured, on top of fresh noise of 0.5."""
    seen = fresh(labels, 0.5, rng)
    return lambda group: (
        seen(group) + favour * (0.5 - np.linspace(0, 1, max(2, len(group))))[: len(group)]
    )


JUDGES: dict[str, tuple[Callable[..., See], tuple[float, ...]]] = {
    "fresh": (fresh, (0.0, 0.5, 1.0)),
    "repeating": (repeating, (0.5, 1.0)),
    "mixed": (mixed, (0.5, 1.0)),
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


class Setup(NamedTuple):
    """A judge that errs in one way."""

    judge: str
    noise: float

    def __str__(self) -> str:
        return f"{self.judge} {self.noise:g}"


SETUPS = [Setup(judge, noise) for judge, (_, noises) in JUDGES.items() for noise in noises]


class Job(NamedTuple):
    """One sorter under one judge, averaged over queries and seeds."""

    name: str
    setup: Setup
    seeds: Sequence[int]
    depth: int = 100
    shuffled: bool = False


def measure(job: Job) -> Cell:
    """Do it; without noise and shuffling one seed tells all."""
    still = job.setup == ("fresh", 0.0) and not job.shuffled
    chosen = job.seeds[:1] if still else job.seeds
    reranker, data = dict(sorters(KINDS))[job.name], tasks(job.depth)
    runs = [[_run(reranker, job, task, i, seed) for i, task in enumerate(data)] for seed in chosen]
    means = np.array(runs).mean(axis=1)
    error = float(means[:, 0].std(ddof=1) / math.sqrt(len(chosen))) if len(chosen) > 1 else 0.0
    ndcg, *costs = means.mean(axis=0).tolist()
    return Cell(ndcg, error, *costs)


def _run(reranker: dr.Reranker, job: Job, task: Task, number: int, seed: int) -> tuple[float, ...]:
    count, labels = len(task.labels), task.labels
    if job.shuffled:
        labels = np.random.default_rng([seed, number, 1]).permutation(labels)
    jitter = np.random.default_rng(number).uniform(0, 1e-3, count)
    rng = np.random.default_rng([seed, number])
    see = JUDGES[job.setup.judge][0](labels + jitter, job.setup.noise, rng)
    plan = reranker._plan(count, TOP_K, task.evidence)
    run = plans.drive(plan, answering(reranker.judge.kind, see))
    found = gain([labels[p] for p in run.outcome.order])
    return 100 * found / task.ideal, run.questions, run.rounds, run.reads


def measured(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, Cell]]:
    """Cells in the order of the jobs, as they come."""
    with Pool(processes) as pool:
        yield from zip(jobs, pool.imap(measure, jobs), strict=True)


# Sorters: name, judge kind, module.


def judge_of(kind: Kind) -> dr.FunctionJudge:
    """Stands for a judge; the plan is driven past it."""
    return dr.FunctionJudge(lambda query, passages: None, kind)


KINDS: tuple[Kind, ...] = ("pointwise", "pairwise", "setwise", "listwise")


def sorters(kinds: Sequence[str]) -> list[tuple[str, dr.Reranker]]:
    """Everything that is measured, with the kind of judge in its name."""
    chosen = [
        (f"{candidate.name}, {kind}", candidate.build(judge_of(kind)))
        for candidate in CANDIDATES
        for kind in candidate.kinds
        if kind in kinds
    ]
    if "listwise" not in kinds:
        return chosen
    judge = judge_of("listwise")
    return [
        *chosen,
        ("TopDown(prior=0.2), listwise", dr.TopDown(judge, prior=0.2)),
        ("TopDown(rounds=2, prior=0.2), listwise", dr.TopDown(judge, rounds=2, prior=0.2)),
        ("TopDown(finals=2, prior=0.2), listwise", dr.TopDown(judge, finals=2, prior=0.2)),
    ]


# Reports.


def table(rows: dict[str, dict[Setup, Cell]]) -> Iterator[str]:
    """Markdown: mean cost over the judges, then nDCG@10 and its standard error by judge."""
    setups = list(next(iter(rows.values())))
    heads = ["sorter", "calls", "rounds", "reads", *map(str, setups)]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for name, cells in rows.items():
        costs = np.mean([cell[2:] for cell in cells.values()], axis=0)
        scores = [
            f"{cell.ndcg:.1f}" + (f" ±{cell.error:.1f}" if cell.error else "")
            for cell in cells.values()
        ]
        yield "| " + " | ".join([name, *(f"{cost:.4g}" for cost in costs), *scores]) + " |"


def constants(processes: int) -> Iterator[str]:
    """The table that ``choose_sorter`` reads, as Python."""
    chosen = {f"{c.name}, {kind}" for c in CANDIDATES for kind in c.kinds}
    names = [name for name, _ in sorters(KINDS) if name in chosen]
    setups = [Setup("fresh", noise) for noise in (0.0, 0.5, 1.0)]
    jobs = [
        Job(name, setup, CONSTANT_SEEDS, depth)
        for depth in (20, 50, 100)
        for name in names
        for setup in setups
    ]
    cells = [f"{cell.ndcg:.1f}" for _, cell in measured(jobs, processes)]
    for job, scores in zip(jobs[::3], batched(cells, 3), strict=True):
        code, kind = job.name.rsplit(", ", 1)
        yield f'    ({job.depth}, "{kind}", "{code}"): ({", ".join(scores)}),'


def batched(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Slices of a size."""
    yield from (values[i : i + size] for i in range(0, len(values), size))


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--judges", default="fresh,repeating,mixed,position")
    parser.add_argument("--kinds", default="pointwise,setwise,listwise,pairwise")
    parser.add_argument("--only", default="", help="sorters whose name holds this")
    parser.add_argument("--shuffled", action="store_true", help="an incoming order at random")
    parser.add_argument("--constants", action="store_true", help="the table of choose_sorter")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--svg", type=Path, help="where to draw the frontier")
    given = parser.parse_args()
    if given.constants:
        print(*constants(given.processes), sep="\n")
        return
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    setups = [setup for setup in SETUPS if setup.judge in given.judges.split(",")]
    names = [name for name, _ in sorters(given.kinds.split(",")) if given.only in name]
    jobs = [Job(name, s, seeds, shuffled=given.shuffled) for name in names for s in setups]
    rows: dict[str, dict[Setup, Cell]] = {name: {} for name in names}
    for job, cell in measured(jobs, given.processes):
        rows[job.name][job.setup] = cell
        if len(rows[job.name]) == len(setups):
            print(*list(table({job.name: rows[job.name]}))[2:], flush=True, file=sys.stderr)
    print(*table(rows), sep="\n")
    if given.svg:
        given.svg.write_text(drawn(rows, TOP_K), encoding="utf-8")


if __name__ == "__main__":
    main()
