"""One process at a time works on a job."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import InputError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder; the lock goes with the process, however that ends.

    SQLite's own lock on an empty database: the same on all systems, and nothing is left behind
    that would have to be cleaned up by hand.

    Raises:
        InputError: Another process holds it.
    """
    with closing(sqlite3.connect(folder / "lock", timeout=0, isolation_level=None)) as holder:
        try:
            holder.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{folder}: another process works on this job ({error}); wait until it ends"
            ) from None
        yield
