"""Centres of clusters as a thing one can use: it assigns points, states its noise, draws and travels."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import msgspec
import numpy as np

from sfumato.answers.edges import edge_array
from sfumato.answers.estimate import error_probability
from sfumato.answers.release import Release
from sfumato.arrays import Array
from sfumato.clustering.error import root_mean_square, rounding
from sfumato.clustering.lloyd import Step
from sfumato.clustering.space import HALF, Space, nearest
from sfumato.domain import GridAxis, Lattice
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly, sidak
from sfumato.partition.partition import Partition

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class KMeansRelease(
    Release,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="kmeans-release",
    dict=True,
    forbid_unknown_fields=True,
):
    """Centres of clusters, and how many rows each stands for. No row is assigned to any: ``predict`` takes points of your own.

    The centres follow from the noisy integers that were paid for, which are all here: a partition's, and those of steps.

    Attributes
    ----------
    method : str
        Which way was gone: "eugkm", "dplloyd" or "privtree".
    lattice : Lattice
        On which the rows were counted.
    whole_centres : int64 ndarray of shape (k * d,)
        The centres, each axis in 2^20 steps a side of its middle.
    weights : int64 ndarray of shape (k,)
        Noisy numbers of rows in the groups whose means the centres are. They may be negative.
    terms : int64 ndarray of shape (k,)
        How many noisy counts each weight adds up.
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each of those counts, independent.
    rows : int or None
        The noisy number of rows, where it was paid for.
    partition : Partition or None
        Whose cells were clustered.
    steps : tuple of Step
        Lloyd's steps with noise.
    flags : tuple of bool, "known" in files
        Whether each weight can be told from 0 (95%): elsewhere the centre says nothing.
    """

    noun: ClassVar[str] = "weight"

    method: str
    lattice: Lattice
    whole_centres: Array
    weights: Array
    terms: Array
    law: Law
    rows: int | None = None
    partition: Partition | None = None
    steps: tuple[Step, ...] = ()
    flags: tuple[bool, ...] = msgspec.field(default=(), name="known")

    def __post_init__(self) -> None:
        k, d = len(self.weights), len(self.lattice.axes)
        grids = all(isinstance(axis, GridAxis) for axis in self.lattice.axes)
        whole = (
            k > 0
            and d > 0
            and grids
            and self.whole_centres.shape == (k * d,)
            and self.terms.shape == (k,)
        )
        if not whole or any(
            s.counts.shape != (k,) or {s.centres.size, s.about.size, s.sums.size} != {k * d}
            for s in self.steps
        ):
            raise UsageError(
                "clusters",
                "they have another number of centres than of weights",
                "Load a file that release.save wrote",
            )
        # Always found anew: a file tells it to its readers, and is not believed.
        msgspec.structs.force_setattr(
            self, "flags", tuple((self.weights > self.accuracy()).tolist())
        )

    @cached_property
    def space(self) -> Space:
        """The whole numbers in which rows were clustered."""
        return Space(self.lattice)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self.lattice.names

    @property
    def title(self) -> str:
        return f"{len(self.weights)} clusters of {' x '.join(self.axes)}"

    @cached_property
    def _whole(self) -> Array:
        return self.whole_centres.reshape(len(self.weights), -1)

    @property
    def centers(self) -> Array:
        """Centres in the axes' own units: float64 ndarray of shape (k, d). Dates count days, times microseconds, since 1970."""
        return self.space.place(self._whole)

    @property
    def scaled_centers(self) -> Array:
        """Centres with each axis scaled to -1 .. 1, in which distances are measured: float64 ndarray of shape (k, d)."""
        return self._whole / HALF

    @property
    def values(self) -> Array:
        """The weights: int64 ndarray of shape (k,)."""
        return self.weights

    def numbers(self) -> tuple[int, ...]:
        """The number of rows, where it was paid for; the numbers of the partition; then the sums and counts of each step."""
        found = [] if self.rows is None else [self.rows]
        found += () if self.partition is None else self.partition.numbers()
        for step in self.steps:
            found += [*step.sums.tolist(), *step.counts.tolist()]
        return tuple(found)

    @property
    def known(self) -> Array:
        """Whether each cluster's weight can be told from 0 (95%): bool ndarray of shape (k,). Elsewhere the centre says nothing."""
        return np.array(self.flags)

    @property
    def unknowns(self) -> str:
        """What is not known, in a sentence."""
        unknown = len(self.flags) - sum(self.flags)
        return (
            f"{unknown} of {len(self.flags)} centres are not known: their weights cannot be told from 0."
            if unknown
            else ""
        )

    @cached_property
    def standard_error(self) -> Array:
        """How far each centre is from the mean of the rows nearest to it, root mean square: float64 ndarray of shape (k, d).

        In the axes' own units. The truth that it is about is the mean of the rows, clamped to the bounds, whose nearest centre this
        is (``predict`` says which they are); centre +- 1.96 standard errors hold it with 95 % confidence at least. The noise enters
        by its exact law. How far the region of the centre differs from the one whose mean was paid for is estimated from the
        partition, whose rows are taken to lie evenly within its cells; half a cell of the lattice is added. See ``clustering.error``,
        and ``rounding_error`` for values that were rounded to a step which is not declared.
        It does not say how good the clusters are: noise decides those, too, and k-means finds a local optimum. Infinite where the
        weight cannot be told from 0.
        """
        if self.steps or self.partition is not None:
            whole = root_mean_square(self.space, self._whole, self.partition, self.steps)
        else:
            whole = np.full(self._whole.shape, np.inf)
        seen = np.asarray(self.weights > self.accuracy())[:, None]
        found = np.where(seen, whole * self.space.widths, np.inf)
        found.flags.writeable = False
        return np.asarray(found)

    @property
    def rounding_error(self) -> Array:
        """How much farther a centre may be from that mean if values were rounded: float64 (d,).

        In the axes' own units. ``standard_error`` presumes that the rows of one cell of a grid lie in
        it independently of those of other cells. Values rounded to a step that the axis does not
        declare may all lie at one side of their cells, and no count shows it. Centre +- (1.96 standard
        errors + this) holds the mean of such rows, too. It is half a cell of the grid for "eugkm", and 0
        for the other ways, which see rows on the lattice. If the step is declared, it is half a cell
        less half a step: 0 where cells are steps.
        """
        whole = rounding(self.space, self.partition, self.steps)
        return np.asarray(whole * self.space.widths)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        alpha = error_probability(confidence)
        alpha = sidak(alpha, len(self.weights)) if simultaneous else alpha
        several = np.ceil(self.law.sum_half_width(self.terms, alpha)).astype(np.int64)
        return np.asarray(np.where(self.terms == 1, self.law.half_width(alpha), several))

    def predict(self, points: ArrayLike) -> Array:
        """Which centre is nearest to each point, each axis scaled to its public bounds?

        Parameters
        ----------
        points : array-like of shape (n, d), in the order of ``axes``
            Your own points; those outside the domain are clamped to it, as the counted rows were.

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
            raise UsageError(
                asked,
                f"the clusters have the axes {', '.join(self.axes)}",
                f"Give an array of shape (n, {len(self.axes)})",
            )
        missing = np.isnan(array).any(axis=1)
        known = np.where(missing.reshape(-1, 1), 0.0, array)
        found = nearest(self.space.whole(self.space.scale(known)), self._whole)
        found[missing] = -1
        return found

    def to_frame(self) -> pa.Table:
        """One row per cluster: the centre by axis, its standard error by axis, count, low, high (95%), known.

        ``known`` is false where the weight cannot be told from 0: the centre is then not known either.
        """
        import pyarrow as pa

        centers, error = self.centers, self.standard_error
        columns = {a.name: edge_array(centers[:, i], a.time) for i, a in enumerate(self.space.axes)}
        columns |= {f"{axis.name}_error": error[:, i] for i, axis in enumerate(self.space.axes)}
        low, high = self.interval()
        return pa.table(
            columns | {"count": self.weights, "low": low, "high": high, "known": self.known}
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Centres with their groups' areas over two axes, or against the weights along one; further axes are left out."""
        from sfumato.charts import clusters

        return clusters.draw(self, ax)
