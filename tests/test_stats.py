"""Intervals and tests say what they claim to say."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dspy_rerank import stats
from dspy_rerank.errors import InputError

RNG = np.random.default_rng(7)
BASE = RNG.uniform(size=40)


def test_a_clear_gain_is_significant_and_its_reverse_a_loss():
    better = BASE + 0.1 + RNG.normal(0, 0.05, 40)
    gain = stats.paired_interval(better, BASE)
    loss = stats.paired_interval(BASE, better)
    assert gain.significant
    assert gain.lo > 0
    assert gain.p is not None
    assert gain.p < 0.01
    assert loss.hi < 0
    assert loss.significant
    assert gain.mean == pytest.approx(-loss.mean)


def test_noise_is_not_a_gain():
    interval = stats.paired_interval(BASE + RNG.normal(0.01, 0.3, 40), BASE)
    assert interval.lo < interval.mean < interval.hi
    assert not interval.significant


def test_equal_rankers_differ_by_nothing():
    interval = stats.paired_interval(BASE, BASE)
    assert (interval.mean, interval.lo, interval.hi, interval.p) == (0, 0, 0, 1)
    assert not interval.significant


@pytest.mark.parametrize("values", [[], [0.5]])
def test_fewer_than_two_queries_say_nothing(values):
    interval = stats.paired_interval(values, [0.0] * len(values))
    assert (interval.lo, interval.hi) == (-math.inf, math.inf)
    assert math.isnan(interval.error)
    assert not interval.significant
    assert interval.n == len(values)


def test_no_queries_have_no_mean():
    assert math.isnan(stats.bootstrap_mean([]).mean)
    assert stats.paired_interval([], []).p is None


def test_a_handful_of_queries_cannot_be_significant():
    """The bootstrap interval lies above 0, but luck would do the same once in eight times."""
    interval = stats.paired_interval([0.5, 0.6, 0.7, 0.8], [0.0] * 4)
    assert interval.lo > 0
    assert interval.p == pytest.approx(2 / 16)
    assert not interval.significant


def test_the_interval_agrees_with_scipy():
    ours = stats.bootstrap_mean(BASE, level=0.9)
    theirs = scipy_stats.bootstrap(
        (BASE,), np.mean, confidence_level=0.9, method="percentile", n_resamples=10_000
    )
    assert ours.lo == pytest.approx(theirs.confidence_interval.low, abs=0.01)
    assert ours.hi == pytest.approx(theirs.confidence_interval.high, abs=0.01)
    assert ours.error == pytest.approx(scipy_stats.sem(BASE))
    assert stats.standard_error(BASE) == ours.error


def test_the_interval_holds_the_truth_as_often_as_it_says():
    samples = np.random.default_rng(1).normal(0.5, 0.2, (100, 50))
    intervals = [stats.bootstrap_mean(sample) for sample in samples]
    assert 85 <= sum(interval.lo <= 0.5 <= interval.hi for interval in intervals) <= 100


def test_a_seed_fixes_the_interval():
    first, again, other = (stats.bootstrap_mean(BASE, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_many_queries_are_resampled_in_blocks():
    values = np.random.default_rng(0).uniform(size=500)
    interval = stats.paired_interval(values, values[::-1])
    assert interval.lo < 0 < interval.hi


def test_randomisation_is_exact_for_few_queries():
    differences = [0.3, 0.1, -0.05, 0.2]
    flips = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=4)
    ]
    expected = np.mean([flip >= abs(sum(differences)) - 1e-12 for flip in flips])
    assert stats.randomisation_test(differences, [0] * 4) == expected


def test_random_flips_agree_with_scipy():
    other = BASE + RNG.normal(0.02, 0.1, 40)
    theirs = scipy_stats.permutation_test(
        (other - BASE,), np.mean, permutation_type="samples", n_resamples=10_000
    )
    assert stats.randomisation_test(other, BASE) == pytest.approx(theirs.pvalue, abs=0.03)


def test_sign_test_is_the_binomial_test_without_ties():
    a, b = [1, 1, 1, 1, 0, 0.5], [0, 0, 0, 0, 1, 0.5]
    assert stats.sign_test(a, b) == pytest.approx(scipy_stats.binomtest(4, 5).pvalue)
    assert stats.sign_test([], []) == 1.0


def test_values_by_query_id_are_paired_by_id():
    a, b = {"q1": 1.0, "q2": 0.0}, {"q2": 0.0, "q1": 1.0}
    assert stats.paired_interval(a, b).mean == 0
    with pytest.raises(InputError, match="q3"):
        stats.paired_interval(a, {"q1": 1.0, "q3": 0.0})


@pytest.mark.parametrize(
    ("a", "b"), [([1.0], [1.0, 2.0]), ([math.nan], [0.0]), ({"q": 1.0}, [1.0])]
)
def test_what_cannot_be_paired_is_refused(a, b):
    with pytest.raises(InputError, match="Expected"):
        stats.paired_interval(a, b)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_is_between_0_and_1(level):
    with pytest.raises(InputError, match="level"):
        stats.bootstrap_mean([1.0, 2.0], level=level)


def test_an_interval_reads_well():
    assert str(stats.Interval(0.1, -0.05, 0.2, 21, 0.01, p=0.04)) == (
        "+0.1000 [-0.0500, +0.2000] (n=21, p=0.040)"
    )
