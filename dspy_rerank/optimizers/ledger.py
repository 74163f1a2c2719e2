"""The calls that all processes of a study have spent, so that a budget holds across them."""

import os
import socket
import time
from typing import Any

import optuna

from .answers import KeptAnswers

RESERVED = "reserved"
PAID = "paid"
OWNER = "owner"
PATIENCE = 2.0
"""Seconds to wait for an earlier trial to say what it reserves; then its process is dead."""


class Ledger:
    """Reserves calls before a trial and books what it took, in the study itself.

    A trial may begin when what all earlier trials have paid or reserved leaves room for it. As
    trials are numbered in the order in which they were asked for, two processes never reserve
    the same calls. What a killed process of this machine had reserved is free again, less the
    answers it has left behind.

    Args:
        study: Holds the books, as attributes of its trials.
        max_calls: In all; ``None`` is without limit.
        answers: Paid answers, by trial.
    """

    def __init__(self, study: optuna.Study, max_calls: int | None, answers: KeptAnswers | None):
        self.study = study
        self.max_calls = max_calls
        self.answers = answers

    def reserve(self, trial: optuna.Trial, most: int, *, anyway: bool = False) -> bool:
        """Whether a trial that takes so many calls at most may begin; ``anyway`` it may."""
        trial.set_user_attr(OWNER, f"{socket.gethostname()}:{os.getpid()}")
        trial.set_user_attr(RESERVED, most)
        if self.max_calls is None or not most or anyway:
            return True
        if self._before(trial.number) + most <= self.max_calls:
            return True
        self.paid(trial, 0)
        return False

    def paid(self, trial: optuna.Trial, calls: int) -> None:
        """Book what a trial has taken."""
        trial.set_user_attr(PAID, calls)

    def spent(self) -> int:
        """Calls paid by all trials so far; of those under way, the answers that have come."""
        if self.answers is not None:
            self.answers.refresh()
        return sum(self._paid(trial) for trial in self.study.get_trials(deepcopy=False))

    def _paid(self, trial: Any) -> int:
        booked = trial.user_attrs.get(PAID)
        if booked is not None:
            return int(booked)
        return 0 if self.answers is None else self.answers.paid_by(trial.number)

    def _before(self, number: int) -> int:
        """What trials with lower numbers cost, once all of them have said."""
        until = time.monotonic() + PATIENCE
        while True:
            earlier = [t for t in self.study.get_trials(deepcopy=False) if t.number < number]
            silent = [t for t in earlier if not t.state.is_finished() and not _said(t)]
            if all(t.state.name == "WAITING" for t in silent) or time.monotonic() > until:
                return sum(self._cost(trial) for trial in earlier)
            time.sleep(0.05)

    def _cost(self, trial: Any) -> int:
        booked = trial.user_attrs.get(PAID)
        if booked is not None:
            return int(booked)
        reserved = int(trial.user_attrs.get(RESERVED, 0))
        if self.answers is not None and _dead(trial.user_attrs.get(OWNER, "")):
            self.answers.refresh()
            return min(reserved, self.answers.paid_by(trial.number))
        return reserved


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
