"""What the four judges over a DSPy signature share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import dspy

from .. import calls
from ..adapters import COMPACT
from ..background import run_sync
from ..calibration import fit
from ..errors import InputError
from ..reading.labels import clean
from ..reading.unwrap import unwrap
from ..reserving import Call
from ..settings import Settings
from ..types import Group, Judgment, Kind
from .asking import with_tokens
from .deciding import Deciding
from .defending import check_defence, defended, guarded
from .fitting import Fitting
from .presenting import regrouped, rollouts, shuffled
from .protocol import Answer, Failure, Question
from .rewording import (
    REMINDER,
    instructed,
    own_signature,
    with_confidence,
    with_reasoning,
)
from .roles import Roles, roles_of
from .sureness import calibrated, unfinished
from .votes import check_votes, voted
from .weighing import Weighing

SAMPLED = 0.7
"""Temperature of votes where none is set: at zero all of them would be the same."""

__all__ = ["SAMPLED", "SignatureJudge", "instructed"]


class SignatureJudge(Fitting, Deciding, Weighing, dspy.Module):
    """A judge around one ``dspy.Predict``, stored as ``predict`` for every DSPy optimizer.

    Args:
        signature: Asked instead of the default; may have extra inputs.
        instructions: Replaces the signature's instructions.
        evidence: How the answer is taken out of the model. ``generate`` reads it. ``logprobs``
            also takes probabilities from the answer's tokens; where the model gives none, there
            is no confidence and the judgment's reason says so. ``stated`` has the model write
            its confidence, in [0, 1], before its answer. ``auto`` decides by what the model can
            do, which the first answer shows: no question is asked to find out.
        votes: Ask each question so often and go by the majority; the confidence is its share
            (Wang et al. 2023, arXiv:2203.11171). Sampled at temperature 0.7 unless a higher one
            than zero is set.
        reasoning: Ask for an explanation before the answer; then ``auto`` does not go by tokens,
            which the explanation has all but decided.
        adapter: A DSPy adapter for these calls only; ``None`` is the compact one.
        temperature: Of every call; ``None`` leaves it to the model. Zero gives way where DSPy wants
            a further answer of an LM (``dspy.BestOfN``, optimizers), which at zero it cannot give.
        max_tokens: Of every call; ``None`` leaves it to the model.
        calibration: Of confidences, as :meth:`calibrate` stores it.
        anchors: Of a decision model's answers: ``threshold``, ``cuts`` or ``weights``, as
            :class:`dspy_rerank.optimizers.ReAnchor` fits them.
        defence: Against instructions in passages: ``fence``, ``mark`` or ``remind``, as
            :mod:`dspy_rerank.judges.defending` says; ``None`` quotes imitated headings only.
    """

    KIND: ClassVar[Kind]
    DEFAULT: ClassVar[type[dspy.Signature]]
    EVIDENCE: ClassVar[tuple[str, ...]] = ("auto", "generate", "logprobs", "stated")

    def __init__(
        self,
        signature: type[dspy.Signature] | str | None = None,
        *,
        instructions: str | None = None,
        evidence: str = "auto",
        votes: int = 1,
        reasoning: bool = False,
        adapter: dspy.Adapter | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        calibration: Mapping[str, Any] | None = None,
        anchors: Mapping[str, Any] | None = None,
        defence: str | None = None,
        **settings: Any,
    ):
        super().__init__()
        if evidence not in self.EVIDENCE:
            raise InputError(
                f"evidence={evidence!r} is not something a {self.KIND} judge can use; "
                f"expected one of {', '.join(self.EVIDENCE)}"
            )
        check_votes(votes, evidence)
        check_defence(defence)
        chosen = own_signature(signature or self._default(evidence), instructions)
        chosen = with_confidence(chosen) if evidence == "stated" else chosen
        self.predict = dspy.Predict(with_reasoning(chosen) if reasoning else chosen)
        self.adapter = adapter
        self.settings = Settings(
            evidence=evidence,
            votes=votes,
            reasoning=reasoning,
            temperature=temperature,
            max_tokens=max_tokens,
            calibration=calibration,
            anchors=anchors,
            defence=defence,
            **settings,
        )
        _ = self.roles

    def _default(self, evidence: str) -> type[dspy.Signature]:
        return self.DEFAULT

    @property
    def signature(self) -> type[dspy.Signature]:
        """What is asked, with its present instructions."""
        return cast("type[dspy.Signature]", self.predict.signature)

    @property
    def kind(self) -> Kind:
        """Which kind of judgment comes out."""
        return self.KIND

    @property
    def roles(self) -> Roles:
        """Which field of the signature plays which part."""
        return roles_of(self.signature, pair=self.KIND == "pairwise")

    @property
    def extra_inputs(self) -> tuple[str, ...]:
        """Inputs of the signature beside the query and the passages."""
        return self.roles.extras

    def ready(self) -> "SignatureJudge":
        """This judge, once it is clear that a model is there and can do what is asked."""
        self._check(calls.current_lm(self.predict))
        return self

    def presentations(self, group: Group, query: str, seed: int) -> tuple[Group, ...]:
        """The group as it stands, or shuffled by ``(seed, query, group)`` when set so."""
        votes = self.settings["votes"]
        if not self.settings.values.get("shuffle") or len(group) < 2:
            return (group,) * votes
        return tuple(shuffled(group, query, seed + vote) for vote in range(votes))

    async def _put(self, question: Question, call: Call) -> Answer:
        """Put one question, which fits, to the model and read its answer."""
        if self.decides(call.lm):
            return await self._decide(question, call)
        scored = self.settings["evidence"] == "logprobs"
        asked = call.lm if scored or self._auto_tokens else None
        labels = self._bare_labels(len(question.passages)) if asked is not None else ()
        reply, before = await with_tokens(
            asked, lambda asking: self._reply(call, asking), quietly=scored, labels=labels
        )
        usage = replace(reply.usage, passages_read=len(question.passages))
        return Answer(self._judge(reply, question), before + usage)

    async def _reply(self, call: Call, asking: dict[str, Any]) -> calls.Reply:
        return await calls.call(
            call.predict,
            call.inputs,
            adapter=call.adapter,
            config={**call.config, **asking},
            signature=None if call.signature is self.signature else call.signature,
        )

    def _adapter(self) -> dspy.Adapter:
        return COMPACT

    def _inputs(self, question: Question) -> dict[str, Any]:
        bare = self._shown(tuple(clean(text) for text in question.passages))
        names, defence = tuple(self.signature.fields), self.settings["defence"]
        shown = defended(bare, names, defence, question.query)
        given = {n: guarded(v, names) if isinstance(v, str) else v
                 for n, v in question.inputs.items()}  # fmt: skip
        query = guarded(question.query, names)
        fields = self.roles.fill(self.signature, query, shown, given)
        complaint = guarded(question.complaint, names)
        return {**fields, REMINDER: complaint} if complaint else fields

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        raise NotImplementedError

    def _config(self, question: Question) -> dict[str, Any]:
        names = ("temperature", "max_tokens")
        config = {n: self.settings[n] for n in names if self.settings[n] is not None}
        if self.settings["votes"] > 1 and not config.get("temperature"):
            config["temperature"] = SAMPLED
        return {**config, "rollout_id": question.rollout} if question.rollout else config

    def _judge(self, reply: calls.Reply, question: Question) -> Judgment:
        text = unwrap(reply.text, self.roles.answer)
        judgment = self._read(text or "", len(question.passages))
        why = unfinished(reply, text) or judgment.reason
        why = why or ("" if judgment.known else reply.problem)
        judgment = replace(judgment, raw=reply.text, reason=why)
        return self._with_confidence(judgment, reply, text or "") if judgment.known else judgment

    def _read(self, text: str, shown: int) -> Judgment:
        raise NotImplementedError

    def example(
        self, query: str, passages: Sequence[str], gold: Judgment, **inputs: Any
    ) -> dspy.Example:
        """One labelled question as DSPy sees it: the judge's own fields, rendered as in a call.

        Args:
            query: What is looked for.
            passages: Texts in the order in which they are shown.
            gold: The right judgment over the places ``0..m-1``.
            inputs: Further inputs of the signature.
        """
        fields = self._inputs(Question(query, tuple(passages), inputs))
        answer = {self.roles.answer: self._written(gold, query, len(passages))}
        return dspy.Example(**fields, **answer).with_inputs(*fields)

    def _written(self, gold: Judgment, query: str, shown: int) -> str:
        """The right answer as a model should write it."""
        raise NotImplementedError

    def combine(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        """One judgment out of all presentations and votes, its confidence calibrated."""
        return calibrated(self._combined(group, judgments), self.settings["calibration"])

    def _combined(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        same = [regrouped(judgment, group) for judgment in judgments]
        return same[0] if len(same) == 1 else voted(group, same)

    def calibrate(
        self, confidences: Sequence[float], right: Sequence[bool], *, method: str = "isotonic"
    ) -> None:
        """Map confidences to how often they were right on labelled answers; saved with the judge.

        Args:
            confidences: As judgments gave them, before any calibration.
            right: Whether each answer was right.
            method: ``isotonic``, or ``platt`` for few answers.
        """
        self.settings.update(calibration=fit(confidences, right, method).to_dict())

    def failure(self, error: BaseException) -> Failure:
        """Whether an error of ``ask`` is worth another try."""
        return calls.failure(error)

    def forward(self, *, query: str, passages: Sequence[str], **inputs: Any) -> dspy.Prediction:
        """Judge one group; see :meth:`aforward`."""
        return run_sync(self.aforward(query=query, passages=passages, **inputs))

    async def aforward(
        self, *, query: str, passages: Sequence[str], **inputs: Any
    ) -> dspy.Prediction:
        """Judge one group of passages outside of any sort, without retries.

        Returns:
            A prediction with ``judgment``; positions are places in ``passages``.
        """
        judge = self.ready()
        group = tuple(range(len(passages)))
        judgments = []
        for shown, rollout in rollouts(judge.presentations(group, query, seed=0)):
            texts = tuple(passages[i] for i in shown)
            answer = await judge.ask(Question(query, texts, inputs, rollout=rollout))
            judgments.append(answer.judgment.at(shown))
        return dspy.Prediction(judgment=judge.combine(group, judgments))

    def __repr__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return f"{type(self).__name__}({self.signature.__name__})"
