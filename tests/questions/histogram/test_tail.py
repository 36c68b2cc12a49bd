"""The estimate of what lies beyond each bin follows the counts, and the curve where noise wins."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.questions.histogram.statistics import (
    ABOVE,
    BENDS,
    DETECTED,
    REWEIGHTINGS,
    SLOPES,
    TABLES_AT_ONCE,
    numbers_beyond,
)

BINS = 20
POSITIONS = np.arange(BINS) * np.log(2)
WIDTHS = np.ones(BINS)


def masses(slope: float, bend: float, total: float) -> np.ndarray:
    """Numbers in bins that follow one of the curves from the third bin on."""
    u = POSITIONS - POSITIONS[2]
    found = np.where(u >= 0, np.exp(slope * u - bend * u**2), 0.0)
    return total * found / found.sum()


def sums(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]


@pytest.mark.parametrize(("slope", "bend"), [(-1.5, 0.0), (0.5, 0.5), (-1.0, 5.0)])
def test_far_sums_are_nearer_to_the_truth_than_their_noise(slope: float, bend: float) -> None:
    true = masses(slope, bend, 5000)
    noise = np.random.default_rng(1).laplace(0, 10, (200, BINS))
    deviation = 10 * np.sqrt(2)
    found = numbers_beyond(true + noise, POSITIONS, WIDTHS, deviation)
    far = sums(true) < deviation
    noisy = np.maximum(sums(true + noise), 0)
    squared_error = ((found - sums(true)) ** 2)[:, far].mean()
    assert squared_error < 0.2 * ((noisy - sums(true)) ** 2)[:, far].mean()


def test_sums_that_stand_out_are_kept_but_for_steps_upwards() -> None:
    counts = masses(-0.5, 0.0, 100_000)
    found = numbers_beyond(counts, POSITIONS, WIDTHS, 1.0)
    stand_out = sums(counts) > DETECTED * np.sqrt(np.arange(BINS, 0, -1))
    assert found[stand_out] == pytest.approx(sums(counts)[stand_out])
    counts[5] = -200.0
    pooled = numbers_beyond(counts, POSITIONS, WIDTHS, 1.0)
    assert pooled[5] == pooled[6]
    assert sums(counts)[5] < pooled[5] < sums(counts)[6]


def test_estimates_never_rise_never_fall_below_0_and_stay_near_the_noisy_sums() -> None:
    noisy = np.random.default_rng(2).laplace(0, 10, (300, BINS))
    noisy += masses(0.0, 0.1, 1000)
    found = numbers_beyond(noisy, POSITIONS, WIDTHS, 14.0)
    assert (found >= 0).all()
    assert (np.diff(found, axis=1) <= 0).all()
    deviations = 14.0 * np.sqrt(np.arange(BINS, 0, -1))
    hidden = sums(noisy) <= DETECTED * deviations
    after_the_first = np.logical_or.accumulate(hidden, axis=1)
    most = np.maximum(sums(noisy) + ABOVE * deviations, 0)
    assert (found <= most)[after_the_first].all()


def test_tables_do_not_depend_on_each_other() -> None:
    noisy = np.random.default_rng(3).laplace(0, 10, (40, BINS)) + masses(-1.0, 0.0, 500)
    together = numbers_beyond(noisy, POSITIONS, WIDTHS, 14.0)
    alone = [numbers_beyond(each, POSITIONS, WIDTHS, 14.0) for each in noisy]
    assert together == pytest.approx(np.stack(alone))


def nearest_curve(counts: np.ndarray, u: np.ndarray, deviation: float) -> np.ndarray:
    """The curve nearest to the counts of one table, tried one by one."""
    weights = np.ones(len(u))
    for _ in range(REWEIGHTINGS + 1):
        best, most = np.zeros(len(u)), -1.0
        for bend in BENDS:
            for slope in SLOPES:
                exponents = slope * u - bend * u**2
                curve = np.exp(exponents - exponents.max())
                product = max((weights * counts * curve).sum(), 0)
                square = (weights * curve**2).sum()
                if product**2 / square > most * (1 + 1e-12):
                    best, most = product / square * curve, product**2 / square
        weights = 1 / np.sqrt(1 + ((counts - best) / deviation) ** 2)
    return best


def test_far_sums_are_those_of_the_nearest_of_all_curves() -> None:
    n_tables = TABLES_AT_ONCE + 2  # more than are compared with the curves at a time
    counts = np.tile(masses(-1.0, 0.05, 500)[2:], (n_tables, 1))
    # The sums from the first bin on and from the second one tell where the fit begins.
    counts[:, 0] = 2000
    counts[:, 1:] += np.random.default_rng(4).laplace(0, 10, (n_tables, BINS - 3))
    u = POSITIONS[: BINS - 3]
    found = numbers_beyond(counts, POSITIONS[2:], WIDTHS[2:], 14.0)
    deviations = 14.0 * np.sqrt(np.arange(BINS - 2, 0, -1))
    for table in (0, n_tables - 1):
        noisy = sums(counts[table])
        hidden = int((noisy <= DETECTED * deviations).argmax())
        curve = sums(nearest_curve(counts[table, 1:], u, 14.0))
        most = np.maximum(noisy + ABOVE * deviations, 0)[1:]
        expected = np.minimum.accumulate(np.minimum(curve, most)[hidden - 1 :])
        assert found[table, hidden:] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bins", [1, 2, 3, 5])
def test_few_bins_and_empty_tables_are_no_obstacle(bins: int) -> None:
    positions = np.arange(float(bins))
    for noisy in (np.zeros(bins), -np.ones(bins), np.full(bins, 1e6)):
        found = numbers_beyond(noisy, positions, np.ones(bins), 1.0)
        assert found.shape == (bins,)
        assert np.isfinite(found).all()
