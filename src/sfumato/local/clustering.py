"""k-means with no trusted curator, under the source's names.

Each device adds noise to its own point, and the server clusters the reports.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from sfumato.answers import drawn, drawn_panels
from sfumato.basics import Array, Exactly, probability, whole
from sfumato.basics.kmeans import assign, kmeans, sse
from sfumato.errors import UsageError, explained_methods, shown
from sfumato.local.bpm import BPM
from sfumato.local.client import Bounds, from_unit, read_bounds, to_unit
from sfumato.local.constants import Floats
from sfumato.local.decoder import Decoded, check_clusters, decode
from sfumato.local.mechanism import MultivariateLaplace, read_array
from sfumato.privacy import Guarantee
from sfumato.random.bits import current

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.answers import Panels

METHODS = ("aware", "naive")
MECHANISMS = ("bpm", "laplace")
# If a single centre would be off by this part of the cube's side, reports say next to nothing.
BLIND = 0.25


@explained_methods
class PrivateKMeans:
    """Find clusters of points that only their owners ever see.

    Parameters
    ----------
    n_clusters : int
    epsilon : str, int, Fraction, Decimal or float
        Above 0, per unit of distance in the unit cube. Each person's device spends it once for each
        ``fit``.
    L : the same, or "auto"
        The radius of BPM's ball about the true point, in which reports are more likely.
    random_state : int or None
        Seeds the server's search for clusters, never the noise.
    max_iter : int
        Most steps of k-means, for ``method="naive"``.
    mechanism : {"bpm", "laplace"}
    method : {"aware", "naive"}
        "aware" uses the known law of the noise. "naive" runs k-means on the reports as they are, as
        the source does.
    bounds : mapping of Interval, sequence of (lower, upper), or None
        Public bounds of each axis, never the data's own minimum and maximum. None: points lie in
        the unit cube.

    Attributes
    ----------
    cluster_centers_ : float64 ndarray of shape (n_clusters, d), in the points' own units
    weights_ : float64 ndarray of shape (n_clusters,)
        Estimated share of the persons nearest to each centre.
    reports_ : float64 ndarray of shape (n, d)
        What the server saw, in the unit cube's scale.
    mechanism_ : BPM or MultivariateLaplace
    in_model_ : bool or None
        Whether the reports look like those of ``n_clusters`` round normal clusters, which the
        intervals presume. None for ``method="naive"``.
    evident_ : bool or None
        Whether the reports show where clusters are. If not, the centres are spread evenly over the
        cube. None for ``method="naive"``.
    fits_ : int
        How often ``fit`` let the devices report. Each time costs every person epsilon again.

    Warns
    -----
    UserWarning
        If there are too few reports to place even one centre within a quarter of the cube's side.
        The centres are then mostly a guess.

    There are no labels and no inertia of the true points: they would be exact facts about private
    values.

    Guarantee: epsilon d_E-privacy of each person's point, once for each ``fit``; see ``BPM``.
    Not covered: ``predict`` and ``compute_sse`` look at whatever they are given; on true points
    they are for evaluation only.
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
        whole(
            max_iter,
            "max_iter",
            1,
            obstacle="it is a whole number from 1 on",
            remedy="Leave it at 300",
        )
        if random_state is not None:
            whole(
                random_state,
                "random_state",
                0,
                obstacle="it is neither None nor a whole number from 0 on",
                remedy="Give a number such as 42, or leave it out",
            )
        self.n_clusters = check_clusters(n_clusters, 10**9)
        self.epsilon = epsilon
        self.L = L
        self.random_state = random_state
        self.max_iter = max_iter
        self.mechanism = mechanism
        self.method = method
        self.bounds = bounds
        self.fits_ = 0
        # Parameters that the mechanism refuses are refused here.
        self._mechanism_for(1)

    def _mechanism_for(self, dimension: int) -> BPM | MultivariateLaplace:
        match self.mechanism:
            case "bpm":
                return BPM(self.epsilon, self.L, dimension)
            case "laplace":
                return MultivariateLaplace(self.epsilon, dimension)

    def fit(self, X: np.typing.ArrayLike) -> PrivateKMeans:  # noqa: N803
        """Simulate the devices, then the server, which sees only their reports.

        Parameters
        ----------
        X : float array of shape (n, d)
            One row for each device. Values outside the bounds are clamped.
        """
        points = self._scaled(X)
        # Checked before any device reports, so that a refusal costs nobody any privacy.
        check_clusters(self.n_clusters, len(points))
        reports = self._mechanism_for(points.shape[1]).perturb(points)
        # Each ``fit`` draws new reports, and costs everybody epsilon again.
        self.fits_ += 1
        # It runs under the same bits, which say whether the reports are private.
        return self.fit_reports(reports)

    def fit_reports(self, reports: np.typing.ArrayLike, *, private: bool = True) -> PrivateKMeans:
        """Cluster reports. This is what a real server calls.

        Parameters
        ----------
        reports : float64 array of shape (n, d)
            As ``perturb`` returned them, in the unit cube's scale.
        private : bool
            False: say that their noise came from a public seed, as ``Collector.private`` has it.
        """
        shape = np.shape(reports)
        if len(shape) != 2 or not shape[1]:
            raise UsageError(
                f"reports of shape {shape}",
                "reports form a table, one row a person",
                "Give an array of shape (n, d)",
            )
        given = read_array(reports, shape[1], "reports")
        mechanism = self._mechanism_for(shape[1])
        check_clusters(self.n_clusters, len(given))
        # A report outside the report space has density 0: no device with this mechanism sent it.
        if not np.isfinite(mechanism.log_density(np.zeros(shape[1]), given)).all():
            raise UsageError(
                "reports",
                "one lies outside the report space",
                "Give what perturb returned, in the unit cube's scale",
            )
        self.mechanism_ = mechanism
        self.reports_ = given
        self._private = private and current().private
        self._warn_of_few(len(given))
        self._find_centers(given)
        self.in_model_ = None if self._decoded is None else self._decoded.in_model
        self.evident_ = None if self._decoded is None else self._decoded.evident
        limits = self._limits(shape[1])
        centers = self._unit_centers
        self.cluster_centers_ = centers if limits is None else from_unit(centers, limits)
        return self

    def _find_centers(self, reports: Floats) -> None:
        """Set the centres in the unit cube's scale, and their weights."""
        rng = np.random.default_rng(self.random_state)
        self._decoded: Decoded | None = None
        if self.method == "naive":
            k = self.n_clusters
            self._unit_centers = kmeans(reports, k, seed=rng, tries=4, steps=self.max_iter)
            nearest = assign(reports, self._unit_centers)
            self.weights_ = np.bincount(nearest, minlength=k) / len(reports)
        else:
            self._decoded = decode(reports, self.mechanism_, self.n_clusters, rng)
            self._unit_centers = self._decoded.centers
            self.weights_ = self._decoded.weights

    def _warn_of_few(self, reports: int) -> None:
        """Warn where reports are too few. The number of reports is no secret of theirs."""
        needed = self.mechanism_.reports_needed(BLIND)
        if reports >= needed:
            return
        text = (
            f"{reports:,} reports by {self.mechanism_.title} say next to nothing "
            f"of where anybody is: a single centre takes {needed:.1e}"
        )
        better = BPM(self.epsilon, "auto", self.mechanism_.dimension).reports_needed(BLIND)
        hint = "A larger epsilon takes fewer."
        if better < needed:
            hint = f'L = "auto" takes {better:,}, and a larger epsilon fewer.'
        # The warning points at the caller of fit_reports.
        warnings.warn(f"{text}. {hint}", stacklevel=4)

    @property
    def guarantee_(self) -> Guarantee:
        """What each report promises.

        It is nothing if they were drawn, or clustered, under ``testing.deterministic``.
        """
        self._fitted()
        return msgspec.structs.replace(self.mechanism_.guarantee, private=self._private)

    def intervals(self, confidence: Exactly = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends for the centres, each of shape (n_clusters, d).

        Each coordinate has an interval of its own. The truth that they are about is the centres
        that k-means would find on the points of all persons who reported. They cover the randomness
        of the devices' noise and of the server's own draws.

        They hold as stated if the points are ``n_clusters`` round normal clusters. If the reports
        show that they are not, ``in_model_`` is False, and the intervals are wider by what that
        does to the centres, as far as twice as many clusters show it. The confidence is then not
        proved. Where noise hides the shape of the clusters, it hides this fault too.
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
        low, high = (end if limits is None else from_unit(end, limits) for end in ends)
        return low, high

    def predict(self, points: np.typing.ArrayLike) -> Array:
        """Index of the nearest centre, in scaled distance: int64 ndarray of shape (n,).

        On true points it is for evaluation only.
        """
        self._fitted()
        return assign(self._placed(points), self._unit_centers)

    def compute_sse(self, X: np.typing.ArrayLike) -> float:  # noqa: N803
        """Sum of squared scaled distances to the nearest centre.

        On true points it is an exact fact about them, for evaluation only.
        """
        self._fitted()
        return sse(self._placed(X), self._unit_centers)

    def plot(
        self, ax: Panels | None = None, points: np.typing.ArrayLike | None = None
    ) -> Axes | Array:
        """Draw the reports and the centres in the first two axes.

        ``points`` draws true ones as well, for evaluation only.

        Returns
        -------
        Axes, or an array of two where there are points
        """
        self._fitted()
        if points is None:
            return drawn("local.draw_reports", self.reports_, ax, self._unit_centers)
        return drawn_panels(
            "local.draw_clusters", self.reports_, ax, self._unit_centers, self._scaled(points)
        )

    def _limits(self, dimension: int) -> Floats | None:
        return None if self.bounds is None else read_bounds(self.bounds, dimension)

    def _scaled(self, X: np.typing.ArrayLike) -> Floats:  # noqa: N803
        given = np.asarray(X)
        if given.ndim != 2 or not given.size:
            raise UsageError(
                f"points of shape {given.shape}",
                "points form a table, one row a person",
                "Give an array of shape (n, d)",
            )
        points = read_array(X, given.shape[1], "points")
        limits = self._limits(given.shape[1])
        return np.asarray(np.clip(points, 0, 1)) if limits is None else to_unit(points, limits)

    def _placed(self, X: np.typing.ArrayLike) -> Floats:  # noqa: N803
        """Points in the scale of the centres, with as many axes."""
        points = self._scaled(X)
        dimension = self._unit_centers.shape[1]
        if points.shape[1] != dimension:
            raise UsageError(
                f"points of shape {points.shape}",
                f"the centres have {dimension} axes",
                f"Give an array of shape (n, {dimension})",
            )
        return points

    def _fitted(self) -> None:
        if not hasattr(self, "cluster_centers_"):
            raise UsageError(
                "an answer of PrivateKMeans",
                "it has seen no reports",
                "Call fit or fit_reports first",
            )

    def __repr__(self) -> str:
        stamp = "" if getattr(self, "_private", True) else "; NOT PRIVATE"
        return (
            f"PrivateKMeans(n_clusters={self.n_clusters}, epsilon={self.epsilon!r}, L={self.L!r}, "
            f"mechanism={self.mechanism!r}){stamp}"
        )
