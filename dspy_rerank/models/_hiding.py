"""A `dspy.LM` that never repeats its keys, however it is called: by judges, by hand, by others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dspy
from dspy.clients.base_lm import LM_CLASS_STATE_KEY
from dspy.utils.callback import with_callbacks

from dspy_rerank import straight
from dspy_rerank.hiding import blot, keys_in

PLAIN = "dspy.clients.lm.LM"
_call: Any = dspy.LM.__call__.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
"""DSPy's call without its callbacks, which are to see errors from which keys are gone."""


class HidingLM(dspy.LM):
    """Answers as `dspy.LM`; its errors, and what they come from, have ``***`` in a key's place.

    Providers and proxies repeat the key that they refuse, and DSPy passes their words on. Saved,
    it is a plain `dspy.LM` without keys.
    """

    ours = True
    """A copy is as good as it is, as of a plain `dspy.LM`."""
    salt: int | None = None
    """A ``rollout_id`` that keeps the caches of addresses apart, at any temperature."""

    @with_callbacks
    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """As `dspy.LM`."""
        with self._hiding():
            return _call(self, prompt, messages=messages, **kwargs)

    @with_callbacks
    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """As `dspy.LM`."""
        with self._hiding():
            return await straight.acall(self, prompt, messages, kwargs)

    def _warn_zero_temp_rollout(self, temperature: float | None, rollout_id: Any) -> None:
        if rollout_id != self.salt:
            super()._warn_zero_temp_rollout(temperature, rollout_id)

    @contextmanager
    def _hiding(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            blot(error, self)
            raise

    def dump_state(self) -> dict[str, Any]:
        """The state of a plain `dspy.LM`, without what holds a key, such as a header."""
        secrets = list(keys_in(self.kwargs))
        state = super().dump_state()
        kept = {k: v for k, v in state.items() if not any(s in repr(v) for s in secrets)}
        return {**kept, LM_CLASS_STATE_KEY: PLAIN}
