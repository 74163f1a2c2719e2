"""What a stream gives: one query's ranking, or why there is none."""

from dataclasses import dataclass
from typing import Any

from ..errors import DataError, DocumentTypeError, InputError, JudgeError, ModelError
from ..ranking import Ranking

MOST = 120
"""Characters of an error that are shown."""

OF_ONE_QUERY = (InputError, DocumentTypeError, DataError, ModelError, JudgeError)
"""Errors that say nothing of other queries; any other ends the stream."""


@dataclass(frozen=True, slots=True, repr=False)
class Streamed:
    """One query of a stream.

    Attributes:
        number: Of the query, from 0.
        query: As it was given.
        ranking: ``None`` where it failed.
        error: Why it failed, else ``None``.
    """

    number: int
    query: Any
    ranking: Ranking | None = None
    error: Exception | None = None

    def __repr__(self) -> str:
        """Its number and what came of it: a query may hold thousands of documents."""
        if self.ranking is not None:
            return f"<Streamed {self.number}: {self.ranking!r}>"
        said = " ".join(str(self.error).split())
        short = said if len(said) <= MOST else f"{said[: MOST - 3]}..."
        return f"<Streamed {self.number}: no ranking: {type(self.error).__name__}: {short}>"
