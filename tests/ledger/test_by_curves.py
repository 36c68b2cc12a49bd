"""Accounts by curves: events are counted, ceilings hold, and what is fixed stays as it is."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, UsageError
from sfumato.ledger import Book, Hold, Ledger, journal, open_ledger, stated_terms
from sfumato.ledger.audit import Books, audited
from sfumato.ledger.entries import Binding, link_of
from sfumato.ledger.moving import exported, migrate
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.privacy import curves_of, total_of
from support import postgres
from support.memory_store import MemoryStore
from support.postgres import schema_of
from support.tampering import verified_after

TOTAL = sf.ApproxDP("5.21", "1e-6", composition="curves")
COUNT = "laplace(1, 10)"  # a count at epsilon .1
LARGE = "pure(4)"

STORES: dict[str, Callable[[Path], Book]] = {
    "file": lambda folder: open_ledger(folder / "budget.db"),
    "memory": lambda folder: open_ledger(None),
    "plain": lambda folder: Book(MemoryStore()),
    "server": lambda folder: Book(PostgresStore(postgres.address(), schema=schema_of(folder))),
}


def opened(book: Ledger, name: str, total: sf.ApproxDP | sf.PureDP | sf.ZCDP) -> None:
    rule = type(total).__struct_config__.tag
    book.open_account(name, str(rule), total_of(total), stated_terms(total))


@pytest.fixture(params=STORES)
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with one account by curves."""
    with STORES[request.param](tmp_path) as ledger:
        opened(ledger, "trips", TOTAL)
        yield ledger


@pytest.fixture
def stated(book: Ledger) -> Ledger:
    """A ledger whose spenders say who they are; on a server their roles do (`tests/trust`)."""
    if "postgresql" in book.label:
        pytest.skip("a server knows who asks by the role")
    return book


def charged(book: Ledger, question: str, event: str = COUNT, **stated: object) -> Hold:
    return book.reserve("trips", None, question, (0, 0), "", event=event, **stated)


def test_a_hundred_counts_fit_where_fifty_two_would_by_sums(book: Ledger) -> None:
    with charged(book, "a") as hold:
        hold.store(b"noisy")
    many = charged(book, "many", f"98 {COUNT}").entry
    assert many.cost == (9_800_000_000, 0)
    charged(book, "last")
    account = book.account("trips")
    assert account.spent == (10_000_000_000, 0)
    assert account.state[:3] == (10_000_000_000, 0, 0)
    with pytest.raises(
        BudgetExceeded, match=r"by curves the largest that fits is epsilon = 0\.0540"
    ) as error:
        charged(book, "one more")
    assert error.value.remaining == (54_033_526, 250_000_000_000)
    charged(book, "what fits", "pure(27016763/500000000)")
    with pytest.raises(BudgetExceeded):
        charged(book, "any more", "pure(1/1000)")
    assert charged(book, "a").stored == b"noisy"  # paid once
    verification = book.verify()
    assert verification.ok, verification.faults


def test_a_charge_in_rho_ends_the_branch_of_sums(book: Ledger) -> None:
    charged(book, "large", "pure(5)")  # by sums
    with pytest.raises(BudgetExceeded, match=r"a charge of rho = 0\.001 to"):
        charged(book, "gaussian", "zcdp(1/1000)")
    with pytest.raises(BudgetExceeded, match=r"epsilon = 1, delta = 0, rho = 0\.001 to"):
        charged(book, "both", "pure(1) + zcdp(1/1000)")
    opened(book, "other", TOTAL)
    book.reserve("other", None, "q", (0, 0), "", event="zcdp(1/10)")
    assert book.account("other").state[2] == 10**11
    with pytest.raises(BudgetExceeded):
        book.reserve("other", None, "r", (0, 0), "", event="pure(5)")
    assert book.verify().ok


def test_deltas_keep_to_what_is_set_aside(book: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match=r"delta = 0\.00000025 is left for answers"):
        charged(book, "keys", "approx(1/10, 3/10000000)")
    charged(book, "keys", "approx(1/10, 1/4000000)")
    with pytest.raises(BudgetExceeded, match="delta = 0 is left for answers"):
        charged(book, "more", "approx(1/10, 1/1000000000000000000)")
    assert book.verify().ok


def test_an_account_by_curves_is_charged_by_events_only(book: Ledger) -> None:
    with pytest.raises(UsageError, match="does not say what is drawn"):
        charged(book, "a", "")
    with pytest.raises(UsageError, match="not the text of an event"):
        charged(book, "a", "laplace(1,10)")
    assert not [entry for entry in book.log() if entry.kind == "reserve"]


def test_the_composition_of_an_account_is_fixed(book: Ledger) -> None:
    opened(book, "trips", TOTAL)
    for other in (
        sf.ApproxDP("5.21", "1e-6"),
        sf.ApproxDP("5.21", "1e-6", composition="curves", aside="1e-7"),
    ):
        with pytest.raises(UsageError, match="with another composition: by curves"):
            opened(book, "trips", other)
    opened(book, "sums", sf.ApproxDP("5.21", "1e-6"))
    with pytest.raises(UsageError, match="with another composition: by sums"):
        opened(book, "sums", TOTAL)


def test_sums_and_curves_stand_side_by_side(book: Ledger) -> None:
    opened(book, "sums", sf.PureDP("1"))
    hold = book.reserve("sums", None, "q", (10**9, 0), "", event=COUNT)
    assert hold.entry.event == ""
    with pytest.raises(BudgetExceeded):
        book.reserve("sums", None, "r", (1, 0), "", event=COUNT)
    charged(book, "a")
    assert book.verify().ok


# --- two callers ----------------------------------------------------------------------------------


def _opened_at(where: tuple[str, str]) -> Book:
    place, schema = where
    return Book(PostgresStore(place, schema=schema)) if schema else open_ledger(place)


def _charge_once(where: tuple[str, str], question: str, turns: object) -> bool:
    with _opened_at(where) as book:
        turns.wait()  # type: ignore[attr-defined]
        try:
            charged(book, question, LARGE)
        except BudgetExceeded:
            return False
        return True


@pytest.mark.parametrize("kind", ["file", "server"])
def test_charges_that_fit_singly_and_not_together(tmp_path: Path, kind: str) -> None:
    where = (str(tmp_path / "budget.db"), "")
    if kind == "server":
        where = (postgres.address(), schema_of(tmp_path))
    with _opened_at(where) as book:
        opened(book, "trips", TOTAL)
        book.reserve("trips", "small", "s", (0, 0), "", event=COUNT)
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(2) as pool:
        turns = manager.Barrier(2)
        asked = [(where, question, turns) for question in ("a", "b")]
        assert sorted(pool.starmap(_charge_once, asked)) == [False, True]
    with _opened_at(where) as book:
        assert book.account("trips").spent == (4_100_000_000, 0)
        assert book.verify().ok


# --- spenders and data sets -----------------------------------------------------------------------

SMALL = sf.ApproxDP("1", "1e-7", composition="curves")


def test_a_spender_keeps_to_a_filter_of_their_own(stated: Ledger) -> None:
    stated.add_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
    stated.add_spender("trips", "ben", total_of(TOTAL), stated_terms(TOTAL))
    charged(stated, "a", "pure(9/10)", spender="ann")
    with pytest.raises(BudgetExceeded, match="this spender's ceiling is epsilon = 1,"):
        charged(stated, "b", "pure(1/2)", spender="ann")
    charged(stated, "c", "pure(4)", spender="ben")
    assert [each.state[0] for each in stated.spenders("trips")] == [900_000_000, 4_000_000_000]
    # The account holds as well as the ceilings.
    with pytest.raises(BudgetExceeded, match="to account 'trips': by curves the largest"):
        charged(stated, "d", "pure(2)", spender="ben")
    verification = stated.verify()
    assert verification.ok, verification.faults


def test_the_ceiling_of_a_spender_who_paid_is_not_chosen_anew(stated: Ledger) -> None:
    stated.add_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
    stated.set_spender("trips", "ann", total_of(TOTAL), stated_terms(TOTAL))
    stated.set_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
    charged(stated, "a", spender="ann")
    later = sf.ApproxDP("2", "1e-7", composition="curves")
    with pytest.raises(UsageError, match="fixed before the first answer"):
        stated.set_spender("trips", "ann", total_of(later), stated_terms(later))
    stated.set_spender("trips", "ann", (0, 0))
    with pytest.raises(BudgetExceeded):
        charged(stated, "b", spender="ann")
    stated.set_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
    charged(stated, "b", spender="ann")
    assert stated.spenders("trips")[0].state[0] == 200_000_000
    assert stated.verify().ok


@pytest.mark.parametrize("event", [COUNT, "zcdp(1/1000)"])
@pytest.mark.parametrize("meanwhile", [False, True])
def test_only_the_terms_of_what_a_spender_paid_by_are_put_back(
    stated: Ledger, event: str, meanwhile: bool
) -> None:
    """Neither those of a ceiling from before the first charge, nor after a charge in rho alone."""
    stated.add_spender("trips", "ann", total_of(TOTAL), stated_terms(TOTAL))
    stated.set_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
    charged(stated, "a", event, spender="ann")
    if meanwhile:
        stated.set_spender("trips", "ann", (0, 0))
    with pytest.raises(UsageError, match="fixed before the first answer"):
        stated.set_spender("trips", "ann", total_of(TOTAL), stated_terms(TOTAL))
    later = sf.ApproxDP("2", "1e-7", composition="curves")
    with pytest.raises(UsageError, match="fixed before the first answer"):
        stated.set_spender("trips", "ann", total_of(later), stated_terms(later))
    put_back = stated.set_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
    assert [put_back] == stated.spenders("trips")
    assert any(put_back.state)
    charged(stated, "b", event, spender="ann")


def test_an_auditor_finds_terms_that_a_spender_did_not_pay_by(
    stated: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated.add_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
    charged(stated, "a", "zcdp(1/1000)", spender="ann")
    monkeypatch.setattr(journal, "_require_former_terms", lambda *_: None)
    stated.set_spender("trips", "ann", total_of(TOTAL), stated_terms(TOTAL))
    (fault,) = stated.verify().faults
    assert fault.endswith("sets other terms for 'ann' than those by which they were charged")


@pytest.mark.parametrize("terms", ["", stated_terms(SMALL)])
def test_a_ceiling_in_another_kind_than_the_account_is_refused(book: Ledger, terms: str) -> None:
    opened(book, "sums", sf.ApproxDP("1", "1e-6"))
    account, how = ("sums", "by sums") if terms else ("trips", "by curves")
    with pytest.raises(UsageError, match=f"composes {how}, and so must its ceilings"):
        book.add_spender(account, "ann", total_of(SMALL), terms)
    with pytest.raises(UsageError, match=f"composes {how}, and so must its ceilings"):
        book.cap(account, Binding("one row", "n", total_of(SMALL), terms))


def test_all_accounts_of_a_data_set_keep_to_a_filter_of_its_own(book: Ledger) -> None:
    bound = Binding("one row", "n", total_of(SMALL), stated_terms(SMALL))
    opened(book, "visits", TOTAL)
    charged(book, "a", "pure(3/5)", binding=bound)
    with pytest.raises(BudgetExceeded, match="data set 'n': by curves the largest"):
        book.reserve("visits", None, "b", (0, 0), "", event="pure(3/5)", binding=bound)
    book.reserve("visits", None, "c", (0, 0), "", event="pure(3/10)", binding=bound)
    other = Binding("one row", "n", total_of(TOTAL), stated_terms(TOTAL))
    with pytest.raises(UsageError, match="has a ceiling of epsilon = 1,"):
        charged(book, "d", "pure(1/100)", binding=other)
    verification = book.verify()
    assert verification.ok, verification.faults


def test_a_ceiling_of_a_data_set_by_curves_comes_before_the_first_charge(book: Ledger) -> None:
    charged(book, "a", binding=Binding("one row", "n"))
    with pytest.raises(UsageError, match="fixed before the first answer"):
        book.cap("trips", Binding("one row", "n", total_of(SMALL), stated_terms(SMALL)))


# --- widening -------------------------------------------------------------------------------------

IN_RHO = sf.ZCDP("0.5", widens_to=sf.ApproxDP("5.4", "1e-6"))
IN_EPSILON = sf.PureDP("1", widens_to=sf.ApproxDP("2", "1e-6"))


def test_an_account_in_rho_is_widened_once(book: Ledger) -> None:
    opened(book, "wide", IN_RHO)
    with book.reserve("wide", None, "q", (4 * 10**11, 0), "", event="zcdp(2/5)") as hold:
        hold.store(b"noisy")
    book.reserve("wide", "left", "r", (10**11, 0), "", event="zcdp(1/10)")
    with pytest.raises(BudgetExceeded):
        book.reserve("wide", None, "s", (1, 0), "", event="zcdp(1/1000)")
    account = book.widen("wide")
    assert (account.rule, account.total) == ("approx", (5_400_000_000, 10**12))
    assert account.spent == (0, 0)
    assert account.state[2] == 5 * 10**11
    assert book.widen("wide") == account
    book.reserve("wide", None, "s", (0, 0), "", event="zcdp(1/1000)")
    assert (
        book.reserve("wide", None, "q", (4 * 10**11, 0), "", event="zcdp(2/5)").stored == b"noisy"
    )
    opened(book, "wide", IN_RHO)  # who states the total of before, means this account
    verification = book.verify()
    assert verification.ok, verification.faults
    kinds = [(entry.kind, entry.key) for entry in book.log("wide") if entry.kind == "open"]
    assert kinds == [("open", ""), ("open", "(widened)")]


def test_an_account_in_epsilon_keeps_its_branch_of_sums(book: Ledger) -> None:
    opened(book, "wide", IN_EPSILON)
    book.reserve("wide", None, "q", (10**9, 0), "", event="pure(1)")
    account = book.widen("wide")
    assert account.state[:3] == (10**9, 0, 0)
    book.reserve("wide", None, "r", (0, 0), "", event="pure(1)")
    assert book.account("wide").spent == (2 * 10**9, 0)
    assert book.verify().ok


def test_an_account_that_spent_nothing_is_widened_too(book: Ledger) -> None:
    opened(book, "wide", IN_RHO)
    account = book.widen("wide")
    assert account.state == curves_of(account.terms).start
    book.reserve("wide", None, "r", (0, 0), "", event="pure(1)")
    assert book.verify().ok


def test_a_target_is_stated_at_the_opening(book: Ledger) -> None:
    opened(book, "narrow", sf.ZCDP("0.5"))
    for name in ("narrow", "trips"):
        with pytest.raises(UsageError, match="none may be chosen after answers"):
            book.widen(name)
    opened(book, "wide", IN_RHO)
    with pytest.raises(UsageError, match="another target"):
        opened(book, "wide", sf.ZCDP("0.5", widens_to=sf.ApproxDP("6", "1e-6")))


def test_an_account_with_limits_in_its_old_measure_is_not_widened(book: Ledger) -> None:
    opened(book, "wide", IN_RHO)
    book.add_spender("wide", "ann", (10**11, 0))
    with pytest.raises(UsageError, match="ceilings in the measure that it counts"):
        book.widen("wide")


def test_a_charge_of_before_is_resumed_after_the_widening(book: Ledger) -> None:
    opened(book, "wide", IN_RHO)
    with book.reserve("wide", "left", "r", (10**11, 0), "", event="zcdp(1/10)"):
        pass
    book.widen("wide")
    with book.reserve("wide", "left", "r", (0, 0), "", event="zcdp(1/10)") as hold:
        assert hold.store(b"late") == b"late"
    assert book.account("wide").state[2] == 10**11
    assert book.verify().ok


# --- moving ---------------------------------------------------------------------------------------


def lived_in(path: Path) -> tuple[int, str]:
    with open_ledger(path) as book:
        opened(book, "trips", TOTAL)
        book.add_spender("trips", "ann", total_of(SMALL), stated_terms(SMALL))
        bound = Binding("one row", "n", total_of(TOTAL), stated_terms(TOTAL))
        with charged(book, "a", spender="ann", binding=bound) as hold:
            hold.store(b"noisy")
        opened(book, "wide", IN_RHO)
        book.reserve("wide", None, "q", (10**11, 0), "")
        book.widen("wide")
        return book.verify().head


@pytest.mark.parametrize("through", ["a file", "a server"])
def test_curves_move_with_the_ledger(tmp_path: Path, through: str) -> None:
    head = lived_in(tmp_path / "budget.db")
    source: SQLiteStore | PostgresStore = SQLiteStore(tmp_path / "budget.db")
    if through == "a server":
        server = PostgresStore(postgres.address(), schema=schema_of(tmp_path))
        migrate(source, server)
        assert Book(server).verify(head).ok
        source = server
    there = SQLiteStore(tmp_path / "there.db")
    migrate(source, there)
    source.close()
    there.close()
    with open_ledger(tmp_path / "there.db") as book:
        assert book.verify(head).ok
        assert charged(book, "a", spender="ann").stored == b"noisy"
        charged(book, "b", spender="ann")
        assert book.verify().ok


# --- other programs, and edits --------------------------------------------------------------------

COPY = """
    INSERT INTO entries SELECT sequence + 1, account, kind, time, 'new', digest, {}, note,
      payload_hash, {}, until, holder, hash, '', spender, own_first, own_second, event,
      {}, own_curve, data_curve FROM entries WHERE sequence = (SELECT max(sequence) FROM entries)
"""


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_a_file_is_of_a_later_version_once_an_account_is_by_curves(charged_path: Path) -> None:
    with open_ledger(charged_path) as book, open_ledger(charged_path) as running:
        before = list(book.log())
        assert version(charged_path) == 4
        opened(book, "curves", TOTAL)
        assert version(charged_path) == 6
        assert list(book.log())[: len(before)] == before
        # Another process that had it open before goes on.
        running.reserve("trips", "e", "digest", (1, 0), "")
        running.reserve("curves", None, "q", (0, 0), "", event=COUNT)
        running.add_spender("visits", "ann", (10, 0))
        assert running.verify().ok, running.verify().faults


def test_a_foreign_program_can_enter_no_charge(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with open_ledger(path) as book:
        opened(book, "trips", TOTAL)
        charged(book, "a")
    with closing(sqlite3.connect(path)) as db:
        act = COPY.format("0, 0", "spent_first, spent_second", "curve")
        with pytest.raises(sqlite3.OperationalError, match="no such function: sfumato_allows"):
            db.execute(act)


@pytest.mark.parametrize(
    ("cost", "spent", "curve"),
    [
        ("cost_first, 0", "spent_first + cost_first, 0", "curve"),  # a state that was not added to
        ("cost_first, 0", "spent_first + cost_first, 0", "''"),
        ("cost_first, 0", "spent_first, 0", "curve"),
    ],
)
def test_the_rules_refuse_what_a_faulty_library_might_add(
    tmp_path: Path, cost: str, spent: str, curve: str
) -> None:
    store = SQLiteStore(tmp_path / "budget.db")
    book = Book(store)
    opened(book, "trips", TOTAL)
    charged(book, "a")
    act = COPY.format(cost, spent, curve)
    with pytest.raises(sf.SfumatoError, match="own rules refuse"):
        store.writing(lambda rows: rows._ask(act, ()))  # type: ignore[attr-defined]
    assert book.verify().ok


EDITS = {
    "the event": "UPDATE entries SET event = 'laplace(1, 20)' WHERE event <> ''",
    "the curve": "UPDATE entries SET curve = replace(curve, '100000000', '1') WHERE event <> ''",
    "no curve": "UPDATE entries SET curve = 'none' WHERE event <> ''",
    "the terms": "UPDATE accounts SET terms = replace(terms, '5210000000', '9210000000')",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_altered_entry_is_found(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "budget.db"
    with open_ledger(path) as book:
        opened(book, "trips", TOTAL)
        charged(book, "a")
    assert not verified_after(path, edit).ok


FORGERIES: dict[str, tuple[str, dict[str, object]]] = {
    "a smaller event": ("states a cost", {"event": "laplace(1, 20)"}),
    "an event as dear": ("curve of account 'trips' that does", {"event": "exponential(1/10)"}),
    "an unknown event": ("this version does not know", {"event": "magic(1)"}),
    "no event": ("has no event", {"event": "", "curve": ()}),
    "a smaller curve": ("that does not follow from its event", {"curve": ((1,) * 16, (1,) * 16)}),
    "a curve of nobody": ("of spender", {"own_curve": ((1,), (1,))}),
    "a smaller cost": ("states a cost", {"cost": (1, 0), "spent": (1, 0)}),
}


@pytest.mark.parametrize(("fault", "changes"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_charge_is_found_though_its_hash_is_right(
    tmp_path: Path, fault: str, changes: dict[str, object]
) -> None:
    with open_ledger(tmp_path / "budget.db") as book:
        opened(book, "trips", TOTAL)
        charged(book, "a")
        first, charge = book.log()
        account = book.account("trips")
    forged = dataclasses.replace(charge, **changes)
    forged = dataclasses.replace(forged, hash=link_of(forged))
    books = Books(
        [first, forged],
        {"trips": (account.rule, account.total)},
        {},
        2,
        {},
        {"trips": account.terms},
    )
    (noticed, *_) = audited(books).verification.faults
    assert fault in noticed


def test_an_auditor_is_given_terms_states_and_events(tmp_path: Path) -> None:
    lived_in(tmp_path / "budget.db")
    with open_ledger(tmp_path / "budget.db") as book:
        public = json.loads(json.dumps(exported(book)))
    trips, wide = public["accounts"]
    assert trips["terms"]["total"] == [5_210_000_000, 10**12]
    assert trips["state"][:3] == [10**8, 0, 0]
    assert trips["spenders"][0]["state"][:3] == [10**8, 0, 0]
    assert (wide["rule"], wide["state"][2]) == ("approx", 10**11)
    (charge,) = (entry for entry in public["entries"] if entry.get("event") == COUNT)
    added, state = charge["curve"]
    assert added == state == trips["state"]
    assert charge["own_curve"]
    assert charge["data_curve"]
