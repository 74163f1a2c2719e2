"""A ranking for people: as lines of text, and as a table in notebooks."""

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ranking import Ranked, Ranking

_LEFT = 'style="text-align:left"'


def dollars(cost: float) -> str:
    """US dollars with at least two figures that count: ``0``, ``0.0123``, ``0.000032``."""
    return f"{cost:.{max(4, 1 - math.floor(math.log10(cost)))}f}" if cost else "0"


def lines(ranking: "Ranking", width: int) -> list[str]:
    """A heading and one line a document, cut to a width in characters."""
    head = f"{'rank':>4} {'was':>4} {'score':>8}  document"
    return [head, *(_line(item, width) for item in ranking)]


def page(ranking: "Ranking") -> str:
    """A table and the bill, as HTML; a confidence's title says where it comes from."""
    sources = _sources(ranking)
    rows = "".join(_row(item, sources.get(item.index, "none")) for item in ranking)
    heads = "".join(f"<th>{name}</th>" for name in ("rank", "was", "score", "confidence"))
    return (
        f"<table><thead><tr>{heads}<th {_LEFT}>document</th></tr></thead>"
        f"<tbody>{rows}</tbody></table><p>{html.escape(ranking.summary())}</p>"
    )


def _sources(ranking: "Ranking") -> dict[int, str]:
    """By position, where the confidences come from of which a document's is the mean."""
    found: dict[int, dict[str, None]] = {}
    for judgment in ranking.judgments:
        if judgment.confidence is not None:
            for position in judgment.group:
                found.setdefault(position, {})[judgment.confidence_source] = None
    return {position: ", ".join(names) for position, names in found.items()}


def _row(item: "Ranked", source: str) -> str:
    sure = "-" if item.confidence is None else f"{item.confidence:.2f}"
    numbers = "".join(f"<td>{cell}</td>" for cell in (item.rank, item.index + 1, _score(item)))
    confidence = f'<td title="confidence_source: {html.escape(source)}">{sure}</td>'
    return f"<tr>{numbers}{confidence}<td {_LEFT}>{html.escape(_brief(item, 120))}</td></tr>"


def _line(item: "Ranked", width: int) -> str:
    numbers = f"{item.rank:>4} {item.index + 1:>4} {_score(item):>8}  "
    return numbers + _brief(item, max(20, width - len(numbers)))


def _score(item: "Ranked") -> str:
    """The score, marked where the confidence is low."""
    number = "-" if item.score is None else f"{item.score:.3f}"
    return f"{number}?" if item.low_confidence else number


def _brief(item: "Ranked", width: int) -> str:
    words = " ".join(item.text.split())
    label = f"[{item.id}] " if item.id is not None else ""
    shown = label + words
    return shown if len(shown) <= width else shown[: width - 3] + "..."
