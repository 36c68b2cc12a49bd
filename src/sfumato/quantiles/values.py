"""Values on public lattice points, in order, and how far their ranks may be off. They know no question."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import msgspec
import numpy as np

from sfumato.answers.edges import edge_array
from sfumato.answers.estimate import error_probability
from sfumato.answers.question import AnyQuestion
from sfumato.answers.release import Release
from sfumato.arrays import Array
from sfumato.domain import GridAxis, Label, LabelAxis, Lattice
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly, decimal
from sfumato.quantiles.methods import Way
from sfumato.quantiles.preview import ALPHA, rows_needed
from sfumato.quantiles.rank_error import half_width

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes


class QuantileValues(Release, frozen=True, kw_only=True, eq=False, dict=True):
    """Values on public lattice points that have about the asked shares of rows below them.

    A subclass says by its own ``question`` what was asked: ``at``, ``by``, and the ``ways`` in
    which it was answered.

    Attributes
    ----------
    question : Question
    lattice : Lattice
        On which the rows were counted.
    edges : int64 ndarray of shape (labels * axes * quantiles,)
        The chosen lattice points; quantiles run fastest, labels slowest.
    rows : int64 ndarray of shape (labels,), or None
        The noisy number of rows of each label; None without ``by``, and in releases of version 0.1.
    rows_law : DiscreteLaplace, DiscreteGaussian or None
        Of the noise on them.
    flags : tuple of bool, "known" in files
        Whether each value is known, in the order of ``edges``; empty where no number of rows was
        paid for.
    """

    noun: ClassVar[str] = "rank"
    measured_against: ClassVar[str] = "rows of the one asked for"

    question: AnyQuestion
    lattice: Lattice
    edges: Array
    rows: Array | None = None
    rows_law: Law | None = None
    flags: tuple[bool, ...] = msgspec.field(default=(), name="known")

    def __post_init__(self) -> None:
        sizes = np.array([axis.size for axis in self.axes])
        if not len(sizes) or len(self.edges) != self.labels_number * len(sizes) * len(self.at):
            raise UsageError(
                "quantiles",
                "their number is not what the question asks for",
                "Load a file that release.save wrote",
            )
        edges = self._table
        if (
            (edges < 0).any()
            or (edges > sizes[None, :, None]).any()
            or (np.diff(edges, axis=2) < 0).any()
        ):
            raise UsageError(
                "quantiles",
                "they are not lattice points in order",
                "Load a file that release.save wrote",
            )
        if self.rows is not None and (
            self.rows_law is None or self.rows.shape != (self.labels_number,)
        ):
            raise UsageError(
                "quantiles",
                "a number of rows belongs to each label",
                "Load a file that release.save wrote",
            )
        # Always found anew: a file tells it to its readers, and is not believed.
        msgspec.structs.force_setattr(self, "flags", tuple(self._flags().reshape(-1).tolist()))

    @property
    def at(self) -> tuple[Fraction, ...]:
        """The quantiles asked for."""
        raise NotImplementedError

    @property
    def by(self) -> str | None:
        """The axis whose labels divide the rows; None: all rows together."""
        raise NotImplementedError

    @property
    def ways(self) -> Mapping[str, Way]:
        """How each axis was answered."""
        raise NotImplementedError

    def numbers(self) -> tuple[int, ...]:
        """The chosen lattice points, then the numbers of rows of the labels."""
        return (*self.edges.tolist(), *(() if self.rows is None else self.rows.tolist()))

    def _flags(self) -> Array:
        """Whether each value is known: bool ndarray like ``table``; empty where that cannot be said.

        A value is known if the rank that was asked for and the one it has are both surely inside
        the group: if the rank error is below q n and below (1 - q) n. Else the value may lie
        anywhere on one side, or on both. The rank error and n, from below, hold together with 95%
        confidence.
        """
        if self.rows is None or self.rows_law is None:
            return np.zeros(0, bool)
        least = self.rows - self.rows_law.half_width(ALPHA)  # of either side: half of ALPHA
        reach = np.array([half_width(way, ALPHA / 2) for way in self.ways.values()])
        nearest_end = np.array([float(min(q, 1 - q)) for q in self.at])
        return np.asarray(reach[None, :, None] < nearest_end[None, None, :] * least[:, None, None])

    @property
    def known(self) -> Array | None:
        """Whether each value is known at all: bool ndarray like ``values``; None where no number of rows was paid for.

        A label with fewer rows than the rank error gets values that say nothing. They stand in
        ``values``, and are marked here.
        """
        return self._shaped(np.array(self.flags).reshape(self.table.shape)) if self.flags else None

    @property
    def unknowns(self) -> str:
        """What is not known, in a sentence."""
        if not self.flags:
            where = "With" if self.by is None else "In a label with"
            return f"{where} fewer than {rows_needed(list(self.ways.values()), None):,} rows counted, some of the values say nothing."
        unknown = len(self.flags) - sum(self.flags)
        verb = "is" if unknown == 1 else "are"
        return (
            f"{unknown:,} of {len(self.flags):,} values {verb} not known: their labels have too few rows."
            if unknown
            else ""
        )

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes whose quantiles these are."""
        return tuple(axis for axis in self.lattice.axes if isinstance(axis, GridAxis))

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of ``by``; () without."""
        first = self.lattice.axes[0]
        return first.labels if self.by and isinstance(first, LabelAxis) else ()

    @property
    def labels_number(self) -> int:
        """How often the quantiles are answered: for each label, or once."""
        return len(self.labels) if self.by else 1

    @property
    def _table(self) -> Array:
        return self.edges.reshape(self.labels_number, len(self.axes), len(self.at))

    @cached_property
    def table(self) -> Array:
        """The values: float64 ndarray of shape (labels or 1, axes, quantiles). Dates count days, times microseconds, since 1970."""
        columns = [axis.points(self._table[:, i].reshape(-1)) for i, axis in enumerate(self.axes)]
        return np.stack([column.reshape(self.labels_number, -1) for column in columns], axis=1)

    @property
    def values(self) -> Array:
        """The values: float64 ndarray of shape ([labels,] [axes,] quantiles); one axis, and no ``by``, have no dimension."""
        return self._shaped(self.table)

    def _shaped(self, table: Array) -> Array:
        shape = [
            n
            for n, kept in zip(
                table.shape, (self.by is not None, len(self.axes) > 1, True), strict=True
            )
            if kept
        ]
        return table.reshape(shape)

    @property
    def title(self) -> str:
        return self.question.title

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """By how many rows the ranks may be off, whatever the data are: int64 ndarray like ``values``.

        A value stands for its cell: on an axis with a step it is the one value of the cell, else
        the end of it that is nearer. With a rows below that cell and b in or below it, at * (all
        rows) is within so many rows of the interval [a, b]; where a cell holds w rows, w / (2 *
        sub-cells) more. The sub-cells of a cell are ``ways[axis].parts``. ``quantiles/reach.py``
        says why.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: all values together.
        """
        alpha = error_probability(confidence)
        together = self.labels_number * len(self.axes) if simultaneous else 0
        half = [half_width(way, alpha, together) for way in self.ways.values()]
        table = np.broadcast_to(np.array(half, np.int64)[None, :, None], self.table.shape)
        return self._shaped(table.copy())

    def interval(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lowest and highest offset of each rank, in rows: (-accuracy, accuracy).

        The values themselves have no interval of a stated confidence; ``cells`` says between which
        numbers the rows lie that a value stands for.
        """
        half = self.accuracy(confidence, simultaneous)
        return -half, half

    def cells(self) -> tuple[Array, Array]:
        """Between which numbers the rows lie that a value stands for: lowest and highest, each like ``values``.

        On an axis with a step these are the steps of the value's cell: the value itself, where
        cells are steps. Without one a value is an end of the cell in which the chosen edge lies,
        the upper end of one cell or the lower end of the next: the two of them are given. So 500
        rows at 3 may have the median 3.0000019, and their 3 lies between these numbers.
        """
        low, high = np.empty(self.table.shape), np.empty(self.table.shape)
        for i, axis in enumerate(self.axes):
            chosen = self._table[:, i]
            if axis.snap:
                ends = axis.extremes()
                cell = np.minimum(chosen, axis.cells - 1)
                low[:, i], high[:, i] = ends[0][cell], ends[1][cell]
            else:
                low[:, i] = axis.points(np.maximum(chosen - 1, 0).reshape(-1)).reshape(chosen.shape)
                high[:, i] = axis.points(np.minimum(chosen + 1, axis.cells).reshape(-1)).reshape(
                    chosen.shape
                )
        return self._shaped(low), self._shaped(high)

    def to_frame(self) -> pa.Table:
        """One row per value.

        The label where ``by`` is given, axis where there are several, quantile, value, cell_low and
        cell_high (see ``cells``), and rank_error (95%, in rows). Where ``by`` is given also rows,
        the noisy number of the label's rows, and known: whether the value says anything.
        """
        import pyarrow as pa

        shape = self.table.shape
        label, axis, quantile = (index.reshape(-1) for index in np.indices(shape))
        columns: dict[str, pa.Array | Array | list[str]] = {}
        if self.by:
            columns[self.by] = (
                pa.array(self.labels).take(pa.array(label))
                if self._one_type
                else [str(self.labels[i]) for i in label]
            )
        if len(self.axes) > 1:
            columns["axis"] = [self.axes[i].name for i in axis]
        columns["quantile"] = np.array([float(q) for q in self.at])[quantile]
        times = {one.time for one in self.axes}
        time = times.pop() if len(times) == 1 else None
        columns["value"] = edge_array(self.table.reshape(-1), time)
        for name, ends in zip(("cell_low", "cell_high"), self.cells(), strict=True):
            columns[name] = edge_array(ends.reshape(-1), time)
        columns["rank_error"] = self.accuracy().reshape(-1)
        if self.rows is not None:
            columns |= {"rows": self.rows[label], "known": np.array(self.flags)}
        return pa.table(columns)

    @property
    def _one_type(self) -> bool:
        return len({type(label) for label in self.labels}) == 1

    def plot(self, ax: Axes | None = None, rows: int | None = None) -> Axes:
        """Draw a cumulative curve through the values; with ``by`` a box per label.

        Parameters
        ----------
        ax : matplotlib Axes or None
        rows : int or None
            Your own public number of rows: it turns rank errors into a band around the curve.
        """
        from sfumato.charts import quantiles

        return quantiles.draw(self, ax, rows)

    def words(self) -> list[str]:
        """The quantiles as text."""
        return [decimal(q, 4) for q in self.at]
