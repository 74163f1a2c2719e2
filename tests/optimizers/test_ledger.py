"""The books of a search that several processes share, on a clock of our own."""

import os
import socket

import optuna
import pytest

from dspy_rerank.optimizers import ledger as books
from dspy_rerank.optimizers.ledger import OWNER, VARIANT, Bill, Ledger

HOST = socket.gethostname()
ALIVE = f"{HOST}:{os.getppid()}:00000000"
DEAD = f"{HOST}:99999999:00000000"
BEFORE = f"{HOST}:{os.getpid()}:00000000"
"""A process that had the number of this one, as in a container begun again."""


class Clock:
    """Time that passes only while somebody sleeps; each sleep does the next thing to do."""

    def __init__(self):
        self.now = 0.0
        self.todo = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        if self.todo:
            self.todo.pop(0)()


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(books, "time", made)
    return made


@pytest.fixture
def study():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study()


def begun(study, owner=None, variant=None):
    """A trial that another process has under way."""
    if variant:
        study.enqueue_trial({VARIANT: variant})
    trial = study.ask()
    if owner:
        trial.set_user_attr(OWNER, owner)
    if variant:
        trial.suggest_categorical(VARIANT, ["a", "b"])
    return trial


def mine(study, variant="a"):
    trial = begun(study, None, variant)
    ledger = Ledger(study, 100, None, None)
    ledger.own(trial)
    return ledger, trial


def test_it_waits_for_one_that_buys_the_same_answers(study, clock):
    other = begun(study, ALIVE, "a")
    ledger, trial = mine(study)
    clock.todo = [lambda: None, lambda: None, lambda: study.tell(other, 1.0)]
    ledger.queue_behind(trial)
    assert not clock.todo


def test_it_waits_until_the_other_has_said_what_it_buys(study, clock):
    study.enqueue_trial({VARIANT: "b"})
    other = begun(study, ALIVE)
    ledger, trial = mine(study)
    clock.todo = [lambda: None, lambda: other.suggest_categorical(VARIANT, ["a", "b"])]
    ledger.queue_behind(trial)
    assert not clock.todo


@pytest.mark.parametrize(
    ("owner", "variant"), [(ALIVE, "b"), (DEAD, "a"), (BEFORE, "a")],
    ids=["other answers", "dead", "dead, and its number is mine"],
)  # fmt: skip
def test_it_does_not_wait_for_other_answers_or_the_dead(study, clock, owner, variant):
    begun(study, owner, variant)
    ledger, trial = mine(study)
    ledger.queue_behind(trial)
    assert clock.now == 0


def test_one_that_never_said_whose_it_is_is_waited_for_once(study, clock):
    begun(study)
    ledger, trial = mine(study)
    ledger.queue_behind(trial)
    assert books.PATIENCE <= clock.now < books.PATIENCE + 2
    waited = clock.now
    ledger.queue_behind(trial)
    assert clock.now == waited


def test_a_process_that_cannot_be_told_to_be_dead_is_waited_for_at_most_so_long(study, clock):
    begun(study, "elsewhere:1:00000000", "a")
    ledger, trial = mine(study)
    ledger.queue_behind(trial)
    assert books.LONGEST <= clock.now < books.LONGEST + 2


def test_a_budget_counts_on_a_slow_process_to_say_what_it_reserves(study, clock):
    other = begun(study, ALIVE, "b")
    theirs = Ledger(study, 100, None, None)
    ledger, trial = mine(study)
    clock.todo = [*[lambda: None] * 20, lambda: theirs.hold(other, Bill(80))]
    assert not ledger.reserve(trial, Bill(30))
    assert clock.now > books.PATIENCE
    assert not clock.todo


def test_what_the_dead_had_reserved_is_free_again(study, clock):
    other = begun(study, BEFORE, "b")
    Ledger(study, 100, None, None).hold(other, Bill(80))
    ledger, trial = mine(study)
    ledger.answers = NoAnswers()
    assert ledger.reserve(trial, Bill(100))


class NoAnswers:
    """A file of paid answers that has none."""

    def refresh(self):
        """Nothing to read."""

    def paid_by(self, trial):
        return 0
