"""Loose values from files, read as documents, grades and further inputs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..trec import numbered_lines
from ..types import Document
from ._query import Grade

RESERVED = frozenset({"query", "documents", "relevance", "ideal", "query_id"})
"""Names in an example that no further input may take."""

_WORDS = {"true": 1, "false": 0, "": None}


def read_objects(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON objects of a JSON Lines file, each with the place where it stands."""
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        yield where, read_object(line, where)


def read_object(line: str, where: str) -> dict[str, Any]:
    """One JSON object."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        said = json_problem(error)
        raise DataError(f"{where}: expected a JSON object, but {said}.") from error
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object, got {shown(value)}.")
    return value


def json_problem(error: json.JSONDecodeError) -> str:
    """What is wrong with a line of JSON, and where in it; which line it is the caller knows."""
    return f"{error.msg} at column {error.colno}"


def read_query(record: Mapping[str, Any], where: str) -> str:
    """The text of a query, which is not blank."""
    text = read_text(record, "query", where)
    if not text.strip():
        raise DataError(f"{where}: the query is blank; expected a text to rank documents for.")
    return text


def read_text(record: Mapping[str, Any], key: str, where: str) -> str:
    """A text that has to be there."""
    value = record.get(key)
    if not isinstance(value, str):
        came = shown(value) if key in record else f"only {', '.join(record) or 'nothing'}"
        raise DataError(f"{where}: expected a text as {key!r}, got {came}.")
    return value


def read_list(record: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """A list that has to be there."""
    value = record.get(key)
    if not isinstance(value, list):
        came = shown(value) if key in record else f"only {', '.join(record) or 'nothing'}"
        raise DataError(f"{where}: expected a list as {key!r}, got {came}.")
    return value


def read_document(value: Any, where: str) -> Document:
    """A document given as its text, or as an object with ``text``, ``id`` and ``score``."""
    if isinstance(value, str):
        return Document(value)
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a text or an object, got {shown(value)}.")
    return Document(
        text=read_text(value, "text", where),
        id=read_id(value.get("id")),
        score=read_number(value.get("score"), where),
        metadata=value.get("metadata") or {},
    )


def read_id(value: Any) -> str | None:
    """An id as text, because sources also write numbers."""
    return None if value is None or value == "" else str(value)


def read_grade(value: Any, where: str) -> Grade:
    """A grade given as a number, a truth value, their text, or blank for unjudged."""
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    number = read_number(value, where)
    return int(number) if number is not None and number.is_integer() else number


def read_number(value: Any, where: str) -> float | None:
    """A number, or nothing."""
    if value is None or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where}: expected a number, got {shown(value)}.") from None


def pick_inputs(record: Mapping[str, Any], names: Sequence[str], where: str) -> dict[str, Any]:
    """The further inputs that are asked for by name."""
    taken = RESERVED.intersection(names)
    if taken:
        raise DataError(f"{where}: {sorted(taken)} cannot be further inputs; rename them.")
    missing = [name for name in names if name not in record]
    if missing:
        raise DataError(f"{where}: expected the inputs {list(names)}, got none of {missing}.")
    return {name: record[name] for name in names}


def shown(value: Any) -> str:
    """A value as it may stand in a message."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
