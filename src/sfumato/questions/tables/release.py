"""The answer to a family of tables: what was published of them, and every table that follows.

At the end its tables are laid out across their axes, with the sums that they share on the edges.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import msgspec
import numpy as np

from sfumato.answers import (
    ALL,
    AnyQuestion,
    Captions,
    CrossTable,
    Receipt,
    Release,
    drawn,
    error_probability,
    frames,
)
from sfumato.basics import (
    Array,
    Exactly,
    column_of,
    file_name,
    is_folder,
    made_folder,
    table_of,
    write_bytes,
)
from sfumato.domain import Lattice, named_axes
from sfumato.errors import Infeasible, UsageError, nearest, not_saved
from sfumato.questions.tables.asked import TABLE, named
from sfumato.questions.tables.cells import CellErrors
from sfumato.questions.tables.design import Measurement, estimated, published_numbers
from sfumato.questions.tables.levels import Chains, Margin, TreeLevels, is_margin
from sfumato.questions.tables.rounding import rounded
from sfumato.questions.tables.totals import KnownTable

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

# The columns of ``to_frame`` that are no labels.
NUMBERS = ("published", "count", "low", "high")


class TablesRelease(
    Release,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="tables-release",
    forbid_unknown_fields=True,
):
    """Tables that add up, with intervals.

    ``release["carrier", "hour"]`` is the release of one table: an array with one dimension for each
    axis, its intervals, its frame and its picture. Every margin of a table that was asked for is
    there, too, and ``release[()]`` is the total. Common margins of any two tables agree, up to
    rounding of the last digits.

    Counts are estimates: they are no whole numbers, and may be negative. Clipping them would bias
    them, and tables would no longer add up. ``published`` gives non-negative whole numbers that do.

    Attributes
    ----------
    question : Tables
    tables : tuple of tuple of str
        The axes of the tables that were asked for.
    lattice : Lattice
        All axes of the family.
    measured : tuple of Measurement
        What was measured, with the law of its noise.
    noisy : int64 ndarray of shape (numbers,)
        The noisy integers that were paid for, of each measurement in turn.
    shown : tuple of str, or unset
        The axes of the one table that this is the release of; unset for the whole family.
    totals : tuple of KnownTable, or unset
        Public totals, which the tables have exactly.
    paid_by : tuple of Receipt, or unset
        The receipts of the releases from which ``sf.reconcile`` made it.
    trees : tuple of TreeLevels, or unset
        The axes that are levels of one tree; unset where there are none.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 90), stay=sf.Interval(0, 30))
    >>> src = sf.source(np.array([[31.0, 2], [64.0, 9]]), domain, name="stays")
    >>> question = sf.Tables([["age", "stay"], "age"], bins=3)
    >>> release = sf.Publisher(src, budget=sf.ZCDP("1")).release(question, rho="0.5")
    >>> release["age"].values.shape, release[()].values.shape, release.values.shape
    ((3,), (), (12,))
    >>> low, high = release["stay", "age"].interval(confidence="0.95", simultaneous=True)
    >>> release["age"].to_frame().column_names
    ['age', 'age_lower', 'age_upper', 'count', 'low', 'high']
    """

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {
            *("cells", "chains", "lattice", "measured", "noisy", "paid_by", "public_totals"),
            *("shown", "trees", "variances"),
        }
    )

    question: AnyQuestion
    tables: tuple[tuple[str, ...], ...]
    lattice: Lattice
    measured: tuple[Measurement, ...]
    noisy: Array
    shown: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    totals: tuple[KnownTable, ...] | msgspec.UnsetType = msgspec.UNSET
    paid_by: tuple[Receipt, ...] | msgspec.UnsetType = msgspec.UNSET
    trees: tuple[TreeLevels, ...] | msgspec.UnsetType = msgspec.UNSET

    noun: ClassVar[str] = "count"
    # Whoever adds up printed counts of many cells finds the printed totals again, within a unit.
    spare_digits: ClassVar[int] = 2
    amounts: ClassVar[frozenset[str]] = Release.amounts | {"published"}

    def __post_init__(self) -> None:
        if not (self._names_fit() and self._numbers_fit()):
            raise not_saved("a family of tables", "its numbers do not fit its tables")

    def _names_fit(self) -> bool:
        """Whether the tables and trees name axes that there are. A file may hold anything."""
        names = {name for table in self.tables for name in table}
        if not self.tables or not names <= set(self.lattice.names):
            return False
        if any(len(set(table)) < len(table) for table in self.tables):
            return False
        return all(tree.fits(self.lattice) for tree in self.trees or ())

    def _numbers_fit(self) -> bool:
        """Whether there is a number for each cell that was measured, and for each that is known."""
        margins = [measurement.margin for measurement in self.measured]
        margins += [table.margin for table in self.public_totals]
        # Nothing can be counted along levels that an axis does not have.
        if not self.measured or not all(map(self._has_levels, margins)):
            return False
        if self.noisy.shape != (published_numbers(self.chains.levels, self.measured),):
            return False
        return all(
            table.counts.shape == (self.chains.nesting.cells(table.margin),)
            and table.counts.min(initial=0) >= 0
            for table in self.public_totals
        )

    def _has_levels(self, margin: Margin) -> bool:
        depths = tuple(axis.depth for axis in self.chains.levels)
        is_long_enough = len(margin) == len(depths) and min(margin, default=0) >= 0
        return is_long_enough and is_margin(margin, depths)

    @cached_property
    def chains(self) -> Chains:
        """Its axes, and which of them are levels of one tree."""
        return Chains.stored(self.lattice, self.trees or ())

    @cached_property
    def _errors(self) -> CellErrors:
        return CellErrors(self.chains.levels, self.measured, tuple(self.known))

    @cached_property
    def _residuals(self) -> Mapping[Margin, Array]:
        return estimated(self.chains.levels, self.measured, self.noisy, self.known)

    @property
    def public_totals(self) -> tuple[KnownTable, ...]:
        """The tables that everybody knows."""
        return () if self.totals is msgspec.UNSET else self.totals

    @property
    def known(self) -> dict[Margin, Array]:
        """These tables by their levels, with a dimension for each axis of the family."""
        return {
            table.margin: table.counts.reshape(self.chains.nesting.shape(table.margin))
            for table in self.public_totals
        }

    @cached_property
    def _rounded(self) -> Mapping[Margin, Array]:
        """The tables that were asked for, in whole numbers that add up."""
        whole = self.__dict__.get("_family")
        if isinstance(whole, TablesRelease):
            return whole._rounded  # rounded once for all tables
        family = self._errors.family
        margins = map(self.chains.margin, self.tables)
        estimates = {margin: family.estimate(margin, self._residuals) for margin in margins}
        return rounded(estimates, self.chains.nesting, list(map(named, self.tables)), self.known)

    # --- its tables -------------------------------------------------------------------------------

    def __getitem__(self, axes: str | Sequence[str]) -> Self:
        """Return the release of one table, with the guarantee and the receipt of all.

        Parameters
        ----------
        axes : str or sequence of str
            In the order in which the table is to be laid out; none of them is the total.

        Raises
        ------
        UsageError
            If no table that was asked for has these axes.
        """
        names = named_axes(axes)
        for name in names:
            if name not in self.lattice.names:
                obstacle = f"no table has an axis of that name; {nearest(name, self.lattice.names)}"
                raise UsageError(f"the table {named(names)}", obstacle, "Name axes of its tables")
        if len(set(names)) < len(names):
            raise UsageError(
                f"the table {named(names)}", "it names an axis twice", "Name each axis once"
            )
        margin = self.chains.margin(names)
        if not any(is_margin(margin, self.chains.margin(table)) for table in self.tables):
            listed = ", ".join(map(named, self.tables))
            raise UsageError(
                f"the table {named(names)}",
                f"no table has all of these axes; there are {listed}",
                "Name axes of one of them, or ask for such a table",
            )
        release = msgspec.structs.replace(self, shown=names)
        # What was computed once serves all tables.
        for name in ("chains", "_errors", "_residuals"):
            if name in self.__dict__:
                release.__dict__[name] = self.__dict__[name]
        release.__dict__["_family"] = self.__dict__.get("_family", self)
        return release

    @property
    def _shown_tables(self) -> tuple[tuple[str, ...], ...]:
        return self.tables if self.shown is msgspec.UNSET else (self.shown,)

    def _together(self, numbers_of: Callable[[Margin], Array]) -> Array:
        """Return numbers of each table that is shown, laid out like ``values``."""
        tables = []
        for names in self._shown_tables:
            numbers = numbers_of(self.chains.margin(names))
            # One dimension for each axis of the table, in their order.
            places = self.chains.order(names)
            rest = [at for at in range(numbers.ndim) if at not in places]
            ordered = np.ascontiguousarray(numbers.transpose([*places, *rest]))
            tables.append(ordered.reshape([numbers.shape[at] for at in places]))
        if self.shown is not msgspec.UNSET:
            return tables[0]
        return np.concatenate([table.ravel() for table in tables])

    def _lattice_of(self, names: Sequence[str]) -> Lattice:
        axes = dict(zip(self.lattice.names, self.lattice.axes, strict=True))
        return Lattice(tuple(axes[name] for name in names))

    @property
    def cells(self) -> Lattice:
        """The cells of the one table that is shown; of the family, those of all axes together."""
        return self.lattice if self.shown is msgspec.UNSET else self._lattice_of(self.shown)

    # --- what it says of itself -------------------------------------------------------------------

    @property
    def title(self) -> str:
        if self.shown is msgspec.UNSET:
            return self.question.title
        return f"Table of {named(self.shown)}" if self.shown else "Number of rows"

    @property
    def facts(self) -> tuple[str, ...]:
        if len(self._shown_tables) < 2:
            return ()
        return ("Any two of these tables agree in all totals that they share.",)

    # --- numbers ----------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """The counts: float64 ndarray with one dimension for each axis of a table.

        Of the family: those of all tables that were asked for, one after another.
        """
        family = self._errors.family
        return self._together(lambda margin: family.estimate(margin, self._residuals))

    @property
    def variances(self) -> Array:
        """The variance of each count, which is the exact one of its noise: float64 ndarray like
        ``values``.

        Weigh the counts by it in what you compute of them. Errors of cells of one family depend on
        one another.
        """
        return self._together(self._errors.variances)

    def numbers(self) -> tuple[int, ...]:
        """The noisy integers that were published, in the order in which they were drawn."""
        return tuple(self.noisy.tolist())

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Half-widths of the intervals, like ``values``.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together, those
            of one table, or those of the whole family (Bonferroni).
        """
        alpha = error_probability(confidence)
        if simultaneous:
            # Errors within a family depend on one another: Sidak's correction does not apply.
            alpha /= sum(self._lattice_of(table).size for table in self._shown_tables)
        return self._together(lambda margin: self._errors.half_widths(margin, alpha))

    # --- numbers for printing ---------------------------------------------------------------------

    def published(self) -> Array:
        """Non-negative whole numbers that still add up exactly: int64 ndarray like ``values``.

        Print these where readers expect counts, and compute with ``values``. Each lies within 1 of
        the nearest table without negative counts that has the margins rounded before it. Nothing
        about it is random, and it costs nothing. Counts that are small come out too large on
        average, because what is below 0 becomes 0; ``published_accuracy`` says how far they are
        from the truth.

        Raises
        ------
        Infeasible
            If tables of three or more axes share so many margins that whole numbers need not exist.
            It depends on the axes of the tables alone.
        """
        nesting = self.chains.nesting

        def whole_numbers(margin: Margin) -> Array:
            table = next(table for table in self._rounded if is_margin(margin, table))
            return nesting.margin(self._rounded[table], table, margin)

        return self._together(whole_numbers)

    def published_accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Half-widths around the numbers of ``published``: float64 ndarray like them.

        The truth lies in the interval of its estimate, and is at least 0: a half-width reaches to
        the farther end. So it holds at least as often as it says. Where the whole interval lies
        below 0, it misses the truth; the half-width is then at least that of the estimate.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each holds with this confidence. True: all of them hold together, as of
            ``accuracy``.
        """
        # The truth is at least 0, so what lies below 0 of an interval is no distance from it.
        low, high = self.interval(confidence, simultaneous)
        printed = self.published()
        below = printed - np.maximum(low, 0)
        farther = np.maximum(below, np.maximum(high, 0) - printed)
        at_least = np.maximum(farther, (high - low) / 2)
        return np.asarray(np.where(high < 0, at_least, farther))

    # --- forms ------------------------------------------------------------------------------------

    @property
    def label_columns(self) -> tuple[str, ...]:
        return (TABLE, *self.lattice.names)

    def to_frame(self, *, published: bool = False) -> pa.Table:
        """One row for each cell: its axes, count, low, high (95%).

        Of the family: the tables one after another, with a first column ``table``; an axis that a
        table is summed over is null there.

        Parameters
        ----------
        published : bool
            Whether a column ``published`` before ``count`` has the whole numbers of ``published``.

        Raises
        ------
        Infeasible
            If whole numbers are asked for that need not exist.
        """
        import pyarrow as pa

        if self.shown is not msgspec.UNSET:
            low, high = self.interval()
            numbers = {"published": self.published()} if published else {}
            numbers |= {"count": self.values, "low": low, "high": high}
            flat = {name: column.ravel() for name, column in numbers.items()}
            return table_of(frames.cell_columns(self._lattice_of(self.shown)) | flat)
        parts = []
        for table in self.tables:
            frame = self[table].to_frame(published=published)
            names = column_of([named(table)] * frame.num_rows)
            parts.append(frame.add_column(0, TABLE, names))
        joined = pa.concat_tables(parts, promote_options="default")
        last = [name for name in joined.column_names if name not in NUMBERS]
        last += [name for name in NUMBERS if name in joined.column_names]
        return joined.select(last)

    @property
    def members(self) -> Mapping[str, Self]:
        """The release of each table that was asked for, by its name; none of a single table."""
        if self.shown is not msgspec.UNSET:
            return {}
        return {named(table): self[table] for table in self.tables}

    @property
    def cross_tables(self) -> Mapping[tuple[str, ...], tuple[CrossTable, ...]]:
        """Its tables across their axes, with their sums on the edges, by their axes.

        Empty for a table of more than three axes, which is too broad.
        """
        return {table: crossed(self, table) for table in self._shown_tables}

    def listed(self, axes: tuple[str, ...]) -> pa.Table:
        return self[axes].to_frame()

    def to_csv(self, path: str | os.PathLike[str], *, published: bool = False) -> Path:
        """Write the table as CSV in UTF-8, and return the path.

        Estimates are rounded far below their intervals, so sums may differ in the last digit:
        ``to_frame`` has all digits, and the numbers of ``published`` add up exactly.

        Parameters
        ----------
        path : path
            Of a family, a file holds all tables one after another, with a first column ``table``. A
            folder, or a name without an ending, gets a file for each table, such as
            ``01-carrier-x-hour.csv``.
        published : bool
            Whether a column ``published`` before ``count`` has the whole numbers of ``published``.

        Raises
        ------
        DataError
            If a file cannot be written, or the folder cannot be made.
        Infeasible
            If whole numbers are asked for that need not exist.
        """
        if not self.members or not is_folder(path):
            table = self.in_digits(self._named_table("to_csv()"))
            if published:
                whole = self.to_frame(published=True)["published"]
                table = table.add_column(table.column_names.index("count"), "published", whole)
            return write_bytes(path, frames.to_csv(table))
        folder = made_folder(path)
        for at, (name, part) in enumerate(self.members.items(), 1):
            part.to_csv(folder / f"{at:02d}-{file_name(name)}.csv", published=published)
        return folder

    def _named(self, captions: Captions) -> Self:
        lattice = captions.lattice(self.lattice)
        new = dict(zip(self.lattice.names, lattice.names, strict=True))
        tables = tuple(tuple(new[name] for name in table) for table in self.tables)
        shown = self.shown
        if shown is not msgspec.UNSET:
            shown = tuple(new[name] for name in shown)
        trees = self.trees
        if trees is not msgspec.UNSET:
            trees = tuple(
                TreeLevels(tuple(new[name] for name in tree.names), tree.fanouts) for tree in trees
            )
        return msgspec.structs.replace(
            self, lattice=lattice, tables=tables, shown=shown, trees=trees
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a table: bars with error bars for one axis, a heat map for two.

        Further axes are summed over. Of the family, each table has a panel of its own on a new
        figure; the Axes of the first are returned, and ``ax.figure.axes`` has all. On Axes that are
        given, the first table is drawn.
        """
        return drawn("histograms.draw_family", self, ax)


# --- across the axes ------------------------------------------------------------------------------

# A table of more axes is listed, one row for each cell.
MOST_AXES = 3

# How many tables of two axes stand for one of three.
MOST_SLICES = 64

# How many cells a family has at most of which whole numbers are shown beside the estimates.
MOST_ROUNDED = 2**20

COUNT = "count"


def crossed(family: TablesRelease, axes: tuple[str, ...]) -> tuple[CrossTable, ...]:
    """Return a table of a family across its axes; of three axes, one for each cell of the shortest.

    Parameters
    ----------
    family : TablesRelease
    axes : tuple of str
        Those of the table.

    Returns
    -------
    tuple of CrossTable
        Of three axes, the first is that of all cells of the shortest. Empty if it has more axes, or
        the shortest has more than ``MOST_SLICES`` cells.
    """
    if len(axes) > MOST_AXES:
        return ()
    layout = _Layout(family, axes, is_rounded=has_whole_numbers(family))
    # The longest axis goes down, where there is most room.
    longest = sorted(axes, key=lambda name: -layout.size(name))
    if len(axes) < MOST_AXES:
        return (layout.table(longest),)
    *two, split = longest
    if layout.size(split) > MOST_SLICES:
        return ()
    slices = [layout.table(two, split, at) for at in range(layout.size(split))]
    return (layout.table(two, split), *slices)


def has_whole_numbers(family: TablesRelease) -> bool:
    """Whether whole numbers that add up are shown beside the estimates of a family.

    It depends on the axes and sizes of the tables alone.
    """
    sizes = {axis.name: axis.size for axis in family.lattice.axes}
    if sum(math.prod(sizes[name] for name in table) for table in family.tables) > MOST_ROUNDED:
        return False
    try:
        family.published()
    except Infeasible:
        return False
    return True


@dataclass(frozen=True)
class _Layout:
    """How the numbers of one table are laid out.

    Attributes
    ----------
    family : Family
    axes : tuple of str
        Of the table, with that of which cells are taken.
    is_rounded : bool
    """

    family: TablesRelease
    axes: tuple[str, ...]
    is_rounded: bool

    def size(self, name: str) -> int:
        """Return how many cells an axis has."""
        return len(self._names(name))

    def _names(self, name: str) -> list[str]:
        lattice = self.family.lattice
        return lattice.axes[lattice.names.index(name)].cell_names()

    def table(self, two: Sequence[str], split: str = "", at: int | None = None) -> CrossTable:
        """Lay out at most two axes, in all cells of another or in one of them."""
        down, across = [*two, "", ""][:2]
        within = f"every {split}" if split else ""
        further: list[str] = []
        if at is not None:
            within = f"{split} {self._names(split)[at]}"
            further = [split]
        # The table of all cells, and its sums over either axis and both.
        sums = [two[:1], two[1:], []] if len(two) == 2 else [[]] * len(two)
        tables = [self.family[(*names, *further)] for names in (two, *sums)]

        def laid_out(numbers_of: Callable[[TablesRelease], Array]) -> Array:
            blocks = [numbers_of(table) for table in tables]
            return _joined(blocks if at is None else [block[..., at] for block in blocks])

        return CrossTable(
            axes=self.axes,
            within=within,
            down=down,
            across=across,
            rows=(*self._names(down), ALL) if down else (ALL,),
            columns=(*self._names(across), ALL) if across else (COUNT,),
            estimates=laid_out(lambda table: table.values),
            half_widths=laid_out(lambda table: table.accuracy()),
            rounded=laid_out(lambda table: table.published()) if self.is_rounded else None,
        )


def _joined(blocks: Sequence[Array]) -> Array:
    """Lay counts beside their sums: ndarray of shape (rows, columns)."""
    match blocks:
        case [counts, row_sums, column_sums, total]:
            upper = np.column_stack([counts, row_sums])
            return np.vstack([upper, np.append(column_sums, total)])
        case _:
            # Of one axis there is the total below its counts; of none the total alone.
            return np.concatenate([np.reshape(block, (-1, 1)) for block in blocks])
