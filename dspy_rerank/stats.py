"""Is a difference real? Paired intervals and tests over queries.

Two rankers are compared on the same queries, so what counts are the differences query by query.
The mean difference would have come out otherwise on other queries; the interval says by how much.
**A gain whose interval holds 0 is not a gain**, however large its mean: on some 20 queries two
equal rankers easily differ by 1.5 points of nDCG.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

Values: TypeAlias = Sequence[float] | Mapping[str, float]
"""One value a query, in a fixed order or by query id."""

RESAMPLES = 10_000
EXACT_UP_TO = 13
"""With so few queries all sign flips are enumerated: no more than the resamples, and exact."""
BLOCK = 2_000_000
"""Numbers drawn at a time, which bounds the memory."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over queries and where it may lie.

    Attributes:
        mean: The mean that was seen; ``nan`` without queries.
        lo: Lower end; minus infinity with fewer than two queries, which say nothing of spread.
        hi: Upper end.
        n: Number of queries.
        error: Standard error of the mean; ``nan`` with fewer than two queries.
        level: Of 100 such intervals, drawn on other queries, about so many hold the true mean.
        p: Paired only: how often equal rankers would differ by at least so much.
    """

    mean: float
    lo: float
    hi: float
    n: int
    error: float
    level: float = 0.95
    p: float | None = None

    @property
    def significant(self) -> bool:
        """Whether 0 lies outside, and the test, where there is one, agrees at the same level.

        Both are asked because the bootstrap is too sure of itself with a handful of queries.
        """
        outside = self.lo > 0 or self.hi < 0
        return outside and (self.p is None or self.p <= 1 - self.level + 1e-12)

    def __str__(self) -> str:
        small = self.p is not None and self.p < 0.001
        p = "" if self.p is None else ", p<0.001" if small else f", p={self.p:.3f}"
        return f"{self.mean:+.4f} [{self.lo:+.4f}, {self.hi:+.4f}] (n={self.n}{p})"


def paired_interval(a: Values, b: Values, *, level: float = 0.95, seed: int = 0) -> Interval:
    """The mean of ``a - b`` over queries, with a bootstrap interval and a randomisation test.

    Args:
        a: Values of the ranker that may be better, by position or query id.
        b: Values of the other, for the same queries.
        level: Confidence level, in (0, 1).
        seed: Fixes the resamples, so that the same values give the same interval.

    Raises:
        InputError: The two are not about the same queries, or a value is not finite.
    """
    differences = _differences(a, b)
    p = randomisation_test(a, b, seed=seed) if len(differences) else None
    return _interval(differences, level, seed, p)


def bootstrap_mean(values: Values, *, level: float = 0.95, seed: int = 0) -> Interval:
    """The mean over queries with a percentile bootstrap interval of 10,000 resamples.

    Overlap of two such intervals does not show that two rankers are alike: pair them instead.
    """
    return _interval(_array(values), level, seed, None)


def standard_error(values: Values) -> float:
    """Standard error of the mean: about how far the mean moves on other queries.

    ``nan`` with fewer than two values.
    """
    array = _array(values)
    return float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else math.nan


def randomisation_test(a: Values, b: Values, *, seed: int = 0) -> float:
    """Two-sided p by flipping signs: how often equal rankers would differ at least this much.

    If the rankers were equal, it would be chance which of the two had the higher value on a
    query. Exact for up to 13 queries, by 10,000 random flips above.
    """
    differences = _differences(a, b)
    seen = abs(differences.sum()) - 1e-12
    if len(differences) <= EXACT_UP_TO:
        return float(np.mean(np.abs(_every_sign(len(differences)) @ differences) >= seen))
    rng = np.random.default_rng(seed)
    extreme = sum(
        int(np.sum(np.abs(rng.choice((-1.0, 1.0), shape) @ differences) >= seen))
        for shape in _shapes(len(differences))
    )
    return (1 + extreme) / (1 + RESAMPLES)


def sign_test(a: Values, b: Values) -> float:
    """Two-sided exact p from wins and losses alone; ties say nothing and are left out."""
    differences = _differences(a, b)
    wins, losses = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    n = wins + losses
    tail = sum(math.comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2**n)


def _interval(array: NDArray[np.float64], level: float, seed: int, p: float | None) -> Interval:
    """Mean, percentile interval and standard error of an array."""
    if not 0 < level < 1:
        raise InputError(f"Expected a level between 0 and 1, as 0.95, got {level!r}.")
    mean = float(array.mean()) if len(array) else math.nan
    if len(array) < 2:
        return Interval(mean, -math.inf, math.inf, len(array), math.nan, level, p)
    tail = (1 - level) / 2
    lo, hi = np.quantile(_resampled_means(array, seed), (tail, 1 - tail))
    error = float(array.std(ddof=1) / math.sqrt(len(array)))
    return Interval(mean, float(lo), float(hi), len(array), error, level, p)


def _resampled_means(array: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Means of resamples of the queries, drawn with replacement."""
    rng = np.random.default_rng(seed)
    n = len(array)
    blocks = [array[rng.integers(0, n, shape)].mean(axis=1) for shape in _shapes(n)]
    return np.concatenate(blocks)


def _shapes(n: int) -> Iterator[tuple[int, int]]:
    """Shapes of the blocks in which all resamples of ``n`` queries are drawn."""
    rows = max(1, BLOCK // n)
    for start in range(0, RESAMPLES, rows):
        yield min(rows, RESAMPLES - start), n


def _every_sign(n: int) -> NDArray[np.int64]:
    """All ``2**n`` ways to choose signs, one a row."""
    return 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def _differences(a: Values, b: Values) -> NDArray[np.float64]:
    """``a - b``, query by query."""
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise InputError("Expected both by query id or both in order, got one of each.")
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            odd = sorted(a.keys() ^ b.keys())[:5]
            raise InputError(f"Expected the same queries on both sides; only one has {odd}.")
        b = {query_id: b[query_id] for query_id in a}
    if len(a) != len(b):
        raise InputError(f"Expected one value a query on both sides, got {len(a)} and {len(b)}.")
    return _array(a) - _array(b)


def _array(values: Values) -> NDArray[np.float64]:
    """The values as an array."""
    plain = list(values.values() if isinstance(values, Mapping) else values)
    array = np.asarray(plain, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InputError("Expected finite values, got nan or infinity for a query.")
    return array
