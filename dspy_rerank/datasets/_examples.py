"""DSPy examples as a data set: what people already have in a notebook."""

from collections.abc import Iterable
from typing import Any

from dspy_rerank.datasets._dataset import Dataset
from dspy_rerank.datasets._query import Query
from dspy_rerank.documents import as_documents
from dspy_rerank.errors import DataError

OWN = frozenset({"query", "documents", "relevance", "ideal", "query_id", "split"})


def from_examples(examples: Iterable[Any], *, name: str = "examples") -> Dataset:
    """A data set of examples with ``query``, ``documents`` and ``relevance``.

    Args:
        examples: `dspy.Example` objects or mappings; ``relevance`` has a grade a document.
            Further fields are further inputs of the judge.
        name: For people.

    Raises:
        DataError: An example lacks one of the three; the message says which example.
    """
    if not isinstance(examples, Iterable) or isinstance(examples, str | bytes):
        raise DataError(f"expected labelled examples, got {type(examples).__name__}")
    return Dataset(name, tuple(_query(place, dict(e)) for place, e in enumerate(examples)))


def _query(place: int, example: dict[str, Any]) -> Query:
    missing = [field for field in ("query", "documents", "relevance") if field not in example]
    if missing:
        raise DataError(
            f"example {place} has no {missing[0]!r}; it has {', '.join(example) or 'no fields'}"
        )
    return Query(
        id=str(example.get("query_id") or place),
        text=str(example["query"]),
        documents=as_documents(example["documents"]),
        relevance=tuple(example["relevance"]),
        inputs={name: value for name, value in example.items() if name not in OWN},
        ideal=tuple(example.get("ideal") or ()),
        split=str(example.get("split") or ""),
    )
