"""Ranks that are paid for: they cover as stated, and no law that is a little different would do."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.cube import Cube
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.quantiles.methods import AxisMethod
from sfumato.questions.quantiles.ranks import GapNoise, counted_gaps, noisy_gaps, rows_between
from sfumato.random import PublicSeed
from support.quantile_data import METHODS, cells_of

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def data(shape: str) -> np.ndarray:
    """Counts of 64 cells: none, few, many, tied and skewed."""
    counts = np.zeros(64, np.int64)
    match shape:
        case "five":
            counts[[3, 20, 21, 40, 63]] = 1
        case "fifty":
            counts[5:55] = 1
        case "tied":
            counts[::4] = 40
            counts[20] = 4_000
        case "skewed":
            counts[:] = np.geomspace(2_000, 1, 64).astype(int)
        case "at an end":
            counts[0] = 700
    return counts


SHAPES = ["none", "five", "fifty", "tied", "skewed", "at an end"]


def answered(question, counts, draws, seed, cost=None, unit=None):
    """Releases of the same rows, and true ranks of their values: rows below and rows up to them."""
    domain = sf.Domain(x=sf.Interval(0, 64, step=1), y=sf.Interval(0, 64))
    lattice = question.needs(domain).lattice
    places = lattice.axes[0].locate(np.repeat(np.arange(64.0), counts))
    cube = Cube.of_cells(lattice, places[:, None])
    bits = PublicSeed(seed)
    through = np.concatenate([[0], np.cumsum(counts)])
    for _ in range(draws):
        release = question.answer(cube, unit or Unit(), cost or PureDP("1"), bits)
        below = through[np.ceil(release.values).astype(int)]
        upto = through[np.minimum(np.floor(release.values).astype(int) + 1, 64)]
        yield release, below, upto


def offsets(release, confidence, simultaneous=False):
    """Between which numbers (rows below a value) - at * (all rows) lies."""
    rows = release.gaps.sum()
    middle = np.cumsum(release.gaps)[:-1] - np.array([float(q) for q in release.at]) * rows
    half = release.accuracy(confidence, simultaneous)
    return middle - half, middle + half


def cases():
    """Each shape, method and axis; without a step, what looks at the same code is deep.

    Not at all: a tree over the 2^20 cells of an axis without a step.
    """
    for shape, method, axis in itertools.product(SHAPES, METHODS, "xy"):
        is_deep = axis == "y" and shape not in {"fifty", "tied"}
        if (method, axis) != ("tree", "y"):
            marks = [pytest.mark.deep] if is_deep else []
            yield pytest.param(shape, method, axis, marks=marks)


@pytest.mark.parametrize(("shape", "method", "axis"), list(cases()))
def test_ranks_cover(shape, method, axis):
    """On a step a value has every rank of its tied rows; without one its rank is one number."""
    counts = data(shape)
    question = sf.Quantiles(axis, method=method)
    at = np.array([0.25, 0.5, 0.75])
    each, every, shares = [], [], []
    for release, below, upto in answered(question, counts, 40, f"{shape} {method} {axis}"):
        low, high = offsets(release, "0.8")
        last = upto if axis == "x" else below
        each.append((below - at * counts.sum() <= high) & (last - at * counts.sum() >= low))
        low, high = offsets(release, "0.8", simultaneous=True)
        covered = (below - at * counts.sum() <= high) & (last - at * counts.sum() >= low)
        every.append(covered.all())
        if counts.any():
            low, high = release.rank_interval("0.8")
            shares.append((below / counts.sum() <= high) & (last / counts.sum() >= low))
    # The bits are fixed: luck decides nothing. 24 of 40 is 3 standard deviations below 0.8.
    assert np.mean(each, axis=0).min() >= 24 / 40
    assert np.mean(every) >= 24 / 40
    assert not shares or np.mean(shares, axis=0).min() >= 24 / 40


@pytest.mark.parametrize("cost", [PureDP("0.1"), ZCDP("0.005")], ids=str)
@pytest.mark.parametrize("unit", [Unit(), Unit(3, "replace")], ids=str)
def test_the_stated_law_is_exact(cost, unit):
    """The same gaps are counted 6,000 times: coverage is the nominal one, no less and no more."""
    method = AxisMethod("joint", QUARTILES, 64, unit, cost, False, True, rank_cost=cost)
    fine = cells_of(data("skewed")).divided(method.subcells)
    edges = method.subcells * np.array([4, 9, 30])
    gaps = rows_between(fine, edges)
    bits = PublicSeed("law")
    draws = np.array([method.count_gaps(fine, edges, bits) for _ in range(6_000)]) - gaps
    errors = np.cumsum(draws, axis=1)[:, :-1] - draws.sum(axis=1)[:, None] * np.array(
        [0.25, 0.5, 0.75]
    )
    for j, q in enumerate(QUARTILES, 1):
        half = method.rank_noise.half_width(j, 4 - j, q, 0.05)
        within = float((np.abs(errors[:, j - 1]) <= half).mean())
        narrower = float((np.abs(errors[:, j - 1]) <= 0.85 * half).mean())
        # 0.018 is 6.4 standard deviations: a false alarm has a probability below 1e-9.
        assert abs(within - 0.95) < 0.018
        assert narrower < 0.95 - 0.018


def test_equal_values_share_one_rank_and_need_no_count():
    counted = counted_gaps(np.array([[2, 2, 5], [0, 8, 8]]), 8, False)
    assert counted.tolist() == [[True, False, True, True], [False, True, False, False]]
    assert counted_gaps(np.array([2, 2, 5]), 8, True).all()
    noise = GapNoise(DiscreteLaplace(Fraction(5)))
    merged = noise.half_width(1, 1, Fraction(1, 2), 0.05)
    assert merged < noise.half_width(2, 2, Fraction(1, 2), 0.05)
    gaps = noisy_gaps(np.array([7, 0, 9, 4]), counted[0], noise.law, PublicSeed(1))
    assert gaps[1] == 0


def test_gaps_are_those_between_the_edges():
    cells = cells_of([3, 0, 4, 5])
    assert rows_between(cells, np.array([0, 2, 3])).tolist() == [0, 3, 4, 5]
    assert rows_between(cells, np.array([4, 4])).tolist() == [12, 0, 0]
    assert rows_between(cells_of([0, 0]), np.array([1])).tolist() == [0, 0]


def test_a_value_without_rows_on_one_side_is_not_known():
    """Five rows at epsilon 1 say nothing; 4,000 rows say where each quartile is."""
    few = [r.known.any() for r, _, _ in answered(sf.Quantiles("x"), data("five"), 10, "few")]
    assert sum(few) <= 2
    many = [r.known.all() for r, _, _ in answered(sf.Quantiles("x"), data("skewed"), 10, "many")]
    assert all(many)


def test_known_values_have_rows_on_both_sides():
    """Where a mark says known, it is wrong in at most one of twenty draws, for any data."""
    question = sf.Quantiles("y", at=[0.05, 0.5, 0.95])
    for shape in ("none", "five", "fifty"):
        counts = data(shape)
        wrong = [
            release.known & ((below == 0) | (below == counts.sum()))
            for release, below, _ in answered(question, counts, 20, shape)
        ]
        assert np.max(np.mean(wrong, axis=0)) <= 0.15


def test_ranks_are_read_from_the_file_and_rows_follow_from_them(tmp_path):
    ((release, _, _),) = answered(sf.Quantiles("y"), data("skewed"), 1, "file")
    path = release.save(tmp_path / "q.json")
    loaded = sf.load(path)
    assert loaded == release
    assert loaded.ranks.tolist() == release.ranks.tolist()
    gaps = loaded.gaps.tolist()
    edited = path.read_text("utf-8").replace(f'"rows":[{sum(gaps)}]', '"rows":[123456]')
    assert edited != path.read_text("utf-8")
    path.write_text(edited, "utf-8")
    assert sf.load(path).rows.tolist() == [sum(gaps)]


def test_a_file_with_other_gaps_is_refused(tmp_path):
    ((release, _, _),) = answered(sf.Quantiles("y"), data("skewed"), 1, "file")
    path = release.save(tmp_path / "q.json")
    text = path.read_text("utf-8")
    gaps = ",".join(map(str, release.gaps.tolist()))
    for wrong in (gaps.rpartition(",")[0], f"{gaps},1"):
        path.write_text(text.replace(f'"gaps":[{gaps}]', f'"gaps":[{wrong}]'), "utf-8")
        with pytest.raises(sf.DataError):
            sf.load(path)
