"""What the axes of a lattice have in common, and those of them that have no numbers.

An axis of labels has a cell for each label; the labels are values of a column, or fields of the
calendar that are taken from its dates or times. An axis of keys has a cell for each key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import msgspec

from sfumato.domain.scale import AxisKind, Scale, ValueKind
from sfumato.domain.times import CalendarField, TimeUnit
from sfumato.errors import InternalError

if TYPE_CHECKING:
    from sfumato.basics.numbers import Array

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
    AxisCells, frozen=True, tag="labels", omit_defaults=True, forbid_unknown_fields=True
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
        kinds = frozenset(map(_value_kind, self.listed))
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

        Blanks around text do not matter, unless the label is listed with them. Labels that are
        ``true`` and ``false``, in any case, also take booleans, and how these are written.
        """
        import numpy as np

        cells = dict(zip(map(label_key, self.listed), self.listed_cells, strict=True))
        truths = _truths(self.listed) if self.parts is msgspec.UNSET else {}

        def cell_of(value: object) -> int:
            if is_missing(value):
                return self.missing_cell
            cell = cells.get(label_key(value))
            if cell is None and isinstance(value, str):
                cell = cells.get(value.strip(_BLANKS))
            if cell is None and truths:
                cell = truths.get(str(value).strip(_BLANKS).lower())
            return self.unlisted_cell if cell is None else cell

        return np.array([cell_of(value) for value in values], dtype=np.int64)

    def refines(self, other: AxisCells) -> bool:
        """Whether each of its cells lies in one cell of the other axis."""
        return self == other


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
    texts = [label.lower() for label in labels if isinstance(label, str)]
    if len(labels) != 2 or sorted(texts) != ["false", "true"]:
        return {}
    yes = texts.index("true")
    return {"true": yes, "1": yes, "false": 1 - yes, "0": 1 - yes}


def _value_kind(label: Label) -> ValueKind:
    if isinstance(label, bool):
        return "boolean"
    return "text" if isinstance(label, str) else "number"
