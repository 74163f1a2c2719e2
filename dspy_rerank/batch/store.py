"""The state of a job: one SQLite file in one folder, right at every moment.

Every change is one transaction, so a process that is killed leaves the state before or the state
after it. Nothing here knows a provider or a language model, and no key is ever stored.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError
from .rows import FORMAT, NAME, TABLES, Answered, Batch, Known, Query, Request


class Store:
    """The file of a job.

    Args:
        folder: Where it is.

    Raises:
        InputError: There is no job in the folder, or it is from another version.
    """

    def __init__(self, folder: Path):
        path = folder / NAME
        if not path.is_file():
            raise InputError(f"{folder}: no batch job is here; begin one with batch submit")
        self._db = _connected(path)
        found = self.setting("format")
        if found != FORMAT:
            raise InputError(f"{folder}: a job of format {found}; this version reads {FORMAT}")

    @staticmethod
    def there(folder: Path) -> bool:
        """Whether a job is in a folder; one whose beginning was cut off is not."""
        if not (folder / NAME).is_file():
            return False
        with closing(_connected(folder / NAME)) as db:
            return (
                db.execute("SELECT 1 FROM sqlite_master WHERE name = 'job'").fetchone() is not None
            )

    @staticmethod
    def create(folder: Path, settings: Mapping[str, Any], queries: Iterable[Query]) -> "Store":
        """Begin a job; all of it is written, or nothing."""
        folder.mkdir(parents=True, exist_ok=True)
        rows = ((q.n, q.id, _text(q.record)) for q in queries)
        db = _connected(folder / NAME)
        try:
            with db:
                db.execute("BEGIN IMMEDIATE")
                for table in TABLES.split(";"):
                    db.execute(table)
                db.executemany("INSERT INTO queries (n, id, record) VALUES (?, ?, ?)", rows)
                known = {"format": FORMAT, **settings}
                db.executemany(
                    "INSERT INTO job VALUES (?, ?)", [(k, json.dumps(v)) for k, v in known.items()]
                )
        except BaseException:
            db.close()
            (folder / NAME).unlink(missing_ok=True)
            raise
        db.close()
        return Store(folder)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def setting(self, name: str) -> Any:
        """A setting of the job; ``None`` where it has none."""
        try:
            row = self._db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        except sqlite3.DatabaseError:
            return None
        return None if row is None else json.loads(row[0])

    def set(self, name: str, value: Any) -> None:
        """Change a setting."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO job VALUES (?, ?)", (name, json.dumps(value)))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Changes inside count all together or not at all."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield

    def unfinished(self) -> Iterator[Query]:
        """Queries without a result, in order; they may get theirs meanwhile."""
        last = -1
        find = "SELECT n, id, record FROM queries WHERE result IS NULL AND n > ? ORDER BY n LIMIT 1"
        while row := self._db.execute(find, (last,)).fetchone():
            yield Query(row[0], row[1], json.loads(row[2]))
            last = row[0]

    def records(self) -> Iterator[dict[str, Any]]:
        """The queries as they were given, in order."""
        for (record,) in self._db.execute("SELECT record FROM queries ORDER BY n"):
            yield json.loads(record)

    def finish(self, n: int, result: dict[str, Any], run: str | None) -> None:
        """Keep a query's result."""
        self._db.execute(
            "UPDATE queries SET result = ?, run = ?, degraded = ? WHERE n = ?",
            (_text(result), run, int(result["degraded"]), n),
        )

    def results(self) -> Iterator[tuple[str, str, str | None]]:
        """Id, result as JSON and lines of a run, of every finished query in the order given.

        There are no lines where a document's id does not fit into them.
        """
        yield from self._db.execute(
            "SELECT id, result, run FROM queries WHERE result IS NOT NULL ORDER BY n"
        )

    def degraded(self, most: int) -> list[str]:
        """Results of the first degraded queries, as JSON."""
        found = self._db.execute(
            "SELECT result FROM queries WHERE degraded ORDER BY n LIMIT ?", (most,)
        )
        return [result for (result,) in found]

    def known(self, key: str) -> Known | None:
        """What is known of a request, if it was asked before."""
        row = self._db.execute(
            "SELECT n, failed, answer FROM requests WHERE key = ?", (key,)
        ).fetchone()
        return row and Known(row[0], row[1], None if row[2] is None else json.loads(row[2]))

    def ask(self, n: int, requests: Iterable[Request]) -> None:
        """Put requests; those that were put before stay as they are."""
        self._db.executemany(
            "INSERT OR IGNORE INTO requests (key, n, body, worst) VALUES (?, ?, ?, ?)",
            ((r.key, n, r.body, r.worst) for r in requests),
        )

    def waiting(self) -> Iterator[Request]:
        """Requests that are in no batch and have no answer, in the order in which they were put."""
        yield from map(
            Request._make,
            self._db.execute(
                "SELECT key, body, worst FROM requests WHERE answer IS NULL AND batch IS NULL "
                "ORDER BY rowid"
            ),
        )

    def plan(self, number: int, round_: int, tag: str, keys: list[str], begun: float) -> None:
        """Put requests into a batch, which nobody has been asked for yet."""
        self._db.execute(
            "INSERT INTO batches (number, round, tag, state, requests, begun) "
            "VALUES (?, ?, ?, 'planned', ?, ?)",
            (number, round_, tag, len(keys), begun),
        )
        self._db.executemany(
            "UPDATE requests SET batch = ? WHERE key = ?", ((number, key) for key in keys)
        )

    def inside(self, number: int) -> Iterator[Request]:
        """The requests of a batch that have no answer, in order."""
        yield from map(
            Request._make,
            self._db.execute(
                "SELECT key, body, worst FROM requests WHERE answer IS NULL AND batch = ? "
                "ORDER BY rowid",
                (number,),
            ),
        )

    def batches(self, *states: str) -> list[Batch]:
        """All batches, or those in one of some states, in order."""
        names = ", ".join("number round tag state requests begun file remote note".split())
        where = f"WHERE state IN ({', '.join('?' * len(states))})" if states else ""
        found = self._db.execute(f"SELECT {names} FROM batches {where} ORDER BY number", states)
        return [Batch(*row) for row in found]

    def mark(self, number: int, **columns: Any) -> None:
        """Change a batch's state, file, remote id or note, at once."""
        given = ", ".join(f"{name} = ?" for name in columns)
        with self._db:
            self._db.execute(
                f"UPDATE batches SET {given} WHERE number = ?", (*columns.values(), number)
            )

    def note(self, number: int, state: str, note: str) -> None:
        """Change a batch's state, inside of other changes."""
        self._db.execute(
            "UPDATE batches SET state = ?, note = ? WHERE number = ?", (state, note, number)
        )

    def answer(self, number: int, answers: Iterable[Answered]) -> None:
        """Keep the answers to a batch's requests; the first to each counts."""
        self._db.executemany(
            "UPDATE requests SET answer = ?, status = ?, read = ?, written = ?, cost = ?, "
            "body = NULL, failed = failed + ? WHERE key = ? AND batch = ? AND answer IS NULL",
            (
                (_text(a.answer), a.answer["status"], a.read, a.written, a.cost,
                 int(a.answer["status"] != 200), a.key, number)
                for a in answers
            ),
        )  # fmt: skip

    def fail(self, number: int, key: str, why: dict[str, Any], attempts: int) -> None:
        """Count a failed attempt; after the last, why it failed is the answer."""
        self._db.execute(
            "UPDATE requests SET failed = failed + 1, batch = NULL, "
            "answer = CASE WHEN failed + 1 >= ? THEN ? END, "
            "status = CASE WHEN failed + 1 >= ? THEN ? END "
            "WHERE key = ? AND batch = ? AND answer IS NULL",
            (attempts, _text(why), attempts, why["status"], key, number),
        )

    def release(self, number: int) -> None:
        """Take the requests out of a batch of which nothing was tried."""
        self._db.execute(
            "UPDATE requests SET batch = NULL WHERE batch = ? AND answer IS NULL", (number,)
        )

    def count(self, query: str) -> tuple[Any, ...]:
        """The one row of a query over the tables."""
        return self._db.execute(query).fetchone()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _connected(path: Path) -> sqlite3.Connection:
    """A connection whose transactions are begun by hand; used from one thread at a time."""
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db
