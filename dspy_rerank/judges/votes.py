"""Several answers to one question as votes: what most of them say, and how many do."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..options import MOST, at_least
from ..types import Group, Judgment, Kind


def check_votes(votes: Any, evidence: str) -> None:
    """Refuse a number of votes that cannot be, or that goes with other evidence."""
    at_least("votes", votes, 1, MOST)
    if votes > 1 and evidence not in ("auto", "generate"):
        raise InputError(
            f"votes={votes} counts answers, evidence={evidence!r} takes its confidence elsewhere; "
            "use one of the two"
        )


def voted(group: Group, judgments: Sequence[Judgment]) -> Judgment:
    """The answer of most, with its share of all answers as confidence.

    Unreadable answers count against the confidence. Of equally many, the answer that came first
    wins. A grade is the mean of the grades, an order that of the mean places; their confidence is
    the share of the commonest grade, and of those that put the same one first.
    """
    known = [judgment for judgment in judgments if judgment.known]
    raw = "\n".join(judgment.raw for judgment in judgments)
    asks = sum(judgment.asks for judgment in judgments)
    if not known:
        return replace(judgments[0], group=group, raw=raw, asks=asks)
    ballot = replace(
        known[0], group=group, status="ok", raw=raw, asks=asks, confidence_source="vote"
    )
    return _COUNTS[ballot.kind](ballot, known, len(judgments))


def _majority(values: Sequence[Hashable]) -> tuple[Hashable, int]:
    """The commonest value, the earliest of equals, and how often it came."""
    return Counter(values).most_common(1)[0]


def _grade(ballot: Judgment, known: Sequence[Judgment], asked: int) -> Judgment:
    grades = [judgment.score or 0.0 for judgment in known]
    _, count = _majority(grades)
    return replace(ballot, score=sum(grades) / len(grades), confidence=count / asked)


def _choice(ballot: Judgment, known: Sequence[Judgment], asked: int) -> Judgment:
    best, count = _majority([judgment.best for judgment in known])
    shares = tuple(sum(j.best == place for j in known) / len(known) for place in ballot.group)
    return replace(
        ballot, best=best, status="none" if best is None else "ok", tie=False,
        confidence=count / asked, probabilities=shares,
    )  # fmt: skip


def _preference(ballot: Judgment, known: Sequence[Judgment], asked: int) -> Judgment:
    """Ties count half for both, so that two orders that disagree cancel out."""
    ties = sum(judgment.best is None for judgment in known) / 2
    votes = [sum(j.best == place for j in known) + ties for place in ballot.group]
    first, second = votes
    best = None if first == second else ballot.group[0 if first > second else 1]
    shares = tuple(vote / len(known) for vote in votes)
    sure = max(votes) / asked
    return replace(ballot, best=best, tie=best is None, confidence=sure, probabilities=shares)


def _order(ballot: Judgment, known: Sequence[Judgment], asked: int) -> Judgment:
    if all(judgment.order is None for judgment in known):
        return replace(ballot, status="none", confidence=len(known) / asked)
    ranked = [judgment.ranked for judgment in known]
    places = {p: sum(order.index(p) for order in ranked) for p in ballot.group}
    order = tuple(sorted(ballot.group, key=places.__getitem__))
    first = sum(judgment.ranked[0] == order[0] for judgment in known)
    return replace(ballot, order=order, confidence=first / asked, reason="")


_COUNTS: dict[Kind, Callable[[Judgment, Sequence[Judgment], int], Judgment]] = {
    "pointwise": _grade,
    "pairwise": _preference,
    "setwise": _choice,
    "listwise": _order,
}
