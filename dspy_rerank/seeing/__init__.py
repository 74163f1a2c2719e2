"""Pictures of rankings, of compiling and of confidence: ``pip install 'dspy-rerank[plot]'``.

Every function gives a :class:`Picture`: notebooks show it, ``save`` writes SVG, PNG or PDF.
Colours can be told apart by everybody, and none carries a meaning alone. :func:`replay` needs no
extra until its picture is asked for.
"""

from .canvas import Picture
from .frontier import frontier
from .moves import moves
from .reliability import reliability
from .replay import Border, Replay, Step, replay
from .searching import learning, pareto

__all__ = [
    "Border",
    "Picture",
    "Replay",
    "Step",
    "frontier",
    "learning",
    "moves",
    "pareto",
    "reliability",
    "replay",
]
