"""The secrets file: its owner only, and nothing is left of a finished stream."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.ledger.entries import OVER
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


def secrets_rows(publisher: sf.Publisher, query: str) -> list[tuple[bytes, ...]]:
    """Rows of the secrets file, as the ledger that has it open sees them."""
    store = publisher.ledger._opened_secrets().store
    return store.reading(lambda rows: rows._db.execute(query).fetchall())


@pytest.mark.parametrize("method", ["tree", "toeplitz", "blt"])
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
        (secret,) = secrets_rows(publisher, "SELECT secret, state FROM streams")
        assert all(part in seen for part in secret)
        stream.push([CANARIES[2]])
        for moment in ("open", "closed"):
            found = files(path)
            for canary in (*CANARIES, sum(CANARIES), sum(CANARIES[:2])):
                assert not any(text in found for text in wide(canary)), moment
            assert not any(part in found for part in secret), moment
            assert b'"totals"' not in found
            if moment == "open":
                publisher.close()
    with opened(path) as again:
        history = again.open(sf.Counter(3, value=ends, method=method), rho="1", key="k").history()
        assert len(history.values) == 3
        assert again.ledger.verify().ok


def test_a_finished_stream_leaves_no_tally_behind(path):
    publisher = opened(path, person="who")
    with publisher.open(sf.Counter(2), rho="1", key="k") as stream:
        stream.push(3, persons=WHO)
        tokens = [token for (token,) in secrets_rows(publisher, "SELECT who FROM tallies")]
        assert len(tokens) == 3
        assert all(token in files(path) for token in tokens)
        stream.push(1, persons=WHO[:1])
        assert not any(token in files(path) for token in tokens)
        with pytest.raises(sf.UsageError, match="horizon"):
            stream.push(1, persons=WHO[:1])
    publisher.close()
    with closing(sqlite3.connect(secrets_of(path))) as db:
        assert db.execute("SELECT state, secret, tallied FROM streams").fetchall() == [
            (OVER, b"", 0)
        ]
        assert db.execute("SELECT count(*) FROM tallies").fetchone() == (0,)


def test_another_process_that_holds_a_finished_stream_is_told_so(path):
    publishers = [opened(path), opened(path)]
    first, second = [each.open(sf.Counter(2), rho="1", key="k") for each in publishers]
    second.push(1, event="a")
    first.push(1, event="b")
    with pytest.raises(sf.UsageError, match="horizon"):
        second.push(1, event="c")
    assert second.push(1, event="b").step == 2
    assert all(each.ledger.verify().ok for each in publishers)


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
