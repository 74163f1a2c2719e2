"""DSPy examples as a data set: what people already have in a notebook."""

from collections.abc import Iterable
from typing import Any

from dspy_rerank.datasets._dataset import Dataset
from dspy_rerank.datasets._query import Query
from dspy_rerank.documents import as_documents
from dspy_rerank.errors import DataError

OWN = frozenset({"query", "documents", "relevance"})


def from_examples(examples: Iterable[Any], *, name: str = "examples") -> Dataset:
    """A data set of examples with ``query``, ``documents`` and ``relevance``.

    Args:
        examples: `dspy.Example` objects or mappings; ``relevance`` has a grade a document.
            Further fields that ``with_inputs`` names are further inputs of the judge; others are
            labels and never reach it.
        name: For people.

    Raises:
        DataError: An example lacks one of the three; the message says which example.
    """
    if not isinstance(examples, Iterable) or isinstance(examples, str | bytes):
        raise DataError(f"expected labelled examples, got {type(examples).__name__}")
    return Dataset(name, tuple(_query(place, e) for place, e in enumerate(examples, 1)))


def _query(place: int, given: Any) -> Query:
    example = dict(given)
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
        inputs=_inputs(given),
        ideal=tuple(example.get("ideal") or ()),
        split=str(example.get("split") or ""),
    )


def _inputs(example: Any) -> dict[str, Any]:
    try:
        named = dict(example.inputs())
    except (AttributeError, ValueError):  # a mapping, or an example without with_inputs
        return {}
    return {name: value for name, value in named.items() if name not in OWN}
