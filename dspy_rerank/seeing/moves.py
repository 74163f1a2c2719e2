"""What a reranker moved, by how much, and how sure it was."""

import math
from collections.abc import Sequence
from typing import Any

from ..ranking import Ranked, Ranking
from ..shown import count
from .canvas import BLUE, EDGE, GREY, INK, PALE, RED, Canvas, Picture, bare, styled
from .words import first, label

ROW, FOOT, HEAD = 0.27, 0.42, 0.3
"""Inches: height of a document, of the scales below and of the headings above."""

SLOPES, LABELS, SCALE, GAP = 1.5, 4.5, 1.35, 0.25
"""Inches: widths of the parts and of the space between scales."""

SIGNS = 55


def moves(ranking: Ranking, most: int | None = 30) -> Picture:
    """One line a document, from where it came in to its new rank, with score and confidence.

    Scores and confidences have a scale only where any document has one. A document
    from below what is shown has a stub with its old position; one that falls out of it, a stub.

    Args:
        ranking: Any ranking.
        most: How many documents to show, best first; ``None`` is all.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    items = first(ranking, most)
    with styled():
        scales = [draw for draw, known in _SCALES if any(map(known, items))]
        width = 2 * EDGE + 0.45 + SLOPES + 0.3 + LABELS + len(scales) * (SCALE + GAP)
        foot = FOOT if scales else 0.0
        height = HEAD + (max(1, len(items)) + 0.6) * ROW + foot
        alarm = f"DEGRADED: {'; '.join(ranking.reasons)}" if ranking.degraded else ""
        canvas = Canvas(ranking.query, _notes(ranking, items), alarm, width=width, height=height)
        place = _places(canvas, items, foot)
        left = EDGE + 0.45
        _slopes(place(left, SLOPES), ranking, items)
        _labels(place(left + SLOPES + 0.3, LABELS), items)
        left += SLOPES + 0.3 + LABELS + GAP
        for number, draw in enumerate(scales):
            draw(place(left + number * (SCALE + GAP), SCALE), ranking, items)
    return canvas.picture()


def _notes(ranking: Ranking, items: Sequence[Ranked]) -> list[str]:
    moved = sum(item.rank != item.index + 1 for item in ranking)
    shown = f"the first {len(items)} of " if len(items) < len(ranking) else ""
    kept = f" of {ranking.n:,} that came in" if len(ranking) < ranking.n else ""
    parts = [f"{shown}{count(len(ranking), 'document')}{kept}", f"{moved} moved"]
    parts.append(count(ranking.usage.calls, "call"))
    if ranking.unknowns:
        parts.append(count(ranking.unknowns, "unknown answer"))
    if items and not any(map(_sure, items)):
        parts.append("confidence unknown")
    if items and not any(map(_scored, items)):
        parts.append("no scores")
    return ["; ".join(parts)]


def _places(canvas: Canvas, items: Sequence[Ranked], foot: float) -> Any:
    """Makes axes that share the rows of the documents."""
    rows = max(1, len(items))

    def place(left: float, width: float) -> Any:
        axes = canvas.axes(left, EDGE + foot, width, (rows + 0.6) * ROW)
        axes.set_ylim(rows + 1.1, 0.5)
        return axes

    return place


def _head(axes: Any, x: float, text: str, align: str = "center") -> None:
    axes.annotate(
        text, (x, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
        ha=align, va="bottom", color=GREY, annotation_clip=False,
    )  # fmt: skip


def _slopes(axes: Any, ranking: Ranking, items: Sequence[Ranked]) -> None:
    bare(axes)
    axes.set_xlim(0, 1)
    rows, came = len(items), {item.index + 1 for item in items}
    for was in range(1, min(rows, ranking.n) + 1):
        axes.text(-0.04, was, f"{was}", ha="right", va="center", color=GREY)
        if was not in came:
            axes.plot([0, 0.12], [was, was + 0.4], color=PALE, linewidth=1.6)
    for item in items:
        _slope(axes, item, item.index + 1, rows)
    _head(axes, -0.04, "was", "right")
    _head(axes, 1.06, "now", "left")


def _slope(axes: Any, item: Ranked, was: int, rows: int) -> None:
    """A line across, or a stub with the old position where that is not shown."""
    look = {"color": _colour(item), "linewidth": 1.6}
    if was <= rows:
        axes.plot([0, 1], [was, item.rank], **look)
    else:
        axes.plot([0.88, 1], [item.rank + 0.4, item.rank], **look)
        above = {"zorder": 4, "bbox": {"color": "white", "pad": 0.6}}
        axes.text(
            0.86, item.rank, f"{was}", ha="right", va="center", color=GREY, fontsize=8, **above
        )
    axes.plot([1], [item.rank], "o", color=_colour(item), markersize=4, clip_on=False)
    axes.text(1.06, item.rank, f"{item.rank}", ha="left", va="center", color=INK)


def _colour(item: Ranked) -> str:
    by = item.index + 1 - item.rank
    return BLUE if by > 0 else RED if by < 0 else GREY


def _labels(axes: Any, items: Sequence[Ranked]) -> None:
    bare(axes)
    axes.set_xlim(0, 1)
    _head(axes, 0.145, "moved", "right")
    _head(axes, 0.175, "document", "left")
    for item in items:
        by = item.index + 1 - item.rank
        arrow = "▲" if by > 0 else "▼" if by < 0 else "="
        text = f"{arrow} {abs(by)}" if by else arrow
        axes.text(0.145, item.rank, text, ha="right", va="center", color=_colour(item))
        axes.text(
            0.175, item.rank, label(item, SIGNS), va="center", color=INK, parse_math=False,
            clip_on=True,
        )  # fmt: skip
    if not items:
        axes.text(0.175, 1, "no documents", va="center", color=GREY)


def _scored(item: Ranked) -> bool:
    return item.score is not None and math.isfinite(item.score)


def _sure(item: Ranked) -> bool:
    return item.confidence is not None


def _scale(axes: Any, name: str) -> None:
    _head(axes, 0, name, "left")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=3)


def _scores(axes: Any, ranking: Ranking, items: Sequence[Ranked]) -> None:
    known = [item.score for item in items if _scored(item)]
    low, high = min(known), max(known)  # pyright: ignore[reportArgumentType]
    room = 0.08 * (high - low) or max(0.5, abs(high) * 0.1)
    axes.set_xlim(low - room, high + room)
    for item in items:
        if _scored(item):
            axes.hlines(item.rank, low - room, item.score, color=PALE, linewidth=2)
            axes.plot([item.score], [item.rank], "o", color=INK, markersize=4)
        else:
            axes.text(low - room, item.rank, "none", va="center", color=GREY, fontsize=8)
    _scale(axes, "score")


def _confidences(axes: Any, ranking: Ranking, items: Sequence[Ranked]) -> None:
    axes.set_xlim(0, 1)
    for item in items:
        if item.confidence is None:
            axes.text(0.02, item.rank, "unknown", va="center", color=GREY, fontsize=8)
        else:
            look = {"color": "white", "edgecolor": RED, "hatch": "////"}
            low = item.low_confidence
            axes.barh(item.rank, item.confidence, 0.6, **(look if low else {"color": BLUE}))
    least = ranking.confidence_threshold
    if least is not None:
        axes.axvline(least, color=RED, linewidth=1, linestyle="--")
    _scale(axes, "confidence" if least is None else f"confidence (low < {least:g})")
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])


_SCALES = ((_scores, _scored), (_confidences, _sure))
