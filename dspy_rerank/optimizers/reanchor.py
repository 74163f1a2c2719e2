"""Fits how a judge reads a decision model's probabilities: thresholds, cuts and weights."""

import copy
import json
import threading
import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import dspy
from dspy.teleprompt.teleprompt import Teleprompter
from dspy.utils.exceptions import AdapterParseError

from ..decisions import decides, once
from ..defaults import resolve_lm
from ..errors import CompileError, InputError
from ..evaluation import as_dataset
from ..judges.base import SignatureJudge
from ..judges.decision_types import Noul, Score, levels
from ..sorters import Reranker
from .card import judge_card
from .counting import SpentError, counting
from .examples import Labelled, judgment_examples
from .judge_metric import JudgeMetric
from .judge_program import JudgeProgram, Watch
from .running import GuardedMetric, made, run
from .splits import parts
from .variants import with_settled_judge

ANCHORS = ("threshold", "cuts", "weights")


class ReAnchor(Teleprompter):
    """Fits a reranker's reading of decisions to labels, by DSPy's ``ReAnchor``.

    Of a grade that is where one level ends and the next begins (``cuts``), of a truth value from
    which probability on it counts as yes (``threshold``), of a choice by how much each label is
    named too often (``weights``: a place that the model favours, a tie or none that it shuns).
    Grades are put on the scale by their cuts without changing their order among themselves, so
    what they change is what a grade means: beside a prior, in ``Judgment.score``, for a
    threshold of your own. Weights change which passage wins.

    Each question is put once: the fit itself asks nothing new. A copy whose judge reads no better
    on the validation questions is returned with the student's anchors, and the card says so.

    Args:
        metric: Instead of :class:`JudgeMetric`, with DSPy's arguments.
        per_query: At most so many questions from each query.
        window: Passages in a group, for setwise judges.
        max_calls: To the model in all, those that failed included; as many as there are questions
            are needed.
        lm: A decision model or its name; ``None`` is the one bound to the reranker, else DSPy's.
        num_threads: Questions at a time.
        seed: Of every draw.
    """

    def __init__(
        self,
        metric: Any = None,
        *,
        per_query: int = 8,
        window: int = 5,
        max_calls: int | None = None,
        lm: Any = None,
        num_threads: int = 8,
        seed: int = 0,
    ):
        super().__init__()
        self.metric = metric
        self.per_query = per_query
        self.window = window
        self.max_calls = max_calls
        self.lm = lm
        self.num_threads = num_threads
        self.seed = seed

    def compile(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, student: Reranker, *, trainset: Any, valset: Any = None
    ) -> Reranker:
        """A copy of a reranker with fitted anchors; the student is left as it is.

        Args:
            student: Over a pointwise, pairwise or setwise judge.
            trainset: Labelled queries.
            valset: Labelled queries on which the fit is compared with the student; ``None`` takes
                half of the training queries away for it.

        Returns:
            The copy, with ``card`` saying what came out and what it cost.

        Raises:
            InputError: There are no labels, or the model makes no decisions.
            EvidenceError: The judge cannot ask decision models.
            CompileError: The metric raised, or failed calls took those that the fit needed.
            ModelError: The model failed on most questions.
        """
        try:
            return self._fitted(student, *parts(trainset, valset, self.seed))
        except SpentError:
            raise CompileError(
                f"max_calls={self.max_calls} were spent before the fit came to its end, since some "
                "failed and were made again; give more calls, or a smaller per_query"
            ) from None

    def _fitted(self, student: Reranker, train: Any, val: Any) -> Reranker:
        begun, watch = time.monotonic(), Watch()
        with dspy.context(lm=Remembered.of(self._model(student))), counting(self.max_calls) as bill:
            compiled = _unbound(student)
            judge = compiled.judge
            questions = [self._questions(judge, data) for data in (train, val)]
            self._check_calls(sum(map(len, questions)))
            metric = GuardedMetric(self._bound(judge, questions))
            before = DecisionProgram(judge, self._shown(judge), watch)
            found = run(self._optimizer(metric), before, metric, {"trainset": _of(questions[0])})
            fitted = anchors_of(found)
            scores = [_scores(each, metric, questions[1]) for each in (before, found)]
        kept = fmean(scores[1]) > fmean(scores[0])
        result = student.deepcopy()
        if kept:
            _put(result.judge, fitted)
        result.card = judge_card(
            "ReAnchor", judge, scores, kept=kept, seed=self.seed, train=as_dataset(train),
            val=as_dataset(val), questions=(len(questions[0]), len(questions[1])), watch=watch,
            bill=bill, seconds=time.monotonic() - begun, before=result.card,
        )  # fmt: skip
        result.card["chosen"]["anchors"] = fitted if kept else dict(judge.anchors)
        result.card["spent"]["judge_calls"] = bill.calls  # not those that were remembered
        return result

    def _check_calls(self, questions: int) -> None:
        if self.max_calls is not None and questions > self.max_calls:
            raise InputError(
                f"max_calls={self.max_calls}, but fitting and comparing take {questions}, one for "
                "each question; give more calls, fewer queries or a smaller per_query"
            )

    def _model(self, student: Reranker) -> Any:
        """The model to fit to."""
        bound = next((p.lm for p in student.predictors() if p.lm is not None), None)
        return resolve_lm(self.lm or bound)

    def _optimizer(self, metric: GuardedMetric) -> Teleprompter:
        """DSPy's; answers are kept here, so it need not ask for DSPy's cache."""
        options = {"num_threads": self.num_threads, "require_cache": False}
        return made(dspy.experimental.ReAnchor, metric, options)

    def _shown(self, judge: SignatureJudge) -> int:
        return {"pointwise": 1, "pairwise": 2}.get(judge.kind, self.window)

    def _bound(self, judge: SignatureJudge, questions: Sequence[Sequence[Labelled]]) -> Any:
        chosen = self.metric or JudgeMetric()
        if not isinstance(chosen, JudgeMetric):
            return chosen
        return chosen.bound(judge, [item for part in questions for item in part])

    def _questions(self, judge: SignatureJudge, data: Any) -> list[Labelled]:
        """All of the same size, since weights are those of given labels."""
        lm = dspy.settings.lm
        if not judge.decides(lm):
            raise InputError(
                f"{getattr(lm, 'model', lm)!r} writes its answers: anchors are fitted to a "
                "decision model (dspy_rerank.models.decision), or to a judge whose signature "
                "answers with one of DSPy's decision types"
            )
        found = judgment_examples(
            judge, data, per_query=self.per_query, window=self.window, seed=self.seed
        )
        same = [item for item in found if len(item.grades) == self._shown(judge)]
        if not same:
            raise InputError(
                f"the queries give no {judge.kind} questions; expected queries with at least "
                f"{max(2, self._shown(judge))} documents of different grades"
            )
        return same


class Remembered:
    """A decision client that puts each question once, for as long as a fit takes.

    Args:
        lm: Asked when a question is new.
    """

    supports_decision_requests = True
    cache = True

    def __init__(self, lm: Any):
        self.lm = once(lm)
        self.model = lm.model
        self.history: list[Any] = lm.history
        self.callbacks: list[Any] = []
        self._kept: dict[str, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, lm: Any) -> Any:
        """The client with a memory; chat models have DSPy's cache."""
        return cls(lm) if decides(lm) else lm

    def __call__(self, state: Any, questions: Mapping[str, Any]) -> Any:
        """The answers, asked for or remembered."""
        key = json.dumps([state, questions], sort_keys=True, default=str)
        with self._lock:
            known = self._kept.get(key)
        if known is None:
            known = self.lm(state, questions)
            with self._lock:
                self._kept[key] = known
        return copy.deepcopy(known)


class DecisionProgram(JudgeProgram):
    """One decision of a judge as a program whose predictor holds the anchors to be fitted.

    Args:
        judge: Its signature is taken over as a decision; its predictor is not touched.
        shown: Passages in each question.
        watch: Counts the calls of this program and all its copies.
    """

    def __init__(self, judge: SignatureJudge, shown: int, watch: Watch):
        super().__init__(judge, watch)
        self.answer = judge.roles.answer
        self.levels = levels(judge.settings.values.get("scale", (0, 3)))
        self.predict = dspy.Predict(judge.decision(shown))
        self.predict.demos = list(judge.predict.demos)
        if judge.anchors:
            self.predict.fields = {self.answer: copy.deepcopy(dict(judge.anchors))}
        self.adapter = judge.adapter or dspy.JSONAdapter()

    def deepcopy(self) -> "DecisionProgram":
        """A copy that counts with the same watch."""
        return copy.deepcopy(self)

    def _answer(self, inputs: Mapping[str, Any]) -> dspy.Prediction:
        with dspy.context(adapter=self.adapter, send_stream=None):
            options = {} if decides(dspy.settings.lm) else self.options
            try:
                said = self._written(self.predict(**inputs, config=options)[self.answer])
            except AdapterParseError:
                said = ""
        self.watch.answered()
        return dspy.Prediction(**{self.answer: said})

    def _written(self, found: Any) -> str:
        """The decision as the judge's reader takes it: by its level, side or label."""
        if isinstance(found, Score):
            return f"{self._grade(found.level):g}"
        if isinstance(found, Noul):
            return "yes" if found.value else "no"
        return str(found.value)

    def _grade(self, level: int) -> float:
        criteria: Any = self.predict.signature
        count = len(criteria.output_fields[self.answer].annotation.criteria())
        low, high = self.levels[0], self.levels[-1]
        return low + (high - low) * level / (count - 1)


def anchors_of(program: JudgeProgram) -> dict[str, Any]:
    """What was fitted, as JSON values; empty where the original reading was best."""
    fields: Any = program.predict.fields
    found = next(iter(fields.values()), {})
    return {name: found[name] for name in ANCHORS if name in found}


def _put(judge: SignatureJudge, anchors: Mapping[str, Any]) -> None:
    """Store anchors with a judge, in place of any that DSPy's own ReAnchor left."""
    judge.predict.fields.pop(judge.roles.answer, None)
    judge.settings.update(anchors=dict(anchors) or None)


def _unbound(student: Reranker) -> Reranker:
    """A copy that asks the model of the context."""
    compiled = with_settled_judge(student)
    for predict in compiled.predictors():
        predict.lm = None
    compiled.judge = compiled.judge.ready()
    return compiled


def _of(questions: Sequence[Labelled]) -> list[Any]:
    return [item.example for item in questions]


def _scores(
    program: JudgeProgram, metric: GuardedMetric, questions: Sequence[Labelled]
) -> tuple[float, ...]:
    """What each question is worth; one that is lost is worth 0."""
    asked = [(program, item.example.inputs()) for item in questions]
    runner = dspy.Parallel(max_errors=len(asked) + 1, disable_progress_bar=True, timeout=0)
    worth = [
        0.0 if said is None else metric(item.example, said)
        for item, said in zip(questions, runner(asked), strict=True)
    ]
    return tuple(float(getattr(value, "score", value)) for value in worth)
