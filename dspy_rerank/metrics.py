"""Ranking metrics that agree with trec_eval, computed through ir_measures or tested against it.

A ranking is evaluated in exactly the order in which it is given. (trec_eval itself sorts by score
and breaks ties by document id, so ranks are turned into strictly falling scores first.)
"""

import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from .errors import InputError

Grade: TypeAlias = float | None
"""Graded relevance; ``None`` means that nobody has judged, which counts as not relevant."""

Ranked: TypeAlias = str | tuple[str, float]
"""An entry of a ranking: a document id, alone or with a score."""

Scores: TypeAlias = dict[str, dict[str, float]]
"""Values by metric (named as asked for) and query id."""

FAMILIES = {
    "ndcg": "nDCG",
    "rr": "RR",
    "mrr": "RR",
    "r": "R",
    "recall": "R",
    "ap": "AP",
    "map": "AP",
    "p": "P",
    "precision": "P",
    "success": "Success",
}
NEEDS_CUTOFF = frozenset({"R", "P", "Success"})
KNOWN = "nDCG@10, RR@10 (MRR@10), R@100 (Recall@100), AP (MAP), P@5 (Precision@5), Success@1"

_NAME = re.compile(r"(?P<family>[a-z]+)(\(rel=(?P<rel>\d+)\))?(@(?P<cutoff>\d+))?", re.IGNORECASE)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as a value; its text is the name that ir_measures uses.

    Args:
        family: ``nDCG``, ``RR``, ``R``, ``AP``, ``P`` or ``Success``.
        cutoff: How many ranks count; ``None`` for all.
        rel: The lowest grade that counts as relevant (nDCG uses the grades themselves).
    """

    family: str
    cutoff: int | None = None
    rel: int = 1

    def __str__(self) -> str:
        rel = "" if self.rel == 1 else f"(rel={self.rel})"
        return f"{self.family}{rel}" + ("" if self.cutoff is None else f"@{self.cutoff}")


def parse_metric(name: str) -> Metric:
    """Read the name of a metric, in any case: ``ndcg@10``, ``MRR``, ``P(rel=2)@5``.

    Raises:
        InputError: The name is not known; the message lists those that are.
    """
    match = _NAME.fullmatch(name.strip())
    family = FAMILIES.get(match["family"].lower()) if match else None
    if match is None or family is None:
        raise InputError(f"Unknown metric {name!r}; expected one like {KNOWN}.")
    if match["cutoff"] is None and family in NEEDS_CUTOFF:
        raise InputError(f"Metric {name!r} needs a cutoff, as in {family}@10.")
    if match["cutoff"] is not None and int(match["cutoff"]) == 0:
        raise InputError(f"Metric {name!r} needs a cutoff of at least 1.")
    if match["rel"] is not None and family == "nDCG":
        raise InputError(f"Metric {name!r}: nDCG uses the grades, so it takes no rel.")
    cutoff = None if match["cutoff"] is None else int(match["cutoff"])
    return Metric(family, cutoff, int(match["rel"] or 1))


def evaluate_run(
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Sequence[Ranked]],
    metrics: Iterable[str],
) -> Scores:
    """Score rankings of document ids against judgments, a value a query.

    Only the order of a ranking counts, never its scores. A query of the qrels that the run lacks
    counts 0 and is reported in the log; a query of the run that the qrels lack is left out. A
    document id that comes again further down keeps its rank there and earns nothing.

    Args:
        qrels: Grades by query id and document id, as `dspy_rerank.trec.read_qrels` gives them.
        run: Document ids, or (document id, score), best first, by query id.
        metrics: Names that `parse_metric` can read; they are the keys of the result.
    """
    import ir_measures

    measures = {name: ir_measures.parse_measure(str(parse_metric(name))) for name in metrics}
    missing = missing_queries(qrels, run)
    if missing:
        _logger.warning("%d queries are not in the run and count 0: %s", len(missing), missing[:10])
    judged = {query_id: _harmless(grades) for query_id, grades in qrels.items()}
    scored = {query_id: _scored(run[query_id]) for query_id in qrels if query_id in run}
    values = ir_measures.iter_calc(list(set(measures.values())), judged, scored)
    table = {(value.measure, value.query_id): float(value.value) for value in values}
    return {
        name: {q: table.get((measure, q), 0.0) for q in qrels} for name, measure in measures.items()
    }


def missing_queries(qrels: Mapping[str, Any], run: Mapping[str, Any]) -> tuple[str, ...]:
    """The judged queries for which the run has no ranking."""
    return tuple(query_id for query_id in qrels if query_id not in run)


def averages(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean over the queries, by metric; ``nan`` where there are no queries."""
    return {name: math.fsum(v.values()) / len(v) if v else math.nan for name, v in scores.items()}


def ndcg_at(
    relevance: Sequence[Grade],
    order: Sequence[int],
    k: int | None = None,
    ideal: Iterable[float] = (),
) -> float:
    """NDCG of one ranking with linear gain, as trec_eval computes it.

    Args:
        relevance: The grade of every candidate, by position; negative grades count 0.
        order: Positions, best first; it may be cut short.
        k: How many ranks count; ``None`` for all.
        ideal: Grades of judged documents that are not among the candidates. They can't be ranked
            but belong to the best possible ranking, so without them nDCG is flattered.

    Returns:
        A value in [0, 1]; 0 when nothing is relevant.
    """
    gains = [_gain(grade) for grade in relevance]
    best = sorted([*gains, *map(_gain, ideal)], reverse=True)
    attainable = _dcg(best[:k])
    ranked = [gains[position] for position in _checked(order, len(gains))]
    return _dcg(ranked[:k]) / attainable if attainable else 0.0


class Positions(NamedTuple):
    """One ranking over positions, in the terms of `evaluate_run`.

    Attributes:
        grades: Grades by an id made from the position: qrels for one query.
        ranking: The same ids, best first.
    """

    grades: dict[str, int]
    ranking: list[str]


def by_position(
    relevance: Sequence[Grade], order: Sequence[int], ideal: Iterable[float] = ()
) -> Positions:
    """Name candidates by their position, so that equal ids and texts stay apart.

    Fractions of a grade are dropped: TREC's judgments are whole numbers, and whether a document
    reaches a level does not change.
    """
    grades = {str(i): math.floor(_gain(g)) for i, g in enumerate(relevance) if g is not None}
    others = {f"ideal-{i}": math.floor(_gain(g)) for i, g in enumerate(ideal)}
    return Positions(grades | others, [str(p) for p in _checked(order, len(relevance))])


def score_order(
    metric: str, relevance: Sequence[Grade], order: Sequence[int], ideal: Iterable[float] = ()
) -> float:
    """Score one ranking of positions by any metric that `parse_metric` can read.

    Arguments are those of `ndcg_at`.
    """
    parsed = parse_metric(metric)
    if parsed.family == "nDCG":
        return ndcg_at(relevance, order, parsed.cutoff, ideal)
    grades, ranking = by_position(relevance, order, ideal)
    return evaluate_run({"q": grades}, {"q": ranking}, [metric])[metric]["q"]


@dataclass(frozen=True)
class RankingMetric:
    """A ranking metric for DSPy: ``dspy.Evaluate(metric=RankingMetric("nDCG@10"), ...)``.

    It reads ``gold.relevance`` (aligned with ``gold.documents``), ``gold.ideal`` where there is
    one, and ``pred.ranking.indices`` or else ``pred.indices``.

    Args:
        metric: Any name that `parse_metric` can read.
        threshold: From which value on a ranking is a success. Bootstrapping optimizers pass a
            trace and take any number but 0 for a success; they are answered yes or no.
    """

    metric: str = "nDCG@10"
    threshold: float = 0.8

    def __post_init__(self) -> None:
        parse_metric(self.metric)

    def __call__(
        self,
        gold: Any,
        pred: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> float:
        """The value for one example; a bool while bootstrapping.

        GEPA also passes a trace, but along with a predictor's name, and wants the number.

        Raises:
            InputError: No document of the example is judged, so that no value would mean anything.
        """
        ideal = getattr(gold, "ideal", None) or ()
        known = ideal or any(grade is not None for grade in gold.relevance)
        if not known and getattr(gold, "judged", None) is not True:
            raise InputError(
                f"query {getattr(gold, 'query', '')!r}: no document is judged, so a ranking of it "
                "has no value; leave it out: data.filter(lambda query: query.judged)"
            )
        value = score_order(self.metric, gold.relevance, _indices(pred), ideal)
        return value >= self.threshold if trace is not None and pred_name is None else value


def _harmless(grades: Mapping[str, int]) -> dict[str, int]:
    """Grades below 0 count as 0, and as they are they can keep pytrec_eval busy for ever."""
    return {name: max(0, grade) for name, grade in grades.items()}


def _scored(ranking: Sequence[Ranked]) -> dict[str, float]:
    """Strictly falling scores by document id; an id that comes again is made another one."""
    scored: dict[str, float] = {}
    for rank, entry in enumerate(ranking):
        name = entry if isinstance(entry, str) else entry[0]
        scored[f"{name}\x1f{rank}" if name in scored else name] = float(len(ranking) - rank)
    return scored


def _gain(grade: Grade) -> float:
    """What a grade is worth."""
    if grade is None:
        return 0.0
    if not math.isfinite(grade):
        raise InputError(f"Expected finite grades of relevance, got {grade!r}.")
    return max(0.0, float(grade))


def _dcg(gains: Sequence[float]) -> float:
    """Discounted cumulative gain of gains in ranked order."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _checked(order: Sequence[int], count: int) -> Sequence[int]:
    """The order, if it ranks candidates and none of them twice."""
    if len(set(order)) < len(order) or not all(0 <= position < count for position in order):
        raise InputError(
            f"Expected distinct positions from 0 to {count - 1}, a grade for each; "
            f"got the order {list(order)[:20]}."
        )
    return order


def _indices(pred: Any) -> Sequence[int]:
    """The ranked positions of a prediction."""
    ranking = getattr(pred, "ranking", pred)
    indices = getattr(ranking, "indices", None)
    if indices is None:
        raise InputError(
            f"Expected a prediction with ranking.indices or indices, got {type(pred).__name__} "
            f"with {', '.join(pred.keys()) if hasattr(pred, 'keys') else 'neither'}."
        )
    return indices
