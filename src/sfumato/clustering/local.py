"""k-means with no trusted curator, under the source's names: each device perturbs its own point, the server clusters reports."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Array
from sfumato.centers import assign, kmeans, sse
from sfumato.errors import UsageError, shown
from sfumato.local.bpm import BPM
from sfumato.local.client import Bounds, from_unit, read_bounds, to_unit
from sfumato.local.decoding.decoder import Decoded, check_clusters, decode
from sfumato.local.laplace import MultivariateLaplace
from sfumato.local.mechanism import read_array
from sfumato.local.sampling.floats import Floats
from sfumato.numbers import Exactly, probability
from sfumato.privacy.guarantee import Guarantee
from sfumato.random.bits import current

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.charts.style import Panels

METHODS = ("aware", "naive")
MECHANISMS = ("bpm", "laplace")
BLIND = 0.25
"""Where a lone centre would be off by this part of the cube's side, reports say next to nothing."""


class PrivateKMeans:
    """Find clusters of points that nobody but their owners ever sees.

    Parameters
    ----------
    n_clusters : int
    epsilon : str, int, Fraction, Decimal or float
        Above 0, per unit of distance in the unit cube; each person's device spends it once for each ``fit``.
    L : the same, or "auto"
        How far BPM draws a report to its point.
    random_state : int or None
        Seeds the server's search for clusters, never the noise.
    max_iter : int
        Most steps of k-means, for ``method="naive"``.
    mechanism : {"bpm", "laplace"}
    method : {"aware", "naive"}
        Decode with the known law of the noise, or run k-means on the reports as they are, as the source does.
    bounds : mapping of Interval, sequence of (lower, upper), or None
        Public bounds of each axis; None: points lie in the unit cube. Never the data's own minimum and maximum.

    Attributes
    ----------
    cluster_centers_ : float64 ndarray of shape (n_clusters, d), in the points' own units
    weights_ : float64 ndarray of shape (n_clusters,)
        Estimated share of the persons nearest to each centre.
    reports_ : float64 ndarray of shape (n, d)
        What the server saw, in the unit cube's scale.
    mechanism_ : BPM or MultivariateLaplace
    in_model_ : bool or None
        Whether the reports look like those of ``n_clusters`` round normal clusters, which the intervals presume. None for
        ``method="naive"``.
    fits_ : int
        How often ``fit`` let the devices report: each costs every person epsilon again.

    Warns
    -----
    UserWarning
        If there are too few reports to place even one centre within a quarter of the cube's side: the centres are then mostly a guess.

    There are no labels and no inertia of the true points: they would be exact facts about private values.

    Guarantee: epsilon d_E-privacy of each person's point, once for each ``fit``; see ``BPM``.
    Not covered: ``predict`` and ``compute_sse`` look at whatever they are given; on true points they are for evaluation only.
    Source: Yang, Tjuawinata, Lam 2022, Alg. 1; the decoder is ours.

    >>> points = np.random.default_rng(0).random((500, 2)) / 4
    >>> PrivateKMeans(n_clusters=1, epsilon=8, random_state=0).fit(points).cluster_centers_.shape
    (1, 2)
    """

    def __init__(
        self,
        n_clusters: int = 3,
        *,
        epsilon: Exactly,
        L: Exactly = "auto",  # noqa: N803
        random_state: int | None = None,
        max_iter: int = 300,
        mechanism: Literal["bpm", "laplace"] = "bpm",
        method: Literal["aware", "naive"] = "aware",
        bounds: Bounds | None = None,
    ) -> None:
        for name, value, known in (
            ("mechanism", mechanism, MECHANISMS),
            ("method", method, METHODS),
        ):
            if value not in known:
                raise UsageError(
                    f"{name} = {shown(value)}",
                    f"there are {known[0]!r} and {known[1]!r}",
                    "Choose one of them",
                )
        if isinstance(max_iter, bool) or not isinstance(max_iter, int) or max_iter < 1:
            raise UsageError(
                f"max_iter = {shown(max_iter)}", "it is a whole number from 1 on", "Leave it at 300"
            )
        if random_state is not None and (
            isinstance(random_state, bool) or not isinstance(random_state, int) or random_state < 0
        ):
            raise UsageError(
                "random_state",
                "it is neither None nor a whole number from 0 on",
                "Give a number such as 42, or leave it out",
            )
        self.n_clusters, self.epsilon, self.L = check_clusters(n_clusters, 10**9), epsilon, L
        self.random_state, self.max_iter = random_state, max_iter
        self.mechanism, self.method, self.bounds = mechanism, method, bounds
        self.fits_ = 0
        self._made(1)  # bad parameters are refused here

    def _made(self, dimension: int) -> BPM | MultivariateLaplace:
        match self.mechanism:
            case "bpm":
                return BPM(self.epsilon, self.L, dimension)
            case "laplace":
                return MultivariateLaplace(self.epsilon, dimension)

    def fit(self, X: ArrayLike) -> PrivateKMeans:  # noqa: N803
        """Simulate the devices, one row of X each, then the server, which sees their reports only.

        X is a float array of shape (n, d); values outside the bounds are clamped.
        """
        points = self._scaled(X)
        check_clusters(self.n_clusters, len(points))
        mechanism = self._made(points.shape[1])
        reports = mechanism.perturb(points)
        self.fits_ += 1
        return self.fit_reports(reports)  # under the same bits, which say whether it is private

    def fit_reports(self, reports: ArrayLike) -> PrivateKMeans:
        """Cluster reports, float64 of shape (n, d) in the unit cube's scale: what a real server calls."""
        shape = np.shape(reports)
        if len(shape) != 2 or not shape[1]:
            raise UsageError(
                f"reports of shape {shape}",
                "reports form a table, one row a person",
                "Give an array of shape (n, d)",
            )
        found, mechanism = read_array(reports, shape[1], "reports"), self._made(shape[1])
        check_clusters(self.n_clusters, len(found))
        if not np.isfinite(mechanism.log_density(np.zeros(shape[1]), found)).all():
            raise UsageError(
                "reports",
                "one lies outside the report space",
                "Give what perturb returned, in the unit cube's scale",
            )
        self.mechanism_, self.reports_ = mechanism, found
        self._private = current().private
        self._warn(len(found))
        rng = np.random.default_rng(self.random_state)
        self._decoded: Decoded | None = None
        if self.method == "naive":
            self._unit_centers = kmeans(
                found, self.n_clusters, seed=rng, tries=4, steps=self.max_iter
            )
            self.weights_ = np.bincount(
                assign(found, self._unit_centers), minlength=self.n_clusters
            ) / len(found)
        else:
            self._decoded = decode(found, self.mechanism_, self.n_clusters, rng)
            self._unit_centers, self.weights_ = self._decoded.centers, self._decoded.weights
        self.in_model_ = None if self._decoded is None else self._decoded.in_model
        limits = self._limits(shape[1])
        self.cluster_centers_ = (
            self._unit_centers if limits is None else from_unit(self._unit_centers, limits)
        )
        return self

    def _warn(self, reports: int) -> None:
        """Say so where reports are too few; how many there are is no secret of theirs."""
        needed = self.mechanism_.reports_needed(BLIND)
        if reports >= needed:
            return
        text = f"{reports:,} reports by {self.mechanism_.title} say next to nothing of where anybody is: a single centre takes {needed:.1e}"
        better = BPM(self.epsilon, "auto", self.mechanism_.dimension).reports_needed(BLIND)
        hint = (
            f'L = "auto" takes {better:,}, and a larger epsilon fewer.'
            if better < needed
            else "A larger epsilon takes fewer."
        )
        warnings.warn(f"{text}. {hint}", stacklevel=3)

    @property
    def guarantee_(self) -> Guarantee:
        """What each report promises: nothing if they were drawn, or clustered, in ``testing.deterministic``."""
        self._fitted()
        return msgspec.structs.replace(self.mechanism_.guarantee, private=self._private)

    def intervals(self, confidence: Exactly = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends for the centres, each of shape (n_clusters, d), one coordinate at a time.

        They are about the centres that k-means would find on the points of all persons who reported, and hold the randomness of the
        devices' noise and of the server's own draws. They hold as stated where the points are ``n_clusters`` round normal clusters.
        Where the reports show that they are not, ``in_model_`` is False, and the intervals are wider by what that does to the centres,
        as far as twice as many clusters tell: then the confidence is not proved. Where noise hides the shape, so does it the fault.
        """
        self._fitted()
        if self._decoded is None:
            raise UsageError(
                "intervals of naive centres",
                "k-means on the reports does not know their noise",
                'Take method="aware"',
            )
        half = self._decoded.half_widths(float(probability(confidence, "confidence")))
        ends = [self._decoded.centers + sign * half for sign in (-1, 1)]
        limits = self._limits(ends[0].shape[1])
        low, high = (each if limits is None else from_unit(each, limits) for each in ends)
        return low, high

    def predict(self, points: ArrayLike) -> Array:
        """Index of the nearest centre, in scaled distance: int64 of shape (n,). On true points: for evaluation only."""
        self._fitted()
        return assign(self._placed(points), self._unit_centers)

    def compute_sse(self, X: ArrayLike) -> float:  # noqa: N803
        """Sum of squared scaled distances to the nearest centre. On true points it is an exact fact: for evaluation only."""
        self._fitted()
        return sse(self._placed(X), self._unit_centers)

    def plot(self, ax: Panels | None = None, points: ArrayLike | None = None) -> Axes | Array:
        """Draw the reports and the centres in the first two axes; ``points`` draws true ones as well, for evaluation only.

        Returns
        -------
        Axes, or an array of two where there are points
        """
        from sfumato.charts import reports as local

        self._fitted()
        true = None if points is None else self._scaled(points)
        return local.draw_clusters(self.reports_, self._unit_centers, ax, points=true)

    def _limits(self, dimension: int) -> Floats | None:
        return None if self.bounds is None else read_bounds(self.bounds, dimension)

    def _scaled(self, X: ArrayLike) -> Floats:  # noqa: N803
        given = np.asarray(X)
        if given.ndim != 2 or not given.size:
            raise UsageError(
                f"points of shape {given.shape}",
                "points form a table, one row a person",
                "Give an array of shape (n, d)",
            )
        found = read_array(X, given.shape[1], "points")
        limits = self._limits(given.shape[1])
        return np.asarray(np.clip(found, 0, 1)) if limits is None else to_unit(found, limits)

    def _placed(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Points in the scale of the centres, and with as many axes."""
        found, dimension = self._scaled(X), self._unit_centers.shape[1]
        if found.shape[1] != dimension:
            raise UsageError(
                f"points of shape {found.shape}",
                f"the centres have {dimension} axes",
                f"Give an array of shape (n, {dimension})",
            )
        return found

    def _fitted(self) -> None:
        if not hasattr(self, "cluster_centers_"):
            raise UsageError(
                "an answer of PrivateKMeans",
                "it has seen no reports",
                "Call fit or fit_reports first",
            )

    def __repr__(self) -> str:
        stamp = "" if getattr(self, "_private", True) else "; NOT PRIVATE"
        what = f"n_clusters={self.n_clusters}, epsilon={self.epsilon!r}, L={self.L!r}, mechanism={self.mechanism!r}"
        return f"PrivateKMeans({what}){stamp}"
