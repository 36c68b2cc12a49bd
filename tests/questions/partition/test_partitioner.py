"""Every partitioner as a question: bad input, files, many axes, and little data."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.answers.loading import load
from sfumato.answers.question import AnyQuestion
from sfumato.basics.structs import from_bytes, from_plain, to_bytes
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval, fine_lattice
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.allocation import Shares
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.release import Partition
from sfumato.random import PublicSeed
from support.canary import sightings
from support.partitions import answer

PLANE = Domain(x=Interval(0, 1), y=Interval(0, 1))
SMALL = Domain(x=Interval(0, 16, step=1), y=Interval(0, 16, step=1))
ONE = PureDP(1)
EVERY = [
    sf.UniformPartitioner(),
    sf.AdaptiveGridPartitioner(),
    sf.AutoPartitioner(),
    sf.BinaryPartitioner(depth=5, stop_below=10),
    sf.MedianPartitioner(depth=4),
    sf.MultiQuantilePartitioner(depth=2),
    sf.PrivTreePartitioner(),
]
CROWD = tuple(map(tuple, (np.random.default_rng(5).random((2000, 2)) ** 3).tolist()))


@pytest.mark.parametrize("question", EVERY, ids=lambda q: q.title)
def test_partitions_travel_and_are_used(question, tmp_path):
    p = answer(question, PLANE, CROWD)
    assert load(p.save(tmp_path / "p.json")) == p
    assert (np.prod(p.upper - p.lower, axis=1)).sum() == pytest.approx(1)
    assert p.assign((p.lower + p.upper) / 2).tolist() == list(range(len(p.counts)))
    assert len(p.depth) == len(p.scale) == len(p.spent) == len(p.counts)
    assert abs(p.count().value - 2000) < 400
    whole = p.consistent(integers=True)
    assert whole.counts.dtype == np.int64
    assert (whole.counts >= 0).all()
    assert whole.count().value == pytest.approx(whole.counts.sum())
    low, high = whole.interval()
    assert ((low <= whole.counts) & (whole.counts <= high)).all()
    better = p.consistent()
    assert from_bytes(to_bytes(better), Partition) == better
    assert (better.scale <= p.scale * (1 + 1e-9)).all()
    assert better.counts.sum() == pytest.approx(p.count().value)
    assert p.sample(50, random_state=1).shape == (50, 2)
    assert len(p.to_geojson()["features"]) == p.to_frame().num_rows == len(p.counts)
    p.to_parquet(tmp_path / "p.parquet")
    assert p.plot(axes=["y", "x"]).get_xlabel() == "y"
    ranges = {"x": (np.linspace(0, 0.5, 7), np.linspace(0.2, 1, 7)), "y": (0.1, 0.9)}
    near, exact = p.count(exact=False, **ranges), p.count(**ranges)
    assert near.value == pytest.approx(exact.value)
    assert (near.high - near.low >= (exact.high - exact.low) * (1 - 1e-9)).all()


@pytest.mark.parametrize("question", EVERY, ids=lambda q: q.title)
@pytest.mark.parametrize("cost", [ONE, ZCDP("0.5")], ids=str)
def test_previews_know_the_measure_and_touch_nothing(question, cost):
    preview = question.preview(
        PLANE, Unit(rows_per_person=2, neighbours="replace"), cost, rows=1000
    )
    assert preview.cost == cost
    assert isinstance(preview.law, DiscreteLaplace if cost is ONE else DiscreteGaussian)
    assert "+-" in str(preview)
    assert from_plain({"type": question.__struct_config__.tag}, AnyQuestion) == type(question)()


@pytest.mark.parametrize("question", EVERY, ids=lambda q: q.title)
@pytest.mark.parametrize("cost", [ONE, ZCDP("0.5")], ids=str)
def test_no_cell_is_less_accurate_than_the_preview_says(question, cost):
    crowd = np.random.default_rng(1).beta(0.4, 8, (20_000, 2))
    domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
    publisher = sf.Publisher(sf.source(crowd, domain), budget=cost)
    paid = {"rho": cost.rho} if isinstance(cost, ZCDP) else {"epsilon": cost.epsilon}
    promised = sf.preview(question, domain=domain, unit=Unit(), rows=len(crowd), **paid).accuracy()
    assert promised >= publisher.release(question, **paid).accuracy().max()


@pytest.mark.parametrize("question", EVERY, ids=lambda q: q.title)
@pytest.mark.parametrize("rows", [(), ((0.3, 0.7),) * 400], ids=["none", "one place"])
def test_little_data(question, rows):
    p = answer(question, SMALL, rows)
    assert p.assign([[3, 3]])[0] >= 0
    dot = Domain(x=Interval(0, 1, step=1), y=Interval(0, 1, step=1))
    assert len(answer(question, dot, ((0.5, 0.5),)).counts) == 1


@pytest.mark.parametrize(
    "question", EVERY[1:3] + EVERY[-1:] + [sf.BinaryPartitioner(depth=12)], ids=lambda q: q.title
)
@pytest.mark.parametrize("d", [1, 5, 12])
def test_many_axes_and_sparse_cubes(question, d):
    domain = Domain({f"x{i}": Interval(0, 1) for i in range(d)})
    lattice = fine_lattice(dict(domain.items()))
    points = np.random.default_rng(d).beta(2, 5, (3000, d))
    cells = np.stack(
        [axis.locate(points[:, i].copy()) for i, axis in enumerate(lattice.axes)], axis=1
    )
    cube = Cube.of_cells(lattice, cells)
    assert (cube.coordinates is None) == (d == 1)
    p = question.answer(cube, Unit(), ONE, PublicSeed(d))
    assert (p.assign(points) >= 0).all()
    half = p.count(x0=(0, 0.25))
    assert half.low <= 3000 * 0.466 + 500
    assert abs(p.count().value - 3000) < 500
    assert p.sample(10).shape == (10, d)


def test_one_cube_dense_or_sparse_gives_one_partition():
    lattice = fine_lattice(dict(PLANE.items()))
    cells = np.stack(
        [axis.locate(np.array(CROWD)[:, i].copy()) for i, axis in enumerate(lattice.axes)], axis=1
    )
    dense = Cube.of_cells(lattice, cells)
    occupied = np.flatnonzero(dense.counts)
    coordinates = np.stack(np.unravel_index(occupied, lattice.shape), axis=1)
    sparse = Cube(lattice, dense.counts[occupied], coordinates)
    for question in EVERY[1:]:
        one, other = (question.answer(cube, Unit(), ONE, PublicSeed(1)) for cube in (dense, sparse))
        assert one == other


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.BinaryPartitioner(depth=-1),
        lambda: sf.BinaryPartitioner(depth=23),
        lambda: sf.BinaryPartitioner(depth=True),
        lambda: sf.BinaryPartitioner(stop_below=0),
        lambda: sf.BinaryPartitioner(allocation=[1, 2]),
        lambda: sf.BinaryPartitioner(allocation="cubic"),
        lambda: sf.MultiQuantilePartitioner(fanout=1),
        lambda: sf.MultiQuantilePartitioner(fanout=17, depth=1),
        lambda: sf.MultiQuantilePartitioner(fanout=16, depth=6),
        lambda: sf.PrivTreePartitioner(fanout=3),
        lambda: sf.AutoPartitioner(axes=3),
        lambda: sf.AutoPartitioner("kind").needs(Domain(kind=sf.Categories(["a"]))).lattice,
        lambda: sf.BinaryPartitioner(stop_below=5, shares=Shares(threshold=0)).preview(
            PLANE, Unit(), ONE
        ),
        lambda: sf.MedianPartitioner(shares=Shares(partition=0)).preview(PLANE, Unit(), ONE),
        lambda: sf.MultiQuantilePartitioner().preview(PLANE, Unit(), PureDP("0.00000002")),
        lambda: sf.PrivTreePartitioner().preview(PLANE, Unit(), PureDP("0.00000001")),
        lambda: sf.AutoPartitioner().preview(PLANE, Unit(), PureDP("0.00000001")),
        lambda: answer(sf.AutoPartitioner(), PLANE, CROWD).plot(axes=["x", "z"]),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(make):
    with pytest.raises(sf.UsageError):
        make()


def test_nothing_of_the_data_shows():
    rows = ((0.25, 0.75),) * 7919
    for question in EVERY:
        p = answer(question, PLANE, rows, PureDP("0.01"))
        assert not [s for s in sightings(7919, p) if s.where in ("repr", "str")]


@pytest.mark.parametrize(
    "question",
    [sf.UniformPartitioner(), sf.UniformPartitioner(partitions=3), sf.AdaptiveGridPartitioner()],
    ids=str,
)
def test_grids_over_many_axes_have_about_as_many_cells_as_they_aim_at(question):
    """Two parts of each of twenty axes would be a million cells."""
    wide = Domain({f"x{i}": Interval(0, 1) for i in range(20)})
    for rows in ((), 30 * ((0.5,) * 20,)):
        assert len(answer(question, wide, rows).counts) <= 2000
