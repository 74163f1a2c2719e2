"""How much each judge and the first stage should count: fitted to labels."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import dspy
import numpy as np
from dspy.teleprompt.teleprompt import Teleprompter

from ..defaults import resolve_lm
from ..errors import InputError, ModelError
from ..evaluation import as_dataset, baseline
from ..judges import Panel
from ..leaks import earlier
from ..memo import remembering
from ..metrics import parse_metric
from ..prior import first_stage
from ..sorters import Reranker, ScoreSort
from ..sorters.estimates import bounds
from ..types import Usage
from .card import compiled_on, cross_validation, spent
from .counting import counting
from .crossval import Nested, best_of, told
from .splits import joined
from .trials import SearchProgress
from .weighing import Scored, Weighing, Weights

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
OWN = ("prior", "prior_from", "prior_spread", "max_calls", "max_tokens", "max_cost", "deadline")
"""Settings of the student that do not go for the gathering of scores."""


@dataclass(frozen=True)
class _Heard:
    """What the judges said about the queries that could be scored."""

    queries: tuple[Scored, ...]
    lost: int
    usage: Usage


class WeightCompiler(Teleprompter):
    """Fits the weights of a panel's judges, and that of the first stage, to all labelled queries.

    Every judge is asked about every candidate once; all else is arithmetic on those scores. A
    linear ranker (pairwise logistic regression) over the judges' scores, on their own scale, and
    the first stage's evidence is shrunk towards the student's own weights; how far is chosen by
    cross-validation over queries. The whole choice is then made again with a tenth of the queries
    left out, ten times, and measured on those: where its gain over the student is within ``sure``
    standard errors of nothing, the student's weights are kept and the card says so.

    Training and validation queries are used alike, as nothing is shown to the model. A judge to
    which the student gives weight 0 costs nothing when that serves, and may be taken in here: a
    panel is where ideas are tried.

    Args:
        metric: What to maximise, such as ``nDCG@10``.
        penalties: Of weights far from the student's, to choose among; above 0.
        parts: Of the queries, for both cross-validations.
        sure: Standard errors by which a gain must exceed nothing to count.
        max_calls: Judge calls in all; queries and judges that need more are refused. What is
            left over is for asking again; a query that needs more of it is left out.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        seed: Of the folds.
        progress: Called after each judge.
    """

    def __init__(
        self,
        metric: str = "nDCG@10",
        *,
        penalties: Sequence[float] = PENALTIES,
        parts: int = 10,
        sure: float = 1.0,
        max_calls: int | None = None,
        lm: Any = None,
        seed: int = 0,
        progress: Callable[[SearchProgress], None] | None = None,
    ):
        super().__init__()
        parse_metric(metric)
        if not penalties or not all(penalty > 0 for penalty in penalties):
            raise InputError(f"penalties={tuple(penalties)}; expected numbers above 0")
        self.metric = metric
        self.penalties = tuple(sorted(penalties, reverse=True))
        self.parts = parts
        self.sure = sure
        self.max_calls = max_calls
        self.lm = lm
        self.seed = seed
        self.progress = progress

    def compile(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, student: Reranker, *, trainset: Any, valset: Any = None, teacher: Any = None
    ) -> Reranker:
        """A copy of the student with compiled weights; the student is left as it is.

        Args:
            student: ``ScoreSort(Panel([...]))``, or a ``ScoreSort`` over one pointwise judge, of
                which the first stage's weight alone is compiled.
            trainset: Labelled queries.
            valset: More of them.
            teacher: Not used: labels take its place.

        Returns:
            The copy, with ``card``.

        Raises:
            InputError: The student has no scores to weigh, there are fewer than two labelled
                queries, or the calls would exceed ``max_calls``.
            ModelError: The model failed on every query.
        """
        begun = time.monotonic()
        train = as_dataset(trainset)
        data = joined(train, as_dataset(valset)) if valset is not None else train
        data = data.filter(lambda query: query.labelled)
        with dspy.context(lm=resolve_lm(self.lm)), remembering(), counting() as counter:
            judges, given = members(student)
            spare = self._spare(judges, data)
            heard = self._heard(student, [judge.ready() for judge in judges], data, spare)
        prior = student.settings["prior"]
        weighing = Weighing(heard.queries, given, prior, self.metric, self.parts, self.seed)
        compiled = self._settled(student, weighing)
        about = {"queries": len(data), "fingerprint": data.fingerprint}
        incoming = fmean(baseline(data, [self.metric]).values[self.metric])
        compiled.card["validation"].update(about, incoming=round(incoming, 6))
        seconds = time.monotonic() - begun
        bill = spent(heard.usage, seconds, counter.cached)
        compiled.card.update(train=compiled_on(data), degraded=heard.lost, spent=bill)
        compiled.card.update(earlier(student.card, compiled.card))
        return compiled

    def _spare(self, judges: Sequence[Any], data: Any) -> int | None:
        """Calls that each judge has for asking again, on each query; ``None`` is any number."""
        if len(data) < 2:
            raise InputError(f"{len(data)} labelled queries; expected 2 or more to learn from")
        sizes = [len(query.documents) for query in data]
        most = sum(bounds(ScoreSort(judge).estimate(n).calls)[1] for judge in judges for n in sizes)
        if self.max_calls is None:
            return None
        if most > self.max_calls:
            raise InputError(
                f"{len(judges)} judges on {len(data)} queries take {most} calls, max_calls is "
                f"{self.max_calls}; give fewer queries or judges, or raise it"
            )
        return (self.max_calls - most) // (len(judges) * len(data))

    def _heard(
        self, student: Reranker, judges: Sequence[Any], data: Any, spare: int | None
    ) -> _Heard:
        """Every judge on every candidate; queries on which one of them failed are left out."""
        options = {n: v for n, v in student.settings.values.items() if n not in OWN}
        columns: list[Any] = []
        usage = Usage()
        for done, judge in enumerate(judges, 1):
            rankings = _judged(ScoreSort(judge, **options), data, spare)
            columns.append([None if r.degraded else _by_position(r) for r in rankings])
            usage = sum((ranking.usage for ranking in rankings), usage)
            self._tell(done, len(judges), usage)
        source = student.settings["prior_from"]
        found = [
            _scored(query, said, source)
            for query, said in zip(data, zip(*columns, strict=True), strict=True)
            if all(column is not None for column in said)
        ]
        if len(found) < 2:
            raise ModelError(f"the model failed on {len(data) - len(found)} of {len(data)} queries")
        return _Heard(tuple(found), len(data) - len(found), usage)

    def _tell(self, done: int, judges: int, usage: Usage) -> None:
        if self.progress is not None:
            paid = usage.paid_calls
            self.progress(SearchProgress(done, judges, float("nan"), paid, usage.cost))

    def _settled(self, student: Reranker, weighing: Weighing) -> Reranker:
        """The student with the weights that cross-validation bears out."""
        every = range(len(weighing.queries))
        table = weighing.table(self.penalties, every)
        row = best_of(table, self.sure)
        penalty = self.penalties[row - 1] if row else self.penalties[0]
        found = weighing.fit(penalty, every)
        seen = fmean(weighing.values(found, every)) if row else float(table[0].mean())
        held = weighing.left_out(self.penalties, self.sure)
        checked = told(held, table[0], seen, self.seed)
        compiled = _weighed(student, weighing.weights(found)) if row else None
        kept = compiled is not None and checked.worth_it(self.sure)
        made = compiled if compiled is not None and kept else student.deepcopy()
        why = _why(row, compiled is None, kept)
        made.card = self._card(made, table, checked, penalty if kept else None, why)
        return made

    def _card(
        self, made: Reranker, table: Any, checked: Nested, penalty: float | None, why: str
    ) -> dict[str, Any]:
        judges, weights = members(made)
        before = float(table[0].mean())
        return {
            "metric": self.metric,
            "optimizer": type(self).__name__,
            "seed": self.seed,
            "cross_validation": cross_validation(checked),
            "validation": {
                "uncompiled": round(before, 6),
                "compiled": round(before if penalty is None else fmean(checked.values), 6),
            },
            "chosen": {
                "kept": penalty is not None,
                "why": why,
                "penalty": penalty,
                "prior": made.settings["prior"],
                "weights": [
                    {"judge": repr(judge), "weight": weight}
                    for judge, weight in zip(judges, weights, strict=True)
                ],
            },
            "penalties": [
                {"penalty": name, "value": round(float(value), 6)}
                for name, value in zip((None, *self.penalties), table.mean(axis=1), strict=True)
            ],
        }


def members(student: Reranker) -> tuple[list[Any], tuple[float, ...]]:
    """The judges of a student and their weights.

    Raises:
        InputError: It has no scores to weigh.
    """
    if not isinstance(student, ScoreSort):
        raise InputError(
            f"{student!r} has no scores to weigh; expected ScoreSort(Panel([...])) or a ScoreSort "
            "over one pointwise judge (compile --sorter ScoreSort --judge PointwiseJudge)"
        )
    judge: Any = student.judge
    if not isinstance(judge, Panel):
        return [judge], (1.0,)
    return list(judge.judges), tuple(judge.settings["weights"])


def _weighed(student: Reranker, weights: Weights) -> Reranker | None:
    """A copy with these weights; none where its one judge is better turned upside down."""
    made = student.deepcopy()
    if isinstance(made.judge, Panel):
        if not any(weights.judges):
            return None
        made.judge = made.judge.weighed(weights.judges)
        apart = weights.spread
    else:
        if weights.judges[0] <= 0:
            return None
        apart = float(f"{weights.spread / weights.judges[0]:.6g}")
    made.settings.update(prior=round(weights.prior, 6), prior_spread=apart)
    return made


def _judged(alone: ScoreSort, data: Any, spare: int | None) -> list[Any]:
    """The rankings of one judge, each within its own limit."""
    calls = [{**q.inputs, "query": q.text, "documents": q.documents} for q in data]
    if spare is not None:
        for call in calls:
            call["max_calls"] = bounds(alone.estimate(len(call["documents"])).calls)[1] + spare
    return [prediction.ranking for prediction in alone.rank_many(calls)]


def _by_position(ranking: Any) -> list[float | None]:
    scores = {item.index: item.score for item in ranking}
    return [scores[position] for position in range(len(scores))]


def _scored(query: Any, said: Sequence[Any], source: str) -> Scored:
    columns = [[np.nan if s is None else s for s in column] for column in said]
    evidence = tuple(first_stage(query.documents, source))
    return Scored(np.array(columns, dtype=float).T, evidence, query.relevance, query.ideal)


def _why(row: int, unusable: bool, kept: bool) -> str:
    if not row:
        return "no weights were better than the student's by more than a standard error"
    if unusable:
        return "the judge is better turned upside down, which points to a wrong question"
    if kept:
        return "the gain holds on queries left out of the choice"
    return "the best weights' gain does not hold on queries left out"
