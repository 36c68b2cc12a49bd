"""How a value is encoded as integers, and the noise on their sums: fixed by public numbers alone.

The noise on each sum is that of one count, multiplied by the constant M of the basis. Samplers draw
noise up to a largest scale. So a small epsilon allows only a small M, that is, few steps between
the bounds of the value. A value is rounded to a step before it is added up, so this is decided from
the cost before anything is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.aggregates.basis import Basis, BasisName, basis_within
from sfumato.aggregates.per_person import PersonScale
from sfumato.aggregates.segments import segment_axis
from sfumato.aggregates.values import (
    MOST_STEPS,
    MOST_STEPS_SQUARED,
    Values,
    most_steps,
    value_axis,
    values_on,
)
from sfumato.answers.counts import Summed
from sfumato.domain.domain import Interval
from sfumato.domain.lattice import EdgesAxis, GridAxis
from sfumato.errors import InternalError, UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.random.discrete import MAX_SCALE


@dataclass(frozen=True)
class ValueForm:
    """What is summed for one value.

    Attributes
    ----------
    axis : GridAxis
        Locates a value: the number of its cell is the number of steps from the lower bound.
    basis : Basis
        The functions of a number of steps that are summed.
    """

    axis: GridAxis
    basis: Basis

    @property
    def values(self) -> Values:
        """The lattice that values are rounded to."""
        return values_on(self.axis)

    @property
    def summed(self) -> Summed:
        """What each row adds to its cell."""
        return Summed(self.axis, squares=self.basis.name == "quadratic")

    @property
    def segments(self) -> EdgesAxis | None:
        """The cells of values between the knots of hats; None for other functions."""
        if self.basis.name != "hats":
            return None
        return segment_axis(self.axis, self.basis.knots)


@dataclass(frozen=True)
class PersonForm:
    """The same for the value of a person.

    Attributes
    ----------
    scale : PersonScale
    basis : Basis
        The functions of a number of steps that are summed.
    """

    scale: PersonScale
    basis: Basis

    @property
    def values(self) -> Values:
        """The lattice that values are rounded to."""
        return self.scale.values(self.basis.points)

    @property
    def summed(self) -> Summed:
        """What each person adds to a cell."""
        knots = self.basis.knots if self.basis.name == "hats" else None
        return self.scale.summed(self.basis.points, self.basis.name == "quadratic", knots)

    @property
    def segments(self) -> EdgesAxis | None:
        """The cells of persons between the knots of hats; None for other functions."""
        return self.summed.segments

    def encoding(self, count_noise: Law) -> Encoding:
        """The same with the noise on each sum."""
        return Encoding(self.values, self.basis, _multiplied(count_noise, self.basis.unity))


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


def value_form(
    title: str, name: str, interval: Interval, functions: BasisName, count_noise: Law | None = None
) -> ValueForm:
    """Choose the finest form of a value whose noise can be drawn.

    Parameters
    ----------
    count_noise : DiscreteLaplace, DiscreteGaussian or None
        The noise on a count at the cost of the value. None: so small that it allows the finest form
        of all.

    Raises
    ------
    UsageError
        If the axis has only one value, or not even a lattice of one step has noise that can be
        drawn.
    """
    largest_unity = MAX_SCALE if count_noise is None else _largest_unity(count_noise)
    steps = most_steps(title, name, interval, functions == "quadratic")
    basis = basis_within(functions, steps, largest_unity)
    if basis is not None and basis.points < steps:
        # Costs that differ a little then lead to the same lattice.
        power_of_two = 2 ** (basis.points.bit_length() - 1)
        basis = basis_within(functions, power_of_two, largest_unity)
    if basis is None:
        raise _too_much_noise(title, "rows")
    return ValueForm(value_axis(name, interval, basis.points), basis)


def person_form(
    title: str, scale: PersonScale, functions: BasisName, count_noise: Law | None = None
) -> PersonForm:
    """Choose the finest form of the value of a person whose noise can be drawn.

    Parameters
    ----------
    count_noise : DiscreteLaplace, DiscreteGaussian or None
        As for ``value_form``.

    Raises
    ------
    UsageError
        If not even a lattice of one step has noise that can be drawn.
    """
    largest_unity = MAX_SCALE if count_noise is None else _largest_unity(count_noise)
    most = MOST_STEPS_SQUARED if functions == "quadratic" else MOST_STEPS
    finest = basis_within(functions, most, largest_unity)
    if finest is None:
        raise _too_much_noise(title, "cells")
    # Costs that differ a little then lead to the same lattice.
    power_of_two = 2 ** (finest.points.bit_length() - 1)
    basis = basis_within(functions, scale.points(power_of_two), largest_unity)
    assert basis is not None
    return PersonForm(scale, basis)


def _too_much_noise(title: str, limited: str) -> UsageError:
    obstacle = "its noise would be too large to be drawn"
    return UsageError(title, obstacle, f"Choose a larger epsilon, or fewer {limited} per person")


def encoding_on(axis: GridAxis, functions: BasisName, count_noise: Law) -> Encoding:
    """The encoding of a value that was added up on an axis of ``value_form``.

    Raises
    ------
    InternalError
        If it was counted for another cost, which allows a finer lattice.
    """
    points = axis.cells - 1
    basis = basis_within(functions, points, _largest_unity(count_noise))
    if basis is None or basis.points != points:
        raise InternalError("Values were added up in steps that are too fine for this cost.")
    return Encoding(values_on(axis), basis, _multiplied(count_noise, basis.unity))


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
