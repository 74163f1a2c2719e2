"""The picture of a replay: answers as columns, and what the order of neighbours rests on."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ranking import Ranked
from .canvas import BLUE, EDGE, GREY, INK, PALE, RED, Canvas, Picture, bare, styled
from .words import first, label

if TYPE_CHECKING:
    from .replay import Border, Replay, Step

ROW, FOOT, HEAD, LABELS, GRID, SIDE = 0.27, 0.5, 0.3, 3.2, 4.8, 1.8
"""Inches: a document, the scales below, the headings; widths of labels, answers and borders."""

COLUMNS = 120
"""The last so many answers are shown: they see the best documents."""

WRITTEN = 24
"""With more columns than this, cells hold no numbers."""


def replayed(replay: "Replay", most: int | None = 30) -> Picture:
    """Columns are answers in the order asked; the darker a cell, the higher it put the document.

    Beside, between each two neighbours: answers about both that are for this order (right) and
    against it (left); a ring where none tells them apart. Of pointwise answers: scores, and how
    far the next one is.
    """
    items = first(replay.ranking, most)
    with styled():
        rows = max(1, len(items))
        alarm = f"DEGRADED: {'; '.join(replay.ranking.reasons)}" if replay.ranking.degraded else ""
        notes = _notes(replay, items)
        width = 2 * EDGE + LABELS + GRID + 0.3 + SIDE
        canvas = Canvas(replay.ranking.query, notes, alarm, width=width,
                        height=HEAD + rows * ROW + FOOT)  # fmt: skip

        def place(left: float, wide: float) -> Any:
            axes = canvas.axes(EDGE + left, EDGE + FOOT, wide, rows * ROW)
            axes.set_ylim(rows + 0.5, 0.5)
            return axes

        _labels(place(0, LABELS), items)
        middle, side = place(LABELS, GRID), place(LABELS + GRID + 0.3, SIDE)
        borders = replay.borders[: max(0, len(items) - 1)]
        if not replay.steps:
            bare(middle)
            bare(side)
            middle.text(0, 1, "the judge gave no answers", va="center", color=GREY)
        elif replay.pointwise:
            _scores(middle, items, replay.steps)
            _gaps(side, borders)
        else:
            _grid(middle, items, shown(replay.steps, items))
            _votes(side, borders)
    return canvas.picture()


def shown(steps: Sequence["Step"], items: Sequence[Ranked]) -> list["Step"]:
    """The answers that concern any of the documents; of many, the last ones."""
    places = {item.index for item in items}
    return [step for step in steps if places & set(step.judgment.group)][-COLUMNS:]


def _notes(replay: "Replay", items: Sequence[Ranked]) -> list[str]:
    told = replay.summary().split("; DEGRADED")[0]
    about = [step for step in replay.steps if not replay.pointwise]
    kept = len(shown(about, items))
    which = f"{kept} of {len(about)} answers shown" if kept < len(about) else ""
    fewer = f"the first {len(items)} of {len(replay.ranking)} documents"
    return [told, "; ".join(filter(None, [fewer * (len(items) < len(replay.ranking)), which]))]


def _head(axes: Any, x: float, text: str, align: str = "left", colour: str = GREY) -> None:
    axes.annotate(
        text, (x, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
        ha=align, va="bottom", color=colour, annotation_clip=False,
    )  # fmt: skip


def _labels(axes: Any, items: Sequence[Ranked]) -> None:
    bare(axes)
    axes.set_xlim(0, 1)
    _head(axes, 0.09, "rank", "right")
    _head(axes, 0.12, "document")
    for item in items:
        axes.text(0.09, item.rank, f"{item.rank}", ha="right", va="center", color=INK)
        axes.text(0.12, item.rank, label(item, 38), va="center", color=INK, parse_math=False,
                  clip_on=True)  # fmt: skip
    if not items:
        axes.text(0.12, 1, "no documents", va="center", color=GREY)


def _grid(axes: Any, items: Sequence[Ranked], steps: Sequence["Step"]) -> None:
    rows = {item.index: item.rank for item in items}
    cells = [[math.nan] * len(steps) for _ in items]
    written = len(steps) <= WRITTEN
    for column, step in enumerate(steps):
        for index, value, text in _column(step):
            row = rows.get(index)
            if row is None:
                continue
            cells[row - 1][column] = value
            if written:
                ink = RED if text == "?" else "white" if value > 0.6 else INK
                axes.text(column + 1, row, text, ha="center", va="center", fontsize=7.5,
                          color=ink)  # fmt: skip
            elif text == "?":
                axes.plot([column + 1], [row], "x", color=RED, markersize=3)
    extent = (0.5, len(steps) + 0.5, len(items) + 0.5, 0.5)
    axes.imshow(cells, cmap="Blues", vmin=-0.15, vmax=1.1, aspect="auto", extent=extent,
                interpolation="nearest")  # fmt: skip
    _numbered(axes, steps)
    _head(axes, 0, "the darker, the higher put; number: place; ?: unknown" if written else
          "the darker, the higher put by the answer; x: unknown")  # fmt: skip


def _column(step: "Step") -> list[tuple[int, float, str]]:
    """Position, shade (1 is the best) and place of everything that an answer saw."""
    tiers = step.judgment.tiers
    if not tiers:
        return [(index, math.nan, "?") for index in step.judgment.group]
    last = len(tiers) - 1
    return [
        (index, 1 - number / last if last else 0.5, f"{number + 1}" if last else "=")
        for number, tier in enumerate(tiers)
        for index in tier
    ]


def _numbered(axes: Any, steps: Sequence["Step"]) -> None:
    every = max(1, math.ceil(len(steps) / 12))
    ticks = range(1, len(steps) + 1, every)
    axes.set_xticks(ticks, [f"{steps[tick - 1].number}" for tick in ticks])
    axes.set_yticks([])
    axes.set_xlabel("answer, in the order asked")


def _votes(axes: Any, borders: Sequence["Border"]) -> None:
    most = max((max(len(b.confirming), len(b.opposing)) for b in borders), default=0) or 1
    axes.set_xlim(-most * 1.25, most * 1.25)
    axes.axvline(0, color=GREY, linewidth=1)
    for border in borders:
        y = border.upper.rank + 0.5
        for numbers, sign, colour in ((border.confirming, 1, BLUE), (border.opposing, -1, RED)):
            if numbers:
                axes.barh(y, sign * len(numbers), 0.5, color=colour)
        if border.verdict == "inferred":
            axes.plot([0], [y], "o", markersize=5, markerfacecolor="white", markeredgecolor=GREY)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xticks([-most, 0, most], [f"{most}", "0", f"{most}"])
    axes.set_xlabel("answers about neighbours")
    _head(axes, 0.02, "against", "left", RED)
    _head(axes, 0.5, "○ none", "center")
    _head(axes, 0.98, "for", "right", BLUE)


def _scores(axes: Any, items: Sequence[Ranked], steps: Sequence["Step"]) -> None:
    """The judge's scores, and those that the ranking went by where they differ."""
    rows = {item.index: item.rank for item in items}
    said = [
        (step.judgment.score, rows[step.judgment.group[0]])
        for step in steps
        if step.judgment.score is not None and step.judgment.group[0] in rows
    ]
    final = [(item.score, item.rank) for item in items if item.score is not None]
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.plot([s for s, _ in said], [r for _, r in said], "o", markersize=7,
              markerfacecolor="none", markeredgecolor=RED, label="judge's score")  # fmt: skip
    axes.plot([s for s, _ in final], [r for _, r in final], "o", color=BLUE, markersize=4,
              label="score ranked by")  # fmt: skip
    unknown = [rows[s.judgment.group[0]] for s in steps if not s.judgment.known
               and s.judgment.group[0] in rows]  # fmt: skip
    for row in unknown:
        axes.text(0.01, row, "unknown", transform=axes.get_yaxis_transform(), va="center",
                  color=RED, fontsize=8)  # fmt: skip
    axes.set_yticks([item.rank for item in items], [])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("score")
    _head(axes, 0, "○ judge's score", "left", RED)
    _head(axes, 0.35, "● score ranked by", "left", BLUE)


def _gaps(axes: Any, borders: Sequence["Border"]) -> None:
    for border in borders:
        if border.gap is not None and math.isfinite(border.gap):
            axes.barh(border.upper.rank + 0.5, border.gap, 0.5, color=PALE, edgecolor=GREY)
    axes.set_xlim(left=0)
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=3)
    axes.set_xlabel("score ahead of the next")
