"""Log-probabilities of tokens in every shape in which providers give them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from numbers import Real
from typing import Any, NamedTuple

ROUNDING = 1e-3
"""How far above zero a log-probability may come out of reduced precision; more is no logprob."""

_LOGPROB = ("logprob", "log_probability", "logProbability")
_CHOSEN = ("chosen_candidates", "chosenCandidates")
_TOP = ("top_candidates", "topCandidates")


class Token(NamedTuple):
    """One token of a completion.

    Attributes:
        token: Its text.
        logprob: Natural logarithm of its probability.
        top: The likeliest tokens at this place with their log-probabilities, if they were given.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


def read_tokens(source: Any) -> tuple[Token, ...]:
    """Log-probabilities in any of the shapes that providers and DSPy use.

    Accepts a logprobs object or mapping with ``content`` (OpenAI, vLLM, llama.cpp, LiteLLM), with
    ``tokens`` and ``token_logprobs`` (text completions), or with ``chosenCandidates`` and
    ``topCandidates`` (Gemini), and a list of entries with ``token`` and ``logprob``. Entries
    without a finite log-probability make the whole source absent: a partial list would pass for
    a confident one.
    """
    tokens = [_token(entry) for entry in _entries(source)]
    return tuple(t for t in tokens if t) if all(tokens) else ()


def why_unusable(source: Any) -> str:
    """Which of the entries is no token with a log-probability; empty when there are none at all."""
    for place, entry in enumerate(_entries(source)):
        if _token(entry) is None:
            expected = "a token with a finite log-probability of at most 0"
            return f"entry {place} is {str(entry)[:80]}; expected {expected}"
    return ""


def mean_logprob(tokens: Sequence[Token]) -> float | None:
    """Mean natural log-probability a token, or ``None`` where there are none."""
    if not tokens:
        return None
    return math.fsum(token.logprob for token in tokens) / len(tokens)


def _get(source: Any, name: str) -> Any:
    if isinstance(source, Mapping):
        return source.get(name)
    return getattr(source, name, None)


def _first(source: Any, names: Iterable[str]) -> Any:
    """The first attribute or item of these names that is not ``None``."""
    return next((v for v in (_get(source, name) for name in names) if v is not None), None)


def _listed(source: Any) -> list[Any]:
    """The elements of a list of any kind; nothing for texts, mappings and single values."""
    if not isinstance(source, Iterable) or isinstance(source, str | bytes | Mapping):
        return []
    return list(source)


def _entries(source: Any) -> list[Any]:
    """The source as a list of entries, one a token."""
    if isinstance(source, list | tuple):
        return list(source)
    for read in (lambda given: _listed(_get(given, "content")), _completed, _candidates):
        found = read(source)
        if found:
            return found
    return []


def _completed(source: Any) -> list[Any]:
    """Entries of a text completion: parallel lists of tokens, numbers and alternatives."""
    tokens, numbers = _listed(_get(source, "tokens")), _listed(_get(source, "token_logprobs"))
    if not tokens or len(tokens) != len(numbers):
        return []
    tops = _listed(_get(source, "top_logprobs"))[: len(tokens)]
    return [
        {"token": token, "logprob": number, "top_logprobs": list(_named(top))}
        for token, number, top in zip_longest(tokens, numbers, tops)
    ]


def _named(top: Any) -> Iterator[dict[str, Any]]:
    """Alternatives that are a mapping from text to number."""
    if isinstance(top, Mapping):
        yield from ({"token": text, "logprob": number} for text, number in top.items())


def _candidates(source: Any) -> list[Any]:
    """Entries of Gemini's result: the chosen candidates beside the likeliest ones."""
    chosen = _listed(_first(source, _CHOSEN))
    tops = [_listed(_get(each, "candidates")) for each in _listed(_first(source, _TOP))]
    return [
        {"token": _get(token, "token"), "logprob": _first(token, _LOGPROB), "top_logprobs": top}
        for token, top in zip_longest(chosen, tops[: len(chosen)])
    ]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return None
    return min(0.0, float(value)) if value <= ROUNDING else None


def _token(entry: Any) -> Token | None:
    logprob = _number(_first(entry, _LOGPROB))
    text = _get(entry, "token")
    if logprob is None or not isinstance(text, str):
        return None
    top = _listed(_get(entry, "top_logprobs") or _get(entry, "top"))
    pairs = ((_get(t, "token"), _number(_first(t, _LOGPROB))) for t in top)
    return Token(
        text, logprob, tuple((t, p) for t, p in pairs if isinstance(t, str) and p is not None)
    )
