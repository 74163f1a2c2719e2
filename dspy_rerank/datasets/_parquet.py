"""Parquet: one row a query with its documents, or one row a pair of query and document."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError
from ._csv import EXPECTED, TEXT_COLUMNS, check_columns, from_rows
from ._dataset import Dataset
from ._jsonl import from_records

AT_A_TIME = 64
"""Rows in memory; a row may hold a thousand passages."""


def read_parquet(path: str | Path, *, inputs: Sequence[str] = ()) -> Dataset:
    """Read a Parquet file whose columns are the keys of JSON Lines, or those of a table.

    Args:
        path: The file.
        inputs: Names of columns to take as further inputs of the judge.

    Raises:
        DataError: The file or a row cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
    source = Path(path)
    if is_nested(source):
        return from_records(source.stem, parquet_rows(source), inputs)
    check_columns(_file(source).schema_arrow.names, source)
    rows = ((where, {n: _cell(v) for n, v in row.items()}) for where, row in parquet_rows(source))
    return from_rows(source.stem, list(rows), inputs)


def is_nested(path: Path) -> bool:
    """Whether a row is a query with its documents.

    Raises:
        DataError: It is neither that nor a table of pairs.
    """
    columns = _file(path).schema_arrow.names
    if "query" in columns and "documents" in columns:
        return True
    if "query" not in columns or not any(name in columns for name in TEXT_COLUMNS):
        raise DataError(
            f"{path}: expected the columns query and documents, or {EXPECTED}; got {columns}."
        )
    return False


def parquet_rows(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows as values of Python, each with its place; a few are in memory at a time."""
    number = 0
    for batch in _file(Path(path)).iter_batches(batch_size=AT_A_TIME):
        for row in batch.to_pylist():
            number += 1
            yield f"{path}, row {number}", {n: v for n, v in row.items() if v is not None}


def parquet_count(path: str | Path) -> int:
    """How many rows there are."""
    return _file(Path(path)).metadata.num_rows


def _file(path: Path) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtraError(
            "Parquet needs pyarrow: pip install 'dspy-rerank[parquet]'"
        ) from None
    try:
        return ParquetFile(path)
    except (ArrowException, OSError) as error:
        raise DataError(f"{path}: expected a Parquet file: {error}") from None


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
