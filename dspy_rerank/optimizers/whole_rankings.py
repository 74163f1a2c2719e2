"""What watches a DSPy optimizer that works on whole rankings, for the best program so far."""

import math
from typing import Any

from dspy.utils.callback import BaseCallback

from ..memo import Memo
from ..sorters import Reranker


class BestMeasured(BaseCallback):
    """The best program that ``dspy.Evaluate`` has measured on enough queries.

    Attributes:
        least: Queries that are enough.
        program: ``None`` until one was measured to the end; of equals the first.
    """

    def __init__(self) -> None:
        self.least = 1
        self.program: Reranker | None = None
        self._value = -math.inf
        self._under_way: dict[str, Reranker] = {}

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Keep the program as it is now; one that DSPy has patched to give a trace is none."""
        program = inputs.get("program")
        queries = inputs.get("devset") or instance.devset
        if not isinstance(program, Reranker) or "forward" in vars(program):
            return
        if len(queries) >= self.least:
            self._under_way[call_id] = program.deepcopy()

    def on_evaluate_end(
        self, call_id: str, outputs: Any, exception: BaseException | None = None
    ) -> None:
        """Compare it with the best so far."""
        program = self._under_way.pop(call_id, None)
        if program is not None and exception is None and outputs.score > self._value:
            self._value, self.program = outputs.score, program


class NothingKept(dict[str, Memo]):
    """A store for :func:`dspy_rerank.memo.remembering` that keeps nothing.

    An answer that is remembered leaves no trace, and from traces optimizers take demonstrations.
    """

    def setdefault(self, key: str, default: Memo | None = None) -> Memo:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A fresh memo."""
        return {}
