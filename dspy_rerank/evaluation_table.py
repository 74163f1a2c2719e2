"""An evaluation as text: a table, and in words what its figures do not show."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .shown import count, dollars
from .stats import Interval
from .types import Usage

if TYPE_CHECKING:
    from .evaluation import Evaluation, Row

_USED = ("calls/query", "cached", "tokens/query", "$/query", "s/query", "unknown", "degraded")
MOST = 0.5
"""Above this share of unknown judgments the figures say little of the model."""


def text(found: "Evaluation") -> str:
    """Heading, table, why dollars are unknown, and where judgments are."""
    left = f" ({len(found.unlabelled)} without labels left out)" if found.unlabelled else ""
    head = (
        f"{found.dataset}: {count(found.queries, 'query')}{left}; gain over {found.rows[0].name}, "
        "95% interval (* clear of zero, p < 0.05)"
    )
    lines = [line.rstrip() for line in table(cells(found))]
    return "\n".join([head, *lines, *_unpriced(found), *_unknown(found)])


def cells(found: "Evaluation") -> list[list[str]]:
    """The table, header first; dollars are ``?`` where a price is unknown."""
    header = ["", *(m for metric in found.metrics for m in (metric, "gain"))]
    return [[*header, *_USED], *(_cells(found, row) for row in found.rows)]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells as aligned lines."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]


def finite(interval: Interval) -> dict[str, Any]:
    """An interval as JSON values: what one query cannot tell is null, not infinite."""
    bad = (math.inf, -math.inf)
    values = asdict(interval).items()
    return {n: None if v in bad or v != v else v for n, v in values}


def _cells(found: "Evaluation", row: "Row") -> list[str]:
    shown = [row.name]
    for metric in found.metrics:
        shown.append(f"{row.mean(metric).mean:.4f}")
        base = found.rows[0]
        shown.append("" if row is base else _gain(found.gain(metric, row.name, base.name)))
    return shown + (_used(row, found.queries) if row.rankings else [""] * len(_USED))


def _gain(interval: Interval) -> str:
    star = "*" if interval.significant else " "
    return f"{interval.mean:+.4f} [{interval.lo:+.4f}, {interval.hi:+.4f}]{star}"


def _used(row: "Row", queries: int) -> list[str]:
    """What a row has cost, under the headings of `_USED`."""
    each, used = max(1, queries), row.usage
    return [
        f"{used.calls / each:.1f}",
        f"{100 * used.cached_calls / max(1, used.calls):.0f}%",
        f"{(used.prompt_tokens + used.completion_tokens) / each:.0f}",
        _dollars(used, each),
        f"{used.seconds / each:.2f}",
        str(row.unknowns),
        str(row.degraded),
    ]


def _dollars(used: Usage, queries: int) -> str:
    """Dollars a query."""
    if used.cost is None:
        return "?" if _asked(used) else "0"
    return dollars(used.cost / queries)


def _asked(used: Usage) -> int:
    return used.calls + used.failed_calls


def _unpriced(found: "Evaluation") -> list[str]:
    """Why the dollars of some rows are unknown, one line a reason."""
    unpriced = [row.usage for row in found.rows if row.usage.cost is None and _asked(row.usage)]
    reasons = dict.fromkeys(used.cost_reason or "no call was answered" for used in unpriced)
    return [f"? = dollars unknown: {reason}" for reason in reasons]


def _unknown(found: "Evaluation") -> Iterator[str]:
    """Rows of which most judgments are unknown, with the commonest reason."""
    for row in found.rows:
        said = [judgment for ranking in row.rankings for judgment in ranking.judgments]
        reasons = Counter(judgment.reason for judgment in said if not judgment.known)
        unknown = reasons.total()
        if said and unknown > MOST * len(said):
            many = "all" if unknown == len(said) else f"{unknown} of"
            ((reason, _),) = reasons.most_common(1)
            why = f" ({reason})" if reason else ""
            yield (
                f"{row.name}: {many} {len(said)} judgments are unknown{why}: its figures say "
                "little of the model, and most documents stand where they came"
            )
