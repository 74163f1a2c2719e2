"""Sorting modules: a judge and the algorithm that decides what to ask it."""

from .base import Reranker
from .choosing import Choice, choose_sorter
from .comparing import AllPairs, HeapSort, MergeSort, PRPSliding, Survivor
from .fusing import Consensus
from .scoring import ScoreSort
from .topdown import TopDown
from .tournaments import Tournament, TourRank
from .windows import SlidingWindow, TDPart

SORTERS = (
    ScoreSort,
    AllPairs,
    MergeSort,
    HeapSort,
    PRPSliding,
    SlidingWindow,
    TDPart,
    TopDown,
    TourRank,
    Tournament,
    Survivor,
    Consensus,
)
"""Every sorting module that a saved program may name."""

__all__ = [
    "SORTERS",
    "AllPairs",
    "Choice",
    "Consensus",
    "HeapSort",
    "MergeSort",
    "PRPSliding",
    "Reranker",
    "ScoreSort",
    "SlidingWindow",
    "Survivor",
    "TDPart",
    "TopDown",
    "TourRank",
    "Tournament",
    "choose_sorter",
]
