"""Cells of reports on a public lattice, drawn without a rounding error.

cell = floor((v + r u - origin) / width), with u a uniform direction and r by ``distances``.
Directions: a sign for d = 1; a point of the right half of the circle for d = 2, mirrored by the
lowest bit of its word; else d normals of ``random.normal`` over their length.

Guarantee: given uniform independent words, the cells have the law of the real-valued formula: no
rounding error is left in them.
Holds because
    *Floats decide only what is certain.* A normal z that is not doubtful errs by less than e =
    2^-49, so a vector of them and its length by e sqrt d. Its squares are added in runs of
    ``_RUN``, so that their sum has a relative error below (run + runs + 1) 2^-53. So a component z
    / length of the direction, at most 1, errs by 2 e sqrt(d) / length + (run + runs + 6) 2^-53, the
    rounding of products included; points of the circle err by 2^-50. With s = r / width a
    coordinate, in cells, errs by s times that, by the error of r / width and by 2^-33. Twice all
    that is the
    *margin* of a report. A cell is the whole number nearest to the coordinate less a half. A report
    with a coordinate that comes closer than its margin to the border of a cell, with a doubtful
    normal or a doubtful distance is *open*.
    *Open reports are settled* by ``reals`` and its normals from the very same words,
    continued with fresh bits, in decimal arithmetic, until their cells are certain. So every report
    is the exact function of its (endless) words that the formula says. A doubtful distance that
    turns out to be rejected starts afresh, as it would have if it had been seen at once.
How often: fewer than one report in 2^17 is open for d up to 256, and d in 2^25 beyond.
Not covered: time is not constant: an open report takes a millisecond and more.
Source: Marsaglia and Tsang 2000; lazily known bits: Devroye 1986, II.2 and XV.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from sfumato.local.constants import Flags, Floats, exactly
from sfumato.local.distances import DistanceLaw, Reals
from sfumato.local.reals import (
    Level,
    circle,
    exact_angle,
    exact_circle,
    mirror,
    norm,
    normal_at,
    settle,
)
from sfumato.random.bits import Bits, Words
from sfumato.random.normal import ERROR, Trace, fill

Cells = np.typing.NDArray[np.int64]

# The direction of one report, up to its length, to any precision.
ExactDirection: TypeAlias = Callable[[Level], list[Decimal]]

# How many coordinates are worked on at once.
#
# Steps between them work on fewer, which stay in the processor's cache.
CHUNK = 2**18

_PIECE = 2**15
_RUN = 512
_ROUNDING = 2.0**-53
# Twice the error of a point of the circle.
_CIRCLE_ERROR = 2.0**-49

# Twice the 2^-33 cells by which every coordinate errs.
_LEAST_MARGIN = 2.0**-32


@dataclass(frozen=True)
class _Directions:
    """Directions of reports and what they were made of.

    Attributes
    ----------
    lengths : float64 ndarray of shape (n,), or 1.0
        Of the vectors that were written.
    errors : float64 ndarray of shape (n,), or a float
        How far a component of a vector over its length may be off.
    source : uint64 ndarray of shape (n,), or Trace
        The words, or the normals, that they were made of.
    """

    lengths: Floats | float
    errors: Floats | float
    source: Words | Trace


@dataclass(frozen=True)
class CellSampler:
    """Cells of reports at a random offset from their points.

    Attributes
    ----------
    dimension : int
    distance : DistanceLaw
    origin, width : Fraction
        The lattice: cell i is [origin + i width, origin + (i + 1) width) on every axis.
    """

    dimension: int
    distance: DistanceLaw
    origin: Fraction
    width: Fraction

    def draw(self, points: Floats, bits: Bits, out: Floats | None = None) -> Floats:
        """Draw the cell of one report for each point: whole numbers, float64, like ``points`` of
        shape (n, d).
        """
        cells = np.empty(points.shape) if out is None else out
        if not len(points):
            return cells
        distances = self.distance.draw(len(points), bits)
        with np.errstate(divide="ignore", invalid="ignore"):
            directions = self._write_directions(cells, bits)
            is_open = self._write_cells(points, distances.values, directions, cells)
        for row in np.flatnonzero(is_open | distances.doubtful).tolist():
            direction = self._exact_direction(directions, row, bits)
            settled = self.settled(points[row], distances.reals(row, bits), direction)
            if settled is None:
                # Only a distance that was doubtful can be rejected; its point draws afresh.
                cells[row] = self.draw(points[row : row + 1], bits)[0]
            else:
                cells[row] = settled
        return cells

    def _write_cells(
        self, points: Floats, distances: Floats, directions: _Directions, cells: Floats
    ) -> Flags:
        """Turn the vectors in ``cells`` into the cells that floats give; return which reports are
        open.
        """
        per_cell = 1 / float(self.width)
        steps = distances * per_cell
        distance_errors = self.distance.error(distances) * per_cell
        margins = 2 * steps * directions.errors + distance_errors + _LEAST_MARGIN
        steps /= directions.lengths
        is_open = np.zeros(len(points), dtype=bool)
        rows = max(1, _PIECE // self.dimension)
        buffer = np.empty((min(rows, len(points)), self.dimension))
        for start in range(0, len(points), rows):
            part = slice(start, start + rows)
            near = buffer[: len(steps[part])]
            np.multiply(points[part], per_cell, out=near)
            near -= float(self.origin / self.width) + 0.5
            cells[part] *= np.repeat(steps[part], self.dimension).reshape(near.shape)
            near += cells[part]
            # Now the distance to the middle of the cell: a half at its borders.
            near -= np.rint(near, out=cells[part])
            # One look at all of them first: few pieces hold a report that is not certain. Written
            # so that NaN is open.
            if not max(near.max(), -near.min()) < 0.5 - margins[part].max():
                is_open[part] = ~(np.abs(near).max(axis=1) < 0.5 - margins[part])
        if isinstance(directions.source, Trace):
            is_open[directions.source.doubtful // self.dimension] = True
        return is_open

    def _write_directions(self, target: Floats, bits: Bits) -> _Directions:
        """Write vectors of uniform direction, not all of length 1."""
        if self.dimension > 2:
            trace = fill(target.reshape(-1), bits)
            runs = [target[:, start : start + _RUN] for start in range(0, self.dimension, _RUN)]
            lengths = np.sqrt(sum(np.einsum("ij,ij->i", run, run) for run in runs))
            rounding = (min(self.dimension, _RUN) + len(runs) + 6) * _ROUNDING
            errors = 2 * ERROR * math.sqrt(self.dimension) / lengths + rounding
            return _Directions(lengths, errors, trace)
        words = bits.words(len(target))
        target[:, 0] = 1.0
        if self.dimension == 2:
            target[:, 0], target[:, 1] = circle(words)
        mirror(target[:, 0], words)
        return _Directions(1.0, _CIRCLE_ERROR, words)

    def _exact_direction(self, directions: _Directions, row: int, bits: Bits) -> ExactDirection:
        """Return the direction of one report, without error, up to its length."""
        source = directions.source
        if isinstance(source, Trace):
            first = row * self.dimension
            normals = [normal_at(source, first + axis, bits) for axis in range(self.dimension)]
            return lambda level: [normal.known(level) for normal in normals]
        word = int(source[row])
        sign = -1 if word & 1 else 1
        if self.dimension == 1:
            return lambda level: [Decimal(sign)]
        angle = exact_angle(word, bits)

        def point(level: Level) -> list[Decimal]:
            cosine, sine = exact_circle(angle, level)
            return [sign * cosine, sine]

        return point

    def settled(
        self, point: Floats, reals: Reals, exact_direction: ExactDirection
    ) -> list[int] | None:
        """The cell that these real numbers give; None if their distance is rejected."""

        def evaluate(level: Level) -> list[int] | None:
            distance = self.distance.exact(reals, level)
            if distance is None:
                return None
            vector = exact_direction(level)
            length = level.safe(norm(vector))
            cell = []
            for v, z in zip(point, vector, strict=True):
                end = Decimal(float(v)) + distance * z / length
                cell.append(level.floor((end - exactly(self.origin)) / exactly(self.width)))
            return cell

        return settle(evaluate)
