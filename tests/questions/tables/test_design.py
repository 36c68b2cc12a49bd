"""Which noise a family gets, and what is published of it."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import CentralMeasure
from sfumato.questions.tables.design import (
    Measurement,
    described,
    design_for,
    estimated,
    published_numbers,
    published_shape,
    tables_of,
)
from sfumato.questions.tables.gaussian_design import Aim
from sfumato.questions.tables.levels import Levels, is_margin
from sfumato.questions.tables.residuals import closure_of
from sfumato.random import PublicSeed


def flat(*sizes: int) -> tuple[Levels, ...]:
    return tuple(map(Levels.flat, sizes))


BOTH = itertools.combinations(range(10), 2)
PAIRS = tuple(tuple(int(at in pair) for at in range(10)) for pair in BOTH)
TABLES = ((1, 1, 0), (0, 1, 1))
AXES = flat(3, 4, 2)
UNEVEN = (Levels(((2,), (3, 1))), Levels.flat(4), Levels.flat(2))


def test_epsilon_and_delta_take_the_better_noise() -> None:
    cost = sf.ApproxDP("1", "1e-6")
    many = design_for(flat(*[2] * 10), PAIRS, Aim(), cost, sf.Unit())
    assert many.has_residuals
    assert many.cost == cost
    one = design_for(AXES, TABLES[:1], Aim(), cost, sf.Unit())
    assert not one.has_residuals
    assert one.cost == sf.PureDP("1")
    assert one.measured == (Measurement((1, 1, 0), DiscreteLaplace(1)),)
    no_delta = design_for(AXES, TABLES, Aim(), sf.ApproxDP("1", 0), sf.Unit())
    assert no_delta.cost == sf.PureDP("1")
    hardly_any = sf.ApproxDP("0.000001", "1e-20")
    assert not design_for(AXES, TABLES, Aim(), hardly_any, sf.Unit()).has_residuals


def test_levels_of_unequal_size_take_either_noise() -> None:
    pure = design_for(UNEVEN, ((2, 1, 0),), Aim(), sf.PureDP("1"), sf.Unit())
    assert not pure.has_residuals
    cost = sf.ApproxDP("1", "1e-6")
    assert not design_for(UNEVEN, ((2, 1, 0),), Aim(), cost, sf.Unit()).has_residuals
    pairs = (UNEVEN[0], *flat(*[2] * 9))
    either = design_for(
        pairs, tuple((2 * one[0], *one[1:]) for one in PAIRS), Aim(), cost, sf.Unit()
    )
    assert either.has_residuals


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_laplace_noise_spends_epsilon(rows: int, neighbours: str) -> None:
    unit = sf.Unit(rows, neighbours)
    design = design_for(AXES, TABLES, Aim(), sf.PureDP("0.7"), unit)
    spent = sum(unit.counts_l1 / each.law.scale for each in design.measured)
    assert spent == sf.PureDP("0.7").epsilon


@pytest.mark.parametrize("axes", [AXES, UNEVEN], ids=["flat", "uneven"])
@pytest.mark.parametrize("cost", [sf.PureDP("1"), sf.ZCDP("0.1")], ids=str)
def test_what_is_published_determines_the_tables_up_to_their_noise(
    axes: tuple[Levels, ...], cost: CentralMeasure
) -> None:
    if axes is UNEVEN and isinstance(cost, sf.PureDP):
        return
    tables = TABLES if axes is AXES else ((2, 1, 0), (1, 0, 1))
    design = design_for(axes, tables, Aim(), cost, sf.Unit())
    rng = np.random.default_rng(2)
    whole = rng.integers(0, 50, [axis.cells(axis.depth) for axis in axes])

    def table(margin: tuple[int, ...]) -> np.ndarray:
        found = whole
        for along, (axis, level) in enumerate(zip(axes, margin, strict=True)):
            found = axis.summed(found, along, axis.depth, level)
        return found

    counts = {each.margin: table(each.margin) for each in design.measured}
    published = design.measure(counts, PublicSeed(1))
    assert published.dtype == np.int64
    assert len(published) == published_numbers(axes, design.measured)
    exact = tuple(
        Measurement(each.margin, DiscreteGaussian(Fraction(1, 10**20)), each.whole)
        for each in design.measured
    )
    quiet = type(design)(axes, design.tables, exact, cost).measure(counts, PublicSeed(1))
    residuals = estimated(axes, exact, quiet)
    for margin in tables:
        found = design.family.estimate(margin, residuals)
        assert np.allclose(found, table(margin), rtol=0, atol=1e-9)
    shapes = [numbers.shape for numbers in tables_of(axes, exact, quiet)]
    assert shapes == [design.family.nesting.shape(each.margin) for each in exact]
    assert all(
        np.prod(published_shape(axes, each)) <= np.prod(design.family.nesting.shape(each.margin))
        for each in exact
    )


def test_noise_in_words() -> None:
    laplace = (Measurement((1, 0), DiscreteLaplace(2)),)
    assert described(laplace) == "discrete Laplace noise of scale 2 to each count of a table"
    gaussian = (
        Measurement((1, 0), DiscreteGaussian(4), whole=False),
        Measurement((1, 1), DiscreteGaussian(9), whole=False),
    )
    assert described(gaussian) == (
        "discrete Gaussian noise of sigma between 2 and 3 to each count of 2 tables, "
        "of which only residuals are kept"
    )


def gains(
    sizes: tuple[int, ...],
    tables: tuple,
    cost: CentralMeasure,
    asked: tuple | None = None,
    by_cell: bool = False,
) -> tuple[float, float]:
    """How much lower variances are than those of separate tables at the same cost, on average.

    First over the tables, then over all of their margins; a margin of separate tables is added up
    from the one with the fewest cells. ``asked`` are the tables that are asked for, if not these.
    ``by_cell`` weighs them by their cells, and takes the average over cells.
    """
    axes = flat(*sizes)
    asked = asked or tables
    cells = [
        float(np.prod([axes[at].cells(level) for at, level in enumerate(one)])) for one in asked
    ]
    aim = Aim(tuple(cells)) if by_cell else Aim()
    family = design_for(axes, asked, aim, cost, sf.Unit(12)).family
    number = len(tables)
    separate = 144 * number / (2 * 0.125) if isinstance(cost, sf.ZCDP) else 2 * (12 * number) ** 2
    found = []
    for margins in (tables, closure_of(tables)):
        alone = [
            min(
                separate * family.nesting.cells(table) / family.nesting.cells(margin)
                for table in tables
                if is_margin(margin, table)
            )
            for margin in margins
        ]
        weights = [family.nesting.cells(margin) if by_cell else 1 for margin in margins]
        found.append(
            np.dot(alone, weights) / np.dot(list(map(family.variance_of, margins)), weights)
        )
    return found[0], found[1]


def test_the_family_of_flights_is_more_accurate_than_separate_tables() -> None:
    """Carrier x hour, carrier x dest, origin x hour, month x carrier, and origin."""
    sizes = (16, 24, 105, 3, 12)
    chosen = ((0, 1), (0, 2), (1, 3), (0, 4), (3,))
    tables = tuple(tuple(int(at in table) for at in range(5)) for table in chosen)
    of_tables, of_margins = gains(sizes, tables, sf.ZCDP("0.125"))
    assert of_tables > 1.03
    assert 1.9 < of_margins < 2.1
    of_tables, of_margins = gains(sizes, tables, sf.PureDP(1))
    assert of_tables > 1.04
    assert 1.2 < of_margins < 1.3
    # What the page says of other aims.
    margins = tuple(closure_of(tables))
    assert 1.65 < gains(sizes, tables, sf.ZCDP("0.125"), by_cell=True)[0] < 1.75
    assert 2.15 < gains(sizes, tables, sf.PureDP(1), by_cell=True)[0] < 2.3
    assert 3.35 < gains(sizes, tables, sf.ZCDP("0.125"), margins)[1] < 3.5
    assert 1.95 < gains(sizes, tables, sf.PureDP(1), margins)[1] < 2.1


def test_ten_binary_axes_in_pairs() -> None:
    of_tables, of_margins = gains((2,) * 10, PAIRS, sf.ZCDP("0.125"))
    assert of_tables > 4.85
    assert of_margins > 5.8
    of_tables, of_margins = gains((2,) * 10, PAIRS, sf.PureDP(1))
    assert of_tables > 3.2
    assert of_margins > 4.4
