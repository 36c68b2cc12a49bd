"""The answer: values on public lattice points, in order, and how far their ranks may be off."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato.domain import GridAxis, LabelAxis, Lattice
from sfumato.errors import UsageError
from sfumato.exact import Exactly, decimal
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.thresholds import KeyLaw
from sfumato.privacy import belief
from sfumato.privacy.measures import CentralMeasure
from sfumato.quantiles.methods import Way
from sfumato.quantiles.question import Quantiles
from sfumato.quantiles.reach import half_width, typical
from sfumato.release import Preview, Release, edge_array, error_probability

if TYPE_CHECKING:
    import pyarrow as pa


class QuantilesPreview(Preview, frozen=True):
    """What quantiles would cost, and how far their ranks may be from those asked for. Touches no data, spends nothing.

    Attributes
    ----------
    ways : tuple of Way
        How each axis is answered.
    labels : int
        How often, for ``by``; else 1.
    """

    law: Law | KeyLaw | None = None  # type: ignore[assignment]
    rows: int | None = None
    notes: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    labels: int = 1

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Rows by which a rank may be off, of the axis where that is most; ``simultaneous``: all of them hold together."""
        alpha = error_probability(confidence)
        return max(half_width(way, alpha, len(self.ways) * self.labels if simultaneous else 0) for way in self.ways)

    def __str__(self) -> str:
        typically = max(typical(way, 0.05) for way in self.ways)
        lines = [f"{self.question} at {self.cost}, for {self.unit}:"]
        lines.append(f"  chooses {self.cells:,} lattice points by {', '.join(self.notes)}")
        lines.append(f"  each has its rank within {self.accuracy():,} rows of the one asked for with 95 % confidence, whatever the data")
        lines.append(f"  and typically within {typically:,.0f}, where values lie evenly; a tied value has all ranks of its rows")
        if self.cells and self.cells > 1:
            lines.append(f"  all of them at once are within {self.accuracy(simultaneous=True):,} rows")
        if self.rows:
            share = self.accuracy() * self.labels / self.rows
            lines.append(f"  of {self.rows:,} rows{', evenly divided,' if self.labels > 1 else ''} that is {share:.2%}")
        return "\n".join([*lines, f"  {belief.sentence(self.cost, self.unit)}"])


class QuantilesRelease(Release, frozen=True, kw_only=True, eq=False, tag="quantiles-release", dict=True, forbid_unknown_fields=True):
    """Values on public lattice points that have about the asked shares of rows below them.

    Attributes
    ----------
    question : Quantiles
    lattice : Lattice
        On which the rows were counted.
    edges : int64 ndarray of shape (labels * axes * quantiles,)
        The chosen lattice points; quantiles run fastest, labels slowest.
    """

    question: Quantiles
    lattice: Lattice
    edges: np.ndarray

    def __post_init__(self) -> None:
        sizes = np.array([axis.size for axis in self.axes])
        if len(self.edges) != self.labels_number * len(sizes) * len(self.question.at):
            raise UsageError("quantiles", "their number is not what the question asks for", "Load a file that release.save wrote")
        edges = self._table
        if (edges < 0).any() or (edges > sizes[None, :, None]).any() or (np.diff(edges, axis=2) < 0).any():
            raise UsageError("quantiles", "they are not lattice points in order", "Load a file that release.save wrote")

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes whose quantiles these are."""
        return cast("tuple[GridAxis, ...]", self.lattice.axes[1:] if self.question.by else self.lattice.axes)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels of ``by``; () without."""
        first = self.lattice.axes[0]
        return first.labels if self.question.by and isinstance(first, LabelAxis) else ()

    @property
    def labels_number(self) -> int:
        """How often the quantiles are answered: for each label, or once."""
        return len(self.labels) if self.question.by else 1

    @property
    def _table(self) -> np.ndarray:
        return self.edges.reshape(self.labels_number, len(self.axes), len(self.question.at))

    @cached_property
    def table(self) -> np.ndarray:
        """The values: float64 ndarray of shape (labels or 1, axes, quantiles). Dates count days, times microseconds, since 1970."""
        columns = [axis.points(self._table[:, i].reshape(-1)) for i, axis in enumerate(self.axes)]
        return np.stack([column.reshape(self.labels_number, -1) for column in columns], axis=1)

    @property
    def values(self) -> np.ndarray:
        """The values: float64 ndarray of shape ([labels,] [axes,] quantiles); one axis, and no ``by``, have no dimension."""
        return self._shaped(self.table)

    def _shaped(self, table: np.ndarray) -> np.ndarray:
        shape = [n for n, kept in zip(table.shape, (self.question.by is not None, len(self.axes) > 1, True), strict=True) if kept]
        return table.reshape(shape)

    @property
    def at(self) -> tuple[Any, ...]:
        """The quantiles asked for, as exact fractions."""
        return tuple(self.question.at)

    @property
    def title(self) -> str:
        return self.question.title

    @property
    def noun(self) -> str:
        """What the accuracy is of."""
        return "rank"

    @property
    def ways(self) -> dict[str, Way]:
        """How each axis was answered."""
        measure = cast(CentralMeasure, self.guarantee.measure)
        return self.question.ways(self.lattice, self.guarantee.unit, measure)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> np.ndarray:
        """By how many rows the ranks may be off, whatever the data are: int64 ndarray like ``values``.

        A value stands for its cell: on an axis with a step its lower edge, else its nearer end. With a rows below that cell and b in
        or below it, at * (all rows) is within so many rows of the interval [a, b]; where a cell holds w rows, w / (2 * sub-cells) more.
        The sub-cells of a cell are ``ways[axis].parts``. See ``quantiles/reach.py`` for why.

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

    def interval(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest offset of each rank, in rows: (-accuracy, accuracy). The values themselves have no interval."""
        half = self.accuracy(confidence, simultaneous)
        return -half, half

    def to_frame(self) -> pa.Table:
        """One row per value: the label where ``by`` is given, axis where there are several, quantile, value, rank_error (95 %, in rows)."""
        import pyarrow as pa

        shape = self.table.shape
        label, axis, quantile = (index.reshape(-1) for index in np.indices(shape))
        columns: dict[str, Any] = {}
        if self.question.by:
            columns[self.question.by] = (
                pa.array(self.labels).take(pa.array(label)) if self._one_type else [str(self.labels[i]) for i in label]
            )
        if len(self.axes) > 1:
            columns["axis"] = [self.axes[i].name for i in axis]
        columns["quantile"] = np.array([float(q) for q in self.at])[quantile]
        times = {one.time for one in self.axes}
        columns["value"] = edge_array(self.table.reshape(-1), times.pop() if len(times) == 1 else None)
        return pa.table(columns | {"rank_error": self.accuracy().reshape(-1)})

    @property
    def _one_type(self) -> bool:
        return len({type(label) for label in self.labels}) == 1

    def plot(self, ax: Any = None, rows: int | None = None) -> Any:
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
