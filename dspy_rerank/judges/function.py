"""A plain function as judge."""

import inspect
import math
import operator
import re
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
TIES = ("tie", "tied", "equal", "equals", "same", "draw", "both", "neither", "none")
NOUNS = ("candidate ", "option ", "passage ", "document ", "item ")
WINNERS = ("winner", "preferred", "preference", "choice", "better", "result")
CONFIDENCES = ("confidence", "certainty", "probability")
REASONINGS = ("reasoning", "reason", "rationale", "explanation")
_ARGUMENT = re.compile(r"(?:positional|keyword) argument")
_LIST = re.compile(r"\blist\b")


class FunctionJudge:
    """Asks ``fn(query, passages)`` instead of a language model; one call a question.

    What the function returns, by kind:

    - pointwise: a number (``passages`` holds one text).
    - pairwise: ``left/right/tie``, ``A/B``, ``first/second``, ``equal``; a positive number for the
      left one, negative for the right, zero for a tie; ``True`` for the left one; or a mapping
      with ``winner`` (or ``preferred``, ``choice``, ...) and perhaps ``confidence`` in [0, 1]
      and ``reasoning`` (or ``reason``, ``explanation``, ...).
    - setwise: the place of the best passage, from 0; ``None`` when nothing is relevant.
    - listwise: all places, best first, from 0; an empty list when nothing is relevant.

    ``None`` for pointwise or pairwise means that the function does not know. A synchronous
    function runs in a worker thread and may be called from several at once.

    ``passages`` is a list of texts, never an index or one text. A function that cannot be called
    so, or returns anything else, is a :class:`JudgeError` whatever ``on_error`` says. Once it has
    answered, what it raises is a failure like a model's.

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
        self._answered = False

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
        try:
            result = await self._call(question)
        except Exception as error:
            why = "" if self._answered else _misused(self.fn, question, error)
            if why:
                raise JudgeError(why) from error
            raise
        self._answered = True
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


def _misused(fn: Callable[..., Any], question: Question, error: Exception) -> str:
    """Why the function is not one of a query and a list of texts, where its error tells.

    What it makes of further inputs is no such error: those may come from anywhere.
    """
    said, name = str(error), getattr(fn, "__name__", repr(fn))
    if isinstance(error, TypeError) and _ARGUMENT.search(said):
        said = _uncallable(fn)
    elif not (isinstance(error, TypeError | AttributeError) and _LIST.search(said)):
        said = said if isinstance(error, IndexError) and "valid indices" in said else ""
    if not said:
        return ""
    shown = [f"{text:.40}" for text in question.passages[:2]]
    extra = "".join(f", {name}=..." for name in question.inputs)
    return (
        f"{name} was called as fn(query, passages{extra}) with a list of texts such as {shown} as "
        f"passages, and failed: {said}; expected a function of the query and such a list, not of "
        "an index or of one text"
    )


def _uncallable(fn: Callable[..., Any]) -> str:
    """How a query and passages do not fit the function's parameters; empty where they do."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # one that is not written in Python and says nothing
        return ""
    try:
        signature.bind_partial("query", ["passages"])
    except TypeError as misfit:
        return f"its parameters are {signature}: {misfit}"
    return ""


def read_result(kind: Kind, result: Any, shown: int) -> Judgment:
    """What a function returned, as a judgment over places ``0..shown-1``.

    Raises:
        JudgeError: The value is not an answer of this kind.
    """
    readers = {"pointwise": _grade, "pairwise": _preference, "setwise": _choice, "listwise": _order}
    return readers[kind](result, tuple(range(shown)))


def _number(result: Any) -> bool:
    """Whether it can be a number; an array of several has the method, too."""
    if isinstance(result, str | bytes) or not hasattr(result, "__float__"):
        return False
    try:
        float(result)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


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
    if isinstance(result, str) and not result.strip():
        return _unknown("pairwise", places, "the function returned an empty text")
    winner = _winner(result)
    return Judgment("pairwise", places, "ok", best=winner, tie=winner is None)


def _described(result: Mapping[str, Any], places: Group) -> Judgment:
    given = {str(name).strip().lower(): value for name, value in result.items()}
    name = next((name for name in WINNERS if name in given), None)
    if name is None:
        raise _wrong("pairwise", dict(result), "a mapping with a winner")
    judgment = _preference(given[name], places)
    sure = _confidence(next((given[n] for n in CONFIDENCES if n in given), None))
    why = next((str(given[n]) for n in REASONINGS if given.get(n)), judgment.reason)
    source = "none" if sure is None else "stated"
    return replace(judgment, confidence=sure, confidence_source=source, reason=why)


def _confidence(value: Any) -> float | None:
    """A number cut to [0, 1]; what is no number is no confidence."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else min(1.0, max(0.0, number))


def _winner(result: Any) -> int | None:
    if isinstance(result, str):
        word = result.strip(" \t\n.!'\"`*()[]").lower()
        bare = next((word.removeprefix(noun) for noun in NOUNS if word.startswith(noun)), word)
        if bare in TIES:
            return None
        found = next((place for place, words in ALIASES.items() if bare in words), None)
        if found is None:
            raise _wrong("pairwise", result, "left, right, tie, A, B, first, second or equal")
        return found
    if isinstance(result, bool) or str(getattr(result, "dtype", "")) == "bool":
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
    seen = [int(v) for v in dict.fromkeys(values)]
    if not set(seen) <= set(places):
        raise _wrong("listwise", result, f"places from 0 to {places[-1]}" if places else "none")
    whole = (*seen, *(p for p in places if p not in seen))
    status: Status = "ok" if whole == tuple(values) else "repaired"
    return Judgment("listwise", places, status, order=whole)


def _integer(value: Any) -> bool:
    try:
        return operator.index(value) is not None and not isinstance(value, bool)
    except TypeError:
        return False
