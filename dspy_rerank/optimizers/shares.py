"""How the limits of a compilation are dealt among a recipe's steps, and their bills summed."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InputError
from ..evaluation import as_dataset
from ..sorters import Reranker, ScoreSort
from .affording import most_calls
from .splits import joined

LIMITS = {
    "max_calls": ("calls", "cached_calls"), "max_cost": ("cost",), "timeout": ("seconds",),
}  # fmt: skip
"""Each limit, and what of a bill it holds for: of calls those that a cache answered, too."""

BILL = (
    "calls", "cached_calls", "failed_calls", "questions", "prompt_tokens", "completion_tokens",
    "cost", "cost_reason", "seconds",
)  # fmt: skip
"""What every bill has, as :func:`dspy_rerank.optimizers.card.spent` makes it."""


def left(limits: Mapping[str, Any], bill: Mapping[str, Any]) -> dict[str, Any]:
    """Of the limits that were given, what a step has left."""
    given = {name: limits[name] for name in LIMITS if limits.get(name) is not None}
    return {
        name: max(0, most - sum(bill[part] or 0 for part in LIMITS[name]))
        for name, most in given.items()
    }


def kept_to_compare(student: Reranker, data: Any) -> int:
    """Calls for ranking these queries, which are those a search goes by, with two prompts."""
    return 2 * most_calls(student, data)


def kept_to_weigh(judges: Iterable[Any], sets: Mapping[str, Any]) -> int:
    """Calls for asking each of these judges about all labelled queries.

    Args:
        judges: Pointwise ones.
        sets: ``trainset`` and ``valset``.
    """
    data = joined(as_dataset(sets["trainset"]), as_dataset(sets["valset"]))
    labelled = data.filter(lambda query: query.labelled)
    return sum(most_calls(ScoreSort(judge), labelled) for judge in judges)


def enough(most: int | None, kept: int, what: str) -> None:
    """See that a step's own limit has room for what it does at least.

    Raises:
        InputError: It has not.
    """
    if most is not None and most < kept:
        raise InputError(
            f"max_calls={most}, but {what} takes up to {kept}; give more calls or fewer queries"
        )


def without(limits: Mapping[str, Any], kept: int, what: str) -> dict[str, Any]:
    """The limits of a step behind which so many calls are kept for another.

    Raises:
        InputError: There are no more than that.
    """
    most = limits.get("max_calls")
    if most is None:
        return dict(limits)
    if kept >= most:
        raise InputError(
            f"max_calls={most}, of which {what} takes up to {kept}; give more calls or fewer "
            "queries"
        )
    return {**limits, "max_calls": most - kept}


def summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The bill of two steps; a price is known only when both are."""
    names = [name for name in BILL if name != "cost_reason"]
    both = {n: None if None in (one[n], other[n]) else one[n] + other[n] for n in names}
    return {**one, **both, "cost_reason": one["cost_reason"] or other["cost_reason"]}
