"""Reliability diagrams: what a judge claims against how often it is right."""

from collections.abc import Mapping
from typing import Any

from ..calibration import Reliability
from ..errors import InputError
from ..shown import count
from .canvas import BLUE, EDGE, GREY, PALE, RED, Canvas, Picture, styled
from .words import clean

SIDE, COUNTS, GAP = 2.7, 0.6, 0.75
"""Inches: the diagram's side, height of the counts below it, space between diagrams."""


def reliability(
    found: Reliability | Mapping[str, Reliability], title: str = "Confidence against truth"
) -> Picture:
    """One diagram each, side by side: bars as high as the answers in them were right.

    Bars on the diagonal are calibrated; above it the judge is better than it says, below worse.
    Dots are the mean confidence of a bar. Below: how many answers each bar holds.

    Args:
        found: From :func:`dspy_rerank.reliability`; several by name.
        title: Above the picture.

    Raises:
        InputError: There is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    named = {"": found} if isinstance(found, Reliability) else dict(found)
    if not named:
        raise InputError("there are no reliabilities to draw")
    with styled():
        step = SIDE + GAP
        width = 2 * EDGE + len(named) * step
        height = SIDE + COUNTS + 1.35
        canvas = Canvas(title, ["bars: share right; dots: mean confidence"], width=width,
                        height=height)  # fmt: skip
        for place, (name, each) in enumerate(named.items()):
            left, bottom = EDGE + 0.55 + place * step, EDGE + 0.45
            below = canvas.axes(left, bottom, SIDE, COUNTS)
            _counts(below, each)
            _diagram(canvas.axes(left, bottom + COUNTS + 0.15, SIDE, SIDE), name, each)
            if not place:
                below.set_ylabel("answers")
    return canvas.picture()


def _diagram(axes: Any, name: str, found: Reliability) -> None:
    for bar in found.bins:
        middle, wide = (bar.low + bar.high) / 2, bar.high - bar.low
        axes.bar(middle, bar.accuracy, wide * 0.94, color="#9ecae9", edgecolor=BLUE)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    across, up = [bar.confidence for bar in found.bins], [bar.accuracy for bar in found.bins]
    axes.plot(across, up, "o", color=RED, markersize=4, clip_on=False, zorder=5)
    axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="share right")
    axes.set_xticks([0, 0.5, 1], [])
    figures = f"{count(found.answers, 'answer')}, {found.accuracy:.0%} right\n"
    figures += f"ECE {found.ece:.3f}, Brier {found.brier:.3f}"
    axes.set_title(
        f"{clean(name, 34)}\n{figures}".lstrip(), loc="left", fontsize=9, parse_math=False
    )


def _counts(axes: Any, found: Reliability) -> None:
    for bar in found.bins:
        wide = (bar.high - bar.low) * 0.94
        axes.bar((bar.low + bar.high) / 2, bar.answers, wide, color=PALE, edgecolor=GREY)
    axes.set(xlim=(0, 1), xlabel="confidence")
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    most = max(bar.answers for bar in found.bins)
    axes.set_yticks([0, most], ["0", f"{most:,}"])
