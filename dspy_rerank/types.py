"""The vocabulary: documents, groups, judgments, plans. No language model is known here.

Inside the package a candidate *is* its position ``0..n-1`` in the incoming list. Texts and ids
live at the edges only, so equal texts and equal ids stay different candidates.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

Kind = Literal["pointwise", "pairwise", "setwise", "listwise"]
Status = Literal["ok", "repaired", "none", "unknown"]
Evidence = Literal["auto", "generate", "logprobs", "likelihood", "stated", "function"]
ConfidenceSource = Literal["logprob", "model", "stated", "vote", "none"]
Failure = Literal["transient", "lasting", "fatal"]
"""Whether asking again may help, will not help, or nothing will until a person acts."""

Group = tuple[int, ...]
"""Candidates shown together, by position, in the order in which they are shown."""

Round = Sequence[Group]
"""Groups that may be judged at the same time."""


@dataclass(frozen=True)
class Document:
    """A candidate to be ranked.

    Args:
        text: What the judge reads.
        id: Any identifier of the caller; need not be unique.
        score: Retrieval score, higher is better.
        metadata: Carried along untouched.
        source: The object that the caller passed, when it was not a Document.
    """

    text: str
    id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    source: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Judgment:
    """What a judge concluded about one group of candidates.

    Attributes:
        kind: Which kind of judge answered.
        group: Positions judged, in the order asked.
        status: ``ok``, ``repaired`` (read after dropping or adding ids), ``none`` (the judge says
            that nothing is relevant) or ``unknown`` (no answer could be read; never a guess).
        order: Listwise: every position of the group, best first.
        best: Setwise and pairwise: the chosen position; ``None`` for a tie.
        tie: Pairwise: the two are equally good.
        score: Pointwise: the grade, or the log-likelihood in evidence mode ``likelihood``.
        confidence: In [0, 1]: probability that the answer (``best``, the tie, the first of
            ``order``, the likeliest grade) is right.
        confidence_source: Where the confidence comes from: token log-probabilities, a decision
            ``model``'s own probabilities, its words, votes; ``none`` when there is none.
        evidence: How the answer was taken out of the model.
        probabilities: That each member of the group is the better, the best or the first one,
            in the group's order, where the evidence tells; of a calibrated likelihood, that the
            passage is relevant.
        reason: Why the judgment is unknown, what was repaired, or why there is no confidence.
        raw: The model's answer as it came, for the audit trail.
        asks: How many questions this judgment combines (2 for a swapped pair); 0 where a limit was
            reached before the first.
        tries: How often the question was put until its answer could be read, or given up.
        cut: Members of the group whose end the judge did not see, for want of context.
    """

    kind: Kind
    group: Group
    status: Status
    order: Group | None = None
    best: int | None = None
    tie: bool = False
    score: float | None = None
    confidence: float | None = None
    confidence_source: ConfidenceSource = "none"
    evidence: Evidence = "generate"
    probabilities: tuple[float, ...] | None = None
    reason: str = ""
    raw: str = ""
    asks: int = 1
    tries: int = 1
    cut: Group = ()

    @property
    def known(self) -> bool:
        """Whether the judgment says anything."""
        return self.status != "unknown"

    @property
    def tiers(self) -> tuple[Group, ...]:
        """The group as a weak order, best tier first; empty when nothing is known."""
        if not self.known:
            return ()
        if self.order is not None:
            return tuple((position,) for position in self.order)
        if self.best is not None and not self.tie:
            rest = tuple(p for p in self.group if p != self.best)
            return ((self.best,), rest) if rest else ((self.best,),)
        return (self.group,)

    @property
    def ranked(self) -> Group:
        """The group best first; ties and unknowns keep the order in which they came."""
        return tuple(p for tier in self.tiers for p in tier) or self.group

    def at(self, group: Group) -> "Judgment":
        """This judgment, given over local places ``0..m-1``, said of the positions in ``group``."""
        order = None if self.order is None else tuple(group[i] for i in self.order)
        best = None if self.best is None else group[self.best]
        judged, cut = (tuple(group[i] for i in places) for places in (self.group, self.cut))
        return replace(self, group=judged, order=order, best=best, cut=cut)


class Outcome(NamedTuple):
    """What a plan concludes.

    Attributes:
        order: Positions, best first; all of them unless the plan stopped caring below ``top_k``,
            and then still all of them.
        scores: One score a position (higher is better), ``None`` where the algorithm has none.
    """

    order: tuple[int, ...]
    scores: tuple[float | None, ...] | None = None


Plan = Generator[Round, Sequence[Judgment], Outcome]
"""A sorting algorithm: yields rounds, receives one judgment a group, returns an outcome."""


class Span(NamedTuple):
    """An inclusive range of a count that depends on the answers."""

    lo: int
    hi: int

    def __contains__(self, value: object) -> bool:
        """Whether a count lies in the range."""
        return isinstance(value, int | float) and self.lo <= value <= self.hi

    def __str__(self) -> str:
        return f"{self.lo}-{self.hi}"


Count = int | Span


@dataclass(frozen=True)
class Estimate:
    """What a ranking will cost, before it is asked for.

    Attributes:
        calls: Questions to the judge (a swapped pair is two).
        rounds: Steps that must follow one another; latency is about ``rounds`` times one call.
        passages_read: Passages shown to the judge over all calls.
        prompt_tokens: Only when passages were given; estimated.
    """

    calls: Count
    rounds: Count
    passages_read: Count
    prompt_tokens: Count | None = None


@dataclass(frozen=True)
class Usage:
    """What a ranking has cost.

    Attributes:
        calls: Questions answered by the judge, cached ones included.
        cached_calls: Those answered from a cache, at no price.
        failed_calls: Attempts that ended in an error.
        rounds: Steps that followed one another.
        passages_read: Passages shown over all calls.
        prompt_tokens: Paid tokens read by the model.
        completion_tokens: Paid tokens written by the model.
        cost: US dollars, or ``None`` when any price is unknown; no calls cost 0.
        seconds: Wall-clock time.
        cached_tokens: Those of the prompt tokens that a provider's prompt cache had.
        cost_reason: Why the cost is unknown, if it is.
    """

    calls: int = 0
    cached_calls: int = 0
    failed_calls: int = 0
    rounds: int = 0
    passages_read: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    cached_tokens: int = 0
    cost_reason: str = ""

    def __post_init__(self) -> None:
        if self.cost is None and not (self.calls or self.failed_calls or self.cost_reason):
            object.__setattr__(self, "cost", 0.0)

    @property
    def paid_calls(self) -> int:
        """Calls that no cache answered."""
        return self.calls - self.cached_calls

    def __add__(self, other: "Usage") -> "Usage":
        """Sum of two usages; the cost is known only when both are."""
        costs = (self.cost, other.cost)
        cost = None if None in costs else sum(c for c in costs if c is not None)
        names = (
            "calls", "cached_calls", "failed_calls", "rounds",
            "passages_read", "prompt_tokens", "completion_tokens", "seconds", "cached_tokens",
        )  # fmt: skip
        sums = {n: getattr(self, n) + getattr(other, n) for n in names}
        why = "" if cost is not None else self.cost_reason or other.cost_reason
        return Usage(**sums, cost=cost, cost_reason=why)
