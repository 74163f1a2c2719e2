"""What a compiled program has to show, as JSON values: the content of every report."""

import difflib
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..adapters import COMPACT, CONTINUING
from ..calibration import answers, reliability
from ..evaluation import Evaluation, Row
from ..judges import Panel
from ..judges.base import SignatureJudge
from ..ranking import Ranking
from ..sorters import Reranker
from ..unlabelled import measurable
from .card import spent
from .examples import answers_yes_no
from .plain import PlainRun
from .rows import COMPILED, PLAIN, UNCOMPILED
from .seeds import SeedRun
from .serving import serving
from .spread import spread
from .variants import by_likelihood
from .verdicts import words

SHOWN = 5
"""Documents of a ranking that are shown with a query."""
QUERIES = 20
"""Queries shown with their documents: those that won or lost most."""


def proof(
    student: Reranker, compiled: Reranker, found: Evaluation, test: Any, *,
    runs: Sequence[SeedRun] = (), plain: PlainRun | None = None, lm: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """All that a report says.

    Args:
        student: The reranker before it was compiled.
        compiled: With its card.
        found: Both, in rows ``uncompiled`` and ``compiled``, on queries that nothing was
            chosen by, in one metric.
        test: Those queries.
        runs: One for each seed, where there were several.
        plain: Plain DSPy's, where it was asked for; in row ``plain DSPy`` unless it failed.
        lm: Answers the programs, where they have none of their own.
    """
    (metric,), test = found.metrics, measurable(test)
    seeds = spread(runs, found) if len(runs) > 1 else None
    return {
        "metric": metric,
        "words": words(found, compiled.card, plain, seeds),
        "test": {
            "name": found.dataset,
            "queries": found.queries,
            "fingerprint": test.fingerprint,
            "rows": [_row(found, row, metric) for row in found.rows],
        },
        "card": {k: v for k, v in compiled.card.items() if k != "test"},
        "prompt": _prompts(student, compiled),
        "queries": _queries(found, test, metric),
        "calibration": _calibration(student, compiled, found, test),
        "serving": serving({UNCOMPILED: student, COMPILED: compiled}, found, test, lm),
        **({} if seeds is None else {"seeds": seeds}),
        **({} if plain is None else {"plain": plain_values(plain, found)}),
    }


def plain_values(plain: PlainRun, found: Evaluation) -> dict[str, Any]:
    """The baseline, and how far the compiled program is ahead of it."""
    (metric,) = found.metrics
    failed = plain.program is None
    return {
        "optimizer": plain.optimizer,
        "failed": plain.failed,
        "queries": plain.sizes._asdict(),
        "cut": plain.cut,
        "compiled_calls": plain.allowed,
        "compiled_gain": None if failed else asdict(found.gain(metric, COMPILED, PLAIN)),
        "spent": {
            **spent(plain.usage, plain.seconds, plain.usage.cached_calls),
            "calls": plain.calls - plain.usage.cached_calls,
        },
        "sent": "" if failed else prompt_text(getattr(plain.program, "judge", None)),
    }


def prompt_text(judge: Any) -> str:
    """What is sent for a question, with the names of the inputs in place of their values."""
    if isinstance(judge, Panel):
        judges = zip(judge.judges, judge.settings["weights"], strict=True)
        return "\n\n".join(f"weight {weight:g}\n{prompt_text(each)}" for each, weight in judges)
    if not isinstance(judge, SignatureJudge):
        return ""
    signature = judge.signature
    blanks = {name: f"{{{name}}}" for name in signature.input_fields}
    adapter = judge.adapter or (CONTINUING if by_likelihood(judge) else COMPACT)
    messages: Any = adapter.format(signature, list(judge.predict.demos), blanks)
    text = "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)
    claim = judge.settings.values.get("claim")
    scored = (
        f" {claim or '{query}'}   <- its likelihood is the score" if by_likelihood(judge) else ""
    )
    title = "\n(of the passage, its first line)" if _title_only(judge) else ""
    return f"{text}{scored}{title}"


def _title_only(judge: SignatureJudge) -> bool:
    return judge.settings.values.get("part") == "title"


def _prompts(student: Reranker, compiled: Reranker) -> dict[str, Any]:
    judge: Any = getattr(compiled, "judge", None)
    before, after = prompt_text(_as_asked(student, judge)), prompt_text(judge)
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), UNCOMPILED, COMPILED, lineterm="", n=100
    )
    predict = getattr(judge, "predict", None)
    return {
        "program": type(compiled).__name__,
        "judge": type(judge).__name__,
        "settings": _changed(student, compiled),
        "sent": after,
        "instructions": "" if predict is None else judge.signature.instructions,
        "demos": [] if predict is None else [dict(demo) for demo in predict.demos],
        "diff": list(lines),
    }


def _changed(student: Reranker, compiled: Reranker) -> dict[str, list[Any]]:
    """Settings of the sorter and of its judge before and after, where they differ."""
    judge = getattr(compiled, "judge", None)
    before, after = _settings(student, _as_asked(student, judge)), _settings(compiled, judge)
    return {n: [before.get(n), v] for n, v in after.items() if before.get(n) != v}


def _settings(reranker: Reranker, judge: Any) -> dict[str, Any]:
    of_judge = judge.settings.values if isinstance(judge, SignatureJudge) else {}
    return {**reranker.settings.values, **{f"judge.{n}": v for n, v in of_judge.items()}}


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
        if row.name not in (base.name, UNCOMPILED)
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


def _calibration(
    student: Reranker, compiled: Reranker, found: Evaluation, test: Any
) -> dict[str, Any]:
    """How far each program's confidences are from how often it is right; ``None`` without any."""
    said: dict[str, Any] = {}
    for name, reranker in ((UNCOMPILED, student), (COMPILED, compiled)):
        judged = [
            (ranking.judgments, query.relevance)
            for ranking, query in zip(found[name].rankings, test, strict=True)
        ]
        told = answers(judged, scale=_scale(reranker))
        said[name] = reliability(*told).to_dict() if told.confidences else None
    return said


def _scale(reranker: Reranker) -> tuple[float, float]:
    judge: Any = getattr(reranker, "judge", None)
    if not isinstance(judge, SignatureJudge) or judge.kind != "pointwise" or answers_yes_no(judge):
        return 0.0, 1.0
    low, high = judge.settings["scale"]
    return low, high


def learning_curve(trials: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """Calls spent and the best value so far, after each trial."""
    curve, calls, best = [], 0, -math.inf
    for trial in trials:
        calls += trial["calls"]
        best = max(best, trial["value"])
        curve.append((calls, best))
    return curve
