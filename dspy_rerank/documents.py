"""The public edge for documents: whatever the caller has becomes a tuple of Document."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .errors import DocumentTypeError, InputError
from .types import Document

TEXT_KEYS = ("text", "content", "passage", "contents", "page_content")
ID_KEYS = ("id", "docid", "doc_id", "_id")


def as_documents(
    documents: Iterable[Any], text: Callable[[Any], str] | None = None
) -> tuple[Document, ...]:
    """Read documents of any accepted form, keeping their number and order.

    Args:
        documents: Strings, mappings with a text, Documents, or any objects with ``text=``.
        text: Gets the text out of an object that is none of these.

    Raises:
        DocumentTypeError: One of them cannot be read; the message names its position.
    """
    if isinstance(documents, str | bytes | Mapping):
        raise DocumentTypeError(
            f"documents must be a list of documents, got one {type(documents).__name__}; "
            "put it into a list"
        )
    try:
        items = list(documents)
    except TypeError:
        raise DocumentTypeError(
            f"documents must be a list of documents, got {type(documents).__name__}"
        ) from None
    return tuple(_read(place, item, text) for place, item in enumerate(items))


def _read(place: int, item: Any, text: Callable[[Any], str] | None) -> Document:
    if text is not None and not isinstance(item, str | Document):
        return Document(_text(place, text(item)), source=item)
    if isinstance(item, Document):
        _text(place, item.text)
        return item
    if isinstance(item, str):
        return Document(item)
    if isinstance(item, Mapping):
        return _from_mapping(place, item)
    raise DocumentTypeError(
        f"documents[{place}] is {type(item).__name__} ({_short(item)}); expected str, dict with a "
        "text, or dspy_rerank.Document; for other objects pass text=, a function that returns "
        "the text"
    )


def _from_mapping(place: int, item: Mapping[str, Any]) -> Document:
    key = next((key for key in TEXT_KEYS if item.get(key) is not None), None)
    if key is None:
        came = sorted(f"{name} (null)" if item[name] is None else str(name) for name in item)
        raise DocumentTypeError(
            f"documents[{place}] is a mapping without a text: it has {', '.join(came) or 'no keys'}"
            f"; expected one of {', '.join(TEXT_KEYS)}"
        )
    found = next((item[k] for k in ID_KEYS if item.get(k) is not None), None)
    identifier = None if found is None else str(found)
    return Document(
        text=_text(place, item[key]),
        id=identifier,
        score=_score(place, item.get("score")),
        metadata=_metadata(item, key),
        source=item,
    )


def _metadata(item: Mapping[str, Any], text_key: str) -> dict[str, Any]:
    inner = item.get("metadata")
    taken = {text_key, "score", "metadata", *ID_KEYS}
    rest = {key: value for key, value in item.items() if key not in taken}
    return {**rest, **inner} if isinstance(inner, Mapping) else rest


def _text(place: int, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise DocumentTypeError(
        f"the text of documents[{place}] is {type(value).__name__} ({_short(value)}), expected str"
    )


def _score(place: int, value: Any) -> float | None:
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DocumentTypeError(
            f"the score of documents[{place}] is {_short(value)}, expected a number"
        ) from None


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def check_query(query: Any) -> str:
    """The query, or an error that says why it cannot be used."""
    if not isinstance(query, str):
        raise InputError(f"query is {type(query).__name__} ({_short(query)}), expected str")
    if not query.strip():
        raise InputError("query is blank; expected the text that the documents are ranked for")
    return query


def check_top_k(top_k: Any, n: int) -> int:
    """How many documents to return: ``None`` means all, more than there are means all."""
    if top_k is None:
        return n
    if isinstance(top_k, bool) or not isinstance(top_k, int):
        raise InputError(f"top_k is {_short(top_k)}, expected a whole number or None for all")
    if top_k < 0:
        raise InputError(f"top_k is {top_k}, expected 0 or more, or None for all")
    return min(top_k, n)
