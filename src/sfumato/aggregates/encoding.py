"""How a value is encoded as integers, and the noise on their sums: fixed by public numbers alone.

The noise on each sum is that of one count, multiplied by the constant M of the basis. Samplers draw
noise up to a largest scale. So a small epsilon allows only a small M, that is, few steps between
the bounds of the value. This is decided before anything is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.aggregates.basis import Basis, BasisName, basis_within
from sfumato.aggregates.values import Values, axis_steps
from sfumato.errors import UsageError
from sfumato.lattice import GridAxis
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law, count_law
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.discrete import MAX_SCALE


@dataclass(frozen=True)
class Encoding:
    """What is summed for one value, and the noise on each sum.

    Attributes
    ----------
    values : Values
        The lattice that values are rounded to.
    basis : Basis
        The functions of a lattice value that are summed.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each sum.
    """

    values: Values
    basis: Basis
    law: Law


def encoding_within(
    title: str, axis: GridAxis, functions: BasisName, unit: Unit, cost: CentralMeasure
) -> Encoding:
    """Choose the finest encoding of a value whose noise can be drawn at this cost.

    Raises
    ------
    UsageError
        If not even a lattice of one step has noise that can be drawn.
    """
    count_noise = count_law(cost, unit)
    largest_unity = _largest_unity(count_noise)
    steps, rounded = axis_steps(axis)
    basis = basis_within(functions, steps, largest_unity)
    if basis is not None and rounded:
        # The cells of such an axis are a power of two. With a power of two of steps, each step has
        # equally many cells, so that a cell never straddles the middle between two steps.
        power_of_two = 2 ** (basis.points.bit_length() - 1)
        basis = basis_within(functions, power_of_two, largest_unity)
    if basis is None:
        obstacle = "its noise would be too large to be drawn"
        raise UsageError(title, obstacle, "Choose a larger epsilon, or fewer rows per person")
    # The upper bound of an axis with a step does not occur: its last value is one step below.
    upper = axis.upper if rounded or axis.step is None else axis.upper - axis.step
    values = Values(axis.name, axis.lower, upper, basis.points, rounded or basis.points < steps)
    return Encoding(values, basis, _multiplied(count_noise, basis.unity))


def _multiplied(law: Law, factor: int) -> Law:
    """The law of noise whose scale is so many times larger."""
    match law:
        case DiscreteLaplace(scale=scale):
            return DiscreteLaplace(scale * factor)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return DiscreteGaussian(sigma_squared * factor**2)


def _largest_unity(law: Law) -> int:
    """The largest factor by which the noise on a count can be multiplied and still be drawn."""
    match law:
        case DiscreteLaplace(scale=scale):
            return int(MAX_SCALE / scale)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return math.isqrt(int(MAX_SCALE**2 / sigma_squared))
