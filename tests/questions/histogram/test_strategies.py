"""Sums of bins that answer every range: what one person moves, and how small the error is."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, count_law
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Limits, Unit
from sfumato.questions.histogram.strategies import (
    RangeMatrix,
    RangeTree,
    Strategy,
    column_of,
    mean_variance,
    squared_length,
    strategy_for,
    tree_levels,
)

PURE = sf.PureDP("0.1")
RHO = sf.ZCDP("0.005")


def matrix_of(strategy: Strategy) -> Array:
    """A, a row for each answer."""
    return strategy.sums(np.eye(strategy.cells, dtype=np.int64)).T


def chosen(cells: int, cost: CentralMeasure) -> Strategy:
    found = strategy_for(cells, Unit(), cost)
    assert found is not None
    return found


def errors(strategy: Strategy) -> Array:
    """The covariances of the estimates of the bins."""
    variances = np.array([law.variance for law in strategy.laws])[strategy.which]
    influence = strategy.influence(np.eye(strategy.cells))
    return np.asarray((influence * variances) @ influence.T)


def ranges(cells: int) -> Array:
    """The mean of w w', over the weights w of all ranges."""
    at = np.arange(cells)
    both = (np.minimum.outer(at, at) + 1) * (cells - np.maximum.outer(at, at))
    return np.asarray(both / (cells * (cells + 1) / 2))


def totals(cells: int) -> Array:
    """The mean of w w', over the weights w of all running totals."""
    lower = np.tril(np.ones((cells, cells)))
    return np.asarray(lower.T @ lower / cells)


@pytest.mark.parametrize("cells", [48, 64, 100])
@pytest.mark.parametrize("cost", [PURE, RHO], ids=str)
def test_estimates_are_unbiased(cells: int, cost: CentralMeasure) -> None:
    strategy = chosen(cells, cost)
    counts = np.random.default_rng(1).integers(0, 1000, (3, cells))
    assert strategy.sums(counts) == pytest.approx(counts @ matrix_of(strategy).T)
    assert strategy.estimates(strategy.sums(counts)) == pytest.approx(counts, abs=1e-6)
    weights = np.random.default_rng(2).normal(size=(4, cells))
    noisy = np.random.default_rng(3).integers(-99, 99, (1, len(strategy.which)))
    direct = strategy.estimates(noisy)[0] @ weights.T
    assert strategy.influence(weights) @ noisy[0] == pytest.approx(direct, abs=1e-6)


@pytest.mark.parametrize("cost", [PURE, RHO], ids=str)
def test_estimates_are_the_best_linear_ones(cost: CentralMeasure) -> None:
    strategy = chosen(60, cost)
    matrix = matrix_of(strategy).astype(float)
    scales = [
        2 * float(law.scale) ** 2 if isinstance(law, DiscreteLaplace) else float(law.sigma_squared)
        for law in strategy.laws
    ]
    weighted = matrix.T / np.array(scales)[strategy.which]
    best = np.linalg.solve(weighted @ matrix, weighted)
    assert strategy.influence(np.eye(60)) == pytest.approx(best, rel=1e-6, abs=1e-12)
    assert strategy.of_bins == pytest.approx(best, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("cells", [48, 64, 599, 600, 1024])
def test_the_shares_of_a_tree_add_up_to_the_cost(cells: int) -> None:
    unit = Unit(rows_per_person=3, neighbours="replace")
    strategy = strategy_for(cells, unit, PURE)
    assert isinstance(strategy, RangeTree)
    spent = []
    for law in strategy.laws:
        assert isinstance(law, DiscreteLaplace)
        spent.append(unit.counts_l1 / law.scale)
    assert sum(spent) == PURE.epsilon
    assert strategy.lengths[0] == 1
    # A row is in one block of each level.
    assert (np.abs(matrix_of(strategy)).sum(axis=0) == len(strategy.lengths)).all()


@pytest.mark.parametrize("rows", [1, 3])
def test_no_person_moves_the_matrix_farther_than_charged(rows: int) -> None:
    cells = 5
    columns = matrix_of(RangeMatrix(cells, DiscreteGaussian(Fraction(9)))).T
    units = [
        (Unit(rows_per_person=rows), rows, rows),
        (Unit(3, person="id", limits=Limits(rows_per_cell=1, cells_per_person=rows)), 1, rows),
        (Unit(4, person="id", limits=Limits(rows_per_cell=2, cells_per_person=2)), 2, 2),
    ]
    for unit, per_bin, bins in units:
        persons = product(range(per_bin + 1), repeat=cells)
        found = [
            int((np.array(person) @ columns) @ (np.array(person) @ columns))
            for person in persons
            if sum(person) <= unit.rows_per_person and np.count_nonzero(person) <= bins
        ]
        charged = squared_length(cells, unit, 16)
        assert max(found) <= charged
        # It is reached, or nearly: the first bins have the longest columns.
        assert max(found) >= 0.8 * charged
        replaced = msgspec.structs.replace(unit, neighbours="replace")
        assert squared_length(cells, replaced, 16) == 2 * charged


def test_a_matrix_with_a_shorter_first_column_would_be_caught() -> None:
    cells = 64
    column = column_of(cells, 16).astype(object)
    charged = squared_length(cells, Unit(), 16)
    assert charged == sum(int(each) ** 2 for each in column)
    assert sum(int(each) ** 2 for each in column[:-1]) < charged
    assert (np.diff(column_of(cells, 16)) <= 0).all()
    assert column[0] == 2**16
    assert strategy_for(cells, Unit(), RHO) == RangeMatrix(
        cells, DiscreteGaussian(Fraction(charged) / (2 * RHO.rho))
    )


@pytest.mark.parametrize("cells", [2, 8, 40, 48, 64, 200])
@pytest.mark.parametrize("cost", [sf.PureDP(8), sf.PureDP(1), PURE, sf.ZCDP(20), RHO], ids=str)
def test_ranges_never_have_more_error_than_from_independent_counts(
    cells: int, cost: CentralMeasure
) -> None:
    strategy = strategy_for(cells, Unit(), cost)
    if strategy is None:
        return
    alone = count_law(cost, Unit()).variance * (cells + 2) / 3
    assert float((errors(strategy) * ranges(cells)).sum()) < alone


@pytest.mark.parametrize(
    ("cells", "cost", "of_ranges", "of_totals"),
    [
        (64, RHO, 1.92, 2.60),
        (256, RHO, 3.03, 4.28),
        pytest.param(1024, RHO, 5.02, 7.37, marks=pytest.mark.deep),
        (64, PURE, 1.10, 1.29),
        (256, PURE, 1.47, 1.75),
        pytest.param(1024, PURE, 2.11, 2.74, marks=pytest.mark.deep),
    ],
)
def test_how_much_smaller_the_error_is(
    cells: int, cost: CentralMeasure, of_ranges: float, of_totals: float
) -> None:
    covariances = errors(chosen(cells, cost))
    alone = count_law(cost, Unit()).variance
    for workload, least in ((ranges(cells), of_ranges), (totals(cells), of_totals)):
        ratio = np.sqrt(alone * np.trace(workload) / float((covariances * workload).sum()))
        assert ratio >= least
        # No strategy has less error than the singular values of the workload allow.
        singular = np.sqrt(np.linalg.eigvalsh(workload).clip(0))
        assert ratio <= np.sqrt(np.trace(workload) * cells) / singular.sum()


def test_the_mean_variance_is_that_of_all_ranges() -> None:
    influence = RangeMatrix(30, DiscreteGaussian(Fraction(1))).influence(np.eye(30))
    expected = float(((influence @ influence.T) * ranges(30)).sum())
    assert mean_variance(30) == pytest.approx(expected)


def test_few_bins_are_counted_one_by_one() -> None:
    assert tree_levels(47) == [(1, 1)]
    assert strategy_for(47, Unit(), PURE) is None
    assert strategy_for(1, Unit(), RHO) is None


def test_parts_that_do_not_fit_are_refused() -> None:
    law = DiscreteLaplace(Fraction(2))
    for lengths, laws in (((1, 2), (law,)), ((2,), (law,)), ((1, 0), (law, law))):
        with pytest.raises(sf.UsageError, match="do not fit together"):
            RangeTree(8, lengths, laws)
    with pytest.raises(sf.UsageError, match="do not fit together"):
        RangeMatrix(10**6, DiscreteGaussian(Fraction(9)))
