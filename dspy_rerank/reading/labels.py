"""How passages are shown: labelled, harmless to the frame around them, and short enough."""

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from string import ascii_uppercase

HEADINGS = ("Query:", "Passage:")
"""Field headings of a prompt that a passage must not be able to fake."""

_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_INDENT = rf"(?:[^\S{_LINE_ENDS}]|[>\"'“”‘’«»‹›`\u200b\ufeff])*"

_PIECE = re.compile(r"(?<=[a-z]{12})[a-z]{1,2}| ?(?:[A-Z]?[a-z]{1,4}|[A-Z]{1,2})|.", re.DOTALL)
_SCRIPTS = (
    (0x0000, 1.0),  # ASCII, Latin
    (0x0250, 2.0),  # phonetic letters
    (0x0300, 1.0),  # combining accents, Greek, Cyrillic
    (0x0530, 2.0),  # Armenian, Hebrew points
    (0x05D0, 1.1),  # Hebrew
    (0x0600, 1.0),  # Arabic
    (0x064B, 2.0),  # Arabic points
    (0x0660, 1.0),
    (0x0700, 3.0),
    (0x0900, 1.5),  # Indic scripts, Thai, Lao
    (0x0F00, 3.0),  # Tibetan, Burmese, Georgian, Khmer
    (0x2000, 1.0),  # typographic punctuation
    (0x2070, 3.0),
    (0x3000, 1.5),  # kana, CJK ideographs
    (0xA000, 3.0),
    (0xAC00, 1.5),  # Hangul
    (0xD800, 3.0),
    (0xFF00, 1.5),  # full-width forms
    (0xFFF0, 3.0),
    (0x10000, 4.0),  # emoji, rare ideographs
)
_STARTS = tuple(start for start, _ in _SCRIPTS)
_LONGEST_CLUSTER = 32


def numbers(count: int) -> tuple[str, ...]:
    """Labels ``1, 2, 3, ...``."""
    return tuple(str(i + 1) for i in range(count))


def letters(count: int) -> tuple[str, ...]:
    """Labels ``A, B, ..., Z, AA, AB, ...``."""
    return tuple(map(_letter, range(count)))


def _letter(place: int) -> str:
    before, last = divmod(place, 26)
    return (_letter(before - 1) if before else "") + ascii_uppercase[last]


def show(
    passages: Sequence[str], labels: Sequence[str], headings: Sequence[str] = HEADINGS
) -> tuple[str, ...]:
    """Each passage behind its marker, ``Passage [A]: text``; a single one is the text only."""
    texts = [neutralise(text, headings) for text in passages]
    if len(texts) == 1:
        return tuple(texts)
    return tuple(f"Passage [{label}]: {text}" for label, text in zip(labels, texts, strict=True))


def render(
    passages: Sequence[str], labels: Sequence[str], headings: Sequence[str] = HEADINGS
) -> str:
    """The passages as one prompt string, one marker a passage at the start of a line."""
    return "\n".join(show(passages, labels, headings))


def neutralise(text: str, headings: Sequence[str] = HEADINGS) -> str:
    """The text with our own line-anchored markers quoted by ``> ``; all else is left alone."""
    folded = text.casefold()
    if "passage" not in folded and not any(name.casefold() in folded for name in headings):
        return text
    return _marker(tuple(headings)).sub("> ", text)


@cache
def _marker(headings: tuple[str, ...]) -> re.Pattern[str]:
    """The beginning of any line that could pass for one of ours."""
    names = "|".join(map(re.escape, headings)) or r"(?!)"
    return line_start(rf"Passage\s*\[[^\]\n]{{0,20}}\]\s*:|{names}")


def line_start(pattern: str) -> re.Pattern[str]:
    """The place before a pattern that begins a line, as a reader sees it, quotes aside."""
    marker = rf"(?:^|(?<=[{_LINE_ENDS}]))(?={_INDENT}(?:{pattern}))"
    return re.compile(marker, re.IGNORECASE)


def clean(text: str) -> str:
    """The text without what cannot be sent: lone surrogates and NUL become U+FFFD.

    A surrogate pair becomes the character it stands for.
    """
    if text.isascii() and "\0" not in text:
        return text
    whole = re.sub("[\ud800-\udbff][\udc00-\udfff]", _paired, text)
    return re.sub("[\ud800-\udfff\0]", "\ufffd", whole)


def _paired(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16", "surrogatepass").decode("utf-16")


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has, without a tokenizer; meant to err upwards.

    Words count one token for every four letters, for every two beyond the twelfth, digits and
    punctuation one each, characters of scripts without spaces one and a half, rare ones as many
    as they have bytes. Prose in any script and code stay below that with OpenAI's cl100k
    tokenizer; random letters and rare ideographs may take twice as many.
    """
    return math.ceil(sum(_cost(piece) for piece in _PIECE.findall(text)))


def _cost(piece: str) -> float:
    if len(piece) > 1 or piece < "\u0250":
        return 1.0
    return _SCRIPTS[bisect_right(_STARTS, ord(piece)) - 1][1]


def truncate(
    text: str, max_tokens: int, count: Callable[[str], int] | None = None
) -> tuple[str, bool]:
    """The longest beginning of a text that fits, and whether anything was cut.

    Args:
        text: Any text.
        max_tokens: The limit.
        count: The model's own token counter; the default is :func:`estimate_tokens`.

    Returns:
        A prefix that ends between two characters as a reader sees them, and the flag.
    """
    cut = (
        _estimated_cut(text, max_tokens) if count is None else _counted_cut(text, max_tokens, count)
    )
    cut = _between_clusters(text, cut)
    return text[:cut], cut < len(text)


def _estimated_cut(text: str, max_tokens: int) -> int:
    spent = 0.0
    for piece in _PIECE.finditer(text):
        spent += _cost(piece.group())
        if spent > max_tokens:
            return piece.start()
    return len(text)


def _counted_cut(text: str, max_tokens: int, count: Callable[[str], int]) -> int:
    """By doubling, then halving: the counter never reads much more than what is kept."""
    size = 4 * max(1, max_tokens)
    while size < len(text) and count(text[:size]) <= max_tokens:
        size *= 2
    if size >= len(text) and count(text) <= max_tokens:
        return len(text)
    lengths = range(1, min(size, len(text)) + 1)
    return bisect_right(lengths, max_tokens, key=lambda length: count(text[:length]))


def _between_clusters(text: str, cut: int) -> int:
    """The nearest earlier place that splits no grapheme cluster; ``cut`` if none is near."""
    lowest = max(0, cut - _LONGEST_CLUSTER)
    return next((i for i in range(cut, lowest, -1) if not _splits(text, i)), lowest and cut)


def _splits(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    return (
        before == "\u200d"
        or _extends(after)
        or (before + after == "\r\n")
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or (_is_flag(after) and _flags_before(text, place) % 2 == 1)
    )


def _extends(char: str) -> bool:
    """Whether a character belongs to the one before it: marks, joiners, skin tones, jamo, tags."""
    return (
        unicodedata.category(char) in ("Mn", "Mc", "Me")
        or char == "\u200d"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\u1160" <= char <= "\u11ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags_before(text: str, place: int) -> int:
    start = place
    while start > max(0, place - _LONGEST_CLUSTER) and _is_flag(text[start - 1]):
        start -= 1
    return place - start
