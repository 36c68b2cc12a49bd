"""The answer of every partitioner: public boxes with noisy counts, and what one can ask of them.

Before it stand boxes as GeoJSON, and the boxes of every size for a map (``Partition.regions``): the
cells of a tree, and the nodes above them.

After it stands the base of all partitioners (``OverAxes``): a question over Interval axes, and the
lattice on them.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import msgspec
import numpy as np

from sfumato.answers import (
    Captions,
    CountsRelease,
    Estimate,
    Needs,
    Question,
    drawn,
    error_probability,
)
from sfumato.basics import (
    MOST_PARTITION_CELLS,
    Array,
    Exactly,
    column_of,
    ndarray_of,
    sidak,
    table_of,
    write_bytes,
)
from sfumato.domain import Domain, GridAxis, Lattice, fine_lattice, named_axes
from sfumato.errors import UsageError, not_saved, printable
from sfumato.mechanisms import DiscreteLaplace, Law, exact_half_width
from sfumato.privacy import ZCDP
from sfumato.questions.partition.estimates import (
    Counted,
    Cover,
    Edges,
    GridEstimates,
    TreeEstimates,
    are_indices,
    scale_of,
    values_per_cell,
    widest_law,
)
from sfumato.questions.partition.geometry import (
    Grid,
    Range,
    Tree,
    read_cells,
    read_points,
    read_ranges,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes


# --- boxes as GeoJSON -----------------------------------------------------------------------------


def geojson(boxes: Partition, axes: Sequence[str] | None) -> dict[str, object]:
    """Return boxes of two axes as a GeoJSON FeatureCollection.

    Parameters
    ----------
    boxes : Partition
    axes : pair of names or None
        The axes of longitude and latitude.
    """
    names = boxes.axes
    longitude_first = names[::-1] if names[0].lower().startswith("lat") else names
    pair = longitude_first if axes is None else tuple(axes)
    if sorted(pair) != sorted(names) or len(pair) != 2:
        raise UsageError(
            "GeoJSON",
            f"this partition has the axes {', '.join(names)}",
            "Partition two axes, longitude and latitude",
        )
    x, y = (names.index(name) for name in pair)
    corners = [
        _in_digits(side[:, i], boxes.geometry.axes[i])
        for side in (boxes.lower, boxes.upper)
        for i in (x, y)
    ]
    columns = [column.tolist() for column in (*corners, boxes.counts, *boxes.interval())]
    features = [_feature(*row) for row in zip(*columns, strict=True)]
    return {"type": "FeatureCollection", "counted": boxes.guarantee.counted, "features": features}


def _in_digits(ends: Array, axis: GridAxis) -> Array:
    return np.round(ends, axis.decimals) if axis.kind == "number" else ends


def _feature(
    west: float,
    south: float,
    east: float,
    north: float,
    count: float,
    low: float,
    high: float,
) -> dict[str, object]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {"count": count, "low": low, "high": high},
    }


# --- boxes of every size --------------------------------------------------------------------------

# The share of the error probability that goes to the cells; the nodes above them get the rest.
OF_CELLS = 0.6


@dataclass(frozen=True)
class Regions:
    """The nodes of a tree, each level after the one above it, with counts.

    Attributes
    ----------
    lower, upper : float64 ndarrays of shape (nodes, d)
        Ends of the boxes, in the axes' own units.
    counts, half : float64 ndarrays of shape (nodes,)
        Estimates, and the half-widths of their intervals.
    parent : int64 ndarray of shape (nodes,)
        The parent of each node; the root's is 0.
    levels : tuple of (first, beyond)
        The nodes of each level, from the root's on.
    """

    lower: Array
    upper: Array
    counts: Array
    half: Array
    parent: Array
    levels: tuple[tuple[int, int], ...]


# --- the answer -----------------------------------------------------------------------------------

MOST_POINTS = 10**8


class Partition(
    CountsRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="partition",
    dict=True,
    forbid_unknown_fields=True,
):
    """Disjoint public boxes that cover the domain exactly, each with a noisy count.

    Boxes are half-open, ``[a, b)``; the last one along each axis is closed. Counts may be negative.

    Attributes
    ----------
    made_by : str
        The name of the partitioner.
    lattice : Lattice
        The lattice on which the rows were counted.
    cover : Edges or Splits
        Where the boxes lie: a product grid, or a tree of splits.
    noisy : int64 ndarray of shape (cells,)
        Noisy counts as they were drawn, "counts" in files. On a grid the last axis runs fastest.
    laws : tuple of DiscreteLaplace or DiscreteGaussian
        The laws of the noise. All noise is independent.
    which : int64 ndarray of shape (cells,), or None
        The index of each cell's law among ``laws``; None: the first.
    depths : int64 ndarray of shape (cells,), or None
        Depth of each cell in the partitioner's own tree; None: 0.
    inner : Counted or None
        Noisy counts above the cells, which were paid for and serve inference.
    rows : int or None
        The noisy number of rows, where a grid has paid for it.
    shown : {"noisy", "consistent", "whole"}
        What ``counts`` are: see ``consistent``.

    >>> import numpy as np, sfumato as sf
    >>> points = np.array([[0.2, 0.3], [0.2, 0.2], [0.8, 0.9]])
    >>> domain = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))
    >>> src = sf.source(points, domain, name="points")
    >>> p = sf.Publisher(src, budget="1").release(sf.BinaryPartitioner(depth=2), epsilon="1")
    >>> p.lower.shape, p.counts.shape, p.assign(points).shape
    ((4, 2), (4,), (3,))
    >>> p.lower.tolist()
    [[0.0, 0.0], [0.0, 0.5], [0.5, 0.0], [0.5, 0.5]]
    >>> p.count(x=(0, 0.5)).confidence
    0.95
    """

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {
            *("axes", "cover", "depths", "geometry", "half_width", "inner", "lattice", "laws"),
            *("made_by", "noisy", "regions", "shown", "which"),
        }
    )

    made_by: str
    lattice: Lattice
    cover: Cover
    noisy: Array = msgspec.field(name="counts")
    laws: tuple[Law, ...]
    which: Array | None = None
    depths: Array | None = None
    inner: Counted | None = None
    rows: int | None = None
    shown: Literal["noisy", "consistent", "whole"] = "noisy"

    def __post_init__(self) -> None:
        if not self._is_whole():
            raise not_saved(
                "a partition", "its boxes do not cover the domain once, with a count for each"
            )

    def _is_whole(self) -> bool:
        """Whether the parts fit together. A file may hold anything."""
        axes = self.lattice.axes
        if not axes or len(self.lattice.grids) < len(axes) or not self.laws:
            return False
        # The geometry raises by itself where the boxes do not cover the domain once.
        shape = (self.geometry.cells,)
        per_cell = [part for part in (self.noisy, self.which, self.depths) if part is not None]
        if any(part.shape != shape for part in per_cell):
            return False
        return are_indices(self.which, len(self.laws)) and self._inner_fits()

    def _inner_fits(self) -> bool:
        """Whether each further noisy count belongs to another node of a tree, and has a law."""
        if self.inner is None:
            return True
        tree = self.geometry
        inner = self.inner
        if not isinstance(tree, Tree):
            return False
        is_distinct = inner.node.shape == (len(np.unique(inner.node)),)
        return (
            is_distinct
            and inner.count.shape == inner.which.shape == inner.node.shape
            and are_indices(inner.node, len(tree.axis))
            and are_indices(inner.which, len(self.laws))
        )

    @cached_property
    def geometry(self) -> Grid | Tree:
        """Where the boxes lie."""
        cover = self.cover
        if isinstance(cover, Edges):
            return Grid(self.lattice, cover.edges)
        return Tree(self.lattice, cover.axis, cover.cut)

    @cached_property
    def _estimates(self) -> GridEstimates | TreeEstimates:
        geometry = self.geometry
        if isinstance(geometry, Grid):
            return GridEstimates(geometry, self.noisy, self.laws, self.which)
        return TreeEstimates(geometry, self.noisy, self.laws, self.which, self.inner)

    # --- cells ------------------------------------------------------------------------------------

    @property
    def counts(self) -> Array:
        """Counts of the boxes: int64 ndarray of shape (cells,), noisy as they were drawn.

        After ``consistent()`` they are estimates: float64 on a tree, or int64 if whole numbers.
        """
        if self.shown == "noisy":
            return self.noisy
        return self._estimates.cells(whole=self.shown == "whole")

    @property
    def title(self) -> str:
        return f"{self.made_by} of {' x '.join(map(printable, self.axes))}"

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self.lattice.names

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        return self.geometry.corners()

    @property
    def lower(self) -> Array:
        """Lower ends of the boxes: float64 ndarray of shape (cells, d).

        Dates count days since 1970, times microseconds.
        """
        return self._corners[0]

    @property
    def upper(self) -> Array:
        """Upper ends of the boxes: float64 ndarray of shape (cells, d)."""
        return self._corners[1]

    @property
    def noise(self) -> Law:
        """The widest law of the noise on a count of a box."""
        return widest_law(self.laws, self.which)

    def numbers(self) -> tuple[int, ...]:
        """All numbers as they were drawn: those before the counts, then the counts, law by law."""
        first: tuple[int, ...] = () if self.rows is None else (self.rows,)
        if self.inner is not None:
            first = tuple(self.inner.count.tolist())
        if self.which is None:
            return (*first, *self.noisy.tolist())
        order = np.argsort(self.which, kind="stable")
        return (*first, *self.noisy[order].tolist())

    @property
    def scale(self) -> Array:
        """Scale of the noise on each count, sigma for Gaussian noise: float64 ndarray (cells,).

        After ``consistent()`` it is that of an estimate: the scale of noise with its variance.
        """
        if self.shown == "noisy":
            scales = [scale_of(law) for law in self.laws]
            return values_per_cell(scales, self.which, len(self.noisy))
        variances = self._estimates.variances
        # Laplace noise of scale b has variance 2 b^2.
        is_laplace = isinstance(self.laws[0], DiscreteLaplace)
        return np.sqrt(variances / 2 if is_laplace else variances)

    @property
    def depth(self) -> Array:
        """Depth of each box in the tree of splits: int64 ndarray (cells,); 0 on a grid."""
        return np.zeros(len(self.noisy), np.int64) if self.depths is None else self.depths

    @property
    def spent(self) -> Array:
        """What the path to each box spent, epsilon or rho: float64 ndarray of shape (cells,)."""
        measure = self.guarantee.measure
        spent = measure.rho if isinstance(measure, ZCDP) else measure.epsilon
        return np.full(len(self.noisy), float(spent))

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        alpha = error_probability(confidence)
        cells = len(self.noisy)
        if self.shown == "noisy":
            alpha_of_cell = sidak(alpha, cells) if simultaneous else alpha
            half = [law.half_width(alpha_of_cell) for law in self.laws]
            return values_per_cell(half, self.which, cells)
        # Estimates depend on one another, so Sidak's correction does not apply: Bonferroni's does.
        return self._estimates.cell_half_widths(alpha / cells if simultaneous else alpha)

    def interval(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``counts``.

        Whole numbers are not unbiased. Their intervals are those of the unbiased estimates, widened
        to hold the numbers shown.
        """
        half = self.accuracy(confidence, simultaneous)
        centre = self.noisy if self.shown == "noisy" else self._estimates.cells(whole=False)
        return np.minimum(centre - half, self.counts), np.maximum(centre + half, self.counts)

    def half_width(
        self, cells: np.typing.ArrayLike | None = None, confidence: Exactly = "0.95"
    ) -> int:
        """How far the sum of some cells' noisy counts may be from the truth.

        It follows from the exact law of the sum of the noise.

        Parameters
        ----------
        cells : array-like of int, or None
            Indices of cells, each once; None: all.
        confidence : number in (0, 1)
        """
        chosen = np.arange(len(self.noisy)) if cells is None else read_cells(cells, len(self.noisy))
        which = np.zeros(len(chosen), np.int64) if self.which is None else self.which[chosen]
        numbers = np.bincount(which, minlength=len(self.laws)).tolist()
        terms = [(law, number) for law, number in zip(self.laws, numbers, strict=True) if number]
        return exact_half_width(terms, error_probability(confidence)) if terms else 0

    def consistent(self, integers: bool = False) -> Partition:
        """The same partition, with the best counts that all its noisy counts together allow.

        It is computed from released numbers, so it costs nothing.

        Parameters
        ----------
        integers : bool
            False: the generalised least squares estimate. It is unbiased, may be negative, and is
            no whole number. True: non-negative whole numbers near it, in which each node is the sum
            of its children. They are biased where the truth is small. Their intervals are those of
            the unbiased estimate, widened to hold them.

        Returns
        -------
        Partition
            Its ``counts``, ``scale``, ``accuracy`` and ``interval`` are those of the estimates.
            ``count`` uses the estimates always.
        """
        return msgspec.structs.replace(self, shown="whole" if integers else "consistent")

    def regions(self, alpha: float) -> Regions | None:
        """Boxes of every size for a map, down to the cells; None for a grid, which has only cells.

        Of all boxes over one point, the intervals miss with probability ``alpha`` together.
        """
        estimates = self._estimates
        if isinstance(estimates, GridEstimates):
            return None
        tree = estimates.tree
        inferred = estimates.inferred
        # What of alpha the cells do not get is divided between the levels above them.
        alpha_of_node = alpha * (1 - OF_CELLS) / max(len(tree.levels) - 1, 1)
        counts = inferred.estimate.astype(float)
        half = estimates.half_widths(inferred.variance, alpha_of_node)
        counts[tree.leaves] = self.counts
        half[tree.leaves] = self.accuracy(1 - OF_CELLS * alpha)
        lower, upper = tree.node_corners()
        return Regions(lower, upper, counts, half, tree.parent, tuple(tree.levels))

    # --- what users ask of it ---------------------------------------------------------------------

    def assign(self, points: np.typing.ArrayLike) -> Array:
        """Which box is each point in?

        Parameters
        ----------
        points : array-like of shape (n, d), in the order of ``axes``
            Points outside the domain are clamped to it, as the counted rows were.

        Returns
        -------
        int64 ndarray of shape (n,); -1 where a coordinate is NaN.
        """
        return self.geometry.assign(read_points(points, self.axes))

    def count(
        self,
        *,
        confidence: Exactly = "0.95",
        simultaneous: bool = False,
        exact: bool | None = None,
        evenly: bool = False,
        **ranges: Range,
    ) -> Estimate:
        """How many rows lie in a range? The answer uses all noisy counts together.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the intervals of all given ranges hold together (Bonferroni).
        exact : bool or None
            For a tree of two axes. True: variances are exact, which takes some hundred microseconds
            a range. False: they are bounded from above, which takes a few microseconds, and
            intervals are about twice as wide. None: exact for up to 1,000 ranges at once.
        evenly : bool
            Inside a box that a range cuts, the value takes rows to lie evenly. False: the interval
            holds wherever in these boxes they lie. True: it holds only if they lie evenly, as the
            answer says; it covers the noise alone, and is narrower.
        **ranges : axis=(lower, upper)
            ``lower <= x < upper``: scalars, or arrays of shape (n,). Axes that are not named are
            taken whole.

        Returns
        -------
        Estimate
            Of floats, or of float64 ndarrays of shape (n,). The interval is a Chernoff bound on the
            noise of all boxes that the range touches. A range of whole boxes cuts none.
        """
        alpha = error_probability(confidence)
        flat, shape = read_ranges(ranges, self.axes, self.geometry.axes)
        size = int(np.prod(shape, dtype=int))
        values = self._estimates.sums(flat, size, whole=self.shown == "whole")
        low, high = self._estimates.bounds(
            flat,
            size,
            alpha / size if simultaneous and size else alpha,
            exact=size <= 1000 if exact is None else exact,
            evenly=evenly,
        )
        low = np.minimum(low, values)
        high = np.maximum(high, values)
        counted = self.guarantee.unit.counted
        if evenly:
            counted += ", if they lie evenly in the boxes that the range cuts"
        if not shape:
            return Estimate(float(values[0]), float(low[0]), float(high[0]), 1 - alpha, counted)
        return Estimate(
            values.reshape(shape), low.reshape(shape), high.reshape(shape), 1 - alpha, counted
        )

    def sample(self, size: int, random_state: int | np.random.Generator | None = None) -> Array:
        """Draw synthetic points: boxes by their counts, and evenly within each box.

        Negative counts are taken as 0.

        Parameters
        ----------
        size : int
        random_state : int, numpy Generator or None
            Seeds this draw only. Sampling is post-processing: the noise was added before, and
            nothing here can weaken the guarantee.

        Returns
        -------
        float64 ndarray of shape (size, d).
        """
        is_whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
        if not is_whole or not 0 <= size <= MOST_POINTS:
            raise UsageError(
                f"sample({size!r})",
                f"the number of points is from 0 to {MOST_POINTS:,}",
                "Write sample(10_000)",
            )
        rng = np.random.default_rng(random_state)
        counts = self._estimates.cells(whole=self.shown == "whole")
        weights = np.clip(counts, 0, None).astype(float)
        if weights.sum() <= 0:
            weights = np.prod(self.upper - self.lower, axis=1)
        shares = weights / weights.sum()
        box = rng.choice(len(weights), size=size, p=shares)
        lower = self.lower[box]
        upper = self.upper[box]
        within = lower + rng.random(lower.shape) * (upper - lower)
        # Rounding must not carry a point to the upper end, which belongs to the next box.
        points: Array = np.minimum(within, np.nextafter(upper, lower))
        return points

    # --- tables, files and pictures ---------------------------------------------------------------

    def to_frame(self) -> pa.Table:
        """One row per box: ``axis_lower`` and ``axis_upper`` by axis, count, low, high (95%)."""

        low, high = self.interval()
        columns = {}
        for i, axis in enumerate(self.geometry.axes):
            columns[f"{axis.name}_lower"] = axis.scale.array(self.lower[:, i])
            columns[f"{axis.name}_upper"] = axis.scale.array(self.upper[:, i])
        return table_of(columns | {"count": self.counts, "low": low, "high": high})

    def in_digits(self, table: pa.Table) -> pa.Table:
        """A table like ``to_frame``; coordinates have the digits of the lattice."""
        for axis in self.lattice.grids:
            for end in (f"{axis.name}_lower", f"{axis.name}_upper"):
                if axis.kind == "number" and end in table.column_names:
                    rounded = _in_digits(ndarray_of(table[end]), axis)
                    table = table.set_column(table.column_names.index(end), end, column_of(rounded))
        return super().in_digits(table)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write ``to_frame()`` as Parquet."""
        import pyarrow.parquet as pq

        content = io.BytesIO()
        pq.write_table(self.to_frame(), content)
        write_bytes(path, content.getvalue())

    def to_geojson(
        self, path: str | os.PathLike[str] | None = None, axes: Sequence[str] | None = None
    ) -> dict[str, object]:
        """Write the boxes as GeoJSON polygons with count, low and high (95%).

        ``counted`` says which rows the counts are about.

        Parameters
        ----------
        path : path or None
            None: the object is only returned.
        axes : pair of names or None
            The axes of longitude and latitude. None: the partition's own order, or the reverse if
            the first name begins with "lat".

        Returns
        -------
        dict, a GeoJSON FeatureCollection.
        """
        collection = geojson(self, axes)
        if path is not None:
            write_bytes(path, json.dumps(collection).encode())
        return collection

    def _named(self, captions: Captions) -> Self:
        return msgspec.structs.replace(self, lattice=captions.lattice(self.lattice))

    def plot(self, ax: Axes | None = None, axes: Sequence[str] | None = None) -> Axes:
        """Draw a map shaded by density (two axes), or steps with error bars (one axis).

        Parameters
        ----------
        ax : matplotlib Axes or None
        axes : one or two names, or None
            The axes to draw; counts are added up over the others. None: longitude and latitude
            where there are any, otherwise the first two.
        """
        return drawn("maps.draw", self, ax, axes)


# --- the question ---------------------------------------------------------------------------------


class OverAxes(Question[Partition], frozen=True):
    """A question over Interval axes, which is answered by a partition.

    Attributes
    ----------
    axes : str, sequence of str, or None
        The axes to divide. None: all Interval axes of the domain.
    name : str
        What partitions of this kind are called.

    >>> import sfumato as sf
    >>> from sfumato.extending import OverAxes
    >>> isinstance(sf.BinaryPartitioner(["lon", "lat"]), OverAxes)
    True
    """

    axes: str | Sequence[str] | None = None

    name: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.axes is not None:
            msgspec.structs.force_setattr(self, "axes", named_axes(self.axes))

    def needs(self, domain: Domain) -> Needs:
        """The default lattice."""
        lattice = fine_lattice(domain.intervals(self.axes))
        return Needs(lattice, self.most_numbers(lattice))

    def most_numbers(self, lattice: Lattice) -> int:
        """How many counts the answer may hold at most.

        A tree has fewer nodes above its cells than cells, and each node has at most one count.
        """
        return 2 * min(lattice.size, MOST_PARTITION_CELLS)

    @property
    def title(self) -> str:
        if self.axes is None:
            return self.name
        return f"{self.name} of {' x '.join(map(printable, self.axes))}"
