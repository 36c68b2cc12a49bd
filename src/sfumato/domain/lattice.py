"""The lattice on a domain: the finite set of public cells that rows are counted in.

A question asks for a ``Lattice`` on some axes of a domain; the lattice sends each row to one cell.
Nothing here ever sees a true count.

An axis of labels has a cell for each label; the labels are values of a column, or fields of the
calendar that are taken from its dates or times. An axis of keys has a cell for each key. All other
axes have bins between edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from sfumato.basics import Deferred
from sfumato.domain.scale import AxisKind, Scale, ValueKind, scale_of
from sfumato.domain.times import CalendarField, TimeUnit
from sfumato.errors import InternalError, UsageError, not_saved

if TYPE_CHECKING:
    import numpy as np

    from sfumato.basics import Array
else:
    np = Deferred("numpy")

# --- axes of labels and keys ----------------------------------------------------------------------

Label: TypeAlias = "str | int | bool"
MOST_KEYS = 2**40
_BLANKS = " \t"
DROPPED = -1  # the cell of a row that the declared policy drops


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def column(self) -> str | None: ...


class AxisCells(msgspec.Struct, frozen=True):
    """What the kinds of axes of a lattice have in common.

    What a kind does not have, such as the edges of labels, is absent here and added by the kind
    that has it. Each kind has these:

    * ``kind``: whether its values are numbers, dates, times, labels or keys.
    * ``value_kinds``: what kinds of values a column may hold that is counted along it.
    * ``declared``: what the domain says of its values, for messages.
    """

    has_edges: ClassVar[bool] = False
    has_labels: ClassVar[bool] = False
    has_keys: ClassVar[bool] = False

    @property
    def calendar(self) -> CalendarField | msgspec.UnsetType:
        """The field of the calendar whose labels these are; UNSET: they are values themselves."""
        return msgspec.UNSET

    @property
    def column_name(self: _Named) -> str:
        """The column of the table that it is read from."""
        return self.column or self.name

    @property
    def listed(self) -> tuple[Label, ...]:
        """The labels that stand for themselves, where it is an axis of labels."""
        return ()

    @property
    def scale(self) -> Scale:
        """What its numbers stand for, where it has edges."""
        raise InternalError("Labels and keys have no scale.")

    def edges(self) -> Array:
        """Bounds of the cells, where it has edges: float64 ndarray of shape (cells + 1,)."""
        raise InternalError("Labels and keys have no edges.")

    def cell_names(self) -> list[str]:
        """Name the cells: labels, or "a to b" for bins; an axis of keys names none."""
        return []

    def edge_names(self) -> list[str]:
        """Name bins by their edges, whatever values occur; as ``cell_names`` where there is no bin.

        >>> from sfumato.extending import GridAxis
        >>> axis = GridAxis("age", 0, 100, cells=4, step=1)
        >>> axis.cell_names()[1:], axis.edge_names()[1:]
        (['25 to 49', '50 to 74', '75 and above'], ['25 to 50', '50 to 75', '75 and above'])
        """
        return self.cell_names()

    def cell_values(self) -> list[Label]:
        """What a column of a table holds for each cell.

        These are the labels where all are of one type, else the names of the cells.
        """
        return list(self.cell_names())

    def refines(self, other: AxisCells) -> bool:
        """Whether each of its cells lies in one cell of the other axis."""
        return self == other


class LabelAxis(
    AxisCells,
    frozen=True,
    tag="labels",
    omit_defaults=True,
    forbid_unknown_fields=True,
    cache_hash=True,
):
    """One cell per label.

    ``column`` is the column that it is read from; None: the one of its own name. With ``calendar``
    the column holds dates or times, and the labels are consecutive values of that field of theirs.
    With ``missing`` the last cell takes missing values. With ``other`` the last cell, or the one
    before that of missing values, takes every unlisted value. With ``parts`` the labels are those
    of groups, and each takes the values that its part lists.

    >>> from sfumato.extending import LabelAxis
    >>> LabelAxis("ward", ("surgery", "children")).size
    2
    """

    name: str
    labels: tuple[Label, ...]
    other: bool = False
    missing: bool = False
    column: str | None = None
    calendar: CalendarField | msgspec.UnsetType = msgspec.UNSET
    parts: tuple[tuple[Label, ...], ...] | msgspec.UnsetType = msgspec.UNSET
    has_labels: ClassVar[bool] = True
    time: ClassVar[TimeUnit | None] = None
    kind: ClassVar[AxisKind] = "label"

    @property
    def value_kinds(self) -> frozenset[ValueKind]:
        """What kinds of values a column may hold that is counted along it."""
        if self.calendar is not msgspec.UNSET:
            return frozenset({"time"})
        kinds = frozenset(map(_value_kind, set(map(type, self.listed))))
        takes_truths = self.parts is msgspec.UNSET and _truths(self.listed)
        return kinds | {"boolean"} if takes_truths else kinds

    @property
    def declared(self) -> str:
        """What the domain says of its values, for messages."""
        if self.calendar is not msgspec.UNSET:
            return f"{self.calendar.words} is taken from dates or times"
        return f"its labels are declared as {' and '.join(sorted(self.value_kinds))}"

    def cell_names(self) -> list[str]:
        return [str(label) for label in self.labels]

    def cell_values(self) -> list[Label]:
        one_type = len(set(map(type, self.labels))) == 1
        return list(self.labels) if one_type else list(self.cell_names())

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.labels)

    @property
    def listed(self) -> tuple[Label, ...]:
        """The labels that the column itself holds; none of fields of the calendar."""
        if self.calendar is not msgspec.UNSET:
            return ()
        if self.parts is not msgspec.UNSET:
            return tuple(label for part in self.parts for label in part)
        return self.labels[: self.n_listed]

    @property
    def listed_cells(self) -> tuple[int, ...]:
        """The cell of each of these labels."""
        if self.parts is msgspec.UNSET:
            return tuple(range(len(self.listed)))
        return tuple(cell for cell, part in enumerate(self.parts) for _ in part)

    @property
    def truths(self) -> tuple[int, int] | None:
        """The cells of false and of true, where these two are the labels; None for other labels."""
        if self.parts is not msgspec.UNSET:
            return None
        if len(self.listed) == 2 and all(isinstance(label, bool) for label in self.listed):
            return self.listed.index(False), self.listed.index(True)
        cells = _truths(self.listed)
        return (cells["false"], cells["true"]) if cells else None

    @property
    def n_listed(self) -> int:
        """How many labels there are beside those of unlisted and of missing values."""
        return len(self.labels) - self.other - self.missing

    @property
    def unlisted_cell(self) -> int:
        """Where unlisted values go."""
        return self.n_listed if self.other else DROPPED

    @property
    def missing_cell(self) -> int:
        """Where missing values go."""
        return self.size - 1 if self.missing else DROPPED

    def lookup(self, values: Sequence[object]) -> Array:
        """Send distinct values, None for a missing one, to cells: int64 ndarray like ``values``.

        ``LabelIndex`` says how.
        """
        return LabelIndex.of(self).cells(values)


class LabelIndex:
    """Finds the cells of values along an axis of labels, which it goes through once.

    Blanks around text do not matter, unless the label is listed with them. Labels that are ``true``
    and ``false``, in any case, also take booleans, and how these are written.
    """

    # By the address of the axis, which an index keeps alive. Equal axes may have labels of
    # different types, such as 1 and True.
    _in_use: ClassVar[WeakValueDictionary[int, LabelIndex]] = WeakValueDictionary()

    @classmethod
    def of(cls, axis: LabelAxis) -> LabelIndex:
        """Return the index of an axis: the same one for all who use it at the same time."""
        index = cls._in_use.get(id(axis))
        if index is None:
            index = cls._in_use[id(axis)] = cls(axis)
        return index

    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis
        self._unlisted_cell = axis.unlisted_cell
        labels = axis.listed
        self._cells = dict(zip(map(label_key, labels), axis.listed_cells, strict=True))
        self._truths = _truths(labels) if axis.parts is msgspec.UNSET else {}

    def cells(self, values: Sequence[object]) -> Array:
        """Send distinct values, None for a missing one, to cells: int64 ndarray like ``values``."""
        import numpy as np

        return np.fromiter(map(self._cell, values), np.int64, len(values))

    def _cell(self, value: object) -> int:
        # Most values are text that is listed.
        if type(value) is str and (listed_cell := self._cells.get(value)) is not None:
            return listed_cell
        if is_missing(value):
            return self._axis.missing_cell
        cell = self._cells.get(label_key(value))
        # What is listed counts first: blanks are cut, and truth is read, only where nothing is
        # listed.
        if cell is None and isinstance(value, str):
            cell = self._cells.get(value.strip(_BLANKS))
        if cell is None and self._truths:
            cell = self._truths.get(str(value).strip(_BLANKS).lower())
        return self._unlisted_cell if cell is None else cell


class KeyAxis(AxisCells, frozen=True, tag="keys", omit_defaults=True, forbid_unknown_fields=True):
    """One cell per key, whatever the keys turn out to be.

    A cube that has such an axis names the keys. No release has one: it names the keys that were
    selected as labels.
    """

    name: str
    column: str | None = None
    has_keys: ClassVar[bool] = True
    time: ClassVar[TimeUnit | None] = None
    kind: ClassVar[AxisKind] = "key"
    value_kinds: ClassVar[frozenset[ValueKind]] = frozenset({"text", "boolean", "number"})
    declared: ClassVar[str] = "keys are text, booleans or signed integers of up to 64 bits"

    @property
    def size(self) -> int:
        """More cells than keys can be told apart: how many there are is nobody's business."""
        return MOST_KEYS


def is_missing(value: object) -> bool:
    """Whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def label_key(value: object) -> object:
    """Tell True from 1, but not numpy's 1 from Python's."""
    return (bool, value) if isinstance(value, bool) else value


def _truths(labels: Sequence[Label]) -> dict[str, int]:
    """How booleans are written, and the label that each means; empty unless the labels are two.

    >>> _truths(["True", "False"]) == {"true": 0, "1": 0, "false": 1, "0": 1}
    True
    """
    if len(labels) != 2:
        return {}
    texts = [label.lower() for label in labels if isinstance(label, str)]
    if sorted(texts) != ["false", "true"]:
        return {}
    yes = texts.index("true")
    return {"true": yes, "1": yes, "false": 1 - yes, "0": 1 - yes}


def _value_kind(type_: type[Label]) -> ValueKind:
    if issubclass(type_, bool):
        return "boolean"
    return "text" if issubclass(type_, str) else "number"


# --- axes of numbers, dates and times -------------------------------------------------------------

LARGEST_BOUND = 1e100
# What the cell of missing values beside bins is called.
MISSING = "missing"


class BinnedCells(AxisCells, frozen=True):
    """What axes of numbers, dates and times have in common: bins between edges."""

    has_edges: ClassVar[bool] = True

    @property
    def kind(self) -> AxisKind:
        return self.scale.kind

    @property
    def value_kinds(self) -> frozenset[ValueKind]:
        return self.scale.value_kinds

    @property
    def declared(self) -> str:
        return f"the domain declares {self.scale.declared}"

    @property
    def values(self) -> tuple[float, float] | None:
        """One of the values that occur and the step between them; None: any number occurs."""
        raise NotImplementedError

    def extremes(self) -> tuple[Array, Array]:
        """The least and largest value that each cell can hold: float64 ndarrays of shape (cells,).

        Without a step they are its edges. With one they are the first and the last step in the
        cell: one value where cells are steps. A value beyond the bounds counts as the nearest of
        all steps.
        """
        raise NotImplementedError

    def cell_names(self) -> list[str]:
        return self.whole_names() or self.edge_names()

    def edge_names(self) -> list[str]:
        return self.scale.bin_names(self.scale.text(self.edges()))

    def whole_names(self) -> list[str]:
        """Name the cells by the whole numbers or days in them, such as "18 to 64".

        None of them has a name where other values occur too, or where a cell has none of these.
        """
        if self.scale.kind == "time" or self.values is None:
            return []
        lowest, highest = self.extremes()
        start, step = self.values
        if step != 1 or start % 1 or (lowest % 1).any():
            return []
        first, last = map(self.scale.whole_text, (lowest, highest))
        return self.scale.value_names(first, last)


class GridAxis(
    BinnedCells, frozen=True, tag="grid", omit_defaults=True, forbid_unknown_fields=True
):
    """Equal cells between two bounds.

    ``time`` says what the numbers count, if they are dates or times. ``step`` is the distance
    between the values that occur, the first of which is ``lower``; None: any number occurs.

    >>> from sfumato.extending import GridAxis
    >>> axis = GridAxis("age", 0, 100, cells=4)
    >>> axis.size
    4
    """

    name: str
    lower: float
    upper: float
    cells: int
    time: TimeUnit | None = None
    snap: bool = False
    missing: float | None = None
    step: float | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        _check_stride(self.name, self.step, self.upper - self.lower)
        if not (self.cells >= 1 and -LARGEST_BOUND <= self.lower < self.upper <= LARGEST_BOUND):
            raise UsageError(
                f"axis {self.name!r}",
                "it needs at least one cell between finite bounds",
                "Lay it over a wider Interval",
            )

    @property
    def scale(self) -> Scale:
        return scale_of(self.time)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.cells

    @property
    def ends(self) -> tuple[float, float]:
        """The public bounds."""
        return self.lower, self.upper

    @property
    def values(self) -> tuple[float, float] | None:
        return None if self.step is None else (self.lower, self.step)

    @property
    def decimals(self) -> int:
        """How many decimals tell each point of the lattice from its neighbours.

        >>> GridAxis("lon", -180, 180, cells=3600).decimals
        1
        """
        resolution = (self.upper - self.lower) / self.cells
        # An exact power of ten must not get one decimal more because the logarithm is rounded up.
        return max(0, math.ceil(-math.log10(resolution) - 1e-9))

    def edges(self) -> Array:
        return self.points(range(self.cells + 1))

    def extremes(self) -> tuple[Array, Array]:
        edges = self.edges()
        if self.step is None:
            return edges[:-1], edges[1:]
        natural = msgspec.structs.replace(self, cells=round((self.upper - self.lower) / self.step))
        if natural.cells == self.cells:
            return edges[:-1], edges[:-1]
        # The product of two sizes may not fit 64 bits; then Python's own integers are used.
        largest = self.cells * natural.cells
        exact = object if largest >= 2**62 else np.int64
        # The first step at or above each edge: ceil(i * steps / cells), in integers.
        steps = np.arange(self.cells + 1).astype(exact) * natural.cells
        first = np.asarray(-(-steps // self.cells), dtype=np.int64)
        inner = np.arange(1, self.cells)
        # Where an edge lies within the kernel's rounding above a step, the kernel puts that step
        # into the cell above.
        before = natural.points(np.maximum(first[1:-1] - 1, 0))
        first[1:-1] -= self.locate(before) >= inner
        return _stepped(edges, first, natural.points(first[:-1]), natural.points(first[1:] - 1))

    def points(self, index: Sequence[int] | Array) -> Array:
        """Where lattice points lie: float64 ndarray like ``index``; the two ends are exact.

        A point belongs to the cell that it opens, as the kernel sees it: where rounding puts the
        nearest double below, the least one that the kernel puts right is taken.
        """
        index = np.asarray(index)
        at = np.asarray(self.lower + index * (self.upper - self.lower) / self.cells)
        low = (index < self.cells) & (self.locate(at) < index)
        if low.any():
            from sfumato.basics import roots

            # Rounding is off by at most 4 ulp of the largest bound, so the double lies within 8.
            above = at[low] + 8 * np.spacing(max(abs(self.lower), abs(self.upper)))
            at[low] = roots(lambda x: self.locate(x) >= index[low], at[low], above, 64)[1]
        return np.where(index == self.cells, self.upper, at)

    def locate(self, values: Array) -> Array:
        """Send float64 values to cells, int64; NaN is dropped.

        This is the one kernel: floor((x - lower) * cells / (upper - lower)), clamped, in IEEE
        doubles without fused multiply-add. Where the axis has a step of its own (``snap``),
        ``snap_of`` is added before the floor: 0.57 lies on the lattice of cents, but (0.57 - 0) *
        10000 / 100 is 56.99999999999999, and its cell is the 57th.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            # x - 0 is x, to the last bit.
            moved = values - self.lower if self.lower else values
            scaled = np.multiply(moved, self.cells)
            if self.upper - self.lower != 1:
                scaled /= self.upper - self.lower
            if self.snap:
                scaled += snap_of(self.lower, self.upper, self.cells)
            np.clip(scaled, 0, self.cells - 1, out=scaled)  # truncation is floor from here on
            cells = scaled.astype(np.int64)
        # What is missing stays NaN up to here, and nothing else becomes NaN.
        if scaled.size and np.isnan(scaled.max()):
            cells[np.isnan(values)] = _cell_of_missing(self)
        return cells

    @property
    def holds_whole_numbers(self) -> bool:
        """Whether each cell is that of one whole number, and none so large that doubles round."""
        fits = self.cells <= 2**26 and max(abs(self.lower), abs(self.upper)) <= 2**40
        is_whole = self.lower % 1 == 0 and self.upper - self.lower == self.cells
        return fits and is_whole and self.time is None

    def locate_whole(self, values: Array) -> Array:
        """Send int64 values to cells, int64, where the axis ``holds_whole_numbers``: as ``locate``.

        Without doubles it takes a fifth of the time. There every product is below 2^53, and so
        exact, and the nudge is below 1.
        """
        low = int(self.lower)
        cells = np.clip(values, low, int(self.upper) - 1)
        cells -= low
        return cells

    def refines(self, other: AxisCells) -> bool:
        """Whether each cell of ``other`` is a union of cells of this axis, to the last bit.

        Doubling the number of cells is exact in IEEE arithmetic; other ratios may round a value on
        an edge differently.
        """
        if not isinstance(other, GridAxis) or self.cells % other.cells:
            return False
        ratio = self.cells // other.cells
        same = msgspec.structs.replace(self, cells=other.cells) == other
        return same and ratio & (ratio - 1) == 0


class EdgesAxis(
    BinnedCells, frozen=True, tag="edges", omit_defaults=True, forbid_unknown_fields=True
):
    """Cells between given edges; values beyond them are clamped to the end cells.

    ``step`` is the distance between the values that occur, one of which is ``origin``; None: any
    number occurs.
    """

    name: str
    bounds: tuple[float, ...]
    time: TimeUnit | None = None
    missing: float | None = None
    step: float | None = None
    origin: float = 0.0
    column: str | None = None

    def __post_init__(self) -> None:
        _check_stride(
            self.name, self.step, max(map(abs, self.bounds), default=0.0) + abs(self.origin)
        )
        # Doubles may be too coarse to tell two edges apart.
        ordered = all(low <= high for low, high in pairwise(self.bounds))
        if len(self.bounds) < 2 or not ordered or max(map(abs, self.bounds)) > LARGEST_BOUND:
            raise UsageError(
                f"axis {self.name!r}",
                "its edges are not finite numbers in ascending order",
                "Sort them, and give at least two",
            )

    @property
    def scale(self) -> Scale:
        return scale_of(self.time)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.bounds) - 1

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last edge."""
        return self.bounds[0], self.bounds[-1]

    @property
    def values(self) -> tuple[float, float] | None:
        return None if self.step is None else (self.origin, self.step)

    def edges(self) -> Array:
        return np.array(self.bounds)

    def extremes(self) -> tuple[Array, Array]:
        edges = self.edges()
        if self.step is None:
            return edges[:-1], edges[1:]
        steps = (edges - self.origin) / self.step
        coarsest = 4 * np.spacing(np.abs(edges).max()) / self.step
        rounding = coarsest + np.abs(steps) * 2.0**-50
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
        cells = _edge_search(self.bounds[1:-1]).cells(values)
        if (gone := np.isnan(values)).any():
            cells[gone] = _cell_of_missing(self)
        return cells


class _EdgeSearch:
    """Counts the edges at or below values: on a fine even grid first, then by comparing.

    Which cell of the grid a value lies in never falls as the value rises. So edges in cells before
    a value's own are below it, edges in later ones are above it, and those in its own are compared
    with it.
    """

    def __init__(self, given: tuple[float, ...]) -> None:
        edges = np.array(given, np.float64)
        self._edges = edges
        # Eight cells for each edge leave few of them crowded.
        size = min(max(8 * len(edges), 64), 2**16)
        self._last = float(size - 1)
        self._low = edges.min(initial=np.inf)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self._scale = size / (edges.max(initial=-np.inf) - self._low)
        places = self._places(edges)
        n_edges = np.bincount(places, minlength=size)
        self._n_before = np.cumsum(n_edges) - n_edges
        self._edge = np.full(size, np.nan)
        # Of several edges in one place the last one stays; such a place is crowded, and is
        # searched.
        self._edge[places] = edges
        self._is_crowded = n_edges > 1

    def cells(self, values: Array) -> Array:
        """Return how many edges are at or below each value, int64; anything for NaN."""
        places = self._places(values)
        cells = self._n_before[places]
        # A place without an edge holds NaN, which no value reaches.
        cells += values >= self._edge[places]
        if self._is_crowded.any():
            crowded = np.flatnonzero(self._is_crowded[places])
            cells[crowded] = np.searchsorted(self._edges, values[crowded], side="right")
        return cells

    def _places(self, values: Array) -> Array:
        # Edges and values are placed by the same monotone steps, so rounding cannot change their
        # order.
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.subtract(values, self._low)
            scaled *= self._scale
        # These two take 0 for what is NaN.
        np.fmax(scaled, 0.0, out=scaled)
        np.fmin(scaled, self._last, out=scaled)
        return np.asarray(scaled, np.int64)


_edge_search = lru_cache(maxsize=16)(_EdgeSearch)


class BinsAndMissing(
    AxisCells, frozen=True, tag="bins and missing", omit_defaults=True, forbid_unknown_fields=True
):
    """Bins, and a last cell of its own for missing values.

    Its cells have names, as labels have: no edges hold what is missing.
    """

    bins: GridAxis | EdgesAxis
    kind: ClassVar[AxisKind] = "label"

    @property
    def time(self) -> TimeUnit | None:
        return self.bins.time

    @property
    def name(self) -> str:
        return self.bins.name

    @property
    def column(self) -> str | None:
        return self.bins.column

    @property
    def value_kinds(self) -> frozenset[ValueKind]:
        return self.bins.value_kinds

    @property
    def declared(self) -> str:
        return self.bins.declared

    @property
    def size(self) -> int:
        """The number of bins, and one."""
        return self.bins.size + 1

    def cell_names(self) -> list[str]:
        return [*self.bins.cell_names(), MISSING]

    def edge_names(self) -> list[str]:
        return [*self.bins.edge_names(), MISSING]

    def locate(self, values: Array) -> Array:
        """Send float64 values to cells, int64; NaN to the last one."""
        cells = self.bins.locate(values)
        return np.where(np.isnan(values), self.bins.size, cells)


LatticeAxis: TypeAlias = GridAxis | EdgesAxis | BinsAndMissing | LabelAxis | KeyAxis


class Lattice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finite set of public cells: the product of its axes, the last one running fastest.

    >>> from sfumato.extending import GridAxis, LabelAxis, Lattice
    >>> ages = GridAxis("age", 0, 100, cells=4)
    >>> lattice = Lattice((ages, LabelAxis("ward", ("surgery", "children"))))
    >>> lattice.shape, lattice.size
    ((4, 2), 8)
    """

    axes: tuple[LatticeAxis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis has."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of cells, as an exact integer."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.name for axis in self.axes)

    @property
    def grids(self) -> tuple[GridAxis, ...]:
        """The axes of equal cells: all axes of a partition, of quantiles or of clusters."""
        return tuple(axis for axis in self.axes if isinstance(axis, GridAxis))

    @property
    def keyed(self) -> dict[int, str]:
        """The axes of keys: their names by their positions."""
        return {at: axis.name for at, axis in enumerate(self.axes) if axis.has_keys}

    @property
    def public_size(self) -> int:
        """Number of cells beside the keys, which nobody knows beforehand."""
        return math.prod(axis.size for axis in self.axes if not axis.has_keys)

    def refines(self, other: Lattice) -> bool:
        """Whether every cell of ``other`` is exactly a union of cells of this lattice."""
        return len(self.axes) == len(other.axes) and all(
            a.refines(b) for a, b in zip(self.axes, other.axes, strict=True)
        )


def _cell_of_missing(axis: GridAxis | EdgesAxis) -> int:
    return DROPPED if axis.missing is None else int(axis.locate(np.array([axis.missing]))[0])


def _check_stride(name: str, step: float | None, width: float) -> None:
    """Refuse a step that no Interval of this width could have."""
    if step is not None and not (0 < step < math.inf and width / step <= 2.0**52):
        raise not_saved(f"axis {name!r}", "its step is not one that doubles can count")


def _stepped(edges: Array, first: Array, lowest: Array, highest: Array) -> tuple[Array, Array]:
    """Use the edges instead for cells that hold no step.

    Such a cell holds only what lies between two steps.
    """
    held = first[:-1] < first[1:]
    return np.where(held, lowest, edges[:-1]), np.where(held, highest, edges[1:])


def snap_of(lower: float, upper: float, cells: int) -> float:
    """Bound, in cells, how far rounding can push a decimal lattice point below itself.

    Four ulp of the larger bound for the point and the subtraction, and 2^-50 of the position for
    product and quotient. It doubles exactly with the number of cells, so refinement stays exact.
    """
    return cells * (4 * math.ulp(max(abs(lower), abs(upper))) / (upper - lower) + 2.0**-50)
