"""Partitions of unity: non-negative integer functions of a value that add up to a constant.

A value x lies on the integer lattice 0..R. Each function f_j is summed over the rows of a group,
and the sums F_j are published with noise. One row changes the sums of one group by
(f_1(x), .., f_k(x)). The L1 norm of this change is exactly the constant M, and its L2 norm is at
most M. So the noise on each sum is that of one count, in units of M, however many functions there
are.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from sfumato.arrays import Array

BasisName: TypeAlias = Literal["pair", "quadratic"]


class Basis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition of unity on 0..R.

    Parameters
    ----------
    name : {"pair", "quadratic"}
        "pair": R - x and x, with M = R. They give counts, sums and means.
        "quadratic": (R - x)^2, 2x(R - x) and x^2, with M = R^2. They also give variances.
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

    @property
    def unity(self) -> int:
        """The constant M that the functions add up to at every value."""
        if self.name == "pair":
            return self.multiple * self.points
        return self.multiple * self.points**2

    @property
    def weights(self) -> Array:
        """Weights w with x / R = sum_j w_j f_j(x) / M: float64 ndarray of shape (k,)."""
        if self.name == "pair":
            return np.array([0.0, 1.0])
        return np.array([0.0, 0.5, 1.0])

    @property
    def squares(self) -> Array:
        """Weights u with (x / R)^2 = sum_j u_j f_j(x) / M: float64 ndarray of shape (k,).

        Raises
        ------
        ValueError
            If the basis is the pair, which has no second moments.
        """
        if self.name == "pair":
            raise ValueError("the pair has no second moments")
        return np.array([0.0, 0.0, 1.0])

    def functions(self, values: Array) -> Array:
        """Evaluate the functions at lattice values: int64 ndarray of shape (len(values), k)."""
        x = np.asarray(values, dtype=np.int64)
        rest = self.points - x
        if self.name == "pair":
            return self.multiple * np.stack([rest, x], axis=1)
        return self.multiple * np.stack([rest * rest, 2 * x * rest, x * x], axis=1)


FINE = 2**16  # the least M, if the noise allows it


def basis_within(name: BasisName, points: int, unity: int) -> Basis | None:
    """Choose the basis with the largest R up to ``points`` whose M is at most ``unity``.

    It is None if even R = 1 has a larger M.

    >>> basis_within("quadratic", 120, 2**40), basis_within("pair", 2**16, 100)
    (Basis(name='quadratic', points=120, multiple=5), Basis(name='pair', points=100, multiple=1))
    """
    largest = unity if name == "pair" else math.isqrt(unity)
    points = min(points, largest)
    if points < 1:
        return None
    plain = Basis(name, points)
    multiple_for_fine_noise = -(-FINE // plain.unity)  # rounded up
    multiple = min(multiple_for_fine_noise, unity // plain.unity)
    return Basis(name, points, max(multiple, 1))
