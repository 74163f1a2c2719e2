"""How far a run is, in numbers."""

from dataclasses import asdict, dataclass, field
from typing import Any

from ..ranking import Ranking
from ..shown import count, dollars
from ..types import Usage
from .rows import DEGRADED, FAILED, RANKED


@dataclass
class Summary:
    """Counts of a run; they grow as it goes on.

    Attributes:
        ranked: Queries ranked in this run.
        degraded: Queries in the incoming order, because the model failed.
        failed: Queries without a ranking.
        skipped: Queries that an earlier run has done.
        bad_before: Those of them that failed or are degraded.
        unknowns: Judgments that could not be read.
        unread: Rankings that were made without one judgment that could be read.
        usage: Of this run; its cost is ``None`` where a price is not known.
        spent: US dollars of all rows in the file, so far as known.
        stopped: Why the run ended before its input did; empty where it did not.
        reasons: Why queries failed or are degraded, the first few.
    """

    ranked: int = 0
    degraded: int = 0
    failed: int = 0
    skipped: int = 0
    bad_before: int = 0
    unknowns: int = 0
    unread: int = 0
    usage: Usage = field(default_factory=Usage)
    spent: float = 0.0
    stopped: str = ""
    reasons: list[str] = field(default_factory=list)

    @property
    def done(self) -> int:
        """Queries that are over, those of earlier runs among them."""
        return self.ranked + self.degraded + self.failed + self.skipped

    @property
    def whole(self) -> bool:
        """Whether every query has a ranking that the model has made."""
        return not (self.stopped or self.failed or self.degraded or self.bad_before)

    def add(self, status: str, reason: str, ranking: Ranking | None = None) -> None:
        """Count a query."""
        if ranking is not None:
            self.usage = self.usage + ranking.usage
            self.unknowns += ranking.unknowns
            self.unread += status == RANKED and unread(ranking)
        for name in (RANKED, DEGRADED, FAILED):
            if status == name:
                setattr(self, name, getattr(self, name) + 1)
        if reason and status != RANKED and reason not in self.reasons and len(self.reasons) < 3:
            self.reasons.append(reason)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "whole": self.whole}

    def __str__(self) -> str:
        used = self.usage
        tokens = count(used.prompt_tokens + used.completion_tokens, "token")
        others = [f"{getattr(self, n)} {n}" for n in ("degraded", "failed") if getattr(self, n)]
        earlier = [f"{self.skipped} done before"] if self.skipped else []
        if self.bad_before:
            earlier.append(f"{self.bad_before} of them not ranked: --retry-failed")
        parts = [
            ", ".join([f"{self.ranked} ranked", *others, *earlier]),
            f"{count(used.calls, 'call')} ({used.cached_calls} cached), {tokens}, {money(used)}",
        ]
        if self.unknowns:
            parts.append(f"{self.unknowns:,} unknown")
        return "; ".join([*parts, f"stopped: {self.stopped}"] if self.stopped else parts)

    def warning(self) -> str:
        """What to know of rankings that count as ranked; empty where there is nothing."""
        if not self.unread:
            return ""
        which = f"{self.unread} of {count(self.ranked, 'ranking')}"
        return (
            f"in {which} not one judgment could be read, so the documents stand as they came; try "
            "another model or judge"
        )


def unread(ranking: Ranking) -> bool:
    """Whether it was asked for, nobody stopped it, and all answers are unknown."""
    asked = ranking.judgments
    return not ranking.degraded and bool(asked) and ranking.unknowns == len(asked)


def money(used: Usage) -> str:
    """US dollars, or why they are not known."""
    if used.cost is not None:
        return f"${dollars(used.cost)}"
    return f"cost unknown ({used.cost_reason})" if used.cost_reason else "cost unknown"
