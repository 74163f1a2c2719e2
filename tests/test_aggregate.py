"""Scores from judgments, checked against choix and by hand."""

from itertools import permutations

import choix
import numpy as np
import pytest

from dspy_rerank._luce import choices_of, luce, stiffness
from dspy_rerank.aggregate import (
    borda,
    bradley_terry,
    copeland,
    descending,
    plackett_luce,
    plackett_luce_posterior,
    plackett_luce_spread,
    rrf,
    wins,
)
from dspy_rerank.errors import InputError

PENALTY = 0.3
PRIOR_SD = (2 * PENALTY) ** -0.5
"""choix adds ``penalty * strength**2``; a Gaussian prior adds ``strength**2 / (2 sd**2)``."""


def strict(*orders):
    return [[(item,) for item in order] for order in orders]


def random_orders(seed, n=9, count=25):
    rng = np.random.default_rng(seed)
    return [tuple(map(int, rng.permutation(n)[: rng.integers(2, n)])) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_plackett_luce_agrees_with_choix_on_rankings(seed):
    orders = random_orders(seed)
    expected = choix.opt_rankings(9, orders, alpha=PENALTY)
    ours = plackett_luce(strict(*orders), 9, prior_sd=PRIOR_SD)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_plackett_luce_agrees_with_choix_on_best_only_answers(seed):
    orders = random_orders(seed)
    expected = choix.opt_top1(9, [(o[0], o[1:]) for o in orders], alpha=PENALTY)
    ours = plackett_luce([[(o[0],), o[1:]] for o in orders], 9, prior_sd=PRIOR_SD)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_bradley_terry_agrees_with_choix_on_pairs(seed):
    pairs = [order[:2] for order in random_orders(seed)]
    expected = choix.opt_pairwise(9, pairs, alpha=PENALTY)
    ours = bradley_terry(wins(strict(*pairs), 9), prior_sd=PRIOR_SD)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_pairs_with_ties_are_the_same_to_both_models():
    orders = [[(0, 1)], [(0,), (1,)], [(1,), (2,)], [(2, 0)], [(2,), (0,)]]
    np.testing.assert_allclose(
        plackett_luce(orders, 3, prior_sd=2.0), bradley_terry(wins(orders, 3), prior_sd=2.0)
    )


def test_weight_two_is_the_order_given_twice():
    orders = strict((0, 1, 2), (2, 0, 1))
    np.testing.assert_allclose(
        plackett_luce(orders, 3, weights=[2, 1]), plackett_luce([orders[0], *orders], 3), atol=1e-8
    )


def test_a_cycle_and_a_tie_and_nothing_at_all_separate_nobody():
    for orders in (strict((0, 1), (1, 2), (2, 0)), [[(0, 1, 2)]], [[]], []):
        np.testing.assert_allclose(plackett_luce(orders, 3), 0.0, atol=1e-8)


def test_a_middle_tie_is_close_to_the_mean_of_its_arrangements():
    tied = plackett_luce([[(0,), (1, 2, 3), (4,)]], 5)
    arranged = strict(*((0, *middle, 4) for middle in permutations((1, 2, 3))))
    mean = plackett_luce(arranged, 5, weights=[1 / 6] * 6)
    np.testing.assert_allclose(tied, mean, atol=0.05)
    assert np.ptp(tied[1:4]) < 1e-8


def test_without_evidence_the_posterior_is_the_prior():
    posterior = plackett_luce_posterior([], 3, prior_mean=[1, 0, -1], prior_sd=2.0)
    np.testing.assert_allclose(posterior.mean, [1, 0, -1])
    np.testing.assert_allclose(posterior.sd, 2.0)


def test_uncertainty_falls_where_evidence_came_in():
    sd = plackett_luce_posterior(strict((0, 1), (1, 0), (0, 1)), 3).sd
    assert sd[0] < sd[2]
    assert sd[2] == pytest.approx(1.0)


@pytest.mark.parametrize("prior_sd", [1e-3, 1.0, 1e3])
def test_the_fit_is_a_stationary_point_for_any_prior(prior_sd):
    orders = strict(*[(0, 1, 2, 3)] * 40, (3, 0))
    strengths = plackett_luce(orders, 5, prior_sd=prior_sd)
    assert np.isfinite(strengths).all()
    assert strengths[0] > strengths[1] > strengths[2]


@pytest.mark.parametrize("prior_sd", [0.0, -1.0, np.inf, np.nan])
def test_a_prior_that_is_no_distribution_is_refused(prior_sd):
    with pytest.raises(InputError, match="prior_sd"):
        plackett_luce([], 2, prior_sd=prior_sd)


def test_no_items_give_no_scores():
    assert plackett_luce([], 0).shape == (0,)
    assert plackett_luce_posterior([], 0).sd.shape == (0,)
    assert borda(wins([], 0)).shape == (0,)


def test_wins_count_points_and_share_ties():
    won = wins([[(0,), (1, 2)], [(0, 1)]], 3)
    assert won.tolist() == [[0, 1.5, 1], [0.5, 0, 0.5], [0, 0.5, 0]]


def test_borda_is_the_share_of_points_and_one_half_for_strangers():
    assert borda(wins(strict((0, 1, 2)), 4)).tolist() == [1.0, 0.5, 0.0, 0.5]


def test_copeland_counts_majorities():
    assert copeland(wins(strict((0, 1, 2), (0, 2, 1), (0, 1, 2)), 3)).tolist() == [2, 0, -2]


def test_rrf_by_hand():
    scores = rrf([[(0,), (1, 2)], [(2,)]], 4, k=60)
    np.testing.assert_allclose(scores, [1 / 61, 1 / 62.5, 1 / 62.5 + 1 / 61, 0])


def test_descending_keeps_the_order_of_ties():
    assert descending([0.1, 0.3, 0.3 + 1e-12, 0.2]) == (1, 2, 3, 0)


@pytest.mark.parametrize("seed", range(5))
def test_orders_without_ties_are_read_as_among_others_with_ties(seed):
    """Orders without ties are added up in a shorter way, which a tie of strangers rules out."""
    orders = strict(*random_orders(seed))
    among_ties = plackett_luce([*orders, [(9, 10)]], 11)
    np.testing.assert_allclose(plackett_luce(orders, 9), among_ties[:9], atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_where_the_search_starts_changes_nothing(seed):
    orders = strict(*random_orders(seed))
    start = np.random.default_rng(seed).normal(size=9)
    np.testing.assert_allclose(
        plackett_luce(orders, 9, start=start), plackett_luce(orders, 9), atol=1e-8
    )
    best = plackett_luce(orders, 9)
    np.testing.assert_allclose(plackett_luce(orders, 9, start=best), best, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_spread_given_the_others_is_less_than_that_of_the_posterior(seed):
    orders = strict(*random_orders(seed))
    posterior = plackett_luce_posterior(orders, 9)
    assert all(plackett_luce_spread(orders, posterior.mean) < posterior.sd)


def test_the_spread_of_one_pair_is_that_of_a_logistic_choice():
    """Curvature a quarter at equal strengths, and the prior's precision."""
    spread = plackett_luce_spread([[(0,), (1,)]], [0.0, 0.0, 5.0], prior_sd=2.0)
    np.testing.assert_allclose(spread, [2**0.5, 2**0.5, 2.0])


def test_curvature_of_ties_is_that_of_the_gradient():
    """Against differences of the gradient, with tiers of several and weights."""
    orders = [[(0, 1), (2,), (3, 4)], [(4, 2), (0,)], [(1, 3, 0)], [(2,), (0, 1, 3, 4)]]
    choices = choices_of(orders, [1.0, 0.5, 2.0, 1.5], 5)
    point, step = np.array([0.3, -0.4, 0.1, 0.8, -0.2]), 1e-6
    slopes = [
        (luce(choices, point + step * axis).slope - luce(choices, point - step * axis).slope)
        / (-2 * step)
        for axis in np.eye(5)
    ]
    bends = [luce(choices, point).bend(axis) for axis in np.eye(5)]
    np.testing.assert_allclose(bends, slopes, atol=1e-7)
    np.testing.assert_allclose(stiffness(choices, point), np.diag(bends), atol=1e-12)
