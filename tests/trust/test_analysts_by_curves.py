"""An analyst's own SQL spends no more of an account by curves than the account and its ceilings."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

import sfumato as sf
from ledger.postgres.people import People, settle
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Binding, Entry, stated_terms
from sfumato.ledger.entries import NOTHING, curve_after, link_of
from sfumato.privacy import curves_of, total_of
from trust.test_analysts import FRESH, NAME, next_entry

TOTAL = sf.ApproxDP("5.21", "1e-6", composition="curves")
OWN = sf.ApproxDP("2", "1e-7", composition="curves")
DATA = sf.ApproxDP("3", "1e-7", composition="curves")
BOUND = Binding("one row", "flights", total_of(DATA), stated_terms(DATA))
COUNT = "laplace(1, 10)"
ACCOUNT = "curves"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> People:
    """Ann may spend from an account by curves, and has one charge of a data set with a ceiling."""
    people = settle(Path(tmp_path_factory.mktemp("curves")))
    with people.book("carl") as book:
        book.open_account(ACCOUNT, "approx", total_of(TOTAL), stated_terms(TOTAL))
        book.cap(ACCOUNT, BOUND)
        book.add_spender(ACCOUNT, people.name("ann"), total_of(OWN), stated_terms(OWN))
    with people.book("ann") as book:
        book.reserve(ACCOUNT, "first", "q", (0, 0), "", event=COUNT, binding=BOUND)
    return people


def charge_of(people: People, drawn: str, **changes: Any) -> Entry:
    """A charge that is right for an event but for the changes, and hashed as it should be."""
    name = people.name("ann")
    with closing(people.store("ann")) as store:
        account = store.reading(lambda rows: rows.account(ACCOUNT))
        mine = store.reading(lambda rows: rows.spender(ACCOUNT, name))
        tip = store.reading(lambda rows: rows.tip(ACCOUNT))
        data = store.reading(lambda rows: rows.data_curve("flights"))
    assert account is not None
    assert mine is not None
    curve = curve_after(account.composition, account.state, NOTHING, drawn)
    own = curve_after(mine.composition, mine.state, NOTHING, drawn)
    of_data = curve_after(curves_of(stated_terms(DATA)), data[1], NOTHING, drawn)
    first, second, *_ = curve[0]
    entry = dataclasses.replace(
        next_entry(people),
        account=ACCOUNT,
        cost=(first, second),
        spent=(tip.spent[0] + first, tip.spent[1] + second),
        own=(mine.spent[0] + first, mine.spent[1] + second),
        event=drawn,
        curve=curve,
        own_curve=own,
        data_curve=of_data,
    )
    entry = dataclasses.replace(entry, **changes)
    return dataclasses.replace(entry, hash=link_of(entry))


def columns(people: People, entry: Entry) -> tuple[object, ...]:
    def look(rows: Any) -> tuple[object, ...]:
        return cast("tuple[object, ...]", rows.columns(entry))

    with closing(people.store("ann")) as store:
        return store.reading(look)


@pytest.fixture
def db(people: People) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with closing(people.connect("ann")) as connection:
        yield connection


def enter(db: psycopg.Connection[tuple[object, ...]], people: People, entry: Entry) -> None:
    marks = ", ".join(["%s"] * 23)
    query = f"SELECT {people.schema}.enter(ROW({marks})::{people.schema}.entries, %s)"
    db.execute(cast("Any", query), (*columns(people, entry), None))


def test_what_does_not_fit_or_is_not_added_up_is_refused(
    people: People, db: psycopg.Connection[tuple[object, ...]]
) -> None:
    db.execute(cast("Any", NAME.format(people.schema)), (ACCOUNT, None, ["by curves"], *FRESH))
    right = charge_of(people, COUNT)
    added, state = cast("Any", right.curve)
    nothing = (0,) * len(added)
    less = (added, tuple(number - 1 for number in state))
    forged = {
        "over the own ceiling": charge_of(people, "pure(21/10)"),
        "over the own ceiling in rho": charge_of(people, "zcdp(1/5)"),
        "over what is set aside": charge_of(people, "approx(1/10, 1/1000000)"),
        "no event": charge_of(people, COUNT, event="", curve=(), own_curve=(), data_curve=()),
        "an event without curves": charge_of(people, COUNT, curve=()),
        "no curve of one's own": charge_of(people, COUNT, own_curve=()),
        "no curve of the data": charge_of(people, COUNT, data_curve=()),
        "a smaller state": charge_of(people, COUNT, curve=less),
        "the state of before": charge_of(people, COUNT, curve=(nothing, right.curve[1])),
        "nothing added": charge_of(
            people, COUNT, curve=(nothing, tuple(s - a for s, a in zip(state, added, strict=True)))
        ),
        "the key of a widening": charge_of(people, COUNT, key="(widened)"),
        "another cost": charge_of(
            people, COUNT, cost=(1, 0), spent=(10**8 + 1, 0), own=(10**8 + 1, 0)
        ),
        "too few orders": charge_of(people, COUNT, curve=(added[:-1], state[:-1])),
        "another hash": dataclasses.replace(right, hash="0" * 64),
        "an event in an account by sums": dataclasses.replace(
            next_entry(people), event=COUNT, curve=right.curve
        ),
    }
    taken: list[str] = []
    for what, entry in forged.items():
        try:
            enter(db, people, entry)
        except psycopg.IntegrityError:
            continue
        taken.append(what)
    assert taken == []
    with people.book("carl") as book:
        assert book.verify().ok


def test_a_charge_that_is_right_is_taken(
    people: People, db: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Or the test above would find refusals of everything."""
    fresh = (os.urandom(16).hex(), "c" * 64)
    db.execute(cast("Any", NAME.format(people.schema)), (ACCOUNT, None, ["right"], *fresh))
    enter(db, people, charge_of(people, COUNT, key=fresh[0], digest=fresh[1]))
    with people.book("eve") as book:
        verification = book.verify()
        assert verification.ok, verification.faults


def test_the_library_says_what_fits(people: People) -> None:
    with people.book("ann") as book:
        with pytest.raises(BudgetExceeded, match="this spender's ceiling is epsilon = 2,"):
            book.reserve(ACCOUNT, None, "large", (0, 0), "", event="pure(21/10)", binding=BOUND)
        with book.reserve(ACCOUNT, None, "small", (0, 0), "", event=COUNT, binding=BOUND) as hold:
            hold.store(b"noisy")
