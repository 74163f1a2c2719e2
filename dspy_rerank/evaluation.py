"""Measures rerankers on labelled queries, beside the incoming order, with paired intervals."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import dspy

from .defaults import resolve_lm
from .errors import InputError
from .evaluation_table import cells, finite, text
from .leaks import Seen, seen
from .metrics import parse_metric, score_order
from .ranking import Ranking
from .sorters import Reranker
from .stats import Interval, bootstrap_mean, paired_interval
from .types import Usage
from .unlabelled import measurable, unlabelled, words

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
        queries: How many were measured.
        metrics: As asked for.
        rows: Baseline first.
        seed: Of the bootstrap.
        unlabelled: Ids of the queries that were left out, because nobody has judged them.
    """

    dataset: str
    queries: int
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    seed: int = 0
    unlabelled: tuple[str, ...] = ()

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
            "unlabelled": list(self.unlabelled),
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
        return text(self)

    def cells(self) -> list[list[str]]:
        """The table as text, header first; dollars are ``?`` where a price is unknown."""
        return cells(self)


def evaluate(
    reranker: Reranker | Mapping[str, Reranker],
    dataset: Any,
    metrics: str | Sequence[str] = ("nDCG@10",),
    *,
    lm: Any = None,
    queries_at_once: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure one or several rerankers on labelled queries.

    The first row is always the incoming order. Documents nobody has judged count as not relevant.
    Queries of which nobody has judged any document are neither ranked nor in any mean, and a
    `UserWarning` says which they are; one whose labels are all 0 counts, as 0. nDCG has linear
    gain, as in trec_eval. Another `UserWarning` says, before anything is asked, how many of the
    queries a program was compiled on, which may flatter its figures; programs that say nothing of
    that are not warned of.

    Args:
        reranker: One, or several by name.
        dataset: A data set, the name or path of one, or examples with ``query``, ``documents``
            and ``relevance``.
        metrics: Such as ``nDCG@10``, ``MRR``, ``Recall@5``, ``MAP``; one, or several.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        queries_at_once: Rankings under way at the same time; they share one limit on questions.
        seed: Of the bootstrap.
        progress: Called after each query.

    Raises:
        InputError: A metric is unknown or there is nothing to measure on.
        DataError: No query has a label.
    """
    named = dict(reranker) if isinstance(reranker, Mapping) else {"reranker": reranker}
    metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    for metric in metrics:
        parse_metric(metric)
    data, left = _measurable(as_dataset(dataset))
    known = _warned(named, data)
    rows = [baseline(data, metrics)]
    with dspy.context(lm=_model_for(named.values(), lm)):
        for name, module in named.items():
            begun = time.monotonic()
            rankings = rank_all(module, data, queries_at_once, _named(progress, name))
            row = scored(name, rankings, data, metrics)
            usage = replace(row.usage, seconds=time.monotonic() - begun)
            rows.append(replace(row, usage=usage, seen=known[name]))
    return Evaluation(data.name, len(data), metrics, tuple(rows), seed, left)


def _measurable(data: Any) -> tuple[Any, tuple[str, ...]]:
    """The queries to measure on, and the ids of those that are left out, with a warning."""
    if not len(data):
        raise InputError("the data set has no queries; expected at least one")
    kept, left = measurable(data), unlabelled(data)
    if left:
        warnings.warn(words(left, data), stacklevel=3)
    return kept, left


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
