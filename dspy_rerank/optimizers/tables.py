"""Tables of a report, as HTML."""

from collections.abc import Sequence
from html import escape
from typing import Any


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


def interval(value: dict[str, Any] | None) -> str:
    """A gain with its interval; nothing where there is none."""
    return "" if value is None else f"{value['mean']:+.4f} [{value['lo']:+.4f}, {value['hi']:+.4f}]"
