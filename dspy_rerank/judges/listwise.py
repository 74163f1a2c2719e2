"""Listwise: a whole group, best first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from ..reading.answers import read_choice, read_order
from ..reading.labels import letters, numbers, show
from ..types import Judgment
from .base import SignatureJudge
from .setwise import NONE, choices
from .signatures import FirstPassage, OrderPassages


class ListwiseJudge(SignatureJudge):
    """Orders a group of passages, in one call (Sun et al. 2023, arXiv:2304.09542).

    With ``evidence="logprobs"`` the model names only the best passage, by a letter, and the order
    is that of the letters' probabilities at this one token (FIRST, Reddy et al. 2024,
    arXiv:2406.15657). Passages that are not among the alternatives given (20 at most) follow in
    the order shown, which the judgment's reason says. ``auto`` has the whole order written.

    Args:
        signature: Inputs query and passages, output the order.
        shuffle: Show each group in a permutation derived from the ranking's seed, the query and
            the group, against a preference for early places.
        options: See :class:`SignatureJudge`.
    """

    KIND = "listwise"
    DEFAULT = OrderPassages
    AUTO_TOKENS = False

    def __init__(
        self,
        signature: type[dspy.Signature] | str | None = None,
        *,
        shuffle: bool = False,
        **options: Any,
    ):
        super().__init__(signature, shuffle=shuffle, **options)

    def _default(self, evidence: str) -> type[dspy.Signature]:
        return FirstPassage if evidence == "logprobs" else OrderPassages

    @property
    def _by_first_token(self) -> bool:
        return self.settings["evidence"] == "logprobs"

    def _names(self, shown: int) -> tuple[str, ...]:
        return letters(shown) if self._by_first_token else numbers(shown)

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        return show(passages, self._names(len(passages)))

    def _read(self, text: str, shown: int) -> Judgment:
        if not self._by_first_token:
            return read_order(text, numbers(shown))
        named = read_choice(text, letters(shown))
        return _led(named) if named.known else read_order(text, letters(shown))

    def _written(self, gold: Judgment, query: str, shown: int) -> str:
        names = self._names(shown)
        if self._by_first_token:
            return names[gold.order[0]] if gold.order else NONE
        return " > ".join(f"[{names[place]}]" for place in gold.order or ()) or "[]"

    def _labels(self, shown: int) -> dict[str, tuple[str, ...]]:
        return choices(shown)

    def _label(self, judgment: Judgment) -> str:
        return letters(len(judgment.group))[judgment.order[0]] if judgment.order else NONE

    def _weighed(self, judgment: Judgment, masses: Mapping[str, float]) -> Judgment:
        """All passages by the probability of being named as the best."""
        sure = masses[self._label(judgment)]
        if judgment.order is None:
            return replace(judgment, confidence=sure)
        each = tuple(masses[name] for name in letters(len(judgment.group)))
        order = tuple(sorted(judgment.group, key=lambda place: -each[place]))
        missed = each.count(0.0)
        why = f"{missed} of {len(each)} passages not among the alternatives" if missed else ""
        return replace(
            judgment, order=order, confidence=max(each), probabilities=each, reason=why,
            status="repaired" if missed else "ok",
        )  # fmt: skip


def _led(named: Judgment) -> Judgment:
    """A choice as an order that knows its first place only."""
    if named.best is None:
        return replace(named, kind="listwise")
    rest = tuple(place for place in named.group if place != named.best)
    why = f"only the best of {len(named.group)} was named"
    return replace(
        named, kind="listwise", best=None, order=(named.best, *rest), status="repaired", reason=why
    )
