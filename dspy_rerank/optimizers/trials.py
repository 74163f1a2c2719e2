"""What a search has tried, and which of it to keep."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

import numpy as np

from ..stats import standard_error
from .crossval import Nested, folds, told

Cost = Literal["tokens", "calls", "rounds", "money"]
COSTS: tuple[Cost, ...] = ("tokens", "calls", "rounds", "money")
FOLDS = 10
ATTRIBUTE = "trial"


@dataclass(frozen=True)
class Trial:
    """One setting that was tried on the validation queries.

    Attributes:
        variant: Name of the prompt, with its reranker's where there are several.
        prior: Weight of the first stage.
        value: Mean of the metric.
        values: The metric for each query.
        tokens: Prompt tokens of one question on average.
        calls: New calls that trying it took; 0 when its answers were known.
        questions: Questions that one ranking takes on average, paid or not.
        rounds: Rounds that one ranking takes on average.
        dollars: US dollars of one question on average; ``None`` where the price is not known.
        degraded: Rankings that are not what the model said, because it failed.
    """

    variant: str
    prior: float
    value: float
    values: tuple[float, ...]
    tokens: float
    calls: int
    questions: float = 1.0
    degraded: int = 0
    rounds: float = 1.0
    dollars: float | None = None

    def price(self, cost: str = "tokens") -> float:
        """What serving one query with this setting takes; infinite where that is not known."""
        if cost == "money":
            return float("inf") if self.dollars is None else self.questions * self.dollars
        if cost == "tokens":
            return self.questions * self.tokens
        return self.questions if cost == "calls" else self.rounds


@dataclass(frozen=True)
class SearchProgress:
    """Where a search stands, for progress bars.

    Attributes:
        done: Settings that were tried to their end.
        trials: How many are to be tried.
        best: Highest mean of the metric so far.
        calls: New calls so far.
        cost: US dollars so far; ``None`` where the price is not known.
    """

    done: int
    trials: int
    best: float
    calls: int
    cost: float | None = None


@dataclass(frozen=True)
class Choice:
    """The setting to keep, and what speaks for it.

    Attributes:
        trial: The setting; the uncompiled one where nothing else is clearly better.
        best: What would be chosen by its values alone.
        nested: What such a choice gains on queries left out of it; ``None`` with fewer than two.
        why: In words.
    """

    trial: Trial
    best: Trial
    nested: Nested | None
    why: str


def choose(trials: Sequence[Trial], cost: str = "tokens", sure: float = 1.0) -> Trial:
    """The cheapest setting within one standard error of the best, and the best among those.

    Settings that differ by less than a tenth in cost are equally cheap; of equally good ones the
    first is taken.
    """
    return trials[_choice(trials, cost, sure, range(len(trials[0].values)))]


def settled(
    trials: Sequence[Trial], cost: str = "tokens", *, sure: float = 1.0, seed: int = 0
) -> Choice:
    """The setting chosen, unless cross-validation does not bear it out.

    The choice is made again with a part of the queries left out, ten times over, and measured on
    those. Where the gain over the uncompiled program is within ``sure`` standard errors of
    nothing, the uncompiled program is kept, but for one that is cheaper and as good.

    Args:
        trials: On the same queries; the uncompiled program first.
        cost: What cheap means.
        sure: Standard errors.
        seed: Of the folds.
    """
    first, best = trials[0], choose(trials, cost, sure)
    if best is first:
        return Choice(first, best, None, "nothing tried was better by more than a standard error")
    checked = _checked(trials, cost, sure, seed)
    if checked is not None and checked.worth_it(sure):
        return Choice(best, best, checked, "its gain holds on queries left out of the choice")
    if best.price(cost) < first.price(cost) * 0.9:
        return Choice(best, best, checked, "it is cheaper, and as good within a standard error")
    return Choice(first, best, checked, "the best setting's gain does not hold on queries left out")


def _checked(trials: Sequence[Trial], cost: str, sure: float, seed: int) -> Nested | None:
    values = np.array([trial.values for trial in trials])
    count = values.shape[1]
    if count < 2:
        return None
    held = np.empty(count)
    parts = folds(count, FOLDS, seed)
    for part in parts:
        kept = [place for place in range(count) if place not in part]
        held[list(part)] = values[_choice(trials, cost, sure, kept), list(part)]
    seen = float(values[_choice(trials, cost, sure, range(count))].mean())
    return told(held, values[0], seen, seed)


def _choice(trials: Sequence[Trial], cost: str, sure: float, places: Sequence[int]) -> int:
    """The place of the setting that is chosen by some of the queries."""
    values = [[trial.values[place] for place in places] for trial in trials]
    means = [fmean(row) for row in values]
    best = means.index(max(means))
    good = [
        row
        for row in range(len(trials))
        if means[best] - means[row] <= sure * _error(values[best], values[row])
    ]
    cheapest = min(trials[row].price(cost) for row in good)
    cheap = [row for row in good if trials[row].price(cost) <= cheapest * 1.1 + 1e-9]
    return max(cheap, key=lambda row: means[row])


def pareto(trials: Sequence[Trial], cost: str = "tokens") -> list[Trial]:
    """The settings that no other is both better and cheaper than, the cheapest first."""
    front: list[Trial] = []
    for trial in sorted(trials, key=lambda t: (t.price(cost), -t.value)):
        if not front or trial.value > front[-1].value + 1e-12:
            front.append(trial)
    return front


def stored(trial: Trial) -> dict[str, Any]:
    """A trial as JSON values, for an Optuna storage."""
    return asdict(trial)


def finished(study: Any) -> list[Trial]:
    """The trials of a study that came to their end, in the order in which they were begun."""
    found = [t.user_attrs[ATTRIBUTE] for t in study.get_trials(deepcopy=False) if _done(t)]
    return [Trial(**{**values, "values": tuple(values["values"])}) for values in found]


def _done(trial: Any) -> bool:
    return trial.state.name == "COMPLETE" and ATTRIBUTE in trial.user_attrs


def _error(a: Sequence[float], b: Sequence[float]) -> float:
    """Standard error of the difference; 0 for one query, which tells nothing."""
    return standard_error([x - y for x, y in zip(a, b, strict=True)]) if len(a) > 1 else 0.0
