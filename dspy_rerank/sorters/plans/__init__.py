"""Pure sorting: plans that yield rounds of groups, receive judgments and return an order.

Nothing here knows a judge or a language model. Every plan is total: its order holds each position
once, whatever the judgments say, and ties and unknowns keep the incoming order.
"""

from .consensus import Fuse, consensus, consensus_shape, relabelled
from .heap import heap_shape, heap_sort
from .lockstep import Steps, lockstep
from .merge import merge_shape, merge_sort
from .pairs import all_pairs, all_pairs_shape
from .score import order_by_score, score_shape, score_sort
from .shape import Shape
from .simulate import Run, drive, fixed_shape, no_answer
from .sliding_pairs import prp_sliding, prp_sliding_shape
from .superiors import superiors
from .survivor import survivor, survivor_shape
from .tdpart import td_part, td_part_shape
from .topdown import top_down, top_down_pools, top_down_promise, top_down_shape
from .topdown_pairs import top_down_pairs, top_down_pairs_shape
from .topdown_sets import top_down_sets, top_down_sets_shape
from .tournament import tournament, tournament_shape
from .tourrank import tour_rank, tour_rank_shape
from .window import promised, sliding_window, window_shape

__all__ = [
    "Fuse",
    "Run",
    "Shape",
    "Steps",
    "all_pairs",
    "all_pairs_shape",
    "consensus",
    "consensus_shape",
    "drive",
    "fixed_shape",
    "heap_shape",
    "heap_sort",
    "lockstep",
    "merge_shape",
    "merge_sort",
    "no_answer",
    "order_by_score",
    "promised",
    "prp_sliding",
    "prp_sliding_shape",
    "relabelled",
    "score_shape",
    "score_sort",
    "sliding_window",
    "superiors",
    "survivor",
    "survivor_shape",
    "td_part",
    "td_part_shape",
    "top_down",
    "top_down_pairs",
    "top_down_pairs_shape",
    "top_down_pools",
    "top_down_promise",
    "top_down_sets",
    "top_down_sets_shape",
    "top_down_shape",
    "tour_rank",
    "tour_rank_shape",
    "tournament",
    "tournament_shape",
    "window_shape",
]
