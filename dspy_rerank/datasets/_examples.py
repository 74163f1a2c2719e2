"""DSPy examples as a data set: what people already have in a notebook."""

from collections.abc import Iterable
from typing import Any

from dspy_rerank.datasets._dataset import Dataset
from dspy_rerank.datasets._labels import KINDS, graded
from dspy_rerank.datasets._query import Query
from dspy_rerank.documents import as_documents
from dspy_rerank.errors import DataError

OWN = frozenset({"query", "documents", "relevance"})


def from_examples(examples: Iterable[Any], *, name: str = "examples") -> Dataset:
    """A data set of examples with ``query``, ``documents`` and ``relevance`` or other labels.

    Args:
        examples: `dspy.Example` objects or mappings; ``relevance`` has a grade (a number, or a
            truth value) a document. In its place there may be ``preferences``, pairs of a better
            and a worse document, or ``answer``, the right one: by position from 0 or by id.
            ``judged`` is true where other documents than these have been judged.
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
    labels = next((name for name in ("relevance", *KINDS) if name in example), "relevance")
    missing = [field for field in ("query", "documents", labels) if field not in example]
    if missing:
        raise DataError(
            f"example {place} has no {missing[0]!r}; it has {', '.join(example) or 'no fields'}"
        )
    documents = as_documents(example["documents"])
    names = [document.id for document in documents]
    grades = example.get("relevance")
    if labels != "relevance":
        grades = graded(example, names, f"example {place}") or [None] * len(documents)
    return Query(
        id=str(example.get("query_id") or place),
        text=str(example["query"]),
        documents=documents,
        relevance=tuple(grades or ()),
        inputs=_inputs(given, labels),
        ideal=tuple(example.get("ideal") or ()),
        split=str(example.get("split") or ""),
        judged=example.get("judged") is True,
    )


def _inputs(example: Any, labels: str) -> dict[str, Any]:
    try:
        named = dict(example.inputs())
    except (AttributeError, ValueError):  # a mapping, or an example without with_inputs
        return {}
    return {name: value for name, value in named.items() if name not in {*OWN, labels}}
