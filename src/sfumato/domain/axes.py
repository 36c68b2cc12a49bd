"""What the axes of a lattice have in common, and those of them that have no numbers.

An axis of labels has a cell for each label; the labels are values of a column, or fields of the
calendar that are taken from its dates or times. An axis of keys has a cell for each key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from sfumato.domain.scale import AxisKind, Scale, ValueKind
from sfumato.domain.times import CalendarField, TimeUnit
from sfumato.errors import InternalError

if TYPE_CHECKING:
    from sfumato.basics import Array

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
    that has it.
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
    def kind(self) -> AxisKind:
        """Whether its values are numbers, dates, times, labels or keys."""
        raise NotImplementedError

    @property
    def value_kinds(self) -> frozenset[ValueKind]:
        """What kinds of values a column may hold that is counted along it."""
        raise NotImplementedError

    @property
    def declared(self) -> str:
        """What the domain says of its values, for messages."""
        raise NotImplementedError

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

    @property
    def kind(self) -> AxisKind:
        return "label"

    @property
    def value_kinds(self) -> frozenset[ValueKind]:
        if self.calendar is not msgspec.UNSET:
            return frozenset({"time"})
        kinds = frozenset(map(_value_kind, set(map(type, self.listed))))
        return (
            kinds | {"boolean"} if self.parts is msgspec.UNSET and _truths(self.listed) else kinds
        )

    @property
    def declared(self) -> str:
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

    def refines(self, other: AxisCells) -> bool:
        """Whether each of its cells lies in one cell of the other axis."""
        return self == other


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

    @property
    def kind(self) -> AxisKind:
        return "key"

    @property
    def value_kinds(self) -> frozenset[ValueKind]:
        return frozenset({"text", "boolean", "number"})

    @property
    def declared(self) -> str:
        return "keys are text, booleans or signed integers of up to 64 bits"

    @property
    def size(self) -> int:
        """More cells than keys can be told apart: how many there are is nobody's business."""
        return MOST_KEYS

    def refines(self, other: AxisCells) -> bool:
        """Whether each of its cells lies in one cell of the other axis."""
        return self == other


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
