"""An audit recomputes what each spender spent, whatever was written into the file."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sfumato.ledger import Book, Entry
from sfumato.ledger.audit import Books, audited
from sfumato.ledger.entries import link_of, opening
from support.memory_store import MemoryStore


def entries() -> list[Entry]:
    """An account of 100 units; ann may spend 30, then 20, and spent 10 and 5; ben's is beside."""
    book = Book(MemoryStore())
    book.open_account("trips", "marbles", (100, 0))
    book.open_account("visits", "marbles", (100, 0))
    book.add_spender("trips", "ann", (30, 0))
    book.reserve("trips", "a", "q", (10, 0), "", spender="ann")
    book.add_spender("trips", "ben", (20, 0))
    book.set_spender("trips", "ann", (20, 0))
    book.reserve("trips", "b", "q", (5, 0), "", spender="ann")
    return list(book.log())


def faults(changes: dict[int, dict[str, Any]]) -> tuple[str, ...]:
    """What an audit finds after some entries were changed, and all hashes were made anew."""
    chain: list[Entry] = []
    for entry in entries():
        previous = chain[-1].hash if chain else ""
        new = dataclasses.replace(entry, previous=previous, **changes.get(entry.sequence, {}))
        chain.append(dataclasses.replace(new, hash=link_of(new)))
    accounts = dict.fromkeys(("trips", "visits"), ("marbles", (100, 0)))
    assert chain[0].note == opening("marbles", (100, 0))
    return audited(Books(chain, accounts, {}, len(chain), {})).verification.faults


def test_what_was_not_changed_has_no_fault() -> None:
    assert faults({}) == ()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({4: {"own": (9, 0)}}, "entry 4 states a sum of its spender that does not follow"),
        ({4: {"spender": "", "own": (0, 0)}}, "entry 4 is charged to account 'trips' by none"),
        ({4: {"spender": ""}}, "entry 4 states a sum of a spender that it does not name"),
        ({4: {"spender": "ben"}}, "entry 4 takes the spender 'ben' over their ceiling"),
        (
            {7: {"cost": (15, 0), "spent": (25, 0), "own": (25, 0)}},
            "entry 7 takes the spender 'ann' over their ceiling",
        ),
        ({7: {"kind": "abandon"}}, "entry 7 is no charge, and names the spender 'ann'"),
        ({6: {"note": "{}"}}, "entry 6 sets no ceiling that can be read"),
        ({6: {"note": '{"rule": "pure", "ceiling": [20, 0]}'}}, "entry 6 sets no ceiling"),
        ({6: {"note": '{"rule": "marbles", "ceiling": [1, 0]}'}}, "'ann' over their ceiling"),
        ({7: {"own": ("5", 0)}}, "entry 7 holds a value of the wrong kind"),
        ({7: {"spender": 1}}, "entry 7 holds a value of the wrong kind"),
    ],
)
def test_what_was_changed_is_found(changes: dict[int, dict[str, Any]], found: str) -> None:
    assert found in " / ".join(faults(changes))
