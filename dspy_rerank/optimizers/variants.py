"""What may be tried on a judge: wordings of its instructions and sets of demonstrations."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from ..errors import InputError
from ..judges.base import SignatureJudge
from ..judges.rewording import instructed
from ..reading.labels import estimate_tokens
from ..sorters import Reranker
from .examples import Labelled

WORDINGS: dict[str, tuple[str, ...]] = {
    "pointwise": (
        "You judge search results. Grade from 0 to 3 how useful the passage is to someone who "
        "asked the query: 0 useless, 1 related, 2 helps in part, 3 settles it. Write the number.",
        "Would a person who typed the query be satisfied with this passage alone? Answer with a "
        "number from 0 (not at all) to 3 (fully).",
    ),
    "likelihood": (
        "A user found this passage by searching for",
        "This passage solves the following problem",
    ),
    "pairwise": (
        "Two search results, A and B. Which one would satisfy the person who typed the query "
        "better? Answer A, B or Tie.",
    ),
    "setwise": (
        "Which of these search results would satisfy the person who typed the query best? Answer "
        "with its letter, or None when none would.",
    ),
    "listwise": (
        "Sort these search results for the person who typed the query, most useful first. Write "
        "all numbers in the form [2] > [1] > [3] and nothing else.",
    ),
}


@dataclass(frozen=True)
class Variant:
    """A judge's prompt.

    Attributes:
        name: Short, for tables.
        wording: ``None`` keeps the judge's own. Instructions, or for a likelihood judge the
            heading before the query, which moves such a judge more.
        demos: Shown before every question.
    """

    name: str
    wording: str | None
    demos: tuple[dspy.Example, ...] = ()

    def apply(self, judge: SignatureJudge) -> None:
        """Put this prompt into a judge."""
        predict = judge.predict
        if self.wording is not None:
            predict.signature = reworded(judge, self.wording)
        predict.demos = [dict(demo) for demo in self.demos]


def by_likelihood(judge: SignatureJudge) -> bool:
    """Whether a judge scores the query instead of answering."""
    return judge.settings["evidence"] == "likelihood"


def reworded(judge: SignatureJudge, wording: str) -> type[dspy.Signature]:
    """The judge's signature with other instructions, or another heading for the scored query."""
    if by_likelihood(judge):
        updated: Any = judge.signature.with_updated_fields
        return instructed(updated(judge.roles.answer, desc=wording), judge.signature.instructions)
    return instructed(judge.signature, wording)


def wordings(judge: SignatureJudge, given: Sequence[str] | None) -> list[tuple[str, str | None]]:
    """The judge's own wording, then those given or, of an empty list, those we know."""
    if given is None:
        return [("own", None)]
    others = given or WORDINGS["likelihood" if by_likelihood(judge) else judge.kind]
    return [("own", None), *((f"wording {i}", text) for i, text in enumerate(others, 1))]


def demo_sets(
    pool: Sequence[Labelled], *, sizes: Sequence[int], draws: int, max_tokens: int, seed: int
) -> list[tuple[str, tuple[dspy.Example, ...]]]:
    """Sets of demonstrations to choose from; the empty one first.

    A set takes grades in turn, at most one question of a query, and stays within a number of
    tokens, so that a program does not carry whole documents around.

    Args:
        pool: Labelled questions.
        sizes: How many demonstrations; sizes above what fits are dropped.
        draws: Different sets of each size.
        max_tokens: For all demonstrations of a set, estimated.
        seed: Of the draws.
    """
    found: list[tuple[str, tuple[dspy.Example, ...]]] = [("no demos", ())]
    rng = random.Random(seed)
    for size in sorted({size for size in sizes if size > 0}):
        for draw in range(1, draws + 1):
            chosen = _one_set(pool, size, max_tokens, rng)
            if len(chosen) == size and all(chosen != known for _, known in found):
                found.append((f"{size} demos #{draw}", chosen))
    return found


def _one_set(
    pool: Sequence[Labelled], size: int, max_tokens: int, rng: random.Random
) -> tuple[dspy.Example, ...]:
    shuffled = rng.sample(list(pool), len(pool))
    chosen: list[Labelled] = []
    left = max_tokens
    while len(chosen) < size:
        item = _next(shuffled, chosen, left)
        if item is None:
            break
        chosen.append(item)
        left -= tokens_of(item.example)
    return tuple(item.example for item in chosen)


def _next(pool: Sequence[Labelled], chosen: Sequence[Labelled], left: int) -> Labelled | None:
    """The first that fits and whose grade has been shown least."""
    queries = {item.query for item in chosen}
    fitting = [i for i in pool if i.query not in queries and tokens_of(i.example) <= left]
    shown = [item.grade for item in chosen]
    return min(fitting, key=lambda item: shown.count(item.grade), default=None)


def tokens_of(example: Any) -> int:
    """Estimated tokens of a demonstration."""
    return sum(estimate_tokens(str(value)) for value in dict(example).values())


def with_settled_judge(student: Reranker) -> Reranker:
    """A copy whose judge is the one that will answer: what ``auto`` stands for with this LM.

    Raises:
        InputError: The judge has no prompt to compile.
    """
    copy = student.deepcopy()
    if not isinstance(getattr(copy, "judge", None), SignatureJudge):
        raise InputError(
            f"{student!r} has no prompt to compile; expected a reranker over a judge with a "
            "signature, such as PointwiseJudge()"
        )
    copy.judge = copy.judge.ready()
    return copy
