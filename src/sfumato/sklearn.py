"""k-means for pipelines of scikit-learn: an estimator that pays from a budget of its own.

``fit`` answers ``sf.KMeans`` on an array whose columns have public bounds. scikit-learn's own
estimator keeps ``labels_`` and ``inertia_`` beside the centres. These are exact facts about private
rows, so they do not exist here. No row is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.basics import Array, Exactly, as_floats
from sfumato.data import source
from sfumato.domain import Domain, Interval
from sfumato.errors import BoundsRequired, BudgetExceeded, UsageError
from sfumato.privacy import Neighbours
from sfumato.publishing.publisher import Publisher
from sfumato.questions.clustering.kmeans import KMeans as Question
from sfumato.questions.clustering.kmeans import Method
from sfumato.questions.clustering.release import KMeansRelease

if TYPE_CHECKING:
    from sfumato.data import Source


class KMeans(TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Centres of clusters with differential privacy, as scikit-learn estimates them.

    Parameters
    ----------
    n_clusters : int
    epsilon : number or text
        What one ``fit`` costs.
    bounds : pair of array-likes or of numbers
        Public lower and upper ends of the columns, never the data's own minimum and maximum.
    method : {"auto", "eugkm", "dplloyd", "privtree"}
    neighbours : {"add-remove", "replace"}
    rows_per_person : int
        The contribution bound: you state that nobody has more rows than this.
    budget : number, text or None
        What this object may spend in all. None: one fit. A fit beyond the budget is refused.

    Attributes
    ----------
    cluster_centers_ : float64 ndarray of shape (n_clusters, n_features)
    cluster_weights_ : int64 ndarray of shape (n_clusters,)
        Noisy numbers of rows.
    release_ : KMeansRelease
        The whole answer, with its guarantee, accuracy and standard errors.
    n_features_in_ : int

    Guarantee
    ---------
    As ``sf.KMeans``, for each fit. The costs of fits add up, and a fit beyond ``budget`` is
    refused. ``predict`` and ``transform`` are functions of the centres and of the points given to
    them. Applied to the private rows, their answers are facts about private rows.

    >>> rows = np.array([[1.0], [1.5], [8.0], [9.0]] * 100)
    >>> model = KMeans(2, epsilon=1, bounds=(0, 10)).fit(rows)
    >>> model.cluster_centers_.shape
    (2, 1)
    >>> model.fit(np.zeros((3, 1)))
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetExceeded: ...
    """

    def __init__(
        self,
        n_clusters: int = 5,
        *,
        epsilon: Exactly | None = None,
        bounds: Sequence[np.typing.ArrayLike] | Array | None = None,
        method: Method = "auto",
        neighbours: Neighbours = "add-remove",
        rows_per_person: int = 1,
        budget: Exactly | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.bounds = bounds
        self.method = method
        self.neighbours = neighbours
        self.rows_per_person = rows_per_person
        self.budget = budget

    def fit(self, X: np.typing.ArrayLike, y: object = None) -> KMeans:  # noqa: N803
        """Charge the budget, count the rows once, find the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values beyond the bounds are clamped; rows with a missing value are dropped.
        y : ignored

        Raises
        ------
        BoundsRequired
            If bounds are missing.
        UsageError
            If a parameter or the shape of X makes no sense. Nothing is spent.
        BudgetExceeded
            If this object has been fitted before and its budget cannot pay again. Nothing is spent.
        """
        if self.epsilon is None:
            raise UsageError(
                "fitting without a cost",
                "a fit spends privacy, and no epsilon is given",
                "Write KMeans(5, epsilon=1, ...)",
            )
        src = self._source(X)
        question = Question(self.n_clusters, method=self.method)
        release = self._opened(src).release(question, epsilon=self.epsilon, fresh=True)
        if isinstance(release, KMeansRelease):
            self.release_ = release
            self.cluster_centers_ = release.centers
            self.cluster_weights_ = release.weights
            self.n_features_in_ = release.centers.shape[1]
        return self

    def _source(self, rows: np.typing.ArrayLike) -> Source:
        """The rows on a domain of public bounds."""
        array = _table(rows)
        lower, upper = _column_bounds(self.bounds, array.shape[1])
        axes = {}
        for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
            axes[f"x{i}"] = Interval(float(low), float(high))
        return source(
            array,
            Domain(axes),
            rows_per_person=self.rows_per_person,
            neighbours=self.neighbours,
            name="fit",
        )

    def _opened(self, src: Source) -> Publisher:
        """The publisher of this fit. It charges the ledger that this object keeps for its life."""
        total = self.epsilon if self.budget is None else self.budget
        before = getattr(self, "_ledger", None)
        if getattr(self, "_closed", False) or (before is not None and self.budget is None):
            raise BudgetExceeded(
                "a second fit",
                "this object has been fitted, and its budget does not pay for another fit",
                "Use release_, which is free, or give budget= at first",
            )
        opened = Publisher(src, ledger=before, budget=total)
        self._ledger = opened.ledger
        return opened

    def predict(self, X: np.typing.ArrayLike) -> Array:  # noqa: N803
        """The nearest centre of each point: int64 ndarray (n,), -1 where a value is missing."""
        check_is_fitted(self, "release_")
        return self.release_.predict(_table(X))

    def transform(self, X: np.typing.ArrayLike) -> Array:  # noqa: N803
        """Distances to the centres, axes scaled to -1 .. 1: float64 ndarray (n, n_clusters)."""
        check_is_fitted(self, "release_")
        points = self.release_.space.scale(_table(X))
        centres = self.release_.scaled_centers
        return np.asarray(np.sqrt(((points[:, None, :] - centres) ** 2).sum(axis=2)))

    def fit_predict(self, X: np.typing.ArrayLike, y: object = None, **_: object) -> Array:  # noqa: N803
        """Refuse: the answer would be exact labels of the private rows."""
        raise UsageError(
            "fit_predict",
            "labels of the fitted rows are exact facts about them",
            "Call fit, then predict points of your own",
        )

    def fit_transform(self, X: np.typing.ArrayLike, y: object = None, **_: object) -> Array:  # noqa: N803
        """Refuse: the answer would be exact distances of the private rows."""
        raise UsageError(
            "fit_transform",
            "distances of the fitted rows are exact facts about them",
            "Call fit, then transform points of your own",
        )

    def __getstate__(self) -> dict[str, object]:
        """Leave the ledger out: a copy of an estimator that has been fitted cannot fit again."""
        state = {name: value for name, value in vars(self).items() if name != "_ledger"}
        return state | ({"_closed": True} if hasattr(self, "_ledger") else {})


def _table(rows: np.typing.ArrayLike) -> Array:
    array = as_floats(rows)
    if array.ndim != 2 or not array.shape[1]:
        raise UsageError(
            "rows that are no table",
            "an estimator takes a table of numbers",
            "Give an array of shape (n, features)",
        )
    return array


def _column_bounds(bounds: object, features: int) -> tuple[Array, Array]:
    """Public lower and upper ends of the columns: two float64 ndarrays of shape (features,)."""
    wrong = BoundsRequired(
        f"bounds for {features} columns",
        "each column needs a public lower and upper end",
        "Write bounds=(lower, upper)",
    )
    if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str) or len(bounds) != 2:
        raise wrong
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), (features,)) for end in bounds)
    except (TypeError, ValueError):
        raise wrong from None
    return low, high
