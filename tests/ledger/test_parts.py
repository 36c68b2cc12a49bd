"""A ledger's parts are checked before anything is written."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.ledger import open_ledger
from sfumato.ledger.sqlite import SQLitePublicRows
from support.tampering import secrets_of

EMPTY = pa.table({"x": pa.array([], pa.float64()), "who": pa.array([], pa.string())})
DOMAIN = sf.Domain(x=sf.Interval(0, 1))


def opened(path: Path, person: str | None = None, **options: object) -> sf.Publisher:
    source = sf.source(EMPTY, DOMAIN, name="visits", person=person)
    return sf.Publisher(source, ledger=path, account="a", budget=sf.ZCDP("9"), **options)


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


def test_a_book_that_others_may_read_is_fine_without_streams(path):
    with opened(path) as publisher:
        publisher.release(sf.Histogram("x"), rho="1")
    path.chmod(0o644)
    with opened(path) as publisher:
        assert publisher.release(sf.Histogram("x"), rho="1").replayed


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


def test_threads_make_one_set_of_secrets(monkeypatch):
    ledger = open_ledger(None)
    plain = SQLitePublicRows.charged
    made = []
    others: list[threading.Thread] = []

    def slow(rows: SQLitePublicRows) -> bool:
        if not others:
            others.append(threading.Thread(target=lambda: made.append(ledger._opened_secrets())))
            others[0].start()
            others[0].join(0.2)  # it waits for this thread, or has made its own
        return plain(rows)

    monkeypatch.setattr(SQLitePublicRows, "charged", slow)
    with monkeypatch.context():
        made.append(ledger._opened_secrets())
    others[0].join()
    assert made[0] is made[1] is ledger._opened_secrets()
