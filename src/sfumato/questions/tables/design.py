"""Which noise the tables of a family get: what is measured, and with which law."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.errors import UsageError
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law, add_noise
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Event,
    PureDP,
    StackedNorm,
    Unit,
    approx_to_zcdp,
    laplace_event,
    sum_of,
    without_delta,
    worst_event,
)
from sfumato.questions.tables.gaussian_design import Aim, gaussian_design, shares_of_variance
from sfumato.questions.tables.laplace_design import laplace_shares, stacked_norm
from sfumato.questions.tables.levels import Levels, Margin, Nesting, follows, unknown
from sfumato.questions.tables.residuals import Family, Measured, closure_of
from sfumato.questions.tables.trees import UnevenFamily
from sfumato.random.bits import Bits


class Measurement(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was measured of a family, and the noise on it.

    Attributes
    ----------
    margin : tuple of int
        The level of each axis; 0 where the table is summed over it.
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each count of the table.
    whole : bool
        Whether the noisy table was published. False: only its residual was, as differences against
        the last cell along each of its axes.
    """

    margin: tuple[int, ...]
    law: Law
    whole: bool = True


@dataclass(frozen=True)
class Design:
    """The measurements of a family of tables.

    Attributes
    ----------
    axes : tuple of Levels
    tables : tuple of tuple of int
        The tables that are asked for, by the level of each axis.
    measured : tuple of Measurement
    cost : PureDP, ApproxDP or ZCDP
        What they cost together.
    known : tuple of tuple of int
        The tables that are known without being measured.
    norm : StackedNorm or None
        What bounds a person's rows in all tables, where the unit limits a norm.
    """

    axes: tuple[Levels, ...]
    tables: tuple[Margin, ...]
    measured: tuple[Measurement, ...]
    cost: CentralMeasure
    known: tuple[Margin, ...] = ()
    norm: StackedNorm | None = None

    @property
    def family(self) -> Family:
        """The family with the variances of this noise."""
        return family_of(self.axes, self.measured, self.known)

    @property
    def has_residuals(self) -> bool:
        """Whether residuals are measured, and not whole tables."""
        return not all(measurement.whole for measurement in self.measured)

    def event(self, unit: Unit) -> Event:
        """What the noise on all tables draws; of Gaussian noise, what its rho or cost says."""
        laws = [measurement.law for measurement in self.measured]
        scales = [law.scale for law in laws if isinstance(law, DiscreteLaplace)]
        if len(scales) < len(self.measured):
            return worst_event(self.cost)
        return sum_of([laplace_event(scale, unit) for scale in scales])

    def measure(self, tables: Mapping[Margin, Array], noise: Bits) -> Array:
        """Add the noise to true tables, and give what is published: int64 ndarray, flat.

        Parameters
        ----------
        tables : mapping from margin to int64 ndarray
            The true counts of each margin that is measured, with one dimension for each axis.
        noise : Bits
        """
        published = []
        for measurement in self.measured:
            # The noise is that of the whole table, also where only its differences are kept: these
            # draws are what the proof is about.
            noisy = add_noise(tables[measurement.margin], measurement.law, noise)
            shown = (
                noisy if measurement.whole else differences(self.axes, measurement.margin, noisy)
            )
            published.append(shown.ravel())
        return np.concatenate(published)


def described(measured: Sequence[Measurement]) -> str:
    """Return the noise in words."""
    laws = list(dict.fromkeys(measurement.law for measurement in measured))
    which = "a table" if len(measured) == 1 else f"{len(measured):,} tables"
    if not all(measurement.whole for measurement in measured):
        which += ", of which only residuals are kept"
    if len(laws) == 1:
        return f"{laws[0]} to each count of {which}"
    if isinstance(laws[0], DiscreteGaussian):
        kind = "Gaussian noise of sigma"
        sizes = [law.sigma for law in laws if isinstance(law, DiscreteGaussian)]
    else:
        kind = "Laplace noise of scale"
        sizes = [float(law.scale) for law in laws if isinstance(law, DiscreteLaplace)]
    return f"discrete {kind} between {min(sizes):.4g} and {max(sizes):.4g} to each count of {which}"


def family_of(
    axes: Sequence[Levels], measured: Sequence[Measurement], known: Sequence[Margin] = ()
) -> Family:
    """The family of what was measured, with the variances of its noise, and then what is known."""
    # Noise that is all but never there has a variance that doubles cannot hold.
    noisy = (
        Measured(measurement.margin, max(measurement.law.variance, 1e-100), measurement.whole)
        for measurement in measured
    )
    exact = (Measured(margin, 0.0) for margin in known)
    return Family(tuple(axes), (*noisy, *exact))


def design_for(
    axes: tuple[Levels, ...],
    tables: tuple[Margin, ...],
    aim: Aim,
    cost: CentralMeasure,
    unit: Unit,
    known: tuple[Margin, ...] = (),
) -> Design:
    """The best noise for a family of tables at a cost, where some tables are ``known`` already.

    Raises
    ------
    UsageError
        If all of them are known, or a norm is to be limited under an epsilon alone.

    Guarantee: ``cost`` for all that is measured. See ``gaussian_design`` and ``laplace_design``.
    Under (epsilon, delta) it is Gaussian noise on residuals, at the rho that allows, or Laplace
    noise on tables, without the delta: whichever is better for the aim. Under a limit on a norm it
    is Gaussian noise.
    """
    places = [at for at, table in enumerate(tables) if not follows(table, known)]
    if not places:
        raise UsageError(
            "a family of tables",
            "all of its tables follow from its public totals",
            "Publish these totals as they are, or ask for a table that does not follow from them",
        )
    chosen = tuple(tables[at] for at in places)
    others: list[Margin] = []
    aim = aim.of(places, len(tables))
    if len(chosen) > 1 and aim == Aim():
        # Readers look at margins, too, so these count a fiftieth if nothing else was said: a total
        # that is far better known costs the tables next to nothing.
        others = [margin for margin in unknown(closure_of(chosen), known) if margin not in chosen]
        aim = Aim((1.0,) * len(chosen) + (0.02,) * len(others))
    request = _Asked(axes, (*chosen, *others), aim, unit, known)
    return replace(_best(request, cost), tables=tables)


@dataclass(frozen=True)
class _Asked:
    """The tables that noise is designed for, none of which is known."""

    axes: tuple[Levels, ...]
    tables: tuple[Margin, ...]
    aim: Aim
    unit: Unit
    known: tuple[Margin, ...]


def _best(request: _Asked, cost: CentralMeasure) -> Design:
    if isinstance(cost, ZCDP):
        return _gaussian(request, cost)
    if isinstance(cost, ApproxDP) and cost.delta:
        return _better_of(request, cost)
    if request.unit.by_cell:
        raise UsageError(
            f"a family of tables under a limit on the L2 norm, at {cost}",
            "only Gaussian noise follows the norm, and under an epsilon alone there is none",
            "Ask for it under rho, or give the source rows_per_person in place of norm_per_person",
        )
    return _laplace(request, PureDP(cost.epsilon))


def _better_of(request: _Asked, cost: ApproxDP) -> Design:
    try:
        gaussian = _gaussian(request, approx_to_zcdp(cost.epsilon, cost.delta))
    except UsageError:  # they allow no Gaussian noise at all
        if request.unit.by_cell:
            raise
        return _laplace(request, PureDP(cost.epsilon))
    # The rho that they allow pays for the noise; what is promised stays what was asked for.
    gaussian = replace(gaussian, cost=cost)
    if request.unit.by_cell:  # only Gaussian noise follows a norm
        return gaussian
    laplace = _laplace(request, PureDP(cost.epsilon))
    # Public sizes and weights decide which is better, so the choice costs nothing.
    means = [_mean_variances(design, request.tables) for design in (gaussian, laplace)]
    errors = list(map(request.aim.error, means))
    return gaussian if errors[0] < errors[1] else laplace


def _mean_variances(design: Design, tables: Sequence[Margin]) -> Array:
    """Return the variance of a count of each table, on average over its cells.

    Where regions have different numbers of towns, whole tables are a little better than this.
    """
    family = design.family
    residuals = list(filter(family.nesting.has_residual, closure_of(tables)))
    variances = [1 / family.total_precisions[kept] for kept in residuals]
    shares = shares_of_variance(design.axes, tables, residuals)
    return np.asarray(shares @ np.array(variances))


def _gaussian(request: _Asked, cost: ZCDP) -> Design:
    unit = request.unit
    norm = None  # rows alone are limited
    if unit.limits is not msgspec.UNSET:
        assert unit.limits.norm_per_person is not None
        norm = min(unit.limits.norm_per_person, unit.rows_counted)
    noise_of_residuals = gaussian_design(
        request.axes,
        request.tables,
        request.aim,
        cost.rho,
        unit.rows_counted,
        unit.neighbours,
        request.known,
        norm,
    )
    measured = tuple(
        Measurement(noise.margin, DiscreteGaussian(noise.sigma_squared), whole=False)
        for noise in noise_of_residuals
    )
    stacked = (
        None
        if norm is None
        else stacked_norm(request.axes, noise_of_residuals, norm, unit.rows_counted)
    )
    return Design(request.axes, request.tables, measured, cost, request.known, stacked)


def _laplace(request: _Asked, cost: PureDP) -> Design:
    # The shares add up to 1: every table counts the same rows, so their epsilons add up.
    shares = laplace_shares(request.axes, request.tables, request.aim, request.known)
    l1 = request.unit.counts_l1
    measured = tuple(
        Measurement(margin, DiscreteLaplace(l1 / (cost.epsilon * share)))
        for margin, share in shares
    )
    return Design(request.axes, request.tables, measured, without_delta(cost), request.known)


def differences(axes: Sequence[Levels], margin: Margin, counts: Array) -> Array:
    """Return what determines the residual of a table: differences against the last sibling."""
    for along, (axis, level) in enumerate(zip(axes, margin, strict=True)):
        if level:
            counts = axis.differences(counts, along, level)
    return counts


def published_shape(axes: Sequence[Levels], measured: Measurement) -> tuple[int, ...]:
    """Return the shape of what was published of a measurement."""
    nesting = Nesting(tuple(axes))
    if measured.whole:
        return nesting.shape(measured.margin)
    return nesting.residual_shape(measured.margin)


def published_arrays(
    axes: Sequence[Levels], measured: Sequence[Measurement], published: Array
) -> list[Array]:
    """Return what was published of each measurement, with one dimension for each axis."""
    shapes = [published_shape(axes, measurement) for measurement in measured]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    flat = np.split(published, ends[:-1])
    return list(map(np.reshape, flat, shapes))


def tables_of(
    axes: Sequence[Levels], measured: Sequence[Measurement], published: Array
) -> list[Array]:
    """Return the noisy table of each measurement, or one with the same residual.

    Returns
    -------
    list of int64 ndarray
        One dimension for each axis.
    """
    tables = []
    for measurement, numbers in zip(
        measured, published_arrays(axes, measured, published), strict=True
    ):
        table = numbers
        for along, (axis, level) in enumerate(zip(axes, measurement.margin, strict=True)):
            if level and not measurement.whole:
                table = axis.padded(table, along, level)
        tables.append(table)
    return tables


def published_numbers(axes: Sequence[Levels], measured: Sequence[Measurement]) -> int:
    """Return how many numbers are published."""
    return sum(math.prod(published_shape(axes, measurement)) for measurement in measured)


def estimated(
    axes: Sequence[Levels],
    measured: Sequence[Measurement],
    published: Array,
    known: Mapping[Margin, Array] | None = None,
) -> dict[Margin, Array]:
    """The residuals of all margins that follow from what was published, and from what is known."""
    known = known or {}
    family = family_of(axes, measured, tuple(known))
    # What is known comes last, as ``family_of`` has it.
    counts = [*tables_of(axes, measured, published), *known.values()]
    if (uneven := UnevenFamily.of(family)) is not None:
        return uneven.residuals(counts)
    closure = closure_of([measurement.margin for measurement in family.measured])
    return {kept: family.residual(kept, counts) for kept in closure}
