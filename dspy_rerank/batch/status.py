"""How far a job is, in numbers."""

from dataclasses import asdict, dataclass
from typing import Any

from .store import Store


@dataclass(frozen=True, slots=True)
class Status:
    """How far a job is.

    Attributes:
        state: The folder.
        queries: Of the job.
        ranked: Queries with a ranking.
        degraded: Those of them whose ranking is degraded.
        rounds: Rounds that were sent so far.
        batches: Batches that were sent so far.
        unsent: Batches that the provider is not known to have; the next collect sends them.
        open: Batches that the provider works on.
        requests: That were put so far.
        answered: With an answer.
        lost: Of the answered: those that the provider failed or refused to the end.
        prompt_tokens: That answers took.
        completion_tokens: That answers took.
        cost: US dollars that answers cost, at the price for batches; ``None`` where not known.
        worst: US dollars that requests without an answer cost at most, where a price is known.
        max_cost: The limit for the job, if it has one.
        ready: Batches that are over and can be collected, where the provider was asked.
        done_there: Requests in open batches that are done, where the provider was asked.
    """

    state: str
    queries: int
    ranked: int
    degraded: int
    rounds: int
    batches: int
    unsent: int
    open: int
    requests: int
    answered: int
    lost: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    worst: float
    max_cost: float | None
    ready: int | None = None
    done_there: int | None = None

    @property
    def finished(self) -> bool:
        """Whether every query has its ranking."""
        return self.ranked == self.queries

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "finished": self.finished}

    def __str__(self) -> str:
        money = "cost unknown" if self.cost is None else f"${self.cost:.4f}"
        tokens = self.prompt_tokens + self.completion_tokens
        lines = [
            f"{self.ranked} of {self.queries} queries ranked"
            + (f", {self.degraded} of them degraded" if self.degraded else ""),
            f"round {self.rounds}; batches: {self.batches} sent, "
            + (f"{self.unsent} not sent yet, " if self.unsent else "")
            + f"{self.open} open"
            + (f" ({self.ready} ready)" if self.ready is not None else ""),
            f"{self.answered} of {self.requests} requests answered"
            + (f", {self.lost} lost" if self.lost else "")
            + (f"; {self.done_there} more are done" if self.done_there else ""),
            f"{tokens} tokens, {money}",
        ]
        if self.worst:
            lines[-1] += f", at most ${self.worst:.4f} more for open requests"
        return "\n".join(lines)


def status_of(store: Store, folder: str, max_cost: float | None) -> Status:
    """The numbers of a job's state."""
    queries, ranked, degraded = store.count(
        "SELECT count(*), count(result), coalesce(sum(degraded), 0) FROM queries"
    )
    rounds, batches, open_ = store.count(
        "SELECT coalesce(max(round), 0), count(*), coalesce(sum(state = 'open'), 0) FROM batches "
        "WHERE state NOT IN ('planned', 'creating')"
    )
    (unsent,) = store.count("SELECT count(*) FROM batches WHERE state IN ('planned', 'creating')")
    requests, answered, lost, read, written = store.count(
        "SELECT count(*), count(answer), coalesce(sum(status != 200), 0), "
        "coalesce(sum(read), 0), coalesce(sum(written), 0) FROM requests"
    )
    cost, unpriced = store.count(
        "SELECT coalesce(sum(cost), 0.0), coalesce(sum(read > 0 AND cost IS NULL), 0) FROM requests"
    )
    (worst,) = store.count("SELECT coalesce(sum(worst), 0.0) FROM requests WHERE answer IS NULL")
    return Status(
        folder, queries, ranked, degraded, rounds, batches, unsent, open_, requests, answered, lost,
        read, written, None if unpriced else cost, worst, max_cost,
    )  # fmt: skip
