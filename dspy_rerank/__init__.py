"""LLM reranking as an optimizable program.

Judges answer questions about passages, sorting modules decide which questions to ask, and both
are compiled from labels.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .calibrating import calibrate, reliability
from .defaults import default_reranker, rerank
from .evaluation import Evaluation, evaluate
from .judges import (
    FunctionJudge,
    Judge,
    ListwiseJudge,
    PairwiseJudge,
    Panel,
    PointwiseJudge,
    SetwiseJudge,
)
from .options import Options
from .pairwise import PairwiseRanking, pairwise_rerank
from .program import load, save
from .ranking import Ranked, Ranking
from .self_certainty import self_certainty
from .sorters import (
    AllPairs,
    Choice,
    Consensus,
    HeapSort,
    MergeSort,
    PRPSliding,
    Reranker,
    ScoreSort,
    SlidingWindow,
    Survivor,
    TDPart,
    TopDown,
    Tournament,
    TourRank,
    choose_sorter,
)
from .types import Document, Estimate, Judgment, Span, Usage

if TYPE_CHECKING:
    from . import batch, datasets, models, optimizers, seeing, streaming, testing
    from .streaming import stream

__version__ = "0.1.0"

__all__ = [
    "AllPairs",
    "Choice",
    "Consensus",
    "Document",
    "Estimate",
    "Evaluation",
    "FunctionJudge",
    "HeapSort",
    "Judge",
    "Judgment",
    "ListwiseJudge",
    "MergeSort",
    "Options",
    "PRPSliding",
    "PairwiseJudge",
    "PairwiseRanking",
    "Panel",
    "PointwiseJudge",
    "Ranked",
    "Ranking",
    "Reranker",
    "ScoreSort",
    "SetwiseJudge",
    "SlidingWindow",
    "Span",
    "Survivor",
    "TDPart",
    "TopDown",
    "TourRank",
    "Tournament",
    "Usage",
    "batch",
    "calibrate",
    "choose_sorter",
    "datasets",
    "default_reranker",
    "evaluate",
    "load",
    "models",
    "optimizers",
    "pairwise_rerank",
    "reliability",
    "rerank",
    "save",
    "seeing",
    "self_certainty",
    "stream",
    "streaming",
    "testing",
]

_LAZY = frozenset({"batch", "datasets", "models", "optimizers", "seeing", "streaming", "testing"})


def __getattr__(name: str) -> Any:
    """Subpackages are loaded on first use: optimizers bring in optuna."""
    if name == "stream":
        return import_module(f"{__name__}.streaming").stream
    if name in _LAZY:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
