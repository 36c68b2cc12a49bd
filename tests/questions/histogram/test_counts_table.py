"""Tables of counts: their intervals hold, their cells have true names, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sfumato as sf
from questions.histogram.tables import HALF, answer
from sfumato.charts import style
from sfumato.cli import run
from sfumato.domain.scale import DATES, NUMBERS
from sfumato.privacy.measures import ZCDP
from sfumato.questions.histogram import Histogram
from sfumato.random import PublicSeed
from sfumato.reports import page
from support.statistics import check_coverage, masses, support


@pytest.mark.parametrize("cost", [HALF, ZCDP("0.1")], ids=str)
def test_coverage_of_ten_thousand_releases(cost):
    """One release of 10^4 times as many cells has the same law. The seed is public."""
    releases = 10_000
    cells = 20
    question = Histogram("age", bins=cells)
    release = answer(question, cost=cost)
    errors = np.abs(
        release.law.sample(releases * cells, PublicSeed("many")).reshape(releases, cells)
    )
    values = support(release.law)
    for simultaneous in (False, True):
        half = int(release.accuracy("0.95", simultaneous)[0])
        one = float(masses(release.law, values)[np.abs(values) <= half].sum())
        held = (errors <= half).all(axis=1) if simultaneous else (errors <= half).reshape(-1)
        exact = one**cells if simultaneous else one
        assert exact >= 0.95 - 1e-9
        check_coverage(int(held.sum()), held.size, exact, near_miss=0.02, false_alarm=6.3e-5)


def test_refusals(releases: list[sf.HistogramRelease]) -> None:
    release = releases[0]
    for ask in (
        release.mean,
        lambda: release.mean("kind"),
        lambda: release.rate(False),
        lambda: release.kept(3),
    ):
        with pytest.raises(sf.UsageError):
            ask()


DOMAIN = sf.Domain(
    age=sf.Interval(0, 200),
    day=sf.Interval("2013-01-01", "2013-01-15"),
    kind=sf.Categories(["a", "b"]),
)
AGES = np.array([[5.0], [50.0], [110.0], [130.0], [199.0], [-3.0], [1e9]])


@pytest.fixture(scope="module")
def release():
    """Edges narrower than the bounds: three rows lie below 120 that are not from 100 to 120."""
    with sf.Publisher(
        sf.source(AGES, sf.Domain(age=DOMAIN["age"]), name="t"), budget="9999"
    ) as publisher:
        return publisher.release(sf.Histogram("age", bins=[100, 120, 140]), epsilon="5000")


def test_names_are_true_of_every_value(release) -> None:
    assert release.cell_names("age") == ["below 120", "120 and above"]
    assert release.values.tolist() == [int((AGES < 120).sum()), int((AGES >= 120).sum())]


def test_the_outer_edges_of_the_public_bounds_are_open_too() -> None:
    assert NUMBERS.bin_names(["0", "1", "2"]) == ["below 1", "1 and above"]
    assert NUMBERS.bin_names(["0", "1", "2", "3"]) == ["below 1", "1 to 2", "2 and above"]
    assert NUMBERS.bin_names(["0", "1"]) == ["all values"]
    assert DATES.bin_names(["2013-01-01", "2013-01-08", "2013-01-15"]) == [
        "before 2013-01-08",
        "2013-01-08 and later",
    ]


def test_frames_files_and_pages_have_the_names(release, tmp_path) -> None:
    frame = release.to_frame()
    assert frame.column_names == ["age", "age_lower", "age_upper", "count", "low", "high"]
    assert frame["age"].to_pylist() == ["below 120", "120 and above"]
    shown = page.render([release])
    assert '<td class="text"><bdi>below 120</bdi></td>' in shown
    assert "100 to 120" not in shown
    saved = json.loads(release.save(tmp_path / "r.json").read_bytes())
    assert (
        "Values beyond an axis' bounds or edges are counted in its end cells."
        in saved["guarantee"]["counted"]
    )


def test_the_terminal_has_the_names(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("age\n" + "\n".join(str(x) for x in AGES.ravel()) + "\n")
    words = [
        "histogram",
        "t.csv",
        "--axis",
        "age=0..200",
        "--bins",
        "age=100,120,140",
        "--epsilon",
        "1",
        "--budget",
        "1",
    ]
    assert run(words) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "age",
        "below 120",
        "120 and above",
    ]
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["table"]["age"] == ["below 120", "120 and above"]


@pytest.mark.parametrize(
    ("question", "there", "gone"),
    [
        (
            sf.Histogram("age", bins=[0, 18, 65, 100]),
            ["below 18", "18 to 65", "65 and above"],
            ["65 to 100"],
        ),
        (
            sf.Histogram("age", bins=20),
            ["The bins at the ends also hold what lies beyond them."],
            [],
        ),
        (
            sf.Histogram("age", bins=[0, *range(7, 30), 100]),
            ["The bins at the ends", "…"],
            [">100<"],
        ),
        (sf.Histogram("day"), ["The bins at the ends also hold what lies beyond them."], []),
        (
            sf.Histogram(["kind", "age"], bins=[0, 18, 65, 100]),
            ["below 18", "65 and above"],
            ["65 to 100"],
        ),
        (
            sf.Histogram(["day", "age"], bins={"age": 12}),
            ["The bins at the ends also hold", "…"],
            [">200<"],
        ),
        (
            sf.UniformPartitioner("age", partitions=30),
            ["The cells at the ends also hold what lies beyond them."],
            [],
        ),
    ],
    ids=str,
)
def test_pictures_do_not_end_where_bins_do(question, there, gone) -> None:
    from sfumato.domain.cube import Cube
    from sfumato.random import PublicSeed

    lattice = question.needs(DOMAIN).lattice
    cells = np.zeros((50, len(lattice.axes)), np.int64)
    ax = question.answer(
        Cube.of_cells(lattice, cells), sf.Unit(), sf.PureDP("1"), PublicSeed(1)
    ).plot()
    text = style.svg(ax.figure, "t", "d").replace("\n", " ")
    for words in there:
        assert words in text
    for words in gone:
        assert words not in text
