"""Recipes: a way to compile, in a TOML file that the command line can run."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from ..errors import InputError
from ..sorters import Reranker
from .judge_compiler import JudgeCompiler
from .search import RerankerSearch

OPTIMIZERS = (
    "LabeledFewShot",
    "BootstrapFewShot",
    "BootstrapFewShotWithRandomSearch",
    "MIPROv2",
    "SIMBA",
    "COPRO",
    "GEPA",
    "InferRules",
)
REFLECTION = {
    "MIPROv2": "prompt_model",
    "SIMBA": "prompt_model",
    "COPRO": "prompt_model",
    "GEPA": "reflection_lm",
}
"""Where an optimizer takes the language model that writes instructions."""
JUDGE = ("optimizer", "options", "arguments", "per_query", "window", "max_demo_tokens")
SEARCH = ("trials", "instructions", "demos", "demo_draws", "max_demo_tokens", "cost", "max_calls")


@dataclass(frozen=True)
class Recipe:
    """A judge compiler, a search over rerankers, or one after the other.

    Attributes:
        name: Of the file.
        description: For people.
        judge: Arguments of :class:`JudgeCompiler`; empty for none.
        search: Arguments of :class:`RerankerSearch`; empty for none. After a judge compiler it
            chooses between the student's and the compiled prompt.
    """

    name: str
    description: str = ""
    judge: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)

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
            search: Further arguments of the search, before those of the recipe.
        """
        given = {**self.search, **search}
        sets = {"trainset": trainset, "valset": valset}
        if not self.judge:
            return RerankerSearch(lm=lm, seed=seed, **given).compile(student, **sets)
        judged = self._compiler(lm, reflection_lm, seed).compile(student, **sets)
        if not self.search:
            return judged
        instructions = given.pop("instructions", None)
        chosen = RerankerSearch(
            lm=lm, seed=seed, instructions=instructions, candidates={"compiled": judged}, **given
        ).compile(student, **sets)
        chosen.card["judge"] = judged.card
        chosen.card["spent"] = _sum(chosen.card["spent"], judged.card["spent"])
        return chosen

    def _compiler(self, lm: Any, reflection_lm: Any, seed: int) -> JudgeCompiler:
        arguments = dict(self.judge)
        name = arguments.pop("optimizer")
        options = dict(arguments.pop("options", {}))
        if name in REFLECTION and (reflection_lm or lm) is not None:
            options[REFLECTION[name]] = reflection_lm or lm
        return JudgeCompiler(optimizer_class(name), options, lm=lm, seed=seed, **arguments)


def _sum(search: Mapping[str, Any], judge: Mapping[str, Any]) -> dict[str, Any]:
    """The bill of both steps; a price is known only when both are."""
    both = {
        name: None if None in (value, judge.get(name, 0)) else value + judge.get(name, 0)
        for name, value in search.items()
    }
    return {**both, "search_calls": search["calls"], "judge_compiler_calls": judge["calls"]}


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
    ``arguments``, ``per_query``, ``window``, ``max_demo_tokens``), a table ``[search]``
    (``trials``, ``instructions``, ``demos``, ``cost``, ``max_calls``...), or both.

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
    _check_names(source, "at the top", content, ("description", "judge", "search"))
    judge, search = content.get("judge", {}), content.get("search", {})
    if not judge and not search:
        raise InputError(f"{source} is not a recipe: expected a table [judge] or [search]")
    _check_names(source, "in [judge]", judge, JUDGE)
    _check_names(source, "in [search]", search, SEARCH)
    if judge:
        try:
            optimizer_class(judge.get("optimizer", ""))
        except InputError as error:
            raise InputError(f"{source}, [judge]: {error}") from None
    return Recipe(source.stem, str(content.get("description", "")), judge, search)


def _check_names(source: Path, where: str, found: Any, known: tuple[str, ...]) -> None:
    if not isinstance(found, Mapping):
        raise InputError(f"{source}: expected a table {where}, got {found!r}")
    strange = [name for name in found if name not in known]
    if strange:
        raise InputError(f"{source}: unknown {strange[0]!r} {where}; expected {', '.join(known)}")
