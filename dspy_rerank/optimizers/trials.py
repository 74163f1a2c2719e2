"""What a search has tried, and which of it to keep."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..stats import standard_error


@dataclass(frozen=True)
class Trial:
    """One setting that was tried on the validation queries.

    Attributes:
        variant: Name of the prompt.
        prior: Weight of the first stage.
        value: Mean of the metric.
        values: The metric for each query.
        tokens: Prompt tokens of one question on average; the price of serving this setting.
        calls: New calls that trying it took; 0 when its answers were known.
    """

    variant: str
    prior: float
    value: float
    values: tuple[float, ...]
    tokens: float
    calls: int


@dataclass(frozen=True)
class SearchProgress:
    """Where a search stands, for progress bars."""

    done: int
    trials: int
    best: float
    calls: int


def choose(trials: Sequence[Trial]) -> Trial:
    """The cheapest setting within one standard error of the best, and the best among those.

    Settings that differ by less than a tenth in tokens are equally cheap.
    """
    best = max(trials, key=lambda trial: trial.value)
    good = [t for t in trials if best.value - t.value <= _error(best, t)]
    cheapest = min(t.tokens for t in good)
    cheap = [t for t in good if t.tokens <= cheapest * 1.1 + 1e-9]
    return max(cheap, key=lambda trial: trial.value)


def _error(a: Trial, b: Trial) -> float:
    return standard_error([x - y for x, y in zip(a.values, b.values, strict=True)])
