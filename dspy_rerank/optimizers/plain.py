"""What a plain DSPy optimizer makes of a reranker, end to end and within as many calls."""

import inspect
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dspy

from ..defaults import resolve_lm
from ..errors import CompileError, ModelError
from ..evaluation import as_dataset
from ..judges.base import SignatureJudge
from ..judges.rewording import instructed
from ..memo import remembering
from ..metrics import RankingMetric
from ..sorters import Reranker
from ..types import Usage
from .affording import Sizes, calls_a_ranking, fitting, limit
from .counting import CallCounter, SpentError, counting
from .running import GuardedMetric, in_a_line, made, quiet
from .variants import with_settled_judge
from .whole_rankings import BestMeasured, NothingKept

RANDOM_SEARCH = {"max_bootstrapped_demos": 3, "num_candidate_programs": 6}
"""Options of the random search that is run where no optimizer is named."""
NONE = Sizes(0, 0)


@dataclass(frozen=True, slots=True)
class PlainRun:
    """What a DSPy optimizer made of the whole reranker, with a metric of whole rankings.

    Attributes:
        optimizer: Its name.
        program: What it returned; ``None`` where it failed.
        failed: Why there is no program, in words; empty where there is one.
        sizes: Training and validation queries that it was given.
        allowed: Calls to language models that it might make.
        calls: Those that it made, its own proposals and those answered by a cache included.
        usage: Of those that were answered, with how many a cache answered.
        cut: Whether its calls ran out; the program is the best that it had measured by then.
        seconds: In all.
    """

    optimizer: str
    program: Reranker | None
    failed: str = ""
    sizes: Sizes = NONE
    allowed: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cut: bool = False
    seconds: float = 0.0


def compile_plain(
    student: Reranker, *, trainset: Any, valset: Any, max_calls: int, optimizer: Any = None,
    options: Mapping[str, Any] | None = None, arguments: Mapping[str, Any] | None = None,
    metric: str = "nDCG@10", lm: Any = None, seed: int = 0,
) -> PlainRun:  # fmt: skip
    """The student compiled end to end by a DSPy optimizer: the baseline for our compilers.

    A pilot ranks one query; what that took says how many of the queries the optimizer is given.
    It ranks them whole and is told :class:`~dspy_rerank.metrics.RankingMetric` of
    each ranking. It gets as large a share of both sets as it is likely to come to an end with;
    when its calls run out nevertheless, the best program that it had measured on all its validation
    queries is taken. What would only hold it back is put right: no raw examples as
    demonstrations, which would never be shown (``max_labeled_demos=0``); GEPA's budget and
    SIMBA's steps are those that there are calls for; MIPROv2 takes no minibatch larger than its
    validation set, SIMBA none larger than its training set.

    Args:
        student: Any reranker; left as it is.
        trainset: Labelled queries, of which so many are drawn as fit.
        valset: Likewise.
        max_calls: To all language models together, those answered by DSPy's cache included. No
            further one is made.
        optimizer: As :class:`JudgeCompiler` takes it; ``None`` is
            ``BootstrapFewShotWithRandomSearch``.
        options: For the optimizer's class, beside the metric.
        arguments: For the optimizer's ``compile``, beside the sets.
        metric: What is maximised.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        seed: Of the draw of queries.

    Returns:
        The program and its bill. An optimizer that raises, returns nothing or measures nothing
        within its calls is no error but a run that says so.
    """
    begun = time.monotonic()
    if optimizer is None:
        optimizer, options = dspy.BootstrapFewShotWithRandomSearch, RANDOM_SEARCH
    work = _EndToEnd(metric, seed, dict(arguments or {}))
    with (
        dspy.context(lm=resolve_lm(lm)), remembering(NothingKept()), counting(max_calls) as counter
    ):  # fmt: skip
        program, failed = work.run(student, trainset, valset, optimizer, options or {}, counter)
    if program is not None and counter.failed * 2 > counter.calls:
        program, failed = None, f"{counter.failed} of {counter.calls} calls had no answer"
    name = getattr(optimizer, "__name__", type(optimizer).__name__)
    return PlainRun(
        work.name or name, program, failed, work.sizes, max_calls, counter.calls,
        counter.usage, counter.spent, round(time.monotonic() - begun, 1),
    )  # fmt: skip


class _EndToEnd:
    """One run of an optimizer on whole rankings."""

    def __init__(self, metric: str, seed: int, arguments: dict[str, Any]):
        self._whole = RankingMetric(metric)
        self.seed = seed
        self.arguments = arguments
        self.name = ""
        self.sizes = NONE
        self._metric = GuardedMetric(self._whole)
        self._best = BestMeasured()

    def run(
        self, student: Reranker, trainset: Any, valset: Any, optimizer: Any,
        options: Mapping[str, Any], counter: CallCounter,
    ) -> tuple[Reranker | None, str]:  # fmt: skip
        """The program, or why there is none."""
        train, val = (
            as_dataset(s).filter(lambda query: query.labelled) for s in (trainset, valset)
        )
        if not counter.most or not len(train) or not len(val):
            return None, "there is no call that it may make, or no labelled query"
        found = None
        try:
            start = _settled(student)
            built = made(optimizer, self._metric, _shown_only(optimizer, options))
            self.name = type(built).__name__
            most = self._rankings(start, train, val, counter)
            self.sizes = fitting(built, self.arguments, Sizes(len(train), len(val)), most)
            limit(built, most, self.sizes)
            found = self._compiled(built, start, train, val)
        except SpentError:
            found = self._best.program
        except Exception as error:
            return None, in_a_line(self._metric.error or error)
        if self._metric.error is not None:
            return None, in_a_line(self._metric.error)
        return found, "" if found else "its calls were spent before it had measured a program"

    def _rankings(self, start: Reranker, train: Any, val: Any, counter: CallCounter) -> float:
        """How many rankings there are calls for, once a pilot has shown what one takes."""
        pilot, example = val[0], val[:1].to_examples()[0]
        ranked = start(**example.inputs())
        self._whole(example, ranked)
        if ranked.ranking.degraded:
            raise ModelError(f"the pilot could not be ranked: {', '.join(ranked.ranking.reasons)}")
        left = (counter.most or 0) - counter.calls
        return left / calls_a_ranking(start, [*train, *val], pilot, counter.calls)

    def _compiled(self, optimizer: Any, start: Reranker, train: Any, val: Any) -> Reranker:
        """What the optimizer returns."""
        accepted = inspect.signature(optimizer.compile).parameters
        rng = random.Random(self.seed)
        sets = {
            "trainset": rng.sample(train.to_examples(), self.sizes.train),
            "valset": rng.sample(val.to_examples(), self.sizes.val),
        }
        given = {**self.arguments, **sets}
        if given.get("minibatch_size", 35) > self.sizes.val:
            given["minibatch"] = False
        self._best.least = len(sets["valset" if "valset" in accepted else "trainset"])
        callbacks = [*(dspy.settings.callbacks or []), self._best]
        with quiet(), dspy.context(callbacks=callbacks):
            found = optimizer.compile(start, **{n: given[n] for n in given if n in accepted})
        if not isinstance(found, Reranker):
            raise CompileError(f"it returned {type(found).__name__} instead of the program")
        return found


def _settled(student: Reranker) -> Reranker:
    """A copy that no optimizer has marked as compiled, with the judge that will answer.

    Its signatures are its own: InferRules writes into the classes that it finds.
    """
    judge = getattr(student, "judge", None)
    copy = with_settled_judge(student) if isinstance(judge, SignatureJudge) else student.deepcopy()
    copy._compiled = False  # pyright: ignore[reportPrivateUsage]
    for predictor in copy.predictors():
        signature: Any = predictor.signature
        predictor.signature = instructed(signature, signature.instructions)
    return copy


def _shown_only(optimizer: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, without raw examples as demonstrations where the optimizer would add them."""
    takes = callable(optimizer) and "max_labeled_demos" in inspect.signature(optimizer).parameters
    return {**options, **({"max_labeled_demos": 0} if takes else {})}
