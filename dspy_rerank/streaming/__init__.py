"""Rankings of any number of queries in constant memory, and runs over files that can be resumed."""

from .identity import identity_of
from .item import Item
from .journal import Journal, read_results
from .running import Plan, run
from .sources import Source, open_source
from .stream import Stream, stream
from .streamed import Streamed
from .summary import Summary

__all__ = [
    "Item",
    "Journal",
    "Plan",
    "Source",
    "Stream",
    "Streamed",
    "Summary",
    "identity_of",
    "open_source",
    "read_results",
    "run",
    "stream",
]
