"""Pointwise: one passage, one grade or one likelihood."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from .. import calls
from ..adapters import CONTINUING
from ..calls import scoring
from ..certainty import mean_logprob
from ..errors import InputError
from ..reading._claims import GRADE, YES_NO, Grammar
from ..reading.answers import read_grade, read_yes_no
from ..reading.labels import clean, neutralise
from ..types import Judgment
from .base import SignatureJudge
from .protocol import Question
from .roles import Roles, roles_of
from .signatures import ClaimOfPassage, GradeRelevance, QueryFromPassage
from .sureness import relevances

PARTS = ("whole", "title")


class PointwiseJudge(SignatureJudge):
    """Grades one passage at a time, in one call each.

    The default rubric is 0 off-topic, 1 tangential, 2 partial answer, 3 fully answers; numbers
    between levels are legal. A signature whose answer is a ``bool`` is read as yes (1) or no (0).

    Evidence:
        ``generate`` reads the grade. ``logprobs`` takes the expectation over the rubric's levels;
        of a yes or no that is the probability of yes. ``likelihood`` scores the query instead of
        generating an answer: the grade is the mean log probability of the query's tokens given
        the passage (query likelihood, Ponte and Croft 1998; with language models as rerankers:
        Sachan et al. 2022, arXiv:2204.07496). It is the one mode in which very small models rank
        at all. ``auto`` takes what the model offers.

    Args:
        signature: Inputs query and passage, output the grade; for ``likelihood`` input passage
            and output query.
        scale: Lowest and highest legal grade.
        claim: Scored instead of the query, for ``likelihood``: how likely the passage makes a
            statement about itself, such as "This page is an advertisement.". It says what kind of
            passage it is, whatever the query; weigh it in a :class:`Panel`.
        part: What of a passage is shown: ``whole``, or ``title``, its first line.
        options: See :class:`SignatureJudge`.
    """

    KIND = "pointwise"
    DEFAULT = GradeRelevance
    EVIDENCE = ("auto", "generate", "logprobs", "likelihood", "stated")

    def __init__(
        self,
        signature: type[dspy.Signature] | str | None = None,
        *,
        scale: Sequence[float] = (0, 3),
        evidence: str = "auto",
        claim: str | None = None,
        part: str = "whole",
        **options: Any,
    ):
        low, high = scale
        if not low < high:
            raise InputError(f"scale={tuple(scale)} is empty; expected the lowest grade first")
        if claim is not None and (evidence != "likelihood" or not claim.strip()):
            raise InputError(f"claim={claim!r} with evidence={evidence!r}; expected a statement to "
                             "be scored, and evidence='likelihood'")  # fmt: skip
        if part not in PARTS:
            raise InputError(f"part={part!r}; expected {' or '.join(PARTS)}")
        asked = ClaimOfPassage if claim is not None and signature is None else signature
        options = {**options, "claim": claim, "part": part}
        super().__init__(asked, evidence=evidence, scale=[low, high], **options)
        if evidence == "auto" and signature is None and not options.get("instructions"):
            defence = options.get("defence")
            self.by_likelihood = PointwiseJudge(evidence="likelihood", defence=defence)

    def _default(self, evidence: str) -> type[dspy.Signature]:
        return QueryFromPassage if evidence == "likelihood" else GradeRelevance

    @property
    def roles(self) -> Roles:
        """Which field of the signature plays which part."""
        scored = list(self.signature.output_fields)[-1] if self._by_likelihood else ""
        return roles_of(self.signature, scored=scored)

    @property
    def _by_likelihood(self) -> bool:
        return self.settings["evidence"] == "likelihood"

    def ready(self) -> SignatureJudge:
        """The judge for the model at hand: with ``auto``, by likelihood where that is offered."""
        other = getattr(self, "by_likelihood", None)
        if other is not None:
            lm = calls.current_lm(self.predict)
            if calls.offered_evidence(lm)[0] == "likelihood":
                return other.ready()
        return super().ready()

    def _adapter(self) -> dspy.Adapter:
        return CONTINUING if self._by_likelihood else super()._adapter()

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        if self.settings["part"] == "title":
            passages = [(text.strip().splitlines() or [""])[0] for text in passages]
        return tuple(neutralise(text) for text in passages)

    def _config(self, question: Question) -> dict[str, Any]:
        config = super()._config(question)
        if self._by_likelihood:
            return {**config, **scoring(clean(self.settings["claim"] or question.query))}
        return config

    def _judge(self, reply: calls.Reply, question: Question) -> Judgment:
        if self._by_likelihood:
            return _likelihood(reply)
        return super()._judge(reply, question)

    def settled(self, judgments: Sequence[Judgment]) -> Sequence[Judgment]:
        """Likelihoods with calibrated probabilities, which only all of a query together tell."""
        calibration = self.settings["calibration"]
        if not self._by_likelihood or calibration is None:
            return judgments
        return relevances(judgments, calibration)

    @property
    def _yes_no(self) -> bool:
        return self.signature.output_fields[self.roles.answer].annotation is bool

    @property
    def GRAMMAR(self) -> Grammar:  # noqa: N802  # pyright: ignore[reportIncompatibleVariableOverride]
        """How grades, or yes and no, are put."""
        return YES_NO if self._yes_no else GRADE

    def _read(self, text: str, shown: int) -> Judgment:
        if self._yes_no:
            return read_yes_no(text)
        low, high = self.settings["scale"]
        return read_grade(text, low, high)

    def _written(self, gold: Judgment, query: str, shown: int) -> str:
        return clean(query) if self._by_likelihood else f"{gold.score or 0.0:g}"

    def _labels(self, shown: int) -> dict[str, tuple[str, ...]]:
        if self._yes_no:
            return {"1": ("yes", "true", "relevant"), "0": ("no", "false", "irrelevant", "not")}
        low, high = self.settings["scale"]
        return {str(level): () for level in range(math.ceil(low), math.floor(high) + 1)}

    def _bare_labels(self, shown: int) -> tuple[str, ...]:
        bare = super()._bare_labels(shown)
        return ("yes", "no") if bare and self._yes_no else bare

    def _label(self, judgment: Judgment) -> str:
        return f"{judgment.score:g}"

    def _weighed(self, judgment: Judgment, masses: Mapping[str, float]) -> Judgment:
        """The expectation over the levels."""
        mean = sum(float(level) * mass for level, mass in masses.items())
        return replace(judgment, score=mean, confidence=max(masses.values()))


def _likelihood(reply: calls.Reply) -> Judgment:
    score = mean_logprob(reply.tokens)
    if score is None:
        why = "the model returned no log-probabilities for the query"
        return Judgment("pointwise", (0,), "unknown", reason=why, evidence="likelihood")
    return Judgment("pointwise", (0,), "ok", score=score, evidence="likelihood")
