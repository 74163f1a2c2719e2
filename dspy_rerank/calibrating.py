"""Calibration of a whole reranker on labelled queries, and how reliable its confidences are."""

from collections.abc import Iterable, Sequence
from typing import Any

import dspy

from .calibration import Answers, Reliability, answers, standings
from .calibration import reliability as measure
from .errors import EvidenceError, InputError
from .evaluation import (
    _model_for,  # pyright: ignore[reportPrivateUsage]
    as_dataset,
    rank_all,
)
from .judges.base import SignatureJudge
from .ranking import Ranking
from .sorters import Reranker


def calibrate(
    reranker: Reranker,
    trainset: Any,
    *,
    method: str = "platt",
    lm: Any = None,
    queries_at_once: int = 4,
) -> Reranker:
    """A copy of a reranker whose judge says how often answers like its own are right.

    Ranks every query once; neither orders nor scores change. A judge that goes by likelihood,
    which has no confidence of its own, learns how probably a passage is relevant from the place
    of its likelihood among the query's candidates: serve about as many of them as here.

    Args:
        reranker: Its judge must give confidences (log-probabilities, stated, votes) or
            likelihoods.
        trainset: Labelled queries, in any form that :func:`dspy_rerank.evaluate` takes. Measure
            on others.
        method: ``platt``, or ``isotonic`` for some hundred answers or more.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        queries_at_once: Rankings under way at the same time.

    Raises:
        EvidenceError: No judgment has a confidence and a label to compare it with.
        InputError: The judge is a function, or there are no labels.
    """
    calibrated = reranker.deepcopy()
    data = as_dataset(trainset)
    with dspy.context(lm=_model_for([calibrated], lm)):
        judge = _judge_of(calibrated)
        judge.settings.update(calibration=None)
        rankings = rank_all(calibrated, data, queries_at_once)
        found = _raw(judge, rankings, data)
    if not found.confidences:
        raise EvidenceError(_nothing(judge, rankings))
    judge.calibrate(found.confidences, found.right, method=method)
    return calibrated


def reliability(
    source: Reranker | Sequence[Ranking],
    dataset: Any,
    *,
    judge: Any = None,
    bins: int = 10,
    lm: Any = None,
    queries_at_once: int = 4,
) -> Reliability:
    """How far a reranker's confidences are from how often its judgments are right.

    Args:
        source: A reranker, which ranks every query once, or its rankings of the data set's
            queries in their order, such as those of a row of :func:`dspy_rerank.evaluate`.
        dataset: Labelled queries, others than those that the reranker was calibrated on.
        judge: Whose grades the rankings hold, where they are pointwise; a reranker has its own.
        bins: Bars of the diagram.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        queries_at_once: Rankings under way at the same time.

    Raises:
        EvidenceError: No judgment has a confidence and a label to compare it with.
        InputError: There are not as many rankings as queries.
    """
    data = as_dataset(dataset)
    rankings = source
    if isinstance(source, Reranker):
        with dspy.context(lm=_model_for([source], lm)):
            judge = source.judge.ready()
            rankings = rank_all(source, data, queries_at_once)
    found = judged(rankings, data, judge)  # pyright: ignore[reportArgumentType]
    if not found.confidences:
        raise EvidenceError(_nothing(judge, rankings))  # pyright: ignore[reportArgumentType]
    return measure(*found, bins=bins)


def judged(rankings: Sequence[Ranking], data: Any, judge: Any = None) -> Answers:
    """The judgments of rankings against the labels of their queries.

    Args:
        rankings: One a query.
        data: The queries.
        judge: Decides the scale of grades; ``None`` is 0 to 3.
    """
    if len(rankings) != len(data):
        raise InputError(f"{len(rankings)} rankings of {len(data)} queries; expected as many")
    pairs = [(r.judgments, q.relevance) for r, q in zip(rankings, data, strict=True)]
    return answers(pairs, scale=_scale(judge))


def _judge_of(reranker: Reranker) -> SignatureJudge:
    judge = reranker.judge.ready()
    if not isinstance(judge, SignatureJudge):
        raise InputError(
            f"{judge!r} cannot be calibrated: a {type(judge).__name__} has no confidence of a "
            "model's; use PointwiseJudge, PairwiseJudge, SetwiseJudge or ListwiseJudge"
        )
    return judge


def _scale(judge: Any) -> tuple[float, float]:
    """Lowest and highest grade: 0 and 1 where yes or no is asked."""
    if getattr(judge, "_yes_no", False):
        return 0.0, 1.0
    settings = getattr(judge, "settings", None)
    low, high = (settings.values if settings else {}).get("scale", (0.0, 3.0))
    return float(low), float(high)


def _raw(judge: SignatureJudge, rankings: Sequence[Ranking], data: Any) -> Answers:
    """What there is to be fitted: confidences, or standings of likelihoods against relevance."""
    if judge.settings["evidence"] != "likelihood":
        return judged(rankings, data, judge)
    pairs = [p for r, q in zip(rankings, data, strict=True) for p in _standing(r, q.relevance)]
    return Answers(tuple(place for place, _ in pairs), tuple(right for _, right in pairs))


def _standing(ranking: Ranking, grades: Sequence[float | None]) -> Iterable[tuple[float, bool]]:
    known = [j for j in ranking.judgments if j.score is not None]
    places = standings([j.score or 0.0 for j in known]) or ()
    labels = [grades[judgment.group[0]] for judgment in known]
    return [(p, g > 0) for p, g in zip(places, labels, strict=False) if g is not None]


def _nothing(judge: Any, rankings: Sequence[Ranking]) -> str:
    given = [j for ranking in rankings for j in ranking.judgments]
    if any(judgment.evidence == "likelihood" for judgment in given):
        return "likelihoods have no confidence of their own; dspy_rerank.calibrate gives them one"
    reasons = [judgment.reason for judgment in given if judgment.reason]
    why = f" (first reason: {reasons[0][:120]})" if reasons else ""
    return (
        f"none of the judgments of {judge!r} has a confidence and a label to compare it with{why}. "
        "Use evidence='logprobs' with a model that gives log-probabilities, evidence='stated' or "
        "votes=, and labelled queries whose labels differ"
    )
