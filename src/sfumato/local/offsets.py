"""Reports around a point, on a public lattice: cell = floor((v + r u - origin) / width), u a uniform direction, r by ``Radius``.

Directions: a sign for d = 1; a point of the right half of the circle for d = 2, mirrored by the lowest bit of its word; else d normals
of ``random.normal`` over their length.

Guarantee: given uniform independent words, the cells have the law of the real-valued formula: no rounding error is left in them.
Holds because
    *Floats decide only what is certain.* A normal z that is not doubtful errs by less than e = 2^-49, so a vector of them by e sqrt d, its
    length by that and a relative (d + 2) 2^-53 of the sum, and a component z / length of the direction, which is at most 1, by
    2 e sqrt(d) / length + (d + 6) 2^-53; points of the circle err by 2^-50. With s = r / width a coordinate, in cells, errs by s times
    that, by the error of r / width and by 2^-33. Twice all that is the *margin* of a report.
    A cell is the whole number nearest to the coordinate less a half. A report with a coordinate that comes closer than its margin to
    the border of a cell, with a doubtful normal or a doubtful radius is *open*.
    *Open reports are settled* by ``reals`` and ``normals`` from the very same words, continued with fresh bits, in decimal arithmetic,
    until their cells are certain. So every report is the exact function of its (endless) words that the formula says.
    A doubtful radius that turns out to be rejected starts afresh, as it would have if it had been seen at once.
How often: fewer than one report in 2^20 is open for d up to 256, and a dimension adds one in 2^28.
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
from numpy.typing import NDArray

from sfumato.local.constants import exactly
from sfumato.local.floats import Flags, Floats, circle, exact_angle, exact_circle, mirror
from sfumato.local.normals import normal_at
from sfumato.local.radius import Radius, Reals
from sfumato.local.reals import FIRST_LEVEL, Level, norm, settle
from sfumato.random.bits import Bits, Words
from sfumato.random.normal import ERROR, Trace, fill

Cells = NDArray[np.int64]
Direction: TypeAlias = Callable[[Level], list[Decimal]]

CHUNK = 2**16
"""How many coordinates are worked on at once, so that they stay in the processor's cache."""

_ROUNDING, _FLOOR = 2.0**-53, 2.0**-32


@dataclass(frozen=True)
class Offsets:
    """Reports at a random offset from their points.

    Attributes
    ----------
    dimension : int
    radius : Radius
    origin, width : Fraction
        The lattice: cell i is [origin + i width, origin + (i + 1) width) on every axis.
    first_level : int
        Bits known of an open report at first; tests lower it.
    """

    dimension: int
    radius: Radius
    origin: Fraction
    width: Fraction
    first_level: int = FIRST_LEVEL

    def cells(self, points: Floats, bits: Bits) -> Floats:
        """Draw the cell of one report for each point: whole numbers, float64, shape (n, d), for points of shape (n, d)."""
        if not len(points):
            return np.empty(points.shape)
        radii = self.radius.draw(len(points), bits)
        cells, doubtful, turns = self._fast(points, radii.values, bits)
        for row in np.flatnonzero(doubtful | radii.doubtful).tolist():
            settled = self.settled(points[row], radii.reals(row, bits), self._direction(turns, row, bits))
            # Only a radius that was doubtful can be rejected; its point draws afresh.
            cells[row] = self.cells(points[row : row + 1], bits)[0] if settled is None else settled
        return cells

    def _fast(self, points: Floats, radii: Floats, bits: Bits) -> tuple[Floats, Flags, Words | Trace]:
        """Cells by floats, which of them are not certain, and the words of the directions."""
        scale = 1 / float(self.width)
        with np.errstate(divide="ignore", invalid="ignore"):
            places, errors, turns = self._offset(radii * scale, bits)
            margins = 2 * errors + self.radius.error(radii) * scale + _FLOOR
            shift = points * scale
            shift -= float(self.origin / self.width) + 0.5
            places += shift
            cells = np.rint(places, out=shift)
            places -= cells
            doubtful = np.zeros(len(points), dtype=bool)
            # One glance at all of them first: few blocks hold a report that is not certain.
            if not max(places.max(), -places.min()) < 0.5 - margins.max():
                doubtful = ~(np.abs(places).max(axis=1) < 0.5 - margins)
        if isinstance(turns, Trace):
            doubtful[turns.doubtful // self.dimension] = True
        return cells, doubtful, turns

    def _offset(self, steps: Floats, bits: Bits) -> tuple[Floats, Floats, Words | Trace]:
        """Offsets of uniform direction and the given lengths, shape (n, d), how far they may be off, and their words."""
        found = np.empty((len(steps), self.dimension))
        if self.dimension > 2:
            trace = fill(found.reshape(-1), bits)
            lengths = np.sqrt(np.einsum("ij,ij->i", found, found))
            found *= np.repeat(steps / lengths, self.dimension).reshape(found.shape)
            errors = 2 * ERROR * math.sqrt(self.dimension) / lengths + (self.dimension + 6) * _ROUNDING
            return found, steps * errors, trace
        words = bits.words(len(steps))
        if self.dimension == 1:
            found[:, 0] = mirror(steps.copy(), words)
        else:
            across, along = circle(words)
            np.multiply(mirror(across, words), steps, out=found[:, 0])
            np.multiply(along, steps, out=found[:, 1])
        return found, steps * 2.0**-49, words

    def _direction(self, turns: Words | Trace, row: int, bits: Bits) -> Direction:
        """The direction of one report, without error, up to its length."""
        if isinstance(turns, Trace):
            normals = [normal_at(turns, row * self.dimension + axis, bits) for axis in range(self.dimension)]
            return lambda level: [each.known(level) for each in normals]
        word = int(turns[row])
        sign = -1 if word & 1 else 1
        if self.dimension == 1:
            return lambda level: [Decimal(sign)]
        angle = exact_angle(word, bits)

        def point(level: Level) -> list[Decimal]:
            cosine, sine = exact_circle(angle, level)
            return [sign * cosine, sine]

        return point

    def settled(self, point: Floats, radial: Reals, direction: Direction) -> list[int] | None:
        """The cell that these real numbers give, without error; None if their radius is rejected."""
        origin, width = self.origin, self.width

        def evaluate(level: Level) -> list[int] | None:
            radius = self.radius.exact(radial, level)
            if radius is None:
                return None
            vector = direction(level)
            length = level.safe(norm(vector))
            ends = (Decimal(float(v)) + radius * z / length for v, z in zip(point, vector, strict=True))
            return [level.floor((end - exactly(origin)) / exactly(width)) for end in ends]

        return settle(evaluate, self.first_level)
