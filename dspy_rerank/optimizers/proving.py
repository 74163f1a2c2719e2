"""Compiling with proof: program and baselines on queries that nothing was chosen by."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import dspy

from ..defaults import resolve_lm
from ..errors import InputError
from ..evaluation import Evaluation, Progress, as_dataset, evaluate
from ..memo import remembering
from ..sorters import Reranker
from ..unlabelled import measurable
from .plain import PlainRun
from .recipe import Recipe
from .rows import COMPILED, PLAIN, UNCOMPILED, of_seed
from .seeds import SeedRun, chosen, compile_seeds
from .trials import SearchProgress


@dataclass(frozen=True, slots=True)
class Proven:
    """A compiled program and what speaks for it.

    Attributes:
        program: The one to use, with its card.
        found: Student, program, the programs of other seeds, and plain DSPy's, on test queries.
        runs: One for each seed; a single one where none were asked for.
        plain: Plain DSPy's; ``None`` where it was not asked for.
    """

    program: Reranker
    found: Evaluation
    runs: tuple[SeedRun, ...]
    plain: PlainRun | None = None


def compile_and_prove(
    student: Reranker, *, trainset: Any, valset: Any, testset: Any, recipe: Recipe | None = None,
    lm: Any = None, metric: str = "nDCG@10", seed: int = 0, seeds: int = 1, plain: bool = False,
    progress: Callable[[SearchProgress], None] | None = None, measured: Progress | None = None,
    **options: Any,
) -> Proven:  # fmt: skip
    """Compile a reranker, and measure it beside the baselines on queries that it never saw.

    Args:
        student: Left as it is.
        trainset: Labelled queries to learn from.
        valset: Labelled queries to choose by.
        testset: Labelled queries that nothing is chosen by.
        recipe: How; ``None`` searches wordings, demonstrations and the first stage's weight.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        metric: Such as ``nDCG@10``.
        seed: Of every draw.
        seeds: Compile so often, with ``seed``, ``seed + 1`` and so on, as
            :func:`~dspy_rerank.optimizers.seeds.compile_seeds` says. The program is the one that
            is best on the validation queries; test queries have no say.
        plain: Also let a plain DSPy optimizer work on the student end to end, within the calls
            that compiling took, with all seeds. See :meth:`Recipe.compile_plain`.
        progress: Called as a search goes on.
        measured: Called after each test query.
        options: Further arguments of :meth:`Recipe.compile`.

    Raises:
        InputError: As compiling does, or ``seeds`` is below 1.
        CompileError: Compiling failed, with every seed.
        ModelError: The model failed on most questions.
    """
    if seeds < 1:
        raise InputError(f"seeds={seeds}; expected at least 1")
    how, test = recipe or Recipe("search"), as_dataset(testset)
    sets = {"trainset": trainset, "valset": valset}
    given = {"lm": lm, "progress": progress, **options}
    with dspy.context(lm=resolve_lm(lm)):
        runs = compile_seeds(
            how, student, range(seed, seed + seeds), **sets, metric=metric, options=given
        )
        best = chosen(runs)
        assert best.program is not None
        baseline = _plain(how, student, sets, runs, given, metric, seed) if plain else None
        rows = _rows(student, best, runs, baseline)
        with remembering() if seeds > 1 else nullcontext():
            found = evaluate(rows, test, [metric], lm=lm, progress=measured)
    _note(best.program, found, runs, measurable(test))
    return Proven(best.program, found, runs, baseline)


def _plain(
    recipe: Recipe, student: Reranker, sets: Mapping[str, Any], runs: tuple[SeedRun, ...],
    options: Mapping[str, Any], metric: str, seed: int,
) -> PlainRun:  # fmt: skip
    most = sum(run.calls for run in runs)
    try:
        return recipe.compile_plain(
            student, **sets, lm=options["lm"], reflection_lm=options.get("reflection_lm"),
            max_calls=most, metric=metric, seed=seed,
        )  # fmt: skip
    except KeyboardInterrupt:  # what was compiled before is not lost with it
        return PlainRun("", None, "it was interrupted", allowed=most)


def _rows(
    student: Reranker, best: SeedRun, runs: tuple[SeedRun, ...], plain: PlainRun | None
) -> dict[str, Reranker]:
    """What is measured, by name."""
    rows: dict[str, Any] = {UNCOMPILED: student, COMPILED: best.program}
    if plain is not None and plain.program is not None:
        rows[PLAIN] = plain.program
    for run in runs:
        if run is not best and run.program is not None:
            rows[of_seed(run.seed)] = run.program
    return rows


def _note(program: Reranker, found: Evaluation, runs: tuple[SeedRun, ...], test: Any) -> None:
    """Write into the card what the test queries and the other seeds have said."""
    (metric,) = found.metrics
    program.card["test"] = {
        "queries": len(test),
        "fingerprint": test.fingerprint,
        **{row.name: round(row.mean(metric).mean, 6) for row in found.rows},
    }
    if len(runs) > 1:
        program.card["seeds"] = [run.to_dict() for run in runs]
