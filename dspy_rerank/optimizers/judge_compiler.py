"""Compiles a reranker's judge with any DSPy optimizer, on labelled questions of its own kind."""

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import dspy
from dspy.teleprompt.teleprompt import Teleprompter

from ..decisions import decides
from ..defaults import resolve_lm
from ..errors import InputError
from ..evaluation import as_dataset
from ..judges.base import SignatureJudge
from ..judges.rewording import instructed
from ..sorters import Reranker
from .card import judge_card
from .counting import counting
from .demos import cleaned
from .examples import Labelled, judgment_examples
from .judge_metric import JudgeMetric
from .judge_program import JudgeProgram, Watch
from .reuse import answers_known
from .running import GuardedMetric, made, own_metric, run
from .splits import parts
from .variants import by_likelihood, with_settled_judge

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Questions:
    """Labelled questions of the training and the validation queries."""

    train: list[Labelled]
    val: list[Labelled]


class JudgeCompiler(Teleprompter):
    """Improves a reranker's prompt with a DSPy optimizer, at the level of single questions.

    The labels are turned into questions of the judge's kind, the optimizer works on the judge's
    bare predictor under the judge's adapter, and the instructions and demonstrations that come
    out are put into a copy of the reranker. One question costs one call, so this takes a small
    part of the calls that the same optimizer takes on whole rankings. At temperature 0 no prompt
    is sent twice: what an optimizer asks again, and what the comparison at the end needs, is known.

    A copy whose judge does no better than the student's on the validation questions is returned
    with the student's prompt, and the card says so.

    Args:
        optimizer: A DSPy optimizer (``dspy.GEPA(metric=JudgeMetric(), ...)``), its class, or a
            function from a metric to one. An instance with a metric of its own is compiled with
            that.
        options: For the optimizer's class, beside the metric.
        arguments: For the optimizer's ``compile``, beside the sets.
        metric: Instead of :class:`JudgeMetric`, with DSPy's arguments.
        per_query: At most so many questions from each query.
        window: Passages in a group.
        margin: Grades by which the passages of a pair differ at least.
        max_demo_tokens: For all demonstrations together, estimated.
        max_calls: To all language models together, the one that writes prompts included. Two for
            each validation question are kept for the comparison at the end; when the others are
            spent, the optimizer is stopped and the best prompt it had tried goes into that.
        lm: Answers the questions: a DSPy LM or a model name; ``None`` as in
            :func:`dspy_rerank.rerank`. The optimizer uses it too, unless it has another.
        seed: Of every draw of ours.
    """

    def __init__(
        self,
        optimizer: Any,
        options: Mapping[str, Any] | None = None,
        *,
        arguments: Mapping[str, Any] | None = None,
        metric: Callable[..., Any] | None = None,
        per_query: int = 8,
        window: int = 5,
        margin: float = 0.0,
        max_demo_tokens: int = 1500,
        max_calls: int | None = None,
        lm: Any = None,
        seed: int = 0,
    ):
        super().__init__()
        self.optimizer = optimizer
        self.options = dict(options or {})
        self.arguments = dict(arguments or {})
        self.metric = metric
        self.per_query = per_query
        self.window = window
        self.margin = margin
        self.max_demo_tokens = max_demo_tokens
        self.max_calls = max_calls
        self.lm = lm
        self.seed = seed

    def compile(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, student: Reranker, *, trainset: Any, valset: Any = None, teacher: Any = None
    ) -> Reranker:
        """A compiled copy of a reranker; the student is left as it is.

        Args:
            student: Any reranker over a signature judge that writes its answers.
            trainset: Labelled queries.
            valset: Labelled queries for the optimizer's own choices and for the comparison with
                the student; ``None`` takes half of the training queries away for it.
            teacher: A reranker over a judge of the same signature that gives the demonstrations,
                for optimizers that take one.

        Returns:
            The copy, with ``card`` saying what came out and what it cost.

        Raises:
            InputError: There are no labels, or the judge has no prompt that is answered.
            CompileError: The optimizer failed or returned nothing, or the metric raised.
            ModelError: The model failed on most questions.
        """
        begun = time.monotonic()
        train, val = parts(trainset, valset, self.seed)
        watch, reuse = Watch(), answers_known()
        with dspy.context(lm=resolve_lm(self.lm)), counting() as bill:
            compiled = with_settled_judge(student)
            questions = self._questions(compiled.judge, train, val)
            metric = self._guarded(compiled.judge, questions)
            before = JudgeProgram(compiled.judge, watch, reuse)
            optimizer = made(self.optimizer, metric, self.options)
            with counting(self._optimizers(len(questions.val))) as counter:
                found = run(optimizer, before, metric, self._sets(questions, teacher, watch))
            tried = metric.tried.listed([item.example for item in questions.val])
            judge = self._with_prompt(compiled.judge, found, questions.train)
            scores = [
                self._scores(JudgeProgram(each, watch, reuse), metric, questions.val)
                for each in (compiled.judge, judge)
            ]
        kept = fmean(scores[1]) > fmean(scores[0])
        if kept:
            compiled.judge = judge
        self._warn(watch)
        compiled.card = judge_card(
            type(optimizer).__name__, compiled.judge, scores, kept=kept, seed=self.seed,
            train=as_dataset(train), val=as_dataset(val),
            questions=(len(questions.train), len(questions.val)),
            watch=watch, bill=bill, seconds=time.monotonic() - begun,
            before=compiled.card,
        )  # fmt: skip
        compiled.card["tried"] = tried
        compiled.card["stopped"] = f"max_calls={self.max_calls}" if counter.spent else ""
        return compiled

    def _optimizers(self, val: int) -> int | None:
        """The calls that the optimizer may make."""
        if self.max_calls is None:
            return None
        if self.max_calls <= 2 * val:
            raise InputError(
                f"max_calls={self.max_calls} with {val} validation questions, of which comparing "
                f"the prompts at the end takes {2 * val}; give more calls, fewer validation "
                "queries or a smaller per_query"
            )
        return self.max_calls - 2 * val

    def _questions(self, judge: SignatureJudge, train: Any, val: Any) -> _Questions:
        if decides(dspy.settings.lm):
            raise InputError(
                "a decision model writes no answers that a prompt optimizer could learn from; use "
                "dspy_rerank.optimizers.ReAnchor, or RerankerSearch"
            )
        if by_likelihood(judge):
            raise InputError(
                "a judge by likelihood writes no answers that an optimizer could learn from; "
                "use RerankerSearch, or PointwiseJudge(evidence='generate')"
            )
        found = [
            judgment_examples(
                judge,
                data,
                per_query=self.per_query,
                window=self.window,
                margin=self.margin,
                seed=self.seed,
            )
            for data in (train, val)
        ]
        for name, labelled in zip(("training", "validation"), found, strict=True):
            if not labelled:
                raise InputError(
                    f"the {name} queries give no {judge.kind} questions; expected queries with at "
                    "least two documents of different grades"
                )
            random.Random(self.seed).shuffle(labelled)
        return _Questions(*found)

    def _guarded(self, judge: SignatureJudge, questions: _Questions) -> GuardedMetric:
        chosen = self.metric or own_metric(self.optimizer) or JudgeMetric()
        if isinstance(chosen, JudgeMetric):
            chosen = chosen.bound(judge, [*questions.train, *questions.val])
        return GuardedMetric(chosen)

    def _sets(self, questions: _Questions, teacher: Any, watch: Watch) -> dict[str, Any]:
        sets: dict[str, Any] = {
            "trainset": [item.example for item in questions.train],
            "valset": [item.example for item in questions.val],
        }
        if teacher is not None:
            sets["teacher"] = JudgeProgram(with_settled_judge(teacher).judge, watch)
        return {**sets, **self.arguments}

    def _with_prompt(
        self, judge: SignatureJudge, found: JudgeProgram, labelled: Sequence[Labelled]
    ) -> SignatureJudge:
        """A copy of the judge with the program's instructions and demonstrations."""
        made = judge.deepcopy()
        made.predict.signature = instructed(judge.signature, found.instructions)
        made.predict.demos = cleaned(judge, found.predict.demos, labelled, self.max_demo_tokens)
        return made

    def _scores(
        self, program: JudgeProgram, metric: GuardedMetric, labelled: Sequence[Labelled]
    ) -> tuple[float, ...]:
        """What each validation question is worth; one that is lost is worth 0 for both."""
        pairs = [(program, item.example) for item in labelled]
        runner = dspy.Parallel(max_errors=len(pairs) + 1, disable_progress_bar=True, timeout=0)
        answers = runner([(program, example.inputs()) for program, example in pairs])
        return tuple(
            0.0 if answer is None else number(metric(example, answer))
            for (_, example), answer in zip(pairs, answers, strict=True)
        )

    def _warn(self, watch: Watch) -> None:
        if watch.lost:
            logger.warning(
                "the model failed on %d of %d questions, which count as wrong: %s",
                watch.lost, watch.asked, watch.last,
            )  # fmt: skip


def number(value: Any) -> float:
    """A metric's value, from a number or a prediction with a score."""
    return float(value.score if isinstance(value, dspy.Prediction) else value)
