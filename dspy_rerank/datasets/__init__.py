"""Labelled data: load it from any usual format, look at it, split it, check it."""

from dspy_rerank.datasets._csv import read_csv
from dspy_rerank.datasets._dataset import Dataset
from dspy_rerank.datasets._dl19 import read_dl19
from dspy_rerank.datasets._jsonl import read_jsonl
from dspy_rerank.datasets._load import load
from dspy_rerank.datasets._noveleval import read_noveleval
from dspy_rerank.datasets._query import Grade, Query
from dspy_rerank.datasets._shipped import shipped_names
from dspy_rerank.datasets._trec import read_collection
from dspy_rerank.datasets.checks import Problem, check, overlap

__all__ = [
    "Dataset",
    "Grade",
    "Problem",
    "Query",
    "check",
    "load",
    "overlap",
    "read_collection",
    "read_csv",
    "read_dl19",
    "read_jsonl",
    "read_noveleval",
    "shipped_names",
]
