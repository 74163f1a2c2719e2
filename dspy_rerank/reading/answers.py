"""Answers are read, not guessed: parse, check, repair, flag.

Each reader takes the bare answer (see :mod:`.unwrap`) and gives a Judgment over the places
``0..m-1`` of the passages shown; what cannot be read for sure is ``unknown``, with a reason.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..types import Group, Judgment
from ._claims import CHOICE, GRADE, NOTHING, PREFERENCE, YES_NO, Claim, Grammar, claims
from ._runs import NOUN, Run, numbered, runs
from .labels import letters, numbers

_NONE = "none"
_TIE = "tie"
_SIDES = {"left": 0, "first": 0, "right": 1, "second": 1}
_FULL_WIDTH = str.maketrans("［］【】（）＞，；：、", "[][]()>,;:,")
_QUOTED = 40
_ZERO = re.compile(rf"\b{NOUN}[\s#\[(]{{0,4}}0(?![\w%]|\.\d)", re.IGNORECASE)
_VALUES = ("label", "side", "tie", "none", "grade", "yes", "no")


def read_order(text: str, labels: Sequence[str]) -> Judgment:
    """An order of all passages, read from the longest run of ids that is meant as an answer.

    Ids in prose never count. Passages left out follow in the order in which they were shown, the
    first of several mentions counts, and ids never shown are dropped: all ``repaired``. Ids that
    count from 0 are ``unknown``: each of them may stand for either of two passages.
    """
    blank = Judgment("listwise", tuple(range(len(labels))), "unknown", raw=text)
    places = _places(labels)
    found = [(run, run.weight) for run in runs(text.translate(_FULL_WIDTH))]
    strengths = [(len(_shown(run, places)), weight, run) for run, weight in found if weight]
    if not strengths:
        return _order_without_run(blank, places, labels)
    strongest = max(strength[:2] for strength in strengths)
    best = [run for *strength, run in strengths if (*strength,) == strongest]
    orders = {_shown(run, places) for run in best}
    if any(_from_zero(_ids(run, places), places) for run in best):
        return replace(blank, reason=_miscounted(labels))
    if orders == {()}:
        return replace(blank, reason=_never_shown(", ".join(best[0].ids), labels))
    if len(orders) > 1:
        return replace(blank, reason="two different orders")
    return _ordered(blank, orders.pop(), _faults(best[0], places))


def read_choice(text: str, labels: Sequence[str]) -> Judgment:
    """The one best passage of several."""
    blank = Judgment("setwise", tuple(range(len(labels))), "unknown", raw=text)
    return _chosen(blank, CHOICE, labels)


def read_preference(text: str, labels: Sequence[str]) -> Judgment:
    """The better of two passages, or a tie."""
    blank = Judgment("pairwise", tuple(range(len(labels))), "unknown", raw=text)
    return _chosen(blank, PREFERENCE, labels)


def read_grade(text: str, low: float, high: float) -> Judgment:
    """The grade of one passage, in ``[low, high]``; fractions are kept."""
    blank = Judgment("pointwise", (0,), "unknown", raw=text)
    grade, reason = _agreed(text, GRADE, lambda claim: _grade(claim, high))
    if grade is None:
        return replace(blank, reason=reason)
    if not low <= grade <= high:
        return replace(blank, reason=f"{grade:g} is not between {low:g} and {high:g}")
    return replace(blank, status="ok", score=grade)


def read_yes_no(text: str) -> Judgment:
    """Whether one passage is relevant: grade 1 for yes, 0 for no."""
    blank = Judgment("pointwise", (0,), "unknown", raw=text)
    grade, reason = _agreed(text, YES_NO, lambda claim: float(claim["yes"] is not None))
    return replace(blank, status="unknown" if grade is None else "ok", score=grade, reason=reason)


def claimed_at(text: str, grammar: Grammar) -> int | None:
    """Where the value begins that a text claims first, if that can be told."""
    plain = text.translate(_FULL_WIDTH)
    for claim in claims(plain, grammar)[:1]:
        sentence = plain.find(claim.string)
        groups = [name for name in _VALUES if claim.groupdict().get(name)]
        return sentence + claim.start(groups[0]) if sentence >= 0 and groups else None
    return None


def _places(labels: Sequence[str]) -> dict[str, int]:
    """The place of each label; labels of the family that was not shown are understood, too."""
    other = letters if all(label.isdigit() for label in labels) else numbers
    shown = [*other(len(labels)), *map(str.upper, labels)]
    return {label: i % len(labels) for i, label in enumerate(shown)}


def _place(label: str, places: Mapping[str, int]) -> int | None:
    """The place of a label as written: ``b``, ``02`` and ``2.0`` are understood."""
    return places.get(label.split(".")[0].lstrip("0").upper())


def _from_zero(ids: Sequence[str], places: Mapping[str, int]) -> bool:
    """Whether numbers show that they count from 0: there is a 0, and the last label is missing.

    Where that is named, too, a 0 is one id too many and nothing else.
    """
    counted = bool(ids) and all(label[0].isdigit() for label in ids)
    last = max(places.values(), default=0)
    zero = any(not label.split(".")[0].strip("0") for label in ids)
    return counted and zero and all(_place(label, places) != last for label in ids)


def _span(labels: Sequence[str]) -> str:
    return f"the labels run from [{labels[0]}] to [{labels[-1]}]" if labels else "nothing was shown"


def _miscounted(labels: Sequence[str]) -> str:
    return f"it counts from 0, but {_span(labels)}"


def _never_shown(ids: str, labels: Sequence[str]) -> str:
    return f"no such passage was shown: {ids[:_QUOTED]}; {_span(labels)}"


def _ids(run: Run, places: Mapping[str, int]) -> tuple[str, ...]:
    """The ids of a run, without a last one that may be the beginning of a longer id."""
    last = run.ids[-1]
    longer = any(label.startswith(last) and label != last for label in places)
    return run.ids[:-1] if run.unfinished and longer else run.ids


def _shown(run: Run, places: Mapping[str, int]) -> Group:
    """The passages that a run names, each once, by its first mention."""
    named = (_place(label, places) for label in _ids(run, places))
    return tuple(dict.fromkeys(place for place in named if place is not None))


def _faults(run: Run, places: Mapping[str, int]) -> list[str]:
    """What is wrong with a run, beside passages that it leaves out."""
    named = [_place(label, places) for label in _ids(run, places)]
    alien = [label for label in _ids(run, places) if _place(label, places) is None]
    return [
        *([f"not shown: {', '.join(alien)[:_QUOTED]}"] if alien else []),
        *(["a passage named twice"] if len(named) - len(alien) > len({*named} - {None}) else []),
        *(["cut off"] if run.cut else []),
    ]


def _ordered(blank: Judgment, order: Group, faults: Sequence[str]) -> Judgment:
    rest = tuple(place for place in blank.group if place not in set(order))
    reasons = [*faults, *([f"{len(rest)} of {len(blank.group)} passages left out"] if rest else [])]
    status = "repaired" if reasons else "ok"
    return replace(blank, status=status, order=order + rest, reason="; ".join(reasons))


def _order_without_run(
    blank: Judgment, places: Mapping[str, int], labels: Sequence[str]
) -> Judgment:
    if claims(blank.raw, NOTHING):
        return replace(blank, status="none", reason="no passage is relevant")
    ids = numbered(blank.raw)
    if _from_zero(ids, places):
        return replace(blank, reason=_miscounted(labels))
    named = [_place(label, places) for label in ids]
    order = tuple(dict.fromkeys(place for place in named if place is not None))
    # Items in the order shown may as well describe the passages one after the other.
    if len(order) < 2 or order == tuple(sorted(order)):
        return replace(blank, reason=_no_answer(blank.raw, "no list of passages"))
    return _ordered(blank, order, [] if len(order) == len(named) else ["ids dropped"])


def _chosen(blank: Judgment, grammar: Grammar, labels: Sequence[str]) -> Judgment:
    places = _places(labels)
    if any(_from_zero(ids, places) for ids in _counts(blank.raw, grammar)):
        return replace(blank, reason=_miscounted(labels))
    meaning, reason = _agreed(blank.raw, grammar, lambda claim: _meaning(claim, places))
    if meaning is None:
        return replace(blank, reason=reason)
    if meaning == _NONE:
        return replace(blank, status="none", reason="no passage is relevant")
    if meaning == _TIE:
        return replace(blank, status="ok", tie=True)
    if isinstance(meaning, str):
        return replace(blank, reason=_never_shown(meaning, labels))
    return replace(blank, status="ok", best=meaning)


def _counts(text: str, grammar: Grammar) -> Iterator[Sequence[str]]:
    """The numbers of a text that chooses by number and has a 0: of its orders and its claims."""
    if "0" not in text:
        return
    plain = text.translate(_FULL_WIDTH)
    chosen = [label for claim in claims(plain, grammar) if (label := claim["label"])]
    if not any(label.isdigit() for label in chosen):
        return
    yield from (run.ids for run in runs(plain) if run.ordered)
    if _ZERO.search(plain):
        yield ["0", *chosen]


def _meaning(claim: Claim, places: Mapping[str, int]) -> int | str:
    """The place claimed, a tie, none, or the label when there is no such place."""
    words = claim.groupdict()
    if words["none"]:
        return _NONE
    if words.get("tie"):
        return _TIE
    if words.get("side"):
        return _SIDES[words["side"].lower()]
    place = _place(words["label"], places)
    return words["label"].upper() if place is None else place


def _grade(claim: Claim, high: float) -> float | None:
    """The number claimed; none for a fraction of anything but the highest grade."""
    if claim["of"] and float(claim["of"]) != high:
        return None
    return float(claim["grade"].replace(",", ".")) + 0.0


def _agreed(text: str, grammar: Grammar, meaning: Callable[[Claim], Any]) -> tuple[Any, str]:
    """What all claims of a text mean, or ``None`` and why that cannot be said."""
    meanings = {meaning(claim) for claim in claims(text.translate(_FULL_WIDTH), grammar)}
    if not meanings:
        return None, _no_answer(text, "no clear answer")
    if len(meanings) > 1:
        return None, "answers that contradict each other"
    (only,) = meanings
    return only, "a fraction of another scale" if only is None else ""


def _no_answer(text: str, why: str) -> str:
    start = " ".join(text[:200].split())[:_QUOTED]
    return f"{why} in {start!r}" if start else "the answer is empty"
