"""What all processes of a study have spent, so that a budget holds across them."""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import optuna

from .answers import KeptAnswers

RESERVED = "reserved"
PAID = "paid"
OWNER = "owner"
VARIANT = "variant"
"""Parameter of a trial: the prompt."""
LONGEST = 600.0
PATIENCE = 5.0
"""Seconds to wait for an earlier trial to say whose it is or what it reserves; then its process is
dead."""


@dataclass(frozen=True)
class Bill:
    """Calls and US dollars, spent or to be spent.

    Attributes:
        calls: New calls to the judge.
        dollars: ``None`` where the price is not known.
    """

    calls: int = 0
    dollars: float | None = 0.0

    def __add__(self, other: "Bill") -> "Bill":
        unknown = self.dollars is None or other.dollars is None
        dollars = None if unknown else (self.dollars or 0.0) + (other.dollars or 0.0)
        return Bill(self.calls + other.calls, dollars)

    def share(self, calls: int) -> "Bill":
        """The part of the bill for so many of its calls."""
        part = calls / self.calls if self.calls else 0.0
        return Bill(calls, None if self.dollars is None else self.dollars * part)


class Ledger:
    """Reserves calls and dollars before a trial and books what it took, in the study itself.

    A trial may begin when what all earlier trials have paid or reserved leaves room for it. As
    trials are numbered in the order in which they were asked for, two processes never reserve
    the same calls. What a killed process of this machine had reserved is free again, less the
    answers it has left behind.

    Args:
        study: Holds the books, as attributes of its trials.
        max_calls: In all; ``None`` is without limit.
        max_cost: US dollars in all; ``None`` is without limit.
        answers: Paid answers, by trial.
    """

    def __init__(
        self, study: optuna.Study, max_calls: int | None, max_cost: float | None,
        answers: KeptAnswers | None,
    ):  # fmt: skip
        self.study = study
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.answers = answers

    def own(self, trial: optuna.Trial) -> None:
        """Say which process has the trial."""
        trial.set_user_attr(OWNER, _me())

    def reserve(self, trial: optuna.Trial, most: Bill, *, anyway: bool = False) -> bool:
        """Whether a trial that costs so much at most may begin; ``anyway`` it may.

        Where a price is not known, dollars are not limited.
        """
        self.own(trial)
        trial.set_user_attr(RESERVED, asdict(most))
        limited = self.max_calls is not None or self.max_cost is not None
        if not limited or not most.calls or anyway:
            return True
        if self._fits(self._before(trial.number) + most):
            return True
        self.paid(trial, Bill())
        return False

    def _fits(self, bill: Bill) -> bool:
        few = self.max_calls is None or bill.calls <= self.max_calls
        return few and (self.max_cost is None or (bill.dollars or 0.0) <= self.max_cost + 1e-12)

    def queue_behind(self, trial: optuna.Trial) -> None:
        """Wait while an earlier trial is buying the answers that this one needs.

        Two processes that try the same prompt at the same time would both pay for it. A process
        of this machine that was killed is not waited for; one elsewhere at most ten minutes.
        """
        begun = time.monotonic()
        while True:
            waited = time.monotonic() - begun
            buying = map(self._buying(trial, waited), self._earlier(trial))
            if waited > LONGEST or not any(buying):
                break
            time.sleep(0.05)
        if self.answers is not None:
            self.answers.refresh()

    def _buying(self, trial: optuna.Trial, waited: float) -> Callable[[Any], bool]:
        """Whether another trial buys the same answers, or has yet to say which it does."""
        wanted = trial.params.get(VARIANT)

        def buying(other: Any) -> bool:
            owner = other.user_attrs.get(OWNER)
            if other.state.name != "RUNNING" or owner == _me():
                return False
            if owner is None:
                return waited < PATIENCE
            return other.params.get(VARIANT, wanted) == wanted and not _dead(owner)

        return buying

    def _earlier(self, trial: optuna.Trial) -> list[Any]:
        return [t for t in self.study.get_trials(deepcopy=False) if t.number < trial.number]

    def paid(self, trial: optuna.Trial, bill: Bill) -> None:
        """Book what a trial has taken."""
        trial.set_user_attr(PAID, asdict(bill))

    def spent(self) -> Bill:
        """What all trials have paid so far; of those under way, the answers that have come."""
        if self.answers is not None:
            self.answers.refresh()
        trials = self.study.get_trials(deepcopy=False)
        return sum((self._paid(trial) for trial in trials), Bill())

    def _paid(self, trial: Any) -> Bill:
        booked = trial.user_attrs.get(PAID)
        if booked is not None:
            return Bill(**booked)
        reserved = Bill(**trial.user_attrs.get(RESERVED, {}))
        came = 0 if self.answers is None else self.answers.paid_by(trial.number)
        return reserved.share(min(reserved.calls, came))

    def _before(self, number: int) -> Bill:
        """What trials with lower numbers cost, once all of them have said."""
        until = time.monotonic() + PATIENCE
        while True:
            earlier = [t for t in self.study.get_trials(deepcopy=False) if t.number < number]
            silent = [t for t in earlier if not t.state.is_finished() and not _said(t)]
            if all(t.state.name == "WAITING" for t in silent) or time.monotonic() > until:
                return sum((self._cost(trial) for trial in earlier), Bill())
            time.sleep(0.05)

    def _cost(self, trial: Any) -> Bill:
        booked = trial.user_attrs.get(PAID)
        if booked is not None:
            return Bill(**booked)
        if self.answers is not None and _dead(trial.user_attrs.get(OWNER, "")):
            self.answers.refresh()
            return self._paid(trial)
        return Bill(**trial.user_attrs.get(RESERVED, {}))


def _me() -> str:
    """This process, for others to look for; it runs one trial at a time."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _said(trial: Any) -> bool:
    return RESERVED in trial.user_attrs


def _dead(owner: str) -> bool:
    """Whether a process of this machine is no more; those of others cannot be told."""
    host, _, process = owner.rpartition(":")
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
