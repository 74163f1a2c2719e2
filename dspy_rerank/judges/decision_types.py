"""The answers of judges as DSPy's decision types: a level, a truth value, one of some options."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import dspy
import numpy as np
from dspy import experimental
from dspy.adapters.types.decision import decision_type

from ..errors import EvidenceError
from .rewording import instructed

Noul: Any = experimental.Noul
Score: Any = experimental.Score
Choice: Any = experimental.Choice
TYPES: tuple[Any, ...] = (Noul, Score, Choice)
MOST_LEVELS = 10
"""DSPy's limit for a score."""
COARSE = 6
"""Levels of a scale that has more, or none in whole numbers."""
ALWAYS_ASKED = {
    "pointwise": "How well does the passage answer the query?",
    "pairwise": "Which passage answers the query better?",
    "setwise": "Which passage answers the query best?",
}
"""What is asked where the instructions are blank."""


def decision_field(field: Any) -> bool:
    """Whether a field was declared with a decision type, bare ``bool`` and ``Literal`` aside."""
    declared = (field.annotation, *field.metadata)
    return any(isinstance(kind, type) and issubclass(kind, TYPES) for kind in declared)


def declared_type(field: Any) -> Any:
    """The decision type that a field's own annotation stands for, or ``None``."""
    return decision_type(field)


def levels(scale: Sequence[float]) -> tuple[float, ...]:
    """The grades that a model chooses among; those between them are their expectations."""
    low, high = scale
    whole = float(low).is_integer() and float(high).is_integer()
    if whole and high - low < MOST_LEVELS:
        return tuple(float(level) for level in range(math.floor(low), math.ceil(high) + 1))
    return tuple(float(level) for level in np.linspace(low, high, COARSE))


def rubric(instructions: str, grades: Sequence[float]) -> tuple[str, ...]:
    """What each grade means, from instructions like ``0 = off-topic``; else the bare numbers."""
    found = [_meaning(instructions, f"{grade:g}") for grade in grades]
    return tuple(text or "" for text in found) if all(found) else tuple(f"{g:g}" for g in grades)


def _meaning(instructions: str, grade: str) -> str:
    named = re.search(
        rf"(?<![\w.]){re.escape(grade)}\s*(?:=|:|means)\s*([^,;.\n]*\w)", instructions
    )
    return named[1].strip() if named else ""


def asked(signature: type[dspy.Signature], answer: str, kind: str) -> str:
    """The question that is put.

    An answer with a decision type brings its own as its description. Else it is the first
    paragraph of the instructions, which reach the model as a whole beside it.
    """
    field: Any = signature.output_fields[answer]
    described = str((field.json_schema_extra or {}).get("desc") or "")
    if decision_field(field) and described.strip() and not described.startswith("${"):
        return described
    first = re.split(r"\n\s*\n", signature.instructions.strip())[0]
    return " ".join(first.split()) or ALWAYS_ASKED[kind]


def with_decision(
    signature: type[dspy.Signature], answer: str, kind: Any, question: str
) -> type[dspy.Signature]:
    """The signature with the answer alone, as a decision: no text is written before it."""
    made: Any = signature
    for name in signature.output_fields:
        if name != answer:
            made = made.delete(name)
    made = made.with_updated_fields(answer, type_=kind, desc=question)
    return instructed(made, signature.instructions)


class Spread(NamedTuple):
    """What a decision told.

    Attributes:
        masses: Probability of each option or level, as the model gave it; they sum to one.
        at: Levels only: where their mean lies, from 0 for the lowest to 1 for the highest.
    """

    masses: Mapping[str, float]
    at: float | None = None


def spread(value: Any, anchors: Mapping[str, Any]) -> Spread | None:
    """The probabilities of a decision under its anchors; ``None`` if it is no decision.

    Weights multiply the probabilities of options. Cuts and a threshold bend the scale: a mean at
    a cut is put half-way between the levels that it parts, one at the threshold on one half; what
    lies between is put in proportion, so no order changes.
    """
    if isinstance(value, Noul) and value.probability is not None:
        yes = value.probability
        return Spread({"1": yes, "0": 1 - yes}, bent(yes, [anchors.get("threshold", 0.5)], 1))
    if not isinstance(value, Score | Choice) or not value.probabilities:
        return None
    given = {str(label): mass for label, mass in value.probabilities.items()}
    if isinstance(value, Score):
        total, top = sum(given.values()), len(given) - 1
        mean = sum(int(level) * mass for level, mass in given.items()) / total
        cuts = anchors.get("cuts") or [level + 0.5 for level in range(top)]
        return Spread({k: m / total for k, m in given.items()}, bent(mean, cuts, top) / top)
    weights = anchors.get("weights") or {}
    weighed = {label: mass * weights.get(label, 1.0) for label, mass in given.items()}
    total = sum(weighed.values())
    return Spread({k: m / total for k, m in weighed.items()}) if total else None


def bent(mean: float, cuts: Sequence[float], top: int) -> float:
    """A mean from 0 to ``top``, put so that each cut lies half-way between two levels.

    A threshold at an end of the scale leaves nothing beyond it.
    """
    knots = [(cut, level + 0.5) for level, cut in enumerate(cuts)]
    below = [(0.0, 0.0)] if cuts[0] > 0 else []
    above = [(float(top), float(top))] if cuts[-1] < top else []
    given, put = zip(*below, *knots, *above, strict=True)
    return float(np.interp(mean, given, put))


def refuse(why: str) -> EvidenceError:
    """The error for something that a decision model cannot do."""
    return EvidenceError(f"a decision model gives probabilities of given answers: {why}")


def saved_type(field: Any) -> Any:
    """A field's type as a program file takes it: decision types with their criteria."""
    if not decision_field(field):
        return field.annotation
    kind: Any = declared_type(field)
    name = next((known.__name__ for known in TYPES if issubclass(kind or object, known)), None)
    if kind is None or name is None:
        return field.annotation
    criteria = kind.criteria()
    if name == "Choice":
        values = get_args(kind.model_fields["value"].annotation)
        criteria = [[value, criteria[str(value)]] for value in values]
    return {"decision": name, "criteria": criteria}


def loaded_type(saved: Mapping[str, Any]) -> Any:
    """The decision type of :func:`saved_type`."""
    name, criteria = saved["decision"], saved["criteria"]
    if name == "Score":
        return Score[tuple(criteria)]
    if name == "Choice":
        return Choice[tuple((value, text) for value, text in criteria)]
    if not criteria:
        return Noul
    return Noul[tuple((key == "true", text) for key, text in criteria.items())]
