"""A partition as a thing one can use: it assigns, counts, samples, draws and travels."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.domain import GridAxis, Lattice, as_number
from sfumato.errors import DataError, UsageError, nearest
from sfumato.exact import Exactly, sidak
from sfumato.mechanisms.noise import DiscreteLaplace, Law
from sfumato.partition.grid import Grid
from sfumato.privacy.measures import ZCDP
from sfumato.release import Estimate, Release, edge_array, error_probability

if TYPE_CHECKING:
    import pyarrow as pa


class Partition(Release, frozen=True, kw_only=True, eq=False, tag="partition", dict=True):
    """Disjoint public boxes that cover the domain exactly, each with a noisy count.

    Boxes are half-open, ``[a, b)``, the last one along each axis closed. Counts may be negative.

    Attributes
    ----------
    made_by : str
        The partitioner, in words.
    lattice : Lattice
        On which the rows were counted.
    edges : tuple of int64 ndarray
        Lattice points between which the boxes lie, per axis.
    counts : int64 ndarray of shape (cells,)
        Noisy; the last axis runs fastest.
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each count, independent.
    rows : int or None
        The noisy number of rows, where it was paid for.
    """

    made_by: str
    lattice: Lattice
    edges: tuple[np.ndarray, ...]
    counts: np.ndarray
    law: Law
    rows: int | None = None

    def __post_init__(self) -> None:
        sizes = [axis.size for axis in self.lattice.axes]
        whole = len(self.edges) == len(sizes) > 0 and all(
            len(e) > 1 and e[0] == 0 and e[-1] == n and (np.diff(e) > 0).all() for e, n in zip(self.edges, sizes, strict=True)
        )
        if not whole or self.counts.shape != (math.prod(len(edge) - 1 for edge in self.edges),):
            raise UsageError(
                "a partition", "its boxes do not cover the domain once, with a count for each", "Load a file that release.save wrote"
            )

    @cached_property
    def grid(self) -> Grid:
        """Geometry of the boxes."""
        return Grid(self.lattice, self.edges)

    @property
    def values(self) -> np.ndarray:
        """Noisy counts: int64 ndarray of shape (cells,)."""
        return self.counts

    @property
    def title(self) -> str:
        return f"{self.made_by} of {' x '.join(self.axes)}"

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self.lattice.names

    @cached_property
    def _corners(self) -> tuple[np.ndarray, np.ndarray]:
        return self.grid.corners()

    @property
    def lower(self) -> np.ndarray:
        """Lower ends of the boxes: float64 ndarray of shape (cells, d). Dates count days, times microseconds, since 1970."""
        return self._corners[0]

    @property
    def upper(self) -> np.ndarray:
        """Upper ends of the boxes: float64 ndarray of shape (cells, d)."""
        return self._corners[1]

    @property
    def scale(self) -> np.ndarray:
        """Scale of the noise on each count (sigma for Gaussian noise): float64 ndarray of shape (cells,)."""
        scale = float(self.law.scale) if isinstance(self.law, DiscreteLaplace) else self.law.sigma
        return np.full(len(self.counts), scale)

    @property
    def depth(self) -> np.ndarray:
        """Depth of each box in the tree of splits: int64 ndarray of shape (cells,); a grid has depth 0."""
        return np.zeros(len(self.counts), np.int64)

    @property
    def spent(self) -> np.ndarray:
        """What the path to each box spent, epsilon or rho: float64 ndarray of shape (cells,)."""
        measure = self.guarantee.measure
        return np.full(len(self.counts), float(measure.rho if isinstance(measure, ZCDP) else measure.epsilon))

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> np.ndarray:
        alpha = error_probability(confidence)
        half = self.law.half_width(sidak(alpha, len(self.counts)) if simultaneous else alpha)
        return np.full(len(self.counts), half)

    def assign(self, points: Any) -> np.ndarray:
        """Which box is each point in?

        Parameters
        ----------
        points : array-like of shape (n, d), in the order of ``axes``
            Points outside the domain are clamped to it, as the counted rows were.

        Returns
        -------
        int64 ndarray of shape (n,); -1 where a coordinate is NaN.
        """
        try:
            array = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.zeros(0)
        if array.ndim != 2 or array.shape[1] != len(self.axes):
            asked = f"points of shape {array.shape}"
            raise UsageError(asked, f"this partition has the axes {', '.join(self.axes)}", f"Give an array of shape (n, {len(self.axes)})")
        return self.grid.assign(array)

    def count(self, *, confidence: Exactly = "0.95", simultaneous: bool = False, **ranges: tuple[Any, Any]) -> Estimate:
        """How many rows lie in a range?

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            All given ranges hold together (Bonferroni).
        **ranges : axis=(lower, upper)
            ``lower <= x < upper``, scalars or arrays of shape (n,); axes not named are taken whole.

        Returns
        -------
        Estimate
            Of floats, or of float64 ndarrays of shape (n,). The interval covers the noise of all boxes touched (a Chernoff
            bound on their sum); inside a box that the range cuts, rows are taken to lie evenly, and no interval covers that.
        """
        alpha = error_probability(confidence)
        bounds = {name: self._range(name, given) for name, given in ranges.items()}
        try:
            number = np.broadcast_shapes(*(np.shape(end) for pair in bounds.values() for end in pair))
        except ValueError:
            raise UsageError("ranges along several axes", "they differ in number", "Give as many ranges along each axis, or one") from None
        flat = {
            self.axes.index(name): (np.ravel(np.broadcast_to(pair[0], number)), np.ravel(np.broadcast_to(pair[1], number)))
            for name, pair in bounds.items()
        }
        size = int(np.prod(number, dtype=int))
        values, effective = self.grid.sums(self.counts, flat, size)
        half = self.law.sum_half_width(effective, alpha / size if simultaneous and size else alpha)
        value, low, high = (x.reshape(number) if number else float(x[0]) for x in (values, values - half, values + half))
        return Estimate(value, low, high, 1 - alpha)

    def _range(self, name: str, given: tuple[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        if name not in self.axes:
            raise UsageError(
                f"a range along {name!r}", f"this partition has no such axis; {nearest(name, self.axes)}", "Name one of its axes"
            )
        axis = self.grid.axes[self.axes.index(name)]
        try:
            lower, upper = (_coordinates(end, axis) for end in given)
        except UsageError:
            raise
        except (TypeError, ValueError):
            raise UsageError(f"a range along {name!r}", "it is not a pair of bounds", f"Write {name}=(lower, upper)") from None
        try:
            lower, upper = np.broadcast_arrays(lower, upper)
        except ValueError:
            raise UsageError(f"ranges along {name!r}", "lower and upper ends differ in number", "Give as many of each") from None
        if not bool(np.all(lower <= upper)):
            raise UsageError(f"a range along {name!r}", "lower must not exceed upper, and neither may be NaN", "Swap the ends")
        return lower, upper

    def sample(self, size: int, random_state: int | np.random.Generator | None = None) -> np.ndarray:
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
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
            raise UsageError(f"sample({size!r})", "the number of points is a whole number from 0 on", "Write sample(10_000)")
        rng = np.random.default_rng(random_state)
        weights = np.clip(self.counts, 0, None).astype(float)
        weights = weights if weights.sum() > 0 else np.prod(self.upper - self.lower, axis=1)
        box = rng.choice(len(weights), size=size, p=weights / weights.sum())
        lower, upper = self.lower[box], self.upper[box]
        points: np.ndarray = np.minimum(lower + rng.random(lower.shape) * (upper - lower), np.nextafter(upper, lower))
        return points

    def to_frame(self) -> pa.Table:
        """One row per box: ``axis_lower`` and ``axis_upper`` per axis, count, low, high (95 %)."""
        import pyarrow as pa

        low, high = self.interval()
        columns: dict[str, Any] = {}
        for i, axis in enumerate(self.grid.axes):
            columns[f"{axis.name}_lower"] = edge_array(self.lower[:, i], axis.time)
            columns[f"{axis.name}_upper"] = edge_array(self.upper[:, i], axis.time)
        return pa.table(columns | {"count": self.counts, "low": low, "high": high})

    def to_geojson(self, path: str | os.PathLike[str] | None = None, axes: Sequence[str] | None = None) -> dict[str, Any]:
        """Write the boxes as GeoJSON polygons with count, low and high (95 %).

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
        pair = tuple(axes) if axes is not None else self.axes if not self.axes[0].lower().startswith("lat") else self.axes[::-1]
        if sorted(pair) != sorted(self.axes) or len(pair) != 2:
            raise UsageError("GeoJSON", f"this partition has the axes {', '.join(self.axes)}", "Partition two axes, longitude and latitude")
        x, y = (self.axes.index(name) for name in pair)
        low, high = self.interval()
        west, south, east, north = (part[:, i].tolist() for part, i in ((self.lower, x), (self.lower, y), (self.upper, x), (self.upper, y)))
        rows = zip(west, south, east, north, self.counts.tolist(), low.tolist(), high.tolist(), strict=True)
        collection = {"type": "FeatureCollection", "features": [_feature(*row) for row in rows]}
        if path is not None:
            try:
                Path(path).write_text(json.dumps(collection), encoding="utf-8")
            except OSError as error:
                reason = error.strerror or "the file cannot be written"
            else:
                return collection
            raise DataError(f"writing {path}", reason, "Choose a path that can be written")
        return collection

    def plot(self, ax: Any = None) -> Any:
        """A map of the boxes shaded by density (two axes), or steps with error bars (one axis)."""
        from sfumato.charts import maps

        return maps.draw(self, ax)


def _coordinates(end: Any, axis: GridAxis) -> np.ndarray:
    if np.ndim(end) == 0 or axis.time is not None:
        given = np.asarray(end, dtype=object)
        return np.array([as_number(value, axis.time, axis.name) for value in given.reshape(-1)]).reshape(given.shape)
    return np.asarray(end, dtype=float)


def _feature(west: float, south: float, east: float, north: float, count: int, low: int, high: int) -> dict[str, Any]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    properties = {"count": count, "low": low, "high": high}
    return {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}, "properties": properties}
