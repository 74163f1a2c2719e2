"""A query of a file, as it is ranked: its id, its candidates, and a digest of both."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ..documents import as_documents
from ..errors import DataError, InputError
from ..trec import check_names


@dataclass(frozen=True, slots=True)
class Item:
    """One query to rank.

    Args:
        id: Unique within a run.
        query: What is looked for.
        documents: Candidates in incoming order, of any form that a reranker takes.
        inputs: Further inputs of the judge's signature.
        top_k: How many to return, where the query says so itself.
        problem: Why it cannot be ranked, where it could not even be read.
    """

    id: str
    query: Any
    documents: Sequence[Any] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    top_k: int | None = None
    problem: Exception | None = None

    @property
    def key(self) -> str:
        """A digest of all that decides the ranking, 32 characters."""
        shown = [self.id, self.query, self.top_k, dict(self.inputs), self._contents()]
        if self.problem is not None:
            shown.append(str(self.problem))
        text = orjson.dumps(shown, default=repr, option=orjson.OPT_SORT_KEYS | _LOOSE)
        return hashlib.sha256(text).hexdigest()[:32]

    def _contents(self) -> list[Any]:
        try:
            return [(d.id, d.text, d.score) for d in as_documents(self.documents)]
        except (TypeError, ValueError):
            return list(self.documents)

    def cut(self, depth: int) -> "Item":
        """The query with its first candidates only."""
        return replace(self, documents=self.documents[:depth])

    def for_run(self) -> "Item":
        """The query, with a problem where a TREC run could not carry its ranking."""
        if self.problem is not None:
            return self
        try:
            documents = as_documents(self.documents)
        except (TypeError, ValueError):
            return self  # which its ranking will say
        try:
            check_names(self.id, documents)
        except (InputError, DataError) as problem:
            return replace(self, problem=problem)
        return self

    def call(self) -> dict[str, Any]:
        """The keywords of a reranker's call.

        Raises:
            Exception: The problem, where it has one.
        """
        if self.problem is not None:
            raise self.problem
        own = {} if self.top_k is None else {"top_k": self.top_k}
        return {**self.inputs, **own, "query": self.query, "documents": self.documents}


_LOOSE = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
