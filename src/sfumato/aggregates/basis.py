"""Partitions of unity: non-negative integer functions of a value that add up to a constant.

A value x lies on the integer lattice 0..R. Each function f_j is summed over the rows of a group,
and the sums F_j are published with noise. One row changes the sums of one group by
(f_1(x), .., f_k(x)). The L1 norm of this change is exactly the constant M, and its L2 norm is at
most M. So the noise on each sum is that of one count, in units of M, however many functions there
are.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError

BasisName: TypeAlias = Literal["pair", "quadratic", "hats"]

MOST_DOUBLINGS = 19  # of the first knot of hats: clips down to 2^-19 of the range
OVERSHOOT = 8  # the last knot of hats exceeds R by at most an eighth


class Basis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition of unity on 0..R.

    Parameters
    ----------
    name : {"pair", "quadratic", "hats"}
        "pair": R - x and x, with M = R. They give counts, sums and means.
        "quadratic": (R - x)^2, 2x(R - x) and x^2, with M = R^2. They also give variances.
        "hats": linear B-splines on the knots 0, g, 2g, 4g, .., with M the largest gap between two
        knots. They give the count, sum and mean of the values clipped to any knot.
    points : int
        R, at least 1.
    multiple : int
        A factor of all functions. If R is small, it makes the noise finer than a row. Intervals are
        then not widened by the rounding of noise to integers.

    >>> Basis("quadratic", 2).functions(np.arange(3)).tolist()
    [[4, 0, 0], [1, 2, 1], [0, 0, 4]]
    """

    name: BasisName
    points: int
    multiple: int = 1

    def __post_init__(self) -> None:
        if self.points < 1 or self.multiple < 1:
            asked = f"a partition of unity on {self.points} points"
            raise UsageError(asked, "it adds up to nothing", "Load a file that release.save wrote")

    @property
    def unity(self) -> int:
        """The constant M that the functions add up to at every value."""
        match self.name:
            case "pair":
                return self.multiple * self.points
            case "quadratic":
                return self.multiple * self.points**2
            case "hats":
                return self.multiple * int(np.diff(self.knots).max())

    @property
    def knots(self) -> Array:
        """Lattice values 0, g, 2g, 4g, .. of the hats: int64 ndarray of shape (k,).

        The last is at least R. There are as many doublings as leave it within R and an eighth.
        """
        return _geometric_knots(self.points)

    @property
    def weights(self) -> Array:
        """Weights w with x / R = sum_j w_j f_j(x) / M: float64 ndarray of shape (k,)."""
        match self.name:
            case "pair":
                return np.array([0.0, 1.0])
            case "quadratic":
                return np.array([0.0, 0.5, 1.0])
            case "hats":
                return self.knots / self.points

    @property
    def size(self) -> int:
        """The number k of functions."""
        return len(self.weights)

    @property
    def squares(self) -> Array:
        """Weights u with (x / R)^2 = sum_j u_j f_j(x) / M: float64 ndarray of shape (k,).

        Raises
        ------
        ValueError
            If the basis has no second moments.
        """
        if self.name != "quadratic":
            raise ValueError(f"the {self.name} has no second moments")
        return np.array([0.0, 0.0, 1.0])

    def functions(self, values: Array) -> Array:
        """Evaluate the functions at lattice values: int64 ndarray of shape (len(values), k)."""
        indices, amounts = self.terms(values)
        found = np.zeros((len(indices), self.size), np.int64)
        np.put_along_axis(found, indices, amounts, axis=1)
        return found

    def terms(self, values: Array) -> tuple[Array, Array]:
        """Which functions may differ from 0 at lattice values, and what they are there.

        Returns
        -------
        indices, amounts : int64 ndarrays of shape (len(values), terms)
        """
        x = np.asarray(values, dtype=np.int64)
        rest = self.points - x
        match self.name:
            case "pair":
                amounts = np.stack([rest, x], axis=1)
            case "quadratic":
                amounts = np.stack([rest * rest, 2 * x * rest, x * x], axis=1)
            case "hats":
                return self._hat_terms(x)
        every = np.arange(amounts.shape[1])
        return np.broadcast_to(every, amounts.shape), self.multiple * amounts

    def _hat_terms(self, x: Array) -> tuple[Array, Array]:
        """The two hats on both sides of each value; all others are 0 there."""
        knots = self.knots
        lower = np.minimum(np.searchsorted(knots, x, side="right") - 1, len(knots) - 2)
        # All gaps divide the largest one, so that each amount is a whole number.
        slope = self.unity // (knots[lower + 1] - knots[lower])
        indices = np.stack([lower, lower + 1], axis=1)
        amounts = np.stack([(knots[lower + 1] - x) * slope, (x - knots[lower]) * slope], axis=1)
        return indices, amounts


@lru_cache(maxsize=64)
def _geometric_knots(points: int) -> Array:
    """The knots of hats on 0..``points``; see ``Basis.knots``."""
    for doublings in range(MOST_DOUBLINGS, -1, -1):
        first = -(-points >> doublings)  # rounded up
        if OVERSHOOT * (first << doublings) <= (OVERSHOOT + 1) * points:
            break
    knots = np.concatenate([[0], first * 2 ** np.arange(doublings + 1, dtype=np.int64)])
    knots.flags.writeable = False  # it is shared
    return knots


FINE = 2**16  # the least M, if the noise allows it


def basis_within(name: BasisName, points: int, unity: int) -> Basis | None:
    """Choose the basis with the largest R up to ``points`` whose M is at most ``unity``.

    It is None if even R = 1 has a larger M.

    >>> basis_within("quadratic", 120, 2**40), basis_within("pair", 2**16, 100)
    (Basis(name='quadratic', points=120, multiple=5), Basis(name='pair', points=100, multiple=1))
    """
    # The M of hats is at most R.
    largest = math.isqrt(unity) if name == "quadratic" else unity
    points = min(points, largest)
    if points < 1:
        return None
    plain = Basis(name, points)
    multiple_for_fine_noise = -(-FINE // plain.unity)  # rounded up
    multiple = min(multiple_for_fine_noise, unity // plain.unity)
    return Basis(name, points, max(multiple, 1))
