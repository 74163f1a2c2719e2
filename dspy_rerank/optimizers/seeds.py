"""Compiling again with other seeds: how far the result hangs on the draw, and which to keep."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import dspy

from ..errors import CompileError, InputError, ModelError
from ..evaluation import as_dataset, rank_all, scored
from ..memo import remembering
from ..sorters import Reranker
from ..types import Usage
from ..unlabelled import measurable
from .affording import most_calls
from .counting import counting
from .recipe import Recipe
from .reuse import sharing_answers
from .running import in_a_line

LIMITS = ("max_calls", "max_cost", "timeout")
"""Options that all seeds have together."""
INTERRUPTED = "interrupted"
NOT_RUN = "not run, as no call or time was left for it"


@dataclass(frozen=True, slots=True)
class SeedRun:
    """One compiling of several that differ in their seed alone.

    Attributes:
        seed: Of all its draws.
        program: What came out; ``None`` where it failed or was not run.
        value: On the validation queries, which alone decide what is kept.
        calls: To language models, those answered by DSPy's cache included.
        cached: Those that it answered.
        failed: Why there is no program, in words.
        ranked: What ranking the validation queries once more took, where that was needed.
    """

    seed: int
    program: Reranker | None = None
    value: float = float("nan")
    calls: int = 0
    cached: int = 0
    failed: str = ""
    ranked: Usage = field(default_factory=Usage)

    @property
    def kept(self) -> bool:
        """Whether a change was kept, by whatever step of the recipe."""
        return self.program is not None and _kept(self.program.card)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; a seed that gave no program has no value."""
        value = None if self.program is None else round(self.value, 6)
        return {
            "seed": self.seed, "validation": value, "kept": self.kept, "calls": self.calls,
            "cached_calls": self.cached, "failed": self.failed,
        }  # fmt: skip


def compile_seeds(
    recipe: Recipe, student: Reranker, seeds: Sequence[int], *, trainset: Any, valset: Any,
    metric: str, options: Mapping[str, Any],
) -> tuple[SeedRun, ...]:  # fmt: skip
    """The student compiled with each seed, on the same queries.

    What one seed has paid for, the next ones know: with several, answers are remembered across
    them. Each has an equal share of what the ones before it have left of ``max_calls`` (where the
    validation queries are ranked once more, this is kept for it) and ``timeout``, and an equal
    share of ``max_cost``; only weights alone, for which all seeds ask the same questions, are
    fitted under the whole of ``max_calls`` each. A seed that fails, or for which nothing is left,
    is a run that says so; bad input is one, too, once a seed has given a program.

    Args:
        recipe: How.
        student: Left as it is.
        seeds: At least one, distinct.
        trainset: Labelled queries.
        valset: Labelled queries that programs are compared on. Where the recipe has only a judge
            compiler, whose own questions differ from seed to seed, they are ranked once more.
        metric: Of whole rankings.
        options: Further arguments of :meth:`Recipe.compile`. A study in a storage is called as it
            is said for the first seed, with ``-SEED`` behind it for the others.

    Raises:
        InputError: As compiling does with the first seed, or nothing is left for any.
        CompileError: All seeds failed; what the first one raised.
        ModelError: Likewise.
    """
    work = _Compiling(recipe, student, {"trainset": trainset, "valset": valset}, metric)
    again = work.measured_again and len(seeds) > 1
    ranking = most_calls(student, measurable(as_dataset(valset))) if again else 0
    budget = _Budget(recipe, options, len(seeds), ranking)
    runs: list[SeedRun] = []
    with _shared(len(seeds) > 1):
        for seed in seeds:
            given = budget.share(len(runs), seed)
            first = not any(run.program for run in runs)
            runs.append(work.run(seed, given, measure=len(seeds) > 1, first=first))
            budget.calls += runs[-1].calls
            if runs[-1].failed == INTERRUPTED:
                break
    if not any(run.program for run in runs):
        raise work.errors[0] if work.errors else InputError(f"no seed was compiled: {NOT_RUN}")
    return tuple(runs)


def chosen(runs: Sequence[SeedRun]) -> SeedRun:
    """The run to keep: the best on the validation queries, of equals the first."""
    return max((run for run in runs if run.program is not None), key=lambda run: run.value)


@dataclass(frozen=True)
class _Compiling:
    """What all seeds have in common."""

    recipe: Recipe
    student: Reranker
    sets: Mapping[str, Any]
    metric: str
    errors: list[Exception] = field(default_factory=list)

    @property
    def measured_again(self) -> bool:
        """Whether the recipe asks single questions alone, and nothing has ranked a query."""
        return bool(self.recipe.judge and not self.recipe.search and not self.recipe.weights)

    def run(
        self, seed: int, given: Mapping[str, Any] | None, *, measure: bool, first: bool
    ) -> SeedRun:
        """One of them, or why it is none; what others have paid for is not lost with it."""
        if given is None:
            return SeedRun(seed, failed=NOT_RUN)
        with counting() as counter:
            try:
                found = self.recipe.compile(
                    self.student, **self.sets, metric=self.metric, seed=seed, **given
                )
                value, ranked = self._value(found) if measure else (float("nan"), Usage())
            except (CompileError, ModelError, InputError, dspy.LMError) as error:
                if first and isinstance(error, InputError):
                    raise
                self.errors.append(error)
                return SeedRun(
                    seed, calls=counter.calls, cached=counter.cached, failed=in_a_line(error)
                )
            except KeyboardInterrupt:
                if first:
                    raise
                return SeedRun(seed, calls=counter.calls, cached=counter.cached, failed=INTERRUPTED)
        return SeedRun(seed, found, value, counter.calls, counter.cached, ranked=ranked)

    def _value(self, program: Reranker) -> tuple[float, Usage]:
        """On the validation queries, which rankings have told already unless questions have."""
        if self.measured_again:
            val = measurable(as_dataset(self.sets["valset"]))
            row = scored("", rank_all(program, val), val, [self.metric])
            return fmean(row.values[self.metric]), row.usage
        return float(program.card["validation"]["compiled"]), Usage()


class _Budget:
    """What is left for the seeds that are still to come."""

    def __init__(self, recipe: Recipe, options: Mapping[str, Any], seeds: int, ranking: int):
        self.options: dict[str, Any] = {
            name: value
            for name, value in options.items()
            if value is not None or name not in LIMITS
        }
        self.ranking = ranking
        self.seeds = seeds
        self.calls = 0
        self._begun = time.monotonic()
        self._weights_only = bool(recipe.weights) and not recipe.judge and not recipe.search

    def share(self, done: int, seed: int) -> dict[str, Any] | None:
        """The options of the next seed; ``None`` where nothing is left for it."""
        given, left = dict(self.options), self.seeds - done
        if self.seeds == 1:
            return given
        if "max_calls" in given and not self._weights_only:
            given["max_calls"] = (given["max_calls"] - self.calls) // left - self.ranking
        if "max_cost" in given:
            given["max_cost"] = given["max_cost"] / self.seeds
        if "timeout" in given:
            given["timeout"] = (given["timeout"] - (time.monotonic() - self._begun)) / left
        if given.get("storage") is not None and done:
            given["study_name"] = f"{given.get('study_name', 'rerank')}-{seed}"
        late = given.get("timeout", 1.0) <= 0
        return None if given.get("max_calls", 1) < 1 or late else given


@contextmanager
def _shared(several: bool) -> Iterator[None]:
    """Answers remembered across several compilings; one alone remembers as it always does."""
    if not several:
        yield
        return
    with remembering(), sharing_answers():
        yield


def _kept(card: Mapping[str, Any]) -> bool:
    steps = (card, card.get("search") or {})
    return any((step.get("chosen") or {}).get("kept") for step in steps)
