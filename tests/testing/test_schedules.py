"""Latencies with a tail."""

import pytest

from dspy_rerank.testing import tailed


def test_median_and_tail_are_as_asked():
    latency = tailed(0.1, 2.0, seed=1)
    drawn = sorted(latency(number) for number in range(4000))
    assert drawn[2000] == pytest.approx(0.1, rel=0.15)
    assert drawn[3960] == pytest.approx(2.0, rel=0.3)


def test_the_same_number_takes_the_same_time():
    assert tailed(0.1, 2.0, seed=1)(7) == tailed(0.1, 2.0, seed=1)(7) != tailed(0.1, 2.0)(7)


@pytest.mark.parametrize(("median", "p99"), [(0, 1), (2, 1), (-1, 1)])
def test_latencies_that_cannot_be_are_refused(median, p99):
    with pytest.raises(ValueError, match="median"):
        tailed(median, p99)
