"""Small plots as inline SVG, so that a report is one file."""

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN = 520, 260, 52

Point = tuple[float, float]


class Axes(NamedTuple):
    """Names of the axes and the ranges that they show."""

    x: str
    y: str
    left: float
    right: float
    low: float
    high: float

    def at(self, point: Point) -> tuple[float, float]:
        """Where a point lies in the drawing."""
        across = (point[0] - self.left) / (self.right - self.left or 1)
        up = (point[1] - self.low) / (self.high - self.low or 1)
        inside = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
        return MARGIN + across * inside[0], HEIGHT - MARGIN - up * inside[1]


def axes(points: Sequence[Point], x: str, y: str, top: float = math.inf) -> Axes:
    """Axes that hold all points, with a little room below and, up to the top, above."""
    across, up = [p[0] for p in points], [p[1] for p in points]
    room = (max(up) - min(up)) * 0.1 or 0.01
    return Axes(x, y, min(0.0, *across), max(across), min(up) - room, min(max(up) + room, top))


def plot(
    points: Sequence[Point], line: Sequence[Point], *, x: str, y: str, chosen: Point | None = None,
    names: Sequence[str] = (), top: float = math.inf,
) -> str:  # fmt: skip
    """Points, a line that rises in steps, and one point that stands out.

    Args:
        points: At least one.
        line: From left to right.
        x: Name of the horizontal axis.
        y: Name of the vertical axis.
        chosen: Drawn larger.
        names: Of the points, shown when the mouse rests on one.
        top: Highest value that there is, such as 1 of nDCG; the axis ends there at the latest.
    """
    frame = axes([*points, *line], x, y, top)
    dots = [
        _dot(frame.at(point), 3, "dot", names[i] if i < len(names) else "")
        for i, point in enumerate(points)
    ]
    marked = [] if chosen is None else [_dot(frame.at(chosen), 6, "chosen", "chosen")]
    content = "".join([_frame(frame), _steps(frame, line), *dots, *marked])
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{content}</svg>'


def _dot(place: tuple[float, float], radius: int, kind: str, name: str) -> str:
    title = f"<title>{escape(name)}</title>" if name else ""
    return (
        f'<circle class="{kind}" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius}">'
        f"{title}</circle>"
    )


def _steps(frame: Axes, line: Sequence[Point]) -> str:
    if not line:
        return ""
    corners = [line[0]]
    for before, after in pairwise(line):
        corners += [(after[0], before[1]), after]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(frame.at, corners))
    return f'<polyline class="line" points="{path}"/>'


def _frame(frame: Axes) -> str:
    bottom, right = HEIGHT - MARGIN, WIDTH - MARGIN
    texts = [
        _text(MARGIN, bottom + 16, f"{frame.left:g}", "start"),
        _text(right, bottom + 16, f"{frame.right:,.0f}", "end"),
        _text(WIDTH / 2, bottom + 34, frame.x, "middle"),
        _text(MARGIN - 6, bottom, f"{frame.low:.3f}", "end"),
        _text(MARGIN - 6, MARGIN + 8, f"{frame.high:.3f}", "end"),
        _text(MARGIN, MARGIN - 12, frame.y, "start"),
    ]
    lines = f"M{MARGIN} {MARGIN}V{bottom}H{right}"
    return f'<path class="axis" d="{lines}"/>' + "".join(texts)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'
