"""How signature judges keep a question within what the model can read."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import dspy

from .. import calls
from ..adapters import COMPACT
from ..background import in_thread
from ..context import Fit, fit, learn, surely_fits, window_of
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
        lm = calls.current_lm(self.predict)
        fitted = await self._fitted(question, lm)
        asked = replace(question, passages=fitted.texts)
        try:
            answer = await self._put(asked, lm)
        except dspy.ContextWindowExceededError as refusal:
            window = learn(lm, refusal, self._measurable(asked, lm))
            fitted = await in_thread(self._fit, question, lm, window)
            if fitted.texts == asked.passages:
                raise
            again = await self._put(replace(question, passages=fitted.texts), lm)
            answer = again._replace(usage=Usage(failed_calls=1, cost=0.0) + again.usage)
        if not fitted.cut:
            return answer
        return answer._replace(judgment=replace(answer.judgment, cut=fitted.cut))

    async def _fitted(self, question: Question, lm: Any) -> Fit:
        """The question's passages, cut where they have to be; most need no second look."""
        whole = Fit(question.passages)
        if calls.decides(lm):
            return whole
        asked, known = self._measurable(question, lm), window_of(lm, tables=False)
        if surely_fits(asked, known):
            return whole
        window = known or await in_thread(window_of, lm)
        if window is None or surely_fits(asked, window):
            return whole
        return await in_thread(self._fit, question, lm, window)

    def _fit(self, question: Question, lm: Any, window: int) -> Fit:
        parts = self.KIND in PARTED and len(question.passages) > 2
        found = fit(
            question.passages,
            window,
            lambda texts: self._measurable(replace(question, passages=tuple(texts)), lm),
            parts=parts,
        )
        if found.crowded:
            raise Crowded(
                f"{len(question.passages)} passages do not fit into a context of {window} tokens"
            )
        return found

    def _measurable(self, question: Question, lm: Any) -> Call:
        signature: Any = self.predict.signature
        return Call(
            lm=lm,
            predict=self.predict,
            adapter=self.adapter or self._adapter(),
            signature=reminding(signature) if question.complaint else signature,
            inputs=self._inputs(question),
            config=self._config(question),
        )

    async def _put(self, question: Question, lm: Any) -> Answer:
        raise NotImplementedError

    def _adapter(self) -> dspy.Adapter:
        return COMPACT

    def _inputs(self, question: Question) -> dict[str, Any]:
        raise NotImplementedError

    def _config(self, question: Question) -> dict[str, Any]:
        raise NotImplementedError
