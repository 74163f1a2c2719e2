"""TREC Deep Learning 2019, passages: BM25's first 100 with their text, and the full judgments."""

from pathlib import Path

from ._dataset import Dataset
from ._hits import read_hits
from ._values import read_objects

HITS = "bm25_dl19_top100.jsonl"
QRELS = "id_rating_19.txt"


def is_dl19(folder: Path) -> bool:
    """Whether a folder holds the two files."""
    return all((folder / name).is_file() for name in (HITS, QRELS))


def read_dl19(folder: str | Path) -> Dataset:
    """Read the two files; passages that BM25 missed count in the ideal ranking."""
    root = Path(folder)
    return read_hits(root.name, read_objects(root / HITS), root / QRELS)
