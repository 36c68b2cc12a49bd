"""Tampering with the steps and the states of streams is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.ledger import open_ledger
from support.tampering import secrets_of, unguarded, verified_after

DOMAIN = sf.Domain(x=sf.Interval(0, 4))
ROWS = sf.source(np.zeros((3, 1)), DOMAIN, name="n")


def opened(
    path: Path, source: sf.Source = ROWS, account: str = "a", **options: object
) -> sf.Publisher:
    return sf.Publisher(source, ledger=path, account=account, **({"budget": "9"} | options))


def test_a_stream_that_the_secrets_lost_is_found_by_verification(path):
    with opened(path) as publisher:
        publisher.open(sf.Counter(9), epsilon="1", key="k").push(1)
    with unguarded(secrets_of(path)) as db:
        db.execute("DELETE FROM steps")
        db.execute("DELETE FROM streams")
    with open_ledger(path) as ledger:
        assert "missing from the secrets" in str(ledger.verify().fault)


EDITS = {
    "an output": (
        "UPDATE steps SET output = x'00' WHERE step = 3",
        "step 3 of stream 2 was edited",
    ),
    "an output as text": (
        "UPDATE steps SET output = '3' WHERE step = 3",
        "step 3 of stream 2 was edited",
    ),
    "an event": ("UPDATE steps SET event = 'z' WHERE step = 3", "step 3 of stream 2 was edited"),
    "a hash": ("UPDATE steps SET hash = 'z' WHERE step = 3", "step 3 of stream 2 was edited"),
    "a deleted step": ("DELETE FROM steps WHERE step = 3", "step 4 of stream 2 follows step 2"),
    "a cut of the tail": (
        "DELETE FROM steps WHERE step = 5",
        "stream 2 ends at step 4, but its state",
    ),
    "a state": ("UPDATE streams SET state = x'00'", "the state of stream 2 was edited"),
    "a state as text": ("UPDATE streams SET state = '5'", "the state of stream 2 was edited"),
    "a number of steps": ("UPDATE streams SET step = 4", "stream 2 ends at step 5, but its state"),
    "a secret": ("UPDATE streams SET secret = x'00'", "the state of stream 2 was edited"),
    "a specification": ("UPDATE streams SET spec = x'00'", "the state of stream 2 was edited"),
    "a tally": ("UPDATE tallies SET rows = 1", "the tallies of stream 2 were edited"),
    "a deleted tally": ("DELETE FROM tallies", "the tallies of stream 2 were edited"),
    "a deleted stream": ("DELETE FROM streams", "steps belong to stream 2, which is missing"),
    "a stream without a charge": (
        "UPDATE streams SET stream = 1; UPDATE steps SET stream = 1",
        "stream 1 has no charge",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_tampering_is_found(stream_path, edit):
    statements, sentence = EDITS[edit]
    faults = verified_after(stream_path, statements, secrets_of(stream_path)).faults
    assert any(sentence in fault for fault in faults), faults
