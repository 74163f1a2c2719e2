"""JSON Lines: a query with its candidates a line."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...datasets._values import (
    pick_inputs,
    read_id,
    read_list,
    read_object,
    read_query,
    shown,
)
from ...errors import DataError
from ...trec import numbered_lines
from ..item import Item

BLOCK = 1 << 20


def of_file(path: Path, inputs: Sequence[str] = ()) -> Iterator[Item]:
    """The queries of a file; a line that cannot be read is an item with its problem."""
    return _items(numbered_lines(path), str(path), inputs)


def of_standard_input(inputs: Sequence[str] = ()) -> Iterator[Item]:
    """The queries that come on standard input, each as soon as it is there."""
    given = ((n, line) for n, line in enumerate(sys.stdin, start=1) if line.strip())
    return _items(given, "standard input", inputs)


def count(path: Path) -> int:
    """Lines of a file; blank ones count, too."""
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b""))


def _items(numbered: Iterable[tuple[int, str]], name: str, inputs: Sequence[str]) -> Iterator[Item]:
    for place, (number, line) in enumerate(numbered, start=1):
        where = f"{name}, line {number}"
        try:
            record = read_object(line, where)
        except DataError as problem:
            yield Item(str(place), None, problem=problem)
        else:
            yield item_of(record, str(place), where, inputs)


def item_of(record: Mapping[str, Any], number: str, where: str, inputs: Sequence[str] = ()) -> Item:
    """A record as a query to rank, or with the problem for which it cannot be."""
    try:
        return read_item(record, number, where, inputs)
    except DataError as problem:
        return Item(read_id(record.get("id")) or number, record.get("query"), problem=problem)


def read_item(
    record: Mapping[str, Any], number: str, where: str, inputs: Sequence[str] = ()
) -> Item:
    """A record as a query to rank; its labels, if it has any, are left aside.

    Raises:
        DataError: It has no query or documents, or inputs that cannot be read.
    """
    given = record.get("inputs") or {}
    if not isinstance(given, Mapping):
        raise DataError(f"{where}: expected an object as 'inputs', got {shown(given)}.")
    return Item(
        id=read_id(record.get("id")) or number,
        query=read_query(record, where),
        documents=read_list(record, "documents", where),
        inputs=pick_inputs(given, tuple(given), where) | pick_inputs(record, inputs, where),
        top_k=record.get("top_k"),
    )
