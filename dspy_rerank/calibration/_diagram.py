"""The reliability diagram as inline SVG, without any library."""

from collections.abc import Sequence
from html import escape
from typing import Protocol

SIZE, MARGIN = 300, 44


class Bar(Protocol):
    """What is drawn of a bar."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def answers(self) -> int: ...
    @property
    def confidence(self) -> float: ...
    @property
    def accuracy(self) -> float: ...


def diagram(bars: Sequence[Bar], title: str) -> str:
    """Bars as high as their answers were right, a dot at their mean confidence, the diagonal.

    The darker a bar, the more answers it holds; resting the mouse on it shows its figures.
    """
    most = max((bar.answers for bar in bars), default=1)
    whole = SIZE + 2 * MARGIN
    parts = [_frame(), *(_bar(bar, most) for bar in bars)]
    parts.append(_line(0, 0, 1, 1, 'stroke="#888" stroke-dasharray="4 3"'))
    parts += [_text(0.5, -0.11, "confidence"), _text(0.0, 1.05, "share right", "start")]
    parts.append(f"<title>{escape(title)}</title>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {whole}" role="img" '
        f'width="{whole}" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _at(x: float, y: float) -> tuple[float, float]:
    return MARGIN + x * SIZE, MARGIN + (1 - y) * SIZE


def _bar(bar: Bar, most: int) -> str:
    left, top = _at(bar.low, bar.accuracy)
    width, height = max(1.0, (bar.high - bar.low) * SIZE - 1), bar.accuracy * SIZE
    shade = 0.25 + 0.6 * bar.answers / most
    said = f"{bar.answers} answers, confidence {bar.confidence:.2f}, right {bar.accuracy:.2f}"
    dot = _at(bar.confidence, bar.accuracy)
    return (
        f'<g><title>{said}</title><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill="#3a6ea5" fill-opacity="{shade:.2f}"/>'
        f'<circle cx="{dot[0]:.1f}" cy="{dot[1]:.1f}" r="3" fill="#b3402a"/></g>'
    )


def _frame() -> str:
    ticks = [step / 5 for step in range(6)]
    below = [_text(tick, -0.05, f"{tick:g}") for tick in ticks]
    beside = [_text(-0.02, tick - 0.012, f"{tick:g}", "end") for tick in ticks]
    style = 'stroke="#444"'
    return "".join([_line(0, 0, 1, 0, style), _line(0, 0, 0, 1, style), *below, *beside])


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    (a, b), (c, d) = _at(x1, y1), _at(x2, y2)
    return f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" {style}/>'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    across, down = _at(x, y)
    return f'<text x="{across:.1f}" y="{down:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
