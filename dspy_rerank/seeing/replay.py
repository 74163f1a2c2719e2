"""Which answers decided a ranking: what speaks for and against every pair of neighbours in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations, pairwise

from ..ranking import Ranked, Ranking
from ..shown import count
from ..types import Judgment
from .canvas import Picture
from .words import clean, label


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the judge.

    Attributes:
        number: From 1, in the order asked.
        judgment: What was said.
        agrees: How many pairs it puts as the ranking does.
        opposes: How many it puts the other way round: those it was overruled in.
    """

    number: int
    judgment: Judgment
    agrees: int
    opposes: int


@dataclass(frozen=True, slots=True)
class Border:
    """Two neighbours of a ranking and what the judge said about just these two.

    Attributes:
        upper: The one that was put above.
        lower: The next one.
        confirming: Numbers of the answers that put ``upper`` above ``lower``.
        opposing: Numbers of those that say the opposite.
        undecided: Numbers of those that saw both and put neither above.
        gap: Difference of their scores, where both have one.
    """

    upper: Ranked
    lower: Ranked
    confirming: tuple[int, ...] = ()
    opposing: tuple[int, ...] = ()
    undecided: tuple[int, ...] = ()
    gap: float | None = None

    @property
    def verdict(self) -> str:
        """What the order of the two rests on.

        ``confirmed`` or ``overruled`` by most answers about the two; ``split`` where as many say
        one as the other; ``inferred`` where none tells them apart: then other answers, scores or
        the incoming order decided.
        """
        margin = len(self.confirming) - len(self.opposing)
        if not (self.confirming or self.opposing):
            return "inferred"
        return "confirmed" if margin > 0 else "overruled" if margin < 0 else "split"


@dataclass(frozen=True, slots=True, repr=False)
class Replay:
    """A ranking's answers in the order asked, and what each place in it rests on.

    Attributes:
        ranking: What was decided.
        steps: One an answer.
        borders: One a pair of neighbours, best first.
    """

    ranking: Ranking
    steps: tuple[Step, ...]
    borders: tuple[Border, ...]

    def plot(self, most: int | None = 30) -> Picture:
        """Answers as columns, documents as rows, and what is for and against each neighbour.

        Args:
            most: How many documents to show, best first; ``None`` is all.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from .replayed import replayed

        return replayed(self, most)

    @property
    def pointwise(self) -> bool:
        """Whether every answer is about one document, so that scores decide."""
        return all(len(step.judgment.group) < 2 for step in self.steps)

    def summary(self) -> str:
        """One line: how the neighbours were decided, and how many answers could not be read."""
        said = [count(len(self.steps), "answer")]
        if not self.pointwise:
            verdicts = [border.verdict for border in self.borders]
            names = ("confirmed", "inferred", "split", "overruled")
            found = [f"{verdicts.count(name)} {name}" for name in names if name in verdicts]
            said.append(f"{count(len(self.borders), 'pair')} of neighbours: {', '.join(found)}")
        elif self.steps:
            said.append("each about one document: scores decide")
        if self.ranking.unknowns:
            said.append(f"{self.ranking.unknowns} unknown")
        if self.ranking.degraded:
            said.append(f"DEGRADED: {'; '.join(self.ranking.reasons)}")
        return "; ".join(said)

    def __repr__(self) -> str:
        return f"<Replay: {self.summary()}>"

    def __str__(self) -> str:
        rows = [" ".join(f"{cell:>9}" for cell in cells[:-1]) + f"  {cells[-1]}"
                for cells in [_HEAD, *map(_cells, self.borders)]]  # fmt: skip
        return "\n".join([*rows, self.summary()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(border)) + "</tr>"
            for border in self.borders
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{table}<p>{escape(clean(self.summary(), 500))}</p>"


_HEAD = ("above", "below", "for", "against", "apart by", "rests on", "document above")


def replay(ranking: Ranking) -> Replay:
    """What each place of a ranking rests on; asks nothing, reads ``ranking.judgments``.

    An answer speaks about two documents when it saw both and put them into different tiers.
    Answers that saw only one of them may have decided, too, by way of third documents: such
    borders are ``inferred``.
    """
    places = {item.index: item.rank for item in ranking}
    tiers = [_tiers(judgment) for judgment in ranking.judgments]
    steps = tuple(
        Step(number, judgment, *_votes(tier, places))
        for number, (judgment, tier) in enumerate(zip(ranking.judgments, tiers, strict=True), 1)
    )
    borders = tuple(_border(upper, lower, tiers) for upper, lower in pairwise(ranking))
    return Replay(ranking, steps, borders)


def _tiers(judgment: Judgment) -> dict[int, int]:
    """The tier of every position that an answer speaks about, from 0, which is the best."""
    return {place: number for number, tier in enumerate(judgment.tiers) for place in tier}


def _votes(tiers: dict[int, int], places: dict[int, int]) -> tuple[int, int]:
    """Pairs that an answer orders as the ranking does, and the other way round."""
    known = sorted((place for place in tiers if place in places), key=places.__getitem__)
    signs = [tiers[lower] - tiers[upper] for upper, lower in combinations(known, 2)]
    return sum(sign > 0 for sign in signs), sum(sign < 0 for sign in signs)


def _border(upper: Ranked, lower: Ranked, tiers: Sequence[dict[int, int]]) -> Border:
    said: dict[int, list[int]] = {1: [], -1: [], 0: []}
    for number, tier in enumerate(tiers, 1):
        if upper.index in tier and lower.index in tier:
            margin = tier[lower.index] - tier[upper.index]
            said[(margin > 0) - (margin < 0)].append(number)
    scores = upper.score, lower.score
    gap = None if scores[0] is None or scores[1] is None else scores[0] - scores[1]
    return Border(upper, lower, tuple(said[1]), tuple(said[-1]), tuple(said[0]), gap)


def _cells(border: Border) -> tuple[str, ...]:
    gap = "" if border.gap is None else f"{border.gap:.3f}"
    ranks, votes = (border.upper.rank, border.lower.rank), (border.confirming, border.opposing)
    alone = not (border.confirming or border.opposing or border.undecided)
    rests = "scores" if alone and border.gap else border.verdict
    return (
        *map(str, ranks), *(str(len(numbers)) for numbers in votes), gap, rests,
        label(border.upper, 60),
    )  # fmt: skip
