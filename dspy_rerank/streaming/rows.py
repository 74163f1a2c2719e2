"""One finished query as one line of JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..ranking import Ranked, Ranking
from ..types import Document

RANKED = "ranked"
"""As the program ranks; a limit of the program's own may have stopped it, which the row says."""
DEGRADED = "degraded"
"""The model failed: the incoming order."""
FAILED = "failed"
"""No ranking."""
STOPPED = "stopped"
"""A limit of the whole run stopped it; no ranking. The next run ranks it."""
AGAIN = frozenset({DEGRADED, FAILED})


def status_of(ranking: Ranking) -> str:
    """Whether the model was reached."""
    return DEGRADED if ranking.degraded and not ranking.judgments else RANKED


def ranked_row(name: str, ranking: Ranking, *, judgments: bool = True) -> dict[str, Any]:
    """A ranking as JSON values, without the texts that the queries have."""
    row = {"id": name, "status": status_of(ranking), **ranking.to_dict(judgments=judgments)}
    for item in row["ranking"]:
        del item["text"]
    return row


def failed_row(name: str, query: Any, error: Exception) -> dict[str, Any]:
    """A query that has no ranking, with the reason."""
    said = {"type": type(error).__name__, "message": " ".join(str(error).split())}
    return {"id": name, "status": FAILED, "query": _shown(query), "error": said}


def stopped_row(name: str, ranking: Ranking) -> dict[str, Any]:
    """A query that the run's limit stopped, with what it had cost by then."""
    said = {"type": "LimitReached", "message": "; ".join(ranking.reasons)}
    row = {"id": name, "status": STOPPED, "query": ranking.query, "error": said}
    return {**row, "usage": asdict(ranking.usage)}


def _shown(query: Any) -> str | None:
    return query if isinstance(query, str) else None if query is None else repr(query)[:200]


def run_lines(row: Mapping[str, Any]) -> str:
    """A row's ranking as lines of a TREC run; empty where it has none.

    Raises:
        DataError: An id is empty or holds white space.
    """
    if "ranking" not in row:
        return ""
    items = tuple(
        Ranked(Document("", id=item["id"]), item["rank"], item["index"], item["score"])
        for item in row["ranking"]
    )
    return Ranking(query="", items=items, n=row["n"]).to_trec(row["id"])
