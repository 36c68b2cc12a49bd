"""How many rows ``predict`` gives to each centre: an interval of its own, which holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from benchmarks.studies import shapes
from sfumato.basics.numbers import Array
from sfumato.data import count
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.clustering.error import Cells
from sfumato.questions.clustering.lloyd import nearest
from sfumato.random import PublicSeed

PLANE = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))
METHODS = ("eugkm", "privtree", "dplloyd")
GROUPS = 6


def releases(points: Array, method: str, epsilon: str, runs: int) -> list[sf.KMeansRelease]:
    question = sf.KMeans(n_clusters=GROUPS, method=method)
    source = sf.source(points, PLANE, name="points")
    (cube,) = count(source, [question.needs(PLANE)], key=bytes(32))
    return [question.answer(cube, Unit(), PureDP(epsilon), PublicSeed(run)) for run in range(runs)]


def held(low: Array, high: Array, truth: Array) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["clusters", "beta"])
def test_intervals_hold_what_predict_gives(method: str, kind: str) -> None:
    points = shapes.points(kind, 3000)
    covered = []
    shares = []
    for release in releases(points, method, "0.5", 5):
        rows = np.bincount(release.predict(points), minlength=GROUPS)
        found = release.predicted()
        covered.append(held(found.low, found.high, rows))
        part = release.predicted_shares()
        shares.append(held(part.low, part.high, rows / len(points)))
        assert (found.low <= found.value).all()
        assert part.value.sum() == pytest.approx(1, abs=0.1)
        wider = release.predicted(simultaneous=True)
        assert (wider.low <= found.low).all()
        assert (wider.high >= found.high).all()
    assert np.mean(covered) >= 0.95
    assert np.mean(shares) >= 0.95


def test_without_a_partition_nothing_but_the_total_is_known() -> None:
    (release,) = releases(shapes.points("beta", 3000), "dplloyd", "0.5", 1)
    found = release.predicted()
    assert not found.low.any()
    assert (found.high > 2900).all()
    assert not np.any(found.known)
    assert release.predicted_shares().high.tolist() == [1] * GROUPS


def test_cells_inside_hold_no_row_of_another_centre() -> None:
    """And those that are not touched hold no row of this one; centres at one place share none."""
    (release,) = releases(shapes.points("clusters", 3000), "eugkm", "1", 1)
    assert release.partition is not None
    cells = Cells.of(release.space, release.partition)
    whole = release.whole_centres.reshape(GROUPS, -1)
    centres = np.concatenate([whole, whole[:1]])
    points, cell = cells.points
    groups = nearest(points, centres)
    n_inside = 0
    for at in range(len(centres)):
        inside, touched = cells.covered(centres, at)
        assert (groups[inside[cell]] == at).all()
        assert (groups[~touched[cell]] != at).all()
        assert not (inside & ~touched).any()
        n_inside += int(inside.sum())
    assert n_inside > len(cells.counts) / 2
    assert not cells.covered(centres, GROUPS)[1].any()


@pytest.mark.deep
def test_coverage_of_predicted_rows(evidence: Callable[[str, object], None]) -> None:
    figures: dict[str, dict[str, float]] = {}
    for kind in shapes.KINDS:
        points = shapes.points(kind, 5000)
        for epsilon in ("0.1", "1"):
            for method in METHODS:
                of_weights, of_rows, of_shares, widths = [], [], [], []
                for release in releases(points, method, epsilon, 25):
                    rows = np.bincount(release.predict(points), minlength=GROUPS)
                    of_weights.append(held(*release.interval(), rows))
                    found = release.predicted()
                    of_rows.append(held(found.low, found.high, rows))
                    part = release.predicted_shares()
                    of_shares.append(held(part.low, part.high, rows / len(points)))
                    widths.append(np.mean(found.high - found.low))
                assert np.mean(of_rows) >= 0.95
                assert np.mean(of_shares) >= 0.95
                figures[f"{kind}, epsilon {epsilon}, {method}"] = {
                    "interval of weights": round(float(np.mean(of_weights)), 3),
                    "predicted": round(float(np.mean(of_rows)), 3),
                    "shares": round(float(np.mean(of_shares)), 3),
                    "mean width": round(float(np.mean(widths)), 1),
                }
    evidence("coverage_of_predicted_rows", figures)
