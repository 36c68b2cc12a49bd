"""What users call: accounts, the log, streams and signatures."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.basics.structs import to_bytes
from sfumato.errors import LedgerError, UsageError
from sfumato.ledger import open_ledger


def kinds(ledger):
    return [entry.kind for entry in ledger.log()]


def test_everything_is_still_there_after_reopening(path, release):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "pure", (10**9, 0))
        release(ledger, "a", b"\0binary\xff")
        head = ledger.verify().head
    with open_ledger(path) as ledger:
        assert release(ledger, "a", b"other") == b"\0binary\xff"
        assert ledger.account("trips").spent == (10, 0)
        assert ledger.verify(head).head == head


def test_an_existing_account_must_be_asked_for_as_it_is(ledger):
    kept = ledger.open_account("trips", "marbles", (1000, 0))
    assert ledger.open_account("trips", "marbles", None) == kept
    with pytest.raises(UsageError, match=r"\(999, 0\) units.*\(1000, 0\) units"):
        ledger.open_account("trips", "marbles", (999, 0))
    with pytest.raises(UsageError, match=r"counts by rule 'marbles': its budget is"):
        ledger.open_account("trips", "pure", (1000, 0))
    with pytest.raises(UsageError, match="rule 'zcdp'"):
        ledger.open_account("trips", "zcdp", None)
    assert kinds(ledger) == ["open"]


def test_accounts_and_logs_are_apart(ledger, release):
    ledger.open_account("visits", "marbles", (50, 0))
    release(ledger, "a")
    ledger.reserve("visits", "a", "d", (50, 0), "")
    assert [account.spent for account in ledger.accounts()] == [(10, 0), (50, 0)]
    assert [entry.kind for entry in ledger.log("visits")] == ["open", "reserve"]
    assert [entry.sequence for entry in ledger.log()] == list(range(1, 7))


def test_a_long_log_is_read_in_batches(ledger, monkeypatch):
    monkeypatch.setattr("sfumato.ledger.book.BATCH", 5)
    for number in range(11):
        ledger.reserve("trips", str(number), "d", (0, 0), "")
    assert [entry.sequence for entry in ledger.log("trips")] == list(range(1, 13))


def test_a_path_is_no_store(path):
    with pytest.raises(UsageError, match=r"it is a path.*open_ledger"):
        sf.Ledger(str(path))


def test_a_closed_ledger_says_so(path):
    ledger = open_ledger(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.accounts()


EMPTY = pa.table({"x": pa.array([], pa.float64()), "who": pa.array([], pa.string())})
DOMAIN = sf.Domain(x=sf.Interval(0, 1))


def opened(path: Path, person: str | None = None, **options: object) -> sf.Publisher:
    source = sf.source(EMPTY, DOMAIN, name="visits", person=person)
    return sf.Publisher(source, ledger=path, account="a", budget=sf.ZCDP("9"), **options)


def test_a_process_that_ends_while_a_stream_begins_leaves_the_next_to_go_on(path, monkeypatch):
    """It may end before the stream is written, or before the entry that says that it is there."""
    from sfumato.ledger import journal, stream_record

    ends = {"before": (stream_record, "begin"), "after": (journal, "store_answer")}
    for key, (module, name) in ends.items():
        with opened(path) as publisher:
            with monkeypatch.context() as patch:
                patch.setattr(module, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    publisher.open(sf.Counter(9), rho="1", key=key)
            spent = publisher.account.spent
        with opened(path) as publisher:
            stream = publisher.open(sf.Counter(9), rho="1", key=key)
            assert publisher.account.spent == spent
            assert stream.push(1).step == 1
            assert publisher.ledger.verify().ok


def test_signatures_are_stored_with_the_answer(path):
    with opened(path) as publisher:
        plain = publisher.release(sf.Histogram("x"), rho="1")
        assert b"signature" not in to_bytes(plain)
        signer = publisher.ledger.signer(create=True)
        assert publisher.ledger.signer(create=True) == signer
        signed = publisher.release(sf.Histogram("x", bins=3), rho="1")
        assert signed.receipt.signer == signer
        assert publisher.release(sf.Histogram("x", bins=3), rho="1") == signed
