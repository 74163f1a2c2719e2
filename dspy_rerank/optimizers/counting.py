"""Counts all calls to language models that are made while compiling, and what they cost.

Whoever makes them: judges, the optimizer's own proposals, rankings. What DSPy does not offer as
public API and this module therefore knows: answers of a cache never reach the usage tracker, all
others do; history entries reach every object in ``settings.caller_modules`` that has a ``history``;
both happen in the thread or task, and the context, of the call's callbacks.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback
from dspy.utils.usage_tracker import UsageTracker

from ..captured import Capture
from ..types import Usage

_paid: ContextVar[tuple[int, Mapping[str, Any]]] = ContextVar("paid", default=(0, {}))
"""How many answers this thread or task has had that no cache gave, and the tokens of the last."""
_within: ContextVar[defaultdict[str, list[Any]] | None] = ContextVar("within", default=None)
"""Usage of the outermost module that this thread or task runs, where DSPy is to tell it."""
_told: ContextVar[dict[str, Any] | None] = ContextVar("told", default=None)
"""The history entry of its last call."""


class SpentError(BaseException):
    """All calls are spent; no ``Exception``, since optimizers take those for wrong answers."""


class _Tracker(UsageTracker):
    """Notes each answer that no cache gave, also one without a count of tokens.

    What it is told is also told to whoever tracks usage around it, or by module.
    """

    def __init__(self, around: UsageTracker | None):
        self._all = defaultdict(list) if around is None else around.usage_data

    @property
    def usage_data(self) -> defaultdict[str, list[Any]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Where usage goes: to the outermost module that runs here, if that is to be told."""
        within = _within.get()
        return self._all if within is None else within

    @property
    def answers(self) -> int:
        """Those of this thread or task."""
        return _paid.get()[0]

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Count one."""
        _paid.set((self.answers + 1, usage_entry))
        super().add_usage(lm, usage_entry)

    def __deepcopy__(self, memo: Any) -> "_Tracker":
        return self


class _Ear(list[Any]):
    """A history that keeps nothing but the last entry of each thread or task."""

    def append(self, entry: dict[str, Any]) -> None:
        """An entry, as DSPy appends it."""
        _told.set(entry)


class _Listener:
    """What DSPy appends history entries to."""

    history = _Ear()


class CallCounter(BaseCallback):
    """Counts all calls to language models, the optimizer's own proposals included.

    Args:
        most: So many may be made; the next one is not, but raises :class:`SpentError`.
        free: Those that a cache answers are none of them.
        tell: Called after each call, with the counter, by whatever thread made it.

    Attributes:
        calls: Made so far, those that a cache answered included.
        failed: Those among them that raised.
        usage: Of the others: those that a cache answered, tokens, dollars.
        spent: Whether one was refused.
    """

    def __init__(
        self, most: int | None = None, free: bool = False,
        tell: Callable[["CallCounter"], None] | None = None,
    ) -> None:  # fmt: skip
        self.calls = 0
        self.failed = 0
        self.usage = Usage()
        self.most = most
        self.free = free
        self.tell = tell
        self.spent = False
        self._open: dict[str, tuple[Any, int]] = {}
        self._modules: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def cached(self) -> int:
        """Those that a cache answered."""
        return self.usage.cached_calls

    @property
    def bill(self) -> Usage:
        """Of all, those that failed or were broken off included."""
        return replace(self.usage, failed_calls=self.calls - self.usage.calls)

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Begin its usage: DSPy's tracking leaves modules alone where a tracker is set."""
        settings = dspy.settings
        ours = isinstance(settings.usage_tracker, _Tracker) and _within.get() is None
        if ours and settings.track_usage:
            self._modules[call_id] = instance
            _within.set(defaultdict(list))

    def on_module_end(
        self, call_id: str, outputs: Any, exception: BaseException | None = None
    ) -> None:
        """Tell a prediction its usage, as DSPy does, and all of it to whoever tracks around."""
        module, tracker = self._modules.pop(call_id, None), dspy.settings.usage_tracker
        if module is None:
            return
        if exception is None:
            module._set_lm_usage(tracker.get_total_tokens(), outputs)
        used = _within.get() or {}
        _within.set(None)
        for name, entries in used.items():
            tracker.usage_data[name].extend(entries)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Count one, before it is made."""
        with self._lock:
            made = self.calls - self.cached if self.free else self.calls
            if self.most is not None and made >= self.most:
                self.spent = True
                raise SpentError(f"all {self.most} calls are spent")
            self.calls += 1
            self._open[call_id] = instance, _answers()
        _told.set(None)

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Count what it took."""
        lm, before = self._open.pop(call_id)
        used = None if exception is not None else _used(lm, _answers() > before)
        with self._lock:
            if used is None:
                self.failed += 1
            else:
                self.usage = self.usage + used
        if self.tell is not None:
            self.tell(self)


def _answers() -> int:
    """Answers so far that no cache gave, by whatever tracks usage here."""
    tracker = dspy.settings.usage_tracker
    counted = getattr(tracker, "answers", None)
    if counted is None and tracker is not None:
        return sum(map(len, tracker.usage_data.values()))
    return counted or 0


def _used(lm: Any, paid: bool) -> Usage:
    """What a call took that has just ended in this thread or task."""
    heard, entry = Capture(), _told.get()
    heard.answered = True
    if entry is not None:
        heard.entries.append(entry)
    if paid:
        heard.tracker.add_usage("", dict(_tokens() if entry is None else entry["usage"]))
    return heard.usage(lm)


def _tokens() -> Mapping[str, Any]:
    """The tokens of the last answer, where nothing writes history."""
    tracker = dspy.settings.usage_tracker
    if isinstance(tracker, _Tracker):
        return _paid.get()[1]
    totals = tracker.get_total_tokens().values()
    return next(iter(totals), {})


@contextmanager
def counting(
    most: int | None = None, free: bool = False, tell: Callable[[CallCounter], None] | None = None
) -> Iterator[CallCounter]:
    """Counts the calls made inside, also those of threads that outlive it.

    Its arguments are those of :class:`CallCounter`.

    A call that is refused here is not told to counters and callbacks around.
    """
    counter, settings = CallCounter(most, free, tell), dspy.settings
    given = {
        "callbacks": [counter, *(settings.callbacks or [])],
        "caller_modules": [_Listener(), *(settings.caller_modules or [])],
        "usage_tracker": _Tracker(settings.usage_tracker),
    }
    with dspy.context(**given):
        yield counter
