"""Quality against cost, and the points that nothing cheaper beats."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InputError
from .canvas import BLUE, EDGE, GREY, INK, PALE, RED, Canvas, Picture, bare, styled
from .words import clean

Point = tuple[float, float]

NAMED = 16
"""More points than this are numbered only where they are on the front or chosen."""

PLOT, HIGH, LIST, ROW = 4.6, 3.3, 3.5, 0.22
"""Inches: the plot, its height, the list beside it and a line of that."""

SIGNS = 38


def frontier(
    points: Mapping[str, Point],
    *,
    x: str,
    y: str,
    title: str = "Quality against cost",
    chosen: str | None = None,
) -> Picture:
    """Named points, the line of those that no cheaper one matches, and one that was chosen.

    Args:
        points: Cost and quality by name; at least one, all finite. Costs that span more than a
            factor of thirty are drawn on a logarithmic scale.
        x: What the cost is.
        y: What the quality is; higher is better.
        title: Above the picture.
        chosen: Name of the point to mark.

    Raises:
        InputError: There are no points, one is not finite, or ``chosen`` is not among them.
        MissingExtraError: matplotlib is not installed.
    """
    _check(points, chosen)
    names = list(points)
    best = front([points[name] for name in names])
    listed = [i for i, name in enumerate(names) if _listed(i, name, len(names), best, chosen)]
    listed.sort(key=lambda i: points[names[i]])
    with styled():
        height = max(HIGH, len(listed) * ROW)
        canvas = Canvas(title, width=2 * EDGE + 0.6 + PLOT + 0.2 + LIST, height=height + 0.75)
        axes = canvas.axes(EDGE + 0.6, EDGE + 0.5, PLOT, height)
        _dots(axes, [points[name] for name in names], best, None if chosen is None
              else names.index(chosen))  # fmt: skip
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        _numbers(canvas, axes, [points[names[i]] for i in listed])
        beside = canvas.axes(EDGE + 0.8 + PLOT, EDGE + 0.5, LIST, height)
        _list(beside, [(names[i], i in best, names[i] == chosen) for i in listed], height)
    return canvas.picture()


def front(points: Sequence[Point]) -> list[int]:
    """Places of the points that none matches at a lower or the same cost, cheapest first."""
    order = sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1]))
    kept: list[int] = []
    for i in order:
        if not kept or points[i][1] > points[kept[-1]][1]:
            kept.append(i)
    return kept


def _check(points: Mapping[str, Point], chosen: str | None) -> None:
    if not points:
        raise InputError("there are no points to draw")
    bad = next((n for n, p in points.items() if not all(map(math.isfinite, p))), None)
    if bad is not None:
        raise InputError(f"point {bad!r} is {points[bad]!r}; expected two finite numbers")
    if chosen is not None and chosen not in points:
        raise InputError(f"chosen {chosen!r} is none of {', '.join(points)}")


def _listed(i: int, name: str, count: int, best: Sequence[int], chosen: str | None) -> bool:
    return count <= NAMED or i in best or name == chosen


def _dots(axes: Any, points: Sequence[Point], best: Sequence[int], chosen: int | None) -> None:
    costs = [cost for cost, _ in points]
    if min(costs) > 0 and max(costs) > 30 * min(costs):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda cost, _: f"{cost:,.6g}")
        axes.xaxis.set_minor_formatter(lambda cost, _: "")
    axes.grid(color="#eeeeee")
    axes.set_axisbelow(True)
    across, up = zip(*(points[i] for i in best), strict=True)
    axes.step(across, up, where="post", color=BLUE, linewidth=1.5)
    rest = [point for i, point in enumerate(points) if i not in best]
    axes.plot([p[0] for p in rest], [p[1] for p in rest], "s", color=GREY, markersize=4)
    axes.plot(across, up, "o", color=BLUE, markersize=6)
    if chosen is not None:
        axes.plot(
            *[[value] for value in points[chosen]], "o", markersize=13, markerfacecolor="none",
            markeredgecolor=RED, markeredgewidth=2,
        )  # fmt: skip
    axes.margins(0.1)
    axes.autoscale_view()  # at once: until then places in inches are wrong


def _numbers(canvas: Canvas, axes: Any, points: Sequence[Point]) -> None:
    """A number beside each point, pushed away from points and from other numbers."""
    to_inches = canvas.figure.dpi_scale_trans.inverted()
    fixed = [tuple(to_inches.transform(axes.transData.transform(point))) for point in points]
    for number, (there, place) in enumerate(zip(fixed, spread(fixed), strict=True), 1):
        offset = [72 * (to - at) for to, at in zip(place, there, strict=True)]
        axes.annotate(
            f"{number}", points[number - 1], offset, textcoords="offset points", ha="center",
            va="center", color=INK, fontsize=8, annotation_clip=False,
            bbox={"color": "white", "pad": 0.2},
            arrowprops={"arrowstyle": "-", "color": PALE, "linewidth": 0.7, "shrinkB": 3},
        )  # fmt: skip


def spread(points: Sequence[Point], apart: float = 0.2) -> list[Point]:
    """Places for labels near points: no label nearer than ``apart`` to a point or to another.

    Each takes the first free place on growing circles around its point; if none of six circles
    has one, its place on the first.
    """
    taken: list[Point] = list(points)
    placed: list[Point] = []
    turns = [math.pi * (0.5 + step / 6) for step in range(12)]
    for x, y in points:
        places = [
            (x + apart * far * math.cos(turn), y + apart * far * math.sin(turn))
            for far in (1.05, 1.6, 2.2, 2.8, 3.6, 4.5)
            for turn in turns
        ]
        free = (p for p in places if all(math.dist(p, other) >= apart for other in taken))
        placed.append(next(free, places[0]))
        taken.append(placed[-1])
    return placed


def _list(axes: Any, entries: Sequence[tuple[str, bool, bool]], height: float) -> None:
    bare(axes)
    axes.set_xlim(0, LIST)
    axes.set_ylim(0, height)
    for row, (name, best, chosen) in enumerate(entries):
        y = height - (row + 0.5) * ROW
        mark = {"color": BLUE, "marker": "o"} if best else {"color": GREY, "marker": "s"}
        axes.plot([0.32], [y], markersize=6 if best else 4, **mark)
        if chosen:
            axes.plot([0.32], [y], "o", markersize=11, markerfacecolor="none",
                      markeredgecolor=RED, markeredgewidth=1.5)  # fmt: skip
        axes.text(0.18, y, f"{row + 1}", ha="right", va="center", color=INK)
        axes.text(0.46, y, clean(name, SIGNS), va="center", color=INK, parse_math=False)
