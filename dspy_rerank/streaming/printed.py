"""Results on standard output: nothing is kept, so nothing can be resumed."""

import sys
from collections.abc import Mapping
from typing import Any, Self

import orjson

from .index import Index, Known


class Printed:
    """Takes rows as a :class:`~dspy_rerank.streaming.Journal` does, and prints them.

    Args:
        by: The program, model and settings that the rows come from.

    Attributes:
        cost: US dollars of all rows, so far as known.
    """

    def __init__(self, by: str):
        self._by, self._index, self.cost = by, Index(), 0.0

    def known(self, name: str) -> Known | None:
        """Whether the input has had an id."""
        return self._index.get(name)

    def see(self, name: str, key: str) -> None:
        """Note that the input has an id."""
        self._index.put(name, Known(key, "", -1, seen=True))

    def append(self, row: Mapping[str, Any], key: str) -> None:
        """Print a row."""
        whole = {"id": row["id"], "key": key, "by": self._by, **row}
        sys.stdout.write(orjson.dumps(whole, default=str).decode() + "\n")
        sys.stdout.flush()
        self.cost += (row.get("usage") or {}).get("cost") or 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._index.close()
