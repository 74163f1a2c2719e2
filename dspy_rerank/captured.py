"""What one call to a language model gave, whatever the user has made of DSPy's history.

What DSPy does not offer as public API and this module therefore knows: an LM hands its history
entry to its own ``update_history``; answers from a cache never reach the usage tracker, all
others do; callbacks are told what an LM gives or raises; entries reach every object in
``settings.caller_modules`` that has a ``history`` list.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dspy
from dspy.dsp.utils.settings import DEFAULT_CONFIG, main_thread_config
from dspy.utils.callback import BaseCallback
from dspy.utils.usage_tracker import UsageTracker

from .certainty import Token, read_tokens
from .histories import record
from .prices import known_price, name_of, unpriced
from .straight import straighten
from .types import Usage

_NOBODYS = main_thread_config["trace"]
"""The list in which DSPy keeps calls for nobody in particular."""


class _Counter(UsageTracker):
    """Tells a call that a cache answered from one that came without a token count."""

    answers = 0

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Count one answer that no cache gave."""
        self.answers += 1
        super().add_usage(lm, usage_entry)


class Capture(BaseCallback):
    """One call, under way or over.

    Attributes:
        entries: DSPy's history entries; empty for other LM classes where history is off.
        outputs: What the LM gave last, as DSPy hands it to an adapter.
        error: What the LM raised, if it is not of DSPy's own classes.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.outputs: list[Any] | None = None
        self.error: BaseException | None = None
        self.answered = False
        self.tracker = _Counter()

    @property
    def history(self) -> list[dict[str, Any]]:
        """For DSPy, which appends entries to the history of a calling module."""
        return self.entries

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """DSPy's callback."""
        self.error = exception
        self.answered = self.answered or exception is None
        self.outputs = outputs if isinstance(outputs, list) else None

    @contextmanager
    def watching(self, lm: Any, adapter: dspy.Adapter) -> Iterator[Any]:
        """Within this context calls to the LM that it yields are captured, and no others.

        Args:
            lm: The language model; not changed.
            adapter: To ask it by.
        """
        settings = dspy.settings
        parent, inferring = settings.usage_tracker, _traced_for_nobody()
        given: dict[str, Any] = {"adapter": adapter, "usage_tracker": self.tracker}
        if inferring:
            given["trace"] = None
        copied = _copies(lm) and not hasattr(adapter, "extraction_model")
        if copied:
            lm = self._handing_over(lm, inferring)
            given["disable_history"] = False
        else:
            given["callbacks"] = [*(settings.callbacks or []), self]
            given["caller_modules"] = [*(settings.caller_modules or []), self]
        try:
            with dspy.context(send_stream=None, **given):
                yield lm
        finally:
            if copied:
                _let_go(lm)
            if parent is not None:
                for name, entries in self.tracker.usage_data.items():
                    parent.usage_data[name].extend(entries)

    def _handing_over(self, lm: Any, inferring: bool) -> Any:
        """A copy without retries, which the engine owns, that hands its entry to this capture."""
        silent = dspy.settings.disable_history
        single = object.__new__(type(lm))
        single.__dict__.update(lm.__dict__, num_retries=0)

        def update_history(entry: dict[str, Any]) -> None:
            self.entries.append(entry)
            self.outputs, self.answered = entry["outputs"], True
            if not silent:
                record(single, entry, inferring=inferring)

        single.update_history = update_history
        if type(lm) is dspy.LM:
            straighten(single)
        return single

    @property
    def cached(self) -> bool:
        """Whether a cache gave the answer."""
        if self.entries and "cache_hit" in self.entries[-1]:
            return bool(self.entries[-1]["cache_hit"])
        return (self.answered or bool(self.entries)) and not self.tracker.answers

    @property
    def counted(self) -> bool:
        """Whether the provider said how many tokens it took."""
        return any(self.tracker.usage_data.values())

    def text(self, parsed: dspy.Prediction | None) -> str:
        """The completion as it came; empty when there was none."""
        output = self._output()
        if isinstance(output, Mapping):
            return str(output.get("text") or "")
        if output is not None or parsed is None:
            return str(output or "")
        values = list(parsed.values())
        return str(values[-1]) if values else ""

    def tokens(self, parsed: dspy.Prediction | None) -> tuple[Token, ...]:
        """Log-probabilities of the completion's tokens, empty when the provider gave none."""
        output = self._output()
        if isinstance(output, Mapping):
            return read_tokens(output.get("logprobs"))
        if parsed is None or output is not None:  # a bare text comes without any
            return ()
        return read_tokens(parsed.get("logprobs"))

    @property
    def reasoned(self) -> bool:
        """Whether the provider gave the model's reasoning apart from its answer."""
        output = self._output()
        return isinstance(output, Mapping) and bool(output.get("reasoning_content"))

    def _output(self) -> Any:
        outputs = self.outputs
        if outputs is None and self.entries:
            outputs = self.entries[-1].get("outputs")
        return outputs[0] if isinstance(outputs, list) and outputs else None

    def usage(self, lm: Any) -> Usage:
        """What the call took: exactly one, which cost nothing where a cache answered."""
        totals = self.tracker.get_total_tokens().values()
        read, written, again = (sum(count(u) for u in totals) for count in _COUNTS)
        cost, why = (0.0, "") if self.cached else self._cost(lm, read, written, again)
        return Usage(
            calls=1, cached_calls=int(self.cached), prompt_tokens=read, completion_tokens=written,
            cached_tokens=again, cost=cost, cost_reason=why,
        )  # fmt: skip

    def _cost(self, lm: Any, read: int, written: int, again: int) -> tuple[float | None, str]:
        """US dollars, or why nobody knows.

        LiteLLM says 0 of models that it has no price of, so 0 is believed of no table.
        """
        price = known_price(lm)
        if price is not None and (self.counted or not (price.read or price.written)):
            return price.of(read, written, again), ""
        costs = [_entry_cost(entry) for entry in self.entries]
        if costs and None not in costs:
            return sum(cost for cost in costs if cost is not None), ""
        if price is not None or not (read or written):
            return None, f"{name_of(lm)} did not say how many tokens it took"
        return None, unpriced(lm)


def _let_go(single: Any) -> None:
    """Take away what makes a copy refer to itself: its prompt goes now, not with the next sweep."""
    for name in ("update_history", "acall"):
        vars(single).pop(name, None)


def _entry_cost(entry: Mapping[str, Any]) -> float | None:
    """What one of our own engines says that an answer cost, or else a table."""
    data = getattr(entry.get("response"), "provider_data", None)
    own = data.get("cost") if isinstance(data, Mapping) else None
    return own if own is not None else entry.get("cost") or None


def _copies(lm: Any) -> bool:
    """Whether a copy of an LM is as good as the LM: one of DSPy's own class, or of ours."""
    return type(lm) is dspy.LM or (isinstance(lm, dspy.LM) and getattr(lm, "ours", False))


def _details(usage: Mapping[str, Any]) -> int:
    found = usage.get("prompt_tokens_details")
    value = found.get("cached_tokens") if isinstance(found, Mapping) else None
    return int(value or 0)


_COUNTS = (
    lambda usage: int(usage.get("prompt_tokens") or 0),
    lambda usage: int(usage.get("completion_tokens") or 0),
    _details,
)


def _traced_for_nobody() -> bool:
    """Whether nobody has asked DSPy for a trace, as optimizers do and whoever sets a list."""
    trace = dspy.settings.trace
    return trace is _NOBODYS or trace is DEFAULT_CONFIG["trace"] or trace is None
