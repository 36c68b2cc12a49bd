"""Every broken mechanism is noticed by the detector named beside it, and no sound one is."""

import math

import pytest

from sfumato.audit.likelihoods import pure_loss
from sfumato.audit.runs import NotAdditive, log_mass, neighbours, renyi
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.random import PublicSeed
from support.boxes import lower_bound
from support.broken import (
    BROKEN,
    CLAIM,
    FIRST_DRAWS,
    SOUND,
    UNIVERSE,
    float_laplace,
    integer_noise,
    redraw_until_non_negative,
)
from support.enumeration import high_places, masses
from support.statistics import check_coverage, check_law, check_scale, scaled

EPSILON = float(CLAIM.epsilon)


@pytest.mark.parametrize("twin", SOUND, ids=str)
def test_a_sound_mechanism_spends_what_it_claims(twin):
    loss = pure_loss(twin.mechanism, neighbours(UNIVERSE, twin.unit, others=1), FIRST_DRAWS).loss
    assert loss <= EPSILON * (1 + 1e-9)
    assert loss == pytest.approx(EPSILON * twin.loss)


@pytest.mark.parametrize("twin", BROKEN, ids=str)
def test_a_broken_mechanism_is_noticed(twin):
    pairs = neighbours(UNIVERSE, twin.unit, others=1)
    if twin.detector == "not additive":
        with pytest.raises(NotAdditive):
            pure_loss(twin.mechanism, pairs, FIRST_DRAWS)
        return
    loss = pure_loss(twin.mechanism, pairs, FIRST_DRAWS).loss
    assert loss > EPSILON * (1 + 1e-9)
    assert math.isinf(loss) == (twin.detector == "unreachable")
    if twin.loss is not None:
        assert loss == pytest.approx(EPSILON * twin.loss)


def test_the_retry_loop_spends_more_than_it_claims():
    loss = lower_bound(redraw_until_non_negative, (), ((0.5,),), reach=6, draws=4)
    q = math.exp(-EPSILON)
    truth = EPSILON + math.log((1 - q * q / (1 + q)) / (1 - q / (1 + q)))
    assert EPSILON * 1.01 < loss <= truth


def test_low_order_bits_tell_counts_apart():
    """Of floating-point noise almost no output of a count can come from its neighbour.

    Of integer noise nearly all can.
    """
    for mechanism, shared in ((float_laplace, False), (integer_noise, True)):
        one, other = (masses(mechanism(true), 12, high_places(12))[0] for true in (0, 1))
        common = sum(mass for output, mass in one.items() if output in other)
        assert (common > 0.99) if shared else (common < 0.2)


@pytest.mark.parametrize("check", [check_scale, check_law])
def test_half_the_noise_is_noticed_by_the_statistics_too(check):
    law = DiscreteLaplace(10 / CLAIM.epsilon)
    draws = scaled(law, 1 / CLAIM.epsilon).sample(300_000, PublicSeed("half"))
    with pytest.raises(AssertionError):
        check(draws, law)


def test_half_the_noise_is_noticed_by_its_coverage():
    law = DiscreteLaplace(10 / CLAIM.epsilon)
    k = scaled(law, 1 / CLAIM.epsilon).half_width(0.05)
    hits = int((abs(law.sample(100_000, PublicSeed("intervals"))) <= k).sum())
    with pytest.raises(AssertionError):
        check_coverage(hits, 100_000, 0.95)


def test_the_probabilities_used_add_up():
    law = DiscreteLaplace(1 / CLAIM.epsilon)
    assert math.fsum(math.exp(log_mass(law, x)) for x in range(-60, 61)) == pytest.approx(
        1, abs=1e-12
    )
    assert renyi(law, 1, 60) < EPSILON
