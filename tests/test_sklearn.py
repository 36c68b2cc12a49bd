"""The estimator: scikit-learn's manners where they are harmless, and refusals elsewhere."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sfumato as sf
from sfumato.sklearn import KMeans

ROWS = np.repeat([[1.0, 5.0, 0.0], [8.0, 1.0, 0.5], [4.0, 9.0, 1.0]], 400, axis=0) + np.tile(
    [[-0.1], [0.1]], (600, 1)
)
BOUNDS = ([0, 0, -1], 10)


def model(**options):
    return KMeans(**({"n_clusters": 3, "epsilon": 5, "bounds": BOUNDS} | options))


def test_fit_predict_and_transform():
    fitted = model().fit(ROWS)
    assert fitted.cluster_centers_.shape == (3, 3)
    assert fitted.n_features_in_ == 3
    own = np.array([[1.0, 5.0, 0.0], [8.0, 1.0, 0.5], [np.nan, 0, 0]])
    assert fitted.predict(own)[2] == -1
    assert len(set(fitted.predict(own)[:2])) == 2
    distances = fitted.transform(own[:2])
    assert (distances.argmin(axis=1) == fitted.predict(own)[:2]).all()
    assert fitted.cluster_weights_.sum() == pytest.approx(1200, abs=100)


def test_there_are_no_labels_and_no_inertia():
    fitted = model().fit(ROWS)
    assert not hasattr(fitted, "labels_")
    assert not hasattr(fitted, "inertia_")
    with pytest.raises(sf.UsageError, match="exact facts"):
        model().fit_predict(ROWS)
    with pytest.raises(sf.UsageError, match="exact facts"):
        model().fit_transform(ROWS)


def test_a_second_fit_is_refused_on_spent_budget():
    fitted = model().fit(ROWS)
    before = fitted.cluster_centers_.copy()
    for again in (fitted, pickle.loads(pickle.dumps(fitted))):
        with pytest.raises(sf.BudgetExceeded):
            again.fit(ROWS)
        assert np.array_equal(again.cluster_centers_, before)
    several = model(budget=10).fit(ROWS)
    several.fit(ROWS)
    with pytest.raises(sf.BudgetExceeded):
        several.fit(ROWS)


def test_what_is_refused_spends_nothing():
    estimator = model(bounds=None)
    with pytest.raises(sf.BoundsRequired):
        estimator.fit(ROWS)
    estimator.set_params(bounds=BOUNDS).fit(ROWS)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": None},
        {"n_clusters": 0},
        {"method": "best"},
        {"epsilon": -1},
        {"bounds": (1, 0)},
        {"bounds": "01"},
        {"bounds": ([0, 0], 1)},
    ],
)
def test_parameters_that_make_no_sense(options):
    with pytest.raises(sf.UsageError):
        model(**options).fit(ROWS)


@pytest.mark.parametrize("rows", [np.zeros(3), [["a", "b", "c"]], np.zeros((3, 0)), None])
def test_rows_that_are_no_table(rows):
    with pytest.raises(sf.UsageError):
        model().fit(rows)


def test_scikit_learns_own_manners():
    estimator = model(method="dplloyd", budget="7")
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert "n_clusters=3" in repr(estimator)
    with pytest.raises(NotFittedError):
        estimator.predict(ROWS)
    with pytest.raises(NotFittedError):
        estimator.transform(ROWS)
    fitted = make_pipeline(FunctionTransformer(), model()).fit(ROWS)
    assert fitted.predict(ROWS[:2]).shape == (2,)
    assert clone(estimator.fit(ROWS)).fit(
        ROWS
    )  # a clone is a new object with a budget of its own, as its parameters say


def test_a_pickle_holds_no_row():
    odd = np.full((500, 3), 7.3187654321)
    assert np.float64(7.3187654321).tobytes() not in pickle.dumps(model().fit(odd))
