"""Public axes: everything that is known of a table before the data are read.

A ``Domain`` names the axes. Each is an ``Interval`` of numbers, dates or times, ``Categories`` or
``Keys``, and knows which cells it has on the lattice of a question.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias, TypeVar

import msgspec

from sfumato.basics import ExplainedStruct
from sfumato.basics.text import card, structs
from sfumato.domain.calendar import Hour, Month, Week, Weekday, Year
from sfumato.domain.categories import (
    Categories,
    Level,
    Listed,
    axis_error,
    check_column,
    domain_error,
)
from sfumato.domain.lattice import (
    LARGEST_BOUND,
    BinsAndMissing,
    EdgesAxis,
    GridAxis,
    KeyAxis,
    Lattice,
    LatticeAxis,
    snap_of,
)
from sfumato.domain.scale import Scale, number_of, plain_bound, scale_of, unit_of
from sfumato.domain.times import TimeUnit
from sfumato.errors import UsageError, explained, nearest, printable

__all__ = ["Axis", "Categories", "Domain", "Interval", "Keys", "Listed"]

Bound: TypeAlias = "int | float | str | dt.date | dt.datetime"
RESERVED = ("count", "low", "high")  # columns of every answer's frame

A = TypeVar("A")
# Lays bins along an Interval axis, given its name.
Binning: TypeAlias = "Callable[[str, Interval], LatticeAxis]"


class Interval(
    ExplainedStruct, frozen=True, tag="interval", omit_defaults=True, forbid_unknown_fields=True
):
    """Which numbers, dates or times can occur: a public range.

    Choose it from public knowledge, never from the minimum and maximum of the data.

    Values outside are clamped to the nearest end, infinities too. Rows with a missing value (null
    or NaN) are dropped, or counted at the value that ``missing`` states.

    Parameters
    ----------
    lower, upper : int, float, date, datetime or ISO text ("2013-01-01", "2013-01-01T06:00")
        Public bounds, ``lower < upper``; numbers of size at most 1e100. Cells are half-open,
        ``[a, b)``, the last one closed. A datetime without a zone is read as UTC.
    step : int, float, timedelta or None
        The natural width of a cell, if there is one: 1 for integers, ``timedelta(hours=1)`` for
        hours. Dates have a step of one day. It must divide ``upper - lower`` into at most 2^40
        steps. A number means days for dates, and seconds for times. The last cell is then that of
        ``upper - step``, and whatever lies at or beyond ``upper`` is counted in it: for the
        integers 0 to 120, write ``Interval(0, 121, step=1)``. Sums, means and variances do not
        use cells: a value is clamped to the bounds and rounded to the nearest step.
    missing : like the bounds, True, or None
        The value, within the bounds, at which rows with a missing value are counted; None drops
        them. True: where the axis is divided into bins, as in histograms and groups, these rows
        have a cell of their own, called "missing". Questions that ask about the values themselves,
        such as means, quantiles, partitions and clusters, drop them; so do bins by ``records``.
    column : str or None
        The column of the table; None: the one that is named as the axis is.

    Raises
    ------
    UsageError
        If the bounds are not finite, not in order or not of one kind, if the step does not divide
        their difference, or if ``missing`` is outside.

    >>> Interval(0, 24, step=1).natural_cells
    24
    >>> Interval(dt.date(2013, 1, 1), "2014-01-01").natural_cells
    365
    """

    lower: int | float | str
    upper: int | float | str
    step: int | float | None = None
    missing: int | float | str | bool | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        check_column("Interval", self.column)
        ends = ["lower", "upper"]
        if self.missing is False:
            msgspec.structs.force_setattr(self, "missing", None)
        elif self.missing is not None and self.missing is not True:
            ends.append("missing")
        for end in ends:
            msgspec.structs.force_setattr(self, end, plain_bound(getattr(self, end)))
        step = self.scale.step(self.step)
        if step is None and self.time == "day":
            step = 1
        msgspec.structs.force_setattr(self, "step", step)
        self._check()

    def _check(self) -> None:
        stated = f"Interval({self.lower!r}, {self.upper!r})"
        if unit_of(self.lower) != unit_of(self.upper):
            raise UsageError(
                stated,
                "one bound is a date and the other is not",
                "Give both bounds as dates, both as times or both as numbers",
            )
        low, high = self.numbers
        if not (abs(low) <= LARGEST_BOUND and abs(high) <= LARGEST_BOUND):
            raise UsageError(
                stated,
                "the bounds must be finite numbers of size at most 1e100",
                "Choose public bounds that hold most values; the rest are clamped",
            )
        if not low < high:
            raise UsageError(stated, "lower must be below upper", "Swap the bounds, or widen them")
        if self.missing is not None and self.missing is not True:
            is_of_axis = unit_of(self.missing) == self.time
            if not (is_of_axis and low <= number_of(self.missing) <= high):
                raise UsageError(
                    f"{stated[:-1]}, missing=...)",
                    "what stands in for a missing value lies outside the bounds",
                    "Widen them",
                )
        if self.step is not None:
            self._check_step(self.step)

    def _check_step(self, step: float) -> None:
        stated = f"Interval({self.lower!r}, {self.upper!r}, step={step!r})"
        if type(step) not in (int, float) or not 0 < step < math.inf:
            raise UsageError(
                stated,
                "the step must be a positive number",
                "Give a step such as 1, or leave it out",
            )
        if self._steps().denominator != 1:
            raise UsageError(
                stated,
                "the step does not divide upper - lower",
                "Move a bound so that a whole number of steps fits",
            )
        # Beyond a quarter of a cell, rounding could send a value on the lattice to a neighbour.
        if snap_of(*self.numbers, int(self._steps())) > 0.25:
            raise UsageError(
                stated,
                "doubles are coarser than that step at these bounds",
                "Choose a wider step",
            )
        if self._steps() > 2**40:
            raise UsageError(stated, "that makes more than 2^40 cells", "Choose a wider step")

    def _steps(self) -> Fraction:
        # As decimals: 0.3 - 0.1 is exactly .2 here, so that a step of .1 divides it.
        low, high = (Fraction(str(end)) for end in self.numbers)
        return (high - low) / self._stride()

    def _stride(self) -> Fraction:
        return Fraction(str(self.step)) * self.scale.numbers_a_step

    @property
    def scale(self) -> Scale:
        """What its numbers stand for: how they are read and printed."""
        return scale_of(self.time)

    @property
    def time(self) -> TimeUnit | None:
        """The unit of ``numbers``: "day" for dates, "microsecond" for times, None for numbers."""
        return unit_of(self.lower)

    @property
    def numbers(self) -> tuple[float, float]:
        """The bounds as floats; of dates and times, days or microseconds since 1970-01-01."""
        return number_of(self.lower), number_of(self.upper)

    @property
    def stand_in(self) -> float | None:
        """What a missing value counts as, in the unit of ``numbers``.

        None: its row is dropped, or has a cell of its own.
        """
        return None if self.missing is None or self.missing is True else number_of(self.missing)

    @property
    def natural_cells(self) -> int | None:
        """How many steps there are between the bounds, or None without a step."""
        return None if self.step is None else int(self._steps())

    @property
    def stride(self) -> float | None:
        """The step in the unit of ``numbers``; None without one."""
        return None if self.step is None else float(self._stride())

    def on_lattice(self, name: str, binning: Binning) -> LatticeAxis:
        """The cells along this axis, of the name given: the bins that ``binning`` lays.

        Where missing values have a cell of their own, it comes after the bins.
        """
        bins = binning(name, self)
        if self.missing is True and isinstance(bins, GridAxis | EdgesAxis):
            return BinsAndMissing(bins)
        return bins


class Keys(
    ExplainedStruct, frozen=True, tag="keys", omit_defaults=True, forbid_unknown_fields=True
):
    """Values that are not known beforehand, such as names of shops (private partition selection).

    The column holds text, integers or booleans; rows with a missing value are dropped. A question
    takes at most one axis of keys. That a key is in the table is private too: a release shows a key
    only if enough rows have it, and costs epsilon and delta. ``sf.Histogram`` has the guarantee.

    Parameters
    ----------
    column : str or None
        The column of the table; None: the one that is named as the axis is.

    >>> list(Domain(shop=Keys(), hour=Interval(0, 24, step=1)))
    ['shop', 'hour']
    """

    column: str | None = None

    def __post_init__(self) -> None:
        check_column("Keys()", self.column)

    def on_lattice(self, name: str, binning: Binning) -> LatticeAxis:
        """The cells along this axis, of the name given: one per key, whatever they are."""
        return KeyAxis(name, self.column)


Axis: TypeAlias = Interval | Categories | Keys | Month | Weekday | Hour | Week | Year | Level


class Domain(Mapping[str, "Axis"]):
    """The public axes of a table, by name: which values each column can hold.

    It is a read-only mapping from names to axes. Columns that are not named are not used. Decide it
    without looking at the data: every guarantee assumes this.

    Parameters
    ----------
    axes : dict or None
        Axes by name, for names that are no Python identifiers.
    **named : Interval, Categories, Keys, Month, Weekday, Hour, Week or Year
        Axes by name; each name is the name of a column, unless the axis names another one.

    Raises
    ------
    UsageError
        If there is no axis, or a name is not a text.
    BoundsRequired
        If an axis has no public bounds or labels. It is a UsageError.

    >>> domain = Domain(lon=Interval(-180, 180), lat=Interval(-90, 90), kind=Categories(["a", "b"]))
    >>> list(domain)
    ['lon', 'lat', 'kind']
    >>> axes = {"lon": domain["lon"], "lat": domain["lat"], "kind": domain["kind"]}
    >>> domain == Domain(axes)
    True
    """

    __slots__ = ("_axes",)
    _axes: dict[str, Axis]

    @explained
    def __init__(self, axes: Mapping[str, Axis] | None = None, /, **named: Axis) -> None:
        if axes is not None and not isinstance(axes, Mapping):
            raise domain_error(axes)
        self._axes = {**(axes or {}), **named}
        if not all(isinstance(name, str) and name for name in self._axes):
            raise UsageError(
                "Domain",
                "the name of an axis is a text that is not empty",
                "Name each axis as its column is named",
            )
        if not self._axes:
            raise UsageError(
                "Domain()",
                "a domain needs at least one axis",
                "Write Domain(age=Interval(0, 121, step=1))",
            )
        for name, axis in self._axes.items():
            if not isinstance(axis, Axis):
                raise axis_error(name, axis)
        self._axes = with_levels(self._axes)

    def __getitem__(self, name: str) -> Axis:
        if name in self._axes:
            return self._axes[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __hash__(self) -> int:
        return hash(frozenset(self._axes.items()))  # as for any mapping, the order does not count

    def __repr__(self) -> str:
        axes = [
            f"{printable(name)}={axis!r}"
            for name, axis in self._axes.items()
            if not isinstance(axis, Level)
        ]
        return f"Domain({', '.join(axes)})"

    def _repr_html_(self) -> str:
        return card("Domain", structs(self))

    def select(self, axes: str | Sequence[str] | None) -> tuple[str, ...]:
        """Resolve an ``axes`` argument: a name, a list of names, or None for all Interval axes."""
        names = tuple(self.of_kind(Interval)) if axes is None else named_axes(axes)
        if not names:
            raise UsageError(
                "no axes",
                "the question names none, and the domain has no Interval axis",
                "Name at least one axis",
            )
        for name in names:
            if name not in self._axes:
                raise self._no_axis(name)
            if name in RESERVED:
                raise UsageError(
                    f"axis {name!r}",
                    "answers have a column of that name",
                    "Rename the column before asking",
                )
        if len(set(names)) < len(names):
            raise UsageError(
                f"axes {', '.join(names)}", "an axis is named twice", "Name each axis once"
            )
        return names

    def _no_axis(self, name: str) -> UsageError:
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and all(part in self._axes for part in parts):
            listed = ", ".join(f'"{part}"' for part in parts)
            return UsageError(
                f"axis {name!r}",
                "it is one text, and several axes are a list",
                f"Write [{listed}]",
            )
        return UsageError(
            f"axis {name!r}",
            f"the domain has no axis of that name; {nearest(name, self)}",
            "Name an axis of the domain, or declare it there (command line: --axis)",
        )

    def intervals(self, axes: str | Sequence[str] | None) -> dict[str, Interval]:
        """Resolve an ``axes`` argument of a question that takes Interval axes only."""
        names = self.select(axes)
        intervals = self.of_kind(Interval)
        for name in names:
            if name not in intervals:
                kind = type(self[name]).__name__
                raise UsageError(
                    f"axis {name!r}",
                    f"it is declared as {kind}, and this question takes Interval axes",
                    "Name Interval axes only",
                )
        return {name: intervals[name] for name in names}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the axes are read from, each once, in the order of the axes."""
        return tuple(dict.fromkeys(axis.column or name for name, axis in self.items()))

    def of_kind(self, kind: type[A]) -> dict[str, A]:
        """The axes that are declared as a kind such as ``Interval`` or ``Keys``, by name."""
        return {name: axis for name, axis in self.items() if isinstance(axis, kind)}


def with_levels(axes: Mapping[str, Axis]) -> dict[str, Axis]:
    """The axes, and before each that has a tree those of its levels, from the top.

    Raises
    ------
    UsageError
        If a level has the name of another axis.
    """
    with_levels: dict[str, Axis] = {}
    for name, axis in axes.items():
        levels = axis.above(name) if isinstance(axis, Categories) else {}
        for level, cells in levels.items():
            if with_levels.get(level, axes.get(level, cells)) != cells:
                raise UsageError(
                    f"level {level!r} of axis {name!r}",
                    "another axis has that name",
                    "Give it another name: Categories(tree=..., levels=[...])",
                )
            with_levels[level] = cells
        if not isinstance(axis, Level) or name not in with_levels:
            with_levels[name] = axis
    return with_levels


def named_axes(axes: object) -> tuple[str, ...]:
    """Read an ``axes`` argument that is not None: a name, or a list of names."""
    if isinstance(axes, str):
        return (axes,)
    if (
        isinstance(axes, Sequence)
        and not isinstance(axes, bytes)
        and all(isinstance(name, str) for name in axes)
    ):
        return tuple(axes)
    stated = f"axes of type {type(axes).__name__}"
    require_no_axis(axes, stated)
    raise UsageError(stated, "axes are a name or a list of names", 'Write axes=["lon", "lat"]')


def require_no_axis(given: object, stated: str) -> None:
    """Refuse an axis that is given to a question in place of its name."""
    listed = given if isinstance(given, list | tuple) else [given]
    declared = next((axis for axis in listed if isinstance(axis, Axis)), None)
    if declared is not None:
        raise UsageError(
            stated,
            "an axis is declared in the Domain, and a question names it",
            f'Write sf.Domain(name=sf.{type(declared).__name__}(...)), and ask for "name"',
        )


def grid_axis(name: str, interval: Interval, cells: int, *, snap: bool = False) -> GridAxis:
    """Lay equal cells over an interval.

    With ``snap`` their edges are taken as decimal numbers although the interval has no step, so
    that a value on an edge opens the cell above it.
    """
    low, high = interval.numbers
    return GridAxis(
        name,
        low,
        high,
        cells,
        interval.time,
        snap or interval.step is not None,
        interval.stand_in,
        interval.stride,
        interval.column,
    )


def finest(axes: int) -> int:
    """How many cells an axis of a default lattice has: 2^20 alone, 2^12 beside others."""
    return 2**20 if axes == 1 else 2**12


def fine_lattice(intervals: Mapping[str, Interval]) -> Lattice:
    """The default lattice of partitions and quantiles.

    An axis whose own steps are fewer than the default cells has a cell for each step.
    """
    cells = finest(len(intervals))
    return Lattice(
        tuple(
            grid_axis(name, axis, min(cells, axis.natural_cells or cells))
            for name, axis in intervals.items()
        )
    )
