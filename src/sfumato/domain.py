"""Public axes and the lattice on them: everything that is known before the data are read.

A ``Domain`` names the axes; a question asks for a ``Lattice`` on some of them; the lattice sends each row to one cell.
Nothing here ever sees a true count.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import msgspec

from sfumato.errors import BoundsRequired, InternalError, UsageError, nearest, printable

if TYPE_CHECKING:
    from sfumato.arrays import Array

Bound: TypeAlias = "int | float | str | dt.date | dt.datetime"
Time: TypeAlias = Literal["day", "microsecond"]
Label: TypeAlias = "str | int | bool"
EPOCH = dt.date(1970, 1, 1)
ONE_MICROSECOND = dt.timedelta(microseconds=1)
LARGEST_BOUND = 1e100
FINEST_CELLS = 2**40
RESERVED = ("count", "low", "high")  # columns of every answer's frame
MOST_KEYS = 2**40
DROPPED = -1  # the cell of a row that the declared policy drops


class Interval(
    msgspec.Struct, frozen=True, tag="interval", omit_defaults=True, forbid_unknown_fields=True
):
    """Which numbers, dates or times can occur: a public range, never the data's own minimum and maximum.

    Values outside are clamped to the nearest end; rows with a missing value (null or NaN) are dropped, or counted at a stated
    value. Infinities clamp.

    Parameters
    ----------
    lower, upper : int, float, date, datetime or ISO text ("2013-01-01", "2013-01-01T06:00")
        Public bounds, ``lower < upper``. Cells are half-open, ``[a, b)``, the last one closed: the integers 0 to 120 are
        ``Interval(0, 121, step=1)``. A datetime without a zone is read as UTC.
    step : int, float, timedelta or None
        Natural width of a cell, if there is one: 1 for integers, ``timedelta(hours=1)``; a date's is one day.
        It must divide ``upper - lower``. For dates a number means days, for times seconds.
    missing : like the bounds, or None
        What stands in for a missing value, within the bounds; None drops the row. An end of the axis that no value
        reaches gives missing values a bin of their own.

    Raises
    ------
    UsageError
        If the bounds are not finite, not ordered, not of one kind, the step does not divide them, or ``missing`` is outside.

    >>> Interval(0, 24, step=1).natural_cells
    24
    >>> Interval(dt.date(2013, 1, 1), "2014-01-01").natural_cells
    365
    """

    lower: int | float | str
    upper: int | float | str
    step: int | float | None = None
    missing: int | float | str | None = None

    def __post_init__(self) -> None:
        for end in ("lower", "upper", *(() if self.missing is None else ("missing",))):
            msgspec.structs.force_setattr(self, end, _plain_bound(getattr(self, end)))
        step: object = getattr(
            self.step, "item", lambda: self.step
        )()  # numpy's numbers are numbers
        if isinstance(step, dt.timedelta):
            seconds = step / dt.timedelta(days=1) if self.time == "day" else step.total_seconds()
            msgspec.structs.force_setattr(
                self, "step", int(seconds) if seconds == int(seconds) else seconds
            )
        elif isinstance(step, int | float | Decimal) and not isinstance(step, bool):
            msgspec.structs.force_setattr(self, "step", _plain_number(step))
        if self.time == "day" and self.step is None:
            msgspec.structs.force_setattr(self, "step", 1)
        self._check()

    def _check(self) -> None:
        asked = f"Interval({self.lower!r}, {self.upper!r})"
        if _time_of(self.lower) != _time_of(self.upper):
            raise UsageError(
                asked,
                "one bound is a date and the other is not",
                "Give both bounds as dates, both as times or both as numbers",
            )
        low, high = self.numbers
        if not (
            math.isfinite(low) and math.isfinite(high) and max(abs(low), abs(high)) <= LARGEST_BOUND
        ):
            raise UsageError(
                asked,
                "the bounds must be finite numbers of size at most 1e100",
                "Choose public bounds that hold most values; the rest are clamped",
            )
        if not low < high:
            raise UsageError(asked, "lower must be below upper", "Swap the bounds, or widen them")
        if self.missing is not None and not (
            _time_of(self.missing) == self.time and low <= _number(self.missing) <= high
        ):
            raise UsageError(
                f"{asked[:-1]}, missing=...)",
                "what stands in for a missing value lies outside the bounds",
                "Widen them",
            )
        if self.step is not None:
            self._check_step(asked)

    def _check_step(self, asked: str) -> None:
        step = self.step
        if (
            isinstance(step, bool)
            or not isinstance(step, int | float)
            or not math.isfinite(step)
            or step <= 0
        ):
            raise UsageError(
                f"{asked[:-1]}, step={step!r})",
                "the step must be a positive number",
                "Give a step such as 1, or leave it out",
            )
        if self._steps().denominator != 1:
            raise UsageError(
                f"{asked[:-1]}, step={step!r})",
                "the step does not divide upper - lower",
                "Move a bound so that a whole number of steps fits",
            )
        if snap_of(*self.numbers, int(self._steps())) > 0.25:
            raise UsageError(
                f"{asked[:-1]}, step={step!r})",
                "doubles are coarser than that step at these bounds",
                "Choose a wider step",
            )
        if self._steps() > FINEST_CELLS:
            raise UsageError(
                f"{asked[:-1]}, step={step!r})",
                "that makes more than 2^40 cells",
                "Choose a wider step",
            )

    def _steps(self) -> Fraction:
        low, high = (Fraction(str(end)) for end in self.numbers)
        return (high - low) / (
            Fraction(str(self.step)) * (10**6 if self.time == "microsecond" else 1)
        )

    @property
    def time(self) -> Time | None:
        """``"day"`` for dates, ``"microsecond"`` for times, None for numbers: the unit of ``numbers``."""
        return _time_of(self.lower)

    @property
    def numbers(self) -> tuple[float, float]:
        """The bounds as floats: as they are, days since 1970-01-01, or microseconds since then in UTC."""
        return _number(self.lower), _number(self.upper)

    @property
    def stand_in(self) -> float | None:
        """What a missing value counts as, in the unit of ``numbers``; None drops its row."""
        return None if self.missing is None else _number(self.missing)

    @property
    def natural_cells(self) -> int | None:
        """How many steps there are between the bounds, or None without a step."""
        return None if self.step is None else int(self._steps())

    @property
    def stride(self) -> float | None:
        """The step in the unit of ``numbers``; None without one."""
        return (
            None
            if self.step is None
            else float(
                (Fraction(str(self.numbers[1])) - Fraction(str(self.numbers[0]))) / self._steps()
            )
        )


class Categories(
    msgspec.Struct, frozen=True, tag="categories", omit_defaults=True, forbid_unknown_fields=True
):
    """Which labels can occur: a public list.

    Parameters
    ----------
    labels : sequence of str, int or bool
        Distinct, in the order in which answers list them.
    other : str or None
        A label of its own for all unlisted values; None drops their rows.
    missing : str or None
        A label of its own for missing values; None drops their rows.

    Raises
    ------
    UsageError
        If there is no label, or one occurs twice.

    >>> Categories(["a", "b"], other="else", missing="not known").all_labels
    ('a', 'b', 'else', 'not known')
    """

    labels: Sequence[Label]
    other: str | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        labels: object = self.labels
        if isinstance(labels, str) or not isinstance(labels, Sequence):
            raise UsageError(
                f"Categories({type(labels).__name__})",
                "categories are a list of labels",
                'Write Categories(["a", "b"])',
            )
        msgspec.structs.force_setattr(
            self,
            "labels",
            tuple(label.item() if hasattr(label, "item") else label for label in labels),
        )
        asked = f"Categories of {len(self.labels)} labels"
        for name, label in (("other", self.other), ("missing", self.missing)):
            if label is not None and not isinstance(label, str):
                raise UsageError(
                    asked, f"{name} must be a text", f'Write {name}="{name}", or leave it out'
                )
        if not all(
            isinstance(label, str | int) and _is_writable(label) for label in self.all_labels
        ):
            obstacle = "labels must be text, integers of 64 bits or booleans"
            raise UsageError(asked, obstacle, "Turn other values into text, or declare an Interval")
        if not self.labels or len({(type(x), x) for x in self.all_labels}) < len(self.all_labels):
            raise UsageError(
                asked, "labels must be distinct, and there must be one", "Name each category once"
            )

    @property
    def all_labels(self) -> tuple[Label, ...]:
        """The labels, then ``other`` and ``missing`` where they are given."""
        return (*self.labels, *(label for label in (self.other, self.missing) if label is not None))


class Keys(msgspec.Struct, frozen=True, tag="keys", forbid_unknown_fields=True):
    """Values that are not known beforehand, such as names of shops: a key must be paid for before it is shown.

    The column holds text, integers or booleans; rows with a missing value are dropped.
    """


Axis: TypeAlias = Interval | Categories | Keys


class Domain(Mapping[str, "Axis"]):
    """The public axes of a table, by name.

    >>> domain = Domain(lon=Interval(-180, 180), lat=Interval(-90, 90), kind=Categories(["a", "b"]))
    >>> list(domain)
    ['lon', 'lat', 'kind']
    >>> domain == Domain({"lon": Interval(-180, 180), "lat": Interval(-90, 90), "kind": Categories(["a", "b"])})
    True
    """

    __slots__ = ("_axes",)
    _axes: dict[str, Axis]

    def __init__(self, axes: Mapping[str, Axis] | None = None, /, **named: Axis) -> None:
        if axes is not None and not isinstance(axes, Mapping):
            raise UsageError(
                f"Domain({type(axes).__name__})",
                "a domain is a dict of axes by name",
                "Write Domain(age=Interval(0, 121, step=1))",
            )
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
            if isinstance(axis, type) and issubclass(axis, Interval):
                raise BoundsRequired(
                    f"axis {name!r}",
                    "an Interval needs public bounds",
                    f"Write {name}=Interval(lower, upper)",
                )
            if not isinstance(axis, Interval | Categories | Keys):
                raise BoundsRequired(
                    f"axis {name!r} as {type(axis).__name__}",
                    "an axis has public bounds or labels, and they are never read off the data",
                    f'Write {name}=Interval(lower, upper), {name}=Categories(["a", "b"]) or {name}=Keys()',
                )

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
        return f"Domain({', '.join(f'{printable(name)}={axis!r}' for name, axis in self._axes.items())})"

    def select(self, axes: str | Sequence[str] | None) -> tuple[str, ...]:
        """Resolve an ``axes`` argument: a name, a list of names, or None for all Interval axes."""
        every = tuple(name for name, axis in self.items() if isinstance(axis, Interval))
        names = every if axes is None else named_axes(axes)
        if not names:
            raise UsageError(
                "no axes",
                "the question names none, and the domain has no Interval axis",
                "Name at least one axis",
            )
        for name in names:
            if name not in self._axes:
                raise UsageError(
                    f"axis {name!r}",
                    f"the domain has no axis of that name; {nearest(name, self)}",
                    "Name an axis of the domain, or declare it there",
                )
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

    def intervals(self, axes: str | Sequence[str] | None) -> dict[str, Interval]:
        """Resolve an ``axes`` argument of a question that takes Interval axes only."""
        chosen = {name: self[name] for name in self.select(axes)}
        for name, axis in chosen.items():
            if not isinstance(axis, Interval):
                raise UsageError(
                    f"axis {name!r}",
                    f"it is declared as {type(axis).__name__}, and this question takes Interval axes",
                    "Name Interval axes only",
                )
        return {name: axis for name, axis in chosen.items() if isinstance(axis, Interval)}


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
    raise UsageError(
        f"axes of type {type(axes).__name__}",
        "axes are a name or a list of names",
        'Write axes=["lon", "lat"]',
    )


# --- the lattice ------------------------------------------------------------------------------------------------------


class GridAxis(
    msgspec.Struct, frozen=True, tag="grid", omit_defaults=True, forbid_unknown_fields=True
):
    """Equal cells between two bounds.

    ``time`` says what the numbers count, if they are dates or times. ``step`` is the distance between the values that occur, the
    first of which is ``lower``; None: any number occurs.
    """

    name: str
    lower: float
    upper: float
    cells: int
    time: Time | None = None
    snap: bool = False
    missing: float | None = None
    step: float | None = None
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        _check_stride(self.name, self.step, self.upper - self.lower)
        if not (self.cells >= 1 and -LARGEST_BOUND <= self.lower < self.upper <= LARGEST_BOUND):
            raise UsageError(
                f"axis {self.name!r}",
                "it needs at least one cell between finite bounds",
                "Lay it over a wider Interval",
            )

    @property
    def size(self) -> int:
        return self.cells

    @property
    def nudge(self) -> float:
        """How far, in cells, a value may lie below an edge and still open the cell: the rounding of decimal steps."""
        return snap_of(self.lower, self.upper, self.cells) if self.snap else 0.0

    def edges(self) -> Array:
        """Bounds of the cells: float64 ndarray of shape (cells + 1,)."""
        return self.points(range(self.cells + 1))

    def extremes(self) -> tuple[Array, Array]:
        """The least and the largest value that each cell can hold: float64 ndarrays of shape (cells,).

        Without a step they are its edges. With one they are the first and the last step in the cell: one value where cells are
        steps. A value beyond the bounds counts as the nearest of all steps.
        """
        import numpy as np

        edges = self.edges()
        if self.step is None:
            return edges[:-1], edges[1:]
        natural = msgspec.structs.replace(self, cells=round((self.upper - self.lower) / self.step))
        if natural.cells == self.cells:
            return edges[:-1], edges[:-1]
        exact = object if self.cells * natural.cells >= 2**62 else np.int64
        first = np.asarray(
            -(-np.arange(self.cells + 1).astype(exact) * natural.cells // self.cells),
            dtype=np.int64,
        )
        inner = np.arange(1, self.cells)
        # Where an edge lies within the kernel's rounding above a step, the kernel puts that step into the cell above.
        first[1:-1] -= self.locate(natural.points(np.maximum(first[1:-1] - 1, 0))) >= inner
        return _stepped(edges, first, natural.points(first[:-1]), natural.points(first[1:] - 1))

    def points(self, index: Sequence[int] | Array) -> Array:
        """Where lattice points lie: float64 ndarray like ``index``; the two ends are exact.

        A point belongs to the cell that it opens, as the kernel sees it: where rounding puts the nearest double below, the
        least one that the kernel puts right is taken.
        """
        import numpy as np

        index = np.asarray(index)
        at = np.asarray(self.lower + index * (self.upper - self.lower) / self.cells)
        low = (index < self.cells) & (self.locate(at) < index)
        if low.any():
            at[low] = self._least(at[low], index[low])
        return np.asarray(np.where(index == self.cells, self.upper, at))

    def _least(self, below: Array, index: Array) -> Array:
        """Bisect for the least doubles in the given cells; rounding is off by at most 4 ulp of the largest bound."""
        import numpy as np

        above = below + 8 * np.spacing(max(abs(self.lower), abs(self.upper)))
        for _ in range(64):
            middle = below + (above - below) / 2
            right = self.locate(middle) >= index
            above, below = np.where(right, middle, above), np.where(right, below, middle)
        return np.asarray(above)

    def locate(self, values: Array) -> Array:
        """Send float64 values to cells, int64; NaN is dropped.

        This is the one kernel: floor((x - lower) * cells / (upper - lower)), clamped, in IEEE doubles without fused multiply-add.
        Where the axis has a step of its own (``snap``), ``nudge`` is added before the floor: 0.57 lies on the lattice of cents,
        but (0.57 - 0) * 10000 / 100 is 56.99999999999999, and its cell is the 57th.
        """
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.multiply(
                values - self.lower if self.lower else values, self.cells
            )  # x - 0 is x, to the last bit
            if self.upper - self.lower != 1:
                scaled /= self.upper - self.lower
            if self.snap:
                scaled += self.nudge
            np.clip(scaled, 0, self.cells - 1, out=scaled)  # truncation is floor from here on
            cells = scaled.astype(np.int64)
        if scaled.size and np.isnan(
            scaled.max()
        ):  # what is missing stays NaN up to here, and nothing else becomes NaN
            cells[np.isnan(values)] = _cell_of_missing(self)
        return cells

    def refines(self, other: LatticeAxis) -> bool:
        """Whether each cell of ``other`` is a union of cells of this axis, to the last bit of the kernel.

        Doubling the number of cells is exact in IEEE arithmetic; other ratios may round a value on an edge differently.
        """
        if not isinstance(other, GridAxis) or self.cells % other.cells:
            return False
        ratio = self.cells // other.cells
        same = msgspec.structs.replace(self, cells=other.cells) == other
        return same and ratio & (ratio - 1) == 0


class EdgesAxis(
    msgspec.Struct, frozen=True, tag="edges", omit_defaults=True, forbid_unknown_fields=True
):
    """Cells between given edges; values outside the first and last edge are clamped to the end cells.

    ``step`` is the distance between the values that occur, one of which is ``origin``; None: any number occurs.
    """

    name: str
    bounds: tuple[float, ...]
    time: Time | None = None
    missing: float | None = None
    step: float | None = None
    origin: float = 0.0
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        _check_stride(
            self.name, self.step, max(map(abs, self.bounds), default=0.0) + abs(self.origin)
        )

    @property
    def size(self) -> int:
        return len(self.bounds) - 1

    def edges(self) -> Array:
        """Bounds of the cells: float64 ndarray of shape (cells + 1,)."""
        import numpy as np

        return np.array(self.bounds)

    def extremes(self) -> tuple[Array, Array]:
        """The least and the largest value that each cell can hold, as for ``GridAxis``: float64 ndarrays of shape (cells,)."""
        import numpy as np

        edges = self.edges()
        if self.step is None:
            return edges[:-1], edges[1:]
        steps = (edges - self.origin) / self.step
        rounding = 4 * np.spacing(np.abs(edges).max()) / self.step + np.abs(steps) * 2.0**-50
        whole = np.rint(steps)
        first = np.where(
            np.abs(steps - whole) <= np.minimum(rounding, 0.25), whole, np.ceil(steps)
        ).astype(np.int64)
        return _stepped(
            edges,
            first,
            self.origin + first[:-1] * self.step,
            self.origin + (first[1:] - 1) * self.step,
        )

    def locate(self, values: Array) -> Array:
        """Send float64 values to cells, int64; NaN is dropped."""
        import numpy as np

        cells = np.searchsorted(np.array(self.bounds[1:-1]), values, side="right").astype(np.int64)
        if (gone := np.isnan(values)).any():
            cells[gone] = _cell_of_missing(self)
        return cells

    def refines(self, other: LatticeAxis) -> bool:
        return self == other


class LabelAxis(
    msgspec.Struct, frozen=True, tag="labels", omit_defaults=True, forbid_unknown_fields=True
):
    """One cell per label; with ``missing`` the last cell takes missing values, with ``other`` the one before every unlisted value."""

    name: str
    labels: tuple[Label, ...]
    other: bool = False
    missing: bool = False
    kind: ClassVar[str] = "categories"

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def listed(self) -> tuple[Label, ...]:
        """The labels that stand for themselves."""
        return self.labels[: len(self.labels) - self.other - self.missing]

    @property
    def missing_cell(self) -> int:
        """Where missing values go."""
        return self.size - 1 if self.missing else DROPPED

    def lookup(self, values: Sequence[object]) -> Array:
        """Send distinct values, None for a missing one, to cells: int64 ndarray like ``values``."""
        import numpy as np

        cell = {_label_key(label): i for i, label in enumerate(self.listed)}
        unlisted, gone = len(self.listed) if self.other else DROPPED, self.missing_cell
        return np.array(
            [gone if _missing(v) else cell.get(_label_key(v), unlisted) for v in values],
            dtype=np.int64,
        )

    def refines(self, other: LatticeAxis) -> bool:
        return self == other


class KeyAxis(msgspec.Struct, frozen=True, tag="keys", forbid_unknown_fields=True):
    """One cell per key, whatever the keys turn out to be: a cube that has such an axis names them, and no release has one."""

    name: str
    kind: ClassVar[str] = "keys"
    time: ClassVar[Time | None] = None

    @property
    def size(self) -> int:
        """More cells than keys can be told apart: how many there are is nobody's business."""
        return MOST_KEYS

    def edges(self) -> Array:
        raise InternalError("Keys have no edges.")

    def refines(self, other: LatticeAxis) -> bool:
        return self == other


LatticeAxis: TypeAlias = GridAxis | EdgesAxis | LabelAxis | KeyAxis


class Lattice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finite set of public cells: the product of its axes, the last one running fastest."""

    axes: tuple[LatticeAxis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of cells, as an exact integer."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def refines(self, other: Lattice) -> bool:
        """Whether every cell of ``other`` is exactly a union of cells of this lattice."""
        return len(self.axes) == len(other.axes) and all(
            a.refines(b) for a, b in zip(self.axes, other.axes, strict=True)
        )


def _cell_of_missing(axis: GridAxis | EdgesAxis) -> int:
    import numpy as np

    return DROPPED if axis.missing is None else int(axis.locate(np.array([axis.missing]))[0])


def _check_stride(name: str, step: float | None, width: float) -> None:
    """Refuse a step that no Interval of this width could have."""
    if step is not None and not (0 < step < math.inf and width / step <= 2.0**52):
        raise UsageError(
            f"axis {name!r}",
            "its step is not one that doubles can count",
            "Load a file that release.save wrote",
        )


def _stepped(edges: Array, first: Array, lowest: Array, highest: Array) -> tuple[Array, Array]:
    """The values given, but the edges of cells that hold no step: such a cell holds only what lies between two steps."""
    import numpy as np

    held = first[:-1] < first[1:]
    return np.where(held, lowest, edges[:-1]), np.where(held, highest, edges[1:])


def grid_axis(name: str, interval: Interval, cells: int, *, snap: bool = False) -> GridAxis:
    """Lay equal cells over an interval; ``snap`` if their edges are decimal numbers although the interval has no step."""
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
    )


def snap_of(lower: float, upper: float, cells: int) -> float:
    """Bound, in cells, how far rounding can push a decimal lattice point below itself.

    Four ulp of the larger bound for the point and the subtraction, and 2^-50 of the position for product and quotient. It
    doubles exactly with the number of cells, so refinement stays exact.
    """
    return cells * (4 * math.ulp(max(abs(lower), abs(upper))) / (upper - lower) + 2.0**-50)


def finest(axes: int) -> int:
    """How many cells an axis of a default lattice has: 2^20 alone, 2^12 beside others."""
    return 2**20 if axes == 1 else 2**12


def fine_lattice(intervals: Mapping[str, Interval]) -> Lattice:
    """The default lattice of partitions and quantiles; a step's own lattice is taken where it is coarser."""
    cells = finest(len(intervals))
    return Lattice(
        tuple(
            grid_axis(name, axis, min(cells, axis.natural_cells or cells))
            for name, axis in intervals.items()
        )
    )


def bin_names(edges: Sequence[str], time: Time | None = None) -> list[str]:
    """Name the bins between edges. The two at the ends are open, because they also hold the values that lie beyond.

    >>> bin_names(["0", "18", "65", "100"])
    ['below 18', '18 to 65', '65 and above']
    """
    if len(edges) < 3:
        return ["all values"]
    first, last = ("before", "and later") if time is not None else ("below", "and above")
    between = [f"{a} to {b}" for a, b in pairwise(edges[1:-1])]
    return [f"{first} {edges[1]}", *between, f"{edges[-2]} {last}"]


def as_number(value: object, time: Time | None, name: str) -> float:
    """Read one coordinate of an axis: a number, or a date or time where the axis counts them."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(_plain_number(value))
    try:
        number = _number(_plain_bound(value))
    except UsageError:
        number = math.nan
    if math.isnan(number) or time is None:
        raise UsageError(
            f"{name} = {type(value).__name__}",
            "it is not a coordinate of that axis",
            "Give numbers, or dates where the axis is one of dates",
        )
    return number


def _is_writable(label: Label) -> bool:
    """Whether a file can hold the label: text without lone surrogates, or an integer that columns and JSON hold."""
    if not isinstance(label, str):
        return -(2**63) <= label < 2**64
    return label.isascii() or not any("\ud800" <= c <= "\udfff" for c in label)


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _label_key(value: object) -> object:
    """Tell True from 1, but not numpy's 1 from Python's."""
    return (bool, value) if isinstance(value, bool) else value


def _plain_bound(bound: object) -> int | float | str:
    """Bring a bound into the form that a file can hold: a number or ISO text."""
    if isinstance(bound, dt.datetime):
        aware = bound if bound.tzinfo else bound.replace(tzinfo=dt.UTC)
        try:
            return aware.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
        except (OverflowError, ValueError):  # beyond the calendar, or not a time at all
            raise BoundsRequired(
                "a time as bound",
                "it lies outside the calendar",
                "Choose a time between the years 1 and 9999",
            ) from None
    if isinstance(bound, dt.date):
        return bound.isoformat()
    if isinstance(bound, str):
        try:
            return _plain_bound(
                dt.date.fromisoformat(bound)
                if len(bound) == 10
                else dt.datetime.fromisoformat(bound)
            )
        except ValueError:
            pass
    elif isinstance(bound, int | float | Decimal) and not isinstance(bound, bool):
        return _plain_number(bound)
    elif (
        hasattr(bound, "item")
        and getattr(bound, "ndim", 0) == 0
        and not isinstance(bound.item(), type(bound))
    ):
        return _plain_bound(bound.item())
    asked = (
        f"bound {bound!r}" if isinstance(bound, str) else f"bound of type {type(bound).__name__}"
    )
    raise BoundsRequired(
        asked,
        "a bound is a number, a date or a time",
        'Write Interval(0, 100) or Interval("2013-01-01", "2014-01-01")',
    )


def _plain_number(number: float | Decimal) -> int | float:
    """One form for one number: 0.0 is 0, and what no double holds is refused."""
    try:
        near = float(number)
    except (OverflowError, ValueError):
        near = math.inf
    if math.isfinite(near) and near.is_integer() and abs(near) < 2**53:
        return int(near)
    return near


def _time_of(bound: int | float | str) -> Time | None:
    if not isinstance(bound, str):
        return None
    return "day" if len(bound) == 10 else "microsecond"


def _number(bound: int | float | str) -> float:
    if not isinstance(bound, str):
        return float(bound)
    if len(bound) == 10:
        return float((dt.date.fromisoformat(bound) - EPOCH).days)
    return float((dt.datetime.fromisoformat(bound) - dt.datetime(1970, 1, 1)) // ONE_MICROSECOND)
