"""Probabilities of labels, from the tokens at the place where an answer stands."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ._tokens import Token

DOUBT = 0.05
"""Share of mass that may belong to other labels, above which no confidence is concluded."""


class Masses(NamedTuple):
    """Probabilities of labels at the place of an answer.

    Attributes:
        of: They sum to one over the labels; ``None`` when they cannot be told.
        why: Why they cannot be told; else empty.
        missed: The most that may lie on labels outside of the alternatives given, as a share.
    """

    of: dict[str, float] | None
    why: str = ""
    missed: float = 0.0


def place_of(
    tokens: Sequence[Token],
    said: str,
    offset: int | None,
    names: Iterable[str],
    *,
    field: str = "",
    text: str = "",
) -> int:
    """Where an answer begins in the joined text of the tokens, or -1.

    Args:
        tokens: The whole completion, wrapping included.
        said: The answer field's text as unwrapped. Its last mention behind the field's name
            counts, or else its last mention, so that reasoning around it does not matter.
        offset: Where the answer begins in that text, if this is known.
        names: Spellings of the answer; without an offset the last one that stands alone counts,
            in this case if there is one, in any case otherwise.
        field: The answer field's name.
        text: The completion; tokens that do not spell it say nothing.
    """
    whole = _plain("".join(token.token for token in tokens))
    if _bare(text) not in _bare(whole):
        return -1
    start = _start(whole, said, field)
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


def _start(whole: str, said: str, field: str) -> int:
    """Where the answer field's text begins: behind the field's name, alone, or anywhere."""
    if not said:
        return -1
    text = re.escape(said)
    name = "|".join((re.escape(field).replace("_", "[ _]"), "answer")) if field else r"(?!)"
    for pattern in (rf"(?:{name})\W{{1,16}}?({text})", rf"(?<![^\W_])({text})(?![^\W_])"):
        *_, last = None, *re.finditer(pattern, whole, re.IGNORECASE)
        if last is not None:
            return last.start(1)
    return whole.rfind(said)


def label_masses(
    tokens: Sequence[Token], place: int, labels: Mapping[str, Sequence[str]]
) -> Masses:
    """Probability of each label at a place of the completion.

    The mass of all spellings of a label is summed: other capitals, leading spaces, quotes glued
    to it. A label that is written in several tokens is followed along the answer that was given.
    Labels that are not among the alternatives, of which providers give the top few, count zero;
    ``missed`` says how much they may have at most.

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
    tally = _Tally(names, dict.fromkeys(labels, 0.0), _whole(tokens[at], names))
    _spread(tokens, at, "", 1.0, tally)
    total = math.fsum(tally.mass.values())
    if total <= 0 or tally.doubtful > DOUBT * total:
        return Masses(None, "the alternatives cannot be told apart by their first token")
    unseen = _unseen(tokens[at], [name for name, label in names.items() if not tally.mass[label]])
    shares = {label: mass / total for label, mass in tally.mass.items()}
    return Masses(shares, missed=unseen / (total + unseen))


def _whole(token: Token, names: Mapping[str, str]) -> frozenset[str]:
    """Names that the tokenizer writes as one token, as far as the alternatives show it."""
    return frozenset(_word(text, "")[0] for text, _ in token.top) & names.keys()


def _unseen(token: Token, names: Sequence[str]) -> float:
    """The most that names outside of the alternatives can have: no more than the least of these."""
    given = [math.exp(logprob) for _, logprob in _alternatives(token)]
    return min(max(0.0, 1 - math.fsum(given)), len(names) * min(given))


def _alternatives(token: Token) -> set[tuple[str, float]]:
    """The alternatives given, and the token chosen, which some providers leave out."""
    chosen = (token.token, token.logprob)
    named = any(text == token.token for text, _ in token.top)
    return {*token.top} if named else {*token.top, chosen}


@dataclass
class _Tally:
    names: Mapping[str, str]
    mass: dict[str, float]
    whole: frozenset[str]
    doubtful: float = 0.0

    def continues(self, word: str) -> bool:
        """Whether a longer name begins with the word."""
        return any(name.startswith(word) and name != word for name in self.names)

    def begun(self, word: str) -> set[str]:
        """Labels whose names may go on from the word.

        Not those that are seen in one token elsewhere, nor words of which one letter is there:
        ``N`` is no beginning of ``None``, while ``1`` may be one of ``10`` and ``A`` of ``AA``.
        """
        letter = len(word) == 1 and word.isalpha()
        longer = (n for n in self.names if n.startswith(word) and n != word and n not in self.whole)
        return {self.names[name] for name in longer if not letter or self._pair(name)}

    def _pair(self, name: str) -> bool:
        """Whether a name is a label of two letters, such as follow on ``Z``."""
        return len(name) == 2 and self.names[name].lower() == name

    def add(self, word: str, ended: bool, chosen: bool, mass: float, least: int) -> None:
        """Credit an alternative's mass to the label that it spells, or begins with enough letters.

        A single letter may begin anything, unless the answer itself came letter by letter.
        """
        exact = self.names.get(word)
        if exact is not None:
            self.mass[exact] += mass
            self.doubtful += mass if not ended and self.begun(word) - {exact} else 0.0
        elif not ended and (chosen or len(word) >= least):
            begun = {label for name, label in self.names.items() if name.startswith(word)}
            if len(begun) == 1:
                self.mass[begun.pop()] += mass
            elif begun:
                self.doubtful += mass


def _spread(tokens: Sequence[Token], at: int, before: str, weight: float, tally: _Tally) -> None:
    """Share the mass at a token among the labels, following the one chosen where it goes on."""
    token = tokens[at]
    least = min(2, len(_word(token.token, before)[0]))
    for text, logprob in _alternatives(token):
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
    """What a token makes of the word begun before it, and whether the word ends in it.

    A token without text is the end of the completion.
    """
    plain = _plain(text).lower()
    rest = plain if before else plain.lstrip(_DECORATION)
    run = re.match(r"[^\W_]*", rest)
    added = run.group() if run else ""
    return before + added, len(added) < len(rest) or not plain


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
_BYTES = re.compile(r"<0x[0-9A-Fa-f]{2}>|bytes:(?:\\x[0-9A-Fa-f]{2})+")
_OTHER = re.compile(r"[^A-Za-z0-9]+")


def _plain(text: str) -> str:
    """Text with the space marks of tokenizers as the spaces they stand for."""
    return text.translate(_PLAIN)


def _bare(text: str) -> str:
    """Letters and digits only: what tokenizers leave as it is, bytes written out left aside."""
    return _OTHER.sub("", _BYTES.sub("", text))
