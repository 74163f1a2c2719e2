"""Adds up what every query of a data set will take."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..documents import as_documents, check_query
from ..errors import RerankError
from ..prices import Price
from ..reading.labels import estimate_tokens
from ..sorters import Reranker
from ..sorters.estimates import fitted
from ..streaming import Item
from .answers import answer_tokens
from .measuring import Measured
from .prompts import Prompts
from .ranges import NONE, Range

COUNTING = Range(0.6, 1.1)
"""Tokens of providers for one estimated: the estimate counts words generously."""
MEASURED = Range(0.85, 1.15)
"""The same once a call has shown the ratio."""
WRITTEN = Range(0.5, 2.0)
"""Answers, as a multiple of one that was measured."""
CACHED_FROM = 1024
"""Tokens from which on providers keep the beginning of a prompt."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run will take.

    Attributes:
        queries: That have to be ranked.
        unusable: Queries that cannot be ranked, such as blank ones.
        candidates: The fewest and most of a query.
        calls: Questions to the judge. Re-asks of unreadable answers, retries after errors and
            answers from a cache are not in it.
        rounds: Steps that follow one another, of the query with the most.
        passages_read: Over all calls.
        prompt_tokens: Of all calls.
        completion_tokens: Of all answers.
        repeated_tokens: Of the prompts: what every one of them begins with, where that is long
            enough for a provider's prompt cache.
    """

    queries: int = 0
    unusable: int = 0
    candidates: Range = NONE
    calls: Range = NONE
    rounds: Range = NONE
    passages_read: Range = NONE
    prompt_tokens: Range = NONE
    completion_tokens: Range = NONE
    repeated_tokens: Range = NONE

    @property
    def tokens(self) -> Range:
        """Read and written."""
        return self.prompt_tokens + self.completion_tokens

    def cost(self, price: Price, *, cached: bool = False) -> Range:
        """US dollars; ``cached``: a provider's prompt cache has what prompts begin with."""
        read, again = self.prompt_tokens, self.repeated_tokens if cached else NONE
        written = self.completion_tokens
        return Range(
            price.of(round(read.lo), round(written.lo), round(again.lo)),
            price.of(round(read.hi), round(written.hi), round(again.hi)),
        )


def forecast(
    items: Iterable[Item],
    reranker: Reranker,
    *,
    top_k: int | None = None,
    measured: Measured | None = None,
) -> Forecast:
    """What ranking all of these would take; nothing is asked.

    Numbers of calls are exact, or lie between bounds where they depend on the answers. Tokens are
    estimated: `COUNTING` or, with ``measured``, `MEASURED` are the bounds.

    Args:
        items: Queries with their candidates; read one at a time.
        reranker: Ranks them.
        top_k: Of queries that do not bring their own.
        measured: One call, by :func:`measure`.
    """
    return _Adding(reranker, top_k, measured).over(items)


class _Adding:
    def __init__(self, reranker: Reranker, top_k: int | None, measured: Measured | None):
        self._reranker, self._top_k, self._measured = reranker, top_k, measured
        self._prompts = Prompts(reranker, top_k)
        self._whole = reranker.settings["max_passage_tokens"]
        ratio = None if measured is None else measured.ratio
        self._counting = COUNTING if ratio is None else MEASURED * ratio

    def over(self, items: Iterable[Item]) -> Forecast:
        total, fewest, most = Forecast(), float("inf"), 0.0
        for item in items:
            one = self._one(item)
            if one.queries:
                fewest, most = min(fewest, one.candidates.lo), max(most, one.candidates.hi)
            total = _summed(total, one)
        return replace(total, candidates=Range(fewest, most) if total.queries else NONE)

    def _one(self, item: Item) -> Forecast:
        try:
            call = item.call()
            check_query(item.query)
            documents = as_documents(call["documents"])
            top_k = item.top_k if item.top_k is not None else self._top_k
            asked = self._reranker.estimate(len(documents), top_k, query=item.query)
            texts, _ = fitted([d.text for d in documents], self._whole)
            return self._priced(item, asked, texts)
        except RerankError:
            return Forecast(unusable=1)

    def _priced(self, item: Item, asked: Any, texts: Any) -> Forecast:
        calls, reads = Range.of(asked.calls), Range.of(asked.passages_read)
        n = len(texts)
        mean = sum(map(estimate_tokens, texts)) / n if n else 0.0
        own = self._prompts.tokens(n, item.inputs) if calls.hi else 0
        each = own + estimate_tokens(item.query)
        same = self._prompts.beginning
        return Forecast(
            queries=1,
            candidates=Range(n, n),
            calls=calls,
            rounds=Range.of(asked.rounds),
            passages_read=reads,
            prompt_tokens=(calls * each + reads * mean) * self._counting,
            completion_tokens=self._written(calls, reads),
            repeated_tokens=calls * (same if same >= CACHED_FROM else 0) * self._counting,
        )

    def _written(self, calls: Range, reads: Range) -> Range:
        shown = reads.hi / calls.hi if calls.hi else 0.0
        known = self._measured
        if known is not None and known.completion_tokens:
            scale = shown / known.passages if self._reranker.judge.kind == "listwise" else 1.0
            return calls * (WRITTEN * (known.completion_tokens * scale))
        return calls * answer_tokens(self._reranker.judge, shown)


def _summed(a: Forecast, b: Forecast) -> Forecast:
    return Forecast(
        a.queries + b.queries,
        a.unusable + b.unusable,
        a.candidates,
        a.calls + b.calls,
        a.rounds.most(b.rounds),
        a.passages_read + b.passages_read,
        a.prompt_tokens + b.prompt_tokens,
        a.completion_tokens + b.completion_tokens,
        a.repeated_tokens + b.repeated_tokens,
    )
