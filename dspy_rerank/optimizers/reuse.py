"""Answers of one compiling that are used again where the same prompt is sent twice."""

import copy
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import dspy


@dataclass
class _Slot:
    """One prompt; whoever comes second waits for the answer of the first."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    prediction: dspy.Prediction | None = None


class Reuse:
    """Keeps the answer to every prompt, as DSPy's cache does, for models that have none.

    Optimizers send the same prompts again and again: a random search measures the bare program
    twice, GEPA its parents on questions that they have answered, and the comparison at the end
    asks both the student and the winner what they were asked before. Failures are not kept.
    All copies of a program share it.
    """

    def __init__(self) -> None:
        self._slots: dict[tuple[int, str], _Slot] = {}
        self._models: dict[int, Any] = {}
        self._lock = threading.Lock()

    def __call__(
        self, lm: Any, prompt: str, ask: Callable[[], dspy.Prediction]
    ) -> tuple[dspy.Prediction, bool]:
        """A copy of the answer, and whether it was known; else ``ask`` is called, once.

        Args:
            lm: Answers; different objects are different models.
            prompt: All that is sent.
            ask: Sends it.
        """
        name = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()
        with self._lock:
            self._models[id(lm)] = lm  # an id is that of one object only while this lives
            slot = self._slots.setdefault((id(lm), name), _Slot())
        with slot.lock:
            known = slot.prediction is not None
            if slot.prediction is None:
                slot.prediction = ask()
            return copy.deepcopy(slot.prediction), known

    def __deepcopy__(self, memo: Any) -> "Reuse":
        return self


_shared: ContextVar[Reuse | None] = ContextVar("shared_answers", default=None)


@contextmanager
def sharing_answers() -> Iterator[None]:
    """Within this context all compilings know the answers that one of them has had."""
    token = _shared.set(Reuse())
    try:
        yield
    finally:
        _shared.reset(token)


def answers_known() -> Reuse:
    """The answers that are shared, or none yet for one compiling alone."""
    return _shared.get() or Reuse()
