"""Token log-probabilities, and what can be concluded from them. Pure, no model is called."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

ROUNDING = 1e-3
"""How far above zero a log-probability may come out of reduced precision; more is no logprob."""


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

    Accepts a logprobs object or mapping with ``content``, or a list of entries with ``token`` and
    ``logprob``. Entries without a finite log-probability make the whole source absent: a partial
    list would pass for a confident one.
    """
    content = _get(source, "content") if not isinstance(source, list | tuple) else source
    if not isinstance(content, Iterable) or isinstance(content, str | bytes | Mapping):
        return ()
    tokens = [_token(entry) for entry in content]
    return tuple(t for t in tokens if t) if all(tokens) else ()


def _get(source: Any, name: str) -> Any:
    if isinstance(source, Mapping):
        return source.get(name)
    return getattr(source, name, None)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return min(0.0, float(value)) if value <= ROUNDING else None


def _token(entry: Any) -> Token | None:
    logprob = _number(_get(entry, "logprob"))
    text = _get(entry, "token")
    if logprob is None or not isinstance(text, str):
        return None
    top = _get(entry, "top_logprobs") or _get(entry, "top") or ()
    pairs = ((_get(t, "token"), _number(_get(t, "logprob"))) for t in top)
    return Token(
        text, logprob, tuple((t, p) for t, p in pairs if isinstance(t, str) and p is not None)
    )


def mean_logprob(tokens: Sequence[Token]) -> float | None:
    """Mean natural log-probability a token, or ``None`` where there are none."""
    if not tokens:
        return None
    return math.fsum(token.logprob for token in tokens) / len(tokens)


def label_probabilities(
    tokens: Sequence[Token], labels: Mapping[str, Sequence[str]], answer: str
) -> dict[str, float] | None:
    """Probability of each label at the place where the answer's label stands.

    Args:
        tokens: The whole completion, wrapping included.
        labels: Each label with its further spellings; the mass of all spellings is summed.
        answer: The label that was read as the answer. The last token that spells it is taken for
            the place of the answer, so that reasoning and headers before it do not matter.

    Returns:
        Probabilities that sum to one over the labels, or ``None`` when no token spells the answer
        or the alternatives were not given.
    """
    spelling = {_bare(s): label for label, more in labels.items() for s in (label, *more)}
    for token in reversed(tokens):
        if spelling.get(_bare(token.token)) == answer and token.top:
            return _masses(token, spelling, labels)
    return None


def _masses(token: Token, spelling: Mapping[str, str], labels: Iterable[str]) -> dict[str, float]:
    mass = dict.fromkeys(labels, 0.0)
    candidates = dict(token.top)
    candidates.setdefault(token.token, token.logprob)
    for text, logprob in candidates.items():
        label = spelling.get(_bare(text))
        if label is not None:
            mass[label] += math.exp(logprob)
    total = math.fsum(mass.values())
    return {label: value / total for label, value in mass.items()} if total > 0 else mass


def _bare(text: str) -> str:
    return text.strip().strip("\"'`*[]().:,Ġ▁ ").lower()
