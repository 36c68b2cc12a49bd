"""Reports around a point, on a public lattice: cell = floor((v + r u - origin) / width), u a
uniform direction, r by ``Radius``.

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
    that is the *margin* of a report. A cell is the whole number nearest to the coordinate less a
    half. A report with a coordinate that comes closer than its margin to the border of a cell, with
    a doubtful normal or a doubtful radius is *open*.
    *Open reports are settled* by ``reals`` and ``normals`` from the very same words, continued with
    fresh bits, in decimal arithmetic, until their cells are certain. So every report is the exact
    function of its (endless) words that the formula says. A doubtful radius that turns out to be
    rejected starts afresh, as it would have if it had been seen at once.
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
from numpy.typing import NDArray

from sfumato.local.sampling.constants import exactly
from sfumato.local.sampling.floats import Flags, Floats, circle, exact_angle, exact_circle, mirror
from sfumato.local.sampling.normals import normal_at
from sfumato.local.sampling.radius import Radius, Reals
from sfumato.local.sampling.reals import FIRST_LEVEL, Level, norm, settle
from sfumato.random.bits import Bits, Words
from sfumato.random.normal import ERROR, Trace, fill

Cells = NDArray[np.int64]
Direction: TypeAlias = Callable[[Level], list[Decimal]]

CHUNK = 2**18
"""How many coordinates are worked on at once; steps between them work on fewer, which stay in the
processor's cache.
"""

_PIECE = 2**15
_RUN = 512
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

    def cells(self, points: Floats, bits: Bits, out: Floats | None = None) -> Floats:
        """Draw the cell of one report for each point: whole numbers, float64, shape (n, d), for
        points of shape (n, d).
        """
        cells = np.empty(points.shape) if out is None else out
        if not len(points):
            return cells
        radii = self.radius.draw(len(points), bits)
        with np.errstate(divide="ignore", invalid="ignore"):
            doubtful, turns = self._fast(points, radii.values, bits, cells)
        for row in np.flatnonzero(doubtful | radii.doubtful).tolist():
            settled = self.settled(
                points[row], radii.reals(row, bits), self._direction(turns, row, bits)
            )
            # Only a radius that was doubtful can be rejected; its point draws afresh.
            cells[row] = self.cells(points[row : row + 1], bits)[0] if settled is None else settled
        return cells

    def _fast(
        self, points: Floats, radii: Floats, bits: Bits, cells: Floats
    ) -> tuple[Flags, Words | Trace]:
        """Write the cells that floats give; return which of them are not certain, and the words of
        the directions.
        """
        scale = 1 / float(self.width)
        lengths, errors, turns = self._direct(cells, bits)
        steps = radii * scale
        margins = 2 * steps * errors + self.radius.error(radii) * scale + _FLOOR
        steps /= lengths
        doubtful = np.zeros(len(points), dtype=bool)
        rows = max(1, _PIECE // self.dimension)
        spare = np.empty((min(rows, len(points)), self.dimension))
        for start in range(0, len(points), rows):
            part = slice(start, start + rows)
            near = spare[: len(steps[part])]
            np.multiply(points[part], scale, out=near)
            near -= float(self.origin / self.width) + 0.5
            cells[part] *= np.repeat(steps[part], self.dimension).reshape(near.shape)
            near += cells[part]
            near -= np.rint(near, out=cells[part])
            # One glance at all of them first: few pieces hold a report that is not certain.
            if not max(near.max(), -near.min()) < 0.5 - margins[part].max():
                doubtful[part] = ~(np.abs(near).max(axis=1) < 0.5 - margins[part])
        if isinstance(turns, Trace):
            doubtful[turns.doubtful // self.dimension] = True
        return doubtful, turns

    def _direct(
        self, target: Floats, bits: Bits
    ) -> tuple[Floats | float, Floats | float, Words | Trace]:
        """Write vectors of uniform direction; return their lengths, how far they may be off over
        their length, and their words.
        """
        if self.dimension > 2:
            trace = fill(target.reshape(-1), bits)
            runs = [target[:, start : start + _RUN] for start in range(0, self.dimension, _RUN)]
            lengths = np.sqrt(sum(np.einsum("ij,ij->i", run, run) for run in runs))
            rounding = (min(self.dimension, _RUN) + len(runs) + 6) * _ROUNDING
            return lengths, 2 * ERROR * math.sqrt(self.dimension) / lengths + rounding, trace
        words = bits.words(len(target))
        target[:, 0] = 1.0
        if self.dimension == 2:
            target[:, 0], target[:, 1] = circle(words)
        mirror(target[:, 0], words)
        return 1.0, 2.0**-49, words

    def _direction(self, turns: Words | Trace, row: int, bits: Bits) -> Direction:
        """The direction of one report, without error, up to its length."""
        if isinstance(turns, Trace):
            normals = [
                normal_at(turns, row * self.dimension + axis, bits)
                for axis in range(self.dimension)
            ]
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
            ends = (
                Decimal(float(v)) + radius * z / length for v, z in zip(point, vector, strict=True)
            )
            return [level.floor((end - exactly(origin)) / exactly(width)) for end in ends]

        return settle(evaluate, self.first_level)
