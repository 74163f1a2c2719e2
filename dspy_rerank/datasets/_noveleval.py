"""NovelEval: 21 questions about events of 2023, each with 20 passages that are all judged."""

import json
from pathlib import Path

from ..errors import DataError
from ._dataset import Dataset
from ._hits import read_hits

FILES = ("data.json", "qrels.txt")


def is_noveleval(folder: Path) -> bool:
    """Whether a folder holds a set in the layout of NovelEval."""
    return all((folder / name).is_file() for name in FILES)


def read_noveleval(folder: str | Path) -> Dataset:
    """Read ``data.json`` (a list of queries with hits) and ``qrels.txt``."""
    data, qrels = (Path(folder) / name for name in FILES)
    try:
        records = json.loads(data.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{data}: expected a list of queries with hits: {error}") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{data}: expected a list of objects with 'query' and 'hits'.")
    placed = ((f"{data}, query {n}", record) for n, record in enumerate(records, start=1))
    return read_hits(Path(folder).name, placed, qrels)
