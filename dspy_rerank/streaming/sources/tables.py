"""CSV and Parquet: a row a query with its documents, or a row a pair of query and document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ...datasets._csv import TEXT_COLUMNS, table_rows
from ...datasets._parquet import parquet_rows
from ...datasets._values import pick_inputs, read_id, read_number, read_query
from ...errors import DataError
from ...types import Document
from ..index import Index, Known
from ..item import Item
from .lines import item_of

Row = Mapping[str, Any]
Placed = tuple[str, Row]


def of_csv(path: Path, inputs: Sequence[str] = ()) -> Iterator[Item]:
    """The queries of a table with the columns query and document (or text)."""
    return _grouped(table_rows(path, labelled=False), inputs)


def of_parquet(path: Path, inputs: Sequence[str] = ()) -> Iterator[Item]:
    """The queries of a Parquet file with the columns of a table."""
    return _grouped(parquet_rows(path), inputs)


def of_nested_parquet(path: Path, inputs: Sequence[str] = ()) -> Iterator[Item]:
    """The queries of a Parquet file with the columns query and documents."""
    for number, (where, row) in enumerate(parquet_rows(path), start=1):
        yield item_of(row, str(number), where, inputs)


def _grouped(rows: Iterable[Placed], inputs: Sequence[str]) -> Iterator[Item]:
    seen = Index()
    try:
        for number, (name, group) in enumerate(groupby(rows, key=_name), start=1):
            placed = list(group)
            if seen.get(name) is not None:
                raise DataError(
                    f"{placed[0][0]}: rows of the query {name!r} stand further up, too; expected "
                    "all rows of a query together: sort the table by query"
                )
            seen.put(name, Known("", "", 0))
            yield _item(placed, str(number), inputs)
    finally:
        seen.close()


def _name(placed: Placed) -> str:
    return str(placed[1].get("query_id") or placed[1].get("query"))


def _item(placed: Sequence[Placed], number: str, inputs: Sequence[str]) -> Item:
    where, first = placed[0]
    name = read_id(first.get("query_id")) or number
    try:
        documents = tuple(_document(row, place) for place, row in placed)
        query = read_query(first, where)
        return Item(name, query, documents, pick_inputs(first, inputs, where))
    except DataError as problem:
        return Item(name, first.get("query"), problem=problem)


def _document(row: Row, where: str) -> Document:
    text = next((row[column] for column in TEXT_COLUMNS if column in row), None)
    if not isinstance(text, str):
        raise DataError(f"{where}: expected a text as document, got {type(text).__name__}")
    return Document(text, id=read_id(row.get("id")), score=read_number(row.get("score"), where))
