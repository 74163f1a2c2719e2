"""Draws the frontier of quality against cost, as SVG."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH, HEIGHT, LEFT, TOP, PANEL, DEEP = 980, 430, 50, 60, 410, 310
OURS, PEERS, INK = "#0b6e4f", "#8a8f98", "#22262b"


class Point(NamedTuple):
    """One sorter: its name, cost and quality."""

    name: str
    cost: float
    quality: float

    @property
    def ours(self) -> bool:
        """Whether the sort is our own."""
        return self.name.startswith(("TopDown", "Consensus"))


class Panel(NamedTuple):
    """An area with a logarithmic cost axis."""

    x: float
    costs: tuple[float, float]
    qualities: tuple[float, float]

    def at(self, point: Point) -> tuple[float, float]:
        """Where a point lies."""
        low, high = map(math.log, self.costs)
        bottom, top = self.qualities
        across = (math.log(point.cost) - low) / (high - low)
        up = (point.quality - bottom) / (top - bottom)
        return self.x + PANEL * across, TOP + DEEP * (1 - up)


def drawn(rows: Mapping[str, Mapping[Any, Any]], top_k: int) -> str:
    """The frontier of sorts that see whole windows, and of the pointwise sort."""
    kept = {
        name: cells
        for name, cells in rows.items()
        if name.endswith(("listwise", "pointwise")) and "prior" not in name
    }
    count = len(next(iter(kept.values())))
    title = f"Top {top_k} of 100, listwise: nDCG@10, the mean over {count} simulated judges"
    return frontier(kept, title)


def frontier(rows: Mapping[str, Mapping[Any, Any]], title: str) -> str:
    """Mean nDCG@10 over the judges of each row against reads and against rounds."""
    panels = [
        _panel(rows, "reads", "passages read (log)", LEFT),
        _panel(rows, "rounds", "rounds, one after the other (log)", LEFT + PANEL + 70),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{INK}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        f'<text x="{LEFT}" y="24" font-size="14" font-weight="600">{escape(title)}</text>'
        f'<circle cx="{LEFT + 5}" cy="39" r="4.5" fill="{OURS}"/>'
        f'<text x="{LEFT + 14}" y="43">our sort</text>'
        f'<circle cx="{LEFT + 85}" cy="39" r="4.5" fill="{PEERS}"/>'
        f'<text x="{LEFT + 94}" y="43">published sort; dashed: nothing cheaper is better</text>'
    )
    return "\n".join([head, *panels, "</svg>", ""])


def _panel(rows: Mapping[str, Mapping[Any, Any]], cost: str, label: str, x: float) -> str:
    points = [
        Point(
            name.rsplit(", ", 1)[0].replace("()", ""),
            _mean([getattr(cell, cost) for cell in cells.values()]),
            _mean([cell.ndcg for cell in cells.values()]),
        )
        for name, cells in rows.items()
    ]
    costs, qualities = [p.cost for p in points], [p.quality for p in points]
    panel = Panel(
        x,
        (min(costs) / 1.15, max(costs) * 1.25),
        (min(qualities) - 0.7, max(qualities) + 0.7),
    )
    return "\n".join([*_axes(panel, label), _line(panel, points), *_dots(panel, points)])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _axes(panel: Panel, label: str) -> list[str]:
    low, high = panel.qualities
    marks = [c * 10**e for e in range(5) for c in (1, 2, 3, 5)]
    lines = [
        f'<text x="{panel.x + PANEL / 2}" y="{TOP + DEEP + 38}" text-anchor="middle">{label}</text>'
    ]
    for value in range(math.ceil(low), math.floor(high) + 1, 2):
        _, y = panel.at(Point("", panel.costs[0], value))
        lines.append(
            f'<path d="M{panel.x} {y:.1f}h{PANEL}" stroke="#e4e6e9"/>'
            f'<text x="{panel.x - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>'
        )
    for value in marks:
        if panel.costs[0] <= value <= panel.costs[1]:
            across, _ = panel.at(Point("", value, low))
            lines.append(
                f'<path d="M{across:.1f} {TOP + DEEP}v5" stroke="{INK}"/>'
                f'<text x="{across:.1f}" y="{TOP + DEEP + 18}" text-anchor="middle">{value}</text>'
            )
    return [*lines, f'<path d="M{panel.x} {TOP + DEEP}h{PANEL}" stroke="{INK}"/>']


def _line(panel: Panel, points: Sequence[Point]) -> str:
    """Through those that nothing cheaper equals."""
    best, path = -math.inf, []
    for point in sorted(points, key=lambda p: (p.cost, -p.quality)):
        if point.quality > best:
            best = point.quality
            path.append("{:.1f} {:.1f}".format(*panel.at(point)))
    return f'<path d="M{" L".join(path)}" fill="none" stroke="{OURS}" stroke-dasharray="4 3"/>'


def _dots(panel: Panel, points: Sequence[Point]) -> list[str]:
    spots = [panel.at(point) for point in points]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    drawn = []
    for point, (x, y) in sorted(zip(points, spots, strict=True), key=lambda pair: pair[1][1]):
        colour, ink = (OURS, OURS) if point.ours else (PEERS, INK)
        tx, ty, anchor = _place(panel, point.name, x, y, taken)
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
            f'<text x="{tx:.1f}" y="{ty:.1f}" text-anchor="{anchor}" fill="{ink}">'
            f"{escape(point.name)}</text>"
        )
    return drawn


Box = tuple[float, float, float, float]


def _place(
    panel: Panel, name: str, x: float, y: float, taken: list[Box]
) -> tuple[float, float, str]:
    """The first place for a label that covers nothing: where it starts or ends, and which."""
    long = 6.3 * len(name)
    offers = [
        (tx, y + up, anchor)
        for away in (0, 13, 26, 39, 52)
        for up in (4 + away, 4 - away)
        for tx, anchor in ((x + 8, "start"), (x - 8, "end"))
    ]
    for tx, ty, anchor in offers:
        left = tx if anchor == "start" else tx - long
        box = (left, ty - 9, left + long, ty + 3)
        across = panel.x <= box[0] and box[2] <= panel.x + PANEL + 40
        inside = across and box[1] > TOP - 10 and box[3] < TOP + DEEP
        if inside and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return tx, ty, anchor
    return offers[0]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
