"""What the four judges over a DSPy signature share."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import dspy

from .. import calls
from ..adapters import COMPACT
from ..background import run_sync
from ..errors import EvidenceError, InputError
from ..reading.labels import clean
from ..reading.unwrap import unwrap
from ..settings import Settings
from ..types import Group, Judgment, Kind
from .protocol import Answer, Failure, Question
from .roles import Roles, roles_of

REMINDER = "reminder"


class SignatureJudge(dspy.Module):
    """A judge around one ``dspy.Predict``, stored as ``predict`` for every DSPy optimizer.

    Args:
        signature: Asked instead of the default; may have extra inputs.
        instructions: Replaces the signature's instructions.
        evidence: How the answer is taken out of the model; ``auto`` decides by what it can do.
        reasoning: Ask for an explanation before the answer.
        adapter: A DSPy adapter for these calls only; ``None`` is the compact one.
        temperature: Of every call; ``None`` leaves it to the model.
        max_tokens: Of every call; ``None`` leaves it to the model.
    """

    KIND: ClassVar[Kind]
    DEFAULT: ClassVar[type[dspy.Signature]]
    EVIDENCE: ClassVar[tuple[str, ...]] = ("auto", "generate")

    def __init__(
        self,
        signature: type[dspy.Signature] | str | None = None,
        *,
        instructions: str | None = None,
        evidence: str = "auto",
        reasoning: bool = False,
        adapter: dspy.Adapter | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        **settings: Any,
    ):
        super().__init__()
        if evidence not in self.EVIDENCE:
            raise InputError(
                f"evidence={evidence!r} is not something a {self.KIND} judge can use; "
                f"expected one of {', '.join(self.EVIDENCE)}"
            )
        chosen = own_signature(signature or self._default(evidence), instructions)
        self.predict = dspy.Predict(with_reasoning(chosen) if reasoning else chosen)
        self.adapter = adapter
        self.settings = Settings(
            evidence=evidence,
            reasoning=reasoning,
            temperature=temperature,
            max_tokens=max_tokens,
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
        lm = calls.current_lm(self.predict)
        wanted = self.settings["evidence"]
        if wanted == "likelihood" and wanted not in calls.offered_evidence(lm):
            raise EvidenceError(
                f"{getattr(lm, 'model', lm)!r} cannot score a given text, which evidence="
                f"{wanted!r} needs; use evidence='generate', or a local model (local/...)"
            )
        return self

    def presentations(self, group: Group, query: str, seed: int) -> tuple[Group, ...]:
        """The group as it stands, or shuffled by ``(seed, query, group)`` when set so."""
        if not self.settings.values.get("shuffle") or len(group) < 2:
            return (group,)
        return (shuffled(group, query, seed),)

    async def ask(self, question: Question) -> Answer:
        """Put one question to the model and read its answer."""
        reply = await calls.call(
            self.predict,
            self._inputs(question),
            adapter=self.adapter or self._adapter(),
            config=self._config(question),
            signature=reminding(self.signature) if question.complaint else None,
        )
        judgment = self._judge(reply, question)
        usage = replace(reply.usage, passages_read=len(question.passages))
        return Answer(judgment, usage)

    def _adapter(self) -> dspy.Adapter:
        return COMPACT

    def _inputs(self, question: Question) -> dict[str, Any]:
        shown = self._shown(tuple(clean(text) for text in question.passages))
        fields = self.roles.fill(self.signature, clean(question.query), shown, question.inputs)
        return {**fields, REMINDER: question.complaint} if question.complaint else fields

    def _shown(self, passages: Sequence[str]) -> tuple[str, ...]:
        raise NotImplementedError

    def _config(self, question: Question) -> dict[str, Any]:
        names = ("temperature", "max_tokens")
        return {n: self.settings[n] for n in names if self.settings[n] is not None}

    def _judge(self, reply: calls.Reply, question: Question) -> Judgment:
        text = unwrap(reply.text, self.roles.answer)
        judgment = self._read(text or "", len(question.passages))
        why = judgment.reason or ("" if judgment.known else reply.problem)
        return replace(judgment, raw=reply.text, reason=why)

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
        """The one judgment, said of the group in the order asked."""
        (judgment,) = judgments
        return replace(judgment, group=group)

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
        for shown in judge.presentations(group, query, seed=0):
            texts = tuple(passages[i] for i in shown)
            answer = await judge.ask(Question(query, texts, inputs))
            judgments.append(answer.judgment.at(shown))
        return dspy.Prediction(judgment=judge.combine(group, judgments))

    def __repr__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return f"{type(self).__name__}({self.signature.__name__})"


def own_signature(
    signature: type[dspy.Signature] | str, instructions: str | None
) -> type[dspy.Signature]:
    """A class of the judge's own: DSPy optimizers may edit a shared signature in place."""
    made: Any = dspy.make_signature(signature) if isinstance(signature, str) else signature
    return instructed(made, made.instructions if instructions is None else instructions)


def instructed(signature: type[dspy.Signature], text: str) -> type[dspy.Signature]:
    """The signature with other instructions; DSPy would fill in empty ones, but not blank ones."""
    return signature.with_instructions(text or " ")


def with_reasoning(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """The signature with an explanation asked for before its outputs."""
    if "reasoning" in signature.output_fields:
        return signature
    field = dspy.OutputField(desc="a short explanation")
    return instructed(signature.prepend("reasoning", field, type_=str), signature.instructions)


def reminding(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """The signature with a last input that says why the question is asked again.

    It stands behind the passages, so the prompt's prefix stays byte-identical.
    """
    asked_again = signature.append(REMINDER, dspy.InputField(), type_=str)
    return instructed(asked_again, signature.instructions)


def shuffled(group: Group, query: str, seed: int) -> Group:
    """A repeatable permutation that depends on the seed, the query and the group only."""
    key = hashlib.sha256(f"{seed}\x1f{query}\x1f{group}".encode("utf-8", "replace")).digest()
    order = list(group)
    random.Random(key).shuffle(order)
    return tuple(order)
