"""Lloyd's step with noise, on rows that are whole numbers, and what one person can change of it.

*The whole numbers in which rows are clustered* (``Space``), and the public map between them and the
axes.

Each axis of a lattice is scaled to -1 .. 1 and cut into 2^20 steps a side. A lattice cell stands at
its middle. From there on rows, centres and sums are integers. Where the cells of an axis are its
own steps, the values in a cell are the one that opens it (37 in [37, 38)), so the middle of the
cell is read as that value: the map to the axis is moved by half a step, and the integers are not.

Guarantee: the group of a row is a function of its own lattice cell and of the centres, and of
nothing else.
Holds because: coordinates are integers of size at most 2^20. So every product, partial sum and
difference in ``nearest`` is an integer below 2^53, for up to 2^10 axes. Doubles hold these exactly,
in whatever order a linear-algebra library adds. A rounding that depended on where a row stands in
memory would let one row move another one to a different group.

*Sums and counts of groups* (``Step``).

One step groups the rows by the nearest of the public centres. Each row adds 1 to the count of its
group. To the sum of its group it adds its difference from the group's origin, clipped to a public
radius B. The radius is measured in the norm of the noise: L1 for Laplace, L2 for Gaussian noise. So
a row changes the sums by at most B and the counts by 1, and it changes those of one group only.

*Pure epsilon.* The sums get noise of scale L B / eps_s, and the counts noise of scale L / eps_0. L
is rows_per_person, or twice that under replace. Each of a person's rows that comes or goes costs (B
/ (B / eps_s) + eps_0) / L. Together they cost at most eps_s + eps_0.

*zCDP, add-remove.* In units of the sigmas, a row is a vector of squared length
B^2 / sigma_s^2 + 1 / sigma_0^2, and r rows are at most r times as long. They cost
r^2 B^2 / (2 sigma_s^2) + r^2 / (2 sigma_0^2) = rho_s + rho_0.

*zCDP, replace.* A row that stays in its group changes its sum by at most 2B and no count. A row
that changes groups changes two sums by B and two counts by 1. So r^2 / 2 max(4 B^2 / sigma_s^2, 2
B^2 / sigma_s^2 + 2 / sigma_0^2) is spent. With B^2 / sigma_s^2 = 1 / sigma_0^2 = rho / (2 r^2) that
is rho: the counts cost nothing extra.

Empty groups are not skipped: whether a group is empty is known from its noisy count only.

Source: Su, Cao, Li, Bertino, Jin, CODASPY 2016, sections 2.3 and 3 (the split, the number of
steps); Dwork et al. 2006, Thm 1; Canonne, Kamath, Steinke 2020, Thm 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.domain import Cube, GridAxis, Lattice, finest
from sfumato.errors import InternalError
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law, add_noise, count_law
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, PureDP, Unit, share
from sfumato.random.bits import Bits

# --- the whole numbers of rows --------------------------------------------------------------------

# Steps on each side of the middle of an axis.
HALF = 2**20
MOST_AXES = 2**10


@dataclass(frozen=True)
class Space:
    """Interval axes scaled to whole numbers from -2^20 to 2^20."""

    lattice: Lattice

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes of the lattice."""
        return self.lattice.grids

    @property
    def d(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @cached_property
    def extent(self) -> Array:
        """How far from the middle a row can lie along each axis: int64 ndarray of shape (d,).

        It is 0 where an axis has one cell.
        """
        return np.array([(axis.cells - 1) * HALF // axis.cells for axis in self.axes], np.int64)

    def rows(self, cube: Cube) -> tuple[Array, Array]:
        """Where the occupied cells stand, and how many rows each holds.

        Returns
        -------
        points, rows : int64 ndarrays of shapes (cells, d) and (cells,)
            Each axis is contiguous in memory, because steps run over one axis at a time.
        """
        coordinates, counts = cube.occupied()
        columns = [
            _middles(axis.cells)[index]
            for axis, index in zip(self.axes, coordinates.T, strict=True)
        ]
        return np.stack(columns).T, counts.astype(np.int64, copy=False)

    def whole(self, scaled: Array) -> Array:
        """Round points in [-1, 1]^d to whole numbers where rows can lie: int64 ndarray."""
        rounded = np.clip(np.rint(scaled * HALF), -self.extent, self.extent)
        return np.asarray(rounded.astype(np.int64))

    def scale(self, points: Array) -> Array:
        """Scale points in the axes' own units to [-1, 1]^d, clamped: float64 ndarray; NaN stays."""
        with np.errstate(over="ignore"):
            return self.scale_edges(points + self.shift)

    def scale_edges(self, edges: Array) -> Array:
        """Scale edges of cells to [-1, 1]^d, clamped: float64 ndarray like ``edges``."""
        low, high = self._ends
        with np.errstate(over="ignore"):
            scaled = (edges - low) / (high - low) * 2 - 1
            return np.asarray(np.clip(scaled, -1, 1))

    def unscale(self, whole: Array) -> Array:
        """Scale whole numbers back to the axes' own units: float64 ndarray like ``whole``."""
        low, high = self._ends
        shares = (whole / HALF + 1) / 2
        return np.asarray(low - self.shift + shares * (high - low))

    @cached_property
    def widths(self) -> Array:
        """The length of one whole number along each axis, in its own units: float64 (d,)."""
        low, high = self._ends
        return (high - low) / 2 / HALF

    @cached_property
    def shift(self) -> Array:
        """From a value to the middle of its cell: float64 ndarray of shape (d,).

        Half a step where the cells are steps, else 0.
        """
        low, high = self._ends
        cells = np.array([axis.cells for axis in self.axes])
        are_steps = np.array([axis.snap and axis.cells < finest(self.d) for axis in self.axes])
        return np.where(are_steps, (high - low) / 2 / cells, 0.0)

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        low = np.array([axis.lower for axis in self.axes])
        return low, np.array([axis.upper for axis in self.axes])


def _middles(cells: int) -> Array:
    """Where the cells of an axis stand: int64 ndarray of shape (cells,), symmetric about 0."""
    odd = 2 * np.arange(cells, dtype=np.int64) + 1 - cells
    return np.asarray(np.sign(odd) * (np.abs(odd) * HALF // cells))


def nearest(rows: Array, centres: Array) -> Array:
    """The centre that is nearest to each row, the first of equals: int64 ndarray of shape (n,).

    Parameters
    ----------
    rows, centres : int64 ndarrays of shapes (n, d) and (k, d)
        Coordinates have size at most 2^20, and d is at most 2^10: see the top of this file.
    """
    if rows.shape[1] > MOST_AXES:
        raise InternalError("Too many axes for distances that are exact.")
    # |row - centre|^2 is smallest where |centre|^2 - 2 centre . row is.
    towards = -2.0 * centres
    offset = (centres**2).sum(axis=1).astype(float)
    groups = np.zeros(len(rows), np.int64)
    # Few distances are held at once, so that they stay in a cache.
    step = max(1, 2**18 // len(centres))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        distances = towards @ rows[block].T.astype(float)
        distances += offset[:, None]
        least = distances[0]
        # An argmin over few columns takes several times as long as this loop.
        for i in range(1, len(centres)):
            groups[block][distances[i] < least] = i
            np.minimum(least, distances[i], out=least)
    return groups


# --- steps ----------------------------------------------------------------------------------------

# The paper's rho: half the size of a coordinate of a typical mean.
TYPICAL_MEAN = 0.225
MOST_STEPS = 7


class Step(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """What one step released: noisy sums and counts of groups.

    Attributes
    ----------
    centres : int64 ndarray of shape (k * d,)
        The centres of the groups: a group holds the rows nearest to its centre.
    origins : int64 ndarray of shape (k * d,), "about" in files
        The points from which differences were added up.
    clip_radius : int, "reach" in files
        The length to which each difference was clipped.
    sums : int64 ndarray of shape (k * d,)
    counts : int64 ndarray of shape (k,)
    sum_law, count_law : DiscreteLaplace or DiscreteGaussian
        The noise on each sum and on each count.
    """

    centres: Array
    origins: Array = msgspec.field(name="about")
    clip_radius: int = msgspec.field(name="reach")
    sums: Array
    counts: Array
    sum_law: Law
    count_law: Law

    def moved(self, extent: Array) -> Array:
        """The means of the groups: int64 ndarray of shape (k, d), within ``extent``.

        A group whose count cannot be told from 0 keeps its centre.
        """
        shape = (len(self.counts), len(extent))
        # A centre moves if its count exceeds 0 by two standard deviations.
        is_seen = self.counts > 2.0 * math.sqrt(self.count_law.variance)
        # A noisy count may be 0 or negative. Such a group keeps its centre, whatever is divided
        # here.
        rows = np.maximum(self.counts, 1)[:, None]
        offsets = self.sums.reshape(shape) / rows
        means = self.origins.reshape(shape) + np.rint(offsets).astype(np.int64)
        centres = np.where(is_seen[:, None], means, self.centres.reshape(shape))
        return np.clip(centres, -extent, extent)

    def standard_error(self, d: int) -> Array:
        """The standard deviation of the means of the clipped groups: float64 ndarray (k, d).

        It comes from the noise alone, to first order.
        """
        n = np.maximum(self.counts, 1)[:, None]
        mean = self.sums.reshape(len(n), d) / n
        variances = self.sum_law.variance + mean**2 * self.count_law.variance
        return np.sqrt(variances) / n


def step_laws(cost: CentralMeasure, unit: Unit, clip_radius: int, d: int) -> tuple[Law, Law]:
    """Return the noise on sums and on counts of one step: see the top of this file.

    The split is the paper's: it minimises the error of means whose coordinates have size 2 * 0.225.
    """
    typical = 4 * d * TYPICAL_MEAN**2
    match cost:
        case PureDP():
            sums, counts = share(cost, [Fraction(d), Fraction(typical ** (1 / 3))])
            # Parts of a cost have its type: the test is there for type checkers.
            if isinstance(sums, PureDP):
                sum_law = DiscreteLaplace(unit.sums_l1(clip_radius) / sums.epsilon)
                return sum_law, count_law(counts, unit)
        case ZCDP(rho=rho) if unit.neighbours == "replace":
            both = unit.counts_l2_squared / rho
            return DiscreteGaussian(both * clip_radius**2), DiscreteGaussian(both)
        case ZCDP():
            sums, counts = share(cost, [Fraction(d), Fraction(math.sqrt(typical))])
            if isinstance(sums, ZCDP):
                squared = unit.sums_l2_squared(clip_radius) / (2 * sums.rho)
                return DiscreteGaussian(squared), count_law(counts, unit)
        case ApproxDP():
            pass
    raise InternalError("A step is paid in epsilon or in rho.")


def full_radius(extent: Array, cost: CentralMeasure) -> int:
    """The radius that clips no row: how far from the middle a row can lie, in the noise's norm."""
    if isinstance(cost, ZCDP):
        square = int((extent**2).sum())
        root = math.isqrt(square)
        return max(root + (root**2 < square), 1)
    return max(int(extent.sum()), 1)


def private_step(
    rows: tuple[Array, Array],
    centres: Array,
    origins: Array,
    clip_radius: int,
    laws: tuple[Law, Law],
    noise: Bits,
) -> Step:
    """Group the rows by ``centres``, add up their clipped differences from ``origins``, add noise.

    Parameters
    ----------
    rows : int64 ndarrays of shapes (cells, d) and (cells,)
        Where the occupied cells stand, and how many rows each holds.
    centres, origins : int64 ndarrays of shape (k, d)
    clip_radius : int
    laws : pair of laws
        The noise on the sums and on the counts.
    noise : Bits
    """
    where, number = rows
    sum_law, noise_on_counts = laws
    groups = nearest(where, centres)
    sums = np.zeros(centres.shape, np.int64)
    counts = np.zeros(len(centres), np.int64)
    # Unlike an addition by index, ``add.at`` counts each row of a group.
    np.add.at(counts, groups, number)
    # A copy: ``clip`` works in place, and the next step needs the rows as they are.
    differences = where.copy(order="K")
    for axis, origin in enumerate(origins.T):
        differences[:, axis] -= origin[groups]
    clipped = clip(differences, clip_radius, isinstance(sum_law, DiscreteGaussian))
    for axis in range(centres.shape[1]):
        np.add.at(sums[:, axis], groups, clipped[:, axis] * number)
    noisy_sums = add_noise(sums.reshape(-1), sum_law, noise)
    noisy_counts = add_noise(counts, noise_on_counts, noise)
    return Step(
        centres.reshape(-1),
        origins.reshape(-1),
        clip_radius,
        noisy_sums,
        noisy_counts,
        sum_law,
        noise_on_counts,
    )


def clip(differences: Array, radius: int, euclidean: bool) -> Array:
    """Shorten each difference, in place, to ``radius`` in L1 or L2.

    It rounds towards 0, so no difference is longer than the radius afterwards. The sensitivity of
    the sums relies on that.

    Parameters
    ----------
    differences : int64 ndarray of shape (cells, d)
    radius : int
    euclidean : bool
        True: lengths are measured in L2, otherwise in L1.

    >>> clip(np.array([[3, 4], [30, -40]]), 10, True).tolist()
    [[3, 4], [6, -8]]
    """
    if euclidean:
        squares = (differences**2).sum(axis=1)
        length = np.sqrt(squares).astype(np.int64)
        # Round the root up. The double is off by less than one here.
        length += length**2 < squares
    else:
        length = np.abs(differences).sum(axis=1)
    is_far = length > radius
    if is_far.any():
        for column in differences.T:
            sign = np.sign(column[is_far])
            size = np.abs(column[is_far])
            # Rounded towards 0, so that no clipped difference is longer than the radius.
            column[is_far] = sign * (size * radius // length[is_far])
    return differences


def steps_for(rows: int, k: int, d: int, epsilon: float) -> int:
    """How many steps the paper's rule takes, from 2 to 7: epsilon over the least that one needs."""
    per_step = (d + (4 * d * TYPICAL_MEAN**2) ** (1 / 3)) ** 3
    least = math.sqrt(500 * k**3 * per_step) / max(rows, 1)
    return int(min(max(epsilon / least, 2), MOST_STEPS))
