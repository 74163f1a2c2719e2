"""Optuna studies that keep quiet inside another program's output."""

from collections.abc import Iterator
from contextlib import contextmanager

import optuna


def new_study(seed: int) -> optuna.Study:
    """A study that maximises one value with a seeded TPE sampler."""
    with _quiet():
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=8)
        return optuna.create_study(direction="maximize", sampler=sampler)


@contextmanager
def _quiet() -> Iterator[None]:
    """Optuna announces every study on stderr; not inside another program's output."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
