"""The folder of results: Parquet files that are there as a whole or not at all.

``ranked`` has each query at most once and may be read by anything that reads Parquet, also while
a run goes on. ``failed`` has those without a good ranking, with the reason. A file goes by a
digest of the queries that it was made for, so work that is done again finds what is done.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError, InputError
from ...streaming.rows import RANKED
from ...streaming.safe import whole
from .._extras import needs

with needs("ray", "dspy_rerank.integrations.ray"):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import fs

GOOD, BAD = "ranked", "failed"
MARK = "_program"
COUNTS = (
    "calls", "cached_calls", "failed_calls", "rounds", "passages_read", "prompt_tokens",
    "completion_tokens", "cached_tokens",
)  # fmt: skip
PLACED = pa.struct(
    [("rank", pa.int32()), ("index", pa.int32()), ("id", pa.string()), ("score", pa.float64()),
     ("confidence", pa.float64())]
)  # fmt: skip
USED = pa.struct(
    [*((name, pa.int64()) for name in COUNTS), ("cost", pa.float64()), ("seconds", pa.float64()),
     ("cost_reason", pa.string())]
)  # fmt: skip
SCHEMA = pa.schema(
    [("id", pa.string()), ("key", pa.string()), ("status", pa.string()), ("query", pa.string()),
     ("n", pa.int32()), ("ranking", pa.list_(PLACED)), ("unknowns", pa.int32()),
     ("degraded", pa.bool_()), ("reasons", pa.list_(pa.string())), ("usage", USED)]
)  # fmt: skip
KEY = "S32"


class Parts:
    """Results of one program.

    Args:
        place: Of the folder: a path, or an address that pyarrow knows, such as ``s3://...``; on a
            cluster, one that every machine sees.
    """

    def __init__(self, place: str):
        self.local = "://" not in place
        self.place = os.path.abspath(place) if self.local else place  # workers are elsewhere
        self._fs, self._base = located(place)

    def make(self) -> None:
        """Make the folder, and take away what a kill has left half written."""
        for kind in (GOOD, BAD):
            self._fs.create_dir(f"{self._base}/{kind}", recursive=True)
            for path in self._files(kind, hidden=True):
                self._fs.delete_file(path)

    def claim(self, by: str) -> None:
        """Note whose results these are.

        Raises:
            InputError: They are another program's.
        """
        path = f"{self._base}/{MARK}"
        if self._fs.get_file_info(path).is_file:
            with self._fs.open_input_file(path) as file:
                found = file.read().decode().strip()
            if found != by:
                raise InputError(
                    f"{self.place}: holds results of another program, model or number of "
                    "documents to return; name another folder, or remove this one"
                )
            return
        with self._fs.open_output_stream(path) as stream:
            stream.write(by.encode())

    def next_run(self) -> str:
        """The number of a new run; parts of later runs come later in the order of names."""
        names = [*self._files(GOOD), *self._files(BAD)]
        return f"{max((int(_run(path)) for path in names), default=0) + 1:06d}"

    def write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep rows, each kind in a file of its own; they are safe when this returns.

        The good ones come last: where they are, all are.
        """
        good = [row for row in rows if row["status"] == RANKED]
        bad = [row for row in rows if row["status"] != RANKED]
        for kind, some in ((BAD, bad), (GOOD, good)):
            if some:
                self._put(f"{self._base}/{kind}/{name}.parquet", some)

    def found(self, name: str) -> list[dict[str, Any]]:
        """The rows that were written under a name before."""
        paths = [f"{self._base}/{kind}/{name}.parquet" for kind in (GOOD, BAD)]
        there = [info.path for info in self._fs.get_file_info(paths) if info.is_file]
        return [row for path in there for row in self._table(path).to_pylist()]

    def keys(self, kind: str) -> np.ndarray:
        """The keys of all queries of a kind, sorted; 32 bytes each."""
        found = [self._table(path, ["key"])["key"].to_numpy() for path in self._files(kind)]
        return np.unique(np.concatenate(found).astype(KEY)) if found else np.array([], KEY)

    def rows(self, kind: str) -> Iterator[dict[str, Any]]:
        """All rows of a kind; one file is in memory at a time."""
        for path in self._files(kind):
            yield from self._table(path).to_pylist()

    def settle(self, tried: str) -> None:
        """Forget failures of runs before ``tried`` that have been ranked or tried again since."""
        newer = [path for path in self._files(BAD) if _run(path) == tried]
        again = [self._table(path, ["key"])["key"].to_numpy() for path in newer]
        over = np.unique(np.concatenate([self.keys(GOOD), *(a.astype(KEY) for a in again)]))
        for path in self._files(BAD):
            if _run(path) != tried:
                self._without(path, over)

    def _without(self, path: str, over: np.ndarray) -> None:
        rows = self._table(path).to_pylist()
        kept = [row for row in rows if not has(over, row["key"])]
        if not kept:
            self._fs.delete_file(path)
        elif len(kept) < len(rows):
            self._put(path, kept)

    def _files(self, kind: str, hidden: bool = False) -> list[str]:
        found = self._fs.get_file_info(
            fs.FileSelector(f"{self._base}/{kind}", allow_not_found=True)
        )
        names = sorted(info.path for info in found if info.is_file)
        return [path for path in names if path.rpartition("/")[2].startswith(".") == hidden]

    def _table(self, path: str, columns: list[str] | None = None) -> Any:
        try:
            with self._fs.open_input_file(path) as file:
                return pq.ParquetFile(file).read(columns)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise DataError(f"{path}: expected results in Parquet: {error}") from None

    def _put(self, path: str, rows: Sequence[Mapping[str, Any]]) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(list(rows), SCHEMA), sink)
        data = sink.getvalue()
        if self.local:
            target = Path(path)
            with whole(target.with_name(f".{os.getpid()}-{target.name}"), target) as file:
                file.write(data)
        else:  # a store of objects, which shows none before it is whole
            with self._fs.open_output_stream(path) as stream:
                stream.write(data)


def located(place: str) -> tuple[Any, str]:
    """The file system of a path or an address, and the path on it.

    Raises:
        DataError: It cannot be opened.
    """
    if "://" not in place:
        return fs.LocalFileSystem(), os.path.abspath(place)
    try:
        found, base = fs.FileSystem.from_uri(place)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{place}: expected a place that pyarrow can open: {error}") from None
    return found, base.rstrip("/")


def _run(path: str) -> str:
    return path.rpartition("/")[2].partition("-")[0]


def has(keys: np.ndarray, key: str) -> bool:
    """Whether a key is among sorted ones."""
    wanted = np.array(key, KEY)
    place = int(np.searchsorted(keys, wanted))
    return place < len(keys) and bool(keys[place] == wanted)


def read_ranked(out: str | Path) -> Iterator[dict[str, Any]]:
    """The rows of all queries that have a ranking, a part of them in memory at a time."""
    return Parts(str(out)).rows(GOOD)


def read_failed(out: str | Path) -> Iterator[dict[str, Any]]:
    """The rows of all queries that have none, each once, with ``reasons``."""
    parts, done = Parts(str(out)), Parts(str(out)).keys(GOOD)
    last = {row["key"]: row for row in parts.rows(BAD)}
    return (row for key, row in last.items() if not has(done, key))


def named(run: str, keys: Iterable[str]) -> str:
    """The name of the part for some queries in a run."""
    return f"{run}-{hashlib.sha256(' '.join(keys).encode()).hexdigest()[:20]}"
