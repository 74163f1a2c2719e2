"""Judges: each answers one kind of question about a group of passages."""

from .function import FunctionJudge
from .listwise import ListwiseJudge
from .pairwise import PairwiseJudge
from .panel import Panel
from .pointwise import PointwiseJudge
from .protocol import Answer, Judge, Question
from .setwise import SetwiseJudge

__all__ = [
    "Answer",
    "FunctionJudge",
    "Judge",
    "ListwiseJudge",
    "PairwiseJudge",
    "Panel",
    "PointwiseJudge",
    "Question",
    "SetwiseJudge",
]
