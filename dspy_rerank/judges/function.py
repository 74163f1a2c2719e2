"""A plain function as judge."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from ..background import in_thread
from ..errors import InputError, JudgeError
from ..types import Group, Judgment, Kind, Status, Usage
from .protocol import Answer, Failure, Question

ALIASES = {
    0: ("left", "a", "first", "1"),
    1: ("right", "b", "second", "2"),
}
TIES = ("tie", "equal", "same", "draw", "both", "neither", "none", "")


class FunctionJudge:
    """Asks ``fn(query, passages)`` instead of a language model; one call a question.

    What the function returns, by kind:

    - pointwise: a number (``passages`` holds one text).
    - pairwise: ``left/right/tie``, ``A/B``, ``first/second``, ``equal``; a positive number for the
      left one, negative for the right, zero for a tie; ``True`` for the left one; or a mapping
      with ``winner`` and perhaps ``confidence`` and ``reasoning``.
    - setwise: the place of the best passage, from 0; ``None`` when nothing is relevant.
    - listwise: all places, best first, from 0; an empty list when nothing is relevant.

    ``None`` for pointwise or pairwise means that the function does not know. A synchronous
    function runs in a worker thread and may be called from several at once.

    Args:
        fn: Called as ``fn(query, passages)``, with the extra inputs as keywords if there are any.
        kind: What the function returns.
    """

    def __init__(self, fn: Callable[..., Any], kind: Kind = "pairwise"):
        if kind not in get_args(Kind):
            raise InputError(f"kind={kind!r} is none of {', '.join(get_args(Kind))}")
        if not callable(fn):
            raise InputError(f"fn is {type(fn).__name__}, expected a function")
        self.fn = fn
        self._kind: Kind = kind

    @property
    def kind(self) -> Kind:
        """Which kind of judgment comes out."""
        return self._kind

    @property
    def extra_inputs(self) -> tuple[str, ...] | None:
        """Any: they are passed on as keywords."""
        return None

    def ready(self) -> "FunctionJudge":
        """Itself: a function needs no model."""
        return self

    def presentations(self, group: Group, query: str, seed: int) -> tuple[Group, ...]:
        """The group as it stands: a function has no preference for a place."""
        return (group,)

    async def ask(self, question: Question) -> Answer:
        """Call the function once."""
        result = await self._call(question)
        judgment = replace(
            read_result(self._kind, result, len(question.passages)),
            evidence="function",
            raw=repr(result)[:500],
        )
        return Answer(judgment, Usage(calls=1, passages_read=len(question.passages), cost=0.0))

    async def _call(self, question: Question) -> Any:
        passages = list(question.passages)
        if inspect.iscoroutinefunction(self.fn):
            return await self.fn(question.query, passages, **question.inputs)
        result = await in_thread(self.fn, question.query, passages, **question.inputs)
        return await result if inspect.isawaitable(result) else result

    def combine(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        """The one judgment."""
        return replace(judgments[0], group=group)

    def failure(self, error: BaseException) -> Failure:
        """An error in a function is not cured by calling it again, and it costs no ranking."""
        return "fatal" if isinstance(error, JudgeError) else "lasting"

    def __repr__(self) -> str:
        return f"FunctionJudge({getattr(self.fn, '__name__', self.fn)}, kind={self._kind!r})"


def read_result(kind: Kind, result: Any, shown: int) -> Judgment:
    """What a function returned, as a judgment over places ``0..shown-1``.

    Raises:
        JudgeError: The value is not an answer of this kind.
    """
    readers = {"pointwise": _grade, "pairwise": _preference, "setwise": _choice, "listwise": _order}
    return readers[kind](result, tuple(range(shown)))


def _number(result: Any) -> bool:
    return hasattr(result, "__float__") and not isinstance(result, str | bytes)


def _wrong(kind: str, result: Any, expected: str) -> JudgeError:
    return JudgeError(f"a {kind} function returned {result!r:.80}; expected {expected}")


def _unknown(kind: Kind, places: Group, why: str) -> Judgment:
    return Judgment(kind, places, "unknown", reason=why)


def _grade(result: Any, places: Group) -> Judgment:
    if result is None:
        return _unknown("pointwise", places, "the function returned None")
    if not _number(result):
        raise _wrong("pointwise", result, "a number")
    if not math.isfinite(float(result)):
        return _unknown("pointwise", places, f"the function returned {float(result)}")
    return Judgment("pointwise", places, "ok", score=float(result))


def _preference(result: Any, places: Group) -> Judgment:
    if isinstance(result, Mapping):
        return _described(result, places)
    if result is None:
        return _unknown("pairwise", places, "the function returned None")
    winner = _winner(result)
    return Judgment("pairwise", places, "ok", best=winner, tie=winner is None)


def _described(result: Mapping[str, Any], places: Group) -> Judgment:
    if "winner" not in result:
        raise _wrong("pairwise", dict(result), "a mapping with a winner")
    judgment = _preference(result["winner"], places)
    sure = result.get("confidence")
    if sure is None or not _number(sure):
        return replace(judgment, reason=str(result.get("reasoning") or ""))
    return replace(
        judgment,
        confidence=min(1.0, max(0.0, float(sure))),
        confidence_source="stated",
        reason=str(result.get("reasoning") or ""),
    )


def _winner(result: Any) -> int | None:
    if isinstance(result, str):
        word = result.strip().lower()
        if word in TIES:
            return None
        found = next((place for place, words in ALIASES.items() if word in words), None)
        if found is None:
            raise _wrong("pairwise", result, "left, right, tie, A, B, first, second or equal")
        return found
    if isinstance(result, bool):
        return 0 if result else 1
    if not _number(result) or math.isnan(float(result)):
        raise _wrong("pairwise", result, "a word, a number, a bool or a mapping")
    return None if float(result) == 0 else 0 if float(result) > 0 else 1


def _choice(result: Any, places: Group) -> Judgment:
    if result is None:
        return Judgment("setwise", places, "none")
    if not _integer(result) or int(result) not in places:
        raise _wrong("setwise", result, f"a place from 0 to {places[-1]}, or None")
    return Judgment("setwise", places, "ok", best=int(result))


def _order(result: Any, places: Group) -> Judgment:
    usable = isinstance(result, Iterable) and not isinstance(result, str | Mapping)
    values = list(result) if usable else []
    if not usable or not all(map(_integer, values)):
        raise _wrong("listwise", result, "all places, best first")
    if not values and places:
        return Judgment("listwise", places, "none")
    seen = [int(v) for v in dict.fromkeys(values) if int(v) in places]
    if not seen:
        raise _wrong("listwise", result, f"places from 0 to {places[-1]}")
    whole = (*seen, *(p for p in places if p not in seen))
    status: Status = "ok" if whole == tuple(values) else "repaired"
    return Judgment("listwise", places, status, order=whole)


def _integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)
