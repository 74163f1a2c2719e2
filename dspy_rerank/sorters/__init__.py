"""Sorting modules: a judge and the algorithm that decides what to ask it."""

from .base import Reranker
from .modules import (
    AllPairs,
    Consensus,
    HeapSort,
    MergeSort,
    ScoreSort,
    SlidingWindow,
    Survivor,
    TopDown,
)

SORTERS = (ScoreSort, AllPairs, MergeSort, HeapSort, SlidingWindow, TopDown, Survivor, Consensus)
"""Every sorting module that a saved program may name."""

__all__ = [
    "SORTERS",
    "AllPairs",
    "Consensus",
    "HeapSort",
    "MergeSort",
    "Reranker",
    "ScoreSort",
    "SlidingWindow",
    "Survivor",
    "TopDown",
]
