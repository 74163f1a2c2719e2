"""Labelled data: load it from any usual format, look at it, split it, check it."""

from ._clicks import from_clicks
from ._csv import read_csv
from ._dataset import Dataset
from ._dl19 import read_dl19
from ._examples import from_examples
from ._jsonl import read_jsonl
from ._load import load
from ._noveleval import read_noveleval
from ._query import Grade, Query
from ._shipped import shipped_names
from ._trec import read_collection
from .checks import Problem, check, overlap

__all__ = [
    "Dataset",
    "Grade",
    "Problem",
    "Query",
    "check",
    "from_clicks",
    "from_examples",
    "load",
    "overlap",
    "read_collection",
    "read_csv",
    "read_dl19",
    "read_jsonl",
    "read_noveleval",
    "shipped_names",
]
