"""A book and its secrets have no common transaction: what an older, emptied or torn file of the two must not do."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.ledger import bindings, journal, open_ledger
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.sqlite.public import SQLitePublicRows
from sfumato.privacy.unit import Unit
from support.tampering import secrets_of, unguarded

DOMAIN = sf.Domain(x=sf.Interval(0, 4))
ROWS = sf.source(np.zeros((3, 1)), DOMAIN, name="n")
NAMELESS = sf.source(np.zeros((3, 1)), DOMAIN)
PERSONS = sf.source(pa.table({"x": [1.0, 2.0], "who": [1, 1]}), DOMAIN, person="who", name="n")
HISTOGRAM = sf.Histogram("x")


def opened(
    path: Path, source: sf.Source = ROWS, account: str = "a", **options: object
) -> sf.Publisher:
    return sf.Publisher(source, ledger=path, account=account, **({"budget": "9"} | options))


def put_back(copy: Path, file: Path) -> None:
    """Restore a copy of a file that nobody has open."""
    for log in file.parent.glob(file.name + "-*"):
        log.unlink()
    shutil.copy(copy, file)
    file.chmod(0o600)


# --- secrets ---------------------------------------------------------------------------------------------------------------


def test_emptied_secrets_are_not_filled_anew(path):
    """New ones would sign with another key, and let answers that were paid for be paid for again."""
    with opened(path) as publisher:
        publisher.ledger.signer(create=True)
        publisher.release(HISTOGRAM, epsilon="1")
    os.truncate(secrets_of(path), 0)
    for _ in range(2):
        with pytest.raises(sf.LedgerError, match="emptied"):
            opened(path)


def test_threads_make_one_set_of_secrets(monkeypatch):
    ledger, plain, made = open_ledger(None), SQLitePublicRows.charged, []
    others: list[threading.Thread] = []

    def slow(rows: SQLitePublicRows) -> bool:
        if not others:
            others.append(threading.Thread(target=lambda: made.append(ledger._parts.secrets())))
            others[0].start()
            others[0].join(0.2)  # it waits for this thread, or has made its own
        return plain(rows)

    monkeypatch.setattr(SQLitePublicRows, "charged", slow)
    with monkeypatch.context():
        made.append(ledger._parts.secrets())
    others[0].join()
    assert made[0] is made[1] is ledger._parts.secrets()


def test_a_stream_of_a_forgotten_charge_is_not_opened_under_another(path, tmp_path):
    """The book alone was put back. Its next charge gets the number of one that it forgot, and must not get that one's stream."""
    opened(path).close()
    shutil.copy(path, tmp_path / "older")
    for pushes in (0, 1):
        with (
            opened(path) as publisher,
            publisher.open(sf.Counter(9), epsilon="5", key=f"dear {pushes}") as stream,
        ):
            for _ in range(pushes):
                stream.push(1)
        put_back(tmp_path / "older", path)
        with (
            opened(path) as publisher,
            pytest.raises(sf.LedgerError, match="missing or was edited"),
        ):
            publisher.open(sf.Counter(5), epsilon="1", key="cheap").push(1)
        with unguarded(secrets_of(path)) as db:
            db.execute("DELETE FROM steps")
            db.execute("DELETE FROM streams")
        put_back(tmp_path / "older", path)


def test_older_secrets_do_not_pass_one_answer_for_another(path, tmp_path):
    """A refused question left its name under a key that was used for another one since."""
    with opened(path, budget="2") as publisher, pytest.raises(sf.BudgetExceeded):
        publisher.release(HISTOGRAM, epsilon="5", key="k")
    shutil.copy(secrets_of(path), tmp_path / "older")
    with opened(path, budget="2") as publisher:
        publisher.release(sf.Histogram("x", bins=2), epsilon="1", key="k")
    put_back(tmp_path / "older", secrets_of(path))
    with (
        opened(path, budget="2") as publisher,
        pytest.raises(sf.LedgerError, match="do not say what for"),
    ):
        publisher.release(HISTOGRAM, epsilon="5", key="k")


def test_a_stream_that_the_secrets_lost_is_found_by_verification(path):
    with opened(path) as publisher:
        publisher.open(sf.Counter(9), epsilon="1", key="k").push(1)
    with unguarded(secrets_of(path)) as db:
        db.execute("DELETE FROM steps")
        db.execute("DELETE FROM streams")
    with open_ledger(path) as ledger:
        assert "missing from the secrets" in str(ledger.verify().fault)


# --- anchors ---------------------------------------------------------------------------------------------------------------


def test_a_torn_line_of_an_anchor_says_nothing(path, tmp_path):
    """A full disk, or a loss of power, leaves the beginning of a line."""
    anchor = tmp_path / "anchor"
    whole = f"entry 12 {'ab' * 32}"
    for length in range(len(whole)):
        anchor.write_text(f"entry 3 {'cd' * 32}\n{whole[:length]}")
        assert Anchor(anchor).read().entry == (3, "cd" * 32)
        Anchor(anchor).note(f"entry 13 {'ef' * 32}")
        assert Anchor(anchor).read().entry == (13, "ef" * 32)
    anchor.write_text("entry " + "9" * 5000 + " " + "ab" * 32 + "\n")
    with pytest.raises(sf.LedgerError, match="not an anchor's"):
        Anchor(anchor).read()


# --- what an account is bound to -------------------------------------------------------------------------------------------


def test_an_account_for_nameless_data_does_not_pass_by_a_ceiling(path):
    """Its charges are not among those that the ceiling adds up."""
    with opened(path, account="named", ceiling="1") as publisher:
        publisher.release(HISTOGRAM, epsilon="1")
    with opened(path, NAMELESS) as publisher:
        publisher.release(HISTOGRAM, epsilon="1/2")
    with opened(path) as publisher:
        for key in ("1", "2"):
            with pytest.raises(sf.UsageError, match="ceiling"):
                publisher.release(HISTOGRAM, epsilon="1", key=key)
        with pytest.raises(sf.UsageError, match="ceiling"):
            publisher.open(sf.Counter(4), epsilon="1")
        assert publisher.account.spent == (500_000_000, 0)


def test_a_ceiling_that_cannot_be_kept_is_refused(path):
    with opened(path, NAMELESS) as publisher:
        publisher.release(HISTOGRAM, epsilon="1")
    with opened(path, ceiling="1") as publisher, pytest.raises(sf.UsageError, match="ceiling"):
        publisher.release(HISTOGRAM, epsilon="1/2", key="k")


def test_a_ceiling_holds_from_the_moment_when_it_is_stated(path):
    """A refusal, or a rival that charges first, does not undo it."""
    with opened(path, ceiling="1") as publisher, opened(path) as rival:
        for each in (rival, publisher):
            with pytest.raises(sf.BudgetExceeded) as refusal:
                each.release(HISTOGRAM, epsilon="2")
            assert (refusal.value.requested, refusal.value.remaining) == (2, 1)
        with opened(path, ceiling="2") as other, pytest.raises(sf.UsageError, match="ceiling"):
            other.release(HISTOGRAM, epsilon="1")
        assert publisher.ledger.verify().ok


def test_a_column_called_row_is_not_a_row(path):
    names = [
        "row",
        "person of at most 3 rows",
        "a, replaced by another",
        "who\n",
        "who\\n",
        "'who'",
    ]
    units = [Unit(), Unit(3), *(Unit(person=name) for name in names)]
    assert len({unit.protects for unit in units}) == len(units)
    table = pa.table({"x": [1.0, 2.0], "row": [1, 1]})
    with opened(path) as publisher:
        publisher.release(HISTOGRAM, epsilon="1")
    with pytest.raises(sf.UsageError, match="do not add up"):
        opened(path, sf.source(table, DOMAIN, person="row", rows_per_person=5, name="n"))


@pytest.mark.parametrize("ask", ["release", "open"])
def test_a_charge_that_is_taken_over_binds_its_account(path, monkeypatch, ask):
    """As one that an older version left without an answer: two publishers were open before either charged."""
    with open_ledger(path) as ledger:
        ledger.open_account("a", "pure", (9 * 10**9, 0))
        monkeypatch.setattr(bindings, "fix", lambda *_: None)
        publisher = opened(path, PERSONS)
        monkeypatch.setattr(
            journal, "store_answer", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        questions = {
            "release": lambda p: p.release(HISTOGRAM, epsilon="1", key="k"),
            "open": lambda p: p.open(sf.Counter(4), epsilon="1", key="k"),
        }
        with pytest.raises(KeyboardInterrupt):
            questions[ask](publisher)
        monkeypatch.undo()
        opened(path).release(HISTOGRAM, epsilon="1")
        assert ledger.account("a").protects == "one row, added or removed"
        with pytest.raises(sf.UsageError, match="do not add up"):
            questions[ask](publisher)


# --- what an answer is about -----------------------------------------------------------------------------------------------


def test_a_file_that_is_changed_between_question_and_scan_does_not_answer_for_the_one_before(
    path, tmp_path, monkeypatch
):
    """Its answer would be stored for the earlier state, and served again when that state is put back."""
    table = tmp_path / "t.csv"
    table.write_text("x\n1\n")
    os.utime(table, ns=(10**18, 10**18))
    with opened(path, sf.source(table, DOMAIN)) as publisher:
        plain = publisher.ledger.reserve

        def swap(*arguments: object, **options: object) -> object:
            table.write_text("x\n1\n1\n")
            return plain(*arguments, **options)

        monkeypatch.setattr(publisher.ledger, "reserve", swap)
        with pytest.raises(sf.DataError, match="changed while it was read"):
            publisher.release(HISTOGRAM, epsilon="1")
