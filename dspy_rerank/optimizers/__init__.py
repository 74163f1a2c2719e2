"""Compiling rerankers from labels."""

from .examples import Labelled, judgment_examples
from .judge_compiler import JudgeCompiler
from .judge_metric import JudgeMetric
from .plain import PlainRun, compile_plain
from .proving import Proven, compile_and_prove
from .reanchor import ReAnchor
from .recipe import Recipe, read_recipe
from .report import write_report
from .search import RerankerSearch
from .seeds import SeedRun
from .trials import SearchProgress, Trial
from .variants import Variant, demo_sets
from .weight_compiler import WeightCompiler

__all__ = [
    "JudgeCompiler",
    "JudgeMetric",
    "Labelled",
    "PlainRun",
    "Proven",
    "ReAnchor",
    "Recipe",
    "RerankerSearch",
    "SearchProgress",
    "SeedRun",
    "Trial",
    "Variant",
    "WeightCompiler",
    "compile_and_prove",
    "compile_plain",
    "demo_sets",
    "judgment_examples",
    "read_recipe",
    "write_report",
]
