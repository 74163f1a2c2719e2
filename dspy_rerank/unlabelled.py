"""Queries without any label: they count in no mean, and whoever measures says which they are."""

from collections.abc import Sequence
from typing import Any

from .errors import DataError
from .shown import count

LABELS = (
    "relevance (a grade for each document), label or relevance in each document, preferences or "
    "answer"
)
KNOWN = frozenset(
    {"query", "documents", "relevance", "label", "preferences", "answer", "id", "split", "inputs"}
    | {"ideal", "query_id", "top_k"}
)
"""Keys of a record that mean something."""
SHOWN = 5


def unlabelled(data: Any) -> tuple[str, ...]:
    """Ids of the queries of a data set that nobody has judged; one graded 0 throughout is."""
    return tuple(query.id for query in data if not query.judged)


def measurable(data: Any) -> Any:
    """The data set without its unlabelled queries.

    Raises:
        DataError: None is left; the message has the keys that came and those that are read.
    """
    kept = data.filter(lambda query: query.judged)
    if len(data) and not len(kept):
        keys = data.record_keys
        came = f": its records have {', '.join(keys)}" if keys else ""
        raise DataError(
            f"{data.name}: none of {count(len(data), 'query')} has a label, so there is nothing to "
            f"measure{came}; expected {LABELS}"
        )
    return kept


def words(left: Sequence[str], data: Any) -> str:
    """A sentence on the queries that are left out of a data set."""
    verb = "is" if len(left) == 1 else "are"
    named = ", ".join(left[:SHOWN]) + (", ..." if len(left) > SHOWN else "")
    odd = [key for key in data.record_keys if key not in KNOWN]
    hint = f"; keys that were not read as labels: {', '.join(odd)}" if odd else ""
    many = f"{len(left)} of {count(len(data), 'query')} without labels"
    return f"{many} {verb} left out of all means ({named}){hint}"
