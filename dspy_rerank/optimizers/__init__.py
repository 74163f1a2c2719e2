"""Compiling rerankers from labels."""

from .examples import Labelled, judgment_examples
from .judge_compiler import JudgeCompiler
from .judge_metric import JudgeMetric
from .recipe import Recipe, read_recipe
from .report import write_report
from .search import RerankerSearch
from .trials import SearchProgress, Trial
from .variants import Variant, demo_sets

__all__ = [
    "JudgeCompiler",
    "JudgeMetric",
    "Labelled",
    "Recipe",
    "RerankerSearch",
    "SearchProgress",
    "Trial",
    "Variant",
    "demo_sets",
    "judgment_examples",
    "read_recipe",
    "write_report",
]
