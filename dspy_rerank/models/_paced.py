"""A `dspy.LM` that keeps to its rate however it is called: by judges, by hand, by optimizers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dspy.utils.exceptions import LMRateLimitError

from dspy_rerank.background import run_sync
from dspy_rerank.calls import retry_after
from dspy_rerank.limits import Limit
from dspy_rerank.models._hiding import HidingLM
from dspy_rerank.patience import patience, patience_with


class PacedLM(HidingLM):
    """Waits for its turn before each call, answers from DSPy's cache included.

    Saved, it is a plain `dspy.LM`: rates belong to the configuration. DSPy's own retries of a
    failed call wait as the provider asks, or 1, 2, 4 seconds, not for their turn.
    """

    paced = True

    def __init__(self, model: str, *, limit: Limit, **kwargs: Any):
        super().__init__(model, **kwargs)
        self.limit = limit

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As `dspy.LM`, in its turn."""
        tokens = _about(args, kwargs)
        turn = self.limit.turn(tokens)
        run_sync(turn.__aenter__())
        try:
            with self._noticing(tokens):
                return super().__call__(*args, **kwargs)
        finally:
            run_sync(turn.__aexit__(None, None, None))

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """As `dspy.LM`, in its turn; each try takes no longer than its ``timeout=``."""
        tokens, seconds = _about(args, kwargs), patience_with(self)
        longest = seconds and seconds * (1 + self.num_retries)
        async with self.limit.turn(tokens), patience(longest, self.model):
            with self._noticing(tokens):
                return await super().acall(*args, **kwargs)

    @contextmanager
    def _noticing(self, tokens: int) -> Iterator[None]:
        try:
            yield
        except LMRateLimitError as error:
            self.limit.refused(retry_after(error))
            raise
        self.limit.correct(tokens, tokens)


def _about(args: Any, kwargs: Any) -> int:
    """Tokens of a call, roughly: one for every four characters, and the longest answer."""
    shown = sum(len(str(value)) for value in (*args, kwargs.get("prompt"), kwargs.get("messages")))
    return shown // 4 + int(kwargs.get("max_tokens") or 0)
