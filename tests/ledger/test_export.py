"""The public part of a ledger, for an auditor."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import sfumato as sf
from sfumato.ledger.moving import exported

EMPTY = pa.table({"x": pa.array([], pa.float64()), "who": pa.array([], pa.string())})
DOMAIN = sf.Domain(x=sf.Interval(0, 1))
WHO = ["canary-person-1", "canary-person-2", "canary-person-3"]


def opened(path: Path, person: str | None = None, **options: object) -> sf.Publisher:
    source = sf.source(EMPTY, DOMAIN, name="visits", person=person)
    return sf.Publisher(source, ledger=path, account="a", budget=sf.ZCDP("9"), **options)


def test_an_auditor_gets_the_public_part_only(path):
    with (
        opened(path, person="who") as publisher,
        publisher.open(sf.Counter(9), rho="1", key="k") as stream,
    ):
        stream.push(3, persons=WHO, event="2026-01-01")
        release = publisher.release(sf.Histogram("x"), rho="1")
        secrets = publisher.ledger._opened_secrets()
        state, secret = secrets.store.reading(
            lambda rows: rows._db.execute("SELECT state, secret FROM streams").fetchone()
        )
        found = exported(publisher.ledger)
        totals = stream.history()
    text = json.dumps(found)
    for part in (state.decode(), secret.hex(), secrets._secret.hex(), *WHO):
        assert part not in text
    (answer,) = json.loads(found["answers"][str(release.receipt.entry)])
    assert answer["counts"] == release.values.tolist()
    steps = found["steps"][str(totals.receipt.entry)]
    assert [json.loads(step["output"]) for step in steps] == [
        list(output) for output in totals.outputs
    ]
    assert steps[0]["event"] == "2026-01-01"
