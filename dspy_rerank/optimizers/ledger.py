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
"""Seconds to wait for a trial whose process cannot be told to be dead."""
PATIENCE = 5.0
"""Seconds to wait for a trial to say whose it is; then its process is dead."""
BORN = os.urandom(4).hex()
"""Tells this process from an earlier one with its number, as in a container begun again."""


@dataclass(frozen=True)
class Bill:
    """Calls and US dollars, spent or to be spent.

    Attributes:
        calls: New calls to the judge, failed ones included.
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
        self._seen: dict[int, float] = {}

    def own(self, trial: optuna.Trial) -> None:
        """Say which process has the trial."""
        trial.set_user_attr(OWNER, _me())

    def reserve(self, trial: optuna.Trial, most: Bill, *, anyway: bool = False) -> bool:
        """Whether a trial that costs so much at most may begin; ``anyway`` it may.

        Where a price is not known, dollars are not limited.
        """
        self.hold(trial, most)
        limited = self.max_calls is not None or self.max_cost is not None
        if not limited or not most.calls or anyway:
            return True
        if self._fits(self._before(trial.number) + most):
            return True
        self.paid(trial, Bill())
        return False

    def room(self, trial: optuna.Trial) -> int | None:
        """Calls that a trial may make: what all others leave; ``None`` without a limit."""
        if self.max_calls is None:
            return None
        others = (t for t in self.study.get_trials(deepcopy=False) if t.number != trial.number)
        return max(0, self.max_calls - sum(self._cost(other).calls for other in others))

    def _fits(self, bill: Bill) -> bool:
        few = self.max_calls is None or bill.calls <= self.max_calls
        return few and (self.max_cost is None or (bill.dollars or 0.0) <= self.max_cost + 1e-12)

    def hold(self, trial: optuna.Trial, most: Bill) -> None:
        """Say what a trial costs at most."""
        trial.set_user_attr(RESERVED, asdict(most))

    def queue_behind(self, trial: optuna.Trial) -> None:
        """Wait while an earlier trial is buying the answers that this one needs.

        Two processes that try the same prompt at the same time would both pay for it. A process
        of this machine that was killed is not waited for; one elsewhere at most ten minutes.
        """
        wanted = trial.params.get(VARIANT)
        self._wait(trial.number, lambda other: other.params.get(VARIANT, wanted) == wanted)
        if self.answers is not None:
            self.answers.refresh()

    def _wait(self, number: int, condition: Callable[[Any], bool]) -> list[Any]:
        """The trials before this one, once the condition holds for none that others have."""
        pause = 0.05
        while True:
            earlier = [t for t in self.study.get_trials(deepcopy=False) if t.number < number]
            if not any(self._alive(other) and condition(other) for other in earlier):
                return earlier
            time.sleep(pause)
            pause = min(1.0, pause * 1.2)

    def _alive(self, trial: Any) -> bool:
        """Whether another process has the trial under way, as far as can be told."""
        owner = trial.user_attrs.get(OWNER)
        if trial.state.name != "RUNNING" or owner == _me():
            return False
        now = time.monotonic()
        waited = now - self._seen.setdefault(trial.number, now)
        return waited < PATIENCE if owner is None else waited < LONGEST and not _dead(owner)

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
        earlier = self._wait(number, lambda other: RESERVED not in other.user_attrs)
        return sum((self._cost(trial) for trial in earlier), Bill())

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
    return f"{socket.gethostname()}:{os.getpid()}:{BORN}"


def _dead(owner: str) -> bool:
    """Whether a process of this machine is no more; those of others cannot be told."""
    host, process, _ = (*owner.rsplit(":", 2), "", "")[:3]
    if host != socket.gethostname() or not process.isdigit():
        return False
    if int(process) == os.getpid():
        return owner != _me()
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
