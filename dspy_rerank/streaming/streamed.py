"""What a stream gives: one query's ranking, or why there is none."""

from dataclasses import dataclass
from typing import Any

from ..errors import DataError, DocumentTypeError, InputError, JudgeError, ModelError
from ..ranking import Ranking

OF_ONE_QUERY = (InputError, DocumentTypeError, DataError, ModelError, JudgeError)
"""Errors that say nothing of other queries; any other ends the stream."""


@dataclass(frozen=True, slots=True)
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
