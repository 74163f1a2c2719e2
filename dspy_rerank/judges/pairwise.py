"""Pairwise: which of two passages is better, asked in both orders."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from ..reading._claims import PREFERENCE
from ..reading.answers import read_preference
from ..reading.labels import letters, neutralise, show
from ..types import Group, Judgment
from .base import SignatureJudge
from .signatures import PreferPassage
from .votes import voted

TIE = "Tie"
SPELLINGS = {
    "A": ("left", "first", "1"),
    "B": ("right", "second", "2"),
    TIE: ("tied", "equal", "equally", "draw", "same", "none", "neither", "nothing"),
}


class PairwiseJudge(SignatureJudge):
    """Prefers one of two passages, in two calls (one with ``swap=False``).

    A model often favours a place rather than a passage. With ``swap`` both orders are asked: only
    agreement is a preference, disagreement is a tie (Qin et al. 2023, arXiv:2306.17563).

    Args:
        signature: Inputs query and passages (or two passage fields), output the winner.
        swap: Ask both orders.
        options: See :class:`SignatureJudge`. With log-probabilities the winner is the one with
            the higher probability, averaged over both orders, a tie counting half for each.
    """

    KIND = "pairwise"
    DEFAULT = PreferPassage
    GRAMMAR = PREFERENCE

    def __init__(
        self,
        signature: type[dspy.Signature] | str | None = None,
        *,
        swap: bool = True,
        **options: Any,
    ):
        super().__init__(signature, swap=swap, **options)

    def presentations(self, group: Group, query: str, seed: int) -> tuple[Group, ...]:
        """The pair as it stands and, with ``swap``, turned round."""
        orders = (group, group[::-1]) if self.settings["swap"] else (group,)
        return orders * self.settings["votes"]

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        if len(self.roles.passages) == 2:
            return tuple(neutralise(text) for text in passages)
        return show(passages, letters(len(passages)))

    def _read(self, text: str, shown: int) -> Judgment:
        return read_preference(text, letters(shown))

    def _written(self, gold: Judgment, query: str, shown: int) -> str:
        return "Tie" if gold.best is None else letters(2)[gold.best]

    def _labels(self, shown: int) -> dict[str, tuple[str, ...]]:
        return SPELLINGS

    def _label(self, judgment: Judgment) -> str:
        return TIE if judgment.best is None else letters(2)[judgment.best]

    def _weighed(self, judgment: Judgment, masses: Mapping[str, float]) -> Judgment:
        both = tuple(masses[name] + masses[TIE] / 2 for name in letters(2))
        sure = masses[TIE] if judgment.best is None else both[judgment.best]
        return replace(judgment, confidence=sure, probabilities=both)

    def _combined(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        """Agreement of all orders, else a tie; unknown as soon as one order is."""
        if self.settings["votes"] > 1:
            return voted(group, judgments)
        first = judgments[0]
        if len(judgments) == 1:
            return replace(first, group=group)
        raw = "\n".join(judgment.raw for judgment in judgments)
        asks = sum(judgment.asks for judgment in judgments)
        both = replace(first, group=group, raw=raw, asks=asks)
        lost = next((judgment for judgment in judgments if not judgment.known), None)
        if lost is not None:
            why = f"one order was not answered: {lost.reason}"
            return replace(without_confidence(both, why), status="unknown", best=None, tie=False)
        return _agreed(both, judgments)


def without_confidence(judgment: Judgment, reason: str) -> Judgment:
    """The judgment with nothing said of how sure it is."""
    return replace(
        judgment, confidence=None, confidence_source="none", probabilities=None, reason=reason
    )


def _agreed(both: Judgment, judgments: Sequence[Judgment]) -> Judgment:
    winners = {None if j.tie else j.best for j in judgments}
    if all(j.confidence is not None for j in judgments):
        return _averaged(both, judgments, winners)
    reasons = dict.fromkeys(j.reason for j in judgments if j.reason)
    if len(winners) == 1 and None not in winners:
        repaired = any(j.status == "repaired" for j in judgments)
        agreed = replace(both, status="repaired") if repaired else both
        return without_confidence(agreed, "; ".join(reasons))
    silent = all(j.status == "none" for j in judgments)
    why = [] if winners == {None} else ["the two orders disagree"]
    tied = replace(both, status="none" if silent else "ok", best=None, tie=True)
    return without_confidence(tied, "; ".join([*why, *reasons]))


def _averaged(both: Judgment, judgments: Sequence[Judgment], winners: set[Any]) -> Judgment:
    """The winner by mean probability over the orders, which cancels a preference for a place."""
    first, second = both.group
    mean = sum(_probability(j, first) for j in judgments) / len(judgments)
    told = replace(both, status="ok", probabilities=(mean, 1 - mean))
    if winners == {None}:
        sure = sum(j.confidence or 0.0 for j in judgments) / len(judgments)
        return replace(told, confidence=sure)
    best = first if mean > 0.5 else second if mean < 0.5 else None
    return replace(told, best=best, tie=best is None, confidence=max(mean, 1 - mean))


def _probability(judgment: Judgment, position: int) -> float:
    """That the passage at a position is the better one."""
    if judgment.probabilities is not None:
        return judgment.probabilities[judgment.group.index(position)]
    sure = judgment.confidence or 0.0
    if judgment.best is None:
        return 0.5
    return sure if judgment.best == position else 1 - sure
