"""Queries with their candidates, as Ray reads them: in pieces, by as many tasks as there are."""

import io
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import DataError, InputError
from .._extras import needs
from .parts import located

with needs("ray", "dspy_rerank.integrations.ray"):
    import pyarrow as pa
    import ray
    from pyarrow import fs

LINE, WHERE = "__line__", "__where__"
"""Columns of queries that are still lines of JSON."""
SPAN = 4 << 20
"""Bytes of a file that a task reads, lines of JSON."""
ALL = 10_000
"""Spans of a data set, at most; then they are longer."""
LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")


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
    files = _files(str(source))
    endings = {os.path.splitext(path)[1].lower() for path, _ in files}
    if endings <= set(PARQUET):
        return _checked(ray.data.read_parquet(str(source)), str(source))
    if endings <= set(LINES):
        return _of_lines(str(source), files)
    raise InputError(
        f"{source}: expected files that end in .parquet or in .jsonl, all alike; got "
        f"{', '.join(sorted(endings))}"
    )


def _checked(dataset: Any, name: str) -> Any:
    columns = dataset.schema().names
    if not {"query", "documents"} <= set(columns):
        raise DataError(
            f"{name}: expected the columns query and documents, a row a query; got {columns}. "
            "Group a table of pairs by query first"
        )
    return dataset


def _files(source: str) -> list[tuple[str, int]]:
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


def _of_lines(source: str, files: list[tuple[str, int]]) -> Any:
    step = max(SPAN, sum(size for _, size in files) // ALL)
    spans = [
        {"path": path, "begin": begin, "end": min(begin + step, size)}
        for path, size in files
        for begin in range(0, size, step)
    ]
    if not spans:
        raise DataError(f"{source}: there is no line in it")
    listed = ray.data.from_items(spans, override_num_blocks=len(spans))
    read = partial(read_span, source=source)
    return listed.map_batches(read, batch_size=1, batch_format="pyarrow")


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
                yield place, line.decode("utf-8", "replace").removeprefix("\ufeff")
            place += len(line)
