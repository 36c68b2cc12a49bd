"""The table over epsilon and L: rows, comparisons, refusals, picture and page."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.charts import style
from sfumato.local.table import COLUMNS, LocalTable, _ByAxis, local_table
from sfumato.random import PublicSeed, override


def points() -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.8]])
    return np.clip(centers[rng.integers(3, size=120)] + rng.normal(size=(120, 2)) * 0.04, 0, 1)


@pytest.fixture(scope="module")
def table() -> LocalTable:
    with override(PublicSeed("table")):
        return local_table(points(), 3, epsilon=["1", "32"], L=["0.3", "auto"])


def test_a_row_for_each_setting_and_comparisons_beside_them(table: LocalTable) -> None:
    lines = table.lines()
    assert {len(line) for line in lines} == {len(COLUMNS)}
    assert [line[0] for line in lines[:4]] == [
        "BPM",
        "BPM",
        "multivariate Laplace",
        "Laplace by axis",
    ]
    assert [line[2] for line in lines[:2]] == ["0.3", "auto: 8.191"]
    assert [line[0] for line in lines[-2:]] == ["no data: even centres", "no privacy"]


def test_what_reports_say_decides(table: LocalTable) -> None:
    silent, _, _, _, _, plain, laplace, by_axis = table.rows
    assert (silent.decoded, silent.evident) == (table.even, False)
    assert plain.evident
    assert plain.decoded is not None
    assert laplace.decoded is not None
    # Noise of 1/16 of the cube hides nothing of clusters at such distances.
    assert max(plain.decoded, laplace.decoded) < 1.2 * table.best
    assert by_axis.decoded is None
    assert table.increase(2 * table.best) == "+100%"
    assert table.facts()[1].startswith("In 3 of 6 settings the reports show no clusters")


def test_noise_by_axis_has_the_variance_that_it_is_said_to_have() -> None:
    noise = _ByAxis(Fraction(2), 3).perturb(np.zeros((40_000, 3)))
    assert (noise**2).sum(axis=1).mean() == pytest.approx(2 * 3**3 / 2**2, rel=0.05)


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": []},
        {"epsilon": "2"},
        {"epsilon": [2], "L": []},
        {"epsilon": [0]},
        {"epsilon": [2], "L": [-1]},
        {"epsilon": [2], "repeats": 0},
        {"epsilon": list(range(1, 60))},
    ],
)
def test_wrong_settings_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(sf.UsageError):
        local_table(points(), 3, **given)  # type: ignore[arg-type]


def test_a_hopeless_setting_is_refused_before_anything_is_simulated() -> None:
    with pytest.raises(sf.Infeasible):
        local_table(np.zeros((50, 64)), 2, epsilon=[4], L=["0.3"])


def test_picture_and_page(table: LocalTable, tmp_path: Path) -> None:
    ax = table.plot()
    labels = {line.get_label() for line in ax.lines}
    assert {"BPM, L = 0.3", "BPM, L auto", "Laplace by axis", "no privacy"} <= labels
    style.save(style.figure_of(ax), tmp_path / "t.svg")
    page = sf.report(table, tmp_path / "t.html").read_text(encoding="utf-8")
    assert "NOT PRIVATE" in page
    assert "auto: 8.191" in page


def test_the_page_says_that_nothing_is_evident(tmp_path: Path) -> None:
    with override(PublicSeed("page")), pytest.warns(UserWarning, match="say next to nothing"):
        found = sf.PrivateKMeans(3, epsilon=1, L="0.3", random_state=0).fit(points())
    page = sf.report(found, tmp_path / "c.html").read_text(encoding="utf-8")
    assert found.evident_ is False
    assert "The reports do not show where clusters are" in page
