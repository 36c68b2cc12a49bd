"""What `sfumato.ledger.store` promises, held to by every store: rows, transactions, comparisons, and the whole book on top."""

from __future__ import annotations

import dataclasses
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Binding, Book, Entry, Step, Store, journal, process_identity
from sfumato.ledger import secrets as naming
from sfumato.ledger.audit import audit
from sfumato.ledger.chain import fields, link, linked, opened, payload_digest, sealed
from sfumato.ledger.entries import OVER
from sfumato.ledger.memory import MemoryPublicRows, MemorySecretRows, MemorySecretStore, MemoryStore
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.ledger.store import (
    NameRow,
    Part,
    Position,
    PublicRows,
    SecretRows,
    SecretStore,
    StreamRow,
    StreamRows,
)

STORES: dict[str, Callable[[Path], Store]] = {
    "SQLite in a file": lambda folder: SQLiteStore(folder / "book.db"),
    "SQLite in memory": lambda folder: SQLiteStore(None),
    "memory": lambda folder: MemoryStore(),
}
SHARED = ("SQLite in a file",)  # two of these stores may be opened on the same rows


@pytest.fixture(params=STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens a store; opened again, the same rows by another one where that can be, or else the same store."""
    made: list[Store] = []

    def open_store() -> Store:
        if not made or request.param in SHARED:
            made.append(STORES[request.param](tmp_path))
        return made[-1]

    yield open_store
    for store in made:
        store.close()


@pytest.fixture
def store(make: Callable[[], Store]) -> Store:
    """A store with an account of 100 units, a binding, a ceiling, and an answered key."""
    return filled(make())


def filled(store: Store) -> Store:
    def fill(rows: PublicRows) -> None:
        rows.set_identity("a book")
        journal.open_account(rows, "trips", "marbles", (100, 7))
        journal.bind(rows, "trips", "one row", "n")
        journal.cap(rows, "trips", "n", "marbles", (90, 7))
        first = journal.append(rows, reserve("k", (30, 2)))
        journal.store_answer(rows, journal.follow(first, "store"), b"\0answer\xff")
        journal.append(rows, reserve("left", (1, 0)))

    store.writing(fill)
    return store


@pytest.fixture
def secrets(store: Store) -> Iterator[SecretStore]:
    """Its secrets, with names of two questions and a stream of two steps."""
    secrets = filled_secrets(store.secrets(create=True))
    yield secrets
    secrets.close()


def filled_secrets(secrets: SecretStore) -> SecretStore:
    def fill(rows: SecretRows) -> None:
        rows.add_value("identity", b"a book")
        rows.keep("trips", NameRow("k", b"tag", "digest"), derived=True)
        rows.keep("trips", NameRow("given", b"other", "digest 2"), derived=False)
        rows.add_replaced([(1, "old 1"), (2, "old 2")])
        rows.add_stream(BEGUN)
        assert rows.count(5, b"who") == 1
        assert rows.count(5, b"who") == 2
        assert rows.count(5, b"other") == 1
        assert rows.commit_step(5, BEGUN.at.seal, *step_after(BEGUN.at, "a", b"one", tallied=3))

    secrets.writing(fill)
    secrets.writing(lambda rows: move(rows, "", b"two"))
    return secrets


def reserve(key: str, cost: tuple[int, int] = (1, 0)) -> journal.Draft:
    return journal.Draft(
        "trips", "reserve", key, "digest", cost, "note", until="until", holder="holder"
    )


def seal(step: int, state: bytes, tallied: int, head: str) -> str:
    return sealed(
        5, opened(b"spec", b"" if state == OVER else b"secret"), step, state, tallied, head
    )


BEGUN = StreamRow(
    5, b"spec", b"secret", Position(0, b"state 0", 0, "charge", seal(0, b"state 0", 0, "charge"))
)


def step_after(
    at: Position, event: str, output: bytes, state: bytes = b"state", tallied: int | None = None
) -> tuple[Step, Position]:
    """A step, and the position that it leaves behind."""
    number = at.step + 1
    head = linked(at.head, 5, number, event, output)
    counted = 0 if state == OVER else at.tallied if tallied is None else tallied
    return Step(number, event, output, head), Position(
        number, state, counted, head, seal(number, state, counted, head)
    )


def move(rows: StreamRows, event: str, output: bytes, state: bytes = b"state") -> bool:
    at = rows.position(5)
    assert at is not None
    return rows.commit_step(5, at.seal, *step_after(at, event, output, state))


def public(store: Store) -> dict[str, object]:
    """All public rows."""

    def look(rows: PublicRows) -> dict[str, object]:
        return {
            "identity": rows.identity(),
            "entries": list(rows.entries()),
            "accounts": rows.accounts(),
            "totals": dict(rows.totals()),
            "bindings": dict(rows.bindings()),
            "ceilings": dict(rows.ceilings()),
            "answers": sorted(rows.answers()),
            "highest": rows.highest(),
        }

    return store.reading(look)


def secret(store: SecretStore) -> dict[str, object]:
    """All secret rows that a key is known of."""

    def look(rows: SecretRows) -> dict[str, object]:
        return {
            "values": dict(rows.values()),
            "names": [rows.of_key("trips", key) for key in ("k", "given", "new")],
            "replaced": [rows.replaced(number) for number in range(5)],
            "streams": list(rows.streams()),
            "steps": {number: rows.steps(number) for number in rows.stepped()},
            "tallies": dict(rows.tallies()),
        }

    return store.reading(look)


# --- rows ------------------------------------------------------------------------------------------------------------------


def test_public_rows_come_back_as_they_were_written(make, store):
    for one in (store, make()):
        first = one.reading(lambda rows: rows.of_key("trips", "k"))[0]
        found = one.reading(lambda rows: (rows.entry(4), rows.entry(0), rows.entry(99)))
        assert found == (first, None, None)
        assert (first.sequence, first.cost, first.spent, first.until, first.holder) == (
            4,
            (30, 2),
            (30, 2),
            "until",
            "holder",
        )
        assert first.hash == link(*fields(first))
        seen = public(one)
        assert seen["identity"] == "a book"
        assert [entry.kind for entry in seen["entries"]] == [
            "open",
            "bind",
            "cap",
            "reserve",
            "store",
            "reserve",
        ]
        assert seen["totals"] == {"trips": ("marbles", (100, 7))}
        assert seen["bindings"] == {"trips": ("one row", "n")}
        assert seen["ceilings"] == {"n": ("marbles", (90, 7))}
        assert seen["answers"] == [(5, b"\0answer\xff")]
        assert seen["highest"] == 6

        def look(rows: PublicRows) -> tuple[object, ...]:
            kinds = [rows.has("trips", "k", kind) for kind in ("reserve", "store", "hand")]
            return (
                rows.charged(),
                kinds,
                rows.answer(5),
                rows.answer(4),
                rows.account("none"),
                rows.of_key("none", "k"),
            )

        assert one.reading(look) == (True, [True, True, False], b"\0answer\xff", None, None, [])
        account = one.reading(lambda rows: rows.account("trips"))
        assert (account.spent, account.remaining, account.protects, account.data) == (
            (31, 2),
            (69, 5),
            "one row",
            "n",
        )
        tips = one.reading(lambda rows: (rows.tip("trips"), rows.tip("none")))
        assert [tip.sequence for tip in tips] == [6, 6]
        assert [tip.spent for tip in tips] == [(31, 2), (0, 0)]
        assert tips[0].hash == seen["entries"][-1].hash
        assert one.reading(lambda rows: rows.damage(thorough=True)) == []


def test_entries_and_accounts_are_chosen_and_in_order(store):
    def fill(rows: PublicRows) -> None:
        for name in ("b", "a", "c"):
            journal.open_account(rows, name, "marbles", (9, 0))
        journal.bind(rows, "a", "one row", "m")
        journal.append(rows, dataclasses.replace(reserve("x"), account="a"))

    store.writing(fill)

    def numbers(*chosen: Any) -> list[int]:
        return store.reading(lambda rows: [entry.sequence for entry in rows.entries(*chosen)])

    assert numbers() == list(range(1, 12))
    assert numbers(9) == [10, 11]
    assert numbers(0, "a") == [8, 10, 11]
    assert numbers(8, "a", 1) == [10]
    assert numbers(2, None, 3) == [3, 4, 5]
    assert [one.name for one in store.reading(lambda rows: rows.accounts())] == [
        "trips",
        "b",
        "a",
        "c",
    ]
    assert [one.name for one in store.reading(lambda rows: rows.accounts("m"))] == ["a"]
    assert store.reading(lambda rows: rows.accounts("none")) == []


def test_an_empty_store(make):
    store = make()
    assert store.reading(
        lambda rows: (rows.tip("x"), rows.identity(), rows.charged(), rows.highest())
    ) == ((0, "", (0, 0)), None, False, 0)
    assert public(store)["entries"] == []
    assert not store.has_secrets()
    store.secrets(create=True).close()
    assert store.reading(lambda rows: rows.damage(thorough=False)) == []


def test_secret_rows_come_back_as_they_were_written(secrets):
    seen = secret(secrets)
    assert seen["values"] == {"identity": b"a book"}
    assert seen["replaced"] == [None, "old 1", "old 2", None, None]
    assert seen["tallies"] == {5: 3}
    assert list(seen["steps"]) == [5]
    assert [(step.number, step.event, step.output) for step in seen["steps"][5]] == [
        (1, "a", b"one"),
        (2, "", b"two"),
    ]

    def look(rows: SecretRows) -> tuple[object, ...]:
        row = rows.stream(5)
        assert row is not None
        assert row.at == rows.position(5)
        assert [row] == list(rows.streams())
        assert rows.step_of(5, "a") == rows.step(5, 1)
        assert (
            rows.stream(6),
            rows.position(6),
            rows.step(5, 3),
            rows.step_of(5, "b"),
            rows.step_of(5, ""),
        ) == (None,) * 5
        assert [step.number for step in rows.steps(5, 1)] == [2]
        assert rows.any_stream()
        assert rows.damage() == []
        return (row.spec, row.secret, row.at.step, row.at.state, row.at.tallied)

    assert secrets.reading(look) == (b"spec", b"secret", 2, b"state", 3)


def test_names_of_questions_give_way(secrets):
    def found() -> list[NameRow | None]:
        return secrets.reading(
            lambda rows: [rows.of_tag("trips", tag) for tag in (b"tag", b"other", b"new")]
        )

    derived = NameRow("k", b"tag", "digest")
    assert found() == [derived, None, None]  # a key that a user gave is not found by its question
    again = NameRow("k", b"new", "digest 3")
    secrets.writing(lambda rows: rows.keep("trips", again, derived=False))
    assert found() == [None, None, None]
    secrets.writing(lambda rows: rows.keep("trips", NameRow("p", b"new", "digest 4"), derived=True))
    secrets.writing(lambda rows: rows.keep("trips", NameRow("q", b"new", "digest 5"), derived=True))
    assert found() == [None, None, NameRow("q", b"new", "digest 5")]
    assert secrets.reading(lambda rows: (rows.of_key("trips", "p"), rows.of_key("trips", "k"))) == (
        None,
        again,
    )
    assert secrets.reading(lambda rows: rows.of_key("visits", "k")) is None


# --- transactions ----------------------------------------------------------------------------------------------------------


class Stopped(BaseException):
    """As an interrupt, which no store may take for an error of its own."""


class Stopping:
    """Rows that stop at the n-th call, before it is made or after it."""

    def __init__(self, rows: object, calls: int, after: bool) -> None:
        self._rows = rows
        self._left = calls
        self._after = after

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Stopped
            found = getattr(self._rows, name)(*given, **more)
            if self._left == 0:
                raise Stopped
            return found

        return call


def stopped_everywhere(
    part: Part[Any], action: Callable[[Any], object], look: Callable[[], object]
) -> int:
    """Stop a transaction at each of its calls, and see that nothing of it was done; how many calls it has."""
    before = look()
    for calls in itertools.count(1):
        for after in (False, True):
            try:
                part.writing(
                    lambda rows, calls=calls, after=after: action(Stopping(rows, calls, after))
                )
            except Stopped:
                assert look() == before, (calls, after)
            else:
                assert look() != before
                return calls
    raise AssertionError


def test_a_transaction_that_is_stopped_anywhere_does_nothing(store):
    def charge(rows: PublicRows) -> None:
        journal.open_account(rows, "visits", "marbles", (9, 0))
        journal.bind(rows, "visits", "one row", "m")
        journal.cap(rows, "visits", "m", "marbles", (5, 0))
        first = journal.append(rows, reserve("new"))
        journal.store_answer(rows, journal.follow(first, "store"), b"x")
        journal.append(rows, journal.follow(first, "hand"))

    assert stopped_everywhere(store, charge, lambda: public(store)) > 15
    assert store.reading(lambda rows: audit(rows, None)).verification.ok


def test_a_secret_transaction_that_is_stopped_anywhere_does_nothing(secrets):
    def steps(rows: SecretRows) -> None:
        rows.keep("trips", NameRow("new", b"new", "digest"), derived=True)
        rows.keep("trips", NameRow("k", b"newer", "digest"), derived=True)
        rows.add_value("signing key", b"private")
        rows.add_replaced([(3, "old 3"), (4, "old 4")])
        rows.count(5, b"who")
        rows.count(5, b"third")
        at = rows.position(5)
        assert rows.commit_step(5, at.seal, *step_after(at, "c", b"three", tallied=5))
        assert move(rows, "d", b"four", OVER)
        rows.add_stream(BEGUN._replace(number=8))

    assert stopped_everywhere(secrets, steps, lambda: secret(secrets)) > 10


@pytest.mark.parametrize(
    "failure", [ZeroDivisionError, KeyboardInterrupt, GeneratorExit, SystemExit]
)
def test_what_a_transaction_raises_comes_out(store, failure):
    def fail(rows: PublicRows) -> None:
        journal.append(rows, reserve("new"))
        raise failure

    before = public(store)
    for part in (store.writing, store.reading):
        with pytest.raises(failure):
            part(fail if part == store.writing else lambda _: (_ for _ in ()).throw(failure))
    assert public(store) == before


def in_threads(actions: list[Callable[[], object]]) -> None:
    """Run all at once; the first failure comes out."""
    failures: list[BaseException] = []

    def run(action: Callable[[], object]) -> None:
        try:
            action()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_no_update_is_lost(make, store):
    """Each transaction reads what it then continues."""
    stores = [store, make(), make()]

    def work(who: int) -> None:
        for number in range(8):
            stores[who].writing(
                lambda rows, key=f"{who} {number}": journal.append(rows, reserve(key))
            )

    in_threads([lambda who=who: work(who) for who in range(3)])
    assert store.reading(lambda rows: rows.account("trips")).spent == (31 + 24, 2)
    assert store.reading(lambda rows: audit(rows, None)).verification.ok
    assert make().reading(lambda rows: rows.highest()) == 6 + 24


def test_no_step_is_lost(make, store, secrets):
    """Each is computed from the state before it, by `singly` or while nobody else can write."""
    stores = [secrets, make().secrets(create=False), make().secrets(create=False)]

    def take(rows: StreamRows, event: str) -> bool:
        at = rows.position(5)
        assert at is not None
        return rows.commit_step(5, at.seal, *step_after(at, event, event.encode(), b"%d" % at.step))

    def work(who: int) -> None:
        for number in range(8):
            event = f"{who} {number}"
            if not stores[who].singly(lambda rows, event=event: take(rows, event)):
                assert stores[who].writing(lambda rows, event=event: take(rows, event))

    in_threads([lambda who=who: work(who) for who in range(3)])
    steps = secrets.reading(lambda rows: rows.steps(5))
    assert [step.number for step in steps] == list(range(1, 27))
    assert len({step.event for step in steps}) == 2 + 24
    assert [step.hash for step in steps[2:]] == [
        linked(a.hash, 5, b.number, b.event, b.output) for a, b in itertools.pairwise(steps[1:])
    ]
    for other in stores[1:]:
        other.close()


def test_a_view_stays_as_it_is(make, store):
    writer = make()
    began = threading.Event()

    def write() -> None:
        began.set()
        writer.writing(lambda rows: journal.append(rows, reserve("meanwhile")))

    other = threading.Thread(target=write)

    def look(rows: PublicRows) -> tuple[list[Entry], list[Entry]]:
        before = list(rows.entries())
        other.start()
        began.wait()
        if writer is not store:  # else it waits for the end of this view
            other.join()
        return before, list(rows.entries())

    before, after = store.reading(look)
    other.join()
    assert before == after
    assert store.reading(lambda rows: rows.highest()) == len(before) + 1


def test_a_thread_that_is_using_it_may_not_use_it(store, secrets):
    """As a signal handler would. The secrets may be used within a transaction of the public part."""
    before = public(store)
    with pytest.raises(LedgerError, match="in the middle of using it"):
        store.writing(
            lambda rows: (
                journal.append(rows, reserve("new")),
                store.reading(lambda rows: rows.charged()),
            )
        )
    for way in (secrets.reading, secrets.writing, secrets.singly):
        with pytest.raises(LedgerError, match="in the middle of using it"):
            way(lambda rows: secrets.writing(lambda rows: rows.any_stream()))
    assert public(store) == before
    assert store.writing(lambda rows: secrets.writing(lambda rows: rows.count(5, b"within"))) == 1


def test_a_closed_store_says_so(store, secrets):
    for part in (store, secrets):
        part.close()
        part.close()
        with pytest.raises(LedgerError, match="it is closed"):
            part.reading(lambda rows: None)


def test_a_child_process_goes_on_or_is_refused(store, request):
    child = os.fork()
    if child == 0:
        try:
            store.writing(lambda rows: journal.append(rows, reserve("child")))
            os._exit(0)
        except LedgerError:
            os._exit(1)
        finally:
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == (0 if "SQLite in a file" in request.node.name else 1)
    assert store.reading(lambda rows: rows.has("trips", "child", "reserve")) == (code == 0)


# --- comparisons, and what is only ever added ------------------------------------------------------------------------------


def test_an_entry_that_is_not_the_next_is_refused(make, store):
    """Whoever computed it did so from a head that is not the last any more."""
    made: list[Entry] = []

    def compute(rows: PublicRows) -> None:
        made.append(journal.append(rows, reserve("first")))
        raise Stopped

    with pytest.raises(Stopped):
        store.writing(compute)
    make().writing(lambda rows: journal.append(rows, reserve("second")))
    before = public(store)
    with pytest.raises(LedgerError, match="own rules refuse"):
        store.writing(lambda rows: rows.add(made[0]))
    assert public(store) == before


def chained(rows: PublicRows, **changes: Any) -> Entry:
    """The next entry, with changes, and hashed as it should be."""
    tip = rows.tip("trips")
    plain = Entry(
        tip.sequence + 1,
        "trips",
        "reserve",
        "time",
        "new",
        "digest",
        (0, 0),
        "",
        "",
        tip.spent,
        "",
        "",
        tip.hash,
        "",
    )
    entry = dataclasses.replace(plain, **changes)
    return dataclasses.replace(entry, hash=link(*fields(entry)))


BROKEN = {
    "a gap": {"sequence": 8},
    "a number twice": {"sequence": 6},
    "another chain": {"previous": payload_digest(b"")},
    "a balance that does not follow": {"spent": (30, 2)},
    "a cost that the balance has not": {"cost": (1, 0)},
    "over the total": {"cost": (70, 0), "spent": (101, 2)},
    "over the second total": {"cost": (0, 6), "spent": (31, 8)},
    "a negative cost": {"cost": (-1, 0), "spent": (30, 2)},
    "a cost that is no reservation's": {
        "kind": "resume",
        "key": "left",
        "cost": (1, 0),
        "spent": (32, 2),
    },
    "a key that is taken": {"key": "k"},
    "an account opened again": {"kind": "open", "key": ""},
    "what was never reserved": {"kind": "store"},
    "the digest of another question": {"kind": "store", "key": "left", "digest": "other"},
    "nothing to hand out": {"kind": "hand", "key": "left"},
    "an answer twice": {"kind": "store", "key": "k"},
    "an answered key resumed": {"kind": "resume", "key": "k"},
    "an answered key abandoned": {"kind": "abandon", "key": "k"},
    "no account": {"account": "none", "spent": (0, 0)},
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_rules_refuse_what_a_faulty_program_might_add(store, what):
    before = public(store)
    with pytest.raises(LedgerError, match="own rules refuse"):
        store.writing(lambda rows: rows.add(chained(rows, **BROKEN[what])))
    assert public(store) == before
    store.writing(lambda rows: rows.add(chained(rows)))


ONCE: dict[str, Callable[[PublicRows], object]] = {
    "identity": lambda rows: rows.set_identity("another"),
    "account": lambda rows: rows.add_account("trips", "marbles", (1000, 0)),
    "binding": lambda rows: rows.add_binding("trips", "others", ""),
    "a binding of no account": lambda rows: rows.add_binding("none", "others", ""),
    "ceiling": lambda rows: rows.add_ceiling("n", "marbles", (1000, 0)),
    "answer": lambda rows: rows.add_answer(5, b"another"),
    "an answer of no entry": lambda rows: rows.add_answer(99, b"another"),
    "an answer of an entry that stores none": lambda rows: rows.add_answer(4, b"another"),
}


@pytest.mark.parametrize("what", ONCE)
def test_public_rows_are_added_once(store, what):
    before = public(store)
    with pytest.raises(LedgerError, match="own rules refuse") as refusal:
        store.writing(ONCE[what])
    assert "another" not in str(refusal.value)
    assert public(store) == before


ONCE_SECRET: dict[str, Callable[[SecretRows], object]] = {
    "value": lambda rows: rows.add_value("identity", b"another"),
    "replaced": lambda rows: rows.add_replaced([(3, "old 3"), (2, "another")]),
    "stream": lambda rows: rows.add_stream(BEGUN),
    "a stream that has begun": lambda rows: rows.add_stream(
        BEGUN._replace(number=9, at=BEGUN.at._replace(step=1))
    ),
    "a tally of no stream": lambda rows: rows.count(9, b"who"),
}


@pytest.mark.parametrize("what", ONCE_SECRET)
def test_secret_rows_are_added_once(secrets, what):
    before = secret(secrets)
    with pytest.raises(LedgerError, match="own rules refuse"):
        secrets.writing(ONCE_SECRET[what])
    assert secret(secrets) == before


@pytest.mark.parametrize("way", ["singly", "writing"])
def test_a_step_is_taken_only_from_the_state_that_it_was_computed_from(secrets, way):
    run = getattr(secrets, way)
    at = run(lambda rows: rows.position(5))
    step, after = step_after(at, "c", b"three")
    before = secret(secrets)
    wrong = {
        "another seal": (5, BEGUN.at.seal, step, after),
        "another stream": (6, at.seal, step, after),
        "not the next": (5, at.seal, step._replace(number=4), after._replace(step=4)),
        "tallies that shrink": (5, at.seal, step, after._replace(tallied=2)),
        "an event that was taken": (5, at.seal, step._replace(event="a"), after),
    }
    for what, given in wrong.items():
        assert run(lambda rows, given=given: rows.commit_step(*given)) is False, what
        assert secret(secrets) == before, what
    assert run(lambda rows: rows.commit_step(5, at.seal, step, after)) is True
    assert run(lambda rows: rows.commit_step(5, at.seal, step, after)) is False
    assert secrets.reading(lambda rows: rows.position(5)) == after


@pytest.mark.parametrize("way", ["singly", "writing"])
def test_the_last_step_wipes_what_stood_for_persons(secrets, way):
    secrets.writing(lambda rows: (rows.add_stream(BEGUN._replace(number=6)), rows.count(6, b"who")))
    assert getattr(secrets, way)(lambda rows: move(rows, "end", b"three", OVER))
    secrets.forget()
    row = secrets.reading(lambda rows: rows.stream(5))
    assert (row.spec, row.secret, row.at.state, row.at.tallied) == (b"spec", b"", OVER, 0)
    assert secret(secrets)["tallies"] == {6: 1}


# --- the book on top -------------------------------------------------------------------------------------------------------


def live(book: Book) -> list[object]:
    """A charge from reservation to replay, refusals, a charge that is taken over, ceilings, and a stream to its last step."""
    seen: list[object] = [
        book.open_account("a", "pure", (10 * 10**9, 0)),
        book.open_account("b", "pure", (10**9, 0)),
    ]
    for _ in range(2):  # paid for, then replayed
        with book.reserve(
            "a",
            None,
            "question",
            (10**9, 0),
            "a histogram",
            binding=Binding("one row", "n", (6 * 10**9, 0)),
        ) as hold:
            seen += [hold.entry, hold.stored, hold.store(b"answer")]
    refused = {
        "over the total": lambda: book.reserve("b", "k", "q", (2 * 10**9, 0), ""),
        "over the ceiling": lambda: book.reserve(
            "a", "k", "q", (6 * 10**9, 0), "", binding=Binding("one row", "n")
        ),
        "another question": lambda: book.reserve("a", hold.entry.key, "other", (1, 0), ""),
        "another person": lambda: book.reserve(
            "a", "k", "q", (1, 0), "", binding=Binding("one person", "n")
        ),
        "no account": lambda: book.reserve("c", "k", "q", (1, 0), ""),
        "another total": lambda: book.open_account("a", "pure", (1, 0)),
    }
    for what, ask in refused.items():
        with pytest.raises((BudgetExceeded, UsageError)) as refusal:
            ask()
        seen.append(
            (
                what,
                type(refusal.value),
                refusal.value.args[1].replace(book._store.label, "the ledger"),
            )
        )
    with pytest.raises(ZeroDivisionError), book.reserve("b", "left", "q", (10**9, 0), ""):
        raise ZeroDivisionError
    with book.reserve("b", "left", "q", (10**9, 0), "") as again:
        seen += [again.entry, again.store(b"at last")]
    with pytest.raises(BudgetExceeded):
        book.reserve("b", "more", "q", (1, 0), "")
    with (
        book.reserve("b", "free", "q", (0, 0), "") as running,
        pytest.raises(LedgerError, match="another process"),
    ):
        book.reserve("b", "free", "q", (0, 0), "", wait=0)
    seen.append(running.entry)
    seen += [
        stream(book),
        stream(book),
        book.signer(),
        book.signer(create=True),
        book.sign(b"message"),
    ]
    seen += [
        list(book.log()),
        book.accounts(),
        [book.answer(number) for number in range(1, 20)],
        book.verify(),
    ]
    assert book.verify().ok, book.verify().faults
    assert book.verify(hold.entry).ok
    return seen


def stream(book: Book) -> list[object]:
    """Open a stream, or go on with it, and take its next two steps, of four."""

    def work(number: int, state: bytes, counts: list[int]) -> tuple[bytes, bytes]:
        return (OVER if number == 4 else b"%s+%d" % (state, sum(counts))), b"%d" % number

    steps = book.stream(
        "a", "s", "stream", (10**9, 0), "steps", spec=b"spec", state=b"0", secret=b"secret"
    )
    taken = [
        steps.take("", work, [b"who", b"other", b"who"]),
        steps.take(f"e{steps.head()[0]}", work),
    ]
    assert steps.take(taken[1][0].event, work) == (taken[1][0], False)
    return [taken, steps.since(None), steps.head(), steps.spec]


def test_the_life_of_charges(make):
    with Book(make()) as book:
        live(book)
        assert book.account("a").spent == (2 * 10**9, 0)
        assert book.account("b").spent == (10**9, 0)


def test_every_store_keeps_the_same_book(tmp_path, monkeypatch):
    """To the last hash: under one clock and the same random bytes."""
    seen = {}
    for name, make in STORES.items():
        numbers = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(
                naming.secrets,
                "token_hex",
                lambda count, numbers=numbers: f"{next(numbers):0{2 * count}x}",
            )
            patch.setattr(
                naming.secrets,
                "token_bytes",
                lambda count, numbers=numbers: next(numbers).to_bytes(count),
            )
            patch.setattr(PublicRows, "clock", lambda rows: datetime(2026, 1, 1, tzinfo=UTC))
            patch.setattr(process_identity, "current", lambda: "")
            patch.setattr("sfumato.ledger.book.signing.new_key", lambda: bytes(32))
            with Book(make(tmp_path)) as book:
                seen[name] = live(book)
    first, *others = seen.values()
    assert len(first[-4]) > 15
    for other in others:
        assert other == first


def test_books_on_one_store_share_their_charges(make):
    first, second = Book(make()), Book(make())
    first.open_account("a", "pure", (10, 0))
    hold = first.reserve("a", "k", "q", (10, 0), "")
    with pytest.raises(LedgerError, match="another process is answering"):
        second.reserve("a", "k", "q", (10, 0), "", wait=0)
    with pytest.raises(BudgetExceeded):
        second.reserve("a", "other", "q", (1, 0), "")
    hold.store(b"answer")
    assert second.reserve("a", "k", "q", (10, 0), "").stored == b"answer"
    assert second.verify().ok


def test_a_lease_ends_by_the_clock_of_the_store(make, monkeypatch):
    """Machines that share one may have clocks an hour apart."""
    store_time = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(PublicRows, "clock", lambda rows: store_time)
    first, second = Book(make()), Book(make())
    first.open_account("a", "pure", (10, 0))
    first.reserve("a", "k", "q", (10, 0), "", lease=60)
    with pytest.raises(LedgerError, match="another process is answering"):
        second.reserve("a", "k", "q", (10, 0), "", wait=0)
    store_time += timedelta(seconds=60)
    assert second.reserve("a", "k", "q", (10, 0), "", wait=0).stored is None


# --- stores that break one promise -----------------------------------------------------------------------------------------


class Halved(MemoryStore):
    """Leaves what a failed transaction had done."""

    def writing(self, action: Callable[[PublicRows], Any]) -> Any:
        return self.reading(action)


class HalvedSecrets(MemorySecretStore):
    def writing(self, action: Callable[[SecretRows], Any]) -> Any:
        return self.reading(action)


class Careless(MemoryPublicRows):
    """Adds an entry without comparing it with the last."""

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)


class Blind(MemorySecretRows):
    """Takes a step without comparing the seal."""

    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        return super().commit_step(stream, self._streams[stream].at.seal, step, after)


class Keeping(MemorySecretRows):
    """Keeps what the last step should wipe."""

    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        kept = self._tallies.copy()
        moved = super().commit_step(stream, before, step, after)
        self._tallies = kept
        return moved


def with_rows(
    monkeypatch: pytest.MonkeyPatch, rows: type[MemoryPublicRows] | type[MemorySecretRows]
) -> Store:
    """A store in memory whose rows are of another class."""
    name = rows.__mro__[1].__name__
    monkeypatch.setattr(f"sfumato.ledger.memory.{name}", rows)
    return filled(MemoryStore())


def test_half_a_transaction_is_found():
    with pytest.raises(AssertionError):
        test_a_transaction_that_is_stopped_anywhere_does_nothing(filled(Halved()))
    with pytest.raises(AssertionError):
        test_a_secret_transaction_that_is_stopped_anywhere_does_nothing(
            filled_secrets(HalvedSecrets())
        )


def test_an_entry_that_is_not_compared_is_found(monkeypatch):
    store = with_rows(monkeypatch, Careless)
    with pytest.raises(pytest.fail.Exception):
        test_an_entry_that_is_not_the_next_is_refused(lambda: store, store)
    for what in BROKEN:
        with pytest.raises(pytest.fail.Exception):
            test_the_rules_refuse_what_a_faulty_program_might_add(filled(MemoryStore()), what)


def test_a_step_that_is_not_compared_is_found(monkeypatch):
    secrets = filled_secrets(with_rows(monkeypatch, Blind).secrets(create=True))
    with pytest.raises(AssertionError, match="another seal"):
        test_a_step_is_taken_only_from_the_state_that_it_was_computed_from(secrets, "writing")


def test_tallies_that_are_kept_are_found(monkeypatch):
    secrets = filled_secrets(with_rows(monkeypatch, Keeping).secrets(create=True))
    with pytest.raises(AssertionError):
        test_the_last_step_wipes_what_stood_for_persons(secrets, "writing")
