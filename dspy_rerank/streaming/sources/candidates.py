"""First results and their texts, kept on disk: neither has to fit in memory."""

import sqlite3
from collections.abc import Iterable
from typing import Self

from ...trec import in_trec_order

TABLES = """
CREATE TABLE ranked (query TEXT NOT NULL, document TEXT NOT NULL, score REAL NOT NULL);
CREATE TABLE texts (document TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
"""


class Candidates:
    """A run, in a database of SQLite's own that is on disk and goes with the process.

    Args:
        rows: Query id, document id and score, in any order; of a document that is ranked twice
            for a query the higher score counts.
    """

    def __init__(self, rows: Iterable[tuple[str, str, float]]):
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + TABLES)
        self._db.executemany("INSERT INTO ranked VALUES (?, ?, ?)", rows)
        self._db.execute("CREATE INDEX by_query ON ranked (query)")

    def fill(self, texts: Iterable[tuple[str, str]]) -> None:
        """Take over the texts of the documents that are ranked, out of a whole corpus."""
        self._db.execute("INSERT OR IGNORE INTO texts SELECT document, NULL FROM ranked")
        self._db.executemany(
            "UPDATE texts SET text = ?2 WHERE document = ?1 AND text IS NULL", texts
        )

    def of(self, query: str) -> list[tuple[str, float]]:
        """Document ids and scores of a query, in the order of trec_eval."""
        found = self._db.execute(
            "SELECT document, max(score) FROM ranked WHERE query = ? GROUP BY document", (query,)
        )
        return in_trec_order(dict(found))

    def texts(self, documents: Iterable[str]) -> dict[str, str]:
        """Texts by document id; those that the corpus lacks are missing."""
        ask = "SELECT text FROM texts WHERE document = ?"
        found = ((name, self._db.execute(ask, (name,)).fetchone()) for name in documents)
        return {name: row[0] for name, row in found if row is not None and row[0] is not None}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()
