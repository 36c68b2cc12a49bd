"""What a question asks to have counted, and what it may ask of the data once that is counted.

*One whole number for each person* (``PersonLattice``): the mean or the sum of their values, rounded
exactly. Each row of a person has a whole number k. Their sum S and their number n are exact
integers, which add up in any order. So what a person's number is depends on that person's rows
alone: not on their order, nor on how a table is cut or read.

``Needs`` says what is counted, and ``Counts`` what a question may ask of it afterwards.

``NearestAxis`` has equally spaced points, for values that are added up: each counts as the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.domain import DROPPED, Cube, Domain, EdgesAxis, GridAxis, Lattice, LatticeAxis
from sfumato.errors import InternalError, UsageError
from sfumato.mechanisms import KeyRule
from sfumato.privacy import StackedNorm, Unit

# --- one whole number for each person -------------------------------------------------------------

# What is made of a person's values in a cell.
PersonStatistic: TypeAlias = Literal["mean", "sum"]


class PersonLattice(msgspec.Struct, frozen=True):
    """The lattice that persons' values are rounded to, beside the lattice of the rows' values.

    Both are in one unit, of which everything is a whole number.

    Parameters
    ----------
    row_start, row_step : int
        A row's number k stands for ``row_start + k * row_step`` units.
    start, step, most : int
        A person's number j, from 0 to ``most``, stands for ``start + j * step`` units.

    Raises
    ------
    UsageError
        If a step or ``most`` is not positive.

    >>> dollars = PersonLattice(row_start=0, row_step=1, start=0, step=2, most=50)
    >>> sums, rows = np.array([3, 8, 300]), np.array([1, 3, 2])
    >>> dollars.located("mean", sums, rows).tolist(), dollars.located("sum", sums, rows).tolist()
    ([2, 1, 50], [2, 4, 50])
    """

    row_start: int
    row_step: int
    start: int
    step: int
    most: int

    def __post_init__(self) -> None:
        if min(self.row_step, self.step, self.most) < 1:
            raise UsageError(
                "a lattice of persons' values",
                "its steps must be positive, and there must be one",
                "Declare wider bounds",
            )

    def located(self, statistic: PersonStatistic, sums: Array, rows: Array) -> Array:
        """Give each person's number: the nearest one, the upper one of two, within 0 to ``most``.

        Exact: only integers are added, multiplied and divided with a remainder.

        Parameters
        ----------
        statistic : {"mean", "sum"}
        sums : int64 ndarray of shape (persons,)
            What the numbers of each person's rows add up to.
        rows : int64 ndarray of shape (persons,)
            How many rows each person has, at least 1.

        Returns
        -------
        int64 ndarray of shape (persons,)
        """
        if not self._fits(int(sums.max(initial=1)), int(rows.max(initial=1))):
            # Python's integers never overflow. What comes out is the same.
            sums = sums.astype(object)
            rows = rows.astype(object)
        match statistic:
            case "mean":
                # (row_start n + row_step S) / n - start, in steps
                above = self.row_step * sums + (self.row_start - self.start) * rows
                steps = self.step * rows
            case "sum":
                above = self.row_step * sums + self.row_start * rows - self.start
                steps = self.step * np.ones_like(rows)
        # Half up: floor(above / steps + 1/2). Floor division of integers rounds down, also below 0.
        nearest = (2 * above + steps) // (2 * steps)
        return np.asarray(np.clip(nearest, 0, self.most)).astype(np.int64)

    def _fits(self, most_summed: int, most_rows: int) -> bool:
        """Whether no number on the way to the result can pass 64 bits."""
        # All terms of ``located`` are bounded by these; doubled, since it rounds halves by
        # doubling.
        farthest = abs(self.row_start) + abs(self.start) + self.step
        return 2 * (self.row_step * most_summed + 2 * farthest * most_rows) < 2**63


# --- what is counted ------------------------------------------------------------------------------

# What the number in a cell is a number of; the last four are numbers of persons, by a number that
# each of them has.
Counted = Literal[
    "rows",
    "persons",
    "rows of each person",
    "cells of each person",
    "norm of each person",
    "largest cell of each person",
]


# The largest number that a row adds to a sum, and the largest whose square it adds. 10^9 rows then
# add up to less than 2^62.
MOST_SUMMED = 2**31
MOST_SQUARED = 2**16


class Summed(msgspec.Struct, frozen=True):
    """A value that each counted row or person adds to a cell, as a whole number.

    Attributes
    ----------
    axis : GridAxis
        A row's value is located on it. Its number is that of its cell, 0 to ``axis.size - 1``.
    squares : bool
        Whether the square of the number is added as well.
    of_person : {"mean", "sum"} or None
        None: each row adds its number. Otherwise each person adds one number to a cell: that of the
        mean or the sum of the values of the person's rows there.
    onto : PersonLattice or None
        How a person's number follows from those of their rows; a sum needs it. None: means are
        rounded to the numbers of ``axis``.
    segments : EdgesAxis or None
        An axis of the lattice along which persons are located by the number that they add. It is no
        column of the table.

    Raises
    ------
    UsageError
        If sums over 10^9 rows might pass 2^62: at more than 2^31 steps, or 2^16 with squares. Or if
        ``onto`` is missing, or is given where rows are added up.

    >>> from sfumato.extending import GridAxis, Summed
    >>> stay = GridAxis("stay", 0, 30, cells=31, step=1)
    >>> summed = Summed(stay, squares=True)
    >>> summed.axis.size, summed.squares
    (31, True)
    """

    axis: GridAxis
    squares: bool = False
    of_person: PersonStatistic | None = None
    onto: PersonLattice | None = None
    segments: EdgesAxis | None = None

    def __post_init__(self) -> None:
        most = MOST_SQUARED if self.squares else MOST_SUMMED
        # Numbers of rows are added up before persons' numbers are made of them.
        too_fine = self.most > most or self.axis.size - 1 > MOST_SUMMED
        if too_fine:
            raise UsageError(
                f"sums of {self.axis.name!r}",
                f"a value has at most {most:,} steps, so that sums are exact",
                "Give the axis a wider step",
            )
        rows_alone = self.onto is None and self.segments is None
        if (self.of_person is None and not rows_alone) or (
            self.of_person == "sum" and self.onto is None
        ):
            raise UsageError(
                f"sums of {self.axis.name!r}",
                "sums of persons need a lattice of their own, and rows have that of their axis",
                "Give onto with of_person",
            )

    @property
    def most(self) -> int:
        """The largest number that is added."""
        return self.axis.size - 1 if self.onto is None else self.onto.most

    def numbers_of_persons(self, sums: Array, rows: Array) -> Array:
        """What persons add: int64 ndarray of shape (persons,).

        Parameters
        ----------
        sums : int64 ndarray of shape (persons,)
            What the numbers of each person's rows add up to.
        rows : int64 ndarray of shape (persons,)
            How many rows each person has, at least 1.
        """
        assert self.of_person is not None
        lattice = self.onto or PersonLattice(0, 1, 0, 1, self.axis.size - 1)
        return lattice.located(self.of_person, sums, rows)

    @property
    def n_columns(self) -> int:
        """How many columns of ``Cube.sums`` it fills."""
        return 2 if self.squares else 1


class Needs(msgspec.Struct, frozen=True):
    """What is to be counted before a question can be answered, from public things only.

    Attributes
    ----------
    lattice : Lattice
        The cells in which is counted.
    numbers : int
        How many numbers the answer may hold at most; with keys, how many for each key that is
        shown. It is checked before the charge, so that what was paid for can be stored.
    sums : tuple of Summed
        What is added up in each cell beside the counts.
    counted : Counted
        * "rows": the count of a cell is a number of rows.
        * "persons": the count of a cell is the number of persons with a row there.
        * "rows of each person": the lattice has one axis, which is no column of the table. The
          count of a cell is the number of persons whose number of rows lies in it.
        * "cells of each person": the same of the number of ``cells`` in which a person has rows.
        * "norm of each person": of the L2 norm of a person's counts in ``cells``, rounded up.
        * "largest cell of each person": of a person's rows in the one of ``cells`` that has most.
    cells : Lattice or None
        The cells that limits by cell, or the last three kinds of numbers, are about. None: those of
        ``lattice``.
    norm : StackedNorm or None
        What bounds a person's rows in place of the limits by cell of the unit: the norm of the
        counts that the person adds to several tables, of which those cells are the finest.

    >>> from sfumato.extending import GridAxis, Lattice, Needs
    >>> lattice = Lattice((GridAxis("age", 0, 100, cells=4),))
    >>> Needs(lattice, numbers=4).counted
    'rows'
    """

    lattice: Lattice
    numbers: int
    sums: tuple[Summed, ...] = ()
    counted: Counted = "rows"
    cells: Lattice | None = None
    norm: StackedNorm | None = None

    def __post_init__(self) -> None:
        read: dict[str, str] = {}
        for axis in self.columns:
            if read.setdefault(axis.name, axis.column_name) != axis.column_name:
                # One row would then have two values of one axis, and no bound on what it adds.
                raise InternalError("Axes of one name are read from different columns.")
        if any((summed.of_person is None) == (self.counted == "persons") for summed in self.sums):
            raise UsageError(
                f"adding values up where {self.counted} are counted",
                "rows add their own values, and persons one value of their rows",
                "Give of_person where persons are counted, and only there",
            )
        if self.of_each_person:
            self._require_number_of_each_person()

    def _require_number_of_each_person(self) -> None:
        tells_number = len(self.lattice.axes) == 1 and self.lattice.axes[0].has_edges
        if not tells_number or self.sums:
            raise UsageError(
                "counting persons by a number that each of them has",
                "it takes one axis of such numbers, and adds nothing up",
                "Give a lattice of one axis with edges",
            )
        if self.counted != "rows of each person" and self.cells is None:
            raise UsageError(
                f"counting the {self.counted}",
                "it does not say which cells these are",
                "Give their lattice as cells=",
            )

    @property
    def of_each_person(self) -> bool:
        """Whether persons are counted by a number that each of them has."""
        return self.counted.endswith("of each person")

    @property
    def row_lattice(self) -> Lattice:
        """The cells in which a person is counted: the lattice without segments of numbers."""
        if self.counted != "persons":
            return self.lattice
        segments = [summed.segments for summed in self.sums]
        return Lattice(tuple(axis for axis in self.lattice.axes if axis not in segments))

    @property
    def columns(self) -> tuple[LatticeAxis, ...]:
        """The axes that are columns of the table, each once."""
        axes: tuple[LatticeAxis, ...] = ()
        if not self.of_each_person:
            axes = (*self.row_lattice.axes, *(summed.axis for summed in self.sums))
        if self.cells is not None:
            axes = (*axes, *self.cells.axes)
        return tuple(dict.fromkeys(axes))

    @property
    def n_sums(self) -> int:
        """How many columns ``Cube.sums`` has."""
        return sum(summed.n_columns for summed in self.sums)

    def holds_on_other_lattices(self, unit: Unit) -> bool:
        """Whether counts of the same rows on another lattice follow, or may be made later.

        They may where nothing but a number of rows bounds a person. A limit by cell, and the limit
        on the cells in which a person is counted, hold on one lattice alone. Rows that lack a value
        to be added up are dropped, so sums are about rows of their own.
        """
        return self.counted == "rows" and not self.sums and not unit.by_cell


class Counts(Protocol):
    """The counted data, as a question that is being answered may see them.

    Every call counts exactly the same rows of the same persons, so that the contribution bound
    holds over all of them together. A ``Cube`` is the simplest implementation: it serves every
    lattice that its own refines.

    >>> import numpy as np
    >>> from sfumato.extending import Counts, Cube, GridAxis, Lattice
    >>> lattice = Lattice((GridAxis("age", 0, 100, cells=4),))
    >>> counts: Counts = Cube(lattice, np.array([1, 2, 0, 1]))
    >>> counts.on(Lattice((GridAxis("age", 0, 100, cells=2),))).counts.tolist()
    [3, 1]
    """

    @property
    def lattice(self) -> Lattice:
        """The lattice that the question named."""

    @property
    def domain(self) -> Domain | None:
        """The public axes of the table; None where they are not known, as of a bare ``Cube``."""

    def serves(self, lattice: Lattice) -> bool:
        """Whether the rows can be counted on another lattice; decided by public things only."""

    def on(self, lattice: Lattice) -> Cube:
        """Count the same rows on a lattice.

        Raises
        ------
        InternalError
            If it is a lattice that these counts do not serve.
        """


class ShownKeys(NamedTuple):
    """The keys that a selection shows.

    Attributes
    ----------
    lattice : Lattice
        That of the counts, with the keys that are shown as labels, sorted.
    values : int64 ndarray of shape (keys shown,)
        The noisy number of rows of each of them.
    cells : Cube or None
        The true counts, and sums, of the cells of these keys. None: keys are the only axis, and
        their true counts never left the engine.
    """

    lattice: Lattice
    values: Array
    cells: Cube | None


@runtime_checkable
class SelectsKeys(Protocol):
    """What counts can do beside ``Counts`` where an engine selects keys by itself."""

    def select(self, rule: KeyRule, /) -> ShownKeys:
        """Select the keys of the lattice that the question named.

        The engine applies the rule: keys that are not shown do not leave it.
        """


@runtime_checkable
class WithinNorm(Protocol):
    """What counts can say beside ``Counts``: which norm of several tables bounds each person."""

    @property
    def norm(self) -> StackedNorm | None:
        """The norm that the need named; None if it named none."""


# --- an axis for values that are added up ---------------------------------------------------------


class NearestAxis(
    GridAxis, frozen=True, tag="nearest", omit_defaults=True, forbid_unknown_fields=True
):
    """Equally spaced points from one bound to the other, both included; ``cells`` of them.

    A value belongs to the nearest point, so the first and the last cell are half as wide as the
    others.

    >>> import numpy as np
    >>> NearestAxis("x", 0, 3, 4).locate(np.array([-1, 0.4, 0.6, 1.5, 9])).tolist()
    [0, 0, 1, 2, 3]
    """

    def edges(self) -> Array:
        """The middles between points, and the two bounds: float64 ndarray of shape (cells + 1,)."""
        points = self.points(range(self.cells))
        middles = points[:-1] + (points[1:] - points[:-1]) / 2
        return np.concatenate([points[:1], middles, points[-1:]])

    def points(self, index: Sequence[int] | Array) -> Array:
        """Where the points lie: float64 ndarray like ``index``; the two ends are exact."""
        index = np.asarray(index)
        last = max(self.cells - 1, 1)
        at = self.lower + index * (self.upper - self.lower) / last
        return np.asarray(np.where(index == last, self.upper, at))

    def locate(self, values: Array) -> Array:
        """Send float64 values to the nearest points, int64; NaN is dropped, or is ``missing``.

        floor((x - lower) * (cells - 1) / (upper - lower) + 1/2), clamped, in IEEE doubles without
        fused multiply-add. Each operation is monotone, so the cells are in the order of the values.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.multiply(values - self.lower if self.lower else values, self.cells - 1)
            if self.upper - self.lower != 1:
                scaled /= self.upper - self.lower
            scaled += 0.5
            np.clip(scaled, 0, self.cells - 1, out=scaled)  # truncation is floor from here on
            points = scaled.astype(np.int64)
        # The largest is NaN if any of them is.
        if scaled.size and np.isnan(scaled.max()):
            missing = DROPPED
            if self.missing is not None:
                missing = int(self.locate(np.array([float(self.missing)]))[0])
            points[np.isnan(values)] = missing
        return points
