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


def count(n: int, noun: str) -> str:
    """A number and what is counted: ``1 round``, ``1,200 calls``, ``3 queries``."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else many}"


def bill(ranking: "Ranking") -> str:
    """One line: what a ranking cost and whether anything went wrong."""
    used = ranking.usage
    why = f" ({used.cost_reason})" if used.cost_reason else ""
    money = f"cost unknown{why}" if used.cost is None else f"${dollars(used.cost)}"
    tokens = used.prompt_tokens + used.completion_tokens
    calls = f"{count(used.calls, 'call')} ({used.cached_calls} cached)"
    parts = [
        f"{calls}, {count(used.rounds, 'round')}",
        f"{count(tokens, 'token')}, {money}, {used.seconds:.1f} s",
    ]
    if used.failed_calls:
        parts.append(
            "1 failed try" if used.failed_calls == 1 else f"{used.failed_calls} failed tries"
        )
    return "; ".join([*parts, *_remarks(ranking)])


def _remarks(ranking: "Ranking") -> list[str]:
    """What went wrong, or is worth knowing; nothing of most rankings."""
    least = f"confidence below {ranking.confidence_threshold or 0.0:g}"
    said = [
        f"{ranking.unknowns} unknown{_unanswered(ranking)}" if ranking.unknowns else "",
        f"{ranking.repaired} repaired" if ranking.repaired else "",
        f"{len(ranking.truncated)} truncated" if ranking.truncated else "",
        f"{len(ranking.low_confidence)} with {least} (?)" if ranking.low_confidence else "",
        *ranking.notes,
        f"DEGRADED: {'; '.join(ranking.reasons)}" if ranking.degraded else "",
    ]
    return [part for part in said if part]


def _unanswered(ranking: "Ranking") -> str:
    """How many of the unknowns are no unreadable answers, in brackets."""
    counts = {"not asked": ranking.unasked, "cut short": ranking.cut_short}
    told = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    return f" ({told})" if told else ""


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
