"""What 1,000 queries cost with a program, by the queries that it was tested on."""

from collections.abc import Mapping
from typing import Any

import dspy

from ..defaults import resolve_lm
from ..errors import InputError
from ..evaluation import Evaluation, Row
from ..planning.answers import answer_tokens
from ..prices import Price, price_of
from ..sorters import Reranker
from ..sorters.estimates import bounds
from ..types import Estimate


def serving(
    rerankers: Mapping[str, Reranker], found: Evaluation, test: Any, lm: Any
) -> list[dict[str, Any]]:
    """Of each program calls, tokens and money, as JSON values."""
    model = dspy.settings.lm if lm is None else resolve_lm(lm)
    return [_thousand(found[name], each, test, model) for name, each in rerankers.items()]


def _thousand(row: Row, reranker: Reranker, test: Any, lm: Any) -> dict[str, Any]:
    """Tokens and money are those of the calls that were paid, for all calls.

    Where all answers were known before, both are estimated, at their upper bounds.
    """
    usage, scale = row.usage, 1000 / max(1, len(test))
    told = {"name": row.name, "calls": round(usage.calls * scale), "estimated": False}
    if not usage.paid_calls:
        return {**told, "estimated": True, **_estimated(reranker, test, scale, lm)}
    per = scale * usage.calls / usage.paid_calls
    return {
        **told,
        "prompt_tokens": round(usage.prompt_tokens * per),
        "completion_tokens": round(usage.completion_tokens * per),
        "cost": None if usage.cost is None else _cents(usage.cost * per),
    }


def _estimated(reranker: Reranker, test: Any, scale: float, lm: Any) -> dict[str, Any]:
    """Tokens of all test queries and what they cost, if the price is known."""
    told = [reranker.estimate(len(q.documents), query=q.text, documents=q.documents) for q in test]
    calls, reads, read = (
        sum(bounds(getattr(each, name) or 0)[1] for each in told)
        for name in ("calls", "passages_read", "prompt_tokens")
    )
    written = calls * answer_tokens(reranker.judge, reads / max(1, calls)).hi
    tokens = round(read * scale), round(written * scale)
    price = price_for(reranker, lm)
    return {
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "cost": None if price is None else _cents(price.most(*tokens)),
    }


def by_price(reranker: Reranker, told: Estimate) -> float | None:
    """US dollars of a question at most, by estimate and the price of the model that is set."""
    price = price_for(reranker, dspy.settings.lm)
    if price is None:
        return None
    calls = max(1, bounds(told.calls)[1])
    written = answer_tokens(reranker.judge, bounds(told.passages_read)[1] / calls).hi
    return price.most(round(bounds(told.prompt_tokens or 0)[1] / calls), round(written))


def price_for(reranker: Reranker, lm: Any) -> Price | None:
    """Of a token of the one model that answers; ``None`` where it is not known, or none is one."""
    asked = {id(own): own for own in (p.lm or lm for p in reranker.predictors())}
    try:
        prices = {price_of(each) for each in asked.values()}
    except InputError:
        return None
    return prices.pop() if len(prices) == 1 else None


def _cents(cost: float) -> float:
    """US dollars, to six figures."""
    return float(f"{cost:.6g}")
