"""The answer of k-means: centres of clusters, their accuracy, and what one can ask of them."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Self

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers import Axes, Captions, Estimate, Release, drawn, error_probability
from sfumato.basics import Array, Exactly, sidak, table_of
from sfumato.domain import Lattice
from sfumato.errors import printable, require_fitting
from sfumato.mechanisms import Law, sum_half_width
from sfumato.questions.clustering.error import Cells, root_mean_square, rounding
from sfumato.questions.clustering.lloyd import HALF, Space, Step, nearest
from sfumato.questions.partition.geometry import read_points
from sfumato.questions.partition.release import Partition


class KMeansRelease(
    Release,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="kmeans-release",
    dict=True,
    forbid_unknown_fields=True,
):
    """Centres of clusters, and how many rows each stands for.

    No row is assigned to a cluster here: ``predict`` takes points of your own. The centres follow
    from the noisy integers that were paid for. These are all here: those of a partition, and those
    of steps.

    Attributes
    ----------
    method : str
        The method that found the centres: "eugkm", "dplloyd" or "privtree".
    lattice : Lattice
        The lattice on which the rows were counted.
    whole_centres : int64 ndarray of shape (k * d,)
        The centres. Each axis has 2^20 steps on each side of its middle.
    weights : int64 ndarray of shape (k,)
        Noisy numbers of rows in the groups whose means the centres are. They may be negative. They
        are not how many rows ``predict`` gives to the centres: see ``predicted``.
    terms : int64 ndarray of shape (k,)
        How many noisy counts each weight adds up.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each of those counts, independent.
    rows : int or None
        The noisy number of rows, where it was paid for.
    partition : Partition or None
        The partition whose cells were clustered.
    steps : tuple of Step
        Lloyd's steps with noise.
    flags : tuple of bool, "known" in files
        Whether each weight can be told from 0 (95%). Where it cannot, the centre says nothing.

    >>> import numpy as np, sfumato as sf
    >>> points = np.array([[0.2, 0.3], [0.2, 0.2], [0.8, 0.9]])
    >>> domain = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))
    >>> src = sf.source(points, domain, name="points")
    >>> release = sf.Publisher(src, budget="1").release(sf.KMeans(n_clusters=2), epsilon="1")
    >>> release.centers.shape, release.weights.shape, release.known.shape
    ((2, 2), (2,), (2,))
    >>> release.predict(np.array([[0.1, 0.1], [0.9, 0.9]])).shape
    (2,)
    """

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {
            *("flags", "lattice", "law", "scaled_centers", "space", "steps", "terms"),
            "whole_centres",
        }
    )

    noun: ClassVar[str] = "weight"
    amounts: ClassVar[frozenset[str]] = frozenset(
        f"{name}{end}" for name in ("averaged", "predicted") for end in ("", "_low", "_high")
    )

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
        require_fitting(
            self._is_whole(),
            "clusters",
            "they have another number of centres than of weights",
        )
        # The flags are always computed anew. A file shows them to its readers, but is not believed.
        flags = tuple((self.weights > self.accuracy()).tolist())
        msgspec.structs.force_setattr(self, "flags", flags)

    def _is_whole(self) -> bool:
        """Tell whether the parts fit together. A file may hold anything."""
        k = len(self.weights)
        d = len(self.lattice.axes)
        if not k or not d or len(self.lattice.grids) < d:
            return False
        if self.whole_centres.shape != (k * d,) or self.terms.shape != (k,):
            return False
        return all(
            step.counts.shape == (k,)
            and step.centres.size == step.origins.size == step.sums.size == k * d
            for step in self.steps
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
        return f"{len(self.weights)} clusters of {' x '.join(map(printable, self.axes))}"

    @cached_property
    def _whole(self) -> Array:
        return self.whole_centres.reshape(len(self.weights), -1)

    @property
    def centers(self) -> Array:
        """Centres in the axes' own units: float64 ndarray of shape (k, d).

        Dates count days since 1970, times microseconds.
        """
        return self.space.unscale(self._whole)

    @property
    def scaled_centers(self) -> Array:
        """Centres with each axis scaled to -1 .. 1: float64 ndarray of shape (k, d).

        Distances are measured in this scale.
        """
        return self._whole / HALF

    @property
    def values(self) -> Array:
        """The weights: int64 ndarray of shape (k,)."""
        return self.weights

    def numbers(self) -> tuple[int, ...]:
        """All numbers as they were drawn.

        First the number of rows, where it was paid for, then the numbers of the partition, then the
        sums and counts of each step.
        """
        numbers = [] if self.rows is None else [self.rows]
        if self.partition is not None:
            numbers += self.partition.numbers()
        for step in self.steps:
            numbers += step.sums.tolist()
            numbers += step.counts.tolist()
        return tuple(numbers)

    @property
    def known(self) -> Array:
        """Whether each cluster's weight can be told from 0 (95%): bool ndarray of shape (k,).

        Where it cannot, the centre says nothing.
        """
        return np.array(self.flags)

    @property
    def unknowns(self) -> str:
        """A sentence that says how many centres are not known; empty where all are."""
        unknown = len(self.flags) - sum(self.flags)
        if not unknown:
            return ""
        return (
            f"{unknown} of {len(self.flags)} centres are not known: "
            "their weights cannot be told from 0."
        )

    @cached_property
    def standard_error(self) -> Array:
        """How far each centre is from the mean of its nearest rows, as a root mean square: (k, d).

        It is a float64 ndarray in the axes' own units. The truth that it is about is the mean of
        the rows, clamped to the bounds, whose nearest centre this is; ``predict`` says which they
        are. Centre +- 1.96 standard errors hold that mean with at least 95% confidence.

        The noise enters by its exact law. How far the region of the centre differs from the one
        whose mean was paid for is estimated from the partition, whose rows are taken to lie evenly
        within its cells. Half a cell of the lattice is added. ``clustering.error`` gives the
        details; see ``rounding_error`` for values that were rounded to a step which is not
        declared.

        It does not say how good the clusters are: noise decides those too, and k-means finds a
        local optimum. It is infinite where the weight cannot be told from 0.
        """
        if self.steps or self.partition is not None:
            whole = root_mean_square(self.space, self._whole, self.partition, self.steps)
        else:
            whole = np.full(self._whole.shape, np.inf)
        is_known = np.asarray(self.weights > self.accuracy())[:, None]
        errors = np.where(is_known, whole * self.space.widths, np.inf)
        # The property is cached, so all callers share this array.
        errors.flags.writeable = False
        return errors

    @property
    def rounding_error(self) -> Array:
        """How much farther a centre may be from that mean if values were rounded: float64 (d,).

        In the axes' own units. ``standard_error`` presumes that the rows of one cell of a grid lie
        in it independently of those of other cells. Values that were rounded to a step which the
        axis does not declare may all lie at one side of their cells, and no count shows it. Centre
        +- (1.96 standard errors + this) holds the mean of such rows too.

        It is half a cell of the grid for "eugkm", and 0 for the other methods, which see rows on
        the lattice. If the step is declared, it is half a cell less half a step: 0 where cells are
        steps.
        """
        return rounding(self.space, self.partition, self.steps) * self.space.widths

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        alpha = error_probability(confidence)
        alpha_of_weight = sidak(alpha, len(self.weights)) if simultaneous else alpha
        of_sums = np.ceil(self.law.sum_half_width(self.terms, alpha_of_weight)).astype(np.int64)
        # A single count has its exact half-width; the bound on sums may be wider.
        return np.where(self.terms == 1, self.law.half_width(alpha_of_weight), of_sums)

    def predicted(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Estimate:
        """How many rows does ``predict`` give to each centre? Arrays of shape (k,).

        These are other rows than those that ``weights`` count, whose means the centres are: once a
        centre is a mean, other rows may be nearest to it. Where in the cells of the partition the
        rows lie, no count says. So the interval reaches from the cells that lie wholly nearest to
        the centre to all that lie partly so. Without a partition ("dplloyd") it reaches from 0 to
        all rows.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        """
        alpha = error_probability(confidence)
        alpha_of_one = alpha / len(self.weights) if simultaneous else alpha
        low, high, others_low, _ = self._between(alpha_of_one)
        value = np.clip(self._likely, low, high)
        # Where it may be none of the rows and all of them, the answer says nothing.
        says_something = (low > 0) | (others_low > 0)
        return Estimate(value, low, high, 1 - alpha, self._about_predicted, says_something)

    def predicted_shares(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> Estimate:
        """Which share of the rows does ``predict`` give to each centre? Arrays of shape (k,).

        The interval follows from that of the rows nearest to the centre and that of all others,
        each at half of the probability of error. Parameters are those of ``predicted``.
        """
        alpha = error_probability(confidence)
        alpha_of_one = alpha / len(self.weights) if simultaneous else alpha
        low, high, others_low, others_high = self._between(alpha_of_one / 2)
        least = low / np.maximum(low + others_high, 1)
        of_all = np.maximum(high + others_low, 1)
        most = np.where(high > 0, high / of_all, 0)
        likely = np.maximum(self._likely, 0)
        value = np.clip(likely / max(likely.sum(), 1), least, most)
        says_something = (low > 0) | (others_low > 0)
        return Estimate(value, least, most, 1 - alpha, self._about_predicted, says_something)

    @property
    def _about_predicted(self) -> str:
        return f"{self.guarantee.unit.counted}, nearest to each centre"

    @cached_property
    def _cells(self) -> Cells | None:
        """The cells of the partition, in whole numbers."""
        return None if self.partition is None else Cells.of(self.space, self.partition)

    @cached_property
    def _likely(self) -> Array:
        """How many rows are nearest to each centre, if rows lie evenly in cells: (k,)."""
        cells = self._cells
        if cells is None:
            return self.weights.astype(float)
        nearest_now: Array = cells.counts @ cells.shares(self._whole)
        if not self.steps:
            return nearest_now
        before = self.steps[-1].centres.reshape(self._whole.shape)
        return np.asarray(self.weights + nearest_now - cells.counts @ cells.shares(before))

    def _between(self, alpha: float) -> tuple[Array, Array, Array, Array]:
        """Bound how many rows are nearest to each centre, and how many are not: four of (k,).

        Each pair of bounds misses with probability ``alpha``.
        """
        k = len(self.weights)
        partition = self.partition
        if self._cells is None or partition is None:
            total = float(self.weights.sum())
            half = sum_half_width(self.law, int(self.terms.sum()), alpha)
            nothing = np.zeros(k)
            everything = np.full(k, max(total + half, 0.0))
            return nothing, everything, nothing, everything

        def end(chosen: Array, side: int) -> float:
            cells = np.flatnonzero(chosen)
            half = partition.half_width(cells, 1 - alpha)
            return max(float(partition.noisy[cells].sum()) + side * half, 0.0)

        bounds = np.zeros((4, k))
        for at in range(k):
            inside, touched = self._cells.covered(self._whole, at)
            bounds[:, at] = end(inside, -1), end(touched, 1), end(~touched, -1), end(~inside, 1)
        return bounds[0], bounds[1], bounds[2], bounds[3]

    def predict(self, points: np.typing.ArrayLike) -> Array:
        """Which centre is nearest to each point? Each axis is scaled by its public bounds.

        Parameters
        ----------
        points : array-like of shape (n, d), in the order of ``axes``
            Your own points. Those outside the domain are clamped to it, as the counted rows were.

        Returns
        -------
        int64 ndarray of shape (n,); -1 where a coordinate is NaN.
        """
        array = read_points(points, self.axes, "the clusters have")
        missing = np.isnan(array).any(axis=1)
        known = np.where(missing.reshape(-1, 1), 0.0, array)
        groups = nearest(self.space.whole(self.space.scale(known)), self._whole)
        groups[missing] = -1
        return groups

    def to_frame(self) -> pa.Table:
        """One row per cluster.

        The columns are: the centre by axis, its standard error by axis, known, averaged, predicted,
        and the ends of the intervals of these two (95%), such as ``averaged_low``. ``averaged`` is
        the weight: how many rows the centre is the mean of. ``known`` is false where it cannot be
        told from 0. The centre is then not known either. ``predicted`` is how many rows ``predict``
        gives to it.
        """

        columns = {}
        for axis, values in zip(self.space.axes, self.centers.T, strict=True):
            columns[axis.name] = axis.scale.array(values)
        for axis, errors in zip(self.space.axes, self.standard_error.T, strict=True):
            columns[f"{axis.name}_error"] = errors
        low, high = self.interval()
        predicted = self.predicted()
        rows = {
            "known": self.known,
            "averaged": self.weights,
            "averaged_low": low,
            "averaged_high": high,
            "predicted": np.rint(predicted.value).astype(np.int64),
            "predicted_low": np.floor(predicted.low).astype(np.int64),
            "predicted_high": np.ceil(predicted.high).astype(np.int64),
        }
        return table_of(columns | rows)

    def _named(self, captions: Captions) -> Self:
        partition = self.partition
        if partition is not None:
            lattice = captions.lattice(partition.lattice)
            partition = msgspec.structs.replace(partition, lattice=lattice)
        lattice = captions.lattice(self.lattice)
        return msgspec.structs.replace(self, lattice=lattice, partition=partition)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw centres with the areas of their groups over two axes, or with weights along one.

        Further axes are left out.
        """
        return drawn("clusters.draw", self, ax)
