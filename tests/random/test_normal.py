"""Normal floats: their tables in decimals, their law and its tail."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from scipy import stats

from sfumato.local.constants import pi
from sfumato.local.reals import stack_height
from sfumato.random import PublicSeed, current, normal
from sfumato.random.normal import FAR, PLACE_BITS, SLOTS, fill, standard_normal, tables
from support.statistics import FALSE_ALARM

DIGITS = Context(prec=50)


def curve(x: float) -> Decimal:
    return (-(Decimal(x) ** 2) / 2).exp()


def width(slab: int) -> float:
    return float(tables().widths[slab]) * 2.0 ** (PLACE_BITS - 1)


def test_the_stack_lies_under_the_curve() -> None:
    found = tables()
    assert found.slabs > 0.99 * SLOTS
    with localcontext(DIGITS):
        area, height = (pi(50) / 2).sqrt() / SLOTS, Decimal(0)
        for slab in range(found.slabs):
            assert slab == 0 or width(slab) < width(slab - 1)
            height += area / Decimal(width(slab))
            assert height < curve(width(slab))
        assert abs(stack_height(found.slabs, 50) - height) < Decimal(10) ** -45
    assert not found.widths[found.slabs :].any()


def test_the_strips_cover_the_rest_without_gaps() -> None:
    found = tables()
    left, step, below, lift = (column.tolist() for column in found.strips.T)
    assert left[0] == 0
    assert (left[-1], step[-1]) == (FAR, 0)
    assert all(
        Fraction(one) + Fraction(wide) == Fraction(next_one)
        for one, wide, next_one in zip(left, step, left[1:], strict=False)
    )
    weights = [int(each) for each in found.weights]
    assert sum(weights) == 2**64
    assert [int(start) for start in found.starts] == [0, *accumulate(weights[:-1])]
    with localcontext(DIGITS):
        areas = [(pi(50) / 2).sqrt() / SLOTS / Decimal(width(slab)) for slab in range(found.slabs)]
        heights = [Decimal(0), *accumulate(areas)]
        for strip, under in enumerate(found.under.tolist()):
            assert under == 0 or width(under - 1) >= left[strip] + step[strip]
            assert under == found.slabs or width(under) <= left[strip]
            envelope = weights[strip] * Decimal(found.mass) / 2**64 / Decimal(step[strip] or 1)
            assert envelope >= (curve(left[strip]) - heights[under]) / (1 if step[strip] else FAR)
            assert abs(float(envelope) - lift[strip]) < 2.0**-52
            assert abs(float(heights[under]) - below[strip]) < 2.0**-42


def test_what_the_trials_keep_is_what_the_slabs_leave() -> None:
    """Accepted trials have the mass that the slabs do not cover: so both parts fit together to the
    whole.
    """
    found = tables()
    with localcontext(DIGITS):
        left_over = (pi(50) / 2).sqrt() * (SLOTS - found.slabs) / SLOTS
    assert normal._draw_rest(1000, current())[0].size == 1000
    tries = 200_000
    words = current().words(3 * tries).reshape(3, -1)
    chosen = np.searchsorted(found.starts, words[0], side="right") - 1
    left, step, below, lift = found.strips[chosen].T
    place = left + step * normal.unit(words[1])
    accepted = (np.exp(-(place**2) / 2) - below > lift * normal.unit(words[2])).sum()
    assert stats.binomtest(int(accepted), tries, float(left_over) / found.mass).pvalue > FALSE_ALARM


def is_normal(draws: np.ndarray) -> bool:
    """Whether draws could be normal, by their distribution and by how many lie beyond edges of the
    tables.
    """
    edges = np.array([*map(width, range(0, tables().slabs, 128)), 0.05, 0.1, 4.0, 4.5])
    expected = 2 * stats.norm.sf(edges)
    far = np.array([(np.abs(draws) > edge).sum() for edge in edges])
    low, high = (
        stats.binom.ppf(5e-10, len(draws), expected),
        stats.binom.isf(5e-10, len(draws), expected),
    )
    return bool(
        ((low <= far) & (far <= high)).all() and stats.kstest(draws, "norm").pvalue > FALSE_ALARM
    )


def test_the_law() -> None:
    draws = standard_normal(2_000_000, current())
    assert is_normal(draws)
    assert abs(np.mean(draws)) < 6.2 / math.sqrt(len(draws))
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 6.2 / math.sqrt(len(draws))
    assert abs(np.corrcoef(np.abs(draws[:-1]), np.abs(draws[1:]))[0, 1]) < 6.2 / math.sqrt(
        len(draws)
    )


def rest_fits(sizes: np.ndarray) -> bool:
    """Whether sizes could come from the rest: shares of the strips, a few hundred at a time, from
    the normal distribution.
    """
    found = tables()
    left, right = found.strips[:, 0], np.append(found.strips[1:, 0], np.inf)
    inner = np.where(found.strips[:, 1] > 0, found.strips[:, 2] * found.strips[:, 1], 0)
    masses = math.sqrt(2 * math.pi) * (stats.norm.sf(left) - stats.norm.sf(right)) - inner
    parts = np.minimum(np.cumsum(masses) / masses.sum() * 100, 99).astype(int)
    expected = np.bincount(parts, masses / masses.sum(), minlength=100) * sizes.size
    seen = np.bincount(parts[np.searchsorted(left, sizes, side="right") - 1], minlength=100)
    some = expected > 25
    return bool(
        ((seen - expected)[some] ** 2 / expected[some]).sum()
        <= stats.chi2.isf(FALSE_ALARM, some.sum())
    )


def test_the_law_of_the_rest() -> None:
    count = 200_000
    assert rest_fits(normal._draw_rest(count, current())[0])
    strips = np.searchsorted(tables().starts, current().words(count), side="right") - 1
    left, step = tables().strips[strips, :2].T
    assert not rest_fits(left + step * normal.unit(current().words(count))), (
        "trials that are never rejected passed"
    )
    assert not rest_fits(normal._draw_rest(count, current())[0] * 0.99)


@pytest.mark.parametrize("twin", ["slabs only", "scale"])
def test_a_near_miss_would_show(twin: str) -> None:
    draws = standard_normal(2_000_000, current())
    if twin == "scale":
        draws *= 1.01
    else:
        words = current().words(draws.size)
        slots = (words % SLOTS).astype(np.int64) % tables().slabs
        draws = tables().widths[slots] * (words.view(np.int64) >> 10)
    assert not is_normal(draws)


def test_nothing_is_drawn_for_nothing() -> None:
    assert fill(np.empty(0), current()).rest.size == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scales_and_dtypes(dtype: str) -> None:
    one = standard_normal(40_000, PublicSeed(1), dtype=dtype)
    other = standard_normal(40_000, PublicSeed(1), scale=3.0, dtype=dtype)
    assert one.dtype == dtype
    np.testing.assert_allclose(3 * one, other, rtol=1e-6)
    assert standard_normal(0, current(), dtype=dtype).shape == (0,)
