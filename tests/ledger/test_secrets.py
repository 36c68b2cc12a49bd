"""What lies in which file of a ledger, and what a thief, an auditor and a finished stream are left with."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.codec import to_bytes
from sfumato.ledger import open_ledger
from sfumato.ledger.entries import OVER
from sfumato.ledger.export import exported
from sfumato.ledger.store import PublicRows
from support.tampering import secrets_of

EMPTY = pa.table({"x": pa.array([], pa.float64()), "who": pa.array([], pa.string())})
DOMAIN = sf.Domain(x=sf.Interval(0, 1))
CANARIES = (734_511, 918_273, 555_119)  # increments
WHO = ["canary-person-1", "canary-person-2", "canary-person-3"]


def opened(path: Path, person: str | None = None, **options: object) -> sf.Publisher:
    source = sf.source(EMPTY, DOMAIN, name="visits", person=person)
    return sf.Publisher(source, ledger=path, account="a", budget=sf.ZCDP("9"), **options)


def files(path: Path) -> bytes:
    """All bytes of a ledger's files, logs included."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(path.name + "*")))


def wide(number: int) -> set[bytes]:
    """How a number may lie in a file: as text, or as an integer in either order of bytes."""
    return {str(number).encode(), number.to_bytes(4, "big"), number.to_bytes(4, "little")}


METHODS = {"tree": "tree", "toeplitz": "toeplitz", "blt": "blt"}


@pytest.mark.parametrize("method", METHODS)
def test_a_finished_stream_leaves_no_increment_behind(path, method):
    """Freed pages and the log are searched, too, while the ledger is open and when it is closed."""
    ends = sf.Interval(0, 10**6, step=1)
    publisher = opened(path)
    with publisher.open(sf.Counter(3, value=ends, method=method), rho="1", key="k") as stream:
        for canary in CANARIES[:2]:
            stream.push([canary])
        seen = files(path)
        if method == "toeplitz":
            assert any(text in seen for text in wide(CANARIES[0])), (
                "an open stream keeps them: the search can see them"
            )
        secret = publisher.ledger._parts.secrets().store.database.reading(
            lambda db: db.execute("SELECT secret, state FROM streams").fetchone()
        )
        assert all(part in seen for part in secret)
        stream.push([CANARIES[2]])
        for moment in ("open", "closed"):
            found = files(path)
            for canary in (*CANARIES, sum(CANARIES), sum(CANARIES[:2])):
                assert not any(text in found for text in wide(canary)), moment
            assert not any(part in found for part in secret), moment
            assert b'"totals"' not in found
            publisher.close() if moment == "open" else None
    with opened(path) as again:
        history = again.open(sf.Counter(3, value=ends, method=method), rho="1", key="k").history()
        assert len(history.values) == 3
        assert again.ledger.verify().ok


def test_a_finished_stream_leaves_no_tally_behind(path):
    publisher = opened(path, person="who")
    with publisher.open(sf.Counter(2), rho="1", key="k") as stream:
        stream.push(3, persons=WHO)
        words = publisher.ledger._parts.secrets().store.database.reading(
            lambda db: [who for (who,) in db.execute("SELECT who FROM tallies")]
        )
        assert len(words) == 3
        assert all(word in files(path) for word in words)
        stream.push(1, persons=WHO[:1])
        assert not any(word in files(path) for word in words)
        with pytest.raises(sf.UsageError, match="horizon"):
            stream.push(1, persons=WHO[:1])
    publisher.close()
    with closing(sqlite3.connect(secrets_of(path))) as db:
        assert db.execute("SELECT state, secret, tallied FROM streams").fetchall() == [
            (OVER, b"", 0)
        ]
        assert db.execute("SELECT count(*) FROM tallies").fetchone() == (0,)


def test_another_process_that_holds_a_finished_stream_is_told_so(path):
    one, two = opened(path), opened(path)
    first, second = (p.open(sf.Counter(2), rho="1", key="k") for p in (one, two))
    second.push(1, event="a")
    first.push(1, event="b")
    with pytest.raises(sf.UsageError, match="horizon"):
        second.push(1, event="c")
    assert second.push(1, event="b").step == 2
    assert [p.ledger.verify().ok for p in (one, two)] == [True, True]


def test_the_book_alone_says_nothing_that_was_not_paid_for(path):
    with (
        opened(path, person="who") as publisher,
        publisher.open(sf.Counter(9), rho="1", key="k") as stream,
    ):
        stream.push(3, persons=WHO)
        publisher.release(sf.Histogram("x"), rho="1")
        state, secret = publisher.ledger._parts.secrets().store.database.reading(
            lambda db: db.execute("SELECT state, secret FROM streams").fetchone()
        )
        words = publisher.ledger._parts.secrets().store.database.reading(
            lambda db: [who for (who,) in db.execute("SELECT who FROM tallies")]
        )
        key = publisher.ledger._parts.secrets()._secret
    book = path.read_bytes()
    for part in (state, secret, key, key.hex().encode(), *words):
        assert part not in book


def test_a_stream_whose_secrets_are_gone_does_not_begin_again(path):
    """It would spend its charge a second time."""
    with opened(path) as publisher:
        publisher.open(sf.Counter(9), rho="1", key="k").push(1)
    for file in path.parent.glob(secrets_of(path).name + "*"):
        file.unlink()
    with open_ledger(path, create=False) as book:
        assert book.verify().ok
        assert len(list(book.log())) == 4
    with pytest.raises(sf.LedgerError, match="secrets are missing"):
        opened(path)
    with open_ledger(path.with_name("other.db")) as other:
        other.open_account("a", "zcdp", (9 * 10**12, 0))
    shutil.copy(secrets_of(path.with_name("other.db")), secrets_of(path))
    with pytest.raises(sf.LedgerError, match="another ledger"):
        opened(path)


def test_a_process_that_ends_while_a_stream_begins_leaves_the_next_to_go_on(path, monkeypatch):
    """Between the charge and the stream, and between the stream and the entry that says that it is there."""
    from sfumato.ledger import journal, stream_record

    places = {"before": (stream_record, "begin"), "after": (journal, "store_answer")}
    for place, (module, name) in places.items():
        with opened(path) as publisher:
            with monkeypatch.context() as patch:
                patch.setattr(module, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    publisher.open(sf.Counter(9), rho="1", key=place)
            spent = publisher.account.spent
        with opened(path) as publisher:
            stream = publisher.open(sf.Counter(9), rho="1", key=place)
            assert publisher.account.spent == spent
            assert stream.push(1).step == 1
            assert publisher.ledger.verify().ok


def test_entries_that_follow_a_charge_carry_its_time(path, monkeypatch):
    """When an answer was ready says how long it took, and so how many rows there are."""
    ticks = iter(datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(60))
    monkeypatch.setattr(PublicRows, "clock", lambda rows: next(ticks))
    with open_ledger(path) as book:
        book.open_account("a", "marbles", (10, 0))
        with book.reserve("a", None, "asked", (1, 0), "") as hold:
            hold.store(b"x")
        with book.reserve("a", "left", "asked", (1, 0), ""):
            pass
        times = [(entry.kind, entry.time) for entry in book.log()]
        charged = {entry.key: entry.time for entry in book.log() if entry.kind == "reserve"}
        followed = [entry for entry in book.log() if entry.kind in ("store", "hand", "abandon")]
        assert len(followed) == 3, times
        assert all(entry.time == charged[entry.key] for entry in followed)


def test_keys_and_digests_are_random_and_found_again(path):
    with open_ledger(path) as book:
        book.open_account("a", "marbles", (10, 0))
        with book.reserve("a", None, "asked", (1, 0), "") as hold:
            hold.store(b"x")
        first = hold.entry
    with open_ledger(path) as book, book.reserve("a", None, "asked", (1, 0), "") as hold:
        assert (hold.entry, hold.stored) == (first, b"x")
        assert book.account("a").spent == (1, 0)
        with book.reserve("a", first.key, "asked", (1, 0), "") as again:
            assert again.stored == b"x"
        with pytest.raises(sf.UsageError, match="another question"):
            book.reserve("a", first.key, "other", (1, 0), "")
    with open_ledger(path.with_name("other.db")) as other:
        other.open_account("a", "marbles", (10, 0))
        with other.reserve("a", None, "asked", (1, 0), "") as hold:
            hold.store(b"x")
        assert hold.entry.key != first.key
        assert hold.entry.digest != first.digest
        assert len(hold.entry.key) == len(first.key) == 32
        assert len(hold.entry.digest) == 64


def test_a_name_that_a_refusal_left_behind_is_free(ledger):
    with pytest.raises(sf.BudgetExceeded):
        ledger.reserve("trips", "k", "dear", (2000, 0), "")
    with ledger.reserve("trips", "k", "cheap", (1, 0), "") as hold:
        hold.store(b"x")
    assert ledger.verify().ok


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_secrets_that_others_may_read_are_refused(path, mode):
    with opened(path) as publisher:
        publisher.release(sf.Histogram("x"), rho="1")
        spent = publisher.account.spent
    secrets_of(path).chmod(mode)
    with pytest.raises(sf.LedgerError, match="chmod 600"):
        opened(path)
    secrets_of(path).chmod(0o600)
    with opened(path) as publisher:
        assert publisher.account.spent == spent
        publisher.open(sf.Counter(9), rho="1", key="k")
    path.chmod(mode)
    with pytest.raises(sf.LedgerError, match="holds streams"):
        opened(path)


def test_a_book_that_others_may_read_is_fine_without_streams(path):
    with opened(path) as publisher:
        publisher.release(sf.Histogram("x"), rho="1")
    path.chmod(0o644)
    with opened(path) as publisher:
        assert publisher.release(sf.Histogram("x"), rho="1").replayed


def test_an_auditor_gets_the_public_part_only(path):
    with (
        opened(path, person="who") as publisher,
        publisher.open(sf.Counter(9), rho="1", key="k") as stream,
    ):
        stream.push(3, persons=WHO, event="2026-01-01")
        release = publisher.release(sf.Histogram("x"), rho="1")
        state, secret = publisher.ledger._parts.secrets().store.database.reading(
            lambda db: db.execute("SELECT state, secret FROM streams").fetchone()
        )
        found = exported(publisher.ledger)
        totals = stream.history()
    text = json.dumps(found)
    for part in (
        state.decode(),
        secret.hex(),
        publisher.ledger._parts.secrets()._secret.hex(),
        *WHO,
    ):
        assert part not in text
    assert [json.loads(found["answers"][str(release.receipt.entry)])][0][0][
        "counts"
    ] == release.values.tolist()
    steps = found["steps"][str(totals.receipt.entry)]
    assert [json.loads(step["output"]) for step in steps] == [
        list(output) for output in totals.outputs
    ]
    assert steps[0]["event"] == "2026-01-01"


def test_an_older_copy_put_back_is_noticed_by_its_anchor(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "elsewhere" / "anchor"
    anchor.parent.mkdir()

    def copy(name: str) -> None:
        for file in (path, secrets_of(path)):
            shutil.copy(file, tmp_path / f"{name}{file.name}")

    def put_back(name: str) -> None:
        for file in (path, secrets_of(path)):
            shutil.copy(tmp_path / f"{name}{file.name}", file)
            os.chmod(file, 0o600)

    def book() -> sf.Publisher:
        return sf.Publisher(
            sf.source(EMPTY, DOMAIN, name="visits"),
            ledger=open_ledger(path, anchor=anchor),
            account="a",
            budget=sf.ZCDP("9"),
        )

    with book() as publisher:
        publisher.release(sf.Histogram("x"), rho="1")
        publisher.open(sf.Counter(9), rho="1", key="k").push(1)
    copy("one")
    with book() as publisher:
        publisher.open(sf.Counter(9), rho="1", key="k").push(1)
    copy("two")
    put_back("one")
    with pytest.raises(sf.LedgerError, match="older copy"):
        book()
    put_back("two")
    with book() as publisher:
        publisher.release(sf.Histogram("x", bins=3), rho="1")
    put_back("two")
    with pytest.raises(sf.LedgerError, match="older copy"):
        book()
    anchor.write_text("not an anchor\n")
    with pytest.raises(sf.LedgerError, match="anchor"):
        book()


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ("DROP TRIGGER entries_stay", "was dropped, replaced or added"),
        (
            "UPDATE entries SET note = 'x' WHERE sequence = (SELECT max(sequence) FROM entries)",
            "was edited",
        ),
        ("UPDATE accounts SET total_first = 99", "was edited"),
    ],
)
def test_a_ledger_that_was_edited_is_not_charged(path, edit, sentence):
    with opened(path) as publisher:
        publisher.release(sf.Histogram("x"), rho="1")
    with closing(sqlite3.connect(path)) as db, db:
        rules = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in rules:
            db.execute(f"DROP TRIGGER {name}")
        if edit.startswith("DROP"):
            rules = [rule for rule in rules if rule[0] not in edit]
        else:
            db.execute(edit)
        for _, sql in rules:
            db.execute(sql)
    with pytest.raises(sf.LedgerError, match=sentence):
        opened(path)


def test_bindings_and_ceilings_that_were_edited_are_found(path):
    source = sf.source(np.zeros((3, 1)), DOMAIN, name="visits")
    with sf.Publisher(source, ledger=path, account="a", budget="1", ceiling="2") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="1")
    for edit in (
        "UPDATE bindings SET protects = 'nobody'",
        "UPDATE ceilings SET first = 99",
        "DELETE FROM bindings",
        "DELETE FROM ceilings",
    ):
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy)) as db, db:
            rules = db.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in rules:
                db.execute(f"DROP TRIGGER {name}")
            db.execute(edit)
            for _, sql in rules:
                db.execute(sql)
        with open_ledger(copy, create=False) as book:
            assert "was edited" in str(book.verify().fault)
    with closing(sqlite3.connect(path)) as db:
        for edit in (
            "UPDATE bindings SET protects = 'x'",
            "DELETE FROM ceilings",
            "INSERT OR REPLACE INTO bindings VALUES ('a', 'x', '')",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(edit)


def test_signatures_are_stored_with_the_answer(path):
    with opened(path) as publisher:
        plain = publisher.release(sf.Histogram("x"), rho="1")
        assert b"signature" not in to_bytes(plain)
        signer = publisher.ledger.signer(create=True)
        assert publisher.ledger.signer(create=True) == signer
        signed = publisher.release(sf.Histogram("x", bins=3), rho="1")
        assert signed.receipt.signer == signer
        assert publisher.release(sf.Histogram("x", bins=3), rho="1") == signed
