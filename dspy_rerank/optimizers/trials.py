"""What a search has tried, and which of it to keep."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..stats import standard_error

COSTS = ("tokens", "calls")
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

    def price(self, cost: str = "tokens") -> float:
        """What serving one query with this setting takes: prompt tokens, or calls."""
        return self.questions if cost == "calls" else self.questions * self.tokens


@dataclass(frozen=True)
class SearchProgress:
    """Where a search stands, for progress bars."""

    done: int
    trials: int
    best: float
    calls: int


def choose(trials: Sequence[Trial], cost: str = "tokens") -> Trial:
    """The cheapest setting within one standard error of the best, and the best among those.

    Settings that differ by less than a tenth in cost are equally cheap.
    """
    best = max(trials, key=lambda trial: trial.value)
    good = [t for t in trials if best.value - t.value <= _error(best, t)]
    cheapest = min(t.price(cost) for t in good)
    cheap = [t for t in good if t.price(cost) <= cheapest * 1.1 + 1e-9]
    return max(cheap, key=lambda trial: trial.value)


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


def _error(a: Trial, b: Trial) -> float:
    return standard_error([x - y for x, y in zip(a.values, b.values, strict=True)])
