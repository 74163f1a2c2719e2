"""Labels of whole rankings, turned into labelled questions for one judge.

A judge is compiled on questions of its own kind: a ranking metric over a sort that asks hundreds
of them says almost nothing about any single one.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import dspy

from ..errors import InputError
from ..judges.base import SignatureJudge
from ..metrics import ndcg_at
from ..types import Judgment


class Labelled(NamedTuple):
    """One question with its right answer.

    Attributes:
        example: With the judge's own fields.
        grade: The highest grade among the passages shown, for stratified choice.
        query: Id of the query it comes from.
        grades: Of the passages shown, in their order; without any, it is a demonstration only.
        texts: The passages shown, as they are in the data set.
        asked: What is searched for.
        worth: nDCG@10 that hangs on it: how much better the query's incoming order is with these
            passages in the best order at their places than in the worst; for a single passage,
            how far it is from the first place to the last.
    """

    example: dspy.Example
    grade: float
    query: str
    grades: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    asked: str = ""
    worth: float = 0.0


def judgment_examples(
    judge: SignatureJudge, dataset: Iterable[Any], *, per_query: int = 8, window: int = 5,
    margin: float = 0.0, seed: int = 0,
) -> list[Labelled]:  # fmt: skip
    """Labelled questions of the judge's kind, from graded relevance.

    Grades are put on the judge's scale in proportion to the highest grade of the data set. Pairs
    have different grades and come in both orders alternately, those first in which retrieval put
    the worse passage higher; groups and windows are drawn as they come, but every second one has
    a relevant passage where the query has any. Likelihood judges get relevant passages only.

    Args:
        judge: Decides the fields, the labels and the form of the answers.
        dataset: Labelled queries.
        per_query: At most this many from each.
        window: Passages in a group.
        margin: Grades by which the passages of a pair differ at least, on the data set's scale.
        seed: Of every draw.

    Raises:
        InputError: No query has a label.
    """
    queries = [query for query in dataset if query.labelled]
    if not queries:
        raise InputError("no query of the training set has labels; expected graded relevance")
    top = max((g or 0.0 for query in queries for g in query.relevance), default=0.0) or 1.0
    draw = _DRAWS[_kind(judge)]
    rng = random.Random(seed)
    found: list[Labelled] = []
    for query in queries:
        questions = draw(judge, query, rng, window, top)
        if judge.kind == "pairwise":
            questions = [q for q in questions if max(q.grades) - min(q.grades) >= margin]
        found += questions[:per_query]
    return found


def _kind(judge: SignatureJudge) -> str:
    return "likelihood" if judge.settings["evidence"] == "likelihood" else judge.kind


def _graded(query: Any) -> list[tuple[int, float]]:
    return [(i, float(g)) for i, g in enumerate(query.relevance) if g is not None]


def _make(judge: SignatureJudge, query: Any, places: Sequence[int], gold: Judgment) -> Labelled:
    texts = tuple(query.documents[place].text for place in places)
    grades = tuple(float(query.relevance[place] or 0.0) for place in places)
    example = judge.example(query.text, texts, gold, **query.inputs)
    return Labelled(
        _in_words(judge, example), max(grades), query.id, grades, texts, query.text,
        at_stake([grade or 0.0 for grade in query.relevance], places),
    )  # fmt: skip


def at_stake(grades: Sequence[float], places: Sequence[int]) -> float:
    """nDCG@10 between the best and the worst order of some documents, the others staying put.

    For two documents that is the swap that LambdaRank weighs pairs by (Burges et al. 2006); a
    single one goes to the first place or to the last.

    Args:
        grades: Of all candidates, in the order in which they came.
        places: Of the documents shown.
    """
    if len(places) == 1:
        (shown,) = places
        others = [place for place in range(len(grades)) if place != shown]
        best, worst = [shown, *others], [*others, shown]
    else:
        down = sorted(places, key=lambda place: -grades[place])
        best, worst = (_placed(len(grades), places, each) for each in (down, down[::-1]))
    return round(abs(ndcg_at(grades, best, 10) - ndcg_at(grades, worst, 10)), 6)


def _placed(count: int, places: Sequence[int], order: Sequence[int]) -> list[int]:
    """All candidates, those at some places put there in another order."""
    moved = dict(zip(sorted(places), order, strict=True))
    return [moved.get(place, place) for place in range(count)]


def _in_words(judge: SignatureJudge, example: dspy.Example) -> dspy.Example:
    """Grades of a judge that answers yes or no, as such: yes from the middle of the scale up."""
    answer = judge.roles.answer
    if not answers_yes_no(judge) or judge.settings["evidence"] == "likelihood":
        return example
    low, high = judge.settings["scale"]
    return example.copy(**{answer: "yes" if float(example[answer]) * 2 >= low + high else "no"})


def answers_yes_no(judge: SignatureJudge) -> bool:
    """Whether a pointwise judge's answer is a truth value."""
    return judge.signature.output_fields[judge.roles.answer].annotation is bool


def _grades(
    judge: SignatureJudge, query: Any, rng: random.Random, window: int, top: float
) -> list[Labelled]:
    """One passage each, all grades in turn so that none is drowned by the zeros."""
    low, high = judge.settings["scale"]
    scaled = [(p, low + (high - low) * max(g, 0.0) / top) for p, g in _graded(query)]
    rng.shuffle(scaled)
    return [
        _make(judge, query, [place], Judgment("pointwise", (0,), "ok", score=round(score, 2)))
        for place, score in _interleaved(scaled)
    ]


def _likelihoods(
    judge: SignatureJudge, query: Any, rng: random.Random, window: int, top: float
) -> list[Labelled]:
    best = [place for place, grade in _graded(query) if grade >= top]
    rng.shuffle(best)
    gold = Judgment("pointwise", (0,), "ok", score=0.0)
    return [_make(judge, query, [place], gold) for place in best]


def _pairs(
    judge: SignatureJudge, query: Any, rng: random.Random, window: int, top: float
) -> list[Labelled]:
    """Passages of different grades; the hard negatives are those that retrieval put higher."""
    pairs = [(a, b) for a, b in combinations(_graded(query), 2) if a[1] != b[1]]
    rng.shuffle(pairs)
    pairs.sort(key=lambda pair: pair[0][1] > pair[1][1])
    return [_pair(judge, query, a, b, turned=i % 2 == 1) for i, (a, b) in enumerate(pairs)]


def _pair(
    judge: SignatureJudge, query: Any, a: tuple[int, float], b: tuple[int, float], turned: bool
) -> Labelled:
    shown = (b, a) if turned else (a, b)
    best = 0 if shown[0][1] > shown[1][1] else 1
    return _make(judge, query, [p for p, _ in shown], Judgment("pairwise", (0, 1), "ok", best=best))


def _windows(
    judge: SignatureJudge, query: Any, rng: random.Random, window: int, top: float
) -> list[Labelled]:
    return [_window(judge, query, shown) for shown in _groups(query, rng, window)]


def _window(judge: SignatureJudge, query: Any, shown: Sequence[tuple[int, float]]) -> Labelled:
    places = tuple(range(len(shown)))
    grades = [grade for _, grade in shown]
    order = tuple(sorted(places, key=lambda place: -grades[place]))
    relevant = max(grades) > 0
    gold = Judgment("listwise", places, "ok" if relevant else "none", order if relevant else None)
    return _make(judge, query, [place for place, _ in shown], gold)


def _choices(
    judge: SignatureJudge, query: Any, rng: random.Random, window: int, top: float
) -> list[Labelled]:
    """Groups with one best passage, or with nothing relevant at all."""
    groups = _groups(query, rng, window)
    return [_choice(judge, query, shown) for shown in groups if _single_best(shown)]


def _single_best(shown: Sequence[tuple[int, float]]) -> bool:
    grades = sorted(grade for _, grade in shown)
    return grades[-1] <= 0 or len(grades) == 1 or grades[-1] > grades[-2]


def _choice(judge: SignatureJudge, query: Any, shown: Sequence[tuple[int, float]]) -> Labelled:
    grades = [grade for _, grade in shown]
    best = grades.index(max(grades)) if max(grades) > 0 else None
    status = "none" if best is None else "ok"
    gold = Judgment("setwise", tuple(range(len(shown))), status, best=best)
    return _make(judge, query, [place for place, _ in shown], gold)


def _groups(
    query: Any, rng: random.Random, window: int, count: int = 12
) -> list[list[tuple[int, float]]]:
    graded = _graded(query)
    if len(graded) < 2:
        return []
    relevant = [item for item in graded if item[1] > 0]
    groups = [rng.sample(graded, min(window, len(graded))) for _ in range(count)]
    for group in groups[::2]:
        if relevant and all(grade <= 0 for _, grade in group):
            group[rng.randrange(len(group))] = rng.choice(relevant)
    return groups


def _interleaved(graded: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Items of every grade in turn, the highest first."""
    levels: dict[float, list[tuple[int, float]]] = {}
    for item in graded:
        levels.setdefault(item[1], []).append(item)
    queues = [levels[grade] for grade in sorted(levels, reverse=True)]
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


_Draw = Callable[[SignatureJudge, Any, random.Random, int, float], list[Labelled]]
_DRAWS: dict[str, _Draw] = {
    "pointwise": _grades,
    "likelihood": _likelihoods,
    "pairwise": _pairs,
    "setwise": _choices,
    "listwise": _windows,
}
