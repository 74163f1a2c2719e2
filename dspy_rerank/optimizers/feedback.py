"""What to say about one answer of a judge, so that a model can write better instructions."""

import re
from itertools import combinations

from ..adapters import description
from ..judges.base import SignatureJudge
from ..reading.labels import letters, numbers
from ..types import Judgment
from .examples import Labelled, answers_yes_no

QUOTED = 160
MISTAKES = 3
"""At most so many pairs in the wrong order are named, the widest apart first."""

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_WORD = re.compile(r"\w+")


def explained(judge: SignatureJudge, judgment: Judgment, item: Labelled, score: float) -> str:
    """What was right or wrong with an answer, by the labels.

    Says which passage should have outranked which, by how many grades, quotes of each the part
    that has most to do with the query, and says of a mistake how much of the ranking hangs on it.
    """
    said = _explained(judge, judgment, item, score)
    if score >= 1 or not item.worth:
        return said
    return f"{said} Up to {item.worth:.2f} of the query's nDCG@10 hangs on this answer."


def _explained(judge: SignatureJudge, judgment: Judgment, item: Labelled, score: float) -> str:
    if not judgment.known:
        return _unreadable(judge, judgment, item)
    if judgment.kind == "pointwise":
        return _graded(judge, judgment, item, score)
    if judge.kind == "listwise":
        return _ordered(judgment, item)
    return _chosen(judge, judgment, item, score)


def telling(text: str, query: str, length: int = QUOTED) -> str:
    """The sentence that shares most words with the query, shortened; the first one by default."""
    words = set(_WORD.findall(query.casefold()))
    sentences = [found.strip() for found in _SENTENCE.findall(text) if found.strip()] or [text]
    best = max(sentences, key=lambda s: len(words & set(_WORD.findall(s.casefold()))))
    plain = " ".join(best.split())
    return plain if len(plain) <= length else plain[: length - 1] + "…"


def _unreadable(judge: SignatureJudge, judgment: Judgment, item: Labelled) -> str:
    name = judge.roles.answer
    form = description(judge.signature.output_fields[name])
    wanted = f" ({form})" if form and not form.startswith("${") else ""
    said = " ".join(judgment.raw.split())[:QUOTED]
    return (
        f"The answer {said!r} could not be read: {judgment.reason}. Write nothing but the "
        f"{name}{wanted}; here that would have been {str(item.example[name])!r}."
    )


def _graded(judge: SignatureJudge, judgment: Judgment, item: Labelled, score: float) -> str:
    label = item.example[judge.roles.answer]
    said = f"{judgment.score:g}"
    if answers_yes_no(judge):
        said = "yes" if judgment.score else "no"
    (text,) = item.texts or ("",)
    quote = f"The passage says: «{telling(text, item.asked)}»."
    if score >= 1:
        return f"Right: the passage's grade is {label}. {quote}"
    if answers_yes_no(judge):
        return f"Wrong: the answer was {said}, the label is {label}. {quote}"
    gap = (judgment.score or 0.0) - float(label)
    low, high = judge.settings["scale"]
    side = "high" if gap > 0 else "low"
    return (
        f"The grade given was {said}, the label is {label}: {abs(gap):g} too {side} on the scale "
        f"from {low:g} to {high:g}. {quote}"
    )


def _chosen(judge: SignatureJudge, judgment: Judgment, item: Labelled, score: float) -> str:
    names = letters(len(item.grades))
    best = item.grades.index(max(item.grades))
    word = "Right" if score >= 1 else "Wrong" if score <= 0 else "Half right"
    answer = "none" if judgment.status == "none" else "a tie"
    said = answer if judgment.best is None else names[judgment.best]
    head = f"{word}: the answer was {said}."
    if judge.kind == "setwise" and max(item.grades) <= 0:
        return f"{head} No passage is relevant (all are graded 0)."
    other = _rival(judgment, item, best)
    if item.grades[best] == item.grades[other]:
        return f"{head} The passages are equally good (both {item.grades[best]:g})."
    return f"{head} {_should(item, names, best, other)}"


def _rival(judgment: Judgment, item: Labelled, best: int) -> int:
    """The passage to compare the best one with: the one chosen, or the next best."""
    if judgment.best is not None and judgment.best != best:
        return judgment.best
    others = [place for place in range(len(item.grades)) if place != best]
    return max(others, key=lambda place: item.grades[place], default=best)


def _ordered(judgment: Judgment, item: Labelled) -> str:
    if max(item.grades) <= 0:
        said = "Right" if judgment.order is None else "Half right"
        return f"{said}: no passage is relevant (all are graded 0), which is written []."
    names = numbers(len(item.grades))
    order = judgment.order if judgment.order is not None else judgment.group
    head = "Wrong: there are relevant passages. " if judgment.order is None else ""
    wrong = [(b, a) for a, b in combinations(order, 2) if item.grades[b] > item.grades[a]]
    wrong.sort(key=lambda pair: item.grades[pair[1]] - item.grades[pair[0]])
    if not wrong:
        return head or "Right: better graded passages come before worse ones."
    told = " ".join(_should(item, names, *pair) for pair in wrong[:MISTAKES])
    more = len(wrong) - MISTAKES
    return f"{head}{told}" + (f" And {more} more pairs." if more > 0 else "")


def _should(item: Labelled, names: tuple[str, ...], better: int, worse: int) -> str:
    gap = item.grades[better] - item.grades[worse]
    quotes = [f"{names[p]} says: «{telling(item.texts[p], item.asked)}»." for p in (better, worse)]
    return (
        f"Passage {names[better]} should outrank passage {names[worse]}, by {gap:g} "
        f"grade{'' if gap == 1 else 's'} ({item.grades[better]:g} against "
        f"{item.grades[worse]:g}). {' '.join(quotes)}"
    )
