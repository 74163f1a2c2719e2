"""Measures rerankers on labelled queries, beside the incoming order, with paired intervals."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import dspy

from .defaults import resolve_lm
from .errors import InputError
from .leaks import Seen, seen
from .metrics import parse_metric, score_order
from .ranking import Ranking
from .shown import dollars
from .sorters import Reranker
from .stats import Interval, bootstrap_mean, paired_interval
from .types import Usage

INCOMING = "incoming order"

Progress = Callable[[str, int, int], None]
"""Called as ``progress(row, done, total)`` after each query."""


@dataclass(frozen=True)
class Row:
    """One reranker on all queries.

    Attributes:
        name: Of the reranker, or of the baseline.
        values: Per metric, one value a query, in the data set's order.
        rankings: One a query; empty for the baseline.
        usage: Summed over the queries; seconds are those that all of them took together.
        seen: How many of the queries the program was compiled on, so far as its card says.
    """

    name: str
    values: Mapping[str, tuple[float, ...]]
    rankings: tuple[Ranking, ...] = ()
    usage: Usage = field(default_factory=Usage)
    seen: Seen = field(default_factory=Seen)

    def mean(self, metric: str, *, seed: int = 0) -> Interval:
        """Mean over the queries with its bootstrap interval."""
        return bootstrap_mean(self.values[metric], seed=seed)

    @property
    def degraded(self) -> int:
        """How many rankings are degraded."""
        return sum(ranking.degraded for ranking in self.rankings)

    @property
    def unknowns(self) -> int:
        """How many judgments could not be read."""
        return sum(ranking.unknowns for ranking in self.rankings)


@dataclass(frozen=True)
class Evaluation:
    """Rows measured on the same queries; the first is the baseline.

    Attributes:
        dataset: Its name.
        queries: How many.
        metrics: As asked for.
        rows: Baseline first.
        seed: Of the bootstrap.
    """

    dataset: str
    queries: int
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    seed: int = 0

    def __getitem__(self, name: str) -> Row:
        """The row of that name."""
        return next(row for row in self.rows if row.name == name)

    def gain(self, metric: str, row: str, over: str = INCOMING) -> Interval:
        """Paired difference between two rows; a gain inside the interval is not a gain."""
        return paired_interval(self[row].values[metric], self[over].values[metric], seed=self.seed)

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON values, per query too."""
        return {
            "dataset": self.dataset,
            "queries": self.queries,
            "metrics": list(self.metrics),
            "rows": [self._row(row) for row in self.rows],
        }

    def _row(self, row: Row) -> dict[str, Any]:
        base = self.rows[0]
        return {
            "name": row.name,
            "mean": {m: finite(row.mean(m, seed=self.seed)) for m in self.metrics},
            "gain": {
                m: None if row is base else finite(self.gain(m, row.name, base.name))
                for m in self.metrics
            },
            "values": {m: list(row.values[m]) for m in self.metrics},
            "usage": asdict(row.usage),
            "unknowns": row.unknowns,
            "degraded": row.degraded,
            "seen": asdict(row.seen),
        }

    def __str__(self) -> str:
        head = (
            f"{self.dataset}: {self.queries} queries; gain over {self.rows[0].name}, "
            "95% interval (* clear of zero, p < 0.05)"
        )
        lines = [line.rstrip() for line in table(self.cells())]
        return "\n".join([head, *lines, *self._unpriced()])

    def cells(self) -> list[list[str]]:
        """The table as text, header first; dollars are ``?`` where a price is unknown."""
        header = ["", *(m for metric in self.metrics for m in (metric, "gain"))]
        return [[*header, *_USED], *(self._cells(row) for row in self.rows)]

    def _unpriced(self) -> list[str]:
        """Why the dollars of some rows are unknown, one line a reason."""
        unpriced = [row.usage for row in self.rows if row.usage.cost is None and _asked(row.usage)]
        reasons = dict.fromkeys(used.cost_reason or "no call was answered" for used in unpriced)
        return [f"? = dollars unknown: {reason}" for reason in reasons]

    def _cells(self, row: Row) -> list[str]:
        cells = [row.name]
        for metric in self.metrics:
            cells.append(f"{row.mean(metric).mean:.4f}")
            base = self.rows[0]
            cells.append("" if row is base else _gain(self.gain(metric, row.name, base.name)))
        return cells + (_used(row, self.queries) if row.rankings else [""] * len(_USED))


_USED = ("calls/query", "cached", "tokens/query", "$/query", "s/query", "unknown", "degraded")


def _used(row: Row, queries: int) -> list[str]:
    """What a row has cost, under the headings of `_USED`."""
    count, used = max(1, queries), row.usage
    return [
        f"{used.calls / count:.1f}",
        f"{100 * used.cached_calls / max(1, used.calls):.0f}%",
        f"{(used.prompt_tokens + used.completion_tokens) / count:.0f}",
        _dollars(used, count),
        f"{used.seconds / count:.2f}",
        str(row.unknowns),
        str(row.degraded),
    ]


def _dollars(used: Usage, queries: int) -> str:
    """Dollars a query."""
    if used.cost is None:
        return "?" if _asked(used) else "0"
    return dollars(used.cost / queries)


def _asked(used: Usage) -> int:
    return used.calls + used.failed_calls


def finite(interval: Interval) -> dict[str, Any]:
    """An interval as JSON values: what one query cannot tell is null, not infinite."""
    bad = (math.inf, -math.inf)
    values = asdict(interval).items()
    return {n: None if v in bad or v != v else v for n, v in values}


def _gain(interval: Interval) -> str:
    star = "*" if interval.significant else " "
    return f"{interval.mean:+.4f} [{interval.lo:+.4f}, {interval.hi:+.4f}]{star}"


def table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Cells as aligned lines."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in cells]


def evaluate(
    reranker: Reranker | Mapping[str, Reranker],
    dataset: Any,
    metrics: Sequence[str] = ("nDCG@10",),
    *,
    lm: Any = None,
    queries_at_once: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure one or several rerankers on labelled queries.

    The first row is always the incoming order. Documents nobody has judged count as not relevant.
    A `UserWarning` says, before anything is asked, how many of the queries a program was compiled
    on, which may flatter its figures; programs that say nothing of that are not warned of.

    Args:
        reranker: One, or several by name.
        dataset: A data set, the name or path of one, or examples with ``query``, ``documents``
            and ``relevance``.
        metrics: Such as ``nDCG@10``, ``MRR``, ``Recall@5``, ``MAP``.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        queries_at_once: Rankings under way at the same time; they share one limit on questions.
        seed: Of the bootstrap.
        progress: Called after each query.

    Raises:
        InputError: A metric is unknown or there is nothing to measure on.
    """
    named = dict(reranker) if isinstance(reranker, Mapping) else {"reranker": reranker}
    for metric in metrics:
        parse_metric(metric)
    data = as_dataset(dataset)
    if not len(data):
        raise InputError("the data set has no queries; expected at least one")
    known = _warned(named, data)
    rows = [baseline(data, metrics)]
    with dspy.context(lm=_model_for(named.values(), lm)):
        for name, module in named.items():
            begun = time.monotonic()
            rankings = rank_all(module, data, queries_at_once, _named(progress, name))
            row = scored(name, rankings, data, metrics)
            usage = replace(row.usage, seconds=time.monotonic() - begun)
            rows.append(replace(row, usage=usage, seen=known[name]))
    return Evaluation(data.name, len(data), tuple(metrics), tuple(rows), seed)


def _warned(named: Mapping[str, Reranker], data: Any) -> dict[str, Seen]:
    """What each reranker knows of the data, with a warning where it knows any."""
    known = {name: seen(module, data) for name, module in named.items()}
    for name, found in known.items():
        if found.queries:
            warnings.warn(found.words(name, len(data)), stacklevel=3)
    return known


def _named(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(name, done, total)


def _model_for(rerankers: Iterable[Reranker], lm: Any) -> Any:
    """The LM to configure; none is needed where functions judge or programs bring their own."""
    predictors = [p for reranker in rerankers for p in reranker.predictors()]
    if lm is None and all(predictor.lm is not None for predictor in predictors):
        return dspy.settings.lm
    return resolve_lm(lm)


def as_dataset(source: Any) -> Any:
    """A data set from a data set, a name or path, or labelled examples."""
    from .datasets import Dataset, from_examples, load

    if isinstance(source, Dataset):
        return source
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        return load(source)
    return from_examples(source)


def baseline(data: Any, metrics: Sequence[str]) -> Row:
    """The order in which the documents came."""
    values = {
        m: tuple(score_order(m, q.relevance, range(len(q.documents)), q.ideal) for q in data)
        for m in metrics
    }
    return Row(INCOMING, values)


def scored(name: str, rankings: Sequence[Ranking], data: Any, metrics: Sequence[str]) -> Row:
    """Rankings measured against the labels."""
    values = {
        m: tuple(
            score_order(m, query.relevance, ranking.indices, query.ideal)
            for query, ranking in zip(data, rankings, strict=True)
        )
        for m in metrics
    }
    usage = sum((ranking.usage for ranking in rankings), Usage())
    return Row(name, values, tuple(rankings), usage)


def rank_all(
    reranker: Reranker,
    data: Any,
    queries_at_once: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> list[Ranking]:
    """Rankings of all queries, several at a time under one limit on questions in flight."""
    calls = [{**q.inputs, "query": q.text, "documents": q.documents} for q in data]
    found = reranker.rank_many(calls, queries_at_once=queries_at_once, progress=progress)
    return [prediction.ranking for prediction in found]
