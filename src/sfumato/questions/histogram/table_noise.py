"""How far sums, shares and statistics of a table's counts are from the truth.

Counts have noise of their own each, or they are estimated from noisy sums of bins. The statistics
do not care: they ask for half-widths of sums, and for those of sums whose weights depend on a
number theta (Fieller's inversion, see ``statistics``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.mechanisms import (
    CountLaw,
    DiscreteGaussian,
    DiscreteLaplace,
    TruncatedLaplace,
    Weighted,
    gaussian_half_widths,
    half_widths,
    spread,
    sum_half_width,
    weighted_half_widths,
)
from sfumato.questions.histogram.strategies import (
    RangeAnswers,
    RangeMatrix,
    Strategy,
    cell_half_widths,
    laid_along,
    range_half_widths,
    sum_bounds,
    sum_half_widths,
    sum_variances,
    total_half_widths,
)

# From numbers theta to half-widths of the sum of noise times (first - theta second).
Pencil: TypeAlias = Callable[[Array], Array]

# Neighbouring shares, of which half-widths are computed, differ by this factor.
FINENESS = 1.01

# The share of alpha that is spent on what is left of a sum beside the one whose law is computed.
REST = 1e-3

# Of more different weights, the law is computed of the nearest multiples of so small a part of the
# largest one. What is left is bounded.
LEVELS = 256


class IndependentNoise(msgspec.Struct, frozen=True):
    """Every cell of a table has noise of its own.

    Attributes
    ----------
    law : DiscreteLaplace, DiscreteGaussian or TruncatedLaplace
    shape : tuple of int
    """

    law: CountLaw
    shape: tuple[int, ...]

    @property
    def along(self) -> int:
        """The axis along which lines of cells are added up: any will do."""
        return 0

    def range_half_widths(self, starts: Array, stops: Array, lines: int, alpha: float) -> Array:
        """Return half-widths of ranges: int64 ndarray like ``starts``."""
        terms, back = np.unique(lines * (stops - starts), return_inverse=True)
        numbers = terms[:, None].astype(float)
        draws = [Weighted.of(self.law, (numbers > 0).astype(float), numbers)]
        # An error is a whole number.
        half = np.floor(weighted_half_widths(draws, alpha)).astype(np.int64)
        half[terms == 1] = self.law.half_width(alpha)
        return np.asarray(half[back])

    def running_half_widths(self, alpha: float, bins: Array) -> Array:
        """Return half-widths of running totals: int64 ndarray like ``bins``."""
        return self.range_half_widths(np.zeros_like(bins), bins + 1, 1, alpha)

    def _terms(self, keep: Sequence[int]) -> int:
        return math.prod(size for at, size in enumerate(self.shape) if at not in keep)

    def sum_half_widths(self, keep: tuple[int, ...], alpha: float) -> float | Array:
        """Return half-widths of a marginal, by the exact law of a sum."""
        return float(sum_half_width(self.law, self._terms(keep), alpha))

    def values_pencil(self, axis: int, values: Array, alpha: float) -> Pencil:
        """Return the pencil values - theta, by Chernoff's bound."""
        low = float(values.min())
        size = max(float(values.max()) - low, 1e-300)
        scaled = (values - low) / size
        power_sums = [float((scaled**power).sum()) for power in (0, 1, 2)]

        def half(theta: Array) -> Array:
            t = (theta - low) / size
            # The noise on a count is multiplied by v_i - theta; squares over the squared range.
            squares = power_sums[2] - 2 * t * power_sums[1] + t**2 * power_sums[0]
            effective = self._terms((axis,)) * np.maximum(squares, 0)
            return np.asarray(size * self.law.sum_half_width(effective, alpha) * (1 + 1e-9))

        return half

    def values_half_width(self, axis: int, weights: Array, alpha: float) -> float:
        """Return the half-width of one weighted sum, by the exact law."""
        times = self._terms((axis,))
        largest = float(np.abs(weights).max(initial=0))
        if not largest:
            return 0.0
        size = np.abs(weights) / largest
        taken = size
        if len(np.unique(size)) > LEVELS:
            taken = np.rint(size * LEVELS) / LEVELS
        left = np.abs(size - taken)
        variance = np.array([times * float((left**2).sum()) * spread(self.law)])
        of_left = half_widths(variance, [(self.law, float(left.max()))], REST * alpha)
        draws = [Weighted.of(self.law, taken, float(times))]
        half = weighted_half_widths(draws, (1 - REST) * alpha, of_many=True)
        return largest * float(half[0] + of_left[0])

    def balance_half_widths(self, axis: int, cells: int, alpha: float) -> float | Array:
        """Return half-widths by the law of the total: each cell enters with 1 or -1."""
        return float(sum_half_width(self.law, cells * self._terms((axis,)), alpha))

    def part_pencil(self, part: Array, whole: Array, alpha: float) -> Pencil:
        """Return the pencil part - theta whole: the part's cells enter with 1 - theta."""
        cells = int(part.sum()), int((whole & ~part).sum())

        def half(theta: Array) -> Array:
            return _share_half_widths(self.law, cells, alpha, theta)

        return half

    def share_half_widths(self, shares: Array, alpha: float) -> Array:
        """Return half-widths of a cell less a share of the total."""
        return _share_half_widths(self.law, (1, math.prod(self.shape) - 1), alpha, shares)

    def norm_bound(self, axis: int, alpha: float) -> tuple[float, float]:
        """Bound the squared norm by its known mean and variance (Cantelli's inequality)."""
        cells = self.shape[axis]
        terms = self._terms((axis,))
        second = terms * self.law.variance
        spread_of_square = max(0.0, cells * (_fourth_moment(self.law, terms) - second**2))
        square = cells * second + math.sqrt(spread_of_square * (1 / alpha - 1))
        return cells * second, math.sqrt(square)


class RangeNoise(msgspec.Struct, frozen=True):
    """Cells are estimated from noisy sums of bins.

    Attributes
    ----------
    answers : RangeAnswers
    shape : tuple of int
    """

    answers: RangeAnswers
    shape: tuple[int, ...]

    @property
    def along(self) -> int:
        """The axis along which bins were added up."""
        return self.answers.axis

    def range_half_widths(self, starts: Array, stops: Array, lines: int, alpha: float) -> Array:
        """Return half-widths of ranges of bins: float64 ndarray like ``starts``."""
        return range_half_widths(self._strategy, starts, stops, alpha, lines)

    def running_half_widths(self, alpha: float, bins: Array) -> Array:
        """Return half-widths of running totals: float64 ndarray like ``bins``."""
        return total_half_widths(self._strategy, alpha)[bins]

    @property
    def _strategy(self) -> Strategy:
        return self.answers.strategy

    @property
    def _groups(self) -> int:
        return math.prod(self.shape) // self._strategy.cells

    def _times(self, keep: Sequence[int]) -> int:
        """Return how many groups are added up where these axes are kept."""
        axis = self.answers.axis
        return math.prod(
            size for at, size in enumerate(self.shape) if at not in keep and at != axis
        )

    def sum_half_widths(self, keep: tuple[int, ...], alpha: float) -> float | Array:
        """Return half-widths of a marginal, by the law of the answers' noise."""
        times = self._times(keep)
        if self.answers.axis not in keep:
            return float(total_half_widths(self._strategy, alpha, times)[-1])
        half = cell_half_widths(self._strategy, alpha, times)
        return laid_along(half, keep.index(self.answers.axis), len(keep))

    def values_pencil(self, axis: int, values: Array, alpha: float) -> Pencil:
        """Return the pencil values - theta: of the bins, or of totals of labels."""
        ends = float(values.min()), float(values.max())
        times = self._times((axis,))
        if axis != self.answers.axis:
            total = self._total()
            totals = np.ones((len(values), 1)) * total
            return self._pencil(values[:, None] * total, totals, ends, alpha, times)
        weights = np.stack([values, np.ones(len(values))])
        first, second = np.split(self._influence(weights), 2)
        return self._pencil(first, second, ends, alpha, times)

    def values_half_width(self, axis: int, weights: Array, alpha: float) -> float:
        """Return the half-width of one weighted sum, of the bins or of totals of labels."""
        times = self._times((axis,))
        if axis == self.answers.axis:
            return float(
                sum_half_widths(self._strategy, self._influence(weights[None]), alpha, times)[0]
            )
        totals = (weights[:, None] * self._total()).reshape(1, -1)
        which = self._strategy.which
        parts = [
            Weighted.of(law, totals[:, np.tile(which == at, len(weights))], float(times))
            for at, law in enumerate(self._strategy.laws)
        ]
        return float(weighted_half_widths(parts, alpha)[0])

    def balance_half_widths(self, axis: int, cells: int, alpha: float) -> float | Array:
        """Return half-widths of sums in which bins below enter with 1, the others with -1."""
        if axis != self.answers.axis:
            times = cells * self._times((axis,))
            return float(total_half_widths(self._strategy, alpha, times)[-1])
        signs = 2 * np.tril(np.ones((cells + 1, cells)), -1) - 1
        times = self._times((axis,))
        return sum_half_widths(self._strategy, self._influence(signs), alpha, times)

    def part_pencil(self, part: Array, whole: Array, alpha: float) -> Pencil:
        """Return the pencil part - theta whole: the part's cells enter with 1 - theta."""
        axis = self.answers.axis
        lines = [
            np.moveaxis(np.broadcast_to(chosen, self.shape), axis, -1)
            .reshape(self._groups, -1)
            .astype(float)
            for chosen in (part, whole)
        ]
        first, second = (self._influence(line) for line in lines)
        return self._pencil(first, second, (0.0, 1.0), alpha, 1)

    def share_half_widths(self, shares: Array, alpha: float) -> Array:
        """Return half-widths of a cell less a share of the totals of its own group and others."""
        own = self._strategy.of_bins
        total = self._total()
        own_variances = self._variances(own)
        total_variance = float(self._variances(total)[0])
        covariances = (self._variances(own + total) - own_variances - total_variance) / 2
        squared = shares[:, None] ** 2 * self._groups * total_variance
        variances = own_variances - 2 * shares[:, None] * covariances + squared
        largest = max(float(np.abs(own).max()), float(np.abs(own - total).max()))
        largest = max(largest, float(np.abs(total).max()))
        slack = float(np.abs(own).sum(axis=1).max()) + self._groups * float(np.abs(total).sum())
        return self._of_variances(variances.max(axis=1), largest, slack, alpha)

    def norm_bound(self, axis: int, alpha: float) -> tuple[float, float]:
        """Bound the norm by intervals that hold for all of the sums at once."""
        times = self._times((axis,))
        cells = self.shape[axis]
        if axis == self.answers.axis:
            influence = self._strategy.of_bins
            half = sum_bounds(self._strategy, influence, alpha / cells, times)
            return times * float(self._variances(influence).sum()), math.hypot(*half)
        total = self._total()
        half_of_one = float(sum_bounds(self._strategy, total, alpha / cells, times)[0])
        second = cells * times * float(self._variances(total)[0])
        return second, math.sqrt(cells) * half_of_one

    def _total(self) -> Array:
        return self._influence(np.ones((1, self._strategy.cells)))

    def _influence(self, weights: Array) -> Array:
        return self._strategy.influence(weights)

    def _variances(self, coefficients: Array) -> Array:
        return sum_variances(self._strategy, coefficients)

    def _pencil(
        self, first: Array, second: Array, ends: tuple[float, float], alpha: float, times: int
    ) -> Pencil:
        """Return the pencil of two vectors of coefficients, for theta between two ends."""
        squares = float(self._variances(first).sum())
        of_second = float(self._variances(second).sum())
        product = (float(self._variances(first + second).sum()) - squares - of_second) / 2
        # Both are convex in theta, so they are largest at an end.
        at_ends = [np.abs(first - end * second) for end in ends]
        largest = max(float(size.max()) for size in at_ends)
        slack = times * max(float(size.sum()) for size in at_ends)

        def half(theta: Array) -> Array:
            variances = squares - 2 * theta * product + theta**2 * of_second
            # Cancellation must not make a variance too small.
            rounding = 1e-12 * (squares + theta**2 * of_second)
            whole = times * (np.maximum(variances, 0) + rounding)
            return self._of_variances(whole, largest, slack, alpha)

        return half

    def _of_variances(self, variances: Array, largest: float, slack: float, alpha: float) -> Array:
        """Return half-widths of sums of these variances, with coefficients up to the largest."""
        strategy = self._strategy
        if isinstance(strategy, RangeMatrix):
            squares = variances / float(strategy.law.sigma_squared)
            return gaussian_half_widths(strategy.law, squares, np.full_like(squares, slack), alpha)
        safe = max(largest, 1e-300)
        laws = [(law, 1.0) for law in strategy.laws]
        return np.asarray(safe * half_widths(variances / safe**2, laws, alpha))


# The errors of sums of a table's counts; alpha is the probability of error of each.
#
# * ``along``, ``range_half_widths``: half-widths of ranges along that axis, over so many lines
# * ``running_half_widths``: of running totals along it, in one line
# * ``sum_half_widths``: half-widths of a marginal, one for all its cells, or an array like it
# * ``values_pencil``: the pencil values - theta along an axis, over all its sums, by a bound
# * ``values_half_width``: of the sum of all its sums with weights, by the law
# * ``balance_half_widths``: of what lies below a bin less what does not, for 0, 1, ... bins below
# * ``part_pencil``: the pencil part - theta whole, for bool ndarrays over the cells
# * ``share_half_widths``: of a cell less a share of the total, of the cell with the largest one
# * ``norm_bound``: the mean square of the norm of the noise, and a bound on the norm
TableNoise: TypeAlias = IndependentNoise | RangeNoise


def _share_half_widths(law: CountLaw, cells: tuple[int, int], alpha: float, shares: Array) -> Array:
    """Return half-widths of (1 - p) A - p B, for sums A and B of so many draws.

    They are computed at some shares p. In between, let q be the one next to p that is nearer to the
    middle of [0, 1/2] or [1/2, 1]. The sum at p is (1 - p) / (1 - q) times that at q, and a rest of
    B alone, or the same with A and B exchanged. The rest gets a small share of alpha.
    """
    shares = np.asarray(shares, dtype=float)
    halves = np.empty(shares.shape)
    is_low = shares <= 0.5
    halves[is_low] = _from_below(law, cells, alpha, shares[is_low])
    halves[~is_low] = _from_below(law, cells[::-1], alpha, 1 - shares[~is_low])
    return halves


def _from_below(law: CountLaw, cells: tuple[int, int], alpha: float, shares: Array) -> Array:
    """Return half-widths for shares of at most 1/2, from those of the next smaller shares."""
    grid, halves = _share_grid(law, cells, alpha)
    at = np.searchsorted(grid, shares, side="right") - 1
    below = grid[at]
    factor = (1 - shares) / (1 - below)
    rest = (shares - below) / (1 - below)
    of_rest = sum_half_width(law, cells[1], REST * alpha) if cells[1] else 0
    return np.asarray(factor * halves[at] + rest * of_rest)


@lru_cache(maxsize=64)
def _share_grid(law: CountLaw, cells: tuple[int, int], alpha: float) -> tuple[Array, Array]:
    """Return shares from 0 to 1/2, and half-widths that leave a part of alpha."""
    least = 1e-3 / math.sqrt(max(cells[1], 1))
    count = math.ceil(math.log(0.5 / least) / math.log(FINENESS))
    grid = np.concatenate([[0.0], least * FINENESS ** np.arange(count + 1)])
    sums = [
        Weighted.of(law, np.stack([1 - grid, grid], axis=1), np.array([float(n) for n in cells]))
    ]
    halves = weighted_half_widths(sums, (1 - REST) * alpha)
    # Where the share is 0 the sum is one of whole numbers.
    halves[0] = sum_half_width(law, cells[0], (1 - REST) * alpha)
    return grid, halves


def _fourth_moment(law: CountLaw, terms: int) -> float:
    """Return E (z_1 + ... + z_terms)^4, or a bound on it for the discrete Gaussian.

    The bound holds for every sigma-subgaussian law.
    """
    if isinstance(law, DiscreteLaplace):
        q = math.exp(-1 / float(law.scale))
        fourth_moment = 2 * q * (1 + 10 * q + q * q) / (1 - q) ** 4
    elif isinstance(law, TruncatedLaplace):
        fourth_moment = law.moment(4)
    else:
        assert isinstance(law, DiscreteGaussian)
        fourth_moment = 16 * float(law.sigma_squared) ** 2
    return terms * fourth_moment + 3 * terms * (terms - 1) * law.variance**2
