"""A partition as a thing one can use: covering, assigning, counting, drawing, travelling."""

import datetime as dt
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.audit.runs import Scripted, count
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.domain.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.mechanisms.noise_sums import exact_half_width, half_widths, spread
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.release import Partition
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.random import PublicSeed
from support.partitions import answer, made
from support.statistics import check_coverage

BOX = Domain(x=Interval(0, 16, step=1), y=Interval(0, 8, step=1))
CUBE = Domain(x=Interval(0, 4, step=1), y=Interval(0, 5, step=1), z=Interval(-2, 4, step=1))
MAP = Domain(lat=Interval(-90, 90), lon=Interval(-180, 180))
ONE = PureDP(1)
RNG = np.random.default_rng(7)
END = st.integers(-4, 40).map(lambda n: n / 2)
PAIRS = st.tuples(END, END).map(sorted)
SMALL = Domain(x=Interval(0, 16, step=1), y=Interval(0, 16, step=1))
ALIGNED = {
    "x": (np.array([0.0, 4, 0, 8]), np.array([16.0, 8, 4, 16])),
    "y": (0, 8),
}  # whole cells of a tree of fixed shape
HELD = np.array([50, 0, 50, 0])


def lattice_points(partition):
    """The middle of every lattice cell."""
    middles = [(axis.edges()[:-1] + axis.edges()[1:]) / 2 for axis in partition.lattice.axes]
    return np.stack([x.reshape(-1) for x in np.meshgrid(*middles, indexing="ij")], axis=1)


@pytest.mark.parametrize(
    ("domain", "partitions"), [(BOX, 1), (BOX, 9), (BOX, 30), (BOX, 10**4), (CUBE, 27), (CUBE, 64)]
)
def test_boxes_cover_the_domain_exactly_and_once(domain, partitions):
    p = made(domain, partitions)
    volume = sum(
        (
            np.prod([Fraction(b) - Fraction(a) for a, b in zip(low, high, strict=True)])
            for low, high in zip(p.lower.tolist(), p.upper.tolist(), strict=True)
        ),
        Fraction(0),
    )
    assert volume == np.prod(
        [Fraction(b) - Fraction(a) for a, b in (axis.numbers for axis in domain.values())]
    )
    points = lattice_points(p)
    inside = (p.lower[None] <= points[:, None]) & (points[:, None] < p.upper[None])
    owners = inside.all(axis=2)
    assert (owners.sum(axis=1) == 1).all()
    assert owners.argmax(axis=1).tolist() == p.assign(points).tolist()
    assert len(p.counts) == len(p.lower) == len(p.scale) == len(p.depth) == len(p.spent)
    assert set(p.spent.tolist()) == {1.0}


def test_assign_is_the_kernel_that_counted():
    points = RNG.uniform(-3, 20, (500, 2))
    question = UniformPartitioner(partitions=30)
    p = question.answer(
        count(tuple(map(tuple, points.tolist())), question.needs(BOX).lattice),
        Unit(),
        PureDP(1),
        Scripted(),
    )
    assert np.bincount(p.assign(points), minlength=len(p.counts)).tolist() == p.counts.tolist()
    assert p.assign([[np.nan, 1], [0, 0], [16, 8], [-np.inf, np.inf]]).tolist()[0] == -1
    assert p.assign([[16, 8]])[0] == len(p.counts) - 1
    assert p.assign(np.zeros((0, 2))).tolist() == []
    for wrong in (np.zeros(2), np.zeros((3, 3))):
        with pytest.raises(UsageError):
            p.assign(wrong)


def brute(p, ranges):
    """Counts and squared shares of a range, box by box in rationals."""
    value, effective = Fraction(0), Fraction(0)
    for low, high, counted in zip(
        p.lower.tolist(), p.upper.tolist(), p.counts.tolist(), strict=True
    ):
        share = Fraction(1)
        for i, name in enumerate(p.axes):
            a, b = Fraction(low[i]), Fraction(high[i])
            if name in ranges:
                c, d = (Fraction(float(end)) for end in ranges[name])
                share *= max(min(b, d) - max(a, c), Fraction(0)) / (b - a)
        value, effective = value + share * counted, effective + share**2
    return float(value), float(effective)


@given(st.dictionaries(st.sampled_from(["x", "y", "z"]), PAIRS), st.sampled_from([1, 27, 64]))
def test_range_counts_against_brute_force(ranges, partitions):
    p = made(CUBE, partitions, rows=20)
    estimate = p.count(evenly=True, **ranges)
    value, effective = brute(p, ranges)
    assert estimate.value == pytest.approx(value, abs=1e-9)
    half = float(p.noise.sum_half_width(np.array([effective]), 0.05)[0])
    assert (estimate.low, estimate.high) == pytest.approx((value - half, value + half), abs=1e-6)
    assert estimate.confidence == pytest.approx(0.95)


def test_whole_empty_and_outside_ranges():
    p = made(BOX, 30)
    assert p.count().value == p.counts.sum() == p.count(x=(-100, 100)).value
    for nothing in ({"x": (3, 3)}, {"x": (16, 99)}, {"y": (-5, 0)}):
        estimate = p.count(**nothing)
        assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)
    together = p.count(x=(np.array([0.0, 4.0]), np.array([4.0, 8.0])), simultaneous=True)
    assert together.low[0] < p.count(x=(0, 4)).low


@pytest.mark.parametrize("cost", [PureDP(1), ZCDP("0.1")], ids=str)
def test_intervals_cover_ranges_of_whole_boxes(cost):
    """All noise, no cut cells: 10^4 draws of the noise on the boxes of a range, in one."""
    p = made(BOX, 32, cost=cost)
    assert p.geometry.shape == (6, 6)
    edge = p.geometry.positions
    for across, up in ((1, 1), (3, 2), (6, 6)):
        estimate = p.count(x=(0, edge[0][across]), y=(0, edge[1][up]))
        half = estimate.high - estimate.value
        sums = (
            p.noise.sample(10_000 * across * up, PublicSeed("boxes"))
            .reshape(10_000, -1)
            .sum(axis=1)
        )
        hits = int((np.abs(sums) <= half).sum())
        assert hits >= 9_500 - 4 * 22
        assert half < 4.5 * np.sqrt(across * up * p.noise.variance)


def test_intervals_hold_for_several_ranges_at_once():
    p = made(BOX, 32, rows=0)
    lower = p.geometry.positions[0][:-1]
    half = p.count(x=(lower, p.geometry.positions[0][1:]), simultaneous=True)
    errors = p.noise.sample(5000 * 36, PublicSeed("at once")).reshape(5000, 6, 6).sum(axis=2)
    held = (np.abs(errors) <= half.high - half.value).all(axis=1)
    assert held.mean() >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 5000)


def test_individual_coverage_of_cells():
    p = made(BOX, 32, rows=0)
    k = int(p.accuracy()[0])
    errors = p.noise.sample(200_000, PublicSeed("cells"))
    q = np.exp(-1 / float(p.noise.scale))
    exact = 1 - 2 * q ** (k + 1) / (1 + q)
    check_coverage(
        int((np.abs(errors) <= k).sum()), 200_000, float(exact), near_miss=0.005, false_alarm=6.3e-5
    )


def test_synthetic_points():
    p = made(BOX, 30, noise=Scripted())
    points = p.sample(5000, random_state=3)
    assert points.shape == (5000, 2)
    assert np.array_equal(points, p.sample(5000, random_state=3))
    boxes = p.assign(points)
    assert (p.lower[boxes] <= points).all()
    assert (points < p.upper[boxes]).all()
    assert (p.counts[boxes] > 0).all()
    assert (
        np.abs(np.bincount(boxes, minlength=len(p.counts)) / 5000 - p.counts / p.counts.sum()).max()
        < 0.03
    )
    assert made(BOX, 4, rows=0, noise=Scripted((-5, -5, -5, -5))).sample(
        10, random_state=1
    ).shape == (10, 2)
    assert p.sample(0).shape == (0, 2)


def test_dates():
    domain = Domain(day=Interval("2013-01-01", "2013-01-15"))
    p = made(domain, 2)
    assert p.to_frame()["day_lower"].to_pylist() == [dt.date(2013, 1, 1), dt.date(2013, 1, 8)]
    assert p.count(day=("2013-01-01", dt.date(2013, 1, 8))).value == p.counts[0]
    assert (
        p.count(day=(["2013-01-01", "2013-01-08"], ["2013-01-08", "2013-01-15"])).value.tolist()
        == p.counts.tolist()
    )


@pytest.mark.parametrize("cost", [PureDP("1/3"), ZCDP("0.1")], ids=str)
def test_a_partition_travels_bit_for_bit(cost, tmp_path):
    p = made(MAP, 30, cost=cost)
    again = from_bytes(p.save(tmp_path / "p.json").read_bytes(), Partition)
    assert again == p
    assert to_bytes(again) == to_bytes(p)
    assert again.lower.tobytes() == p.lower.tobytes()
    assert [edge.dtype for edge in again.cover.edges] == [np.int64, np.int64]
    assert again.count(lon=(-10, 33.3)) == p.count(lon=(-10, 33.3))
    assert p.to_frame().column_names == [
        "lat_lower",
        "lat_upper",
        "lon_lower",
        "lon_upper",
        "count",
        "low",
        "high",
    ]


def covered(question, cost, ranges, truth, runs):
    """Over fresh noise: how often each interval holds, and how often all of them do."""
    cube = count(((3.5, 3.5),) * 50, question.needs(SMALL).lattice)
    each, every = np.zeros(len(truth)), 0
    for seed in range(runs):
        p = question.answer(cube, Unit(), cost, PublicSeed(seed))
        found = p.count(**ranges)
        each += (found.low <= truth) & (truth <= found.high)
        found = p.count(**ranges, simultaneous=True)
        every += bool(((found.low <= truth) & (truth <= found.high)).all())
    return each / runs, every / runs


@pytest.mark.parametrize("cost", [ONE, ZCDP("0.5")], ids=str)
def test_intervals_of_aligned_ranges_hold(cost):
    each, every = covered(sf.BinaryPartitioner(depth=4), cost, ALIGNED, HELD, 120)
    floor = 0.95 - 4 * np.sqrt(0.95 * 0.05 / 120)
    assert (each >= floor).all()
    assert every >= floor


@pytest.mark.deep
def test_intervals_of_aligned_ranges_hold_ten_thousand_times(evidence):
    figures = {}
    for cost, runs in ((ONE, 10_000), (ZCDP("0.5"), 2_000)):
        each, every = covered(sf.BinaryPartitioner(depth=4), cost, ALIGNED, HELD, runs)
        floor = 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)
        figures[str(cost)] = {"trials": runs, "individual": each.tolist(), "simultaneous": every}
        assert (each >= floor).all()
        assert every >= floor
    each, _ = covered(
        Halved(), ONE, ALIGNED, HELD, 1_000
    )  # a mechanism that states half of its noise is found out
    assert (each < 0.95 - 4 * np.sqrt(0.95 * 0.05 / 1_000)).any()
    evidence("coverage_of_ranges", figures)


class Halved:
    """A broken mechanism: it states the noise of twice the cost that it pays."""

    def __init__(self):
        self.question = sf.BinaryPartitioner(depth=4)
        self.needs = self.question.needs

    def answer(self, cube, unit, cost, noise):
        wide = self.question.answer(cube, unit, PureDP(cost.epsilon / 2), noise)
        narrow = self.question.answer(cube, unit, cost, noise)
        return msgspec.structs.replace(narrow, noisy=wide.noisy, inner=wide.inner)


def test_laws_of_sums():
    laws = [
        DiscreteLaplace(Fraction(3)),
        DiscreteLaplace(Fraction(10)),
        DiscreteGaussian(Fraction(9)),
    ]
    for law in laws:
        assert exact_half_width([(law, 1)], 0.05) == law.half_width(0.05)
    draws = sum(law.sample(40_000, PublicSeed(str(law))) for law in laws)
    k = exact_half_width([(law, 1) for law in laws], 0.05)
    assert abs((np.abs(draws) <= k).mean() - 0.95) < 0.01
    bound = half_widths(
        np.array([sum(spread(law) for law in laws)]), [(law, 1.0) for law in laws], 0.05
    )[0]
    assert k <= bound < 2.5 * k
    p = answer(sf.BinaryPartitioner(depth=3), SMALL, ())
    assert p.half_width([0]) == p.accuracy()[0]
    assert p.half_width() > p.half_width([0, 1]) > p.half_width([0]) > p.half_width([]) == 0
