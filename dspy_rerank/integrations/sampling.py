"""DSPy callbacks that hear of every ranking, but only of some of its questions.

A ranking may ask thousands of questions, and a tracing callback makes about five spans of each.
"""

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal

import dspy
from dspy.utils.callback import BaseCallback

from ..errors import InputError
from ..sorters import Reranker

Questions = Literal["none", "some", "all"]
"""``some`` are those numbered 1, 2, 4, 8 and so on: spread over the whole ranking, and 14 of
10,000."""


@dataclass
class _Asked:
    """How many questions a ranking has asked so far."""

    number: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a call stands: in which ranking, and whether in a question that is not told of."""

    ranking: _Asked | None = None
    muted: bool = False


_OUTSIDE = _Place()


class Sampled(BaseCallback):
    """Stands before another callback class and passes on what that one shall hear.

    Everything outside rankings is passed on, and so is each ranking itself.

    Args:
        questions: Which of a ranking's questions are passed on, with all calls inside them.
        further: What the other class is made with.
    """

    def __init__(self, questions: Questions = "some", *further: Any):
        super().__init__(*further)
        if questions not in ("none", "some", "all"):
            raise InputError(f"questions={questions!r}; expected 'none', 'some' or 'all'")
        self._questions = questions
        self._place: ContextVar[_Place] = ContextVar("place_in_ranking", default=_OUTSIDE)
        self._before: dict[str, _Place] = {}
        self._told: set[str] = set()

    def _tell(self, call_id: str) -> bool:
        if self._place.get().muted:
            return False
        self._told.add(call_id)
        return True

    def _was_told(self, call_id: str) -> bool:
        told = call_id in self._told
        self._told.discard(call_id)
        return told

    def _enter(self, call_id: str, instance: Any) -> None:
        """Note that a ranking or one of its questions begins."""
        here = self._place.get()
        if isinstance(instance, Reranker):
            there = replace(here, ranking=_Asked())
        elif isinstance(instance, dspy.Predict) and here.ranking is not None:
            here.ranking.number += 1
            there = replace(here, muted=here.muted or not self._picked(here.ranking.number))
        else:
            return
        self._before[call_id] = here
        self._place.set(there)

    def _picked(self, number: int) -> bool:
        if self._questions == "some":
            return number.bit_count() == 1
        return self._questions == "all"

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """A module begins."""
        self._enter(call_id, instance)
        if self._tell(call_id):
            super().on_module_start(call_id, instance, inputs)

    def on_module_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """A module has ended."""
        try:
            if self._was_told(call_id):
                super().on_module_end(call_id, outputs, exception)
        finally:
            if call_id in self._before:
                self._place.set(self._before.pop(call_id))

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """A language model is called."""
        if self._tell(call_id):
            super().on_lm_start(call_id, instance, inputs)

    def on_lm_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """A language model has answered."""
        if self._was_told(call_id):
            super().on_lm_end(call_id, outputs, exception)

    def on_adapter_format_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """A prompt is about to be written."""
        if self._tell(call_id):
            super().on_adapter_format_start(call_id, instance, inputs)

    def on_adapter_format_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """A prompt is written."""
        if self._was_told(call_id):
            super().on_adapter_format_end(call_id, outputs, exception)

    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """An answer is about to be read."""
        if self._tell(call_id):
            super().on_adapter_parse_start(call_id, instance, inputs)

    def on_adapter_parse_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """An answer is read."""
        if self._was_told(call_id):
            super().on_adapter_parse_end(call_id, outputs, exception)
