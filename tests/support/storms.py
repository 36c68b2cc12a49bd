"""Workers that spend from one ledger while they, or its server, are killed; and a judge of it.

A worker shows each answer to the world once the ledger has handed it out. The judge compares what
was shown with what the ledger holds.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Book, stated_terms
from sfumato.privacy import ApproxDP, Event, stated_curves, total_of

Open: TypeAlias = Callable[[], Book]
COST = (3, 1)
EVENT = "laplace(1, 10)"


def begin(open_book: Open, spends: int) -> None:
    """Open an account that pays for so many spends, and not for one more."""
    with open_book() as book:
        book.open_account("trips", "marbles", (COST[0] * spends, COST[1] * spends + 1))


def begin_by_curves(open_book: Open, spends: int) -> int:
    """Open an account by curves that pays for at least so many spends; how many it pays for."""
    event = Event.read(EVENT)
    for epsilon in count(1):
        total = ApproxDP(Fraction(epsilon, 20), "1e-6", composition="curves")
        composition = stated_curves(total)
        assert composition is not None
        paid = composition.remaining_answers(composition.start, event.money, event)
        if paid >= spends:
            break
    with open_book() as book:
        book.open_account("trips", "approx", total_of(total), stated_terms(total))
    return paid


def published(place: Path, name: int, ending: str = "out") -> list[tuple[str, str]]:
    """What one worker has shown to the world: whole lines of key and answer's hash."""
    file = place / f"{name}.{ending}"
    text = file.read_text() if file.exists() else ""
    pairs = (line.split() for line in text.splitlines())
    return [(key, digest) for key, digest in pairs]


def work(open_book: Open, place: Path, name: int, tasks: int, early: bool = False) -> None:
    """Release one key after another until the account refuses.

    The first key is the first that was not shown in an earlier life.
    A broken worker is ``early``: it shows an answer before the ledger has it.
    """
    done = {key for key, _ in published(place, name)}
    out = os.open(place / f"{name}.out", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    show = partial(os.write, out)
    seeds = os.open(place / f"{name}.seeds", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    with open_book() as book:
        for number in range(tasks):
            key = f"{name}-{number}"
            if key in done:
                continue
            try:
                asked = f"digest of {key}"
                with book.reserve("trips", key, asked, COST, "", event=EVENT) as hold:
                    # A line is written whole, or not at all.
                    if hold.seed:
                        os.write(seeds, line(key, hold.seed))
                    answer = os.urandom(64)
                    if early:
                        show(line(key, answer))
                    answer = hold.store(answer)
            except BudgetExceeded:
                break
            if not early:
                show(line(key, answer))
    os.close(out)
    os.close(seeds)


def line(key: str, answer: bytes) -> bytes:
    """What is shown of an answer."""
    return f"{key} {hashlib.sha256(answer).hexdigest()}\n".encode()


def judge(open_book: Open, place: Path, names: int) -> dict[str, int]:
    """Compare what was shown with what the ledger holds; the figures of it.

    No charge was lost: each has an answer, whose every attempt was given one seed.
    """
    given = {pair for name in range(names) for pair in published(place, name, "seeds")}
    assert len(given) == len(dict(given))
    shown = dict(pair for name in range(names) for pair in published(place, name))
    with open_book() as book:
        found = book.verify()
        account = book.account("trips")
        entries = list(book.log())
        assert found.ok, found.faults
        stored = {entry.key: entry.payload_hash for entry in entries if entry.kind == "store"}
        charged = [entry.key for entry in entries if entry.kind == "reserve"]
        handed = {entry.key for entry in entries if entry.kind == "hand"}
        assert len(charged) == len(set(charged))
        assert stored.keys() <= set(charged)
        cost = Event.read(EVENT).money if account.by_curves else COST
        assert account.spent == (cost[0] * len(charged), cost[1] * len(charged))
        assert account.composition.fits(account.state)
        assert shown.items() <= stored.items(), (
            "every answer that was shown is stored, byte for byte"
        )
        assert shown.keys() <= handed
        assert dict(given).keys() <= stored.keys() == set(charged)
        with pytest.raises(BudgetExceeded):  # they went on until the account refused
            book.reserve("trips", "one more", "digest", COST, "", event=EVENT)
        seeds = book._opened_secrets().store.reading(lambda rows: rows.seeds())
        assert not {key for _, key in seeds} & stored.keys()
    return {
        "charged": len(charged),
        "shown": len(shown),
        "resumed": sum(entry.kind == "resume" for entry in entries),
        "spent_units": account.spent[0],
        "total_units": account.total[0],
        "entries": len(entries),
    }
