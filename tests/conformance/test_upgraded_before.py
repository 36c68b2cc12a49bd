"""A ledger of version 0.1 that version 0.2 upgraded goes on as any other.

`sfumato ledger upgrade` of version 0.2.0 copied the ledgers in ``upgraded``. This is the way of
every ledger of version 0.1, so what it leaves in the copy must keep its meaning.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from conformance.test_written_before import FIXTURES, UPGRADED, copied
from sfumato.basics.structs import to_bytes
from sfumato.ledger import open_ledger
from sfumato.publishing.verifying import verify

MODIFIED = 1_760_000_000_123_456_789
PUBLISHED = sorted((UPGRADED / "published").glob("*.json"))
OLD = FIXTURES / "v0_1" / "odd.sqlite"
DOMAIN = sf.Domain(
    ward=sf.Categories(["A", "B", "C"]),
    age=sf.Interval(0, 100, step=1),
    weight=sf.Interval(20, 200),
)


@pytest.fixture
def hospital(tmp_path: Path) -> Iterator[sf.Publisher]:
    """A publisher of the table behind the answers, with the time of modification that it had."""
    rows = tmp_path / "visits.csv"
    shutil.copy(UPGRADED / "visits.csv", rows)
    os.utime(rows, ns=(MODIFIED, MODIFIED))
    source = sf.source(rows, DOMAIN, person="patient", rows_per_person=3, name="visits")
    book = copied(UPGRADED / "ledger.sqlite", tmp_path)
    with sf.Publisher(source, ledger=book, account="hospital") as publisher:
        yield publisher


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """The ledger of odd histories."""
    return copied(UPGRADED / "odd.sqlite", tmp_path)


def numbers_of(release: sf.Release) -> bytes:
    """All but the receipt, and the words on which rows are counted: they are those of today."""
    guarantee = msgspec.structs.replace(release.guarantee, counted="")
    return to_bytes(msgspec.structs.replace(release, receipt=None, guarantee=guarantee))


def test_questions_of_version_0_1_replay_unpaid(hospital: sf.Publisher) -> None:
    before = hospital.account.spent
    plan = sf.Plan([sf.Histogram("age", bins=5), sf.Quantiles("age", by="ward")])
    found = {
        "histogram": hospital.release(sf.Histogram(["ward", "age"], bins={"age": 10}), epsilon="1"),
        "quantiles": hospital.release(plan, epsilon="2")[1],
    }
    asked = [
        hospital.release(sf.Histogram("ward"), epsilon="1/2", key="wards-2025"),
        hospital.release(sf.Histogram("age", records=50), epsilon="1"),
        hospital.release(sf.MedianPartitioner(["age", "weight"], depth=3), epsilon="2"),
        hospital.release(sf.KMeans(2, ["age", "weight"], method="privtree"), epsilon="2"),
    ]
    assert all(release.replayed for release in (*found.values(), *asked))
    for name, release in found.items():
        assert numbers_of(release) == numbers_of(sf.load(UPGRADED / f"{name}.json"))
    assert hospital.account.spent == before
    assert hospital.ledger.verify().ok


def test_streams_of_version_0_1_go_on(hospital: sf.Publisher) -> None:
    before = hospital.account.spent
    counter = sf.Counter(horizon=3, by="ward", method="tree")
    finished = hospital.open(counter, epsilon="1", key="finished")
    assert numbers_of(finished.history()) == numbers_of(sf.load(UPGRADED / "stream-finished.json"))
    assert finished.push(["A"], event="2026-01-03", persons=["p9"]).step == 3
    with pytest.raises(sf.UsageError, match="horizon"):
        finished.push(["A"], event="2026-01-04", persons=["p9"])
    summed = sf.Counter(horizon=8, value=sf.Interval(0, 10), method="tree")
    stream = hospital.open(summed, epsilon="1", key="open")
    known = sf.load(UPGRADED / "stream-open.json")
    assert numbers_of(stream.history()) == numbers_of(known)
    stream.push([3], event="2026-01-05", persons=["p1"])
    assert stream.history().values[:4].tolist() == known.values.tolist()
    assert hospital.account.spent == before
    assert hospital.ledger.verify().ok


def test_hashes_of_before_the_upgrade_are_known(odd: Path) -> None:
    with closing(sqlite3.connect(f"file:{OLD}?mode=ro", uri=True)) as db:
        hashes = dict(db.execute("SELECT sequence, hash FROM entries"))
    with open_ledger(odd) as book:
        for head in hashes.items():
            assert book.verify(head).ok
            assert not book.verify((head[0], "0" * 64)).ok


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_a_release_that_version_0_1_saved_is_verified(path: Path, hospital: sf.Publisher) -> None:
    release = sf.load(path)
    found = verify(release, hospital.ledger)
    assert found.ok, found.reason
    assert "size of the data file" in found.reason
    for field, text in {
        "charged": "epsilon = 0.001",
        "account": "other",
        "time": "1999",
        "source": "other",
        "part": "1",
        "entry_hash": "0" * 64,
    }.items():
        receipt = msgspec.structs.replace(release.receipt, **{field: text})
        edited = msgspec.structs.replace(release, receipt=receipt)
        assert not verify(edited, hospital.ledger).ok, field


NUMBER = sf.Domain(x=sf.Interval(0, 4))
SINGLE = sf.source(np.zeros((3, 1)), NUMBER, name="n")
PERSONS = sf.source(
    pa.table({"x": [1.0, 2.0], "who": [1, 1]}), NUMBER, person="who", rows_per_person=5, name="n"
)


def publisher(source: sf.Source, path: Path, account: str) -> sf.Publisher:
    return sf.Publisher(source, ledger=open_ledger(path), account=account)


def test_an_account_that_protected_several_pays_for_nothing_more(odd: Path) -> None:
    """Its next charge would bind it, and it would look sound."""
    with publisher(SINGLE, odd, "mixed") as rows, publisher(PERSONS, odd, "mixed") as persons:
        before = rows.account.spent
        for paying in (rows, persons):
            assert paying.release(sf.Histogram("x"), epsilon="1").replayed
            with pytest.raises(sf.UsageError, match="different persons or relations"):
                paying.release(sf.Histogram("x", bins=2), epsilon="1")
            with pytest.raises(sf.UsageError, match="different persons or relations"):
                paying.open(sf.Counter(9), epsilon="1", key="new")
        stream = persons.open(sf.Counter(4), epsilon="1", key="stream")
        assert stream.push(1, persons=["b"]).step == 2
        assert rows.account.spent == before
        assert rows.ledger.verify().ok


def test_a_charge_of_before_that_is_answered_now_binds_its_account(odd: Path) -> None:
    with publisher(SINGLE, odd, "unfinished") as rows:
        with publisher(PERSONS, odd, "unfinished") as persons:
            assert not persons.release(sf.Histogram("x", bins=3), epsilon="1", key="u").replayed
        with pytest.raises(sf.UsageError, match="do not add up"):
            rows.release(sf.Histogram("x"), epsilon="1")
