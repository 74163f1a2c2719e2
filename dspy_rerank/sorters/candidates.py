"""The sorting modules that :func:`choose_sorter` chooses from."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..types import Kind
from ._kinds import COMPARING
from .base import Reranker
from .comparing import AllPairs, HeapSort, MergeSort, PRPSliding, Survivor
from .fusing import Consensus
from .scoring import ScoreSort
from .topdown import TopDown
from .tournaments import Tournament, TourRank
from .windows import SlidingWindow, TDPart


class Candidate(NamedTuple):
    """A sorting module with its settings.

    Attributes:
        name: As it is written in code, without the judge.
        build: From a judge.
        kinds: Of judges for which it is a sensible choice.
    """

    name: str
    build: Callable[[Any], Reranker]
    kinds: tuple[Kind, ...] = ("listwise",)


CANDIDATES = (
    Candidate("ScoreSort()", ScoreSort, ("pointwise",)),
    Candidate("TopDown()", TopDown, COMPARING),
    Candidate("TopDown(rounds=2)", lambda j: TopDown(j, rounds=2)),
    Candidate("TopDown(finals=2)", lambda j: TopDown(j, finals=2)),
    Candidate("TopDown(finals=6, enough=0.8)", lambda j: TopDown(j, finals=6, enough=0.8)),
    Candidate("TopDown(rounds=4)", lambda j: TopDown(j, rounds=4), COMPARING),
    Candidate("TopDown(meetings=3)", lambda j: TopDown(j, meetings=3), ("setwise",)),
    Candidate("TopDown(window=10)", lambda j: TopDown(j, window=10), ("setwise",)),
    Candidate("TopDown(meetings=2)", lambda j: TopDown(j, meetings=2), ("pairwise",)),
    Candidate("TopDown(rounds=3, meetings=2)", lambda j: TopDown(j, rounds=3, meetings=2),
              ("pairwise",)),
    Candidate("Consensus(TopDown(), passes=3)", lambda j: Consensus(TopDown(j), passes=3)),
    Candidate("SlidingWindow()", SlidingWindow),
    Candidate("TourRank()", TourRank),
    Candidate("TourRank(rounds=2)", lambda j: TourRank(j, rounds=2)),
    Candidate("TDPart()", TDPart),
    Candidate("Tournament()", Tournament, COMPARING),
    Candidate("HeapSort()", HeapSort, ("setwise", "pairwise")),
    Candidate("HeapSort(children=3)", lambda j: HeapSort(j, children=3), ("setwise",)),
    Candidate("Survivor()", Survivor, ("setwise",)),
    Candidate("MergeSort()", MergeSort, ("pairwise",)),
    Candidate("PRPSliding()", PRPSliding, ("pairwise",)),
    Candidate("AllPairs()", AllPairs, ("pairwise",)),
)  # fmt: skip
