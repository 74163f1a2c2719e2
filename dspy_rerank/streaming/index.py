"""What is known of each id, kept on disk so that memory does not grow with the number of ids."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple


class Known(NamedTuple):
    """The last row of an id.

    Attributes:
        key: Of the content that was ranked.
        status: As the row says.
        place: Where its line begins in the file, in bytes.
        seen: Whether the input had the id in this run.
    """

    key: str
    status: str
    place: int
    seen: bool = False


class Index:
    """Rows by id, in a database of SQLite's own that is on disk and goes with the process."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        for line in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", TABLE):
            self._db.execute(line)

    def get(self, name: str) -> Known | None:
        """What is known of an id."""
        row = self._db.execute(
            "SELECT key, status, place, seen FROM rows WHERE id = ?", (name,)
        ).fetchone()
        if row is None:
            return None
        key, status, place, seen = row
        return Known(key, status, place, bool(seen))

    def put(self, name: str, known: Known) -> None:
        """Keep what is known of an id, in place of what was before."""
        self._db.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)", (name, *known))

    def places(self) -> Iterator[int]:
        """Where the last row of each id begins, in the order of the file."""
        cursor = self._db.execute("SELECT place FROM rows WHERE place >= 0 ORDER BY place")
        yield from (place for (place,) in cursor)

    def close(self) -> None:
        """Forget everything."""
        self._db.close()


TABLE = (
    "CREATE TABLE rows (id TEXT PRIMARY KEY, key TEXT NOT NULL, status TEXT NOT NULL, "
    "place INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID"
)
