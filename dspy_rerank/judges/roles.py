"""Which field of a signature plays which part, so that any signature can be a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_origin

import dspy

from ..errors import InputError
from ..options import NAMES

QUERY_NAMES = ("query", "question")
PASSAGE_NAMES = ("passage", "document", "candidate", "text")
GROUP_NAMES = ("passages", "documents", "candidates")
PAIR_NAMES = (
    ("passage_a", "passage_b"),
    ("document_a", "document_b"),
    ("left", "right"),
    ("first", "second"),
    ("a", "b"),
)

RESERVED = frozenset(
    {"config", "demos", "documents", "lm", "prediction", "self", "signature", "text", "top_k"}
    | set(NAMES)
)
"""Inputs that would never reach a prompt."""


@dataclass(frozen=True)
class Roles:
    """The fields of one judge's signature by the part they play.

    Attributes:
        query: Input that holds the query; ``None`` when the query is what is scored.
        passages: Inputs that hold the passages: one for all, or one each for a pair.
        extras: Further inputs, which the caller of the reranker has to give.
        answer: The output that is read: always the last.
    """

    query: str | None
    passages: tuple[str, ...]
    extras: tuple[str, ...]
    answer: str

    def fill(
        self,
        signature: type[dspy.Signature],
        query: str,
        shown: Sequence[str],
        inputs: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The inputs of one call; ``shown`` are passages as rendered, labelled where needed."""
        values: dict[str, Any] = {} if self.query is None else {self.query: query}
        values.update({name: inputs[name] for name in self.extras if name in inputs})
        if len(self.passages) > 1:
            return {**values, **dict(zip(self.passages, shown, strict=True))}
        name = next(iter(self.passages))
        as_list = get_origin(signature.input_fields[name].annotation) is list
        return {**values, name: list(shown) if as_list else "\n".join(shown)}


def roles_of(signature: type[dspy.Signature], *, pair: bool = False, scored: str = "") -> Roles:
    """Find the parts of a signature by the names of its fields.

    Args:
        signature: Any signature with a query and passages among its inputs.
        pair: Two separate passage fields are accepted.
        scored: Name of the output that is scored rather than generated.

    Raises:
        InputError: A part is missing; the message lists the names that are looked for.
    """
    asked: Any = signature
    return _roles(asked, pair, scored)


@lru_cache(maxsize=512)
def _roles(signature: Any, pair: bool, scored: str) -> Roles:
    name, names = signature.__name__, tuple(signature.input_fields)
    query = next((known for known in QUERY_NAMES if known in names), None)
    if query is None and not scored:
        raise _missing(name, names, "the query", QUERY_NAMES)
    passages = _passages(names, pair)
    if not passages:
        wanted = (*PASSAGE_NAMES, *GROUP_NAMES, *("/".join(p) for p in PAIR_NAMES if pair))
        raise _missing(name, names, "the passages", wanted)
    extras = tuple(given for given in names if given != query and given not in passages)
    taken = next((given for given in extras if given in RESERVED), None)
    if taken is not None:
        raise InputError(
            f"signature {name} has an input {taken!r}, a name that a call of a reranker or of "
            "DSPy's Predict already uses; give it another name"
        )
    return Roles(query, passages, extras, scored or list(signature.output_fields)[-1])


def _passages(names: Sequence[str], pair: bool) -> tuple[str, ...]:
    both = [p for p in PAIR_NAMES if pair and set(p) <= set(names)]
    if both:
        return both[0]
    found = next((name for name in (*GROUP_NAMES, *PASSAGE_NAMES) if name in names), None)
    return () if found is None else (found,)


def _missing(signature: str, names: Sequence[str], part: str, wanted: Sequence[str]) -> InputError:
    return InputError(
        f"signature {signature} has no input for {part}: its inputs are "
        f"{', '.join(names) or 'none'}; name one of them {' or '.join(wanted)}"
    )
