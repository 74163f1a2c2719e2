"""What a compiled program has to show, as JSON values: the content of every report."""

import difflib
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..adapters import COMPACT, CONTINUING
from ..evaluation import Evaluation, Row
from ..judges.base import SignatureJudge
from ..ranking import Ranking
from ..sorters import Reranker
from .variants import by_likelihood

UNCOMPILED = "uncompiled"
COMPILED = "compiled"
SHOWN = 5
"""Documents of a ranking that are shown with a query."""
QUERIES = 20
"""Queries shown with their documents: those that won or lost most."""


def proof(student: Reranker, compiled: Reranker, found: Evaluation, test: Any) -> dict[str, Any]:
    """All that a report says.

    Args:
        student: The reranker before it was compiled.
        compiled: With its card.
        found: Both, in rows ``uncompiled`` and ``compiled``, on queries that nothing was
            chosen by, in one metric.
        test: Those queries.
    """
    (metric,) = found.metrics
    return {
        "metric": metric,
        "words": words(found, compiled.card),
        "test": {
            "name": found.dataset,
            "queries": found.queries,
            "fingerprint": test.fingerprint,
            "rows": [_row(found, row, metric) for row in found.rows],
        },
        "card": {k: v for k, v in compiled.card.items() if k != "test"},
        "prompt": _prompts(student, compiled),
        "queries": _queries(found, test, metric),
        "serving": _serving(found),
    }


def words(found: Evaluation, card: dict[str, Any]) -> list[str]:
    """What the test queries say, and how far the search's own figures can be believed."""
    return [*verdicts(found), *_curse(card), *_trouble(found, card)]


def verdicts(found: Evaluation) -> list[str]:
    """One sentence for each baseline: better, worse, or no difference that can be told."""
    (metric,) = found.metrics
    sentences = []
    for over in (found.rows[0].name, UNCOMPILED):
        gain = found.gain(metric, COMPILED, over)
        if not gain.significant:
            sentences.append(f"no difference from the {over} that can be told: {gain}")
        else:
            word = "better" if gain.mean > 0 else "WORSE"
            sentences.append(f"{word} than the {over}: {gain}")
    return sentences


def _curse(card: dict[str, Any]) -> list[str]:
    """Winner's curse: how much the best of many looks better than it is."""
    tried, val = len(card.get("trials") or ()), card.get("validation") or {}
    interval = val.get("gain_over_uncompiled")
    if tried < 2 or interval is None or not all(map(math.isfinite, interval)):
        return []
    error = (interval[2] - interval[1]) / (2 * 1.96)
    flattery = error * math.sqrt(2 * math.log(tried))
    return [
        f"winner's curse: {tried} settings were compared on {val['queries']} validation queries, "
        f"so the validation value of the one chosen may be flattered by up to {flattery:.4f}; the "
        "test queries took no part in the choice and are not"
    ]


def _trouble(found: Evaluation, card: dict[str, Any]) -> list[str]:
    said = []
    for row in found.rows:
        if row.degraded:
            said.append(f"{row.degraded} rankings of the {row.name} program are degraded")
    if card.get("degraded"):
        said.append("the model failed on some questions while compiling, which count as wrong")
    return said


def prompt_text(judge: Any) -> str:
    """What is sent for a question, with the names of the inputs in place of their values."""
    if not isinstance(judge, SignatureJudge):
        return ""
    signature = judge.signature
    blanks = {name: f"{{{name}}}" for name in signature.input_fields}
    adapter = judge.adapter or (CONTINUING if by_likelihood(judge) else COMPACT)
    messages: Any = adapter.format(signature, list(judge.predict.demos), blanks)
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def _prompts(student: Reranker, compiled: Reranker) -> dict[str, Any]:
    judge = getattr(compiled, "judge", None)
    before, after = prompt_text(_as_asked(student, judge)), prompt_text(judge)
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), UNCOMPILED, COMPILED, lineterm="", n=100
    )
    predict = getattr(judge, "predict", None)
    return {
        "program": repr(compiled),
        "instructions": "" if judge is None or predict is None else judge.signature.instructions,
        "demos": [] if predict is None else [dict(demo) for demo in predict.demos],
        "diff": list(lines),
    }


def _as_asked(student: Reranker, compiled: Any) -> Any:
    """The student's judge, or the one by likelihood inside it when that is what was compiled."""
    judge = getattr(student, "judge", None)
    if isinstance(compiled, SignatureJudge) and by_likelihood(compiled):
        return getattr(judge, "by_likelihood", judge)
    return judge


def _row(found: Evaluation, row: Row, metric: str) -> dict[str, Any]:
    base = found.rows[0]
    return {
        "name": row.name,
        "mean": asdict(row.mean(metric, seed=found.seed)),
        "gain_over_incoming": None
        if row is base
        else asdict(found.gain(metric, row.name, base.name)),
        "gain_over_uncompiled": asdict(found.gain(metric, row.name, UNCOMPILED))
        if row.name == COMPILED
        else None,
        "unknowns": row.unknowns,
        "degraded": row.degraded,
        "usage": asdict(row.usage),
    }


def _queries(found: Evaluation, test: Any, metric: str) -> list[dict[str, Any]]:
    """Every query's values, those that changed most first and with their documents."""
    rows = {row.name: row for row in found.rows}
    before, after = rows[UNCOMPILED], rows[COMPILED]
    listed = []
    for place, query in enumerate(test):
        entry = {
            "id": query.id,
            "query": query.text,
            **{row.name: round(row.values[metric][place], 6) for row in found.rows},
        }
        gain = after.values[metric][place] - before.values[metric][place]
        listed.append((gain, place, {**entry, "gain": round(gain, 6)}))
    listed.sort(key=lambda item: (-abs(item[0]), item[1]))
    for gain, place, entry in listed[:QUERIES]:
        if gain:
            entry["documents"] = {
                row.name: _top(row.rankings[place], test[place]) for row in (before, after)
            }
    return [entry for _, _, entry in listed]


def _top(ranking: Ranking, query: Any) -> list[dict[str, Any]]:
    return [
        {"was": item.index + 1, "grade": query.relevance[item.index], "text": item.text}
        for item in ranking[:SHOWN]
    ]


def _serving(found: Evaluation) -> list[dict[str, Any]]:
    """What 1,000 queries cost with each program, by the test queries."""
    return [_thousand(row, found.queries) for row in found.rows if row.rankings]


def _thousand(row: Row, queries: int) -> dict[str, Any]:
    """Tokens and money are those of the calls that were paid, for all calls."""
    usage, scale = row.usage, 1000 / max(1, queries)
    share = usage.calls / usage.paid_calls if usage.paid_calls else None
    per = None if share is None else scale * share
    return {
        "name": row.name,
        "calls": round(usage.calls * scale),
        "prompt_tokens": None if per is None else round(usage.prompt_tokens * per),
        "completion_tokens": None if per is None else round(usage.completion_tokens * per),
        "cost": None if per is None or usage.cost is None else round(usage.cost * per, 4),
    }


def learning_curve(trials: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """Calls spent and the best value so far, after each trial."""
    curve, calls, best = [], 0, -math.inf
    for trial in trials:
        calls += trial["calls"]
        best = max(best, trial["value"])
        curve.append((calls, best))
    return curve
