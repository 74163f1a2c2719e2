"""How signature judges keep a question within what the model can read."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import dspy

from .. import calls
from ..adapters import COMPACT
from ..background import in_thread
from ..context import Fit, fit, learn, needs_table, surely_fits, window_of
from ..errors import Crowded
from ..reserving import Call
from ..types import Kind, Usage
from .protocol import Answer, Question
from .rewording import reminding

if TYPE_CHECKING:
    from ..settings import Settings

PARTED = ("setwise", "listwise")
"""Kinds whose groups can be asked about in parts."""


class Fitting:
    """The part of a signature judge that knows contexts: all but asking itself."""

    KIND: ClassVar[Kind]
    predict: dspy.Predict
    settings: "Settings"
    adapter: dspy.Adapter | None

    async def ask(self, question: Question) -> Answer:
        """Put one question to the model and read its answer.

        Passages that are too long for the model's context are cut, all to the same length, which
        the judgment says. A question that the model refuses as too long is asked once more,
        shorter, in a second call.

        Raises:
            dspy.LMError: The call failed.
            dspy.ContextWindowExceededError: Query, instructions and demonstrations alone are too
                long; they are never cut.
            Crowded: So many passages do not fit; ask about fewer at a time.
        """
        whole = self._call(question, calls.current_lm(self.predict))
        fitted = await self._fitted(question, whole)
        asked, call = self._cut(question, fitted, whole)
        try:
            answer = await self._put(asked, call)
        except dspy.ContextWindowExceededError as refusal:
            window = learn(call.lm, refusal, call)
            fitted = await in_thread(self._fit, question, call.lm, window, refused=True)
            if fitted.texts == asked.passages:
                raise
            again = await self._put(*self._cut(question, fitted, whole))
            answer = again._replace(usage=Usage(failed_calls=1, cost=0.0) + again.usage)
        if not fitted.cut:
            return answer
        return answer._replace(judgment=replace(answer.judgment, cut=fitted.cut))

    def _cut(self, question: Question, fitted: Fit, whole: Call) -> tuple[Question, Call]:
        """The question about passages cut so, and the call that puts it."""
        if fitted.texts == question.passages:
            return question, whole
        shorter = replace(question, passages=fitted.texts)
        return shorter, self._call(shorter, whole.lm)

    async def _fitted(self, question: Question, call: Call) -> Fit:
        """The question's passages, cut where they have to be; most need no second look."""
        lm, whole = call.lm, Fit(question.passages)
        if calls.decides(lm):
            return whole
        known = window_of(lm, tables=False)
        if surely_fits(call, known):
            return whole
        window = await in_thread(window_of, lm) if needs_table(lm) else window_of(lm)
        if window is None or surely_fits(call, window):
            return whole
        return await in_thread(self._fit, question, lm, window)

    def _fit(self, question: Question, lm: Any, window: int, *, refused: bool = False) -> Fit:
        parts = self.KIND in PARTED and len(question.passages) > 2
        found = fit(
            question.passages,
            window,
            lambda texts: self._call(replace(question, passages=tuple(texts)), lm),
            parts=parts,
        )
        if found.crowded:
            raise Crowded(
                f"{len(question.passages)} passages do not fit into a context of {window} tokens",
                refused=refused,
            )
        return found

    def _call(self, question: Question, lm: Any) -> Call:
        """What puts a question to an LM, rendered once."""
        signature: Any = self.predict.signature
        return Call(
            lm=lm,
            predict=self.predict,
            adapter=self.adapter or self._adapter(),
            signature=reminding(signature) if question.complaint else signature,
            inputs=self._inputs(question),
            config=unpinned(self._config(question), lm),
        )

    async def _put(self, question: Question, call: Call) -> Answer:
        raise NotImplementedError

    def _adapter(self) -> dspy.Adapter:
        return COMPACT

    def _inputs(self, question: Question) -> dict[str, Any]:
        raise NotImplementedError

    def _config(self, question: Question) -> dict[str, Any]:
        raise NotImplementedError


def unpinned(config: dict[str, Any], lm: Any) -> dict[str, Any]:
    """A call's configuration, without a temperature of 0 for an LM that is to answer otherwise.

    DSPy asks for a further answer by a copy with a ``rollout_id`` and a temperature of its own;
    pinned to 0, that would be the answer that is known, and a warning.
    """
    own = (getattr(lm, "kwargs", None) or {}).get("temperature")
    if not (own and another(lm)) or config.get("temperature") != 0:
        return config
    return {name: value for name, value in config.items() if name != "temperature"}


def another(lm: Any) -> bool:
    """Whether an LM is a copy by which an answer is asked for other than the one there was.

    An alias's own ``salt``, which only keeps the caches of addresses apart, asks for none.
    """
    rollout = (getattr(lm, "kwargs", None) or {}).get("rollout_id")
    return rollout is not None and rollout != getattr(lm, "salt", None)
