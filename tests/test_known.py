"""What is not known is marked so: in tables, files and pictures; and what is known is not."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.release import accuracy_sentence
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.charts import style
from sfumato.domain.cube import Cube
from sfumato.mechanisms.noise_sums import contrast_half_width
from sfumato.privacy.measures import PureDP
from sfumato.questions.quantiles.methods import half_width
from sfumato.random import PublicSeed
from sfumato.reports import page
from support.laws import Recorder, loss

DOMAIN = sf.Domain(
    delay=sf.Interval(-60, 240, step=1),
    carrier=sf.Categories(["F9", "HA", "UA"]),
    x=sf.Interval(0, 10),
)
QUESTION = sf.Quantiles("delay", by="carrier")


@pytest.fixture(scope="module")
def release():
    """Two labels have fewer rows than the rank error, one has many."""
    lattice = QUESTION.needs(DOMAIN).lattice
    sizes = [40, 0, 60_000]
    rng = np.random.default_rng(5)
    cells = np.concatenate(
        [np.stack([np.full(n, i), rng.integers(40, 120, n)], axis=1) for i, n in enumerate(sizes)]
    )
    return QUESTION.answer(Cube.of_cells(lattice, cells), sf.Unit(), PureDP("0.5"), PublicSeed(4))


def test_groups_with_fewer_rows_than_the_rank_error_are_marked(release, tmp_path) -> None:
    assert release.known.shape == release.values.shape
    assert release.known.tolist() == [[False] * 3, [False] * 3, [True] * 3]
    assert release.values.shape == (3, 3)  # the values stay as they were released
    frame = release.to_frame()
    assert frame["known"].to_pylist() == release.known.reshape(-1).tolist()
    saved = json.loads(release.save(tmp_path / "q.json").read_bytes())
    assert saved["known"] == release.known.reshape(-1).tolist()
    assert sf.load(tmp_path / "q.json") == release
    assert "6 of 9 values are not known" in accuracy_sentence(release)
    shown = page.render([release])
    assert "6 of 9 values are not known" in shown
    assert shown.count('<td class="text">no</td>') == 6 or shown.count("<td>no</td>") == 6


def test_what_is_not_known_is_hatched_and_no_mark_is_drawn(release) -> None:
    ax = release.plot()
    text = style.svg(ax.figure, "t", "d")
    assert "not known" in text
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == 2
    boxes = [
        p
        for p in ax.patches
        if not p.get_hatch() and np.isfinite(p.get_width()) and p.get_height() == 0.5
    ]
    assert len(boxes) == 1
    drawn = [
        np.asarray(segment)
        for lines in ax.collections
        for segment in lines.get_segments()
        if np.size(segment)
    ]
    assert {
        round(float(at)) for segment in drawn if np.isfinite(segment).all() for at in segment[:, 1]
    } == {2}


def test_the_mark_follows_from_the_released_rows_and_the_rank_error(release) -> None:
    """Rows surely lie on both sides of a value, or the bound on its rank error is within them."""
    (method,) = release.axis_methods.values()
    law = method.rank_noise.law
    gaps = release.gaps.reshape(3, 4)
    sides = np.array([contrast_half_width(law, j, 0, Fraction(0), 0.025) for j in range(5)])
    below = np.cumsum(gaps, axis=1)[:, :-1]
    above = release.rows[:, None] - below
    between = (below > sides[1:4]) & (above > sides[3:0:-1])
    least = release.rows - sides[4]
    ends = np.array([min(q, 1 - q) for q in release.at], float)
    assert np.array_equal(
        release.known, between | (half_width(method, 0.0125) < ends * least[:, None])
    )


def test_a_file_cannot_call_a_value_known(release) -> None:
    plain = json.loads(to_bytes(release))
    plain["known"] = [True] * 9
    assert (
        from_bytes(json.dumps(plain).encode(), type(release)).known.tolist()
        == release.known.tolist()
    )


@pytest.mark.parametrize("cost", [sf.PureDP("1"), sf.ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("unit", [sf.Unit(), sf.Unit(3, "replace")], ids=str)
def test_the_numbers_of_rows_are_paid_for(cost, unit) -> None:
    """Levels of counts spend the cost to the last unit, and ranks and rows follow from them."""
    question, noise = sf.Quantiles("delay", by="carrier", method="tree"), Recorder()
    lattice = question.needs(DOMAIN).lattice
    release = question.answer(Cube.of_cells(lattice, np.zeros((9, 2), np.int64)), unit, cost, noise)
    assert release.rows.tolist() == [9, 0, 0]
    whole = cost.rho if isinstance(cost, sf.ZCDP) else cost.epsilon
    levels = [law for law, _ in noise.drawn]
    assert sum(loss(law, unit) for law in levels[: len(levels) // 3]) == whole


@pytest.mark.parametrize("cost", [sf.PureDP("1"), sf.ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("unit", [sf.Unit(), sf.Unit(3, "replace")], ids=str)
def test_gaps_between_values_are_counted_at_a_fifth_of_the_cost(cost, unit) -> None:
    """One draw a gap for each label, and their rows are what lies between the values."""
    question = sf.Quantiles("delay", at=[0.5], by="carrier", method="recursive")
    lattice = question.needs(DOMAIN).lattice
    (method,) = question.axis_methods(lattice, unit, cost).values()
    cells = np.stack([np.repeat([0, 2], [9, 5]), np.full(14, 50)], axis=1)
    bits = PublicSeed("gaps")
    release = question.answer(Cube.of_cells(lattice, cells), unit, cost, bits)
    whole = cost.rho if isinstance(cost, sf.ZCDP) else cost.epsilon
    law = method.rank_noise.law
    assert loss(law, unit) == whole * Fraction(1, 5)
    assert release.gaps.shape == (6,)
    off = np.abs(release.rows - [9, 0, 5])
    assert (off <= contrast_half_width(law, 2, 0, Fraction(0), 1e-6)).all()


def test_previews_say_how_many_rows_it_takes() -> None:
    preview = sf.preview(QUESTION, domain=DOMAIN, unit=sf.Unit(), epsilon="0.5")
    assert f"fewer than about {preview.rows_needed:,} rows are marked as not known" in str(preview)
    alone = sf.preview(sf.Quantiles("delay"), domain=DOMAIN, unit=sf.Unit(), epsilon="0.5")
    said = f"fewer than about {alone.rows_needed:,} rows, some of the values are marked as not"
    assert said in str(alone)
    cube = Cube.of_cells(sf.Quantiles("delay").needs(DOMAIN).lattice, np.zeros((9, 1), np.int64))
    release = sf.Quantiles("delay").answer(cube, sf.Unit(), PureDP("0.5"), PublicSeed(3))
    assert release.known.tolist() == [False] * 3
    assert "3 of 3 values are not known: there are too few rows." in accuracy_sentence(release)


def test_the_median_of_a_small_group_is_not_known_in_the_flights() -> None:
    """F9 has 682 delays, and the limit of 12 a rank error of more than that.

    Its median was drawn at 144 minutes, and is 0.5 or so.
    """
    from sfumato.demo import flights_domain, flights_path

    source = sf.source(flights_path(), flights_domain(), person="tailnum", rows_per_person=12)
    with sf.Publisher(source, budget="1") as publisher:
        release = publisher.release(sf.Quantiles("dep_delay", by="carrier"), epsilon="0.5")
    known = dict(zip(release.labels, release.known.tolist(), strict=True))
    assert (
        known["F9"] == [False] * 3
    )  # a noisy number of rows that says otherwise has a chance below 1e-9
    assert known["HA"] == [False] * 3


def test_shares_and_means_of_nothing_are_not_known() -> None:
    question = sf.Histogram("x", bins=5)
    empty = question.answer(
        Cube.of_cells(question.needs(DOMAIN).lattice, np.zeros((0, 1), np.int64)),
        sf.Unit(),
        PureDP("0.01"),
        PublicSeed(1),
    )
    full = question.answer(
        Cube.of_cells(question.needs(DOMAIN).lattice, np.tile([[1], [3]], (50_000, 1))),
        sf.Unit(),
        PureDP("1"),
        PublicSeed(1),
    )
    for found in (
        empty.mean(),
        empty.median(),
        empty.variance(),
        empty.rate([True] + [False] * 4),
        empty.herfindahl(),
    ):
        assert found.known is False
        assert str(found).startswith("not known (")
    assert not empty.shares().known.any()
    assert "5 of them not known" in str(empty.shares())
    for found in (
        full.mean(),
        full.median(),
        full.variance(),
        full.herfindahl(),
        full.rate([True] + [False] * 4),
    ):
        assert found.known is True
        assert not str(found).startswith("not known")
    assert full.shares().known.all()
    assert full.total().known is True


def test_centres_without_weight_are_not_known() -> None:
    points = np.random.default_rng(1).normal(5, 0.1, (20, 2))
    domain = sf.Domain(a=sf.Interval(0, 10), b=sf.Interval(0, 10))
    with sf.Publisher(sf.source(points, domain, name="few"), budget="1") as publisher:
        release = publisher.release(sf.KMeans(3, method="dplloyd"), epsilon="0.001")
    assert release.known.tolist() == (release.weights > release.accuracy()).tolist()
    assert release.to_frame()["known"].to_pylist() == release.known.tolist()
    assert json.loads(to_bytes(release))["known"] == release.known.tolist()
    assert np.isinf(release.standard_error[~release.known]).all()
    hollow = msgspec_known(release, [False, True, False])
    text = style.svg(hollow.plot().figure, "t", "d")
    assert "not known" in text
    assert "2 of 3 centres are not known" in accuracy_sentence(hollow)


def msgspec_known(release, flags):
    """The same clusters with other weights, so that these are known and no others."""
    import msgspec

    far = int(release.accuracy().max()) + 1
    return msgspec.structs.replace(release, weights=np.where(flags, far, 0).astype(np.int64))


@pytest.mark.parametrize("axes", [["a"], ["a", "b"], ["a", "b", "c"]], ids=len)
def test_every_picture_of_clusters_marks_what_is_not_known(axes) -> None:
    domain = sf.Domain({name: sf.Interval(0, 10) for name in "abc"})
    data = pa.table({name: np.random.default_rng(1).uniform(0, 10, 50) for name in "abc"})
    with sf.Publisher(sf.source(data, domain, name="few"), budget="1") as publisher:
        release = publisher.release(sf.KMeans(3, axes, method="dplloyd"), epsilon="0.5")
    text = style.svg(msgspec_known(release, [True, False, True]).plot().figure, "t", "d")
    assert "not known" in text
    assert "not known" not in style.svg(msgspec_known(release, [True] * 3).plot().figure, "t", "d")
