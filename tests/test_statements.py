"""Every statement of accuracy says what it is about, in every place where one stands.

A large epsilon says what it allows.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.release import accuracy_sentence
from sfumato.basics.structs import to_bytes
from sfumato.cli import run
from sfumato.privacy.guarantee import Guarantee
from sfumato.reports import page

DOMAIN = sf.Domain(
    x=sf.Interval(0, 100), y=sf.Interval(0, 100), kind=sf.Categories(["a", "b"]), shop=sf.Keys()
)
LIMITED = "of the rows counted (at most 12 per person)"
QUESTIONS = [
    sf.Histogram("x"),
    sf.Histogram(["kind", "x"], bins=20),
    sf.Histogram("x", records=20),
    sf.Histogram("shop"),
    sf.Histogram(["shop", "kind"]),
    sf.Quantiles("x"),
    sf.Quantiles("x", by="kind"),
    sf.UniformPartitioner(["x", "y"], partitions=100),
    sf.UniformPartitioner("x", partitions=50),
    sf.PrivTreePartitioner(["x", "y"]),
    sf.KMeans(2, ["x", "y"]),
]
CLAIM = re.compile(r"within [^.;]*? of the truth")


def table(rows: int = 4_000) -> pa.Table:
    rng = np.random.default_rng(3)
    columns = {
        "x": rng.uniform(0, 100, rows),
        "y": rng.uniform(0, 100, rows),
        "kind": rng.choice(["a", "b"], rows),
        "shop": rng.choice(["s", "t"], rows),
        "rider": rng.integers(0, rows // 10, rows),
    }
    return pa.table(columns)


def claims(text: str) -> list[str]:
    """Sentences that claim an accuracy, from the start of their sentence or line to its end."""
    found = re.split(r"(?<=[.\n])\s+", re.sub(r"<[^>]+>", "\n", text))
    return [sentence for sentence in found if CLAIM.search(sentence)]


@pytest.fixture(scope="module")
def publisher():
    source = sf.source(table(), DOMAIN, person="rider", rows_per_person=12, name="rides")
    with sf.Publisher(source, budget=sf.ApproxDP("1000", "1e-3")) as opened:
        yield opened


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.title)
def test_previews_and_releases_say_which_rows(publisher, question, tmp_path: Path) -> None:
    preview = publisher.preview(question, epsilon="2", delta="1e-6", rows=4_000)
    assert LIMITED in str(preview)
    assert "at most 12 rows of each person are counted; further" in str(preview)
    assert "At most 12 rows of each person are counted" in preview.counted
    release = publisher.release(question, epsilon="2", delta="1e-6")
    sentence = accuracy_sentence(release)
    assert sentence is not None
    assert sentence.startswith(f"O{LIMITED[1:]}, each ")
    saved = json.loads(release.save(tmp_path / "r.json").read_bytes())
    assert "At most 12 rows of each person are counted" in saved["guarantee"]["counted"]
    assert "further rows are missing, and how many is not known" in saved["guarantee"]["counted"]
    text = page.render([release])
    shown = text.replace("&#39;", "'")
    assert sentence.replace("+-", "±") in shown
    counted = re.search(r'<h3 id="counted">.*?</section>', shown, re.DOTALL)
    assert counted is not None
    assert "At most 12 rows of each person are counted" in counted[0]
    assert '<a href="#counted">' in shown
    for said in [*claims(str(preview)), *claims(shown), *claims(str(release.guarantee))]:
        assert "rows counted" in said


def test_rows_that_are_persons_are_rows_counted_too() -> None:
    preview = sf.preview(sf.Histogram("x"), domain=DOMAIN, unit=sf.Unit(), epsilon="1")
    assert "of the rows counted, each count is within +-3 of the truth with 95% confidence" in str(
        preview
    )
    assert "not counted: rows without a value, rows with an unlisted label" in str(preview)
    assert "at most" not in preview.counted


def test_streams_count_some_rows_of_the_whole_stream() -> None:
    unit, counter = sf.Unit(3, person="rider"), sf.Counter(horizon=10)
    said = "of the rows counted (at most 3 per person in the whole stream)"
    assert said in str(sf.preview(counter, domain=DOMAIN, unit=unit, epsilon="1"))
    source = sf.source(table(0), DOMAIN, person="rider", rows_per_person=3, name="s")
    with (
        sf.Publisher(source, budget="1") as publisher,
        publisher.open(counter, epsilon="1", key="k") as stream,
    ):
        total = stream.push(2, persons=["a", "b"])
        release = stream.history()
    assert said in f"of {total.about}"
    assert (
        "The first 3 rows of each person in the whole stream are counted"
        in release.guarantee.counted
    )
    assert (
        "The first 3 rows of each person in the whole stream"
        in json.loads(to_bytes(release))["guarantee"]["counted"]
    )
    assert accuracy_sentence(release).startswith(
        "Of the rows counted (at most 3 per person in the whole stream), each total"
    )


def test_estimates_say_which_rows(publisher) -> None:
    release = publisher.release(sf.Histogram("x"), epsilon="1")
    assert str(release.total()).endswith(
        "at 95% confidence, of the rows counted (at most 12 per person))"
    )
    assert release.mean().about == "the rows counted (at most 12 per person)"
    grid = publisher.release(sf.UniformPartitioner("x", partitions=5), epsilon="1")
    assert grid.count(x=(0, 50)).about == "the rows counted (at most 12 per person)"


def test_the_terminal_and_its_json_say_which_rows(tmp_path: Path, capsys, monkeypatch) -> None:
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    pq.write_table(table(), "rides.parquet")
    words = [
        "histogram",
        "rides.parquet",
        "--axis",
        "x=0..100",
        "--person",
        "rider",
        "--rows-per-person",
        "12",
        "--epsilon",
        "1",
    ]
    assert run([*words, "--budget", "5"]) == 0
    said = capsys.readouterr().err
    accuracy = "each count is within +-36 of the truth with 95% confidence"
    assert f"Of the rows counted (at most 12 per person), {accuracy}" in said
    assert "further rows are missing, and how many is not known" in said
    assert run([*words, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["accuracy"].startswith("Of the rows counted (at most 12 per person)")
    assert "At most 12 rows of each person are counted" in found["guarantee"]["counted"]
    assert run([*words, "--preview", "--json"]) == 0
    assert (
        "At most 12 rows of each person are counted"
        in json.loads(capsys.readouterr().out)["counted"]
    )


def test_a_release_of_an_earlier_version_says_it_too() -> None:
    """Guarantees that were stored without the sentence get it from their unit.

    Streams say what holds for streams.
    """
    fixtures = Path(__file__).parent / "fixtures" / "written_by_0_2" / "upgraded"
    assert (
        "at most 3 rows are counted, chosen at random"
        in sf.load(fixtures / "histogram.json").guarantee.counted
    )
    stream = sf.load(fixtures / "stream-finished.json")
    assert "the first 3 rows of the whole stream" in stream.guarantee.counted
    assert "in the whole stream" in accuracy_sentence(stream)
    quantiles = sf.load(fixtures / "quantiles.json")
    assert quantiles.known is None
    assert "In a label with fewer than" in accuracy_sentence(quantiles)
    guarantee = (
        sf.Histogram("kind")
        .answer(_counted(), sf.Unit(12, person="rider"), sf.PureDP("1"), _noise())
        .guarantee
    )
    from sfumato.basics.structs import from_bytes

    plain = json.loads(to_bytes(guarantee))
    del plain["counted"]
    assert from_bytes(json.dumps(plain).encode(), Guarantee) == guarantee


def _counted():
    from sfumato.domain.cube import Cube

    return Cube(sf.Histogram("kind").needs(DOMAIN).lattice, np.array([5, 7]))


def _noise():
    from sfumato.random.bits import current

    return current()


# --- a large epsilon ------------------------------------------------------------------------------

ALLOWED = (
    "Epsilon above 10 protects hardly anyone: "
    "anyone 1% sure that a person is in the data can become 99.99...% sure."
)


def test_an_epsilon_above_ten_says_what_it_allows(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for question in (
        sf.Histogram("x"),
        sf.Quantiles("x"),
        sf.Counter(horizon=5),
        sf.UniformPartitioner("x", partitions=9),
    ):
        assert ALLOWED in str(sf.preview(question, domain=DOMAIN, unit=sf.Unit(), epsilon="50"))
        assert "hardly" not in str(
            sf.preview(question, domain=DOMAIN, unit=sf.Unit(), epsilon="10")
        )
    release = sf.Histogram("kind").answer(_counted(), sf.Unit(), sf.PureDP("50"), _noise())
    assert release.guarantee.sentence().endswith(ALLOWED)
    assert ALLOWED in page.render([release])
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    assert run(["histogram", "t.csv", "--axis", "x=0..4", "--epsilon", "50", "--budget", "50"]) == 0
    assert ALLOWED in capsys.readouterr().err


def test_a_rho_as_large_says_it_too() -> None:
    assert "amounts to an epsilon above 10" in str(
        sf.preview(sf.Histogram("x"), domain=DOMAIN, unit=sf.Unit(), rho="3")
    )
    assert "hardly" not in str(
        sf.preview(sf.Histogram("x"), domain=DOMAIN, unit=sf.Unit(), rho="0.5")
    )


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_just_above_ten_the_belief_is_a_number(neighbours) -> None:
    text = str(
        sf.preview(sf.Histogram("x"), domain=DOMAIN, unit=sf.Unit(1, neighbours), epsilon="10.1")
    )
    assert "hardly anyone" in text
    assert "at most 99.6% sure" in text or "at most 99.6" in text


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["stability", "truncated-geometric"])
@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_previews_of_keys_say_what_the_accuracy_function_says(rule, epsilon) -> None:
    """The threshold is part of it: a key that is not shown is read as 0."""
    question = sf.Histogram("shop", selection=rule)
    preview = sf.preview(question, domain=DOMAIN, unit=sf.Unit(), epsilon=epsilon, delta="1e-6")
    stated = sf.histogram_accuracy(rule, epsilon=epsilon, delta="1e-6", neighbours="add-remove")
    assert stated <= preview.accuracy() < stated + 1
    assert "includes the threshold" in str(preview)


def test_the_threshold_is_in_previews_of_keys_beside_other_axes() -> None:
    alone = sf.preview(
        sf.Histogram("shop"), domain=DOMAIN, unit=sf.Unit(), epsilon="1", delta="1e-6"
    )
    beside = sf.preview(
        sf.Histogram(["shop", "kind"]), domain=DOMAIN, unit=sf.Unit(), epsilon="2", delta="1e-6"
    )
    kept = beside.selects.kept(np.array([beside.accuracy() + 1]))[0]
    assert beside.accuracy() >= alone.accuracy()
    assert (
        1 - kept <= 0.05
    )  # what is missed by more than the accuracy is shown with 95%, and then is off by noise alone
    with pytest.raises(sf.UsageError):
        beside.accuracy(simultaneous=True)


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.title)
def test_pictures_name_the_limit(publisher, question) -> None:
    """A picture that is taken out of its page still says which rows it is of."""
    ax = publisher.release(question, epsilon="2", delta="1e-6").plot()
    title = " ".join(ax.get_legend().get_title().get_text().split())
    assert re.search("[Aa]t most 12 (rows of each|per) person", title)
