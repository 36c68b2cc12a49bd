"""Draws of counts have the law that fits the noisy counts, and depend on nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.questions.histogram import posterior
from sfumato.questions.histogram.posterior import Prior, drawn_tables

PRIOR = Prior(begins=0.15, ends=0.15, resumes=0.05, scale=0.5, drift=-0.3, spread=0.05, draws=99)
LAPLACE = DiscreteLaplace(Fraction(20))
GAUSSIAN = DiscreteGaussian(Fraction(400))
BINS = 12


def drawn(noisy: np.ndarray, law: Law, unity: int = 1, prior: Prior = PRIOR) -> np.ndarray:
    """All draws of some tables: float64 ndarray of shape (tables, draws, bins)."""
    parts = list(drawn_tables(noisy, law, unity, prior))
    assert np.concatenate([tables for tables, _ in parts]).tolist() == list(range(len(noisy)))
    return np.concatenate([counts for _, counts in parts])


def from_the_prior(n_tables: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of a chain with levels up to 10^4, as the prior says it."""
    transitions = np.cumsum(posterior._transitions(PRIOR), axis=1)
    ends = posterior._level_ends()
    counts = np.zeros((n_tables, BINS))
    states = np.zeros(n_tables, np.int64)
    for at in range(BINS):
        states = (transitions[states] < rng.random((n_tables, 1))).sum(axis=1)
        levels = np.maximum(states - 2, 0)
        within = rng.uniform(ends[levels], ends[levels + 1])
        counts[:, at] = np.where(states >= 2, within, 0)
    return counts


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_truths_of_the_prior_have_every_rank_among_their_draws(law: Law, scale: float) -> None:
    """Calibration by simulation (Talts et al. 2018), which a quarter of the noise must fail."""
    rng = np.random.default_rng(1)
    n_tables = 1000
    true = from_the_prior(n_tables, rng)
    size = np.sqrt(law.variance) * scale
    noise = rng.laplace(0, size / np.sqrt(2), true.shape)
    if law is GAUSSIAN:
        noise = rng.normal(0, size, true.shape)
    draws = drawn(true + noise, law)
    ranks = []
    for sums in (lambda counts: counts.sum(axis=-1), lambda counts: counts[..., 6:].sum(axis=-1)):
        below = (sums(draws) < sums(true)[:, None]).sum(axis=1)
        equal = (sums(draws) == sums(true)[:, None]).sum(axis=1)
        ranks.append((below + rng.random(n_tables) * (equal + 1)) / (draws.shape[1] + 1))
    # Of uniform ranks the share within .1 of either end is .2, within 5 standard deviations.
    shares = [np.mean(np.abs(rank - 0.5) > 0.4) for rank in ranks]
    reach = 5 * np.sqrt(0.2 * 0.8 / n_tables)
    if scale == 1:
        assert np.abs(np.array(shares) - 0.2).max() < reach
    else:
        assert min(shares) < 0.2 - reach


def test_far_bins_where_nobody_is_are_empty_in_most_draws() -> None:
    true = np.array([[0, 40, 400, 900, 500, 90, 0, 0, 0, 0, 0, 0]])
    noise = np.random.default_rng(2).laplace(0, 20, (50, BINS))
    draws = drawn(true + noise, LAPLACE)
    assert (draws[:, :, 8:] == 0).mean() > 0.8
    beyond = np.median(draws[:, :, 6:].sum(axis=2), axis=1)
    noisy = np.abs((true + noise)[:, 6:].sum(axis=1))
    assert beyond.mean() < 0.5 * noisy.mean()
    # Within bins that stand out, draws follow the noise.
    spread = draws[:, :, 3].std(axis=1)
    assert 20 < spread.mean() < 36


def test_a_table_has_the_draws_that_it_has_alone_and_always_the_same() -> None:
    noisy = np.random.default_rng(3).laplace(0, 20, (70, BINS)) + np.geomspace(1000, 1, BINS)
    together = drawn(noisy, GAUSSIAN)
    assert np.array_equal(together, drawn(noisy, GAUSSIAN))
    for table in (0, 69):
        assert drawn(noisy[table : table + 1], GAUSSIAN)[0] == pytest.approx(together[table])


def test_counts_are_measured_in_unity() -> None:
    noisy = np.array([[10.0, 500, 300, 20, 0]])
    fine = DiscreteLaplace(LAPLACE.scale * 1000)
    assert drawn(1000 * noisy, fine, 1000) == pytest.approx(drawn(noisy, LAPLACE))


def test_of_many_tables_fewer_draws_are_made() -> None:
    noisy = np.zeros((2000, 3))
    assert drawn(noisy, LAPLACE).shape == (2000, posterior.FEWEST, 3)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("count", [-1e12, -1e3, 0.0, 1e9, 1e18])
def test_counts_that_cannot_be_are_no_obstacle(law: Law, count: float) -> None:
    for noisy in (np.full((1, 4), count), np.array([[50.0, count, 3.0, 0.0]])):
        draws = drawn(noisy, law)
        assert np.isfinite(draws).all()
        assert (draws >= 0).all()
