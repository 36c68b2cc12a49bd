"""Later answers say how much the limit on rows leaves out, where that was paid for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.testing import deterministic

DOMAIN = sf.Domain(hour=sf.Interval(0, 24, step=1))
RIDERS = np.repeat(np.arange(300), 4)
TRIPS = pa.table({"rider": RIDERS, "driver": RIDERS, "hour": np.arange(1200) % 24})
HOURS = sf.Histogram("hour")
PERSONS = sf.Persons(most_rows=50)


def publisher(
    ledger: Path, *, version: str = "1", person: str | None = "rider", limit: int = 3
) -> sf.Publisher:
    src = sf.source(
        TRIPS, DOMAIN, person=person, rows_per_person=limit, name="trips", version=version
    )
    return sf.Publisher(src, ledger=ledger, account=str(person), budget="10")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with an answer about riders."""
    with publisher(tmp_path / "b.db") as pub:
        pub.release(PERSONS, epsilon="1")
    return tmp_path / "b.db"


def counted(pub: sf.Publisher) -> str:
    with pub:
        return pub.release(HOURS, epsilon="1").guarantee.counted


def test_a_later_answer_says_it_in_another_process_too(ledger: Path) -> None:
    text = counted(publisher(ledger))
    assert "At most 3 rows of each rider are counted: " in text
    assert "if nobody has more than 50 rows." in text
    assert text.endswith("(Entry 3 of the ledger, " + text[-12:])


def test_the_sentence_is_that_of_the_stored_answer(ledger: Path) -> None:
    with publisher(ledger) as pub:
        persons = pub.release(PERSONS, epsilon="1")
    assert persons.replayed
    assert persons.sentence(3) in counted(publisher(ledger))
    assert persons.sentence(200) in counted(publisher(ledger, limit=200))


def test_it_is_stored_with_the_answer_and_replayed(ledger: Path, tmp_path: Path) -> None:
    with publisher(ledger) as pub:
        release = pub.release(HOURS, epsilon="1")
        again = pub.release(HOURS, epsilon="1")
    assert again.replayed
    assert again == release == sf.load(release.save(tmp_path / "h.json"))
    sf.report([release], tmp_path / "r.html")
    assert "At most 3 rows of each rider are counted: " in (tmp_path / "r.html").read_text("utf-8")


def test_answers_of_one_plan_say_it_of_each_other(tmp_path: Path) -> None:
    with publisher(tmp_path / "b.db") as pub:
        hours, persons = pub.release([HOURS, PERSONS], epsilon="1")
    assert isinstance(persons, sf.PersonsRelease)
    assert persons.sentence(3) in hours.guarantee.counted
    assert "At most 3 rows" not in persons.guarantee.counted


def test_other_versions_persons_and_accounts_do_not_say_it(ledger: Path) -> None:
    others = [publisher(ledger, version="2"), publisher(ledger, person="driver")]
    others.append(publisher(ledger, person=None, limit=1))
    for other in others:
        assert "have more" not in counted(other)


def test_what_was_not_paid_for_is_not_said(tmp_path: Path) -> None:
    assert "have more" not in counted(publisher(tmp_path / "b.db"))


def test_noise_from_a_public_seed_is_not_quoted_by_private_answers(tmp_path: Path) -> None:
    with deterministic(1), publisher(tmp_path / "b.db") as pub:
        pub.release(PERSONS, epsilon="1")
    assert "have more" not in counted(publisher(tmp_path / "b.db"))


def test_a_limit_beyond_what_is_known_is_left_alone(tmp_path: Path) -> None:
    with publisher(tmp_path / "b.db") as pub:
        pub.release(sf.Persons(), epsilon="1")
    assert "have more" in counted(publisher(tmp_path / "b.db"))
    assert "have more" not in counted(publisher(tmp_path / "b.db", limit=10**5))
