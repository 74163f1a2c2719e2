"""Queries with their candidates, as Ray reads them: in pieces, by as many tasks as there are."""

import io
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import DataError, InputError
from .._extras import needs
from .parts import located

with needs("ray", "dspy_rerank.integrations.ray"):
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray
    from pyarrow import fs

LINE, WHERE = "__line__", "__where__"
"""Columns of queries that are still lines of JSON."""
SPAN = 4 << 20
"""Bytes of a file that a task reads, lines of JSON."""
ALL = 10_000
"""Spans of a data set, at most; then they are longer."""
AT_A_TIME = 256
"""Rows of Parquet that a task has in memory."""
LINES = frozenset({".jsonl", ".ndjson"})
PARQUET = frozenset({".parquet", ".pq"})


def dataset_of(source: Any) -> Any:
    """A Ray dataset with a row a query.

    Args:
        source: A Ray dataset; or a file or folder, by path or address, of Parquet with the columns
            ``query`` and ``documents``, or of JSON Lines with such keys.

    Raises:
        DataError: There is no such file, or its columns are others.
        InputError: Files of another kind.
    """
    if isinstance(source, ray.data.Dataset):
        return source
    name = str(source)
    files = _files(name)
    endings = {os.path.splitext(path)[1].lower() for path, _ in files}
    if endings <= PARQUET:
        return _read(read_groups, name, _groups(name, [path for path, _ in files]))
    if endings <= LINES:
        return _read(read_span, name, _spans(files))
    raise InputError(
        f"{name}: expected files that end in .parquet or in .jsonl, all alike; got "
        f"{', '.join(sorted(endings))}"
    )


def _read(by: Callable[..., Any], source: str, pieces: list[dict[str, Any]]) -> Any:
    if not pieces:
        raise DataError(f"{source}: there is nothing in it")
    listed = ray.data.from_items(pieces, override_num_blocks=len(pieces))
    return listed.map_batches(partial(by, source=source), batch_size=1, batch_format="pyarrow")


def _files(source: str) -> list[tuple[str, int]]:
    """Paths and sizes, without those that are hidden."""
    system, base = located(source)
    info = system.get_file_info(base)
    if info.type == fs.FileType.NotFound:
        raise DataError(f"{source}: there is no such file")
    if info.is_file:
        return [(base, info.size)]
    inside = system.get_file_info(fs.FileSelector(base, recursive=True))
    shown = [i for i in inside if i.is_file and not i.base_name.startswith((".", "_"))]
    if not shown:
        raise DataError(f"{source}: there are no files in it")
    return [(i.path, i.size) for i in sorted(shown, key=lambda i: i.path)]


def _groups(source: str, paths: list[str]) -> list[dict[str, Any]]:
    """The row groups of Parquet files."""
    system, _ = located(source)
    found = []
    for path in paths:
        try:
            file = pq.ParquetFile(path, filesystem=system)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path}: expected a Parquet file: {error}") from None
        columns = file.schema_arrow.names
        if not {"query", "documents"} <= set(columns):
            raise DataError(
                f"{path}: expected the columns query and documents, a row a query; got {columns}. "
                "Group a table of pairs by query first"
            )
        found += [{"path": path, "group": group} for group in range(file.num_row_groups)]
    return found


def read_groups(batch: Any, source: str) -> Iterator[Any]:
    """The rows of one row group, some at a time.

    Args:
        batch: A row with ``path`` and ``group``.
        source: As the user has named it, which says where files are.
    """
    (piece,) = batch.to_pylist()
    system, _ = located(source)
    file = pq.ParquetFile(piece["path"], filesystem=system)
    for rows in file.iter_batches(AT_A_TIME, row_groups=[piece["group"]]):
        yield pa.Table.from_batches([rows])


def _spans(files: list[tuple[str, int]]) -> list[dict[str, Any]]:
    step = max(SPAN, sum(size for _, size in files) // ALL)
    return [
        {"path": path, "begin": begin, "end": min(begin + step, size)}
        for path, size in files
        for begin in range(0, size, step)
    ]


def read_span(batch: Any, source: str) -> Any:
    """The lines that begin in a part of a file, each with its place.

    Args:
        batch: A row with ``path``, ``begin`` and ``end``.
        source: As the user has named it, which says where files are.
    """
    (span,) = batch.to_pylist()
    found = list(_lines(source, **span))
    name = Path(span["path"]).name
    return pa.table(
        {LINE: pa.array([line for _, line in found], pa.string()),
         WHERE: pa.array([f"{name}, byte {place}" for place, _ in found], pa.string())}
    )  # fmt: skip


def _lines(source: str, path: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    system, _ = located(source)
    with system.open_input_file(path) as raw, io.BufferedReader(raw) as file:
        place = max(begin - 1, 0)
        file.seek(place)
        if begin:  # what the part before has begun, if it is not over there
            place += len(file.readline())
        while place < end:
            line = file.readline()
            if not line:
                return
            if line.strip():
                yield place, line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
            place += len(line)
