"""What was paid for ``workload="ranges"``, the bins that follow from it, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.histogram.strategies import RangeMatrix, Strategy
from sfumato.mechanisms.noise import add_noise
from sfumato.mechanisms.noise_sums import (
    LEAST_SPREAD,
    Weighted,
    half_widths,
    spread,
    weighted_half_widths,
)
from sfumato.random.bits import Bits

CANDIDATES = 12
"""Among how many bins of the largest variances the least accurate one is sought."""

COUPLED = 1.000001
"""How far a draw of a discrete Gaussian and a normal one are apart at most: see
``aggregates.tails``."""


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
        groups = int(np.prod(shape, dtype=np.int64)) // self.strategy.cells
        return self.noisy.reshape(groups, -1)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether these can be the answers of a table of this shape."""
        if not 0 <= self.axis < len(shape) or shape[self.axis] != self.strategy.cells:
            return False
        answers = len(self.strategy.which)
        groups = int(np.prod(shape, dtype=np.int64)) // self.strategy.cells
        return self.noisy.shape == (groups * answers,)

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
        parts = [lines[:, which == at].reshape(-1) for at in range(len(self.strategy.laws))]
        return tuple(np.concatenate(parts).tolist())

    def transposed(self, order: Sequence[int], shape: Sequence[int]) -> RangeAnswers:
        """The answers of the table with its axes in another order; ``shape`` is that of now."""
        others = [at for at in range(len(shape)) if at != self.axis]
        table = self.noisy.reshape(*[shape[at] for at in others], -1)
        kept = [others.index(at) for at in order if at != self.axis]
        noisy = np.ascontiguousarray(table.transpose([*kept, len(others)])).reshape(-1)
        return RangeAnswers(self.strategy, list(order).index(self.axis), noisy)


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
    for at, law in enumerate(strategy.laws):
        noisy[:, which == at] = add_noise(sums[:, which == at], law, noise)
    return RangeAnswers(strategy, axis, noisy.reshape(-1))


@dataclass(frozen=True)
class RangeErrors:
    """How far weighted sums of the estimated bins are from the truth.

    Attributes
    ----------
    strategy : RangeTree or RangeMatrix
    """

    strategy: Strategy

    def cells(self, alpha: float, times: int = 1) -> Array:
        """Half-widths of the bins, each summed over ``times`` groups: float64 ndarray (cells,)."""
        return _of_cells(self.strategy, alpha, times)

    def least_accurate_cell(self, alpha: float) -> float:
        """The largest half-width of a bin: that of one of the bins with the largest variances."""
        coefficients = self.strategy.of_bins
        worst = np.argsort(-self.variances(coefficients), kind="stable")[:CANDIDATES]
        return float(self.half_widths(coefficients[worst], alpha).max())

    def cumulated(self, alpha: float, times: int = 1) -> Array:
        """Half-widths of the running totals: float64 ndarray of shape (cells,)."""
        return _of_totals(self.strategy, alpha, times)

    def ranges(self, starts: Array, stops: Array, alpha: float, times: int = 1) -> Array:
        """Half-widths of ranges of bins.

        Parameters
        ----------
        starts, stops : int64 ndarrays of shape (ranges,)
            The bins from ``start`` to ``stop - 1``.
        alpha : float
        times : int
            Of how many groups the ranges are added up.
        """
        bins = np.arange(self.strategy.cells)
        inside = (bins >= starts[:, None]) & (bins < stops[:, None])
        return self.half_widths(self.strategy.influence(inside.astype(float)), alpha, times)

    def half_widths(self, coefficients: Array, alpha: float, times: int = 1) -> Array:
        """Half-widths of sums of the answers with these coefficients.

        Parameters
        ----------
        coefficients : float64 ndarray of shape (sums, answers)
        alpha : float
            Two-sided: P(|error| > half-width) <= alpha.
        times : int
            In how many groups of answers the coefficients are the same.
        """
        if isinstance(self.strategy, RangeMatrix):
            return _normal(self.strategy, coefficients, alpha, times)
        which = self.strategy.which
        parts = [
            Weighted.of(law, coefficients[:, which == at], times)
            for at, law in enumerate(self.strategy.laws)
        ]
        return weighted_half_widths(parts, alpha)

    def bounds(self, coefficients: Array, alpha: float, times: int = 1) -> Array:
        """Half-widths like ``half_widths``, by Chernoff's bound: quicker, and wider for trees."""
        if isinstance(self.strategy, RangeMatrix):
            return _normal(self.strategy, coefficients, alpha, times)
        largest = np.abs(coefficients).max(axis=1, initial=0)
        safe = np.where(largest > 0, largest, 1)
        variances = self.variances(coefficients) * times / safe**2
        laws = [(law, 1.0) for law in self.strategy.laws]
        return np.asarray(largest * half_widths(variances, laws, alpha))

    def variances(self, coefficients: Array) -> Array:
        """Variances of sums of the answers of one group: float64 ndarray of shape (sums,)."""
        of_laws = np.array([max(spread(law), LEAST_SPREAD) for law in self.strategy.laws])
        return np.asarray(coefficients**2 @ of_laws[self.strategy.which])


def _normal(strategy: RangeMatrix, coefficients: Array, alpha: float, times: int) -> Array:
    """Half-widths of sums of discrete Gaussian draws.

    A draw is coupled with a normal one at most ``COUPLED`` away where sigma is at least 1. The
    lattice is much finer than sigma, so this adds next to nothing.
    """
    squared = float(strategy.law.sigma_squared)
    squares = times * (coefficients**2).sum(axis=1)
    if squared < 1:
        return np.asarray(strategy.law.sum_half_width(squares, alpha))
    from scipy.special import ndtri

    normal = -float(ndtri(alpha / 2)) * np.sqrt(squared * squares)
    return np.asarray(normal + COUPLED * times * np.abs(coefficients).sum(axis=1))


@lru_cache(maxsize=16)
def _of_cells(strategy: Strategy, alpha: float, times: int) -> Array:
    return RangeErrors(strategy).half_widths(strategy.of_bins, alpha, times)


@lru_cache(maxsize=16)
def _of_totals(strategy: Strategy, alpha: float, times: int) -> Array:
    coefficients = np.cumsum(strategy.of_bins, axis=0)
    return RangeErrors(strategy).half_widths(coefficients, alpha, times)
