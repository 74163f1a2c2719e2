"""Several step-by-step computations advanced together, their rounds merged into one."""

from collections.abc import Generator, Iterable, Sequence
from itertools import islice
from typing import TypeVar

from ...types import Judgment, Round

T = TypeVar("T")

Steps = Generator[Round, Sequence[Judgment], T]
"""A computation that yields rounds and receives judgments; ``Plan`` is ``Steps[Outcome]``."""


def lockstep(computations: Iterable[Steps[T]]) -> Steps[list[T]]:
    """Runs independent computations side by side.

    The questions are those of all computations together; the depth is that of the deepest.

    Args:
        computations: Fresh generators, none of which depends on another.

    Returns:
        Their results, in the order given.
    """
    steps = list(computations)
    results: dict[int, T] = {}
    waiting: dict[int, Round] = {}

    def advance(index: int, judgments: Sequence[Judgment] | None) -> None:
        try:
            # Python starts a generator with send(None), which its type does not admit.
            waiting[index] = steps[index].send(judgments)  # pyright: ignore[reportArgumentType]
        except StopIteration as stop:
            waiting.pop(index, None)
            results[index] = stop.value

    for index in range(len(steps)):
        advance(index, None)
    while waiting:
        asked = dict(waiting)
        judged = iter((yield [group for groups in asked.values() for group in groups]))
        for index, groups in asked.items():
            advance(index, tuple(islice(judged, len(groups))))
    return [results[index] for index in range(len(steps))]
