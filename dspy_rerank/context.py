"""How much a model can read at once: the size of its context, measuring, and what is cut to fit.

A question is cut before it is asked, where the size is known: configured, said by the engine, in
DSPy's or LiteLLM's table, or learned from a refusal. Only passages are ever cut, all of one
question to the same length, the short ones not at all.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from . import lite
from .errors import InputError
from .limits import Shared
from .prices import table_entry
from .reading.labels import estimate_tokens, truncate
from .reserving import Call

LEAST = 64
"""Tokens of a passage below which a group is asked about in parts rather than cut further."""
ANSWER = 512
"""Tokens kept free for an answer whose length nobody has limited."""
SHORT = 4096
"""Bytes that fit into any model of a table, so that no table is read for them."""
MARGIN = 1.02
"""How much longer texts may be together than one by one."""
FEWEST = 512
"""Tokens of a prompt below which a refusal that names no limit is not believed."""
ODD = 4.0
"""A stated limit so many times longer than the prompt refused is not the reason."""

_windows: Shared[int] = Shared()
_looked_up: Shared[int] = Shared()

_NUMBER = r"(\d[\d,_]*)"
_LIMIT = re.compile(
    rf"(?:context (?:size|length|window)|tokens allowed|<=|>)\D{{0,20}}?{_NUMBER}"
    rf"|{_NUMBER}(?: tokens?)? maximum",
    re.I,
)
_ASKED = re.compile(
    rf"(?:requested|request \(|count \(|too long:|contains|given:|resulted in)\D{{0,12}}?{_NUMBER}",
    re.I,
)


class TooLong(dspy.ContextWindowExceededError):
    """A question that does not fit even with its passages cut; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Passages as they can be asked about.

    Attributes:
        texts: The passages, in their order.
        cut: Places of those that lost their end.
        crowded: They fit only when cut below `LEAST` tokens: fewer should be asked about at once.
    """

    texts: tuple[str, ...]
    cut: tuple[int, ...] = ()
    crowded: bool = False


def set_window(lm: Any, tokens: int) -> None:
    """Say how many tokens of prompt and answer together an LM and its copies can take.

    Raises:
        InputError: It is no whole number of at least 1.
    """
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        raise InputError(f"a context of {tokens!r} tokens; expected a whole number of at least 1")
    _windows.put(lm, tokens)


def window_of(lm: Any, *, tables: bool = True) -> int | None:
    """Tokens of prompt and answer that an LM can take; ``None`` where nobody knows.

    Args:
        lm: The language model.
        tables: Look into DSPy's or LiteLLM's table, too, which may take seconds the first time.
    """
    told = _windows.get(lm) or getattr(getattr(lm, "engine", None), "n_ctx", None)
    if told is None and tables and isinstance(getattr(lm, "engine", None), str):
        told = _looked_up.get(lm)
        if told is None:
            found = table_entry(lm).get("max_input_tokens")
            told = found if isinstance(found, int) and found > 0 else 0
            _looked_up.put(lm, told)
    return told or None


def needs_table(lm: Any) -> bool:
    """Whether ``window_of`` would have to read a table now."""
    told, engine = window_of(lm, tables=False), getattr(lm, "engine", None)
    return told is None and isinstance(engine, str) and _looked_up.get(lm) is None


def learn(lm: Any, error: BaseException, call: Call) -> int:
    """The size that a refusal tells of, kept for all later questions to the LM.

    Providers name their limit, and often how many tokens came; where that is more than was
    estimated, the limit is taken down by as much. Where none is named, it is half of what came.

    Raises:
        BaseException: The refusal itself, where the prompt is too short to be the reason.
    """
    estimated = call.prompt_tokens()
    stated, asked = _named(_LIMIT, str(error)), _named(_ASKED, str(error))
    if (estimated < FEWEST) if stated is None else (stated > ODD * estimated):
        raise error
    known = window_of(lm, tables=False)
    scale = min(1.0, estimated / asked) if asked and stated and asked > stated else 1.0
    limit = estimated // 2 if stated is None else int(stated * scale)
    if known is not None and limit >= known:  # it was kept to, and that was not enough
        limit = 3 * min(known, estimated) // 4
    _windows.put(lm, limit)
    return limit


def _named(pattern: re.Pattern[str], message: str) -> int | None:
    found = pattern.search(message)
    digits = next((group for group in found.groups() if group), "") if found else ""
    return int(re.sub(r"[,_]", "", digits)[:12]) if digits else None


def surely_fits(call: Call, window: int | None) -> bool:
    """Whether a question fits by the number of its bytes, of which a token has one at least."""
    demos = [value for demo in call.predict.demos for value in dict(demo).values()]
    texts = [call.signature.instructions, *demos, *call.inputs.values()]
    size = sum(map(_bytes, texts)) + ANSWER + 64 * (len(demos) + len(call.inputs))
    return size <= (SHORT if window is None else window)


def _bytes(value: Any) -> int:
    text = value if isinstance(value, str) else str(value)
    return len(text) if text.isascii() else 4 * len(text)


def fit(
    passages: Sequence[str], window: int, asking: Callable[[Sequence[str]], Call], *, parts: bool
) -> Fit:
    """Passages cut evenly, so that the question fits.

    Args:
        passages: As they would be shown.
        window: Tokens of prompt and answer that the LM can take.
        asking: The call about given passages, as many as these.
        parts: Fewer passages can be asked about instead.

    Raises:
        TooLong: Query, instructions and demonstrations, which are never cut, leave no room.
    """
    whole, empty = asking(passages), asking([""] * len(passages))
    room = _room(whole, window)
    if _measured(whole) <= room:
        return Fit(tuple(passages))
    frame = _measured(empty)
    count = _counter(whole.lm)
    sizes = [count(text) for text in passages]
    swelling = (_measured(whole) - frame) / max(1, sum(sizes))
    left = int((room - frame) / max(MARGIN, swelling))
    if left < len(passages):
        raise TooLong(model=getattr(whole.lm, "model", None), message=_complaint(frame, window))
    most = level(sizes, left)
    pairs = [truncate(text, most, count) for text in passages]
    cut = tuple(place for place, (_, was) in enumerate(pairs) if was)
    return Fit(tuple(text for text, _ in pairs), cut, parts and most < LEAST)


def _complaint(frame: int, window: int) -> str:
    return (
        f"the query, instructions and demonstrations take about {frame} tokens, and a context of "
        f"{window} leaves no room for passages beside them and the answer. Shorten them, take "
        "fewer demonstrations, or a model that reads more"
    )


def _room(call: Call, window: int) -> int:
    """Tokens for the prompt."""
    answer = call.answer_tokens()
    scored = isinstance((call.config.get("metadata") or {}).get("likelihood"), str)
    if scored and answer is not None:
        return window - answer
    return window - min(ANSWER if answer is None else answer, window // 4)


def level(sizes: Sequence[int], room: int) -> int:
    """The highest limit under which sizes sum to no more than there is room for."""
    left, rest = room, sorted(sizes)
    for place, size in enumerate(rest):
        share = left // (len(rest) - place)
        if size > share:
            return share
        left -= size
    return rest[-1] if rest else room


def _counter(lm: Any) -> Callable[[str], int]:
    """The model's own tokenizer where it is at hand, else an estimate on the safe side."""
    own = getattr(getattr(lm, "engine", None), "count_tokens", None)
    return own or _encoding(lm) or estimate_tokens


def _encoding(lm: Any) -> Callable[[str], int] | None:
    """LiteLLM's tokenizer of a model of OpenAI's, where LiteLLM is loaded; nothing is fetched."""
    model, options = str(getattr(lm, "model", "")), getattr(lm, "kwargs", None) or {}
    if "litellm" not in sys.modules or not model.startswith(("openai/", "azure/")):
        return None
    if options.get("api_base") or options.get("base_url"):
        return None  # any model may be behind it
    counter: Any = lite.litellm().token_counter
    return lambda text: counter(model=model, text=text)


def _measured(call: Call) -> int:
    count = _counter(call.lm)
    return call.prompt_tokens() if count is estimate_tokens else count(call.prompt())
