"""CSV and TSV tables: one row a pair of query and document, grouped by query."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import DataError
from ..types import Document
from ._clicks import from_clicks
from ._dataset import Dataset
from ._query import Query
from ._values import pick_inputs, read_grade, read_id, read_number, read_query

Row = Mapping[str, str]
Placed = tuple[str, Row]
"""A row with the place where it stands."""

TEXT_COLUMNS = ("document", "text")
GRADE_COLUMNS = ("relevance", "label")
CLICK_COLUMNS = ("click", "position", "propensity")
EXPECTED = (
    "query, document (or text), relevance (or label); optional id, score, query_id, split; "
    "a click log has click, position and propensity instead of relevance"
)


def read_csv(path: str | Path, *, inputs: Sequence[str] = ()) -> Dataset:
    """Read a table with a header; rows of one query need not stand together.

    Columns are ``query``, ``document`` or ``text``, ``relevance`` or ``label``, and if need be
    ``id`` (of the document), ``score``, ``query_id`` and ``split``. Rows belong to one query when
    they have the same ``query_id``, or the same query where there is no such column. A blank grade
    means that nobody has judged. A click log has ``click``, ``position`` and ``propensity`` in
    place of grades, one row a result shown; see :func:`from_clicks`. A file that ends in ``.tsv``
    is separated by tabs.

    Args:
        path: The file.
        inputs: Names of columns to take as further inputs of the judge.

    Raises:
        DataError: A column is missing, a row cannot be read, or rows contradict each other.
    """
    return from_rows(Path(path).stem, list(table_rows(Path(path))), inputs)


def from_rows(name: str, rows: Sequence[Placed], inputs: Sequence[str] = ()) -> Dataset:
    """Put the rows of a table together by query."""
    groups: dict[str, list[Placed]] = {}
    if rows and set(CLICK_COLUMNS) <= rows[0][1].keys() and not _has(rows[0][1], GRADE_COLUMNS):
        return from_clicks((_shown_row(row) for _, row in rows), name=name)
    for where, row in rows:
        groups.setdefault(row.get("query_id") or row["query"], []).append((where, row))
    numbered = enumerate(groups.values(), start=1)
    queries = (_query(rows, str(number), inputs) for number, rows in numbered)
    return Dataset(name, tuple(queries))


def table_rows(path: Path, *, labelled: bool = True) -> Iterator[Placed]:
    """The rows, one after the other, once the columns are found to be there."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter, strict=True)
            check_columns(reader.fieldnames or (), path, labelled)
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                yield where, _complete(row, where)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected a table in UTF-8 with {EXPECTED}: {error}") from error


def check_columns(columns: Sequence[str], path: Path, labelled: bool = True) -> None:
    """Raise unless the header has what is needed."""
    needed = (("query",), TEXT_COLUMNS, *([GRADE_COLUMNS] if labelled else []))
    clicks = set(CLICK_COLUMNS) <= set(columns)
    if not all(_has(columns, names) or (names is GRADE_COLUMNS and clicks) for names in needed):
        raise DataError(f"{path}, line 1: expected the columns {EXPECTED}; got {list(columns)}.")


def _has(columns: Iterable[str], names: Sequence[str]) -> bool:
    """Whether there is one of these columns."""
    return any(name in columns for name in names)


def _shown_row(row: Row) -> dict[str, object]:
    """A row of a click log."""
    document = {"text": _first(row, TEXT_COLUMNS), "id": row.get("id")}
    return {"query": row["query"], "document": document, **{c: row[c] for c in CLICK_COLUMNS}}


def _complete(row: dict[str, str], where: str) -> Row:
    """The row, if it has a cell for every column and no more."""
    if None in row or None in row.values():
        raise DataError(f"{where}: expected a cell for each of {[c for c in row if c]}.")
    return row


def _query(rows: Sequence[Placed], number: str, inputs: Sequence[str]) -> Query:
    """The rows of one query."""
    where, first = rows[0]
    same = ("query", "split", *inputs)
    for place, row in rows:
        differing = [column for column in same if row.get(column) != first.get(column)]
        if differing:
            raise DataError(f"{place}: {differing} differ from those of the query at {where}.")
    return Query(
        id=first.get("query_id") or number,
        text=read_query(first, where),
        documents=tuple(_document(row, place) for place, row in rows),
        relevance=tuple(read_grade(_first(row, GRADE_COLUMNS), place) for place, row in rows),
        inputs=pick_inputs(first, inputs, where),
        split=first.get("split", ""),
    )


def _document(row: Row, where: str) -> Document:
    """The document of a row."""
    score = read_number(row.get("score"), where)
    return Document(_first(row, TEXT_COLUMNS), id=read_id(row.get("id")), score=score)


def _first(row: Row, names: Sequence[str]) -> str:
    """The cell of the first of these columns that there is."""
    return next(row[name] for name in names if name in row)
