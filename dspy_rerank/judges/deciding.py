"""How judges ask decision models: the same signature, its answer as one of DSPy's decision types.

One question a call: a passage's grade or truth value, or a choice between the passages shown.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import dspy

from .. import calls
from ..errors import EvidenceError
from ..reading.labels import letters
from ..reserving import Call
from ..types import Judgment, Kind
from .decision_types import (
    Choice,
    Noul,
    Score,
    asked,
    decision_field,
    declared_type,
    levels,
    refuse,
    rubric,
    spread,
    with_decision,
)
from .protocol import Answer, Question
from .rewording import reminding

if TYPE_CHECKING:
    from ..settings import Settings
    from .roles import Roles

ALTERNATIVES = (
    "it cannot write an order of passages. Use ScoreSort(PointwiseJudge()), "
    "MergeSort(PairwiseJudge()) or TopDown(SetwiseJudge()), or a chat model"
)
TIE, NONE = "Tie", "None"


class Deciding:
    """The part of a signature judge that knows decision models.

    With one, ``temperature``, ``max_tokens``, the adapter and all outputs before the answer are
    left out. A judge whose answer has a decision type of DSPy's asks chat models for it, too,
    which then state their probabilities.
    """

    KIND: ClassVar[Kind]
    predict: dspy.Predict
    settings: "Settings"
    adapter: dspy.Adapter | None

    def decides(self, lm: Any) -> bool:
        """Whether questions to this model are put as decisions."""
        answer = self._signature.output_fields.get(self.roles.answer)
        return calls.decides(lm) or (answer is not None and decision_field(answer))

    @property
    def _signature(self) -> type[dspy.Signature]:
        return cast("type[dspy.Signature]", self.predict.signature)

    @property
    def anchors(self) -> Mapping[str, Any]:
        """Threshold, cuts or weights fitted on labels, by which decisions are read."""
        return self.predict.fields.get(self.roles.answer) or self.settings["anchors"] or {}

    def decision(self, shown: int) -> type[dspy.Signature]:
        """The signature that is asked about so many passages.

        Raises:
            EvidenceError: The question cannot be put as a decision.
        """
        answer, signature = self.roles.answer, cast("Any", self._signature)
        scale = tuple(self.settings.values.get("scale", ()))
        return _decision(signature, answer, self.KIND, self.roles.passages, scale, shown)

    def _check(self, lm: Any) -> None:
        """Complain now about what the model cannot give."""
        wanted = self.settings["evidence"]
        if self.decides(lm):
            self._check_decision(lm)
        elif wanted == "likelihood" and wanted not in calls.offered_evidence(lm):
            offered = ", ".join(calls.offered_evidence(lm))
            raise EvidenceError(
                f"{getattr(lm, 'model', lm)!r} cannot score a given text (it offers {offered}), "
                f"which a judge with evidence={wanted!r} needs. Give it a model that can, in this "
                "process: lm='local/smollm2-135m' or 'local/FILE.gguf'; or take evidence="
                "'generate'. A compiled program keeps its evidence: for this model compile again, "
                "from ScoreSort(PointwiseJudge(evidence='generate'))"
            )

    def _check_decision(self, lm: Any) -> None:
        settings, answer = self.settings.values, self.roles.answer
        if self.KIND == "listwise":
            raise refuse(ALTERNATIVES)
        if settings["evidence"] == "likelihood":
            raise refuse("it cannot score a text. Use PointwiseJudge(), or a local model")
        if settings["votes"] > 1 and calls.decides(lm):
            raise refuse(f"the same each time, so votes={settings['votes']} is of no use. Use 1")
        options = self.decision(2).output_fields[answer].annotation
        for label in _labels_of(options):
            if not self._read(label, 2).known:
                raise EvidenceError(
                    f"{label!r} is an option of {answer!r}, but no answer of a {self.KIND} judge; "
                    "expected a grade, or A, B, ... with Tie or None"
                )

    async def _decide(self, question: Question, call: Call) -> Answer:
        """Put one question as a decision."""
        shown = len(question.passages)
        signature = self.decision(shown)
        reply = await calls.call(
            call.predict,
            call.inputs,
            adapter=self.adapter or dspy.JSONAdapter(),
            config={} if calls.decides(call.lm) else call.config,
            signature=reminding(signature) if question.complaint else signature,
        )
        source = "model" if calls.decides(call.lm) else "stated"
        judgment = replace(self._decided(reply, shown), raw=reply.text, evidence="stated")
        if judgment.confidence is not None:
            judgment = replace(judgment, confidence_source=source)
        return Answer(judgment, replace(reply.usage, passages_read=shown))

    def _decided(self, reply: calls.Reply, shown: int) -> Judgment:
        """The judgment that a decision comes to; never one between equals."""
        places = tuple(range(shown))
        told = spread(reply.value, self.anchors)
        if told is None:
            why = reply.problem or "the answer holds no probabilities"
            return Judgment(self.KIND, places, "unknown", reason=why)
        if told.at is not None:
            low, high = (0, 1) if isinstance(reply.value, Noul) else self.settings["scale"]
            grade, sure = low + told.at * (high - low), max(told.masses.values())
            return Judgment(self.KIND, places, "ok", score=grade, confidence=sure)
        masses = dict.fromkeys(self._labels(shown), 0.0)
        for label, mass in told.masses.items():
            known = self._label(self._read(label, shown))
            masses[known] = masses.get(known, 0.0) + mass
        return self._chosen(masses, shown)

    def _chosen(self, masses: Mapping[str, float], shown: int) -> Judgment:
        most = max(masses.values())
        best = [label for label, mass in masses.items() if mass == most]
        if len(best) > 1 and self.KIND == "setwise":
            why = f"{', '.join(best)} are equally probable"
            return Judgment(self.KIND, tuple(range(shown)), "unknown", reason=why)
        label = best[0] if len(best) == 1 or self.KIND == "pointwise" else TIE
        return self._weighed(self._read(label, shown), masses)

    @property
    def roles(self) -> "Roles":
        """Which field of the signature plays which part."""
        raise NotImplementedError

    def _read(self, text: str, shown: int) -> Judgment:
        raise NotImplementedError

    def _labels(self, shown: int) -> Mapping[str, Any]:
        raise NotImplementedError

    def _label(self, judgment: Judgment) -> str:
        raise NotImplementedError

    def _weighed(self, judgment: Judgment, masses: Mapping[str, float]) -> Judgment:
        raise NotImplementedError


def _labels_of(kind: Any) -> tuple[str, ...]:
    """The options of a choice; levels and truth values have none to be read."""
    return tuple(kind.criteria() or ()) if issubclass(kind, Choice) else ()


@lru_cache(maxsize=256)
def _decision(
    signature: type[dspy.Signature], answer: str, kind: str, passages: tuple[str, ...],
    scale: tuple[float, ...], shown: int,
) -> type[dspy.Signature]:  # fmt: skip
    own = declared_type(signature.output_fields[answer])
    chosen = own or _default_type(signature, kind, passages, scale, shown)
    return with_decision(signature, answer, chosen, asked(signature, answer, kind))


def _default_type(
    signature: type[dspy.Signature], kind: str, passages: tuple[str, ...],
    scale: tuple[float, ...], shown: int,
) -> Any:  # fmt: skip
    """Levels of the scale, or the labels that the passages are shown under."""
    if kind == "pointwise":
        return Score[rubric(signature.instructions, levels(scale))]
    names = letters(shown)
    if kind == "pairwise":
        shown_as = passages if len(passages) == 2 else [f"passage {name}" for name in names]
        better = [(n, f"{p} is better") for n, p in zip(names, shown_as, strict=True)]
        return Choice[(*better, (TIE, "they are equally good"))]
    each = [(name, f"passage {name} is the best") for name in names]
    return Choice[(*each, (NONE, "no passage is relevant"))]
