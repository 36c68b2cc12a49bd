"""A ledger of version 0.1 goes on in a new file, without what it should not have kept."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.codec import to_bytes
from sfumato.ledger import open_ledger
from sfumato.publishing.upgrading import upgrade_ledger
from support.tampering import secrets_of, unguarded

BEFORE = Path(__file__).parents[1] / "fixtures" / "v0_1"
MODIFIED = 1_760_000_000_123_456_789


DOMAIN = sf.Domain(
    ward=sf.Categories(["A", "B", "C"]),
    age=sf.Interval(0, 100, step=1),
    weight=sf.Interval(20, 200),
)


def old(name: str) -> sf.Release:
    return sf.load(BEFORE / f"{name}.json")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """The table behind the fixtures, with the time of modification that it had."""
    path = tmp_path / "visits.csv"
    shutil.copy(BEFORE / "visits.csv", path)
    os.utime(path, ns=(MODIFIED, MODIFIED))
    return path


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """The ledger of version 0.1, upgraded."""
    new = tmp_path / "new.db"
    done = upgrade_ledger(BEFORE / "ledger.sqlite", new)
    assert (done.streams, done.finished, done.mixed) == (4, 1, ())
    return new


def hospital(rows: Path) -> sf.Source:
    return sf.source(rows, DOMAIN, person="patient", rows_per_person=3, name="visits")


def without_receipt(release: sf.Release) -> bytes:
    return to_bytes(msgspec.structs.replace(release, receipt=None))


def test_releases_of_version_0_1_are_read() -> None:
    names = [path.stem for path in BEFORE.glob("*.json")]
    assert len(names) == 23
    for name in names:
        assert old(name).receipt is not None
        assert old(name).accuracy().shape == old(name).values.shape


def test_questions_of_version_0_1_replay_unpaid(book: Path, rows: Path) -> None:
    with sf.Publisher(hospital(rows), ledger=book, account="hospital") as publisher:
        before = publisher.account.spent
        asked = {
            "histogram": publisher.release(
                sf.Histogram(["ward", "age"], bins={"age": 10}), epsilon="1"
            ),
            "histogram-key": publisher.release(
                sf.Histogram("ward"), epsilon="1/2", key="wards-2025"
            ),
            "records": publisher.release(sf.Histogram("age", records=50), epsilon="1"),
            "median": publisher.release(
                sf.MedianPartitioner(["age", "weight"], depth=3), epsilon="2"
            ),
            "kmeans-privtree": publisher.release(
                sf.KMeans(2, ["age", "weight"], method="privtree"), epsilon="2"
            ),
        }
        plan = sf.Plan([sf.Histogram("age", bins=5), sf.Quantiles("age", by="ward")])
        asked["plan-1"], asked["plan-2"] = publisher.release(plan, epsilon="2")
        assert publisher.account.spent == before
    for name, release in asked.items():
        assert release.replayed
        assert without_receipt(release) == without_receipt(old(name))
        now = release.receipt
        then = old(name).receipt
        assert now is not None
        assert then is not None
        assert then.digest not in to_bytes(release).decode()
        assert then.entry_hash not in to_bytes(release).decode()
        if name != "histogram-key":
            assert then.key not in to_bytes(release).decode()
        assert (now.entry, now.time, now.charged) == (then.entry, then.time, then.charged)
    named = sf.source(
        np.array([[1.0], [2.0], [2.5]]), sf.Domain(x=sf.Interval(0, 4)), name="in memory"
    )
    with sf.Publisher(named, ledger=book, account="memory") as publisher:
        again = publisher.release(sf.Histogram("x", bins=4), epsilon="1/2")
        assert without_receipt(again) == without_receipt(old("memory"))


def test_streams_of_version_0_1_go_on(book: Path, rows: Path) -> None:
    with sf.Publisher(hospital(rows), ledger=book, account="hospital") as publisher:
        before = publisher.account.spent
        counter = sf.Counter(horizon=3, by="ward", method="tree")
        finished = publisher.open(counter, epsilon="1", key="finished")
        assert without_receipt(finished.history()) == without_receipt(old("stream-finished"))
        assert finished.push(["A"], event="2026-01-03", persons=["p9"]).step == 3
        with pytest.raises(sf.UsageError, match="horizon"):
            finished.push(["A"], event="2026-01-04", persons=["p9"])
        summed = sf.Counter(horizon=8, value=sf.Interval(0, 10), method="tree")
        stream = publisher.open(summed, epsilon="1", key="open")
        assert without_receipt(stream.history()) == without_receipt(old("stream-open"))
        stream.push([3], event="2026-01-05", persons=["p1"])
        assert stream.history().values[:4].tolist() == old("stream-open").values.tolist()
        assert publisher.account.spent == before
        assert publisher.ledger.verify().ok


def test_the_copy_verifies_and_knows_the_hashes_of_before(book: Path) -> None:
    with closing(sqlite3.connect(BEFORE / "ledger.sqlite")) as db:
        hashes = dict(db.execute("SELECT sequence, hash FROM entries"))
    with open_ledger(book) as ledger:
        found = ledger.verify()
        assert found.ok, found.faults
        assert found.entries > len(hashes)
        for head in hashes.items():
            assert ledger.verify(head).ok
            assert not ledger.verify((head[0], "0" * 64)).ok
        assert [a.protects for a in ledger.accounts()] == [
            "one patient, added or removed",
            "one patient, added or removed",
            "one row, added or removed",
        ]


def test_nothing_of_the_old_digests_or_finished_secrets_is_in_the_copy(book: Path) -> None:
    with closing(sqlite3.connect(BEFORE / "ledger.sqlite")) as db:
        charges = db.execute("SELECT digest, key FROM entries WHERE kind = 'reserve'").fetchall()
        hashes = [text for (text,) in db.execute("SELECT hash FROM entries WHERE kind = 'reserve'")]
        spec, state = db.execute("SELECT spec, state FROM streams WHERE step = 3").fetchone()
        whose = db.execute(
            "SELECT who FROM tallies WHERE stream = (SELECT min(stream) FROM streams)"
        ).fetchall()
        secrets = [
            msgspec.json.decode(spec)["secret"]
            for (spec,) in db.execute("SELECT spec FROM streams")
        ]
    secret = msgspec.json.decode(spec)["secret"]
    public = book.read_bytes()
    private = secrets_of(book).read_bytes()
    for digest, key in charges:
        assert digest.encode() not in public + private
        if key.startswith(digest[:32]):
            assert key.encode() not in public + private
    assert not any(text.encode() in public for text in hashes)
    for wiped in (secret.encode(), bytes.fromhex(secret), bytes(state), *(who for (who,) in whose)):
        assert wiped not in public + private
    for open_secret in secrets:
        assert open_secret.encode() not in public
        assert bytes.fromhex(open_secret) not in public


def test_a_ledger_of_version_0_1_is_not_used_as_it_is(tmp_path: Path) -> None:
    shutil.copy(BEFORE / "ledger.sqlite", tmp_path / "old.db")
    with pytest.raises(sf.LedgerError, match="ledger upgrade"):
        open_ledger(tmp_path / "old.db")
    assert (tmp_path / "old.db").read_bytes() == (BEFORE / "ledger.sqlite").read_bytes()


def test_what_cannot_be_upgraded_is_refused_and_leaves_nothing(tmp_path: Path, book: Path) -> None:
    (tmp_path / "text").write_text("no ledger")
    edited = tmp_path / "edited.db"
    shutil.copy(BEFORE / "ledger.sqlite", edited)
    with unguarded(edited) as db:
        db.execute("UPDATE entries SET note = 'edited' WHERE sequence = 3")
    stream = tmp_path / "stream.db"
    shutil.copy(BEFORE / "ledger.sqlite", stream)
    with unguarded(stream) as db:
        db.execute("UPDATE steps SET output = x'00' WHERE step = 1")
    for wrong in (tmp_path / "none", tmp_path / "text", book, edited, stream):
        with pytest.raises(sf.LedgerError):
            upgrade_ledger(wrong, tmp_path / "target.db")
    with pytest.raises(sf.UsageError, match="already"):
        upgrade_ledger(BEFORE / "ledger.sqlite", book)
    assert not list(tmp_path.glob("target*"))


NUMBER = sf.Domain(x=sf.Interval(0, 4))
SINGLE = sf.source(np.zeros((3, 1)), NUMBER, name="n")


PERSONS = sf.source(
    pa.table({"x": [1.0, 2.0], "who": [1, 1]}), NUMBER, person="who", rows_per_person=5, name="n"
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """The other ledger of version 0.1, upgraded."""
    new = tmp_path / "odd.db"
    assert upgrade_ledger(BEFORE / "odd.sqlite", new).mixed == ("mixed",)
    return new


def test_an_account_that_protected_several_pays_for_nothing_more(odd: Path) -> None:
    """Its next charge would bind it, and it would look sound."""
    with (
        sf.Publisher(SINGLE, ledger=odd, account="mixed") as rows,
        sf.Publisher(PERSONS, ledger=odd, account="mixed") as persons,
    ):
        before = rows.account.spent
        for publisher in (rows, persons):
            assert publisher.release(sf.Histogram("x"), epsilon="1").replayed
            with pytest.raises(sf.UsageError, match="different persons or relations"):
                publisher.release(sf.Histogram("x", bins=2), epsilon="1")
            with pytest.raises(sf.UsageError, match="different persons or relations"):
                publisher.open(sf.Counter(9), epsilon="1", key="new")
        assert (
            persons.open(sf.Counter(4), epsilon="1", key="stream").push(1, persons=["b"]).step == 2
        )
        assert rows.account.spent == before
        assert rows.ledger.verify().ok


def test_a_charge_of_before_that_is_answered_now_binds_its_account(odd: Path) -> None:
    with sf.Publisher(SINGLE, ledger=odd, account="unfinished") as rows:
        with sf.Publisher(PERSONS, ledger=odd, account="unfinished") as persons:
            assert not persons.release(sf.Histogram("x", bins=3), epsilon="1", key="u").replayed
        with pytest.raises(sf.UsageError, match="do not add up"):
            rows.release(sf.Histogram("x"), epsilon="1")


def test_a_default_key_that_was_given_to_another_question_is_not_copied(odd: Path) -> None:
    with closing(sqlite3.connect(f"file:{BEFORE / 'odd.sqlite'}?mode=ro", uri=True)) as db:
        digests = [
            text for (text,) in db.execute("SELECT digest FROM entries WHERE kind = 'reserve'")
        ]
        keys = [
            text
            for (text,) in db.execute(
                "SELECT key FROM entries WHERE kind = 'reserve' AND account = 'other'"
            )
        ]
    found = odd.read_bytes() + secrets_of(odd).read_bytes()
    assert any(keys[0] == digest[:32] for digest in digests)
    for text in (*keys, *(digest[:32] for digest in digests)):
        assert text.encode() not in found
