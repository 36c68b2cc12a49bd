"""Histograms and contingency tables over known categories and public bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from sfumato.cube import Cube
from sfumato.domain import Categories, Domain, EdgesAxis, Interval, LabelAxis, Lattice, LatticeAxis, as_number, grid_axis, named_axes
from sfumato.errors import UsageError
from sfumato.exact import Exactly, sidak
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.privacy.guarantee import Guarantee, Proof, assumptions_of
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits
from sfumato.release import Preview, Release, edge_array, edge_text, error_probability

if TYPE_CHECKING:
    import pyarrow as pa

Edges: TypeAlias = Sequence[float | str]
AxisBins: TypeAlias = int | Edges
MOST_CELLS = 2**26
DEFAULT_BINS = 10


class Histogram(msgspec.Struct, frozen=True, tag="histogram", omit_defaults=True, forbid_unknown_fields=True):
    """How many rows fall in each cell? Counts over the product of axes: a histogram, or a contingency table of several axes.

    Parameters
    ----------
    axes : str or list of str
        Axes of the domain; the last one runs fastest in ``values``.
    bins : int, list of edges, dict, or None
        For Interval axes: a number of equal bins, increasing edges (values beyond them are clamped to the end bins), or a
        dict of either by axis; with several Interval axes a list of as many entries also serves. None: the axis' own step,
        or ten bins.

    Raises
    ------
    UsageError
        If an axis is unknown, bins are fewer than 2, edges do not increase, or there would be more than 2^26 cells.

    Guarantee
    ---------
    Sensitivity: L1 = rows_per_person (twice that under replace); L2 the same, or sqrt 2 times under replace.
    Holds because: the cells are disjoint and fixed by the public domain, and the noise is exact on the integers.
    Not covered: the choice of columns, bins and bounds; the time the query takes.
    Source: Dwork, McSherry, Nissim, Smith 2006, Thm 1; discrete noise: Canonne, Kamath, Steinke 2020.

    >>> from sfumato.domain import Domain, Interval
    >>> Histogram("age", bins=4).needs(Domain(age=Interval(0, 100))).shape
    (4,)
    """

    axes: str | Sequence[str]
    bins: int | Sequence[AxisBins | float | str] | dict[str, AxisBins] | None = None

    proof: ClassVar[Proof] = Proof(
        sensitivity="L1 = rows_per_person (twice that under replace); L2 the same, or sqrt 2 times under replace.",
        because="the cells are disjoint and fixed by the public domain, and the noise is exact on the integers.",
        not_covered="the choice of columns, bins and bounds; the time the query takes.",
        source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; discrete noise: Canonne, Kamath, Steinke 2020.",
    )

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "axes", named_axes(self.axes))
        msgspec.structs.force_setattr(self, "bins", _plain_bins(self.bins))

    def needs(self, domain: Domain) -> Lattice:
        """Its lattice is exactly its bins."""
        names = domain.select(self.axes)
        bins = self._bins_by_axis([name for name in names if isinstance(domain[name], Interval)])
        lattice = Lattice(tuple(self._lattice_axis(domain, name, bins.get(name)) for name in names))
        if lattice.size > MOST_CELLS:
            raise UsageError(
                self.title, f"it would have {lattice.size:,} cells, and the limit is {MOST_CELLS:,}", "Take fewer bins or fewer axes"
            )
        return lattice

    def _bins_by_axis(self, intervals: list[str]) -> dict[str, AxisBins | None]:
        bins = self.bins
        if isinstance(bins, dict):
            for name in bins:
                if name not in intervals:
                    raise UsageError(
                        f"bins for {name!r}", "the question has no Interval axis of that name", "Give bins for its Interval axes only"
                    )
            return dict(bins)
        if bins is None or isinstance(bins, int):
            return dict.fromkeys(intervals, bins)
        if len(intervals) == 1 and not any(isinstance(entry, tuple) for entry in bins):
            return {intervals[0]: bins}  # type: ignore[dict-item]
        if len(bins) != len(intervals):
            asked = f"bins with {len(bins)} entries"
            raise UsageError(
                asked, f"the question has {len(intervals)} Interval axes", "Give one entry per Interval axis, or a dict by name"
            )
        return dict(zip(intervals, bins, strict=True))  # type: ignore[arg-type]

    def _lattice_axis(self, domain: Domain, name: str, bins: AxisBins | None) -> LatticeAxis:
        axis = domain[name]
        if isinstance(axis, Categories):
            return LabelAxis(name, axis.all_labels, axis.other is not None)
        if not isinstance(axis, Interval):
            asked = f"a histogram of {name!r}"
            raise UsageError(
                asked, "its keys are not known beforehand, and this version answers known cells only", "Declare Categories for it"
            )
        if bins is not None and not isinstance(bins, int):
            return _edges_axis(name, axis, bins)
        cells = bins if bins is not None else axis.natural_cells or DEFAULT_BINS
        if bins is not None and bins < 2:
            raise UsageError(f"bins = {bins} for {name!r}", "a histogram has at least 2 bins", "Choose a larger number")
        return grid_axis(name, axis, cells)

    @property
    def title(self) -> str:
        return f"Histogram of {' x '.join(self.axes)}"

    def preview(self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None) -> Preview:
        """Say how accurate the counts would be."""
        return Preview(self.title, without_delta(cost), unit, self.needs(domain).size, count_law(cost, unit), rows)

    def answer(self, cube: Cube, unit: Unit, cost: CentralMeasure, noise: Bits) -> HistogramRelease:
        """Add exact noise to every cell."""
        law = count_law(cost, unit)
        guarantee = Guarantee(without_delta(cost), unit, str(law), self.proof, assumptions_of(unit), private=noise.private)
        return HistogramRelease(
            question=self, lattice=cube.lattice, counts=add_noise(cube.counts, law, noise), law=law, guarantee=guarantee
        )


class HistogramRelease(Release, frozen=True, kw_only=True, eq=False, tag="histogram-release"):
    """Noisy counts over the cells of ``lattice``.

    Attributes
    ----------
    question : Histogram
    lattice : Lattice
    counts : int64 ndarray of shape (cells,)
        The last axis runs fastest. Counts may be negative: clipping would bias them and cost their intervals coverage.
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each count, independent.
    """

    question: Histogram
    lattice: Lattice
    counts: np.ndarray
    law: Law

    def __post_init__(self) -> None:
        if self.counts.shape != (self.lattice.size,):
            raise UsageError("a histogram", "it has another number of counts than of cells", "Load a file that release.save wrote")

    @property
    def values(self) -> np.ndarray:
        """Noisy counts: int64 ndarray with one dimension per axis."""
        return self.counts.reshape(self.lattice.shape)

    @property
    def title(self) -> str:
        return self.question.title

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> np.ndarray:
        alpha = error_probability(confidence)
        half = self.law.half_width(sidak(alpha, self.lattice.size) if simultaneous else alpha)
        return np.full(self.lattice.shape, half)

    def cell_names(self, axis: str) -> list[str]:
        """Names of the cells along an axis: labels, or "a to b"."""
        found = self.lattice.axes[self.lattice.names.index(axis)]
        if isinstance(found, LabelAxis):
            return [str(label) for label in found.labels]
        edges = edge_text(found.edges(), found.time)
        return [f"{a} to {b}" for a, b in pairwise(edges)]

    def to_frame(self) -> pa.Table:
        """One row per cell: the axes (``name`` for labels, ``name_lower`` and ``name_upper`` for bins), count, low, high (95 %)."""
        import pyarrow as pa

        where = np.unravel_index(np.arange(self.lattice.size), self.lattice.shape)
        columns: dict[str, Any] = {}
        for axis, index in zip(self.lattice.axes, where, strict=True):
            if isinstance(axis, LabelAxis):
                columns[axis.name] = pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), pa.array(_one_type(axis.labels)))
            else:
                edges = edge_array(axis.edges(), axis.time)
                columns[f"{axis.name}_lower"], columns[f"{axis.name}_upper"] = edges[index], edges[index + 1]
        low, high = self.interval()
        return pa.table(columns | {"count": self.counts, "low": low.reshape(-1), "high": high.reshape(-1)})

    def plot(self, ax: Any = None) -> Any:
        """Bars with error bars for one axis, a table of shades for two; more axes are summed into the first two."""
        from sfumato.charts import histograms

        return histograms.draw(self, ax)


def _one_type(labels: Sequence[object]) -> list[object]:
    return list(labels) if len({type(label) for label in labels}) == 1 else [str(label) for label in labels]


def _plain_bins(bins: Any) -> Any:
    """Bring bins into the one form that files give back: numbers of bins as integers, edges as tuples of floats or ISO text.

    A flat list may hold edges or a number of bins per axis, and only the domain tells, so its integers stay as they are.
    """
    if isinstance(bins, Mapping):
        return {str(name): _plain_entry(entry) for name, entry in bins.items()}
    bins = bins.tolist() if hasattr(bins, "tolist") else bins
    return tuple(_plain_entry(entry) if _is_list(entry) else _plain_edge(entry) for entry in bins) if _is_list(bins) else _plain_entry(bins)


def _plain_entry(entry: Any) -> Any:
    entry = entry.tolist() if hasattr(entry, "tolist") else entry
    if _is_list(entry):
        return tuple(float(edge) if isinstance(edge, int) else edge for edge in map(_plain_edge, entry))
    if entry is None or (isinstance(entry, int) and not isinstance(entry, bool)):
        return entry
    raise UsageError(
        f"bins of type {type(entry).__name__}", "bins are a number, a list of edges, or a dict of either by axis", "Write bins=20"
    )


def _plain_edge(edge: Any) -> Any:
    edge = edge.item() if hasattr(edge, "item") else edge
    return edge.isoformat() if hasattr(edge, "isoformat") else edge


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _edges_axis(name: str, axis: Interval, edges: Edges) -> EdgesAxis:
    numbers = tuple(as_number(edge, axis.time, f"an edge of {name!r}") for edge in edges)
    if len(numbers) < 3:
        raise UsageError(f"{len(numbers)} edges for {name!r}", "a histogram has at least 2 bins", "Give at least three edges")
    if not all(math.isfinite(edge) for edge in numbers) or any(b <= a for a, b in pairwise(numbers)):
        raise UsageError(f"edges for {name!r}", "edges must be finite and increase", "Sort them, and name each once")
    low, high = axis.numbers
    if numbers[0] < low or numbers[-1] > high:
        raise UsageError(f"edges for {name!r}", "they leave the public bounds of the axis", "Keep them inside the Interval, or widen it")
    return EdgesAxis(name, numbers, axis.time)
