"""The file of results: a line a query, each safe on disk before it counts as done.

A line that was cut off in the middle, by a kill or a power cut, was never reported; it is taken
off when the file is opened again. Of several lines with one id the last one counts.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

import orjson

from ..datasets._values import json_problem
from ..errors import DataError, InputError
from .index import Index, Known
from .rows import run_lines
from .safe import lock, repair, sync_folder, whole


class Journal:
    """Results of one program on one file; used by one thread, and one process at a time.

    Args:
        path: Of the file; made where it is not there.
        by: The program, model and settings that the rows come from.

    Attributes:
        cost: US dollars that its rows have cost together, so far as known.

    Raises:
        InputError: Another process writes to it, or its rows come from another program.
        DataError: A line is not one of ours.
    """

    def __init__(self, path: str | Path, by: str):
        self.path, self._by = Path(path), by
        self.cost, self._superseded = 0.0, 0
        self._index = Index()
        self._file = self._opened()
        try:
            repair(self._file)
            self._scan()
        except BaseException:
            self.close()
            raise

    def _opened(self) -> IO[bytes]:
        file = open(self.path, "a+b", buffering=0)
        try:
            lock(file, self.path)
        except BaseException:
            file.close()
            raise
        sync_folder(self.path)
        return file

    def _scan(self) -> None:
        for place, row in _rows(self.path):
            if row.get("by") != self._by:
                raise InputError(
                    f"{self.path}: holds results of another program, model or number of "
                    "documents to return; name another file, or remove this one"
                )
            self._count(place, row)

    def _count(self, place: int, row: Mapping[str, Any], seen: bool = False) -> None:
        before = self._index.get(row["id"])
        if before is not None and before.place >= 0:
            self._superseded += 1
        self._index.put(row["id"], Known(row["key"], row["status"], place, seen))
        self.cost += (row.get("usage") or {}).get("cost") or 0.0

    def known(self, name: str) -> Known | None:
        """The last row of an id, or that the input has had it."""
        return self._index.get(name)

    def see(self, name: str, key: str) -> None:
        """Note that the input has an id in this run, with which content."""
        before = self._index.get(name) or Known(key, "", -1)
        self._index.put(name, before._replace(key=key, seen=True))

    def append(self, row: Mapping[str, Any], key: str) -> None:
        """Write a row; it is safe on disk when this returns."""
        whole = {"id": row["id"], "key": key, "by": self._by, **row}
        place = self._file.seek(0, os.SEEK_END)
        line = memoryview(orjson.dumps(whole, default=str) + b"\n")
        while line:
            line = line[self._file.write(line) :]
        os.fsync(self._file.fileno())
        self._count(place, whole, seen=True)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The last row of each id, in the order of the file."""
        return _last(self._index, self.path)

    def compact(self) -> None:
        """Take out rows that were replaced by later ones."""
        if not self._superseded:
            return
        part = self.path.with_name(self.path.name + ".part")
        with whole(part, self.path) as file:
            for row in self.rows():
                file.write(orjson.dumps(row) + b"\n")
        self._superseded = 0

    def export(self, path: str | Path) -> None:
        """Write a TREC run of all rows that have a ranking."""
        target = Path(path)
        with whole(target.with_name(target.name + ".part"), target) as file:
            for row in self.rows():
                file.write(run_lines(row).encode())

    def close(self) -> None:
        """Close the file and let others have it."""
        self._file.close()
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_results(path: str | Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of results, of each id the last one, in the order of the file.

    Raises:
        DataError: A line is not one of ours.
    """
    index = Index()
    try:
        for place, row in _rows(Path(path)):
            index.put(str(row["id"]), Known("", "", place))
        yield from _last(index, Path(path))
    finally:
        index.close()


def _last(index: Index, path: Path) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        for place in index.places():
            file.seek(place)
            yield orjson.loads(file.readline())


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    place = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            yield place, _row(line, f"{path}, line {number}")
            place += len(line)


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        said = json_problem(error)
        raise DataError(f"{where}: expected a row of results in JSON, but {said}") from None
    if not isinstance(row, dict) or not {"id", "status"} <= row.keys():
        raise DataError(
            f"{where}: expected a row with id and status, as dspy-rerank rerank --out writes it; "
            "name another file for the results"
        )
    return row
