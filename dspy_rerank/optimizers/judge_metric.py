"""How good one answer of a judge is, as a number for every DSPy optimizer and in words for GEPA."""

import json
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, NamedTuple

import dspy

from ..errors import InputError
from ..judges.base import SignatureJudge
from ..metrics import ndcg_at
from ..types import Judgment
from .examples import Labelled, answers_yes_no
from .feedback import explained

WINDOWS = ("ndcg", "kendall")


class Graded(float):
    """A score whose truth value is success: bootstrapping optimizers take any number but 0 for one.

    Args:
        value: The score.
        success: Whether it is good enough for a demonstration.
    """

    success: bool

    def __new__(cls, value: float, success: bool = True) -> "Graded":
        """The number, with its truth value."""
        made = super().__new__(cls, value)
        made.success = success
        return made

    def __bool__(self) -> bool:
        return self.success


class Verdict(NamedTuple):
    """An answer measured against its label.

    Attributes:
        judgment: As it was read.
        score: In [0, 1].
        feedback: What was right or wrong, for a model that rewrites the instructions.
    """

    judgment: Judgment
    score: float
    feedback: str


class JudgeMetric:
    """A metric on judgment examples that fits all of DSPy's calling conventions.

    Grades lose their distance to the label as a share of the scale; preferences and choices are
    right or wrong, a tie where there is none being worth half; an order is worth its nDCG, or the
    share of its pairs that are in order. An answer that cannot be read is worth 0.

    Called with a trace and no predictor's name, as bootstrapping does, the number's truth value
    says whether the answer may serve as a demonstration; with a predictor's name, as by GEPA,
    there is a ``dspy.Prediction`` with ``score`` and ``feedback``.

    Args:
        judge: Reads the answers; :class:`JudgeCompiler` fills it in.
        labelled: The questions with their grades; likewise.
        windows: ``ndcg`` or ``kendall``.
        success: From which score on an answer may serve as a demonstration.
    """

    def __init__(
        self,
        judge: SignatureJudge | None = None,
        labelled: Iterable[Labelled] = (),
        *,
        windows: str = "ndcg",
        success: float = 0.9,
    ):
        if windows not in WINDOWS:
            raise InputError(f"windows={windows!r}; expected {' or '.join(WINDOWS)}")
        self.judge = judge
        self.windows = windows
        self.success = success
        self.known = {_key(judge, item.example): item for item in labelled} if judge else {}

    def bound(self, judge: SignatureJudge, labelled: Iterable[Labelled]) -> "JudgeMetric":
        """The same metric for the questions of one judge."""
        return JudgeMetric(judge, labelled, windows=self.windows, success=self.success)

    def __call__(
        self,
        gold: Any,
        pred: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> Any:
        """The score of one answer; see the class for what else there is."""
        verdict = self.verdict(gold, pred)
        if pred_name is not None:
            return dspy.Prediction(score=verdict.score, feedback=verdict.feedback)
        if trace is not None:
            return Graded(verdict.score, verdict.score >= self.success)
        return verdict.score

    def verdict(self, gold: Any, pred: Any) -> Verdict:
        """The answer as read, its score, and what to say about it.

        Raises:
            InputError: The example is not one of those that the metric knows.
        """
        judge, item = self._known(gold)
        judgment = read(judge, answer_of(judge, pred), len(item.grades))
        score = self._score(judge, judgment, item) if judgment.known else 0.0
        return Verdict(judgment, score, explained(judge, judgment, item, score))

    def _known(self, gold: Any) -> tuple[SignatureJudge, Labelled]:
        item = self.known.get(_key(self.judge, gold)) if self.judge else None
        if self.judge is None or item is None:
            raise InputError(
                "the metric has no label for this example; expected one that "
                "judgment_examples(judge, dataset) gave, and JudgeMetric(judge, those examples)"
            )
        return self.judge, item

    def _score(self, judge: SignatureJudge, judgment: Judgment, item: Labelled) -> float:
        if judgment.kind == "pointwise":
            return _closeness(judge, judgment, item)
        if judgment.order is not None or judge.kind == "listwise":
            worth = ndcg_at if self.windows == "ndcg" else in_order
            return _order_worth(judgment, item, worth)
        return _choice_worth(judgment, item.grades)


def read(judge: SignatureJudge, text: str, shown: int) -> Judgment:
    """A judge's bare answer, by the judge's own reader."""
    return judge._read(text, shown)  # pyright: ignore[reportPrivateUsage]


def answer_of(judge: SignatureJudge, prediction: Any) -> str:
    """The answer's text in a prediction of the judge's bare predictor, or in an example."""
    value = prediction.get(judge.roles.answer) if hasattr(prediction, "get") else None
    return "" if value is None else str(value)


def _key(judge: SignatureJudge | None, example: Any) -> str:
    """The inputs of a question, by which it is found again after any copying."""
    names = judge.signature.input_fields if judge else ()
    return json.dumps([str(example.get(name)) for name in names])


def _closeness(judge: SignatureJudge, judgment: Judgment, item: Labelled) -> float:
    label = read(judge, answer_of(judge, item.example), 1).score or 0.0
    low, high = (0.0, 1.0) if answers_yes_no(judge) else judge.settings["scale"]
    return max(0.0, 1 - abs((judgment.score or 0.0) - label) / (high - low))


def _choice_worth(judgment: Judgment, grades: tuple[float, ...]) -> float:
    """1 for one of the best, half for a tie that is none or a best one where all are equal."""
    best = max(grades)
    level = min(grades) == best
    if judgment.kind == "setwise" and best <= 0:
        return float(judgment.best is None)
    if judgment.best is not None:
        return 0.5 if level else float(grades[judgment.best] == best)
    if judgment.kind == "setwise":
        return 0.0
    return 1.0 if level else 0.5


def _order_worth(judgment: Judgment, item: Labelled, worth: Callable[..., float]) -> float:
    """Of a window: nothing relevant is best said; an order of equals is worth half."""
    if max(item.grades) <= 0:
        return 1.0 if judgment.order is None else 0.5
    return 0.0 if judgment.order is None else worth(item.grades, judgment.order)


def in_order(grades: tuple[float, ...], order: tuple[int, ...]) -> float:
    """The share of the pairs of different grades that are in order: Kendall's tau put on [0, 1]."""
    pairs = [grades[a] - grades[b] for a, b in combinations(order, 2) if grades[a] != grades[b]]
    return sum(gap > 0 for gap in pairs) / len(pairs) if pairs else 1.0
