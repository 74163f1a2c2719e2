"""Listwise: a whole group, best first."""

from collections.abc import Sequence
from typing import Any

import dspy

from ..reading.answers import read_order
from ..reading.labels import numbers, show
from ..types import Judgment
from .base import SignatureJudge
from .signatures import OrderPassages


class ListwiseJudge(SignatureJudge):
    """Orders a group of passages, in one call (Sun et al. 2023, arXiv:2304.09542).

    Args:
        signature: Inputs query and passages, output the order.
        shuffle: Show each group in a permutation derived from the ranking's seed, the query and
            the group, against a preference for early places.
        options: See :class:`SignatureJudge`.
    """

    KIND = "listwise"
    DEFAULT = OrderPassages

    def __init__(
        self,
        signature: type[dspy.Signature] | str | None = None,
        *,
        shuffle: bool = False,
        **options: Any,
    ):
        super().__init__(signature, shuffle=shuffle, **options)

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        return show(passages, numbers(len(passages)))

    def _read(self, text: str, shown: int) -> Judgment:
        return read_order(text, numbers(shown))

    def _written(self, gold: Judgment, query: str, shown: int) -> str:
        names = numbers(shown)
        return " > ".join(f"[{names[place]}]" for place in gold.order or ()) or "[]"
