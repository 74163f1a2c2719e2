"""What a job's state holds: its tables, and their rows."""

from typing import Any, NamedTuple

NAME = "job.sqlite"
FORMAT = 1

TABLES = """
CREATE TABLE job (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE queries (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL,
    result TEXT, run TEXT, degraded INTEGER
);
CREATE TABLE requests (
    key TEXT PRIMARY KEY, n INTEGER NOT NULL, body TEXT, worst REAL NOT NULL,
    batch INTEGER, failed INTEGER NOT NULL DEFAULT 0, answer TEXT, status INTEGER,
    read INTEGER NOT NULL DEFAULT 0, written INTEGER NOT NULL DEFAULT 0, cost REAL
);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, round INTEGER NOT NULL, tag TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL, requests INTEGER NOT NULL, begun REAL NOT NULL,
    file TEXT, remote TEXT, note TEXT NOT NULL DEFAULT ''
);
CREATE INDEX unfinished ON queries (n) WHERE result IS NULL;
CREATE INDEX unanswered ON requests (batch) WHERE answer IS NULL;
"""


class Query(NamedTuple):
    """A query of the job: its number from 0, its id, and its line of the file."""

    n: int
    id: str
    record: dict[str, Any]


class Request(NamedTuple):
    """A question to the model: its key, its body, and the most that it can cost."""

    key: str
    body: str
    worst: float


class Known(NamedTuple):
    """What is known of a request.

    Attributes:
        n: The query that asked first, and pays.
        failed: How many attempts at an answer have failed.
        answer: ``{"status": 200, "body": ...}``, or a status with a ``message`` where nobody will
            try again; ``None`` while it is awaited.
    """

    n: int
    failed: int
    answer: dict[str, Any] | None


class Answered(NamedTuple):
    """An answer that came: see :class:`Known`, and what it took."""

    key: str
    answer: dict[str, Any]
    read: int = 0
    written: int = 0
    cost: float | None = None


class Batch(NamedTuple):
    """A file of requests.

    ``state`` is ``planned``, ``creating`` (perhaps the provider has it already), ``open``,
    ``ended``, or ``refused`` (nothing of it was tried).
    """

    number: int
    round: int
    tag: str
    state: str
    requests: int
    begun: float
    file: str | None
    remote: str | None
    note: str
