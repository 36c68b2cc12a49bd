"""Reports around a point, on a public lattice: cell = floor((v + r u - origin) / width), u a uniform direction, r by ``Radius``.

Directions: a sign for d = 1; else points of the circle, or normals over their length, by Box and Muller in pairs: sqrt(-2 ln U) times
a point of the right half of the circle, mirrored by the lowest bit of its word.

Guarantee: given uniform independent words, the cells have the law of the real-valued formula: no rounding error is left in them.
Holds because
    *Floats decide only what is certain.* Given that log and exp of the platform are right to 2^-48 (IEEE libraries are
    right to 2^-50), uniforms within [2^-24, 1 - 2^-24] give sqrt(-2 ln U) with an error below 2^-41.5, so a normal below 2^-41.4, the
    vector of normals below 2^-41.4 sqrt d, a component of the direction below 2^-40.4 sqrt(d) / length, and a coordinate, in
    cells, below s (1 + sqrt(d) / length) 2^-40.4 + error of r / width + 2^-33, where s = r / width. ``_MARGIN`` and ``_FLOOR`` double
    that. A coordinate that comes closer than this to the border of a cell, a uniform outside that range, and an open
    radius make a report *open*.
    *Open reports are settled* by ``reals`` from the very same words, continued with fresh bits, in decimal arithmetic, until
    their cells are certain. So every report is the exact function of its (endless) words that the formula says.
    An open radius that turns out to be rejected starts afresh, as it would have if it had been seen at once.
How often: fewer than one report in 2^13 is open for d up to 256, and a dimension adds one in 2^22.
Not covered: time is not constant: an open report takes a millisecond and more.
Source: Box and Muller 1958; Marsaglia and Tsang 2000; lazily known bits: Devroye 1986, II.2 and XV.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.local.constants import exactly
from sfumato.local.floats import Flags, Floats, circle, exact_angle, exact_circle, exact_unit, mirror, unit
from sfumato.local.radius import Radius
from sfumato.local.reals import FIRST_LEVEL, Level, Uniform, norm, settle
from sfumato.random.bits import Bits, Words

Cells = NDArray[np.int64]

CHUNK = 2**15
"""How many coordinates are worked on at once, so that they stay in the processor's cache."""

_EDGE = 2.0**-24
_MARGIN, _FLOOR = 2.0**-39, 2.0**-32


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

    @property
    def _pairs(self) -> int:
        return (self.dimension + 1) // 2

    @property
    def _directions(self) -> int:
        """Words for one direction."""
        return 1 if self.dimension <= 2 else 2 * self._pairs

    def cells(self, points: Floats, bits: Bits) -> Cells:
        """Draw the cell of one report for each point: int64, shape (n, d), for points of shape (n, d)."""
        words, radii, unsure = self.radius.draw(len(points), bits)
        turns = bits.words(self._directions * len(points)).reshape(self._directions, len(points))
        cells, doubtful = self._fast(points, radii, turns)
        for row in np.flatnonzero(unsure | doubtful):
            settled = self.settled(points[row], words[:, row].tolist(), turns[:, row].tolist(), bits)
            # Only a radius that was open can be rejected; its point draws afresh.
            cells[row] = self.cells(points[row : row + 1], bits)[0] if settled is None else settled
        return cells

    def _fast(self, points: Floats, radii: Floats, turns: Words) -> tuple[Cells, Flags]:
        """Cells by floats, and which of them are not certain."""
        scale = 1 / float(self.width)
        steps = radii * scale
        with np.errstate(divide="ignore", invalid="ignore"):
            directions, lengths, doubtful = self._direct(turns)
            margin = steps * (1 + math.sqrt(self.dimension) / lengths) * _MARGIN + self.radius.error(radii) * scale + _FLOOR
            directions *= steps / lengths
            directions += (points * scale).T
            directions -= float(self.origin / self.width)
            whole = np.floor(directions)
            cells = whole.T.astype(np.int64)
            directions -= whole
            directions -= 0.5
            np.abs(directions, out=directions)
            doubtful |= ~(directions.max(axis=0) < 0.5 - margin)
        return cells, doubtful

    def _direct(self, turns: Words) -> tuple[Floats, Floats | float, Flags]:
        """Vectors of uniform direction, shape (d, n), their lengths, and which are not certain."""
        count, none = turns.shape[1], np.zeros(turns.shape[1], dtype=bool)
        if self.dimension == 1:
            return 1.0 - 2.0 * (turns & np.uint64(1)).astype(float), 1.0, none
        pairs = self._pairs
        across, along = circle(turns[-pairs:])
        mirror(across, turns[-pairs:])
        if self.dimension == 2:
            return np.concatenate((across, along)), 1.0, none
        uniforms = unit(turns[:pairs])
        doubtful = (uniforms.min(axis=0) < _EDGE) | (uniforms.max(axis=0) > 1 - _EDGE)
        np.log(uniforms, out=uniforms)
        uniforms *= -2
        np.sqrt(uniforms, out=uniforms)
        vectors = np.empty((self.dimension, count))
        np.multiply(uniforms, across, out=vectors[:pairs])
        odd = self.dimension - pairs
        np.multiply(uniforms[:odd], along[:odd], out=vectors[pairs:])
        return vectors, np.sqrt(np.einsum("ij,ij->j", vectors, vectors)), doubtful

    def settled(self, point: Floats, words: Sequence[int], turns: Sequence[int], bits: Bits) -> list[int] | None:
        """The cell for these words, without error; None if their radius is rejected."""
        radial = self.radius.real(words, bits)
        pairs = 0 if self.dimension <= 2 else self._pairs
        lengths = [exact_unit(word, bits) for word in turns[:pairs]]
        angles = [(exact_angle(word, bits), bool(word & 1)) for word in turns[pairs:]]
        origin, width = self.origin, self.width

        def evaluate(level: Level) -> list[int] | None:
            radius = self.radius.exact(radial, level)
            if radius is None:
                return None
            vector = self._exact_direction(lengths, angles, level)
            length = level.safe(norm(vector))
            ends = (Decimal(float(v)) + radius * z / length for v, z in zip(point, vector, strict=True))
            return [level.floor((end - exactly(origin)) / exactly(width)) for end in ends]

        return settle(evaluate, self.first_level)

    def _exact_direction(self, lengths: list[Uniform], angles: list[tuple[Uniform, bool]], level: Level) -> list[Decimal]:
        if self.dimension == 1:
            return [Decimal(-1 if angles[0][1] else 1)]
        points = []
        for angle, mirrored in angles:
            cosine, sine = exact_circle(angle, level)
            points.append((-cosine if mirrored else cosine, sine))
        if self.dimension == 2:
            return list(points[0])
        radii = [(-2 * each.known(level.bits).ln()).sqrt() for each in lengths]
        across = [r * c for r, (c, _) in zip(radii, points, strict=True)]
        along = [r * s for r, (_, s) in zip(radii, points, strict=True)]
        return (across + along)[: self.dimension]
