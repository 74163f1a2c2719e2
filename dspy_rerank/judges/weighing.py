"""How signature judges get from the tokens of an answer to how sure the model was of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import dspy

from .. import calls, capability
from ..reading._claims import CHOICE, Grammar
from ..types import Judgment
from .sureness import THOUGHT, by_tokens, stated, token_masses, unsure

if TYPE_CHECKING:
    from ..settings import Settings
    from .roles import Roles


class Weighing:
    """The part of a signature judge that knows log-probabilities."""

    GRAMMAR: ClassVar[Grammar] = CHOICE
    """How answers are put that tokens are looked up for."""
    AUTO_TOKENS: ClassVar[bool] = True
    """Whether ``auto`` goes by tokens where there are any."""

    predict: dspy.Predict
    settings: "Settings"
    adapter: dspy.Adapter | None

    @property
    def roles(self) -> "Roles":
        """Which field of the signature plays which part."""
        raise NotImplementedError

    @property
    def _auto_tokens(self) -> bool:
        auto = self.settings["evidence"] == "auto" and self.AUTO_TOKENS
        return auto and not self.settings["reasoning"] and self.settings["votes"] == 1

    def _bare_labels(self, shown: int) -> tuple[str, ...]:
        """All answers as a model would write them, where it writes nothing else; else none."""
        outputs = cast("type[dspy.Signature]", self.predict.signature).output_fields
        return tuple(self._labels(shown)) if self.adapter is None and len(outputs) == 1 else ()

    def _with_confidence(self, judgment: Judgment, reply: calls.Reply, said: str) -> Judgment:
        """The judgment with how sure the model was, by the evidence that is set."""
        evidence = self.settings["evidence"]
        if evidence == "stated":
            return stated(judgment, reply.text)
        if evidence != "logprobs" and not (self._auto_tokens and reply.tokens):
            return judgment
        if evidence != "logprobs" and reply.thought:
            return unsure(judgment, THOUGHT)
        labels = self._labels(len(judgment.group))
        answer = self._label(judgment)
        if answer not in labels:
            return unsure(judgment, f"{answer} is none of {', '.join(labels)}")
        masses = token_masses(reply, said, self.GRAMMAR, labels, answer, self.roles.answer)
        known = capability.found(calls.current_lm(self.predict))
        return by_tokens(judgment, masses, self._weighed, reply, known)

    def _labels(self, shown: int) -> Mapping[str, Any]:
        """The labels of all possible answers, each with its further spellings."""
        raise NotImplementedError

    def _label(self, judgment: Judgment) -> str:
        """The label of the answer that was read."""
        raise NotImplementedError

    def _weighed(self, judgment: Judgment, masses: Mapping[str, float]) -> Judgment:
        """The judgment, given the probability of each label."""
        raise NotImplementedError
