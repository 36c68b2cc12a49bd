"""The sampled bound is near the true loss, rarely above it, and detects half the noise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.audit.runs import Published, of_question
from sfumato.audit.sampled import (
    bound,
    clopper_pearson,
    epsilon_gain,
    outputs,
    rho_gain,
    sampled_loss,
)
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, count_law
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from support import statistics
from support.broken import CLAIM, DOMAIN, QUESTION, _with_scale

ONE, NONE = ((0.5,),), ()
EPSILON = float(CLAIM.epsilon)


def noisy(law, shift, runs, bits):
    """Outputs on a data set whose true counts are ``shift``."""
    return np.stack([law.sample(runs, bits) + s for s in shift], axis=1)


def test_laplace_counts_are_caught_spending_most_of_their_claim():
    mechanism = of_question(QUESTION, DOMAIN, Unit(), CLAIM)
    found = sampled_loss(mechanism, ONE, NONE, runs=8000, noise=PublicSeed("share"))
    assert 0.75 * EPSILON < found <= EPSILON


def test_half_the_noise_exceeds_the_claim():
    broken = _with_scale(1 / (2 * CLAIM.epsilon))
    assert sampled_loss(broken, ONE, NONE, runs=4000, noise=PublicSeed("half")) > 1.3 * EPSILON


def test_the_private_keystream_is_the_default():
    mechanism = of_question(QUESTION, DOMAIN, Unit(), CLAIM)
    assert sampled_loss(mechanism, ONE, NONE, runs=2000) > 0.3 * EPSILON


def test_gaussian_counts_keep_their_claim_and_with_half_the_noise_exceed_it():
    rho = 0.5
    law = count_law(ZCDP("0.5"), Unit())
    bits = PublicSeed("gauss")
    sound = bound(noisy(law, (1, 0), 8000, bits), noisy(law, (0, 0), 8000, bits), gain=rho_gain)
    assert 0.3 * rho < sound <= rho
    half = DiscreteGaussian(law.sigma_squared / 4)
    broken = bound(noisy(half, (1, 0), 8000, bits), noisy(half, (0, 0), 8000, bits), gain=rho_gain)
    assert broken > rho


@pytest.mark.parametrize("shift", [(1, 0, 0), (1, -1, 0)], ids=["one cell", "two cells"])
@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_false_alarms_are_as_rare_as_stated(shift, measure):
    """The mechanism spends exactly its claim, so that any excess is a false alarm.

    At 90% confidence, so that false alarms are frequent enough to be counted.
    """
    if measure == "epsilon":
        l1 = sum(abs(moved) for moved in shift)
        law, gain, claim = DiscreteLaplace(Fraction(l1)), epsilon_gain(), 1.0
    else:
        l2_squared = sum(moved * moved for moved in shift)
        law, gain, claim = DiscreteGaussian(Fraction(l2_squared)), rho_gain, 0.5
    bits = PublicSeed(f"alarms {shift}")
    zero = (0,) * len(shift)
    trials = 300
    found = [
        bound(noisy(law, shift, 600, bits), noisy(law, zero, 600, bits), gain=gain, confidence=0.9)
        for _ in range(trials)
    ]
    alarms = sum(loss > claim for loss in found)
    assert alarms <= stats.binom.isf(1e-9, trials, 0.1)
    assert np.mean(found) > 0.2 * claim


def test_nothing_is_found_where_nothing_differs():
    bits = PublicSeed("same")
    law = DiscreteLaplace(Fraction(2))
    assert bound(noisy(law, (0, 0), 2000, bits), noisy(law, (0, 0), 2000, bits)) < 0.05


def test_delta_forgives_rare_events():
    """One output in fifty gives a person away: delta = 0 needs a large epsilon, 0.05 none."""
    rng = np.random.default_rng(5)
    one, other = (rng.integers(0, 2, (20_000, 1)) for _ in range(2))
    one[rng.random(20_000) < 0.02] = 9
    assert bound(one, other) > 2
    assert bound(one, other, gain=epsilon_gain(0.05)) < 0.05


def test_outputs_of_different_lengths():
    assert outputs([(5,), (6, 7)]).tolist() == [[1, 5, 0], [2, 6, 7]]
    grows = lambda rows, noise: Published((0,) * (1 + len(rows)), None)  # noqa: E731
    assert sampled_loss(grows, ONE, NONE, runs=2000) > 4


def test_rho_of_two_coins():
    p, q = 0.73, 0.27
    closest = max(
        math.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1) / a
        for a in np.linspace(1.05, 64, 2000).tolist()
    )
    assert float(rho_gain(np.array(p), np.array(q))) == pytest.approx(closest, rel=0.01)
    assert float(rho_gain(np.array(p), np.array(q))) <= closest
    assert rho_gain(np.array([0.2, 0.0, 1.0]), np.array([0.4, 1.0, 1.0])).tolist() == pytest.approx(
        [0, 0, 0]
    )


@pytest.mark.parametrize("hits", [0, 1, 37, 99, 100])
def test_clopper_pearson(hits):
    low, high = clopper_pearson(np.array(hits), 100, 0.025)
    assert (float(low), float(high)) == pytest.approx(statistics.clopper_pearson(hits, 100))
