"""A ranking as a response that clients of Cohere and Jina can read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, Field

from ..ranking import Ranking
from ..shown import count
from .programs import Program
from .relevance import MEANING, Relevance, relevance
from .requests import RerankRequest


class Result(BaseModel):
    """One document in its place."""

    index: int = Field(ge=0, description="Position in the request.")
    relevance_score: float = Field(ge=0, le=1, description="By the rule named in meta.")
    document: dict[str, Any] | None = Field(
        None, description="As it came, with what was read as text; only where asked for."
    )


class Details(BaseModel):
    """What this service says beyond the API of others.

    Lists have one entry a result, in the order of the results.
    """

    program: str
    relevance_score: str = Field(description="Rule: grade, likelihood, wins, logistic or rank.")
    relevance_meaning: str
    scores: list[float | None] = Field(description="The program's own, on its own scale.")
    confidence: list[float | None] = Field(description="In [0, 1]; null where there is none.")
    degraded: bool
    reasons: list[str]
    unknowns: int = Field(description="Questions without an answer that could be read.")
    unasked: int = Field(description="Those of them that a limit forbade to ask.")
    cut_short: int = Field(description="Those of them that a limit ended before their answer.")
    notes: list[str] = Field(description="What to know of a ranking that is not degraded.")
    truncated: list[int] = Field(description="Positions of documents that were cut.")
    evidence: str
    usage: dict[str, Any] = Field(description="Calls, rounds, tokens, US dollars.")
    judgments: list[dict[str, Any]] | None = Field(None, description="Only with explain.")


class Meta(BaseModel):
    """Cohere's ``meta``, with ours inside."""

    api_version: dict[str, str]
    billed_units: dict[str, int]
    tokens: dict[str, int]
    warnings: list[str] | None = None
    dspy_rerank: Details


class RerankResponse(BaseModel):
    """Cohere's answer; ``model`` and ``usage`` are Jina's."""

    id: str
    model: str
    object: str = "list"
    results: list[Result]
    usage: dict[str, int]
    meta: Meta


def answer(
    ranking: Ranking,
    program: Program,
    request: RerankRequest,
    texts: Sequence[str],
    *,
    version: str,
    request_id: str,
) -> dict[str, Any]:
    """The response's JSON values."""
    said = relevance(ranking, program.reranker)
    tokens = {
        "input_tokens": ranking.usage.prompt_tokens,
        "output_tokens": ranking.usage.completion_tokens,
    }
    total = {"total_tokens": sum(tokens.values())}
    meta = {
        "api_version": {"version": version},
        "billed_units": {**tokens, **total},
        "tokens": tokens,
        "dspy_rerank": _details(ranking, program, said, bool(request.explain)),
    }
    warnings = warnings_of(ranking, said)
    return {
        "id": request_id,
        "model": program.name,
        "object": "list",
        "results": _results(ranking, said, request, texts),
        "usage": {"prompt_tokens": tokens["input_tokens"], **total},
        "meta": {**meta, "warnings": warnings} if warnings else meta,
    }


def _results(
    ranking: Ranking, said: Relevance, request: RerankRequest, texts: Sequence[str]
) -> list[dict[str, Any]]:
    results = []
    for item, value in zip(ranking, said.values, strict=True):
        result: dict[str, Any] = {"index": item.index, "relevance_score": value}
        if request.return_documents:
            result["document"] = _returned(request.documents[item.index], texts[item.index])
        results.append(result)
    return results


def _returned(document: str | Mapping[str, Any], text: str) -> dict[str, Any]:
    """As it came; clients need a text, which is what the judge read where there is none."""
    if isinstance(document, str):
        return {"text": document}
    return dict(document) if isinstance(document.get("text"), str) else {**document, "text": text}


def _details(ranking: Ranking, program: Program, said: Relevance, explain: bool) -> dict[str, Any]:
    details = {
        "program": program.name,
        "relevance_score": said.rule,
        "relevance_meaning": MEANING[said.rule],
        "scores": ranking.scores,
        "confidence": [item.confidence for item in ranking],
        "degraded": ranking.degraded,
        "reasons": [public_reason(reason) for reason in ranking.reasons],
        "unknowns": ranking.unknowns,
        "unasked": ranking.unasked,
        "cut_short": ranking.cut_short,
        "notes": list(map(public_note, ranking.notes)),
        "truncated": list(ranking.truncated),
        "evidence": ranking.evidence,
        "usage": asdict(ranking.usage),
    }
    return {**details, "judgments": ranking.to_dict()["judgments"]} if explain else details


def warnings_of(ranking: Ranking, said: Relevance) -> list[str]:
    """What a caller should know before using the answer; empty for most."""
    warnings = [f"degraded: {public_reason(reason)}" for reason in ranking.reasons]
    warnings += [*_lost(ranking), *map(public_note, ranking.notes)]
    if ranking.truncated:
        cut = len(ranking.truncated)
        warnings.append(f"{count(cut, 'document')} {_were(cut)} cut for the model")
    if said.rule == "rank":
        warnings.append(f"relevance_score is {MEANING['rank']}")
    return warnings


def public_note(note: str) -> str:
    """What to know of a ranking, without what a provider may have said of it."""
    return note.partition(": ")[0]


def _lost(ranking: Ranking) -> list[str]:
    """How many questions have no answer that could be read, by why."""
    unasked, short = ranking.unasked, ranking.cut_short
    unread = ranking.unknowns - unasked - short
    said = {
        f"{count(unread, 'answer')} of the model could not be read": unread,
        f"{count(unasked, 'question')} {_were(unasked)} not asked": unasked,
        f"{count(short, 'question')} {_were(short)} cut short": short,
    }
    return [words for words, number in said.items() if number]


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def public_reason(reason: str) -> str:
    """Why a ranking is degraded, without a provider's own words, which may quote keys or texts."""
    kind = re.match(r"(\w+): ", reason)
    return f"the language model failed ({kind[1]})" if kind else reason
