"""The public file of a ledger says nothing that was not paid for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import sfumato as sf

EMPTY = pa.table({"x": pa.array([], pa.float64()), "who": pa.array([], pa.string())})
DOMAIN = sf.Domain(x=sf.Interval(0, 1))
WHO = ["canary-person-1", "canary-person-2", "canary-person-3"]


def opened(path: Path, person: str | None = None, **options: object) -> sf.Publisher:
    source = sf.source(EMPTY, DOMAIN, name="visits", person=person)
    return sf.Publisher(source, ledger=path, account="a", budget=sf.ZCDP("9"), **options)


def test_the_book_alone_says_nothing_that_was_not_paid_for(path):
    with (
        opened(path, person="who") as publisher,
        publisher.open(sf.Counter(9), rho="1", key="k") as stream,
    ):
        stream.push(3, persons=WHO)
        publisher.release(sf.Histogram("x"), rho="1")
        secrets = publisher.ledger._opened_secrets()
        state, secret = secrets.store.reading(
            lambda rows: rows._db.execute("SELECT state, secret FROM streams").fetchone()
        )
        tokens = secrets.store.reading(
            lambda rows: [token for (token,) in rows._db.execute("SELECT who FROM tallies")]
        )
        key = secrets._secret
    book = path.read_bytes()
    for part in (state, secret, key, key.hex().encode(), *tokens):
        assert part not in book
