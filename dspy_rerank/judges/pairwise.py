"""Pairwise: which of two passages is better, asked in both orders."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dspy

from .. import calls
from ..certainty import label_probabilities
from ..reading.answers import read_preference
from ..reading.labels import letters, neutralise, show
from ..types import Group, Judgment
from .base import SignatureJudge
from .protocol import Question
from .signatures import PreferPassage


class PairwiseJudge(SignatureJudge):
    """Prefers one of two passages, in two calls (one with ``swap=False``).

    A model often favours a place rather than a passage. With ``swap`` both orders are asked: only
    agreement is a preference, disagreement is a tie (Qin et al. 2023, arXiv:2306.17563).

    Args:
        signature: Inputs query and passages (or two passage fields), output the winner.
        swap: Ask both orders.
        options: See :class:`SignatureJudge`; ``evidence`` may be ``logprobs``, which gives the
            probability of the winner, averaged over both orders.
    """

    KIND = "pairwise"
    DEFAULT = PreferPassage
    EVIDENCE = ("auto", "generate", "logprobs")

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
        return (group, group[::-1]) if self.settings["swap"] else (group,)

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        if len(self.roles.passages) == 2:
            return tuple(neutralise(text) for text in passages)
        return show(passages, letters(len(passages)))

    def _config(self, question: Question) -> dict[str, Any]:
        config = super()._config(question)
        if self.settings["evidence"] == "logprobs":
            return {**config, "logprobs": True, "top_logprobs": 20}
        return config

    def _read(self, text: str, shown: int) -> Judgment:
        return read_preference(text, letters(shown))

    def _written(self, gold: Judgment, query: str, shown: int) -> str:
        return "Tie" if gold.best is None else letters(2)[gold.best]

    def _judge(self, reply: calls.Reply, question: Question) -> Judgment:
        judgment = super()._judge(reply, question)
        if not judgment.known or judgment.best is None or not reply.tokens:
            return judgment
        names = letters(2)
        masses = label_probabilities(reply.tokens, dict.fromkeys(names, ()), names[judgment.best])
        if masses is None:
            return judgment
        sure = masses[names[judgment.best]]
        return replace(judgment, confidence=sure, confidence_source="logprob", evidence="logprobs")

    def combine(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        """Agreement of all orders, else a tie; unknown as soon as one order is."""
        first = judgments[0]
        if len(judgments) == 1:
            return replace(first, group=group)
        raw = "\n".join(judgment.raw for judgment in judgments)
        both = replace(first, group=group, raw=raw, asks=len(judgments))
        lost = next((judgment for judgment in judgments if not judgment.known), None)
        if lost is not None:
            return replace(
                both, status="unknown", best=None, tie=False, confidence=None,
                confidence_source="none", reason=f"one order was not answered: {lost.reason}",
            )  # fmt: skip
        return _agreed(both, judgments)


def _agreed(both: Judgment, judgments: Sequence[Judgment]) -> Judgment:
    winners = {None if j.tie else j.best for j in judgments}
    status = "repaired" if any(j.status == "repaired" for j in judgments) else both.status
    if all(j.confidence is not None for j in judgments):
        return _averaged(both, judgments)
    if len(winners) == 1 and None not in winners:
        return replace(both, status=status)
    silent = all(j.status == "none" for j in judgments)
    why = "" if winners == {None} else "the two orders disagree"
    return replace(
        both, status="none" if silent else "ok", best=None, tie=True, confidence=None,
        confidence_source="none", reason=why,
    )  # fmt: skip


def _averaged(both: Judgment, judgments: Sequence[Judgment]) -> Judgment:
    """The winner by mean probability over the orders, which cancels a preference for a place."""
    first, second = both.group
    mean = sum(_probability(j, first) for j in judgments) / len(judgments)
    best = first if mean > 0.5 else second if mean < 0.5 else None
    return replace(both, status="ok", best=best, tie=best is None, confidence=max(mean, 1 - mean))


def _probability(judgment: Judgment, position: int) -> float:
    sure = judgment.confidence or 0.0
    return sure if judgment.best == position else 1 - sure
