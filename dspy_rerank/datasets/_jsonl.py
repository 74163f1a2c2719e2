"""JSON Lines: one query a line, with its documents and their grades."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..types import Document
from ._dataset import Dataset
from ._labels import graded
from ._query import Grade, Query, above_zero
from ._values import (
    pick_inputs,
    read_document,
    read_grade,
    read_id,
    read_list,
    read_objects,
    read_query,
    shown,
)

GRADE_KEYS = ("relevance", "label")


@dataclass(frozen=True, slots=True)
class _Labels:
    """Grades of the candidates, and of judged documents that are not among them."""

    relevance: tuple[Grade, ...]
    ideal: tuple[float, ...] = ()
    judged: bool = False


def read_jsonl(path: str | Path, *, inputs: Sequence[str] = ()) -> Dataset:
    """Read one query a line.

    A line is ``{"query": ..., "documents": [...], "relevance": [...]}``, if need be with ``id``,
    ``split``, ``inputs`` (an object) and ``ideal`` (grades of documents that are not candidates).
    A document is its text or ``{"text", "id", "score"}``. Grades are a list along the documents,
    an object from document id to grade, or stand in the documents as ``relevance`` or ``label``.
    Instead of grades there may be ``preferences`` (pairs of a better and a worse document) or
    ``answer`` (the right document, or a list), by position from 0 or by id.

    Args:
        path: The file.
        inputs: Names of keys to take as further inputs of the judge.

    Raises:
        DataError: A line cannot be read.
    """
    return from_records(Path(path).stem, read_objects(path), inputs)


def from_records(
    name: str, records: Iterable[tuple[str, dict[str, Any]]], inputs: Sequence[str] = ()
) -> Dataset:
    """Read one query a record, each with the place where it stands."""
    placed: dict[str, tuple[str, Query]] = {}
    keys: dict[str, None] = {}
    for number, (where, record) in enumerate(records, start=1):
        query = _query(record, str(number), inputs, where)
        if query.id in placed:
            raise DataError(
                f"{where}: the id {query.id!r} is that of {placed[query.id][0]}, too; expected "
                "distinct ids (a line without one goes by its number)."
            )
        placed[query.id] = where, query
        keys.update(dict.fromkeys(record))
    return Dataset(name, tuple(query for _, query in placed.values()), tuple(keys))


def _query(record: dict[str, Any], number: str, inputs: Sequence[str], where: str) -> Query:
    """One line."""
    values = read_list(record, "documents", where)
    places = [f"{where}, document {n}" for n in range(1, len(values) + 1)]
    documents = tuple(map(read_document, values, places))
    labels = _labels(record, values, documents, where)
    given = record.get("inputs") or {}
    if not isinstance(given, dict):
        raise DataError(f"{where}: expected an object as 'inputs', got {shown(given)}.")
    return Query(
        id=read_id(record.get("id")) or number,
        text=read_query(record, where),
        documents=documents,
        relevance=labels.relevance,
        inputs=pick_inputs(given, tuple(given), where) | pick_inputs(record, inputs, where),
        ideal=labels.ideal + _ideal(record, where),
        split=str(record.get("split") or ""),
        judged=labels.judged,
    )


def _labels(
    record: dict[str, Any], values: list[Any], documents: tuple[Document, ...], where: str
) -> _Labels:
    """The grades, from wherever the line has them."""
    given = next((record[key] for key in GRADE_KEYS if record.get(key) is not None), None)
    inside = [_grade_inside(value) for value in values]
    if given is not None and any(grade is not None for grade in inside):
        raise DataError(f"{where}: expected grades in the line or in its documents, got both.")
    if given is None and all(grade is None for grade in inside):
        derived = graded(record, [document.id for document in documents], where)
        return _Labels(derived or (None,) * len(documents))
    if isinstance(given, Mapping):
        return _labels_by_id(given, documents, where)
    if given is not None and not isinstance(given, list):
        raise DataError(f"{where}: expected a list or object as grades, got {shown(given)}.")
    grades = inside if given is None else given
    if len(grades) != len(documents):
        raise DataError(
            f"{where}: expected a grade for each of {len(documents)} documents (null where nobody "
            f"has judged), got {len(grades)}."
        )
    return _Labels(tuple(read_grade(grade, where) for grade in grades))


def _labels_by_id(given: Mapping[str, Any], documents: tuple[Document, ...], where: str) -> _Labels:
    """Grades by document id; those of documents that are not candidates become ideal ones."""
    grades = {name: read_grade(grade, where) for name, grade in given.items()}
    names = [document.id for document in documents]
    if grades and None in names:
        raise DataError(f"{where}: expected an id in every document, as the grades are by id.")
    relevance = tuple(grades.get(str(name)) for name in names)
    beyond = above_zero(g for name, g in grades.items() if name not in names)
    return _Labels(relevance, beyond, any(grade is not None for grade in grades.values()))


def _grade_inside(value: Any) -> Any:
    """The grade that a document carries."""
    if not isinstance(value, dict):
        return None
    return next((value[key] for key in GRADE_KEYS if value.get(key) is not None), None)


def _ideal(record: dict[str, Any], where: str) -> tuple[float, ...]:
    """Grades of judged documents that are not candidates."""
    values = read_list(record, "ideal", where) if "ideal" in record else []
    return above_zero(read_grade(value, where) for value in values)
