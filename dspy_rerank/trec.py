"""TREC runs and qrels, read and written: the files that every evaluator of the field exchanges."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from .errors import DataError, InputError
from .types import Document

Qrels: TypeAlias = dict[str, dict[str, int]]
"""Grades by query id and document id."""

Run: TypeAlias = dict[str, list[tuple[str, float]]]
"""Ranked (document id, score) by query id, best first."""

Ranked: TypeAlias = str | tuple[str, float]
"""An entry of a ranking: a document id, alone or with its score."""

QRELS_COLUMNS = "query-id iteration document-id grade"
RUN_COLUMNS = "query-id Q0 document-id rank score tag"


def read_qrels(path: str | Path) -> Qrels:
    """Read relevance judgments: TREC's four columns, or BEIR's three below a header.

    Raises:
        DataError: A line cannot be read, or grades a document a second time differently.
    """
    qrels: Qrels = {}
    for number, line in numbered_lines(path):
        columns = line.split()
        if number == 1 and columns[0] == "query-id":
            continue
        where = f"{path}, line {number}"
        query_id, document_id, grade = _qrels_columns(columns, where)
        grades = qrels.setdefault(query_id, {})
        if grades.setdefault(document_id, grade) != grade:
            raise DataError(
                f"{where}: document {document_id!r} of query {query_id!r} has grade {grade}, but "
                f"grade {grades[document_id]} above; expected one grade a document."
            )
    return qrels


def read_run(path: str | Path) -> Run:
    """Read a run, ordered as trec_eval orders it: the rank column counts for nothing.

    The order is by score, highest first, compared in single precision; equal scores are ordered
    by document id, last in the alphabet first.

    Raises:
        DataError: A line cannot be read, or ranks a document a second time.
    """
    scores: dict[str, dict[str, float]] = {}
    for where, query_id, document_id, score in run_rows(path):
        ranked = scores.setdefault(query_id, {})
        if document_id in ranked:
            raise DataError(f"{where}: document {document_id!r} is ranked twice for {query_id!r}.")
        ranked[document_id] = score
    return {query_id: in_trec_order(ranked) for query_id, ranked in scores.items()}


def run_rows(path: str | Path) -> Iterator[tuple[str, str, str, float]]:
    """The rows of a run as they stand: place, query id, document id, score.

    Raises:
        DataError: A line cannot be read.
    """
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        yield where, *_run_columns(line.split(), where)


def in_trec_order(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Order scored documents as trec_eval does, which re-sorts every run that it is given."""
    return sorted(scores.items(), key=lambda item: (np.float32(item[1]), item[0]), reverse=True)


def write_qrels(path: str | Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write relevance judgments in TREC's four columns."""
    lines = (
        f"{_token(query_id)} 0 {_token(document_id)} {grade}\n"
        for query_id, grades in qrels.items()
        for document_id, grade in grades.items()
    )
    Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")


def write_run(
    path: str | Path, run: Mapping[str, Sequence[Ranked]], *, tag: str = "dspy-rerank"
) -> None:
    """Write rankings so that every evaluator reads back the order in which they are given.

    Scores are written as given where they fall strictly from rank to rank. Otherwise (no scores,
    ties, an order that contradicts them) ``n, n-1, ..., 1`` is written instead, because
    evaluators sort by score.
    """
    lines = (line for query_id, ranking in run.items() for line in _lines(query_id, ranking, tag))
    Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")


def run_line(
    query_id: str, document_id: str, rank: int, score: float, tag: str = "dspy-rerank"
) -> str:
    """One line of a run, without its end.

    Raises:
        DataError: An id or the tag is empty or holds white space, which the format cannot carry.
    """
    return f"{_token(query_id)} Q0 {_token(document_id)} {rank} {score!r} {_token(tag)}"


def check_names(query_id: str, documents: Sequence[Document]) -> None:
    """Find out before ranking whether a run can carry these documents and tell them apart.

    Raises:
        InputError: Two have one name.
        DataError: An id is empty or holds white space, which the format cannot carry.
    """
    _token(query_id)
    names(query_id, ((place, document.id) for place, document in enumerate(documents)))


def names(query_id: str, ids: Iterable[tuple[int, Any]]) -> list[str]:
    """What documents go by in a run; those without id by their position, from 0.

    Args:
        query_id: For the message.
        ids: Positions and ids, which may be ``None``.

    Raises:
        InputError: Two have one name.
        DataError: An id is empty or holds white space, which the format cannot carry.
    """
    places: dict[str, int] = {}
    for place, given in ids:
        name = _token(str(place) if given is None else str(given))
        first = places.setdefault(name, place)
        if first != place:
            one, other = sorted((first, place))
            raise InputError(
                f"query {query_id!r}: documents {one} and {other} (from 0) both go by the id "
                f"{name!r} in a TREC run, which cannot tell them apart; give each its own id, or "
                "write JSON Lines (.jsonl)"
            )
    return list(places)


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    r"""The lines of a UTF-8 file that hold anything, counted from 1, without their ends.

    Only ``\n`` and ``\r\n`` end a line, so other separators inside a passage are left alone. A
    byte order mark is dropped.

    Raises:
        DataError: The file is missing or is not UTF-8.
    """
    number = 0
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, after line {number}: expected UTF-8 text: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def _qrels_columns(columns: list[str], where: str) -> tuple[str, str, int]:
    """Query id, document id and grade."""
    if len(columns) not in (3, 4):
        raise _unexpected(columns, QRELS_COLUMNS, where)
    try:
        return columns[0], columns[-2], int(columns[-1])
    except ValueError:
        raise DataError(
            f"{where}: expected a whole number as grade, got {columns[-1]!r}."
        ) from None


def _run_columns(columns: list[str], where: str) -> tuple[str, str, float]:
    """Query id, document id and score."""
    if len(columns) != 6:
        raise _unexpected(columns, RUN_COLUMNS, where)
    try:
        score = float(columns[4])
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise DataError(f"{where}: expected a finite number as score, got {columns[4]!r}.")
    return columns[0], columns[2], score


def _unexpected(columns: list[str], expected: str, where: str) -> DataError:
    """The error for a line with the wrong number of columns."""
    came = " ".join(columns)[:120]
    return DataError(f"{where}: expected '{expected}', got {len(columns)} columns: {came!r}.")


def _lines(query_id: str, ranking: Sequence[Ranked], tag: str) -> Iterator[str]:
    """The lines of one ranking."""
    for rank, (entry, score) in enumerate(zip(ranking, _scores(ranking), strict=True), start=1):
        yield run_line(query_id, _document_id(entry), rank, score, tag) + "\n"


def _document_id(entry: Ranked) -> str:
    """The document id of an entry of a ranking."""
    return entry if isinstance(entry, str) else entry[0]


def _scores(ranking: Sequence[Ranked]) -> list[float]:
    """The scores of a ranking, if every evaluator will sort by them into this very order."""
    given = [float(entry[1]) for entry in ranking if not isinstance(entry, str)]
    single = np.asarray(given, dtype=np.float32)
    usable = len(given) == len(ranking) and np.isfinite(single).all()
    if usable and (np.diff(single) < 0).all():
        return given
    return [float(score) for score in range(len(ranking), 0, -1)]


def _token(value: str) -> str:
    """A value that fits between the blanks of a line."""
    if not value or value.split() != [value]:
        raise DataError(f"TREC files cannot carry {value!r}: expected an id without white space.")
    return value
