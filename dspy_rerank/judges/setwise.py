"""Setwise: the best of several passages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from ..reading.answers import read_choice
from ..reading.labels import letters, numbers, show
from ..types import Judgment
from .base import SignatureJudge
from .signatures import ChoosePassage

NONE = "None"


def choices(shown: int) -> dict[str, tuple[str, ...]]:
    """Letters, which may be written as numbers, and none of them."""
    named = dict(zip(letters(shown), ((number,) for number in numbers(shown)), strict=True))
    return {**named, NONE: ("neither", "nothing", "no")}


class SetwiseJudge(SignatureJudge):
    """Chooses the best of a group, in one call (Zhuang et al. 2023, arXiv:2310.09497).

    Args:
        signature: Inputs query and passages, output the best one's label.
        shuffle: Show each group in a permutation derived from the ranking's seed, the query and
            the group, against a preference for early places.
        options: See :class:`SignatureJudge`.
    """

    KIND = "setwise"
    DEFAULT = ChoosePassage

    def __init__(
        self,
        signature: type[dspy.Signature] | str | None = None,
        *,
        shuffle: bool = False,
        **options: Any,
    ):
        super().__init__(signature, shuffle=shuffle, **options)

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        return show(passages, letters(len(passages)))

    def _read(self, text: str, shown: int) -> Judgment:
        return read_choice(text, letters(shown))

    def _labels(self, shown: int) -> dict[str, tuple[str, ...]]:
        return choices(shown)

    def _label(self, judgment: Judgment) -> str:
        return NONE if judgment.best is None else letters(len(judgment.group))[judgment.best]

    def _weighed(self, judgment: Judgment, masses: Mapping[str, float]) -> Judgment:
        each = tuple(masses[name] for name in letters(len(judgment.group)))
        return replace(judgment, confidence=masses[self._label(judgment)], probabilities=each)

    def _written(self, gold: Judgment, query: str, shown: int) -> str:
        return "None" if gold.best is None else letters(shown)[gold.best]
