"""Settings of a reranker measured on labelled queries, with what is known of their price."""

from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ..errors import ModelError
from ..evaluation import Row, rank_all, scored
from ..sorters.estimates import bounds
from ..stats import standard_error
from ..types import Usage
from .arms import Arm
from .counting import SpentError, counting
from .ledger import Bill
from .serving import by_price
from .trials import Trial
from .variants import tokens_of


@dataclass(frozen=True)
class Price:
    """Of one question, on average.

    Attributes:
        tokens: Of the prompt.
        dollars: ``None`` where the price is not known.
    """

    tokens: float
    dollars: float | None


@dataclass
class Measuring:
    """Measures settings on one set of queries.

    Attributes:
        arms: All there is to choose among.
        data: Labelled queries.
        metric: What is measured.
        prices: Of the prompts that have been tried.
        usage: So far.
    """

    arms: dict[str, Arm]
    data: Any
    metric: str
    prices: dict[str, Price] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @property
    def bill(self) -> Bill:
        """Paid so far, by this process; calls that failed count, too."""
        return Bill(_made(self.usage), self.usage.cost)

    def since(self, before: Usage) -> Bill:
        """What was paid since the account stood so."""
        start = before.cost if before.calls else 0.0
        unknown = start is None or self.usage.cost is None
        dollars = None if unknown else (self.usage.cost or 0.0) - (start or 0.0)
        return Bill(_made(self.usage) - _made(before), dollars)

    def remember(self, trial: Trial) -> None:
        """Take over what another process has found out about a prompt's price."""
        self.prices.setdefault(trial.variant, Price(trial.tokens, trial.dollars))

    def most(self, variant: str) -> Bill:
        """What a setting costs at most, by estimate.

        Dollars are those of the dearest token seen so far, for as many as there may be.
        """
        reranker = self.arms[variant].reranker
        if variant in self.prices and reranker.PRIOR_IS_FREE:
            return Bill()
        told = [
            reranker.estimate(len(q.documents), query=q.text, documents=q.documents)
            for q in self.data
        ]
        calls = sum(bounds(each.calls)[1] for each in told)
        tokens = sum(bounds(each.prompt_tokens or 0)[1] for each in told)
        return Bill(calls, self._dearest() * (tokens + calls * self._demo_tokens(variant)))

    def _demo_tokens(self, variant: str) -> float:
        return float(sum(map(tokens_of, self.arms[variant].variant.demos)))

    def _dearest(self) -> float:
        """US dollars of a prompt token, its share of the answer included."""
        known = [p.dollars / p.tokens for p in self.prices.values() if p.dollars and p.tokens]
        return max(known, default=0.0)

    def within(
        self, most: int | None, variant: str, prior: float, known: list[Trial]
    ) -> Trial | None:
        """The trial, or nothing where it is outrun or would take more new calls than ``most``."""
        before = self.usage
        with counting(most, free=True) as counter:
            try:
                return self.unless_outrun(variant, prior, known)
            except BaseException as end:  # such as an interrupt: what was paid is paid
                self.usage = before + counter.bill
                if isinstance(end, SpentError):
                    return None
                raise

    def unless_outrun(self, variant: str, prior: float, known: list[Trial]) -> Trial | None:
        """The trial, or nothing when a new prompt is clearly behind after half of the queries.

        Compared with the best on the same queries; behind by more than a standard error is clear.
        """
        half = len(self.data) // 2
        if variant not in self.prices and known and half >= 3:
            best = max(known, key=lambda trial: trial.value).values[:half]
            values = self._row(variant, prior, self.data[:half]).values[self.metric]
            lead = [a - b for a, b in zip(best, values, strict=True)]
            if fmean(lead) > standard_error(lead):
                return None
        return self.trial(variant, prior)

    def _row(self, variant: str, prior: float, data: Any) -> Row:
        rankings = rank_all(self.arms[variant].setting(prior), data)
        row = scored(variant, rankings, data, [self.metric])
        self.usage = self.usage + row.usage
        return row

    def trial(self, variant: str, prior: float) -> Trial:
        """A setting on all queries.

        Raises:
            ModelError: The model failed on all of them.
        """
        row = self._row(variant, prior, self.data)
        if row.degraded and row.degraded == len(self.data):
            reason = next(r for ranking in row.rankings for r in ranking.reasons)
            raise ModelError(f"the model failed on all {row.degraded} queries: {reason}")
        used, values, count = row.usage, row.values[self.metric], len(self.data)
        price = self.prices.setdefault(variant, self._price(variant, used))
        return Trial(
            variant, prior, fmean(values), values, price.tokens, used.paid_calls,
            used.calls / count, row.degraded, used.rounds / count, price.dollars,
        )  # fmt: skip

    def _price(self, variant: str, used: Usage) -> Price:
        """Of a question; by estimate when all answers were known, such as from a killed run."""
        if used.paid_calls:
            dollars = None if used.cost is None else used.cost / used.paid_calls
            return Price(used.prompt_tokens / used.paid_calls, dollars)
        reranker, query = self.arms[variant].setting(0.0), self.data[0]
        told = reranker.estimate(len(query.documents), query=query.text, documents=query.documents)
        tokens = bounds(told.prompt_tokens or 0)[1] / max(1, bounds(told.calls)[1])
        dearest = self._dearest()
        return Price(tokens, dearest * tokens if dearest else by_price(reranker, told))


def _made(used: Usage) -> int:
    """Calls that reached a model, whether they were answered or failed."""
    return used.paid_calls + used.failed_calls
