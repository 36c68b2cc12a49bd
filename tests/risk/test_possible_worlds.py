"""What a guarantee lets anybody believe of possible worlds: attained, and never exceeded."""

import itertools
import math

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.risk import Gaussian, Risk, Worlds, gaussian_for


def counts(records, size):
    """Every world as the counts of a histogram in which each record has a cell of its own."""
    rows = np.zeros((math.comb(records, size), records))
    for row, world in zip(rows, itertools.combinations(range(records), size), strict=True):
        row[list(world)] = 1
    return rows


@pytest.mark.parametrize(("records", "size"), [(2, 1), (4, 3), (6, 3), (7, 2), (7, 5)])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "3"])
def test_a_histogram_attains_the_bound(records, size, epsilon):
    """Laplace noise of scale 1 / epsilon.

    The worst output is the exact one, where world j has the likelihood e^(-epsilon L1).
    """
    found = counts(records, size)
    apart = np.abs(found[:, None] - found).sum(axis=2)
    attained = (1 / np.exp(-float(epsilon) * apart).sum(axis=1)).max()
    assert Worlds(records, size).belief(PureDP(epsilon), 0) == pytest.approx(attained, rel=1e-12)
    replaced = (1 / np.exp(-float(epsilon) * apart / 2).sum(axis=1)).max()
    assert Worlds(records, size, 1).belief(PureDP(epsilon), 0) == pytest.approx(replaced, rel=1e-12)


@pytest.mark.parametrize(
    "promise", [ZCDP("0.02"), ZCDP("0.3"), ApproxDP(1, "1e-3"), ApproxDP("0.2", "1e-5")], ids=str
)
def test_noise_that_keeps_a_promise_exceeds_the_bound_as_seldom_as_said(promise):
    exceeded, found, rng = 0.05, counts(5, 4), np.random.default_rng(3)
    sigma = (
        math.sqrt(1 / (2 * float(promise.rho)))
        if isinstance(promise, ZCDP)
        else gaussian_for(epsilon=promise.epsilon, delta=promise.delta).sigma
    )
    seen = found[0] + rng.normal(0, sigma, (20_000, 5))
    logs = -((seen[:, None] - found) ** 2).sum(axis=2) / (2 * sigma**2)
    beliefs = 1 / np.exp(logs - logs[:, :1]).sum(axis=1)
    limit = Worlds(5, 4).belief(promise, exceeded)
    assert (beliefs > limit).mean() <= exceeded
    assert limit < 1


def test_noise_is_read_at_the_distance_of_an_exchange():
    """One exchange of records moves the counts by 2 in L1 and sqrt 2 in L2."""
    assert Worlds(4, 3).belief(Gaussian(10.0), 0.01, "1/1") >= Worlds(4, 3, 1).belief(
        Gaussian(10.0), 0.01
    )


def test_large_universes():
    assert Worlds(10**7, 10**7 - 1).belief(PureDP(1), 0) == pytest.approx(
        1 / (1 + (10**7 - 1) * math.exp(-2))
    )
    half = Worlds(10**6, 5 * 10**5).belief(PureDP("0.1"), 0)
    assert half == 0 or half < 1e-300
    goal = Risk(disclosure="1/3")
    assert goal.within(goal.pure(worlds=Worlds(10**7, 10**7 - 1)), worlds=Worlds(10**7, 10**7 - 1))


def test_refusals():
    for wrong in ((4, 4), (4, 0), (4.0, 3), (True, 1), (10**16, 1)):
        with pytest.raises(UsageError):
            Worlds(*wrong)
    with pytest.raises(UsageError):
        Worlds(4, 3, 3)
