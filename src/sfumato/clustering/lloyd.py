"""Lloyd's step with noise: sums and counts of groups, and what one person can change of them.

One step groups the rows by the nearest of the public centres. Each row adds 1 to the count of its group, and to the sum its
difference from an origin of the group, shortened to a public reach B. In the norm of the noise (L1 for Laplace, L2 for Gaussian)
a row moves the sums by at most B and the counts by 1, and moves those of one group only.

*Pure.* Sums at scale L B / eps_s and counts at scale L / eps_0, where L is rows_per_person, or twice that under replace: each of a
person's rows that comes or goes costs (B / (B / eps_s) + eps_0) / L. Together at most eps_s + eps_0.
*zCDP, add-remove.* Measured in their sigmas, a row is a vector of squared length B^2 / sigma_s^2 + 1 / sigma_0^2, and r of them are
at most r times as long: r^2 B^2 / (2 sigma_s^2) + r^2 / (2 sigma_0^2) = rho_s + rho_0.
*zCDP, replace.* A row that stays in its group moves its sum by at most 2B and no count; one that changes groups moves two sums by
B and two counts by 1. So r^2 / 2 max(4 B^2 / sigma_s^2, 2 B^2 / sigma_s^2 + 2 / sigma_0^2) is spent, and with both terms B^2 / sigma_s^2
= 1 / sigma_0^2 = rho / (2 r^2) that is rho: the counts cost nothing.

Groups are not skipped when they are empty: only their noisy counts say so.
Source: Su, Cao, Li, Bertino, Jin, CODASPY 2016, sections 2.3 and 3 (the split, the number of steps); Dwork et al. 2006, Thm 1;
Canonne, Kamath, Steinke 2020, Thm 4.
"""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.clustering.space import nearest
from sfumato.errors import InternalError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law, add_noise, count_law
from sfumato.privacy.allocation import share
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

MEAN = 0.225  # the paper's rho: half the size of a coordinate of a typical mean
FEWEST_STEPS, MOST_STEPS = 2, 7
SEEN = 2.0  # standard deviations by which a count must exceed 0 before its centre moves


class Step(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """What one step released: noisy sums and counts of groups.

    Attributes
    ----------
    centres : int64 ndarray of shape (k * d,)
        Whose groups they are: the rows nearest to each.
    about : int64 ndarray of shape (k * d,)
        From which differences were added up.
    reach : int
        To which each difference was shortened.
    sums : int64 ndarray of shape (k * d,)
    counts : int64 ndarray of shape (k,)
    sum_law, count_law : DiscreteLaplace or DiscreteGaussian
    """

    centres: Array
    about: Array
    reach: int
    sums: Array
    counts: Array
    sum_law: Law
    count_law: Law

    def moved(self, extent: Array) -> Array:
        """The means of the groups: int64 ndarray of shape (k, d), within ``extent``.

        A group whose count cannot be told from 0 keeps its centre.
        """
        k, d = len(self.counts), len(extent)
        about, before = self.about.reshape(k, d), self.centres.reshape(k, d)
        seen = self.counts > SEEN * math.sqrt(self.count_law.variance)
        means = about + np.rint(
            self.sums.reshape(k, d) / np.maximum(self.counts, 1)[:, None]
        ).astype(np.int64)
        return np.asarray(np.clip(np.where(seen[:, None], means, before), -extent, extent))

    def standard_error(self, d: int) -> Array:
        """Of the means of the groups as shortened, from the noise alone, to first order: float64 ndarray of shape (k, d)."""
        n = np.maximum(self.counts, 1)[:, None]
        mean = self.sums.reshape(len(n), d) / n
        return np.asarray(np.sqrt(self.sum_law.variance + mean**2 * self.count_law.variance) / n)


def step_laws(cost: CentralMeasure, unit: Unit, reach: int, d: int) -> tuple[Law, Law]:
    """The noise on sums and on counts of one step: see the top of this file.

    The split is the paper's: it minimises the error of means whose coordinates have size 2 * 0.225.
    """
    typical = 4 * d * MEAN**2
    match cost:
        case PureDP():
            sums, counts = share(cost, [Fraction(d), Fraction(typical ** (1 / 3))])
            if isinstance(sums, PureDP):
                return DiscreteLaplace(unit.sums_l1(reach) / sums.epsilon), count_law(counts, unit)
        case ZCDP(rho=rho) if unit.neighbours == "replace":
            both = unit.counts_l2_squared / rho
            return DiscreteGaussian(both * reach**2), DiscreteGaussian(both)
        case ZCDP():
            sums, counts = share(cost, [Fraction(d), Fraction(math.sqrt(typical))])
            if isinstance(sums, ZCDP):
                return DiscreteGaussian(unit.sums_l2_squared(reach) / (2 * sums.rho)), count_law(
                    counts, unit
                )
        case ApproxDP():
            pass
    raise InternalError("A step is paid in epsilon or in rho.")


def whole_reach(extent: Array, cost: CentralMeasure) -> int:
    """How far from the middle a row can lie, in the norm of the noise: no row is ever shortened to it."""
    if isinstance(cost, ZCDP):
        return _root_up(int((extent**2).sum()))
    return max(int(extent.sum()), 1)


def private_step(
    rows: tuple[Array, Array],
    centres: Array,
    about: Array,
    reach: int,
    laws: tuple[Law, Law],
    noise: Bits,
) -> Step:
    """Group the rows by ``centres``, add up their shortened differences from ``about``, add noise.

    Parameters
    ----------
    rows : int64 ndarrays of shapes (cells, d) and (cells,)
        Where the occupied cells stand, and how many rows each holds.
    centres, about : int64 ndarrays of shape (k, d)
    reach : int
    laws : of the sums and of the counts
    """
    where, number = rows
    groups = nearest(where, centres)
    sums, counts = np.zeros(centres.shape, np.int64), np.zeros(len(centres), np.int64)
    np.add.at(counts, groups, number)
    differences = where.copy(order="K")
    for axis, origin in enumerate(about.T):
        differences[:, axis] -= origin[groups]
    short = shortened(differences, reach, isinstance(laws[0], DiscreteGaussian))
    for axis in range(centres.shape[1]):
        np.add.at(sums[:, axis], groups, short[:, axis] * number)
    noisy = add_noise(sums.reshape(-1), laws[0], noise)
    return Step(
        centres.reshape(-1),
        about.reshape(-1),
        reach,
        noisy,
        add_noise(counts, laws[1], noise),
        *laws,
    )


def shortened(differences: Array, reach: int, euclidean: bool) -> Array:
    """Shorten each difference, in place, to ``reach`` in L1 or L2. Rounds towards 0, so never above.

    >>> shortened(np.array([[3, 4], [30, -40]]), 10, True).tolist()
    [[3, 4], [6, -8]]
    """
    if euclidean:
        squares = (differences**2).sum(axis=1)
        length = np.sqrt(squares).astype(np.int64)
        length += length**2 < squares  # the root, rounded up: a double is off by less than one here
    else:
        length = np.abs(differences).sum(axis=1)
    far = length > reach
    if far.any():
        for column in differences.T:
            sign, size = np.sign(column[far]), np.abs(column[far])
            column[far] = sign * (size * reach // length[far])
    return differences


def steps_for(rows: int, k: int, d: int, epsilon: float) -> int:
    """How many steps the paper's rule takes: epsilon over the least that a step needs, from 2 to 7."""
    least = math.sqrt(500 * k**3 * (d + (4 * d * MEAN**2) ** (1 / 3)) ** 3) / max(rows, 1)
    return int(min(max(epsilon / least, FEWEST_STEPS), MOST_STEPS))


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return max(root + (root**2 < square), 1)
