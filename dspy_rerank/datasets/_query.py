"""A query with its candidates and what is known about their relevance."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ..errors import DataError
from ..types import Document

Grade: TypeAlias = float | None
"""Graded relevance; ``None`` means that nobody has judged."""


def above_zero(grades: Iterable[Grade]) -> tuple[float, ...]:
    """The grades that an ideal ranking would gain from."""
    return tuple(grade for grade in grades if grade is not None and grade > 0)


@dataclass(frozen=True)
class Query:
    """A query, its candidates in incoming order, and their grades.

    Args:
        id: Unique within a data set.
        text: What is searched for.
        documents: Candidates, in the order in which retrieval gave them.
        relevance: A grade for every candidate, ``None`` where nobody has judged.
        inputs: Further inputs of the judge's signature, such as criteria, by name.
        ideal: Grades above 0 of documents that are not among the candidates; nDCG needs them.
        split: The split to which the source assigns the query; empty when to none.
        judged: Whether anybody has judged any document, a candidate or not: only then does the
            query count in means. Known from the grades, unless the source knows of more.
    """

    id: str
    text: str
    documents: tuple[Document, ...]
    relevance: tuple[Grade, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    ideal: tuple[float, ...] = ()
    split: str = ""
    judged: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.relevance) != len(self.documents):
            raise DataError(
                f"Query {self.id!r}: expected a grade for each of {len(self.documents)} documents "
                f"(null where nobody has judged), got {len(self.relevance)}."
            )
        object.__setattr__(self, "judged", self.judged or self.labelled or bool(self.ideal))

    @property
    def labelled(self) -> bool:
        """Whether any candidate has a grade."""
        return any(grade is not None for grade in self.relevance)

    def cut(self, depth: int) -> "Query":
        """The query with its first candidates only; the grades of the others become ideal ones."""
        beyond = above_zero(self.relevance[depth:])
        return replace(
            self,
            documents=self.documents[:depth],
            relevance=self.relevance[:depth],
            ideal=self.ideal + beyond,
        )
