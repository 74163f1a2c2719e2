"""Compiling rerankers from labels."""

from .examples import Labelled, judgment_examples
from .judge_compiler import JudgeCompiler
from .judge_metric import JudgeMetric
from .reanchor import ReAnchor
from .recipe import Recipe, read_recipe
from .report import write_report
from .search import RerankerSearch
from .trials import SearchProgress, Trial
from .variants import Variant, demo_sets
from .weight_compiler import WeightCompiler

__all__ = [
    "JudgeCompiler",
    "JudgeMetric",
    "Labelled",
    "ReAnchor",
    "Recipe",
    "RerankerSearch",
    "SearchProgress",
    "Trial",
    "Variant",
    "WeightCompiler",
    "demo_sets",
    "judgment_examples",
    "read_recipe",
    "write_report",
]
