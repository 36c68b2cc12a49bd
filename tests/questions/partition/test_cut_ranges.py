"""Ranges that cut boxes: their intervals hold wherever in these boxes the rows lie."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from benchmarks.studies import shapes
from sfumato.basics.numbers import Array
from sfumato.data import count
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from support.partitions import made

PLANE = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))
CUBE = sf.Domain(
    x=sf.Interval(0, 4, step=1), y=sf.Interval(0, 5, step=1), z=sf.Interval(-2, 4, step=1)
)
QUESTIONS = {
    "uniform": sf.UniformPartitioner(),
    "adaptive": sf.AdaptiveGridPartitioner(),
    "privtree": sf.PrivTreePartitioner(),
    "auto": sf.AutoPartitioner(),
    "kd medians": sf.MedianPartitioner(depth=6),
}
END = st.integers(-4, 20).map(lambda n: n / 2)
PAIRS = st.tuples(END, END).map(sorted)


def released(question: sf.Question, points: Array, seed: int) -> sf.Partition:
    source = sf.source(points, PLANE, name="points")
    (cube,) = count(source, [question.needs(PLANE)], key=bytes(32))
    return question.answer(cube, Unit(), PureDP(1), PublicSeed(seed))


def corners(boxes: Array) -> dict[str, tuple[Array, Array]]:
    return {name: (boxes[:, 0, at], boxes[:, 1, at]) for at, name in enumerate("xy")}


@given(st.dictionaries(st.sampled_from(["x", "y", "z"]), PAIRS), st.sampled_from([1, 27, 64]))
def test_on_a_grid_the_ends_are_those_of_whole_boxes(
    ranges: dict[str, list[float]], partitions: int
) -> None:
    p = made(CUBE, partitions, rows=20)
    lower = np.ones(len(p.counts), bool)
    touched = lower.copy()
    for i, name in enumerate(p.axes):
        if name in ranges:
            low, high = (Fraction(end) for end in ranges[name])
            lower &= (p.lower[:, i] >= low) & (p.upper[:, i] <= high)
            touched &= (p.lower[:, i] < high) & (p.upper[:, i] > low) & (low < high)
    lower &= touched
    estimate = p.count(**ranges)
    half = [float(p.noise.sum_half_width(np.array([n.sum()]), 0.05)[0]) for n in (lower, touched)]
    low, high = p.counts[lower].sum() - half[0], p.counts[touched].sum() + half[1]
    assert estimate.low == pytest.approx(min(low, float(estimate.value)), abs=1e-6)
    assert estimate.high == pytest.approx(max(high, float(estimate.value)), abs=1e-6)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("exact", [True, False])
def test_intervals_hold_where_rows_are_as_uneven_as_can_be(
    question: sf.Question, exact: bool
) -> None:
    """All rows lie in few points, so that a range has all rows of a box that it cuts, or none."""
    points = np.repeat(np.random.default_rng(3).random((40, 2)), 100, axis=0)
    p = released(question, points, 1)
    boxes = shapes.workload("medium", 150)
    truth = shapes.true_counts(points, boxes)
    wide = p.count(**corners(boxes), exact=exact)
    narrow = p.count(**corners(boxes), exact=exact, evenly=True)
    assert ((wide.low <= truth) & (truth <= wide.high)).mean() >= 0.95
    assert (wide.low <= narrow.value).all()
    assert np.array_equal(wide.value, narrow.value)
    assert narrow.about.endswith("if they lie evenly in the boxes that the range cuts")
    assert "evenly" not in wide.about


def test_if_rows_do_not_lie_evenly_the_narrow_interval_fails() -> None:
    points = np.repeat(np.random.default_rng(3).random((40, 2)), 100, axis=0)
    boxes = shapes.workload("medium", 150)
    truth = shapes.true_counts(points, boxes)
    found = released(sf.UniformPartitioner(), points, 1).count(**corners(boxes), evenly=True)
    assert ((found.low <= truth) & (truth <= found.high)).mean() < 0.9


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_range_of_one_whole_box_assumes_nothing(question: sf.Question) -> None:
    p = released(question, shapes.points("beta", 2000), 2)
    for box in (0, len(p.counts) // 2, len(p.counts) - 1):
        ranges = {name: (p.lower[box, at], p.upper[box, at]) for at, name in enumerate("xy")}
        wide = p.count(**ranges)
        narrow = p.count(**ranges, evenly=True)
        assert (wide.low, wide.high) == pytest.approx((narrow.low, narrow.high))


@pytest.mark.deep
def test_coverage_of_cut_ranges(evidence: Callable[[str, object], None]) -> None:
    """Of 100 ranges of each size over four shapes of 10,000 points, five releases of each."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    ways = {"if even": {"evenly": True}, "always": {}, "always, quick": {"exact": False}}
    for kind in shapes.KINDS:
        points = shapes.points(kind, 10_000)
        for name, question in QUESTIONS.items():
            held: dict[str, list[Array]] = {way: [] for way in ways}
            widths: dict[str, list[Array]] = {way: [] for way in ways}
            for seed in range(5):
                p = released(question, points, seed)
                for size in shapes.SIZES:
                    boxes = shapes.workload(size, 100)
                    truth = shapes.true_counts(points, boxes)
                    for way, options in ways.items():
                        found = p.count(**corners(boxes), **options)
                        held[way].append((found.low <= truth) & (truth <= found.high))
                        widths[way].append(np.asarray(found.high - found.low))
            figures[f"{kind}, {name}"] = {
                way: {
                    "coverage": round(float(np.mean(held[way])), 3),
                    "mean width": round(float(np.mean(widths[way])), 1),
                }
                for way in ways
            }
            assert all(np.mean(held[way]) >= 0.95 for way in ("always", "always, quick"))
    evidence("coverage_of_cut_ranges", figures)
