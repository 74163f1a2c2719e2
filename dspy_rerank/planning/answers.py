"""How long answers are, by what is asked for."""

from typing import Any

from ..judges.base import SignatureJudge
from ..reserving import ROOM
from .ranges import Range

SHORT = {"pointwise": Range(1, 8), "pairwise": Range(1, 8), "setwise": Range(1, 8)}
"""Tokens of a grade or a letter, with what an adapter may put around it."""
PLACE = Range(2, 6)
"""Tokens of one place in a written order, such as ``[12] >``."""


def answer_tokens(judge: Any, shown: float) -> Range:
    """Tokens of one answer about so many passages, from a model that does not think aloud.

    An answer that explains itself takes up to its limit, or `ROOM` tokens where it has none.
    """
    judge = next(iter(getattr(judge, "judges", ())), judge)  # of a panel all answer alike
    if not isinstance(judge, SignatureJudge):
        return Range()
    limit = judge.settings["max_tokens"] or judge.predict.config.get("max_tokens")
    if judge.settings["evidence"] in ("logprobs", "likelihood"):
        found = Range(1, 8)
    elif len(judge.signature.output_fields) > 1:
        found = Range(8, ROOM)
    else:
        found = SHORT.get(judge.kind, PLACE * max(1.0, shown))
    most = found.hi if limit is None else min(found.hi, float(limit))
    return Range(min(found.lo, most), most)
