"""Compiling rerankers from labels."""

from .examples import Labelled, judgment_examples
from .search import RerankerSearch
from .trials import SearchProgress, Trial
from .variants import Variant, demo_sets

__all__ = [
    "Labelled",
    "RerankerSearch",
    "SearchProgress",
    "Trial",
    "Variant",
    "demo_sets",
    "judgment_examples",
]
