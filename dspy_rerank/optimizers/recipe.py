"""Recipes: a way to compile, in a TOML file that the command line can run."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from ..errors import InputError
from ..judges import Panel, PointwiseJudge
from ..sorters import Reranker
from .candidates import read_candidates
from .judge_compiler import JudgeCompiler
from .plain import PlainRun, compile_plain
from .reanchor import ReAnchor
from .search import RerankerSearch
from .shares import enough, kept_to_compare, kept_to_weigh, left, summed, without
from .splits import measured
from .weight_compiler import WeightCompiler, members

OPTIMIZERS = (
    "LabeledFewShot",
    "BootstrapFewShot",
    "BootstrapFewShotWithRandomSearch",
    "MIPROv2",
    "SIMBA",
    "COPRO",
    "GEPA",
    "InferRules",
    "ReAnchor",
)
REFLECTION = {
    "MIPROv2": "prompt_model",
    "SIMBA": "prompt_model",
    "COPRO": "prompt_model",
    "GEPA": "reflection_lm",
}
"""Where an optimizer takes the language model that writes instructions."""
TABLES = ("judge", "search", "weights")
JUDGE = (
    "optimizer", "options", "arguments", "per_query", "window", "margin", "max_demo_tokens",
    "max_calls",
)  # fmt: skip
SEARCH = (
    "trials", "candidates", "instructions", "demos", "demo_draws", "max_demo_tokens", "cost",
    "lms", "choose_by", "sure", "max_calls", "max_cost",
)  # fmt: skip
WEIGHTS = ("judges", "penalties", "parts", "sure", "max_calls")
COMPARING = "comparing two prompts on the queries to choose by"
SHARED = ("metric", "progress", "max_calls")
"""Arguments of a search that weighing takes, too."""


@dataclass(frozen=True)
class Recipe:
    """A judge compiler, a search over rerankers, weights, or one after the other.

    Attributes:
        name: Of the file.
        description: For people.
        judge: Arguments of :class:`JudgeCompiler`; empty for none.
        search: Arguments of :class:`RerankerSearch`; empty for none. After a judge compiler it
            chooses between the student's and the compiled prompt.
        weights: Arguments of :class:`WeightCompiler`; empty for none. ``judges`` are arguments of
            further pointwise judges that may be taken into a panel with the student's.
    """

    name: str
    description: str = ""
    judge: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, Any] = field(default_factory=dict)

    def compile(
        self, student: Reranker, *, trainset: Any, valset: Any, lm: Any = None,
        reflection_lm: Any = None, seed: int = 0, **search: Any,
    ) -> Reranker:  # fmt: skip
        """A compiled copy of a reranker.

        Args:
            student: Over a signature judge.
            trainset: Labelled queries to learn from.
            valset: Labelled queries to choose by.
            lm: Answers the questions.
            reflection_lm: Writes instructions; ``None`` is the same model.
            seed: Of every draw.
            search: Further arguments of the search, before those of the recipe. ``max_calls``
                holds for all steps together: two rankings of the queries that a search goes by
                are kept for it behind a judge compiler, and for weights behind either one of all
                queries by each judge that they may find. Of ``max_cost`` and ``timeout`` the search
                has what the judge compiler, which they cannot stop, has left.

        Raises:
            InputError: ``max_cost`` or ``timeout`` without a search, which alone keeps to them, or
                weights for a student or a candidate that has no scores to weigh.
        """
        self._check_limits(search)
        sets = {"trainset": trainset, "valset": valset}
        if not self.weights:
            return self._prompted(student, sets, lm, reflection_lm, seed, search)
        if not self.judge and not self.search:
            return self._weighed(student, sets, lm, seed, search)
        kept = self._kept_to_weigh(student, sets)
        first = without(search, kept, "weighing the judges on all queries")
        found = self._prompted(student, sets, lm, reflection_lm, seed, first)
        rest = {**search, **left(search, found.card["spent"])}
        weighed = self._weighed(found, sets, lm, seed, rest)
        weighed.card["search"] = found.card
        weighed.card["spent"] = summed(weighed.card["spent"], found.card["spent"])
        return weighed

    def _prompted(
        self, student: Reranker, sets: Any, lm: Any, reflection_lm: Any, seed: int, search: Any
    ) -> Reranker:
        """With a compiled prompt and settings."""
        given = {**self.search, **search}
        if given.get("instructions") is False:
            given["instructions"] = None
        others = read_candidates(given.pop("candidates", ()))
        if not self.judge:
            search_only = RerankerSearch(lm=lm, seed=seed, candidates=others, **given)
            return search_only.compile(student, **sets)
        kept = self._kept_to_compare(student, sets, given, seed)
        limits = without(search, kept, COMPARING)
        enough(given.get("max_calls"), kept, COMPARING)
        most = limits.get("max_calls")
        judged = self._compiler(lm, reflection_lm, seed, most).compile(student, **sets)
        if not self.search:
            return judged
        given.update(left(search, judged.card["spent"]))
        instructions = given.pop("instructions", None)
        chosen = RerankerSearch(
            lm=lm, seed=seed, instructions=instructions,
            candidates={"compiled": judged, **others}, **given,
        ).compile(student, **sets)  # fmt: skip
        chosen.card["judge"] = judged.card
        total = summed(chosen.card["spent"], judged.card["spent"])
        parts = {"search": chosen.card["spent"]["calls"], "judge_compiler": judged.card["spent"]}
        chosen.card["spent"] = {
            **total, "search_calls": parts["search"],
            "judge_compiler_calls": parts["judge_compiler"]["calls"],
        }  # fmt: skip
        return chosen

    def _weighed(
        self, student: Reranker, sets: Any, lm: Any, seed: int, search: Mapping[str, Any]
    ) -> Reranker:
        """With compiled weights, of further judges too where the recipe names some."""
        own = {name: value for name, value in self.weights.items() if name != "judges"}
        shared = {name: search[name] for name in SHARED if name in search}
        further = self._further()
        widened = with_judges(student, further) if further else student
        return WeightCompiler(lm=lm, seed=seed, **{**own, **shared}).compile(widened, **sets)

    def _further(self) -> list[PointwiseJudge]:
        """Judges that weights may take in."""
        return [PointwiseJudge(**arguments) for arguments in self.weights.get("judges", ())]

    def _kept_to_compare(self, student: Reranker, sets: Any, given: Any, seed: int) -> int:
        """Calls that a search behind the judge compiler has at least."""
        if not self.search:
            return 0
        by = given.get("choose_by", "validation")
        return kept_to_compare(student, measured(sets["trainset"], sets["valset"], seed, by)[1])

    def _kept_to_weigh(self, student: Reranker, sets: Any) -> int:
        """Calls for weighing the judges of whatever the search chooses, the dearest ones."""
        others = read_candidates(self.search.get("candidates", ())).values()
        found = [members(reranker)[0] for reranker in (student, *others)]
        return max(kept_to_weigh([*judges, *self._further()], sets) for judges in found)

    def _check_limits(self, search: Mapping[str, Any]) -> None:
        for name in ("max_cost", "timeout"):
            if search.get(name) is not None and not self.search and (self.judge or self.weights):
                raise InputError(
                    f"{name}={search[name]} limits a search, and recipe {self.name!r} has none; "
                    "use max_calls"
                )

    def _compiler(self, lm: Any, reflection_lm: Any, seed: int, most: int | None) -> Any:
        """Of the judge, with at most so many calls, or fewer where the recipe says so."""
        arguments = dict(self.judge)
        if most is not None:
            arguments["max_calls"] = min(most, self.judge.get("max_calls") or most)
        name, options = arguments.pop("optimizer"), self._options(lm, reflection_lm)
        arguments.pop("options", None)
        if name == "ReAnchor":
            known = ("per_query", "window", "max_calls")
            return ReAnchor(lm=lm, seed=seed, **{n: arguments[n] for n in known if n in arguments})
        return JudgeCompiler(optimizer_class(name), options, lm=lm, seed=seed, **arguments)

    def _options(self, lm: Any, reflection_lm: Any) -> dict[str, Any]:
        """Of the optimizer's class, with the model that writes instructions."""
        options, name = dict(self.judge.get("options", {})), self.judge["optimizer"]
        if name in REFLECTION and (reflection_lm or lm) is not None:
            options[REFLECTION[name]] = reflection_lm or lm
        return options

    def compile_plain(
        self, student: Reranker, *, lm: Any = None, reflection_lm: Any = None, **given: Any
    ) -> PlainRun:
        """The student compiled by the recipe's DSPy optimizer alone, on whole rankings.

        A recipe without one takes ``BootstrapFewShotWithRandomSearch``.

        Args:
            student: Left as it is.
            lm: Answers the questions.
            reflection_lm: Writes instructions; ``None`` is the same model.
            given: Further arguments of :func:`~dspy_rerank.optimizers.compile_plain`.
        """
        name = self.judge.get("optimizer")
        if name in (None, "ReAnchor"):
            return compile_plain(student, lm=lm, **given)
        return compile_plain(
            student, optimizer=optimizer_class(name), options=self._options(lm, reflection_lm),
            arguments=self.judge.get("arguments"), lm=lm, **given,
        )  # fmt: skip


def with_judges(student: Reranker, further: Sequence[Any]) -> Reranker:
    """The student with a panel in which the further judges have no weight yet.

    Raises:
        InputError: It has no judge that could sit in a panel.
    """
    judges, weights = members(student)
    made = student.deepcopy()
    made.judge = Panel([*judges, *further], weights=[*weights, *(0.0 for _ in further)])
    return made


def optimizer_class(name: str) -> Any:
    """A DSPy optimizer's class by its name.

    Raises:
        InputError: It is not one that improves a prompt.
    """
    if name not in OPTIMIZERS:
        raise InputError(f"unknown optimizer {name!r}; expected one of {', '.join(OPTIMIZERS)}")
    return dspy.GEPA if name == "GEPA" else getattr(dspy.teleprompt, name)


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe.

    A file has ``description``, and a table ``[judge]`` (``optimizer``, its ``options`` and
    ``arguments``, ``per_query``, ``window``, ``margin``, ``max_demo_tokens``), a table ``[search]``
    (``trials``, ``candidates``, ``demos``, ``cost``, ``max_calls``...; ``instructions`` may be
    ``false`` for none but the judge's own), a table
    ``[weights]`` (``judges``, ``penalties``, ``parts``, ``sure``), or several. ``candidates`` are
    tables as :func:`~dspy_rerank.optimizers.candidates.read_candidates` takes them.

    Raises:
        InputError: The file is not there, is not TOML, or has names that mean nothing.
    """
    source = Path(path)
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{source}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{source} is not a recipe: {error}") from None
    _check_names(source, "at the top", content, ("description", *TABLES))
    judge, search, weights = (content.get(name, {}) for name in TABLES)
    if "weights" in content and not weights:
        weights = {"sure": 1.0}
    if not judge and not search and "weights" not in content:
        raise InputError(
            f"{source} is not a recipe: expected a table [judge], [search] or [weights]"
        )
    _check_names(source, "in [judge]", judge, JUDGE)
    _check_names(source, "in [search]", search, SEARCH)
    _check_names(source, "in [weights]", weights, WEIGHTS)
    try:
        read_candidates(search.get("candidates", ()))
    except InputError as error:
        raise InputError(f"{source}, [search]: {error}") from None
    if judge:
        try:
            optimizer_class(judge.get("optimizer", ""))
        except InputError as error:
            raise InputError(f"{source}, [judge]: {error}") from None
    return Recipe(source.stem, str(content.get("description", "")), judge, search, weights)


def _check_names(source: Path, where: str, found: Any, known: tuple[str, ...]) -> None:
    if not isinstance(found, Mapping):
        raise InputError(f"{source}: expected a table {where}, got {found!r}")
    strange = [name for name in found if name not in known]
    if strange:
        raise InputError(f"{source}: unknown {strange[0]!r} {where}; expected {', '.join(known)}")
