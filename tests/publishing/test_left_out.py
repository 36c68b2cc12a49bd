"""Later answers say how much the limit on rows leaves out, where that was paid for."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xlsxwriter

import sfumato as sf
from sfumato.publishing.answering import ABOUT_PERSONS
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
    assert "At most 3 rows of each person are counted: " in text
    assert re.search(
        r"if nobody has more than 50 rows \(entry 3 of the ledger, [-0-9]{10}\)\.", text
    )
    assert text.count("At most 3 rows") == 1


def test_the_sentence_is_that_of_the_stored_answer(ledger: Path) -> None:
    with publisher(ledger) as pub:
        persons = pub.release(PERSONS, epsilon="1")
    assert persons.replayed
    assert persons.sentence(3).rstrip(".") in counted(publisher(ledger))
    assert persons.sentence(200).rstrip(".") in counted(publisher(ledger, limit=200))


def test_it_is_stored_with_the_answer_and_replayed(ledger: Path, tmp_path: Path) -> None:
    with publisher(ledger) as pub:
        release = pub.release(HOURS, epsilon="1")
        again = pub.release(HOURS, epsilon="1")
    assert again.replayed
    assert again == release == sf.load(release.save(tmp_path / "h.json"))
    sf.report([release], tmp_path / "r.html")
    assert "At most 3 rows of each person are counted: " in (tmp_path / "r.html").read_text("utf-8")


def test_answers_of_one_plan_say_it_of_each_other(tmp_path: Path) -> None:
    with publisher(tmp_path / "b.db") as pub:
        hours, persons = pub.release([HOURS, PERSONS], epsilon="1")
    assert isinstance(persons, sf.PersonsRelease)
    assert persons.sentence(3).rstrip(".") in hours.guarantee.counted
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


# --- limits by cell -------------------------------------------------------------------------------


def by_cell(ledger: Path, **limits: int) -> sf.Publisher:
    src = sf.source(TRIPS, DOMAIN, person="rider", name="trips", version="1", **limits)  # type: ignore[arg-type]
    return sf.Publisher(src, ledger=ledger, account="rider", budget="99")


ABOUT = [
    (
        "norm",
        {"norm_per_person": 2},
        "are cut to a norm of 2 (whoever has at most 2 rows keeps them all): ",
    ),
    ("cells", {"cells_per_person": 3, "rows_per_cell": 1}, "is counted in at most 3 cells: "),
    ("largest-cell", {"rows_per_cell": 1, "rows_per_person": 3}, "is counted in a cell: "),
]


@pytest.mark.parametrize(("of", "limits", "said"), ABOUT)
def test_limits_by_cell_are_stated_of_the_same_cells(
    of: Any, limits: dict[str, int], said: str, tmp_path: Path
) -> None:
    with by_cell(tmp_path / "b.db", **limits) as pub:
        persons = pub.release(sf.Persons(50, of=of, axes="hour"), epsilon="1")
        pub.release(PERSONS, epsilon="1")
        texts = [
            pub.release(question, epsilon="1").guarantee.counted
            for question in (HOURS, sf.Histogram("hour", bins=6), sf.Histogram("hour", bins=24))
        ]
    assert said in texts[0]
    assert persons.sentence(limits[persons.measured.limit]).rstrip(".") in texts[0]
    assert said not in texts[1]
    assert said in texts[2]
    assert "At most 3 rows of each person are counted: " not in texts[0]


def test_counts_of_persons_state_the_limit_on_cells(tmp_path: Path) -> None:
    with publisher(tmp_path / "b.db") as pub:
        persons = pub.release(sf.Persons(of="cells", axes="hour"), epsilon="1")
        counts = pub.release(sf.Histogram("hour", count="persons"), epsilon="1")
        rows = pub.release(HOURS, epsilon="1")
    assert persons.sentence(3).rstrip(".") in counts.guarantee.counted
    assert "in at most 3 cells: " not in rows.guarantee.counted


def test_means_over_persons_state_the_limit_on_cells(tmp_path: Path) -> None:
    domain = sf.Domain(hour=sf.Interval(0, 24, step=1), kind=sf.Categories(["a", "b"]))
    table = pa.table(
        {"hour": [1, 2, 3, 4] * 9, "kind": ["a", "b"] * 18, "rider": [i // 4 for i in range(36)]}
    )
    source = sf.source(table, domain, person="rider", rows_per_person=1, name="kinds")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="99") as pub:
        persons = pub.release(sf.Persons(of="cells", axes="kind", most_rows=9), epsilon="9")
        means = pub.release(sf.Mean("hour", by="kind", per="person"), epsilon="1")
        alone = pub.release(sf.Mean("hour", per="person"), epsilon="1")
    assert persons.sentence(1).rstrip(".") in means.guarantee.counted
    assert "in at most 1 cell: " not in alone.guarantee.counted


@pytest.mark.parametrize("question", [sf.Mean("hour"), sf.Sum("hour"), sf.Variance("hour")])
def test_means_sums_and_variances_say_it(question: sf.Mean, ledger: Path) -> None:
    with publisher(ledger) as pub:
        release = pub.release(question, epsilon="1")
    assert "At most 3 rows of each person are counted: " in release.guarantee.counted


# --- the state of the data ------------------------------------------------------------------------


SAID = "At most 2 rows of each person are counted: "


def written(path: Path, rows_each: int) -> Path:
    """A file of 90 riders, all with so many rows."""
    path.parent.mkdir(exist_ok=True)
    lines = [f"{rider},{row % 24}" for rider in range(90) for row in range(rows_each)]
    path.write_text("\n".join(["rider,hour", *lines, ""]))
    return path


def of_file(path: Path, **options: Any) -> sf.Publisher:
    given = {"person": "rider", "rows_per_person": 2} | options
    ledger = path.parent.parent / "b.db"
    source = sf.source(path, DOMAIN, **given)
    return sf.Publisher(source, ledger=ledger, account="a", budget="99")


def asked_persons(pub: sf.Publisher) -> sf.PersonsRelease:
    with pub:
        return pub.release(PERSONS, epsilon="5")


def test_the_same_file_says_it_in_another_process_under_another_limit(tmp_path: Path) -> None:
    visits = written(tmp_path / "a" / "visits.csv", 4)
    persons = asked_persons(of_file(visits, rows_per_person=1))
    assert persons.sentence(2).rstrip(".") in counted(of_file(visits))
    # Only the secrets know which state of the data it was: without them nothing is known.
    noted = "DELETE FROM about WHERE name LIKE 'state of %'"
    with contextlib.closing(sqlite3.connect(tmp_path / "b.db.secrets")) as secrets, secrets:
        assert secrets.execute(noted).rowcount == 1
    assert SAID not in repeated(of_file(visits))
    assert asked_persons(of_file(visits, rows_per_person=1)).replayed
    assert persons.sentence(2).rstrip(".") in repeated(of_file(visits))


def repeated(pub: sf.Publisher) -> str:
    with pub:
        return pub.release(HOURS, epsilon="1", fresh=True).guarantee.counted


def test_a_file_that_was_replaced_does_not_say_it(tmp_path: Path) -> None:
    visits = written(tmp_path / "a" / "visits.csv", 2)
    with of_file(visits) as pub:
        pub.release(PERSONS, epsilon="5")
        before = pub.release(HOURS, epsilon="1")
        written(visits, 30)
        after = pub.release(HOURS, epsilon="1", fresh=True)
    assert not after.replayed
    assert SAID in before.guarantee.counted
    assert SAID not in after.guarantee.counted
    assert SAID not in repeated(of_file(visits))


def test_a_file_of_the_same_name_in_another_folder_does_not_say_it(tmp_path: Path) -> None:
    first = written(tmp_path / "a" / "visits.csv", 2)
    other = written(tmp_path / "b" / "visits.csv", 30)
    stat = first.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    asked_persons(of_file(first))
    assert SAID not in counted(of_file(other))
    assert SAID in counted(of_file(first))


def test_a_file_that_is_read_otherwise_does_not_say_it(tmp_path: Path) -> None:
    visits = written(tmp_path / "a" / "visits.csv", 3)
    asked_persons(of_file(visits))
    assert SAID not in counted(of_file(visits, thousands=","))


def test_another_sheet_of_the_same_book_does_not_say_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "book.xlsx"
    path.parent.mkdir()
    with xlsxwriter.Workbook(path) as book:
        for name, rows_each in (("2024", 2), ("2025", 9)):
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, ["rider", "hour"])
            for i in range(90 * rows_each):
                sheet.write_row(i + 1, 0, [f"r{i % 90}", i % 24])
    persons = asked_persons(of_file(path, sheet="2024"))
    assert persons.receipt is not None
    assert persons.receipt.source == "book.xlsx, sheet 2024"
    assert SAID not in counted(of_file(path, sheet="2025"))
    assert SAID in counted(of_file(path, sheet="2024"))


def test_tables_in_memory_without_a_name_say_it_of_themselves_alone(tmp_path: Path) -> None:
    source = sf.source(TRIPS, DOMAIN, person="rider", rows_per_person=2)
    other = sf.source(TRIPS, DOMAIN, person="rider", rows_per_person=2)
    publishers = [sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="99")]
    publishers += [sf.Publisher(other, ledger=tmp_path / "b.db", account="a")]
    with publishers[0] as pub:
        pub.release(PERSONS, epsilon="1", key="p")
        assert SAID in pub.release(HOURS, epsilon="1", key="h").guarantee.counted
    with publishers[1] as pub:
        assert SAID not in pub.release(HOURS, epsilon="1", key="i").guarantee.counted


def test_conditions_on_an_axis_that_is_declared_otherwise_do_not_say_it(tmp_path: Path) -> None:
    table = TRIPS.append_column("end", TRIPS["hour"])
    for column, said in (("hour", True), ("end", False)):
        domain = sf.Domain(
            hour=sf.Interval(0, 24, step=1), at=sf.Interval(0, 24, step=1, column=column)
        )
        source = sf.source(
            table, domain, person="rider", rows_per_person=2, name="t", where={"at": (0, 9)}
        )
        with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="99") as pub:
            if said:
                pub.release(PERSONS, epsilon="1")
            assert (SAID in pub.release(HOURS, epsilon="1").guarantee.counted) is said


@pytest.mark.parametrize("of", ["rows", "cells", "norm", "largest-cell"])
def test_a_charge_for_an_answer_about_persons_is_known_by_its_note(of: str) -> None:
    axes = {} if of == "rows" else {"axes": "hour"}
    assert ABOUT_PERSONS in sf.Persons(of=of, most_rows=50, **axes).title
