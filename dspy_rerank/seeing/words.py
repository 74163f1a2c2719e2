"""Texts of strangers as labels: one line, of a known width, without signs that break a picture."""

from unicodedata import category, east_asian_width

from ..options import at_least
from ..ranking import Ranked, Ranking

_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They would turn the direction of what follows."""


def clean(text: str, signs: int) -> str:
    """A text as one line at most so many signs wide; wide signs count twice.

    Signs that SVG forbids and those that turn the direction of writing are left out.
    """
    plain = "".join(sign for sign in str(text) if sign.isspace() or _harmless(sign))
    kept = " ".join(plain.split())
    if _width(kept) <= signs:
        return kept
    short = kept[:signs]
    while short and _width(short) > signs - 1:
        short = short[:-1]
    return short.rstrip() + "…"


def label(item: Ranked, signs: int) -> str:
    """A document's id and its beginning, as one line."""
    marks = "[cut] " if item.truncated else ""
    named = f"[{item.id}] " if item.id is not None else ""
    return clean(marks + named + (clean(item.text[: 4 * signs], signs) or "(blank)"), signs)


def first(ranking: Ranking, most: int | None) -> tuple[Ranked, ...]:
    """The best documents, at most so many.

    Raises:
        InputError: ``most`` is neither a whole number of at least 1 nor ``None``.
    """
    if most is not None:
        at_least("most", most, 1)
    return ranking.items[:most]


def _harmless(sign: str) -> bool:
    return category(sign) not in {"Cc", "Cs", "Cn"} and sign not in _TURNS


def _width(text: str) -> int:
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)
