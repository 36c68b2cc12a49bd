"""How much, on average, in each group? Means, sums and variances of a value, by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Generic, Literal, Self, SupportsFloat, TypeAlias, TypeVar

import msgspec
import numpy as np

from sfumato.aggregates.basis import Basis, BasisName, basis_within
from sfumato.aggregates.intervals import mean_bounds, variance_bounds
from sfumato.aggregates.release import (
    AggregateRelease,
    MeanRelease,
    SumRelease,
    Values,
    VarianceRelease,
    sum_half_width,
)
from sfumato.answers.counts import Counts, Needs
from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.answers.question import Question
from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.domain import (
    Categories,
    Domain,
    GridAxis,
    Interval,
    LabelAxis,
    Lattice,
    LatticeAxis,
    grid_axis,
    named_axes,
)
from sfumato.errors import UsageError, printable, shown
from sfumato.histogram.bins import binned
from sfumato.limits import require_numbers
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law, add_noise, count_law
from sfumato.numbers import Exactly, settle, sidak
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits
from sfumato.random.discrete import MAX_SCALE

A_co = TypeVar("A_co", bound=AggregateRelease, covariant=True)
Statistic: TypeAlias = Literal["mean", "sum", "variance"]

MOST_STEPS = 2**20  # of a value axis: cells that one group is counted in
COARSE = 2**16  # steps laid over an axis that has none, or more than those
LARGEST_SUM = 2**62

PROOF = Proof(
    sensitivity="of the sums of one group's functions, L1 = rows_per_person times M (twice that under replace); L2 the same, or "
    "sqrt 2 times under replace; M is what the functions add up to at every value.",
    because="a row lies in one group and adds to its sums non-negative integers that add up to M, the groups are fixed by the public "
    "domain, and the noise is exact on the integers.",
    not_covered="the choice of columns, groups and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; Kulesza, Suresh, Wang, ICML 2024; discrete noise: Canonne, Kamath, Steinke 2020.",
)


class AggregatePreview(Preview, frozen=True):
    """What a mean, sum or variance would cost, and how accurate it would be in groups of equal size.

    Attributes
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each sum.
    basis : Basis
    scale : Values
    statistic : {"mean", "sum", "variance"}
    rows : int or None
        As stated by the custodian.
    """

    law: Law
    basis: Basis
    scale: Values
    statistic: Statistic
    rows: int | None = None

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> float:
        """Half-width of the interval of each group, if its values lie where the interval is widest.

        Of means, of variances and of sums of rounded values it depends on how many rows a group has:
        state ``rows``, which are taken to be divided evenly.
        """
        alpha = error_probability(confidence)
        groups = self.cells or 1
        if simultaneous:
            alpha = sidak(alpha, groups)
        if self.rows is None and (self.statistic != "sum" or self.scale.rounded):
            obstacle = "it depends on the number of rows"
            raise UsageError(
                f"the accuracy of a {self.statistic}", obstacle, "State rows= to preview it"
            )
        if self.statistic == "sum":
            rows = np.array([(self.rows or 0) / groups])
            return float(sum_half_width(self.scale, self.basis, self.law, rows, alpha)[0])
        return self._of_even_groups((self.rows or 0) / groups, alpha)

    def _of_even_groups(self, rows: float, alpha: float) -> float:
        """Half of the widest interval among groups whose values lie at the two bounds."""
        shares = np.linspace(0, 1, 9)
        inner = [np.zeros(9)] * (len(self.basis.weights) - 2)
        at_bounds = np.stack([1 - shares, *inner, shares], axis=1)
        sums = rows * self.basis.unity * at_bounds
        bounds = mean_bounds if self.statistic == "mean" else variance_bounds
        low, high = bounds(sums, self.basis, self.law, alpha)
        power = 1 if self.statistic == "mean" else 2
        widest = float((high - low).max()) / 2
        return widest * self.scale.width**power + self.scale.rounding

    def lines(self) -> list[str]:
        """What is added to which sums, and how accurate the statistic would be."""
        sums = len(self.basis.weights)
        found = [f"adds {self.law} to {sums} sums in each of {self.cells:,} groups"]
        if self.rows is None and (self.statistic != "sum" or self.scale.rounded):
            remedy = "state rows= to preview it"
            return [*found, f"how accurate each is depends on how many rows a group has: {remedy}"]
        even = "" if self.rows is None else f", if {self.rows:,} rows lie evenly in the groups,"
        reach = f"+-{self.accuracy():,.4g} of the truth with 95% confidence"
        found.append(
            f"of {self.unit.counted}{self.scale.cut}{even} each {self.statistic} is within {reach}"
        )
        if self.cells and self.cells > 1:
            every = self.accuracy(simultaneous=True)
            found.append(f"all of them at once are within +-{every:,.4g}")
        return found


class Aggregate(Question[A_co], Generic[A_co], frozen=True):
    """What means, sums and variances have in common; each says which basis it sums.

    Parameters
    ----------
    value : str
        The Interval axis whose values are added up.
    by : str, list of str, or None
        The groups: Categories, or Interval axes in their own steps or ten bins. None: all rows are one group.
    clip : number, pair of numbers, or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. None: the axis' own.
    """

    value: str
    by: str | Sequence[str] | None = None
    clip: float | tuple[float, float] | None = None

    statistic: ClassVar[Statistic]
    functions: ClassVar[BasisName]
    proof: ClassVar[Proof] = PROOF

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) or not self.value:
            raise UsageError(
                f"a value of type {type(self.value).__name__}",
                "it is the name of one axis",
                'Write sf.Mean("wage")',
            )
        msgspec.structs.force_setattr(self, "clip", _plain_clip(self.clip))
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
        """The same: its axes are named already."""
        domain.select(self.axes)
        return self

    def needs(self, domain: Domain) -> Needs:
        """The groups, and for each the value's lattice."""
        domain.select(self.axes)
        groups = Lattice(tuple(_group_axis(self.title, domain, name) for name in self._groups))
        value = _value_axis(self.title, self.value, self._interval(domain))
        numbers = groups.size * len(Basis(self.functions, 1).weights)
        require_numbers(self.title, numbers)
        return Needs(Lattice((*groups.axes, value)), numbers)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> AggregatePreview:
        """Say how accurate the statistic would be; of means and variances ``rows`` decides."""
        lattice = self.needs(domain).lattice
        pure = without_delta(cost)
        scale, basis, law = self._laid(lattice, unit, pure)
        groups = math.prod(axis.size for axis in lattice.axes[:-1])
        return AggregatePreview(
            self.title,
            pure,
            unit,
            groups,
            law=law,
            basis=basis,
            scale=scale,
            statistic=self.statistic,
            rows=rows,
        )

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> A_co:
        """Add exact noise to the sums of the basis' functions in every group."""
        pure = without_delta(cost)
        scale, basis, law = self._laid(counts.lattice, unit, pure)
        sums = _sums(counts.on(counts.lattice), basis)
        mechanism = f"{law} on each of {len(basis.weights)} sums in each group"
        return self._kind()(
            scale=scale,
            basis=basis,
            lattice=Lattice(counts.lattice.axes[:-1]),
            released=add_noise(sums.reshape(-1), law, noise),
            law=law,
            guarantee=self.promise(pure, unit, mechanism, noise),
        )

    def _kind(self) -> type[A_co]:
        """Which release answers it."""
        raise NotImplementedError

    def _laid(
        self, lattice: Lattice, unit: Unit, cost: CentralMeasure
    ) -> tuple[Values, Basis, Law]:
        """The values that are added up, the functions of them, and the noise on their sums.

        Raises
        ------
        UsageError
            If no lattice of values is so coarse that its noise can be drawn.
        """
        axis = lattice.axes[-1]
        assert isinstance(axis, GridAxis)
        one_row = count_law(cost, unit)
        points, rounded = _points(axis)
        most = _most_unity(one_row)
        basis = basis_within(self.functions, points, most)
        if basis is not None and rounded:
            # A power of two, as their number on the lattice is: then cells end where values go to the next step.
            basis = basis_within(self.functions, 2 ** (basis.points.bit_length() - 1), most)
        if basis is None:
            obstacle = "its noise would be too large to be drawn"
            raise UsageError(
                self.title, obstacle, "Choose a larger epsilon, or fewer rows per person"
            )
        upper = axis.upper if rounded or axis.step is None else axis.upper - axis.step
        scale = Values(axis.name, axis.lower, upper, basis.points, rounded or basis.points < points)
        return scale, basis, _times(one_row, basis.unity)

    def _interval(self, domain: Domain) -> Interval:
        """The value's axis, within the clip."""
        axis = domain[self.value]
        if not isinstance(axis, Interval) or axis.time is not None:
            kind = "dates or times" if isinstance(axis, Interval) else type(axis).__name__
            obstacle = f"{self.value!r} is declared as {kind}, which cannot be added up"
            raise UsageError(self.title, obstacle, "Name an Interval axis of numbers")
        return axis if self.clip is None else _clipped(self.title, axis, self.clip)


class Mean(
    Aggregate[MeanRelease], frozen=True, tag="mean", omit_defaults=True, forbid_unknown_fields=True
):
    """How large is a value on average, in each group?

    Two sums are published for each group, of the value's distance to its lower and to its upper bound. Their
    sum is the number of rows: so one noise serves both, and the whole epsilon is spent once.

    Parameters
    ----------
    value : str
        The Interval axis of numbers whose values are averaged. Values beyond its bounds count as the bounds.
    by : str, list of str, or None
        The groups: Categories axes, or Interval axes in their own steps or ten bins. None: all rows.
    clip : number, pair of numbers, or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. The mean is then
        that of the values clipped to them.

    Raises
    ------
    UsageError
        If an axis is unknown or of the wrong kind, the clip lies outside the bounds, or there are too many groups.

    Guarantee
    ---------
    Sensitivity: of the two sums of one group, L1 = rows_per_person times the number of lattice steps (twice that under replace).
    Holds because: a row lies in one group and adds non-negative integers that add up to the same total whatever its value is.
    Not covered: the choice of columns, groups and bounds; the time the query takes.
    Source: Dwork, McSherry, Nissim, Smith 2006, Thm 1; Kulesza, Suresh, Wang, ICML 2024.

    >>> from sfumato.domain import Domain, Interval
    >>> Mean("age", by="ward").title
    'Mean of age by ward'
    >>> Mean("age").needs(Domain(age=Interval(0, 121, step=1))).lattice.shape
    (121,)
    """

    statistic: ClassVar[Statistic] = "mean"
    functions: ClassVar[BasisName] = "pair"

    def _kind(self) -> type[MeanRelease]:
        return MeanRelease


class Sum(
    Aggregate[SumRelease], frozen=True, tag="sum", omit_defaults=True, forbid_unknown_fields=True
):
    """What do the values add up to, in each group?

    Published is what ``Mean`` publishes, so means and numbers of rows follow from it, too.

    Parameters
    ----------
    value : str
        The Interval axis of numbers whose values are added up. Values beyond its bounds count as the bounds.
    by : str, list of str, or None
        The groups: Categories axes, or Interval axes in their own steps or ten bins. None: all rows.
    clip : number, pair of numbers, or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one.

    Raises
    ------
    UsageError
        As ``Mean``.

    Guarantee
    ---------
    Sensitivity: of the two sums of one group, L1 = rows_per_person times the number of lattice steps (twice that under replace).
    Holds because: a row lies in one group and adds non-negative integers that add up to the same total whatever its value is.
    Not covered: the choice of columns, groups and bounds; the time the query takes.
    Source: as ``Mean``.

    >>> Sum("fare", by="line").title
    'Sum of fare by line'
    """

    statistic: ClassVar[Statistic] = "sum"
    functions: ClassVar[BasisName] = "pair"

    def _kind(self) -> type[SumRelease]:
        return SumRelease


class Variance(
    Aggregate[VarianceRelease],
    frozen=True,
    tag="variance",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """How far do the values lie apart, in each group? The variance of the values about their mean.

    Three sums are published for each group, of (R - x)^2, 2x(R - x) and x^2, where x counts lattice steps from 0 to R.
    Means and numbers of rows follow from them, too.

    Parameters
    ----------
    value : str
        The Interval axis of numbers whose values are compared. Values beyond its bounds count as the bounds.
    by : str, list of str, or None
        The groups: Categories axes, or Interval axes in their own steps or ten bins. None: all rows.
    clip : number, pair of numbers, or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one.

    Raises
    ------
    UsageError
        As ``Mean``.

    Guarantee
    ---------
    Sensitivity: of the three sums of one group, L1 = rows_per_person times R^2 (twice that under replace).
    Holds because: a row lies in one group and adds non-negative integers that add up to the same total whatever its value is.
    Not covered: the choice of columns, groups and bounds; the time the query takes.
    Source: as ``Mean``.

    >>> Variance("lab", by="ward").title
    'Variance of lab by ward'
    """

    statistic: ClassVar[Statistic] = "variance"
    functions: ClassVar[BasisName] = "quadratic"

    def _kind(self) -> type[VarianceRelease]:
        return VarianceRelease


def _plain_clip(clip: object) -> float | tuple[float, float] | None:
    """Read a clip: a number, or two of them."""
    if clip is None:
        return None
    ends = clip if isinstance(clip, list | tuple) else [clip]
    numbers = [
        float(end)
        for end in ends
        if isinstance(end, SupportsFloat) and not isinstance(end, bool | str)
    ]
    if len(numbers) != len(ends) or len(ends) not in (1, 2) or not all(map(math.isfinite, numbers)):
        obstacle = "it is neither a number nor a pair of numbers"
        raise UsageError("a clip", obstacle, "Write clip=200, or clip=(0, 200)")
    return numbers[0] if not isinstance(clip, list | tuple) else (numbers[0], numbers[-1])


def _group_axis(title: str, domain: Domain, name: str) -> LatticeAxis:
    axis = domain[name]
    if isinstance(axis, Categories):
        return LabelAxis(name, axis.all_labels, axis.other is not None, axis.missing is not None)
    if isinstance(axis, Interval):
        return binned(name, axis, None, None)
    obstacle = f"the groups {name!r} are Keys, which are not known beforehand"
    raise UsageError(title, obstacle, "Declare them as Categories")


def _value_axis(title: str, name: str, interval: Interval) -> GridAxis:
    """A cell for each step, or two cells for each of 2^16 steps, so that values go to the nearest one."""
    natural = interval.natural_cells
    if natural is not None and natural < 2:
        raise UsageError(title, f"{name!r} has one value only", "Declare wider bounds")
    exact = natural is not None and natural <= MOST_STEPS
    return grid_axis(name, interval, natural if natural is not None and exact else 2 * COARSE)


def _points(axis: GridAxis) -> tuple[int, bool]:
    """How many steps lie between the first and the last value of an axis, and whether values are rounded."""
    exact = axis.step is not None and round((axis.upper - axis.lower) / axis.step) == axis.cells
    return (axis.cells - 1, False) if exact else (axis.cells // 2, True)


def _clipped(title: str, axis: Interval, clip: float | tuple[float, float]) -> Interval:
    """An axis between narrower bounds; the upper one is a value that occurs."""
    low, high = axis.numbers
    last = high if axis.stride is None else high - axis.stride
    ends = (low, clip) if isinstance(clip, int | float) else clip
    if not low <= ends[0] < ends[1] <= last:
        obstacle = f"it does not lie within the bounds, {low:g} to {last:g}"
        raise UsageError(
            f"{title}, clip = {shown(clip)}",
            obstacle,
            "Choose a clip within them, or declare wider bounds",
        )
    if axis.stride is None:
        return Interval(ends[0], ends[1])
    return Interval(ends[0], ends[1] + axis.stride, step=axis.step)


def _sums(cube: Cube, basis: Basis) -> Array:
    """The sums of the basis' functions over the rows of each group: int64 ndarray of shape (groups, k)."""
    axis = cube.lattice.axes[-1]
    assert isinstance(axis, GridAxis)
    functions = basis.functions(_nearest(axis, basis))
    counts = cube.counts
    if cube.total * basis.unity >= LARGEST_SUM:
        # Exact integers of any size, and then at most 2^62: a bound that no person moves by more.
        functions = functions.astype(object)
        counts = counts.astype(object)
    if cube.coordinates is None:
        held = np.flatnonzero(counts)
        group, value = np.divmod(held, axis.cells)
        counts = counts[held]
    else:
        value = cube.coordinates[:, -1]
        group = _group_of(cube.coordinates[:, :-1], cube.lattice.shape[:-1])
    found = np.zeros((math.prod(cube.lattice.shape[:-1]), functions.shape[1]), functions.dtype)
    np.add.at(found, group, counts[:, None] * functions[value])
    return np.minimum(found, LARGEST_SUM).astype(np.int64)


def _nearest(axis: GridAxis, basis: Basis) -> Array:
    """Which of the lattice values 0..R each cell of the value's axis counts as: the nearest one."""
    points, rounded = _points(axis)
    cells = np.arange(axis.cells, dtype=np.int64)
    if rounded:
        of_one = axis.cells // basis.points
        return (cells + of_one // 2) // of_one
    return (2 * cells * basis.points + points) // (2 * points)


def _group_of(coordinates: Array, shape: tuple[int, ...]) -> Array:
    """The number of each row's group: int64 ndarray of shape (rows,)."""
    if not shape:
        return np.zeros(len(coordinates), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(coordinates.T), shape))


def _times(law: Law, unity: int) -> Law:
    """The law of noise that is so many times larger."""
    match law:
        case DiscreteLaplace(scale=scale):
            return DiscreteLaplace(scale * unity)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return DiscreteGaussian(sigma_squared * unity**2)


def _most_unity(law: Law) -> int:
    """By how much noise on a single row's count may be multiplied, so that it can be drawn."""
    match law:
        case DiscreteLaplace(scale=scale):
            return int(MAX_SCALE / scale)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return math.isqrt(int(MAX_SCALE**2 / sigma_squared))


Mean.examples = (Mean("x"), Mean("x", clip=1))
Sum.examples = (Sum("x"),)
Variance.examples = (Variance("x"),)
