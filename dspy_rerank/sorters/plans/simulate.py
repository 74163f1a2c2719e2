"""Runs a plan against a function instead of a model, and counts what it asked."""

from collections.abc import Callable
from typing import NamedTuple

from ...types import Group, Judgment, Outcome, Plan
from .shape import Shape


class Run(NamedTuple):
    """What a plan concluded and what it asked for on the way.

    Attributes:
        outcome: The plan's conclusion.
        questions: Groups judged.
        rounds: Steps that followed one another.
        reads: Members of all groups together.
    """

    outcome: Outcome
    questions: int
    rounds: int
    reads: int

    @property
    def shape(self) -> Shape:
        """The exact cost of this run."""
        return Shape(self.questions, self.rounds, self.reads)


def drive(plan: Plan, answer: Callable[[Group], Judgment]) -> Run:
    """Runs a plan to its end; ``answer`` is called once a group, round after round."""
    groups: list[Group] = []
    rounds = 0
    try:
        asked = next(plan)
        while True:
            groups += asked
            rounds += 1
            asked = plan.send([answer(group) for group in asked])
    except StopIteration as stop:
        return Run(stop.value, len(groups), rounds, sum(map(len, groups)))


def no_answer(group: Group) -> Judgment:
    """An unknown judgment, which leaves every plan with the incoming order."""
    return Judgment(kind="listwise", group=group, status="unknown", reason="not asked")


def fixed_shape(plan: Plan) -> Shape:
    """What a plan costs whose questions do not depend on the answers."""
    return drive(plan, no_answer).shape
