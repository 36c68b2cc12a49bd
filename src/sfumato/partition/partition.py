"""A partition as a thing one can use: it assigns, counts, samples, infers, draws and travels."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from sfumato.answers.edges import edge_array
from sfumato.answers.estimate import Estimate, error_probability
from sfumato.answers.release import CountsRelease
from sfumato.arrays import Array
from sfumato.domain import GridAxis, Lattice
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteLaplace, Law
from sfumato.mechanisms.sums import exact_half_width, half_widths, spread
from sfumato.numbers import Exactly, sidak
from sfumato.partition import exports
from sfumato.partition.grid import Grid
from sfumato.partition.reading import Range, read_cells, read_points, read_ranges
from sfumato.partition.tree.corner_sums import Tables
from sfumato.partition.tree.cover import Counted, Cover, Edges, are_places, scale_of, whole_cells
from sfumato.partition.tree.estimates import Estimates
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.ranges import Ranges, Walker
from sfumato.privacy.allocation import units_of
from sfumato.privacy.measures import ZCDP

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


MOST_POINTS = 10**8
FEW_RANGES = 1000  # up to which variances are exact without being asked for


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

    Boxes are half-open, ``[a, b)``, the last one along each axis closed. Counts may be negative.

    Attributes
    ----------
    made_by : str
        The partitioner, in words.
    lattice : Lattice
        On which the rows were counted.
    cover : Edges or Splits
        Where the boxes lie: a product grid, or a tree of splits.
    noisy : int64 ndarray of shape (cells,)
        Noisy counts as they were drawn, "counts" in files; on a grid the last axis runs fastest.
    laws : tuple of DiscreteLaplace or DiscreteGaussian
        Of the noise, independent.
    which : int64 ndarray of shape (cells,), or None
        The place of each cell's law among ``laws``; None: the first.
    depths : int64 ndarray of shape (cells,), or None
        Depth of each cell in the partitioner's own tree; None: 0.
    inner : Counted or None
        Noisy counts above the cells, which were paid for and serve inference.
    rows : int or None
        The noisy number of rows, where a grid has paid for it.
    shown : {"noisy", "consistent", "whole"}
        What ``counts`` are: see ``consistent``.
    """

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
        false = UsageError(
            "a partition",
            "its boxes do not cover the domain once, with a count for each",
            "Load a file that release.save wrote",
        )
        if (
            not self.lattice.axes
            or not all(isinstance(axis, GridAxis) for axis in self.lattice.axes)
            or not self.laws
        ):
            raise false
        cells = self.geometry.cells
        like = [self.noisy, *(part for part in (self.which, self.depths) if part is not None)]
        if any(part.shape != (cells,) for part in like) or not are_places(
            self.which, len(self.laws)
        ):
            raise false
        if self.inner is not None and not (
            isinstance(self.geometry, Tree) and self._inner_fits(self.geometry, self.inner)
        ):
            raise false

    def _inner_fits(self, tree: Tree, inner: Counted) -> bool:
        """Whether each noisy count beside the cells' own belongs to another node and has a law."""
        shape = inner.node.shape
        fits = inner.count.shape == inner.which.shape == shape == (len(np.unique(inner.node)),)
        return (
            fits
            and are_places(inner.node, len(tree.axis))
            and are_places(inner.which, len(self.laws))
        )

    @cached_property
    def geometry(self) -> Grid | Tree:
        """Where the boxes lie."""
        cover = self.cover
        return (
            Grid(self.lattice, cover.edges)
            if isinstance(cover, Edges)
            else Tree(self.lattice, cover.axis, cover.cut)
        )

    # --- cells --------------------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Array:
        """Counts of the boxes: int64 ndarray of shape (cells,), noisy as drawn; float64 after ``consistent()``."""
        if self.shown == "noisy":
            return self.noisy
        tree = self.geometry
        if isinstance(tree, Tree):
            return np.asarray(self._nodes[tree.leaves])
        return self.noisy if self.shown == "consistent" else whole_cells(self.noisy)

    @property
    def title(self) -> str:
        return f"{self.made_by} of {' x '.join(self.axes)}"

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self.lattice.names

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        return self.geometry.corners()

    @property
    def lower(self) -> Array:
        """Lower ends of the boxes: float64 ndarray of shape (cells, d). Dates count days, times microseconds, since 1970."""
        return self._corners[0]

    @property
    def upper(self) -> Array:
        """Upper ends of the boxes: float64 ndarray of shape (cells, d)."""
        return self._corners[1]

    @property
    def law(self) -> Law:
        """The widest law of the noise on a count: the only one, where all counts are alike."""
        used = self.laws if self.which is None else [self.laws[i] for i in np.unique(self.which)]
        return self.laws[0] if self.which is None else max(used, key=spread)

    @property
    def noise(self) -> Law:
        """The widest law of the noise on a count."""
        return self.law

    def numbers(self) -> tuple[int, ...]:
        """What was drawn before the counts, then the counts, law by law, as they were drawn."""
        first = () if self.rows is None else (self.rows,)
        if self.inner is not None:
            first = tuple(self.inner.count.tolist())
        order = slice(None) if self.which is None else np.argsort(self.which, kind="stable")
        return (*first, *self.noisy[order].tolist())

    @property
    def scale(self) -> Array:
        """Scale of the noise on each count (sigma for Gaussian noise): float64 ndarray of shape (cells,).

        After ``consistent()``, of an estimate: the scale whose noise would have its variance.
        """
        if self.shown == "noisy":
            return self._per_cell([scale_of(law) for law in self.laws])
        gaussian = not isinstance(self.laws[0], DiscreteLaplace)
        return np.sqrt(self._variances if gaussian else self._variances / 2)

    @property
    def depth(self) -> Array:
        """Depth of each box in the tree of splits: int64 ndarray of shape (cells,); a grid has depth 0."""
        return np.zeros(len(self.noisy), np.int64) if self.depths is None else self.depths

    @property
    def spent(self) -> Array:
        """What the path to each box spent, epsilon or rho: float64 ndarray of shape (cells,)."""
        measure = self.guarantee.measure
        return np.full(
            len(self.noisy), float(measure.rho if isinstance(measure, ZCDP) else measure.epsilon)
        )

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        alpha = error_probability(confidence)
        if self.shown == "noisy":
            each = sidak(alpha, len(self.noisy)) if simultaneous else alpha
            return self._per_cell([law.half_width(each) for law in self.laws])
        return self._half(self._variances, alpha / len(self.noisy) if simultaneous else alpha)

    def interval(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``counts``.

        Of whole numbers, which are not unbiased: the interval of the unbiased estimate, widened to hold the number shown.
        """
        half = self.accuracy(confidence, simultaneous)
        tree = self.geometry
        centre = (
            self._known.inferred.estimate[tree.leaves]
            if self.shown != "noisy" and isinstance(tree, Tree)
            else self.noisy
        )
        return np.minimum(centre - half, self.counts), np.maximum(centre + half, self.counts)

    def half_width(self, cells: ArrayLike | None = None, confidence: Exactly = "0.95") -> int:
        """How far the sum of any cells' noisy counts is from the truth at most, by the exact law of its noise.

        Parameters
        ----------
        cells : array-like of int, or None
            Which cells, each once; None: all.
        confidence : number in (0, 1)
        """
        chosen = np.arange(len(self.noisy)) if cells is None else read_cells(cells, len(self.noisy))
        numbers = np.bincount(
            np.zeros(len(chosen), np.int64) if self.which is None else self.which[chosen],
            minlength=len(self.laws),
        )
        parts = [
            (law, int(number)) for law, number in zip(self.laws, numbers, strict=True) if number
        ]
        return exact_half_width(parts, error_probability(confidence)) if parts else 0

    def _per_cell(self, per_law: Sequence[float]) -> Array:
        return (
            np.full(len(self.noisy), per_law[0])
            if self.which is None
            else np.array(per_law)[self.which]
        )

    # --- inference ----------------------------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> Estimates:
        """What all noisy counts together say of every node of a tree."""
        assert isinstance(self.geometry, Tree)
        return Estimates(self.geometry, self.noisy, self.laws, self.which, self.inner)

    @property
    def _nodes(self) -> Array:
        """The number shown for every node of a tree, in sums."""
        return self._known.whole if self.shown == "whole" else self._known.inferred.estimate

    @property
    def _variances(self) -> Array:
        tree = self.geometry
        return (
            self._known.inferred.variance[tree.leaves]
            if isinstance(tree, Tree)
            else self._per_cell([spread(law) for law in self.laws])
        )

    def _half(self, variances: Array, alpha: float) -> Array:
        """Half-widths of sums of estimates of these variances."""
        if isinstance(self.geometry, Tree):
            return self._known.half_widths(variances, alpha)
        return half_widths(variances, [(law, 1.0) for law in self.laws], alpha)

    def consistent(self, integers: bool = False) -> Partition:
        """The same partition with the best counts that all its noisy counts together allow. It costs nothing.

        Parameters
        ----------
        integers : bool
            False: the generalised least squares estimate, unbiased, which may be negative and is no whole number. True:
            non-negative whole numbers near it, in which each node is the sum of its children; they are biased where the
            truth is small, and their intervals are those of the unbiased estimate, widened to hold them.

        Returns
        -------
        Partition
            Its ``counts``, ``scale``, ``accuracy`` and ``interval`` are those of the estimates. ``count`` uses them always.
        """
        return msgspec.structs.replace(self, shown="whole" if integers else "consistent")

    # --- questions to it ----------------------------------------------------------------------------------------------

    def assign(self, points: ArrayLike) -> Array:
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
        **ranges: Range,
    ) -> Estimate:
        """How many rows lie in a range? From all noisy counts together.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            All given ranges hold together (Bonferroni).
        exact : bool or None
            Whether variances on a tree of two axes are exact, at some hundred microseconds a range, or bounded from above, at a few
            (``tables``): then intervals are about twice as wide. None: exact for up to 1,000 ranges at once.
        **ranges : axis=(lower, upper)
            ``lower <= x < upper``, scalars or arrays of shape (n,); axes not named are taken whole.

        Returns
        -------
        Estimate
            Of floats, or of float64 ndarrays of shape (n,). The interval covers the noise of all boxes touched, by a Chernoff
            bound on its tail; inside a box that the range cuts, rows are taken to lie evenly, and no interval covers that.
        """
        alpha = error_probability(confidence)
        flat, number = read_ranges(ranges, self.axes, self.geometry.axes)
        size = int(np.prod(number, dtype=int))
        each = alpha / size if simultaneous and size else alpha
        centres, values, half = self._sums(
            flat, size, each, size <= FEW_RANGES if exact is None else exact
        )
        low, high = np.minimum(centres - half, values), np.maximum(centres + half, values)
        value, low, high = (
            x.reshape(number) if number else float(x[0]) for x in (values, low, high)
        )
        return Estimate(value, low, high, 1 - alpha, self.guarantee.unit.counted)

    def _sums(
        self, ranges: Ranges, size: int, alpha: float, exact: bool
    ) -> tuple[Array, Array, Array]:
        """Unbiased sums, sums of what is shown, and half-widths of the former: float64 ndarrays of shape (size,)."""
        if isinstance(self.geometry, Grid):
            centres, effective = self.geometry.sums(self.noisy, ranges, size)
            values = (
                self.geometry.sums(self.counts, ranges, size)[0]
                if self.shown == "whole"
                else centres
            )
            return centres, values, self.law.sum_half_width(effective, alpha)
        plain, shown = self._lookups
        centres, variances = (
            Walker(plain.tree, plain.inferred) if exact or not plain.fits else plain
        ).sums(ranges, size)
        values = centres
        if self.shown == "whole":
            values = (shown if shown.fits else Walker(shown.tree, shown.inferred)).sums(
                ranges, size
            )[0]
        return centres, values, self._half(variances, alpha)

    @cached_property
    def _lookups(self) -> tuple[Tables, Tables]:
        """Tables of the unbiased estimates, and of what is shown."""
        tree = self.geometry
        assert isinstance(tree, Tree)
        plain = Tables(tree, self._known.inferred)
        return plain, plain if self.shown != "whole" else Tables(
            tree, dataclasses.replace(self._known.inferred, estimate=self._nodes)
        )

    def sample(self, size: int, random_state: int | np.random.Generator | None = None) -> Array:
        """Draw synthetic points: boxes by their counts (negative ones taken as 0), evenly within each.

        Parameters
        ----------
        size : int
        random_state : int, numpy Generator or None
            Seeds this draw only. It is post-processing: the noise was added before, and nothing here can weaken it.

        Returns
        -------
        float64 ndarray of shape (size, d).
        """
        if (
            isinstance(size, bool)
            or not isinstance(size, int | np.integer)
            or not 0 <= size <= MOST_POINTS
        ):
            raise UsageError(
                f"sample({size!r})",
                f"the number of points is from 0 to {MOST_POINTS:,}",
                "Write sample(10_000)",
            )
        rng = np.random.default_rng(random_state)
        counts = (
            self._nodes[self.geometry.leaves] if isinstance(self.geometry, Tree) else self.counts
        )
        weights = np.clip(counts, 0, None).astype(float)
        weights = weights if weights.sum() > 0 else np.prod(self.upper - self.lower, axis=1)
        box = rng.choice(len(weights), size=size, p=weights / weights.sum())
        lower, upper = self.lower[box], self.upper[box]
        points: Array = np.minimum(
            lower + rng.random(lower.shape) * (upper - lower), np.nextafter(upper, lower)
        )
        return points

    # --- ways out -----------------------------------------------------------------------------------------------------

    def to_frame(self) -> pa.Table:
        """One row per box: ``axis_lower`` and ``axis_upper`` per axis, count, low, high (95%)."""
        import pyarrow as pa

        low, high = self.interval()
        columns = {}
        for i, axis in enumerate(self.geometry.axes):
            columns[f"{axis.name}_lower"] = edge_array(self.lower[:, i], axis.time)
            columns[f"{axis.name}_upper"] = edge_array(self.upper[:, i], axis.time)
        return pa.table(columns | {"count": self.counts, "low": low, "high": high})

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write ``to_frame()`` as Parquet."""
        exports.write_parquet(self.to_frame(), path)

    def to_geojson(
        self, path: str | os.PathLike[str] | None = None, axes: Sequence[str] | None = None
    ) -> dict[str, object]:
        """Write the boxes as GeoJSON polygons with count, low and high (95%), and ``counted``, which says what they are about.

        Parameters
        ----------
        path : path or None
            None only returns the object.
        axes : pair of names or None
            Which axis is longitude and which latitude. None: the partition's own order, unless it begins with "lat".

        Returns
        -------
        dict, a GeoJSON FeatureCollection.
        """
        boxes = exports.Boxes(self.axes, self.lower, self.upper, self.counts, self.interval())
        collection = exports.geojson(boxes, self.guarantee.counted, axes)
        if path is not None:
            exports.write_json(collection, path)
        return collection

    def plot(self, ax: Axes | None = None, axes: Sequence[str] | None = None) -> Axes:
        """A map of the boxes shaded by density (two axes), or steps with error bars (one axis).

        Parameters
        ----------
        ax : matplotlib Axes or None
        axes : one or two names, or None
            Which axes to draw; further ones are added up. None: longitude and latitude where there are any, else the first two.
        """
        from sfumato.charts import maps

        return maps.draw(self, ax, axes)

    @property
    def units(self) -> int:
        """What every path spent, in whole units of the ledger."""
        return units_of(self.cost)
