"""Tables of a report, as HTML."""

from collections.abc import Sequence
from html import escape
from typing import Any

from ..shown import dollars


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Cells as an HTML table, escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(said(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def said(cell: Any) -> str:
    """A cell as text; what is not there is unknown."""
    if cell is None:
        return "unknown"
    return (
        f"{cell:,.4f}"
        if isinstance(cell, float)
        else f"{cell:,}"
        if isinstance(cell, int)
        else str(cell)
    )


def figure(count: float | None) -> str:
    """A mean of counts: whole where it is, else with the figures that count."""
    if count is None:
        return said(None)
    return f"{count:,.0f}" if count >= 100 or count == round(count) else f"{count:.3g}"


def money(cost: float | None) -> str:
    """US dollars."""
    return said(None) if cost is None else dollars(cost)


def interval(value: dict[str, Any] | None) -> str:
    """A gain with its interval; nothing where there is none."""
    return "" if value is None else f"{value['mean']:+.4f} [{value['lo']:+.4f}, {value['hi']:+.4f}]"
