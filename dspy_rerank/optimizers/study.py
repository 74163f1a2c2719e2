"""Optuna studies: in memory, in a journal file, or in a database that several machines share."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import optuna

from ..errors import InputError
from .answers import KeptAnswers

Direction = Literal["maximize", "minimize"]
STARTUP = 8
ATTEMPTS = 5
FINGERPRINT = "fingerprint"


def new_study(
    seed: int, *, directions: Sequence[Direction] = ("maximize",), storage: Any = None,
    name: str | None = None, fingerprint: str = "",
) -> optuna.Study:  # fmt: skip
    """A study with a seeded TPE sampler; one that is in the storage already is gone on with.

    Args:
        seed: Of the sampler; a study that is gone on with does not draw the same again.
        directions: ``maximize`` or ``minimize``, one for each objective.
        storage: A file for Optuna's journal, a database's URL, or an Optuna storage.
        name: Of the study in the storage.
        fingerprint: Of all that trials must have in common to be compared.

    Raises:
        InputError: The storage cannot be opened, or holds another search under this name.
    """
    with _quiet():
        study = optuna.create_study(
            directions=list(directions), storage=_opened(storage), study_name=name,
            load_if_exists=storage is not None,
        )  # fmt: skip
        known = study.user_attrs.get(FINGERPRINT)
        if known is None:
            study.set_user_attr(FINGERPRINT, fingerprint)
        elif known != fingerprint:
            raise InputError(
                f"study {name!r} in {storage} is a search with other data, candidates or "
                "settings; give another study_name, or another storage"
            )
        begun = len(study.get_trials(deepcopy=False))
        study.sampler = optuna.samplers.TPESampler(seed=seed + begun, n_startup_trials=STARTUP)
    return study


def _opened(storage: Any) -> Any:
    """An Optuna storage from a file, a URL, or one that is open."""
    if storage is None or not isinstance(storage, str | Path):
        return storage
    try:
        if "://" in str(storage):
            return _database(str(storage))
        from optuna.storages.journal import JournalFileBackend

        return optuna.storages.JournalStorage(JournalFileBackend(str(storage)))
    except Exception as error:
        raise InputError(
            f"storage {storage}: {' '.join(str(error).split())[:200]}; expected a file in an "
            "existing folder, or a database URL whose driver is installed"
        ) from error


def _database(url: str) -> optuna.storages.RDBStorage:
    """A database; two processes that make its tables at the same time are told apart by trying."""
    from sqlalchemy.exc import DatabaseError

    for left in reversed(range(ATTEMPTS)):
        try:
            return optuna.storages.RDBStorage(url)
        except DatabaseError:
            if not left:
                raise
            time.sleep(0.2 * (ATTEMPTS - left))
    raise AssertionError("the last attempt returns or raises")


def answers_beside(storage: Any, name: str, path: str | Path | None = None) -> KeptAnswers | None:
    """The file of paid answers: named, beside the storage's file, or else in the present folder."""
    if path is None and storage is None:
        return None
    if path is None:
        text = str(storage) if isinstance(storage, str | Path) else name
        local = text.removeprefix("sqlite:///") if "://" in text else text
        path = f"{name}.answers.jsonl" if "://" in local else f"{local}.answers.jsonl"
    return KeptAnswers(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Optuna announces every study on stderr; not inside another program's output."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
