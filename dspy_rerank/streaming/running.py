"""A run over files: every query once, each result safe on disk before it counts, to be resumed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import dspy

from ..budget import NOTHING, Amount, Meter
from ..errors import DataError, InputError, ModelError
from ..options import Options
from ..prices import price_of
from ..ranking import Ranking
from ..sorters import Reranker
from .item import Item
from .journal import Journal
from .rows import (
    AGAIN,
    RANKED,
    STOPPED,
    failed_row,
    ranked_row,
    stopped_row,
)
from .stream import RUN, stream
from .streamed import Streamed
from .summary import Summary

GIVE_UP = 20
"""Queries without a good ranking in a row after which a run ends: then it is not the queries."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run goes.

    Attributes:
        top_k: Of queries that do not bring their own; ``None`` is all.
        in_order: Write results in the order of the input, else as they finish.
        queries_at_once: Rankings under way; ``None`` is as many as questions in flight.
        max_cost: US dollars for the whole file of results, earlier runs included.
        retry_failed: Rank those queries again, and only those, that failed or are degraded.
        give_up: Queries in a row without a good ranking after which the run ends.
        judgments: Keep what the judge said in the rows.
        trec: Whether rankings have to fit into a TREC run; a query that does not fails unasked.
    """

    top_k: int | None = None
    in_order: bool = False
    queries_at_once: int | None = None
    max_cost: float | None = None
    retry_failed: bool = False
    give_up: int = GIVE_UP
    judgments: bool = True
    trec: bool = False


def run(
    items: Iterable[Item],
    reranker: Reranker,
    journal: Journal,
    plan: Plan = Plan(),
    *,
    lm: Any = None,
    report: Callable[[Summary], None] | None = None,
) -> Summary:
    """Rank every query that the journal lacks, and write each to it as it finishes.

    Cut off at any point, by an error, an interrupt or a kill, it can be run again and goes on:
    a query that was written is not ranked again, one that was not is.

    Args:
        items: Queries; read as there is room for them.
        reranker: Ranks them.
        journal: Where results go.
        plan: How.
        lm: The LM; ``None`` is the program's or the configured one.
        report: Called after each query that is safe on disk.

    Raises:
        InputError: Two queries have one id, or money is limited and a price is not known.
        ModelError: `Plan.give_up` queries in a row failed or are degraded; they are written.
        dspy.LMError: A wrong key or configuration.
    """
    return _Run(reranker, journal, plan, lm, report).go(items)


class _Run:
    def __init__(self, reranker: Reranker, journal: Any, plan: Plan, lm: Any, report: Any):
        self._reranker, self._journal, self._plan = reranker, journal, plan
        self._lm, self._report = lm, report
        self._summary = Summary(spent=journal.cost)
        self._begun = self._ended = self._bad = 0
        self._meter = _meter(plan.max_cost, journal.cost)

    def go(self, items: Iterable[Item]) -> Summary:
        if self._meter is not None:
            for predictor in self._reranker.predictors():
                price_of(predictor.lm or self._lm or dspy.settings.lm)
        common = {} if self._plan.top_k is None else {"top_k": self._plan.top_k}
        results = stream(
            self._reranker, self._wanted(items), lm=self._lm, in_order=self._plan.in_order,
            queries_at_once=self._plan.queries_at_once, total=self._meter, **common,
        )  # fmt: skip
        with closing(iter(results)) as each:  # pyright: ignore[reportArgumentType]
            for result in each:
                self._write(result)
        return self._summary

    def _wanted(self, items: Iterable[Item]) -> Iterator[Any]:
        """What of the input has to be ranked, so long as there is money for it."""
        for item in (each.for_run() for each in items) if self._plan.trec else items:
            if not self._has_to_be_ranked(item):
                continue
            if not self._affordable():
                return
            self._begun += 1
            yield item

    def _has_to_be_ranked(self, item: Item) -> bool:
        key = item.key
        known = self._journal.known(item.id)
        if known is not None and known.seen:
            if known.key == key:
                return False
            raise InputError(
                f"the id {item.id!r} belongs to two queries of the input; expected each once"
            )
        self._journal.see(item.id, key)
        same = known is not None and known.key == key
        status = known.status if known is not None and same else ""
        again = status in AGAIN if self._plan.retry_failed else status in ("", STOPPED)
        if status and not again:
            self._summary.skipped += 1
            self._summary.bad_before += status in AGAIN
        return again

    def _affordable(self) -> bool:
        """Whether another query is likely to fit into what is left, by the mean of those before.

        Without it each run would end with a few rankings that are paid for and not finished.
        """
        if self._meter is None or self._plan.max_cost is None:
            return True
        mean = (self._summary.usage.cost or 0.0) / self._ended if self._ended else 0.0
        under_way = self._begun - self._ended + 1
        fits = self._summary.spent + mean * under_way <= self._plan.max_cost
        if not fits or self._summary.spent >= self._plan.max_cost:
            self._stop(f"max_cost={self._plan.max_cost:g} leaves no room for another query")
            return False
        return not self._summary.stopped

    def _stop(self, why: str) -> None:
        self._summary.stopped = self._summary.stopped or why

    def _write(self, result: Streamed) -> None:
        item: Item = result.query
        self._ended += 1
        row = self._row(item, result)
        self._journal.append(row, item.key)
        summary, status = self._summary, row["status"]
        summary.add(status, _reason(row), result.ranking)
        summary.spent = self._journal.cost
        self._bad = 0 if status in (RANKED, STOPPED) else self._bad + 1
        if self._report is not None:
            self._report(summary)
        if self._bad >= self._plan.give_up:
            raise ModelError(
                f"{self._bad} queries in a row have no good ranking, the last because: "
                f"{_reason(row)}. All are written; mend the cause and run again with --retry-failed"
            )

    def _row(self, item: Item, result: Streamed) -> dict[str, Any]:
        ranking, error = result.ranking, result.error
        if ranking is not None and _stopped_by_run(ranking):
            self._stop(ranking.reasons[0])
            return stopped_row(item.id, ranking)
        if ranking is None:
            return failed_row(item.id, item.query, error or DataError("no ranking"))
        return ranked_row(item.id, ranking, judgments=self._plan.judgments)


def _meter(max_cost: float | None, spent: float) -> Meter | None:
    if max_cost is None:
        return None
    meter = Meter(Options(max_cost=max_cost), name=RUN)
    meter.try_hold(NOTHING)
    meter.settle(NOTHING, Amount(cost=spent))
    return meter


def _stopped_by_run(ranking: Ranking) -> bool:
    return ranking.degraded and any(reason.startswith(f"{RUN} ") for reason in ranking.reasons)


def _reason(row: dict[str, Any]) -> str:
    return row["error"]["message"] if "error" in row else "; ".join(row["reasons"])
