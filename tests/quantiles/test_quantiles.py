"""The question from table to answer: values in order on lattice points, ranks as good as stated, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.runs import count
from sfumato.cube import Cube
from sfumato.quantiles.methods import Cells, Way, halved, method_for
from sfumato.quantiles.rank_error import half_width
from sfumato.random.bits import PublicSeed, current
from support.canary import overheard, sightings
from support.laws import Recorder, loss

DOMAIN = sf.Domain(
    x=sf.Interval(-5, 5),
    y=sf.Interval(0, 100, step=1),
    kind=sf.Categories(["a", "b", "c"]),
    day=sf.Interval("2013-01-01", "2014-01-01"),
)
METHODS = ["joint", "recursive", "tree"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    n = 6_000
    return pa.table(
        {
            "x": rng.normal(size=n),
            "y": rng.integers(0, 100, n).astype(float),
            "kind": rng.choice(["a", "b"], n),
            "day": rng.integers(0, 365, n).astype("timedelta64[D]") + np.datetime64("2013-01-01"),
        }
    )


@pytest.fixture
def publisher(table):
    with sf.Publisher(sf.source(table, DOMAIN, name="t"), budget="100") as opened:
        yield opened


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_values_are_near_and_in_order(table, method, neighbours):
    source = sf.source(table, DOMAIN, name="t", neighbours=neighbours)
    with sf.Publisher(source, budget="100") as publisher:
        release = publisher.release(
            sf.Quantiles("x", at=[0.1, 0.5, 0.9], method=method), epsilon="2"
        )
    true = np.sort(table["x"].to_numpy())
    assert release.values.shape == (3,)
    assert (np.diff(release.values) >= 0).all()
    errors = np.abs(np.searchsorted(true, release.values) - 6_000 * np.array([0.1, 0.5, 0.9]))
    assert (
        errors.max() <= 1.5 * release.accuracy(0.999999, True).max()
    )  # false alarms: 1e-9, since tails are exponential
    assert np.allclose(
        release.values, release.lattice.axes[0].points(release.edges), rtol=0, atol=0
    )


def test_shapes_frames_and_the_journey(publisher, tmp_path: Path):
    one = publisher.release(sf.Quantiles("x"), epsilon="1")
    two = publisher.release(sf.Quantiles(["x", "y"], at=[0.2, 0.8]), epsilon="1")
    by = publisher.release(sf.Quantiles("day", by="kind"), epsilon="1")
    every = publisher.release(
        sf.Quantiles(["x", "y"], at=[0.5], by="kind", method="tree"), epsilon="1"
    )
    assert [r.values.shape for r in (one, two, by, every)] == [(3,), (2, 2), (3, 3), (3, 2, 1)]
    assert two.to_frame().column_names == [
        "axis",
        "quantile",
        "value",
        "cell_low",
        "cell_high",
        "rank_error",
    ]
    assert by.to_frame().column_names == [
        "kind",
        "quantile",
        "value",
        "cell_low",
        "cell_high",
        "rank_error",
        "rows",
        "known",
    ]
    assert str(by.to_frame()["value"].type) == "date32[day]"
    for release in (one, two, by, every):
        assert release.accuracy().shape == release.values.shape
        low, high = release.interval(simultaneous=True)
        assert (low <= -release.accuracy()).all()
        assert (high >= release.accuracy()).all()
        assert sf.load(release.save(tmp_path / "r.json")) == release
        assert release.guarantee.private


def test_the_cost_is_shared_between_axes_and_not_between_labels(publisher):
    ways = sf.Quantiles(["x", "y"]).ways(
        sf.Quantiles(["x", "y"]).needs(DOMAIN).lattice, sf.Unit(), sf.PureDP("1")
    )
    assert [way.cost.epsilon for way in ways.values()] == [Fraction(1, 2)] * 2
    question = sf.Quantiles("x", by="kind", at=[0.5])
    (way,) = question.ways(
        question.needs(DOMAIN).lattice, sf.Unit(neighbours="replace"), sf.PureDP("1")
    ).values()
    assert way.shares == [
        (sf.Unit(), Fraction(2, 5))
    ]  # a person may leave one label and enter another
    (way,) = question.ways(question.needs(DOMAIN).lattice, sf.Unit(3), sf.PureDP("1")).values()
    assert way.shares == [(sf.Unit(3), Fraction(4, 5))]  # a fifth pays for the numbers of rows
    assert question.rows_cost(sf.PureDP("1"))[0] == sf.PureDP("0.2")


@pytest.mark.parametrize(
    ("m", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (100, 7)]
)
@pytest.mark.parametrize("cost", [sf.PureDP("1"), sf.ZCDP("0.5")], ids=str)
def test_every_path_of_halving_spends_the_cost(m, levels, cost):
    at = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    way = Way("recursive", at, 1000, sf.Unit(), cost, False)
    assert way.levels == levels
    deepest = []
    halved(
        Cells(np.zeros(0, np.int64), np.zeros(0, np.int64), 1000),
        at,
        lambda ranks, q, which, level: deepest.append(level) or 500,
    )
    assert max(deepest) + 1 == levels
    if isinstance(cost, sf.PureDP):
        assert sum(epsilon for _, epsilon in way.shares) == 1
    else:
        assert (
            Fraction("0.499999")
            < sum(epsilon**2 / 8 for _, epsilon in way.shares)
            <= Fraction(1, 2)
        )


def test_costs_in_rho(table):
    source = sf.source(table, DOMAIN, name="t")
    with sf.Publisher(source, budget=sf.ZCDP("2")) as publisher:
        for method in METHODS:
            release = publisher.release(sf.Quantiles("x", method=method), rho="0.5")
            assert str(release.guarantee.measure) == "rho = 0.5"
        assert "Gaussian" not in publisher.release(sf.Quantiles("x"), rho="0.1").guarantee.mechanism


@pytest.mark.parametrize("method", METHODS)
def test_sparse_and_dense_cubes_answer_alike(method, monkeypatch):
    """A large epsilon leaves little doubt: both find the same lattice points, or neighbours of the same rank."""
    from sfumato import cube as cubes

    question = sf.Quantiles(["y", "x"], at=[0.3, 0.7], by="kind", method=method)
    lattice = question.needs(DOMAIN).lattice
    rng = np.random.default_rng(2)
    cells = np.stack([rng.integers(0, axis.size, 3_000) for axis in lattice.axes], axis=1)
    dense = Cube.of_cells(lattice, cells)
    monkeypatch.setattr(cubes, "DENSE_LIMIT", 1)
    sparse = Cube.of_cells(lattice, cells)
    assert dense.is_dense
    assert not sparse.is_dense
    answers = [
        question.answer(cube, sf.Unit(), sf.PureDP("10000"), current()).values
        for cube in (dense, sparse)
    ]
    assert np.abs(answers[0] - answers[1]).max() <= 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_empty_tables_and_ties_are_answered(method, rows):
    question = sf.Quantiles("y", at=[0.25, 0.5, 0.75], method=method)
    cube = count(((7.0,),) * rows, question.needs(sf.Domain(y=DOMAIN["y"])).lattice)
    release = question.answer(cube, sf.Unit(), sf.PureDP("1"), current())
    assert ((release.values >= 0) & (release.values <= 100)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["even", "adverse"])
def test_rank_intervals_cover(method, shape):
    """Even data, and data whose best edge is one of many thousands that are all a few rows worse."""
    size, trials = 2**14, 200
    counts = np.zeros(size, np.int64)
    if shape == "even":
        counts[::8] = 1
    else:
        counts[[10, 11, size - 12, size - 11]] = [1000, 1000, 1000, 1000]
    held = np.flatnonzero(counts)
    cells, below = Cells(held, counts[held], size), np.concatenate([[0], np.cumsum(counts)])
    at = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    way = Way(method, at, size, sf.Unit(), sf.PureDP("1"), False)  # type: ignore[arg-type]
    targets = below[-1] * np.array([0.25, 0.5, 0.75])
    best = np.abs(below[:, None] - targets).min(axis=0)
    noise = PublicSeed(1)  # the law is tried elsewhere; here luck is to decide nothing
    errors = np.array(
        [np.abs(below[way.draw(cells, noise)] - targets) - best for _ in range(trials)]
    )
    each = (errors <= half_width(way, 0.2)).mean(axis=0)
    assert (each >= 0.8).all()  # what is stated holds for the worst data: here it holds with room
    assert (errors.max(axis=1) <= half_width(way, 0.2, 1)).mean() >= 0.8
    assert half_width(way, 0.01) >= half_width(way, 0.2)
    assert half_width(way, 0.2, 5) >= half_width(way, 0.2)


def test_the_bound_on_one_rank_is_not_far_from_the_worst_case():
    """One edge is right, and all others are off by just what the bound says: one of them is chosen up to as often as it allows."""
    size = 2**14
    way = Way(
        "joint", (Fraction(1, 2),), size, sf.Unit(), sf.ZCDP("0.125"), False, finest=1
    )  # epsilon 1, by the exponential mechanism
    off = half_width(way, 0.2)
    cells = Cells(np.array([0, size - 2, size - 1]), np.array([1000 - off, off, 1000]), size)
    right = math.exp(way.log_probabilities(cells, np.array([[size - 1]]))[0])
    assert 0.05 < 1 - right <= 0.2


def test_auto_chooses_by_public_parameters():
    assert [method_for("auto", m, 2**20) for m in (1, 9, 10, 1000, 1001)] == [
        "joint",
        "joint",
        "recursive",
        "recursive",
        "tree",
    ]
    assert [method_for("auto", m, 2**12) for m in (100, 101)] == ["recursive", "tree"]
    assert method_for("auto", 101, 2**12, pure=False) == "recursive"
    assert method_for("auto", 9, 10**40) == "recursive"  # too many tuples to select from at once


def test_quantiles_are_read_as_they_are_meant():
    question = sf.Quantiles("x", at=np.linspace(0, 1, 12)[1:-1])
    assert question.at == tuple(Fraction(i, 11) for i in range(1, 11))
    assert sf.Quantiles("x", at=0.5).at == (Fraction(1, 2),)
    assert sf.Quantiles("x", at=["1/3"]).at == (Fraction(1, 3),)
    assert sf.Quantiles("x", at=[0.123456789]).at == (Fraction(123457, 10**6),)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.Quantiles("x", at=[]),
        lambda: sf.Quantiles("x", at=[0, 0.5]),
        lambda: sf.Quantiles("x", at=[0.5, 1]),
        lambda: sf.Quantiles("x", at=[0.5, 0.5]),
        lambda: sf.Quantiles("x", at=[0.5, 0.25]),
        lambda: sf.Quantiles("x", at=[float("nan")]),
        lambda: sf.Quantiles("x", at=["half"]),
        lambda: sf.Quantiles("x", at=[0.5, 0.5000000001]),
        lambda: sf.Quantiles("x", method="best"),
        lambda: sf.Quantiles("x", by=3),
        lambda: sf.Quantiles(3),
    ],
)
def test_what_is_no_question_is_refused(make):
    with pytest.raises(sf.UsageError) as refusal:
        make()
    assert len(refusal.value.args) == 3


@pytest.mark.parametrize(
    ("question", "epsilon"),
    [
        (sf.Quantiles("kind"), "1"),
        (sf.Quantiles("x", by="y"), "1"),
        (sf.Quantiles("x", by="nothing"), "1"),
        (sf.Quantiles("y", at=[i / 202 for i in range(1, 202)]), "1"),
        (sf.Quantiles("x", at=[i / 100 for i in range(1, 100)], method="joint"), "1"),
        (sf.Quantiles("x"), "0.000000001"),
    ],
    ids=lambda q: str(q)[:60],
)
def test_what_cannot_be_answered_is_refused_before_the_charge(publisher, question, epsilon):
    with pytest.raises(sf.UsageError):
        publisher.release(question, epsilon=epsilon)
    assert publisher.account.spent == (0, 0)


def test_previews_promise_what_releases_keep(publisher):
    for question in (
        sf.Quantiles("x"),
        sf.Quantiles(["x", "y"], by="kind"),
        sf.Quantiles("x", method="tree"),
    ):
        preview = publisher.preview(question, epsilon="1", rows=6_000)
        release = publisher.release(question, epsilon="1")
        assert preview.accuracy() == release.accuracy().max()
        assert preview.accuracy(simultaneous=True) == release.accuracy(simultaneous=True).max()
        assert preview.cells == release.values.size
        assert "rows" in str(preview)
    assert (
        publisher.preview(sf.Quantiles("x"), epsilon="2").accuracy()
        < publisher.preview(sf.Quantiles("x"), epsilon="1").accuracy()
    )


def test_nothing_unpaid_is_shown():
    canary = 918_273
    values = np.full((canary, 1), 0.25)
    with sf.Publisher(
        sf.source(values, sf.Domain(x=sf.Interval(0, 1)), name="t"), budget="9"
    ) as publisher:
        for method in METHODS:
            question = sf.Quantiles("x", method=method)
            assert not overheard(
                canary, lambda question=question: publisher.release(question, epsilon="1")
            )
        assert not sightings(canary, publisher.release(sf.Quantiles("x"), epsilon="1"))


def test_the_command(table, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    import pyarrow.parquet as pq

    from sfumato.cli import run

    pq.write_table(table, tmp_path / "t.parquet")
    words = [
        "quantiles",
        str(tmp_path / "t.parquet"),
        "--axis",
        "x=-5..5",
        "--axis",
        "kind=a,b,c",
        "--by",
        "kind",
        "--at",
        "0.25,0.5",
    ]
    words += [
        "--epsilon",
        "1",
        "--budget",
        "2",
        "--ledger",
        str(tmp_path / "l.db"),
        "--plot",
        str(tmp_path / "q.png"),
    ]
    assert run(words) == 0
    said = capsys.readouterr()
    assert (
        said.out.splitlines()[1]
        == "kind\tquantile\tvalue\tcell_low\tcell_high\trank_error\trows\tknown"
    )
    assert len(said.out.splitlines()) == 2 + 6
    assert "Of the rows counted, each rank is within" in said.err
    assert (tmp_path / "q.png").exists()


@pytest.mark.parametrize("cost", [sf.PureDP("1.000000007"), sf.ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("unit", [sf.Unit(), sf.Unit(2, "replace")], ids=str)
def test_the_counts_of_a_tree_spend_the_cost_exactly(cost, unit):
    way, noise = Way("tree", (Fraction(1, 2),), 2**12, unit, cost, divided=False), Recorder()
    way.draw(Cells(np.array([5, 900]), np.array([40, 60]), 2**12), noise)
    assert [size for _, size in noise.drawn] == [16, 256, 4096]
    assert sum(loss(law, unit) for law, _ in noise.drawn) == (
        cost.rho if isinstance(cost, sf.ZCDP) else cost.epsilon
    )


@pytest.mark.parametrize("method", ["joint", "recursive", "tree"])
@pytest.mark.parametrize("upper", [4.0, 7.0, 10.0])
def test_the_rows_of_a_value_lie_in_its_cells(method, upper):
    """500 rows at one number that is no lattice point: the value lies beside it, and its cells hold it."""
    question = sf.Quantiles("x", at=[0.25, 0.5, 0.75], method=method)
    lattice = question.needs(sf.Domain(x=sf.Interval(0, upper))).lattice
    rows = np.full(500, 3.0)
    cube = Cube.of_cells(lattice, lattice.axes[0].locate(rows)[:, None])
    for draw in range(5):
        release = question.answer(cube, sf.Unit(), sf.PureDP("5"), PublicSeed(f"{method} {draw}"))
        low, high = release.cells()
        assert low.shape == high.shape == release.values.shape
        assert (low <= release.values).all()
        assert (release.values <= high).all()
        assert ((low <= 3.0) & (high >= 3.0)).all()
        assert (high - low <= 2.01 * upper / lattice.shape[0]).all()


def test_the_cell_of_a_value_on_an_axis_with_a_step_is_the_value():
    for axis, widest in ((sf.Interval(0, 120, step=1), 0), (sf.Interval(0, 2**21, step=1), 1)):
        question = sf.Quantiles("x", at=[0.5])
        lattice = question.needs(sf.Domain(x=axis)).lattice
        cube = Cube.of_cells(lattice, lattice.axes[0].locate(np.full(500, 37.0))[:, None])
        release = question.answer(cube, sf.Unit(), sf.PureDP("5"), PublicSeed("steps"))
        low, high = release.cells()
        assert low[0] <= 37 <= high[0]
        assert high[0] - low[0] == widest


def test_the_cells_at_the_ends_of_the_axis_stay_within_it():
    question = sf.Quantiles(["x", "y"], at=[0.001, 0.999], by="kind")
    domain = sf.Domain(
        x=sf.Interval(0, 1),
        y=sf.Interval("2013-01-01", "2014-01-01"),
        kind=sf.Categories(["a", "b"]),
    )
    lattice = question.needs(domain).lattice
    cube = Cube.of_cells(lattice, np.zeros((0, 3), np.int64))
    release = question.answer(cube, sf.Unit(), sf.PureDP("1"), PublicSeed("ends"))
    low, high = release.cells()
    assert low.shape == release.values.shape
    assert (low[:, 0] >= 0).all()
    assert (high[:, 0] <= 1).all()
    assert (low[:, 1] == high[:, 1]).all()
