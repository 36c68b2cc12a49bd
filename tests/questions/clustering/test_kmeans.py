"""The question and its release: parameters, previews, what the answer holds, and odd tables."""

import json

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.question import AnyQuestion
from sfumato.audit.runs import Scripted, count
from sfumato.basics.structs import from_plain
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.questions.clustering.kmeans import FEW_ROWS
from sfumato.questions.clustering.lloyd import nearest
from sfumato.random import PublicSeed
from support.canary import overheard

PLANE = sf.Domain(x=sf.Interval(0, 10), y=sf.Interval(-1, 1), kind=sf.Categories(["a"]))
SPACE = sf.Domain(
    x=sf.Interval(0, 10), y=sf.Interval(-1, 1), z=sf.Interval(0, 1)
)  # three axes have a sparse cube, which is quick
METHODS = ["auto", "eugkm", "dplloyd", "privtree"]
CENTRES = np.array([[2.0, -0.5], [8.0, 0.5], [3.0, 0.6]])
ODD = {
    "no rows": np.zeros((0, 2)),
    "all missing": np.full((5, 2), np.nan),
    "one row": np.array([[5.0, 0.0]]),
    "all equal": np.full((300, 2), 0.5),
    "all outside": np.full((300, 2), 1e30),
    "infinite": np.array([[np.inf, -np.inf]] * 50),
    "a constant axis": np.stack([np.linspace(0, 10, 400), np.zeros(400)], axis=1),
}


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(0, 3, n)] + rng.normal(size=(n, 2)) * [0.3, 0.06]


def publisher(data, domain=None, **options):
    return sf.Publisher(
        sf.source(data, domain or sf.Domain(x=PLANE["x"], y=PLANE["y"]), name="t", **options),
        budget="100",
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cost", [{"epsilon": "2", "delta": "1e-9"}, {"rho": "0.5"}], ids=str)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_finds_clusters_and_says_how_well(method, cost, relation):
    data = np.concatenate([points(20_000), np.full((20_000, 1), 0.5)], axis=1)
    src = sf.source(data, SPACE, name="t", neighbours=relation)
    budget = sf.ZCDP(10) if "rho" in cost else sf.ApproxDP(10, "1e-6")
    with (
        sf.Publisher(src, budget=budget) as pub,
        sf.testing.deterministic(1),
    ):  # luck is to decide nothing
        release = pub.release(sf.KMeans(3, method=method), **cost)
    distance = (
        np.abs(
            release.scaled_centers[:, None]
            - release.space.scale(np.concatenate([CENTRES, np.full((3, 1), 0.5)], axis=1))
        )
        .max(axis=2)
        .min(axis=0)
    )
    assert distance.max() < 0.05
    assert release.weights.sum() == pytest.approx(20_000, rel=0.05)
    assert release.standard_error.shape == (3, 3)
    assert (release.standard_error < 0.2).all()
    assert isinstance(release, sf.KMeansRelease)
    assert release.guarantee.measure == (sf.ZCDP("0.5") if "rho" in cost else sf.PureDP(2))


@pytest.mark.parametrize("method", METHODS)
def test_a_release_travels(method, tmp_path):
    with publisher(points(500)) as pub:
        release = pub.release(sf.KMeans(3, method=method), epsilon="1")
        again = pub.release(sf.KMeans(3, method=method), epsilon="1")
    loaded = sf.load(release.save(tmp_path / "r.json"))
    assert release == loaded == again
    assert np.array_equal(release.centers, loaded.centers)
    assert np.array_equal(release.standard_error, loaded.standard_error)
    frame = release.to_frame()
    assert frame.column_names == [
        *("x", "y", "x_error", "y_error", "known", "averaged", "averaged_low", "averaged_high"),
        *("predicted", "predicted_low", "predicted_high"),
    ]
    assert frame["averaged"].to_pylist() == release.weights.tolist() == release.values.tolist()
    assert repr(release) == "<KMeansRelease: 3 clusters of x x y; epsilon = 1>"
    sf.report(release, tmp_path / "report.html")
    assert "centre, area by weight" in (tmp_path / "report.html").read_text()


def test_files_with_other_shapes_are_refused(tmp_path):
    with publisher(points(50)) as pub:
        path = pub.release(sf.KMeans(2, method="dplloyd"), epsilon="1").save(tmp_path / "r.json")
    plain = json.loads(path.read_text())
    for field in ("weights", "whole_centres", "terms"):
        path.write_text(json.dumps(plain | {field: plain[field][:-1]}))
        with pytest.raises(sf.DataError):
            sf.load(path)


def test_predict_takes_points_of_ones_own():
    with publisher(points(5000)) as pub:
        release = pub.release(sf.KMeans(3), epsilon="5")
    assert release.predict(release.centers).tolist() == [0, 1, 2]
    assert release.predict([[np.nan, 0], [-1e9, -1e300], [np.inf, 1]])[0] == -1
    assert release.predict(np.zeros((0, 2))).shape == (0,)
    for wrong in (np.zeros(3), np.zeros((2, 3)), [["a", "b"]], None):
        with pytest.raises(sf.UsageError, match="points"):
            release.predict(wrong)


@pytest.mark.parametrize(
    "fields",
    [
        {"n_clusters": 0},
        {"n_clusters": -1},
        {"n_clusters": True},
        {"n_clusters": 2.5},
        {"n_clusters": 1001},
        {"method": "best"},
        {"axes": 3},
    ],
)
def test_parameters_that_make_no_sense(fields):
    with pytest.raises(sf.UsageError):
        sf.KMeans(**fields)


def test_axes():
    assert sf.KMeans(axes="x").needs(PLANE).lattice.names == ("x",)
    assert sf.KMeans().needs(PLANE).lattice.names == ("x", "y")
    with pytest.raises(sf.UsageError, match="Interval axes"):
        sf.KMeans(axes="kind").needs(PLANE)
    with pytest.raises(sf.UsageError, match="limit"):
        sf.KMeans().needs(sf.Domain({f"a{i}": sf.Interval(0, 1) for i in range(1025)}))


def test_the_question_is_a_value():
    question = from_plain(
        {"type": "kmeans", "n_clusters": 4, "axes": ["x"], "method": "eugkm"}, AnyQuestion
    )
    assert question == sf.KMeans(4, axes=["x"], method="eugkm")
    assert question.title == "4 clusters of x"
    assert sf.KMeans().title == "5 clusters"


@pytest.mark.parametrize("unit", [sf.Unit(), sf.Unit(2, "replace")], ids=str)
@pytest.mark.parametrize("cost", [sf.PureDP(1), sf.ZCDP("0.5")], ids=str)
@pytest.mark.parametrize(
    ("method", "rows"), [("eugkm", 0), ("eugkm", 3000), ("dplloyd", 3000), ("auto", 100)]
)
def test_the_preview_is_what_the_release_then_has(method, rows, cost, unit):
    question = sf.KMeans(3, ["x", "y"], method=method)
    preview = question.preview(PLANE, unit, cost, rows=rows)
    data = tuple(map(tuple, points(rows).tolist()))
    release = question.answer(count(data, question.needs(PLANE).lattice), unit, cost, Scripted())
    assert release.law == preview.law
    assert preview.cost == release.guarantee.measure
    if release.partition is not None:
        assert preview.terms == len(release.partition.counts)
        assert preview.accuracy() >= release.accuracy().max()
        assert preview.accuracy(simultaneous=True) >= release.accuracy(simultaneous=True).max()
    else:
        assert preview.accuracy() == release.accuracy()[0]
    assert str(preview)


def test_a_preview_without_rows_promises_no_more_than_holds():
    for method in METHODS:
        preview = sf.preview(sf.KMeans(3, method=method), domain=PLANE, unit=sf.Unit(), epsilon="1")
        assert str(preview)
    with pytest.raises(sf.UsageError, match="State rows="):
        sf.preview(
            sf.KMeans(3, method="eugkm"), domain=PLANE, unit=sf.Unit(), epsilon="1"
        ).accuracy()
    worst = sf.KMeans(3, method="dplloyd").preview(PLANE, sf.Unit(), sf.PureDP(1))
    assert (
        worst.accuracy()
        >= sf.KMeans(3, method="dplloyd").preview(PLANE, sf.Unit(), sf.PureDP(1), 1000).accuracy()
    )


def test_auto_takes_a_grid_where_rows_are_few():
    question = sf.KMeans(3, ["x", "y"])
    few, many = (
        question.preview(PLANE, sf.Unit(), sf.PureDP(1), rows)
        for rows in (FEW_ROWS // 2, 2 * FEW_ROWS)
    )
    assert "eugkm" in few.notes[-1]
    assert "privtree" in many.notes[-1]


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
@pytest.mark.parametrize("method", METHODS)
def test_odd_tables_get_an_answer(data, method):
    with publisher(np.concatenate([data, data[:, 1:]], axis=1), SPACE) as pub:
        for epsilon in ("0.001", "1", "90"):
            release = pub.release(sf.KMeans(7, method=method), epsilon=epsilon)
            assert release.centers.shape == (7, 3)
            assert ((release.centers >= [0, -1, 0]) & (release.centers <= [10, 1, 1])).all()
            assert not np.isnan(release.standard_error).any()


def test_noise_beyond_all_integers_is_refused_before_the_charge():
    domain = sf.Domain({f"a{i}": sf.Interval(0, 1) for i in range(200)})
    with publisher(np.zeros((3, 200)), domain) as pub:
        for method in ("dplloyd", "privtree"):
            with pytest.raises(sf.UsageError, match="noise of scale"):
                pub.release(sf.KMeans(2, method=method), epsilon="1e-6")
        assert pub.account.spent == (0, 0)


def test_nothing_of_a_row_is_to_be_seen():
    canary = 7.3187654321
    data = pa.table({"x": [canary, 1.0], "y": [0.0, 0.5], "z": [0.1, 0.9]})
    for method in METHODS:

        def ask(method=method):
            with publisher(data, SPACE) as pub:
                release = pub.release(sf.KMeans(2, method=method), epsilon="0.01")
                return str(release), repr(release), release.to_frame().to_pylist()

        assert not overheard(canary, ask)


def test_weights_of_steps_are_covered_as_often_as_they_say():
    """The groups of the last step were fixed before its noise was drawn."""
    lattice = Lattice((GridAxis("x", 0.0, 10.0, 64), GridAxis("y", -1.0, 1.0, 64)))
    question, cube = (
        sf.KMeans(2, method="dplloyd"),
        count(tuple(map(tuple, points(300).tolist())), lattice),
    )
    hits, noise = [], PublicSeed(1)  # luck is to decide nothing
    for _ in range(400):
        release = question.answer(cube, sf.Unit(), sf.PureDP("0.5"), noise)
        where, number = release.space.rows(cube)
        truth = np.bincount(nearest(where, release.steps[-1].centres.reshape(2, 2)), number, 2)
        low, high = release.interval()
        hits += ((low <= truth) & (truth <= high)).tolist()
    assert 0.93 < np.mean(hits) < 0.985


def test_a_public_seed_is_stamped():
    question = sf.KMeans(2, ["x", "y"], method="eugkm")
    release = question.answer(
        count(((1.0, 0.0),), question.needs(PLANE).lattice), sf.Unit(), sf.PureDP(1), PublicSeed(1)
    )
    assert not release.guarantee.private
