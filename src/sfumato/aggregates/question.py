"""Means, sums and variances of a value, by group, as questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Generic, Literal, Self, TypeVar

import msgspec

from sfumato.aggregates.basis import Basis, BasisName
from sfumato.aggregates.clipping import chosen_clips
from sfumato.aggregates.encoding import Encoding, encoding_within
from sfumato.aggregates.groups import group_axis
from sfumato.aggregates.preview import AggregatePreview, Statistic
from sfumato.aggregates.release import (
    AggregateRelease,
    MeanRelease,
    SumRelease,
    VarianceRelease,
)
from sfumato.aggregates.sums import group_sums
from sfumato.aggregates.values import (
    COARSE_STEPS,
    FINE_STEPS,
    axis_steps,
    clipped,
    plain_clip,
    value_axis,
)
from sfumato.answers.counts import Counts, Needs
from sfumato.answers.question import Question
from sfumato.arrays import Array
from sfumato.domain import Domain, Interval, named_axes
from sfumato.errors import UsageError, printable
from sfumato.lattice import Lattice
from sfumato.limits import require_numbers
from sfumato.mechanisms.noise import add_noise
from sfumato.numbers import settle
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

A_co = TypeVar("A_co", bound=AggregateRelease, covariant=True)

PROOF = Proof(
    sensitivity="of the sums of one group's functions, L1 = rows_per_person times M (twice that "
    "under replace); L2 the same, or "
    "sqrt 2 times under replace; M is what the functions add up to at every value.",
    because="a row lies in one group and adds to its sums non-negative integers that add up to M, "
    "the groups are fixed by the public "
    "domain, and the noise is exact on the integers.",
    not_covered="the choice of columns, groups and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; Kulesza, Suresh, Wang, ICML 2024; "
    "discrete noise: Canonne, Kamath, Steinke 2020.",
)


class Aggregate(Question[A_co], Generic[A_co], frozen=True):
    """What means, sums and variances have in common. A subclass says which basis is summed.

    Parameters
    ----------
    value : str
        The Interval axis whose values are added up.
    by : str, list of str, or None
        The groups: Categories, or Interval axes in their own steps or ten bins. None: all rows are
        one group.
    clip : number, pair of numbers, "auto", or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. "auto":
        an upper bound chosen from the noisy sums. None: the bounds of the axis.
    """

    value: str
    by: str | Sequence[str] | None = None
    clip: float | tuple[float, float] | Literal["auto"] | None = None

    statistic: ClassVar[Statistic]
    functions: ClassVar[BasisName]
    proof: ClassVar[Proof] = PROOF

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) or not self.value:
            raise UsageError(
                f"a value of type {type(self.value).__name__}",
                "a value is the name of one axis",
                'Write sf.Mean("wage")',
            )
        msgspec.structs.force_setattr(self, "clip", plain_clip(self.clip))
        if self.clip == "auto" and self.statistic == "variance":
            raise UsageError(
                f'the variance of {printable(self.value)} with clip = "auto"',
                "a clip can be chosen for means and sums only",
                "Give the clip as a number, such as clip=200",
            )
        if self.by is not None:
            msgspec.structs.force_setattr(self, "by", named_axes(self.by))
        if self.value in self._groups:
            raise UsageError(
                f"the {self.statistic} of {self.value!r} by itself",
                "a value is constant in its own groups",
                "Name other groups",
            )
        settle(self)

    @property
    def _groups(self) -> tuple[str, ...]:
        return () if self.by is None else tuple(named_axes(self.by))

    @property
    def axes(self) -> tuple[str, ...]:
        """The groups' axes, then the value's."""
        return (*self._groups, self.value)

    @property
    def title(self) -> str:
        by = " and ".join(map(printable, self._groups))
        asked = f"{self.statistic.capitalize()} of {printable(self.value)}"
        return f"{asked} by {by}" if by else asked

    def canonical(self, domain: Domain) -> Self:
        """Return the question unchanged: its axes are named already."""
        domain.select(self.axes)
        return self

    def needs(self, domain: Domain) -> Needs:
        """The lattice: the axes of the groups, then the axis of the value."""
        domain.select(self.axes)
        groups = Lattice(tuple(group_axis(self.title, domain, name) for name in self._groups))
        steps = FINE_STEPS if self.clip == "auto" else COARSE_STEPS
        value = value_axis(self.title, self.value, self._interval(domain), steps)
        numbers = groups.size * Basis(self._basis_name, axis_steps(value)[0]).size
        require_numbers(self.title, numbers)
        return Needs(Lattice((*groups.axes, value)), numbers)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> AggregatePreview:
        """Say how accurate the statistic would be. Means and variances need ``rows`` for that."""
        lattice = self.needs(domain).lattice
        pure = without_delta(cost)
        encoding = self._encoding(lattice, unit, pure)
        n_groups = math.prod(axis.size for axis in lattice.axes[:-1])
        return AggregatePreview(
            self.title,
            pure,
            unit,
            n_groups,
            law=encoding.law,
            basis=encoding.basis,
            scale=encoding.values,
            statistic=self.statistic,
            rows=rows,
        )

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> A_co:
        """Add exact noise to the sums of the basis' functions in every group."""
        pure = without_delta(cost)
        encoding = self._encoding(counts.lattice, unit, pure)
        true_sums = group_sums(counts.on(counts.lattice), encoding.basis)
        sums_per_group = encoding.basis.size
        mechanism = f"{encoding.law} on each of {sums_per_group} sums in each group"
        released = add_noise(true_sums.reshape(-1), encoding.law, noise)
        return self._release_type()(
            scale=encoding.values,
            basis=encoding.basis,
            lattice=Lattice(counts.lattice.axes[:-1]),
            released=released,
            law=encoding.law,
            knot_indices=self._knot_indices(released, encoding),
            guarantee=self.promise(pure, unit, mechanism, noise),
        )

    def _knot_indices(self, released: Array, encoding: Encoding) -> Array | msgspec.UnsetType:
        """The clips that are chosen from the published sums, if they are to be chosen."""
        if self.clip != "auto":
            return msgspec.UNSET
        sums = released.reshape(-1, encoding.basis.size).astype(float)
        values = encoding.values
        zero = -values.lower / values.width if self.statistic == "sum" else None
        return chosen_clips(sums, encoding.basis, encoding.law, zero)

    @property
    def _basis_name(self) -> BasisName:
        """Which functions of a value are summed."""
        return "hats" if self.clip == "auto" else self.functions

    def _release_type(self) -> type[A_co]:
        """The class of the release."""
        raise NotImplementedError

    def _encoding(self, lattice: Lattice, unit: Unit, cost: CentralMeasure) -> Encoding:
        axis = lattice.grids[-1]
        return encoding_within(self.title, axis, self._basis_name, unit, cost)

    def _interval(self, domain: Domain) -> Interval:
        """The axis of the value, narrowed to the clip."""
        axis = domain[self.value]
        if not isinstance(axis, Interval) or axis.time is not None:
            kind = "dates or times" if isinstance(axis, Interval) else type(axis).__name__
            obstacle = f"{self.value!r} is declared as {kind}, which cannot be added up"
            raise UsageError(self.title, obstacle, "Name an Interval axis of numbers")
        if self.clip is None or self.clip == "auto":
            return axis
        return clipped(self.title, axis, self.clip)


class Mean(
    Aggregate[MeanRelease], frozen=True, tag="mean", omit_defaults=True, forbid_unknown_fields=True
):
    """What is the mean of a value, in each group?

    Two noisy sums are published for each group: of the distances from the value to its lower bound,
    and of those to its upper bound. Each row adds the same total to the two. So the number of rows
    follows from them, and no part of epsilon is set aside for it.

    Parameters
    ----------
    value : str
        The Interval axis of numbers whose values are averaged. Values beyond its bounds count as
        the bounds.
    by : str, list of str, or None
        The groups: Categories axes, or Interval axes in their own steps or ten bins. None: all rows
        are one group.
    clip : number, pair of numbers, "auto", or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. The mean
        is then that of the values clipped to them. "auto": an upper bound is chosen for each group
        from its noisy sums, at no further cost.

    Raises
    ------
    UsageError
        If an axis is unknown or of the wrong kind, the clip lies outside the bounds, or there are
        too many groups.

    Guarantee
    ---------
    {proof}
    Here M is the number of lattice steps between the bounds; with ``clip="auto"`` it is the largest
    number of steps between two knots.

    >>> from sfumato.domain import (Domain, Interval)
    >>> Mean("age", by="ward").title
    'Mean of age by ward'
    >>> Mean("age").needs(Domain(age=Interval(0, 121, step=1))).lattice.shape
    (121,)
    """

    statistic: ClassVar[Statistic] = "mean"
    functions: ClassVar[BasisName] = "pair"

    def _release_type(self) -> type[MeanRelease]:
        return MeanRelease


class Sum(
    Aggregate[SumRelease], frozen=True, tag="sum", omit_defaults=True, forbid_unknown_fields=True
):
    """What is the sum of a value, in each group?

    The same two sums are published as for ``Mean``, so the release also has means and numbers of
    rows.

    Parameters
    ----------
    value : str
        The Interval axis of numbers whose values are added up. Values beyond its bounds count as
        the bounds.
    by : str, list of str, or None
        The groups: Categories axes, or Interval axes in their own steps or ten bins. None: all rows
        are one group.
    clip : number, pair of numbers, "auto", or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. "auto":
        an upper bound is chosen for each group from its noisy sums, at no further cost.

    Raises
    ------
    UsageError
        As ``Mean``.

    Guarantee
    ---------
    {proof}
    Here M is the number of lattice steps between the bounds; with ``clip="auto"`` it is the largest
    number of steps between two knots.

    >>> Sum("fare", by="line").title
    'Sum of fare by line'
    """

    statistic: ClassVar[Statistic] = "sum"
    functions: ClassVar[BasisName] = "pair"

    def _release_type(self) -> type[SumRelease]:
        return SumRelease


class Variance(
    Aggregate[VarianceRelease],
    frozen=True,
    tag="variance",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """What is the variance of a value about its mean, in each group?

    Three noisy sums are published for each group: of (R - x)^2, 2x(R - x) and x^2, where x is the
    value's number of lattice steps above the lower bound, from 0 to R. So the release also has
    means and numbers of rows.

    Parameters
    ----------
    value : str
        The Interval axis of numbers whose variance is wanted. Values beyond its bounds count as the
        bounds.
    by : str, list of str, or None
        The groups: Categories axes, or Interval axes in their own steps or ten bins. None: all rows
        are one group.
    clip : number, pair of numbers, or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one.

    Raises
    ------
    UsageError
        As ``Mean``.

    Guarantee
    ---------
    {proof}
    Here M is R^2.

    >>> Variance("lab", by="ward").title
    'Variance of lab by ward'
    """

    statistic: ClassVar[Statistic] = "variance"
    functions: ClassVar[BasisName] = "quadratic"

    def _release_type(self) -> type[VarianceRelease]:
        return VarianceRelease


Mean.examples = (Mean("x"), Mean("x", clip=1), Mean("x", clip="auto"))
Sum.examples = (Sum("x"), Sum("x", clip="auto"))
Variance.examples = (Variance("x"),)
