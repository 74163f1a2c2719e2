"""Token log-probabilities, and what can be concluded from them. Pure, no model is called."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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


class Masses(NamedTuple):
    """Probabilities of labels at the place of an answer.

    Attributes:
        of: They sum to one over the labels; ``None`` when they cannot be told.
        why: Why they cannot be told; else empty.
    """

    of: dict[str, float] | None
    why: str = ""


def place_of(tokens: Sequence[Token], said: str, offset: int | None, names: Iterable[str]) -> int:
    """Where an answer begins in the joined text of the tokens, or -1.

    Args:
        tokens: The whole completion, wrapping included.
        said: The answer field's text as unwrapped; its last mention counts, so that reasoning
            and headers before it do not matter.
        offset: Where the answer begins in that text, if this is known.
        names: Spellings of the answer; without an offset the last one that stands alone counts,
            in this case if there is one, in any case otherwise.
    """
    whole = _plain("".join(token.token for token in tokens))
    start = whole.rfind(said) if said else -1
    if start >= 0 and offset is not None:
        return start + offset
    for flags in (0, re.IGNORECASE):
        words = "|".join(re.escape(name) for name in names)
        found = list(
            re.finditer(rf"(?<![^\W_])(?:{words})(?![^\W_])", whole[max(0, start) :], flags)
        )
        if found:
            return max(0, start) + found[-1].start()
    return -1


def label_masses(
    tokens: Sequence[Token], place: int, labels: Mapping[str, Sequence[str]]
) -> Masses:
    """Probability of each label at a place of the completion.

    The mass of all spellings of a label is summed: other capitals, leading spaces, quotes glued
    to it. A label that is written in several tokens is followed along the answer that was given.
    Labels that are not among the alternatives, of which providers give the top few, count zero.

    Args:
        tokens: The whole completion.
        place: Where the answer begins in the tokens' joined text.
        labels: Each label with its further spellings.
    """
    if not tokens:
        return Masses(None, "the model gave no log-probabilities")
    at = _token_at(tokens, place)
    if at is None:
        return Masses(None, "no token spells the answer")
    if len(tokens[at].top) < 2:
        return Masses(None, "the model gave no alternatives to its tokens")
    names = {name.lower(): label for label, more in labels.items() for name in (label, *more)}
    tally = _Tally(names, dict.fromkeys(labels, 0.0))
    _spread(tokens, at, "", 1.0, tally)
    total = math.fsum(tally.mass.values())
    if total <= 0 or tally.doubtful > DOUBT * total:
        return Masses(None, "the alternatives cannot be told apart by their first token")
    return Masses({label: mass / total for label, mass in tally.mass.items()})


DOUBT = 0.05
"""Share of mass on alternatives that may begin several labels, above which nothing is concluded."""


@dataclass
class _Tally:
    names: Mapping[str, str]
    mass: dict[str, float]
    doubtful: float = 0.0

    def continues(self, word: str) -> bool:
        """Whether a longer name begins with the word."""
        return any(name.startswith(word) and name != word for name in self.names)

    def add(self, word: str, ended: bool, chosen: bool, mass: float, least: int) -> None:
        """Credit an alternative's mass to the label that it spells, or begins with enough letters.

        A single letter may begin anything, unless the answer itself came letter by letter.
        """
        exact = self.names.get(word)
        begun = set() if ended else {la for n, la in self.names.items() if n.startswith(word)}
        if exact is not None:
            self.mass[exact] += mass
            self.doubtful += mass if begun - {exact} and not chosen else 0.0
        elif begun and (chosen or len(word) >= least):
            self.mass[min(begun)] += mass if len(begun) == 1 else 0.0
            self.doubtful += mass if len(begun) > 1 else 0.0


def _spread(tokens: Sequence[Token], at: int, before: str, weight: float, tally: _Tally) -> None:
    """Share the mass at a token among the labels, following the one chosen where it goes on."""
    token = tokens[at]
    alternatives = dict(token.top)
    alternatives.setdefault(token.token, token.logprob)
    least = min(2, len(_word(token.token, before)[0]))
    for text, logprob in alternatives.items():
        word, ended = _word(text, before)
        mass, chosen = weight * math.exp(logprob), text == token.token
        goes_on = chosen and not ended and at + 1 < len(tokens) and tokens[at + 1].top
        if not word:
            continue
        if goes_on and tally.continues(word):
            _spread(tokens, at + 1, word, mass, tally)
        else:
            tally.add(word, ended, chosen, mass, least)


def _word(text: str, before: str) -> tuple[str, bool]:
    """What a token makes of the word begun before it, and whether the word ends in it."""
    plain = _plain(text).lower()
    rest = plain if before else plain.lstrip(_DECORATION)
    run = re.match(r"[^\W_]*", rest)
    added = run.group() if run else ""
    return before + added, len(added) < len(rest)


def _token_at(tokens: Sequence[Token], place: int) -> int | None:
    """The token in which a place of the joined text lies."""
    end = 0
    for number, token in enumerate(tokens):
        end += len(token.token)
        if 0 <= place < end:
            return number
    return None


_DECORATION = "\"'`*[](){}<>.:=,#_-\n\r\t "
_PLAIN = str.maketrans("Ġ▁Ċ", "  \n")


def _plain(text: str) -> str:
    """Text with the space marks of tokenizers as the spaces they stand for."""
    return text.translate(_PLAIN)
