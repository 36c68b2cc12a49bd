"""What a person is called: in every sentence, and in nothing that is charged."""

from __future__ import annotations

import pickle
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.privacy import Unit, with_person_called
from sfumato.publishing.verifying import verify

TRIPS = pa.table({"rider_id": np.repeat(np.arange(50), 4), "hour": np.arange(200) % 24})
DOMAIN = sf.Domain(hour=sf.Interval(0, 24, step=1))
HOURS = sf.Histogram("hour", bins=4)
QUESTIONS = (
    HOURS,
    sf.Histogram("hour", bins=4, count="persons"),
    sf.Mean("hour"),
    sf.Persons(most_rows=20),
    sf.Quantiles("hour", at=[0.5]),
    sf.Tables(["hour"]),
    sf.KMeans(2, "hour"),
    sf.UniformPartitioner("hour", partitions=4),
)


def trips(called: str | None = None, person: object = "rider_id") -> sf.Source:
    return sf.source(
        TRIPS, DOMAIN, person=person, rows_per_person=3, name="trips", person_called=called
    )


def publisher(ledger: Path, called: str | None = None) -> sf.Publisher:
    return sf.Publisher(trips(called), ledger=ledger, account="trips", budget="20")


@pytest.mark.parametrize("called", ["rider", None])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_no_sentence_names_the_column_in_place_of_the_person(
    question: sf.Question, called: str | None, tmp_path: Path
) -> None:
    with publisher(tmp_path / "b.db", called) as pub:
        preview = str(pub.preview(question, epsilon="1"))
        release = pub.release(question, epsilon="1")
        page = sf.report(release, tmp_path / "r.html").read_text("utf-8")
    said = " ".join([preview, str(release.guarantee), release.title, page])
    # The one place of the column's own name says which column identifies a person.
    said = said.replace("The column rider_id names the person behind each row", "")
    assert "rider_id" not in said
    assert f"any one {called or 'person'}" in said


def test_a_stored_answer_is_replayed_under_any_name_and_verified(tmp_path: Path) -> None:
    ledger = tmp_path / "b.db"
    with publisher(ledger) as pub:
        # A signature vouches for words that the ledger does not keep.
        pub.ledger.signer(create=True)
        first = pub.release(list(QUESTIONS), epsilon="4")
        spent = pub.account.spent
    with publisher(ledger, "rider") as pub:
        named = pub.release(list(QUESTIONS), epsilon="4")
        assert pub.account.spent == spent
        assert all(verify(release, pub.ledger).ok for release in [*first, *named])
    for before, after in zip(first, named, strict=True):
        assert after.replayed
        assert "any one rider" in str(after.guarantee)
        assert "Of each person" not in after.guarantee.counted
        assert np.array_equal(np.asarray(after.values), np.asarray(before.values))
    with publisher(ledger) as pub:
        # Without a name, the stored words stay.
        again = pub.release(list(QUESTIONS), epsilon="4")
    assert [release.guarantee for release in again] == [release.guarantee for release in first]


def test_words_of_version_0_2_are_told_anew(tmp_path: Path) -> None:
    """It called a person by the column; an answer that says so takes the name of now."""
    with publisher(tmp_path / "b.db", "rider_id") as pub:
        release = pub.release(HOURS, epsilon="1")
    unit = release.guarantee.unit.uncalled
    said = (
        "Of each rider_id at most 3 rows are counted, chosen at random, and any further ones are "
        "not. Rows without a rider_id are not counted. Every accuracy is about the rows counted."
    )
    known = (
        "At most 3 rows of each rider_id are counted: 1 to 2 of 3 have more, with 95% confidence."
    )
    stored = msgspec.structs.replace(release.guarantee, unit=unit, counted=said)
    told = with_person_called(stored, "rider")
    assert told.counted.startswith("At most 3 rows of each rider are counted; further rows")
    assert "rider_id" not in told.counted
    stored = msgspec.structs.replace(stored, counted=f"{said} {known}")
    assert stored.scope == known
    assert with_person_called(stored, "rider").counted.startswith(known)


def test_a_stream_goes_on_under_another_name(tmp_path: Path) -> None:
    counter = sf.Counter(horizon=4)
    with publisher(tmp_path / "b.db") as pub:
        pub.ledger.signer(create=True)
        with pub.open(counter, epsilon="1", key="t") as stream:
            stream.push(1, persons=["a"])
    with publisher(tmp_path / "b.db", "rider") as pub:
        with pub.open(counter, epsilon="1", key="t") as stream:
            history = stream.history()
        assert verify(history, pub.ledger).ok
    assert history.about == "the rows counted (at most 3 per rider in the whole stream)"
    assert "The first 3 rows of each rider" in history.guarantee.counted


def test_answers_that_call_persons_otherwise_are_reconciled() -> None:
    """The name decides nothing: the units are one."""
    assert Unit(3, person="a", person_called="rider").uncalled == Unit(3, person="a")
    with_name = Unit(3, person="a", person_called="rider")
    assert with_name.protects == Unit(3, person="a").protects


@pytest.mark.parametrize("called", ["", " ", "a" * 41, "two\nlines", "a\u2028b", "\x1b[31m", 3])
def test_what_cannot_name_a_person_is_refused(called: object) -> None:
    with pytest.raises(sf.UsageError, match="person_called"):
        sf.source(TRIPS, DOMAIN, person="rider_id", person_called=called)  # type: ignore[arg-type]


def test_a_name_is_text_on_a_page_and_never_markup(tmp_path: Path) -> None:
    with publisher(tmp_path / "b.db", "<b>") as pub:
        releases = pub.release(list(QUESTIONS[::2]), epsilon="4")
        page = sf.report(releases, tmp_path / "r.html").read_text("utf-8")
    with publisher(tmp_path / "b.db", "rider") as pub:
        harmless = pub.release(list(QUESTIONS[::2]), epsilon="4")
    plain = sf.report(harmless, tmp_path / "r.html").read_text("utf-8")
    assert "any one &lt;b&gt;" in page
    # The page has bold words of its own, and the name adds none.
    assert page.count("<b>") == plain.count("<b>")


def test_nouns_have_their_plural_and_their_article() -> None:
    nouns = {"rider": "riders", "aircraft": "aircraft", "family": "families", "church": "churches"}
    for noun, plural in nouns.items():
        assert Unit(person="x", person_called=noun).several == plural
    assert Unit(person="x", person_called="aircraft").anyone == "an aircraft"
    assert Unit(person="x", person_called="user").anyone == "a user"
    assert Unit(person="x", person_called="rider", period="day").anyone == "a rider in one day"


def test_a_source_keeps_the_name_where_it_is_pickled(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("rider_id,hour\n1,2\n")
    src = sf.source(path, DOMAIN, person="rider_id", person_called="rider")
    assert pickle.loads(pickle.dumps(src)).unit == src.unit
