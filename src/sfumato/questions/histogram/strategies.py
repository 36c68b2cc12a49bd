"""Sums of bins whose noisy values answer every range of bins: trees and a Toeplitz matrix.

A histogram adds independent noise to n bins, and a range of them has the noise of all its bins. A
*strategy* adds noise to other sums A x of the bins x, and the bins are estimated from these by
least squares. Then the error of a range hardly grows with its length (Li, Miklau, Hay, McGregor,
Rastogi, VLDB Journal 2015: the matrix mechanism).

*Trees, for pure epsilon.* Each level cuts the axis into blocks of one length, and counts them with
discrete Laplace noise. A level has a share of epsilon.
    Holds because: the blocks of a level are disjoint and public, so a level is a histogram. One
    person moves it by at most as much in L1 as the bins, since adding up does not lengthen a vector
    in L1. The shares add up to 1, and so the costs of the levels to epsilon.

*A Toeplitz matrix, for rho.* Answer i is the sum over j <= i of c_(i-j) x_j, where c_k is the
coefficient of z^k in (1 - z)^(-1/2), times (1 - 1/n)^k, rounded to a multiple of 2^-p. Answers are
integers in units of 2^-p, and so is their discrete Gaussian noise.
    Holds because: let X be the product of the transpose of A and A. Its entries are not negative,
    and lie below X_h = sum over k of c_k c_(k+h) for two bins h apart, which falls as h grows. Let
    a person have at most r rows, at most q in one bin, and in at most s bins. Then the squared
    length of A u is at most r^2 X_0; and at most q^2 times the sum of X_(i-j) over i, j < s, since
    no s bins are closer than neighbours. Several axes make parts that add up squared, and 0 <= X_h
    lets one part have all the rows. Under replace two vectors without negative entries are
    subtracted, so their squared lengths add up. With the bound of these, D, the cost is rho = D /
    (2 sigma^2) (Canonne, Kamath, Steinke 2020, Thm 4).

Both are exact: true sums and noise are integers, and estimates are computed from what was
published. A factor of noise that is smaller for all bins together is not to be had: the error of
any strategy is at least that of the singular values of the workload (Li, Miklau, VLDB 2013), which
``docs/evidence/gains/ranges.md`` compares with these.

``answer_ranges`` gives what was paid for ``workload="ranges"``, and the bins that follow from it.
The functions after it say how far weighted sums of these bins are from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.errors import require_fitting
from sfumato.mechanisms import (
    LEAST_SPREAD,
    DiscreteGaussian,
    DiscreteLaplace,
    Law,
    Weighted,
    add_noise,
    count_law,
    gaussian_half_widths,
    half_widths,
    spread,
    weighted_half_widths,
)
from sfumato.privacy import (
    ZCDP,
    CentralMeasure,
    Event,
    Unit,
    laplace_event,
    squared_factor,
    sum_of,
)
from sfumato.random.bits import Bits

# --- strategies -----------------------------------------------------------------------------------

# The most bins along the axis: estimates take the cube of it in time.
MOST_CELLS = 2**12

PRECISION = 16
# Binary places in which the coefficients are computed, before they are rounded to p.
_FINE = 64


class RangeTree(msgspec.Struct, frozen=True, tag="range-tree", forbid_unknown_fields=True):
    """Levels of blocks; the last block of a level may be shorter.

    Parameters
    ----------
    cells : int
        The number of bins along the axis.
    lengths : tuple of int
        How many bins a block of each level has. The first is 1.
    laws : tuple of DiscreteLaplace or DiscreteGaussian
        The noise on each block of a level.

    >>> tree = RangeTree(5, (1, 2), (DiscreteLaplace(Fraction(3)),) * 2)
    >>> tree.sums(np.array([[1, 2, 3, 4, 5]])).tolist()
    [[1, 2, 3, 4, 5, 3, 7, 5]]
    """

    cells: int
    lengths: tuple[int, ...]
    laws: tuple[Law, ...]

    def __post_init__(self) -> None:
        is_tree = len(self.lengths) == len(self.laws) and self.lengths[:1] == (1,)
        require_fitting(
            is_tree and min(self.lengths) >= 1 and 1 <= self.cells <= MOST_CELLS,
            "a tree over bins",
            "its parts do not fit together",
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many blocks each level has."""
        return tuple(-(-self.cells // length) for length in self.lengths)

    @property
    def which(self) -> Array:
        """The index of the law of each answer: int64 ndarray of shape (answers,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def sums(self, counts: Array) -> Array:
        """Add the bins up to answers, exactly: int64 ndarray of shape (groups, answers).

        Parameters
        ----------
        counts : int64 ndarray of shape (groups, cells)
        """
        starts = [np.arange(0, self.cells, length) for length in self.lengths]
        return np.concatenate([np.add.reduceat(counts, at, axis=1) for at in starts], axis=1)

    def influence(self, weights: Array) -> Array:
        """With which coefficients the answers enter weighted sums of the estimates.

        Parameters
        ----------
        weights : float64 ndarray of shape (sums, cells)

        Returns
        -------
        float64 ndarray of shape (sums, answers)
        """
        shape = self._shape
        return _of_levels(weights @ _inverse(*shape), *shape)

    @property
    def of_bins(self) -> Array:
        """``influence`` of each bin by itself: float64 ndarray of shape (cells, answers)."""
        return _bins_of_levels(*self._shape)

    @property
    def _shape(self) -> tuple[int, tuple[int, ...], tuple[float, ...]]:
        """What the estimates depend on: not on how wide the noise is."""
        return self.cells, self.lengths, _precisions(self.laws)

    def estimates(self, noisy: Array) -> Array:
        """Estimate the bins by least squares: float64 ndarray of shape (groups, cells)."""
        parts = np.split(noisy, np.cumsum(self.sizes)[:-1], axis=1)
        weighted = np.zeros((len(noisy), self.cells))
        for length, precision, part in zip(
            self.lengths, _precisions(self.laws), parts, strict=True
        ):
            weighted += precision * np.repeat(part, length, axis=1)[:, : self.cells]
        return np.asarray(weighted @ _inverse(*self._shape))

    def event(self, unit: Unit) -> Event:
        """What the noise of all levels draws, where it is Laplace noise.

        A block adds up many bins, so no limit on the rows in one bin holds for it.
        """
        in_blocks = msgspec.structs.replace(
            unit, rows_per_person=unit.rows_counted, limits=msgspec.UNSET
        )
        return sum_of(
            [
                laplace_event(law.scale, unit if length == 1 else in_blocks)
                for length, law in zip(self.lengths, self.laws, strict=True)
                if isinstance(law, DiscreteLaplace)
            ]
        )

    def __str__(self) -> str:
        levels = [
            f"{law} on each sum of {length} bins"
            for length, law in zip(self.lengths[1:], self.laws[1:], strict=True)
        ]
        return ", ".join([f"{self.laws[0]} on each bin", *levels])


class RangeMatrix(msgspec.Struct, frozen=True, tag="range-matrix", forbid_unknown_fields=True):
    """The damped square root of running sums, a triangular Toeplitz matrix.

    Parameters
    ----------
    cells : int
        The number of bins along the axis.
    law : DiscreteGaussian
        The noise on each answer, in units of 2^-precision.
    precision : int
        The number of binary places.

    >>> RangeMatrix(4, DiscreteGaussian(Fraction(9)), precision=4).sums(np.eye(4, dtype=int))[0]
    array([16,  6,  3,  2])
    """

    cells: int
    law: DiscreteGaussian
    precision: int = PRECISION

    def __post_init__(self) -> None:
        require_fitting(
            1 <= self.cells <= MOST_CELLS and 0 <= self.precision <= 40,
            "a matrix over bins",
            "its parts do not fit together",
        )

    @property
    def laws(self) -> tuple[Law, ...]:
        """The law of every answer."""
        return (self.law,)

    @property
    def which(self) -> Array:
        """The index of the law of each answer: int64 ndarray of shape (answers,)."""
        return np.zeros(self.cells, np.int64)

    def sums(self, counts: Array) -> Array:
        """Add the bins up to answers, exactly: int64 ndarray of shape (groups, answers)."""
        column = column_of(self.cells, self.precision)
        return np.stack([np.convolve(column, line)[: self.cells] for line in counts])

    def influence(self, weights: Array) -> Array:
        """With which coefficients the answers enter weighted sums of the estimates."""
        inverse = _inverse_column(self.cells, self.precision)
        # The transpose of a lower triangular Toeplitz matrix convolves from the end.
        lines = [np.convolve(inverse, line[::-1])[: self.cells][::-1] for line in weights]
        return np.stack(lines) if lines else np.zeros(weights.shape)

    @property
    def of_bins(self) -> Array:
        """``influence`` of each bin by itself: float64 ndarray of shape (cells, answers)."""
        return _bins_of_matrix(self.cells, self.precision)

    def estimates(self, noisy: Array) -> Array:
        """The bins of which these are the answers: float64 ndarray of shape (groups, cells)."""
        inverse = _inverse_column(self.cells, self.precision)
        return np.stack([np.convolve(inverse, line)[: self.cells] for line in noisy])

    def __str__(self) -> str:
        sigma = self.law.sigma / 2.0**self.precision
        sums = f"each of {self.cells:,} weighted sums of bins (a Toeplitz matrix)"
        return (
            f"discrete Gaussian noise of sigma {sigma:.6g}, in steps of 2^-{self.precision}, "
            f"on {sums}"
        )


Strategy: TypeAlias = RangeTree | RangeMatrix


def strategy_for(cells: int, unit: Unit, cost: CentralMeasure) -> Strategy | None:
    """Choose the sums of bins that are counted, from public things only.

    Parameters
    ----------
    cells : int
        The number of bins along the axis.
    unit : Unit
        What one person changes of the counts of the bins.
    cost : PureDP, ApproxDP or ZCDP

    Returns
    -------
    RangeTree, RangeMatrix or None
        None: independent counts have the least error.

    >>> from sfumato.privacy.measures import PureDP
    >>> strategy_for(64, Unit(), PureDP("1")).lengths
    (1, 10)
    """
    if isinstance(cost, ZCDP):
        return _matrix(cells, unit, cost)
    levels = tree_levels(cells)
    law = count_law(cost, unit)
    assert isinstance(law, DiscreteLaplace)
    # Among integers, little noise has less variance than its scale says, and more noise has not.
    # This gain is a lower bound on how much less the mean squared error of a tree is, with
    # continuous noise.
    gain = float((1.08 * (cells / 64) ** 0.22) ** 2)
    if len(levels) == 1 or law.variance * gain <= 2 * float(law.scale) ** 2:
        return None
    laws = tuple(DiscreteLaplace(law.scale / share) for _, share in levels)
    return RangeTree(cells, tuple(length for length, _ in levels), laws)


def tree_levels(cells: int) -> list[tuple[int, Fraction]]:
    """Return the length of the blocks of each level, and the share of epsilon that the level gets.

    Among trees of two and three levels, these have the least mean squared error over all ranges,
    to within 1%.
    """
    # Below it, independent counts have less error than any tree under pure epsilon.
    if cells < 48:
        return [(1, Fraction(1))]
    if cells < 600:
        return [(1, Fraction(5, 9)), (round(1.3 * math.sqrt(cells)), Fraction(4, 9))]
    block = round(1.2 * cells ** (1 / 3))
    larger = block * round(cells ** (1 / 3))
    return [(1, Fraction(2, 5)), (block, Fraction(3, 10)), (larger, Fraction(3, 10))]


def _matrix(cells: int, unit: Unit, cost: ZCDP) -> RangeMatrix | None:
    """The Toeplitz matrix with the noise that the cost asks for; None where it has more error."""
    sigma_squared = Fraction(squared_length(cells, unit, PRECISION)) / (2 * cost.rho)
    alone = count_law(cost, unit).variance
    # The mean variance of all ranges, per sigma^2: of independent bins their mean length.
    if float(sigma_squared) * mean_variance(cells) >= alone * (cells + 2) / 3:
        return None
    return RangeMatrix(cells, DiscreteGaussian(sigma_squared))


@lru_cache(maxsize=16)
def mean_variance(cells: int) -> float:
    """Return the mean variance of all ranges of the matrix, per squared sigma in units of 2^-p."""
    totals = np.cumsum(_inverse_column(cells, PRECISION))
    squares = np.cumsum(totals**2)
    # A range of h bins that ends at bin t has the coefficients b_k - b_(k-h), for k <= t.
    total = float(squares.sum())
    for length in range(1, cells):
        change = (totals[length:] - totals[:-length]) ** 2
        total += float((squares[length - 1] + np.cumsum(change)).sum())
    return total / (cells * (cells + 1) / 2)


def squared_length(cells: int, unit: Unit, precision: int) -> int:
    """Return the most by which one person moves the answers of the matrix, in squared length."""
    # Integers of Python: squares of sums of coefficients may exceed 64 bits.
    column = [int(coefficient) for coefficient in column_of(cells, precision)]
    rows = unit.rows_per_person
    q = min(rows, unit.largest_cell)
    bins = min(rows, unit.cells_of_person) if unit.by_cell else rows
    # All rows in one bin, or as many as a bin may hold in neighbouring ones.
    alone = rows**2 * sum(coefficient * coefficient for coefficient in column)
    most = alone
    # More bins count as if they were one.
    if q < rows and bins <= 2**14:
        most = min(alone, q**2 * _of_neighbours(column, bins))
    return most * squared_factor(unit.neighbours)


def _of_neighbours(column: list[int], bins: int) -> int:
    """Return the squared length of the answers of one row in each of so many neighbouring bins."""
    answers = [0] * (len(column) + bins)
    running = 0
    for at in range(len(answers)):
        running += column[at] if at < len(column) else 0
        running -= column[at - bins] if at >= bins and at - bins < len(column) else 0
        answers[at] = running
    return sum(answer * answer for answer in answers)


@lru_cache(maxsize=16)
def column_of(cells: int, precision: int) -> Array:
    """Return the first column of the matrix in whole units: int64 ndarray of shape (cells,).

    It is computed in integers, so it is the same on every machine.
    """
    exact = 1 << _FINE
    column = []
    for k in range(cells):
        if k:
            # (1 - 1/(2k)) (1 - 1/n) times the one before.
            exact = exact * (2 * k - 1) * (cells - 1) // (2 * k * cells)
        # Rounded either way: the sensitivity is that of the rounded column, which is what is used.
        column.append((exact + (1 << (_FINE - precision - 1))) >> (_FINE - precision))
    return np.array(column, np.int64)


@lru_cache(maxsize=16)
def _inverse_column(cells: int, precision: int) -> Array:
    """Return the first column of the inverse, from answers in units of 2^-p to bins."""
    column = column_of(cells, precision) / 2.0**precision
    inverse = np.zeros(cells)
    inverse[0] = 1 / column[0]
    for k in range(1, cells):
        inverse[k] = -float(column[1 : k + 1] @ inverse[k - 1 :: -1][:k]) / column[0]
    return inverse / 2.0**precision


def _precisions(laws: tuple[Law, ...]) -> tuple[float, ...]:
    scales = [law.scale if isinstance(law, DiscreteLaplace) else law.sigma_squared for law in laws]
    power = 2 if isinstance(laws[0], DiscreteLaplace) else 1
    return tuple(float(scales[0] / scale) ** power for scale in scales)


@lru_cache(maxsize=4)
def _inverse(cells: int, lengths: tuple[int, ...], precisions: tuple[float, ...]) -> Array:
    """The inverse of the normal equations of a tree: float64 ndarray of shape (cells, cells)."""
    from scipy.linalg import cho_factor, cho_solve

    normal = np.zeros((cells, cells))
    cell = np.arange(cells)
    for length, precision in zip(lengths, precisions, strict=True):
        block = cell // length
        normal += precision * (block[:, None] == block)
    return np.asarray(cho_solve(cho_factor(normal), np.eye(cells)))


@lru_cache(maxsize=4)
def _bins_of_levels(cells: int, lengths: tuple[int, ...], precisions: tuple[float, ...]) -> Array:
    return _of_levels(_inverse(cells, lengths, precisions), cells, lengths, precisions)


def _of_levels(
    solved: Array, cells: int, lengths: tuple[int, ...], precisions: tuple[float, ...]
) -> Array:
    """Add solutions of the normal equations up over the blocks of each level."""
    parts = [
        np.add.reduceat(solved, np.arange(0, cells, length), axis=1) * precision
        for length, precision in zip(lengths, precisions, strict=True)
    ]
    return np.concatenate(parts, axis=1)


@lru_cache(maxsize=4)
def _bins_of_matrix(cells: int, precision: int) -> Array:
    """Return the transpose of the inverse: a line for each bin, shifted by one from that before."""
    inverse = _inverse_column(cells, precision)
    influence = np.zeros((cells, cells))
    for at in range(cells):
        influence[at, : at + 1] = inverse[at::-1]
    return influence


# --- answers and errors ---------------------------------------------------------------------------


class RangeAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, eq=False):
    """The noisy sums of bins that were paid for: integers with independent noise.

    Attributes
    ----------
    strategy : RangeTree or RangeMatrix
        Which sums of bins these are, and the noise on them.
    axis : int
        Along which axis of the table bins were added up.
    noisy : int64 ndarray of shape (groups * answers,)
        All answers of one combination of the other axes, then those of the next.
    """

    strategy: Strategy
    axis: int
    noisy: Array

    def lines(self, shape: Sequence[int]) -> Array:
        """The answers, a row for each combination of the other axes of a table of this shape."""
        groups = math.prod(shape) // self.strategy.cells
        return self.noisy.reshape(groups, -1)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether these can be the answers of a table of this shape."""
        if not 0 <= self.axis < len(shape) or shape[self.axis] != self.strategy.cells:
            return False
        groups = math.prod(shape) // self.strategy.cells
        return self.noisy.shape == (groups * len(self.strategy.which),)

    def cumulated(self, shape: Sequence[int]) -> Array:
        """Running totals of the estimates along the axis, without the first, which is 0.

        A float64 ndarray of this shape.
        """
        cells = self.strategy.estimates(self.lines(shape))
        others = [size for at, size in enumerate(shape) if at != self.axis]
        table = np.cumsum(cells, axis=1).reshape(*others, self.strategy.cells)
        return np.moveaxis(table, -1, self.axis)

    def counts(self, shape: Sequence[int]) -> Array:
        """Whole counts of the bins: int64 ndarray of this shape.

        Running totals are rounded, so that a range of bins adds up to within 1 of its estimate.
        """
        whole = np.rint(self.cumulated(shape)).astype(np.int64)
        return np.diff(whole, axis=self.axis, prepend=0)

    def drawn(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The answers in the order in which their noise was drawn: law by law."""
        lines = self.lines(shape)
        which = self.strategy.which
        parts = [lines[:, which == at].ravel() for at in range(len(self.strategy.laws))]
        return tuple(np.concatenate(parts).tolist())

    def transposed(self, order: Sequence[int], shape: Sequence[int]) -> RangeAnswers:
        """The answers of the table with its axes in another order; ``shape`` is that of now."""
        others = [at for at in range(len(shape)) if at != self.axis]
        table = self.noisy.reshape(*[shape[at] for at in others], -1)
        kept = [others.index(at) for at in order if at != self.axis]
        ordered = table.transpose([*kept, len(others)])
        noisy = np.ascontiguousarray(ordered).ravel()
        return RangeAnswers(self.strategy, list(order).index(self.axis), noisy)


def laid_along(numbers: Array, along: int, dimensions: int) -> Array:
    """Return numbers as an array of so many dimensions: they lie along one of these."""
    shape = [1] * dimensions
    shape[along] = -1
    return numbers.reshape(shape)


def answer_ranges(counts: Array, axis: int, strategy: Strategy, noise: Bits) -> RangeAnswers:
    """Add the bins of a table up along an axis, and add exact noise to the sums.

    Parameters
    ----------
    counts : int64 ndarray with a dimension for each axis
    axis : int
    strategy : RangeTree or RangeMatrix
    noise : Bits
    """
    lines = np.moveaxis(counts, axis, -1).reshape(-1, strategy.cells)
    sums = strategy.sums(lines)
    noisy = np.empty_like(sums)
    which = strategy.which
    # Noise is drawn law by law. ``RangeAnswers.drawn`` hands the answers to audits in this order.
    for at, law in enumerate(strategy.laws):
        noisy[:, which == at] = add_noise(sums[:, which == at], law, noise)
    return RangeAnswers(strategy, axis, noisy.ravel())


@lru_cache(maxsize=16)
def cell_half_widths(strategy: Strategy, alpha: float, times: int = 1) -> Array:
    """Return half-widths of the bins, each summed over ``times`` groups: float64 ndarray (cells,).

    Half-widths are of weighted sums of the estimated bins, here and below.
    """
    return sum_half_widths(strategy, strategy.of_bins, alpha, times)


@lru_cache(maxsize=16)
def total_half_widths(strategy: Strategy, alpha: float, times: int = 1) -> Array:
    """Return half-widths of the running totals: float64 ndarray of shape (cells,)."""
    return sum_half_widths(strategy, np.cumsum(strategy.of_bins, axis=0), alpha, times)


def range_half_widths(
    strategy: Strategy, starts: Array, stops: Array, alpha: float, times: int = 1
) -> Array:
    """Return half-widths of ranges of bins.

    Parameters
    ----------
    strategy : RangeTree or RangeMatrix
    starts, stops : int64 ndarrays of shape (ranges,)
        The bins from ``start`` to ``stop - 1``.
    alpha : float
    times : int
        Of how many groups the ranges are added up.
    """
    bins = np.arange(strategy.cells)
    from_start = bins >= starts[:, None]
    inside = from_start & (bins < stops[:, None])
    return sum_half_widths(strategy, strategy.influence(inside.astype(float)), alpha, times)


def sum_half_widths(strategy: Strategy, coefficients: Array, alpha: float, times: int = 1) -> Array:
    """Return half-widths of sums of the answers with these coefficients.

    Parameters
    ----------
    strategy : RangeTree or RangeMatrix
    coefficients : float64 ndarray of shape (sums, answers)
    alpha : float
        Two-sided: P(|error| > half-width) <= alpha.
    times : int
        In how many groups of answers the coefficients are the same.
    """
    if isinstance(strategy, RangeMatrix):
        return _normal(strategy, coefficients, alpha, times)
    which = strategy.which
    parts = [
        Weighted.of(law, coefficients[:, which == at], times)
        for at, law in enumerate(strategy.laws)
    ]
    return weighted_half_widths(parts, alpha)


def sum_bounds(strategy: Strategy, coefficients: Array, alpha: float, times: int = 1) -> Array:
    """Return half-widths by Chernoff's bound: quicker than ``sum_half_widths``, wider for trees."""
    if isinstance(strategy, RangeMatrix):
        return _normal(strategy, coefficients, alpha, times)
    largest = np.abs(coefficients).max(axis=1, initial=0)
    safe = np.where(largest > 0, largest, 1)
    variances = sum_variances(strategy, coefficients) * times / safe**2
    laws = [(law, 1.0) for law in strategy.laws]
    return np.asarray(largest * half_widths(variances, laws, alpha))


def sum_variances(strategy: Strategy, coefficients: Array) -> Array:
    """Return variances of sums of the answers of one group: float64 ndarray of shape (sums,)."""
    of_laws = np.array([max(spread(law), LEAST_SPREAD) for law in strategy.laws])
    return np.asarray(coefficients**2 @ of_laws[strategy.which])


def _normal(strategy: RangeMatrix, coefficients: Array, alpha: float, times: int) -> Array:
    """Bound sums of discrete Gaussian draws. The lattice is much finer than sigma, so coupling the
    draws with normal ones adds next to nothing.
    """
    squares = times * (coefficients**2).sum(axis=1)
    sizes = times * np.abs(coefficients).sum(axis=1)
    return gaussian_half_widths(strategy.law, squares, sizes, alpha)
