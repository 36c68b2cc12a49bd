"""Every store gives back its rows, compares before it writes, and adds rows only once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from conformance.stores import (
    BEGUN,
    filled,
    filled_secrets,
    public_rows,
    reserve,
    secret_rows,
    step_after,
    take_step,
)
from sfumato.errors import LedgerError
from sfumato.ledger import Entry, Spender, Step, Store, journal
from sfumato.ledger.entries import OVER, link_of, payload_digest
from sfumato.ledger.store import NameRow, Position, PublicRows, SecretRows, StorePart
from support.memory_store import MemoryPublicRows, MemorySecretRows, MemoryStore

R = TypeVar("R")


class Stopped(BaseException):
    """A failure that no store may take for an error of its own."""


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
        assert first.hash == link_of(first)
        seen = public_rows(one)
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
    assert public_rows(store)["entries"] == []
    assert not store.has_secrets()
    store.secrets(create=True).close()
    assert store.reading(lambda rows: rows.damage(thorough=False)) == []


def test_secret_rows_come_back_as_they_were_written(secrets):
    seen = secret_rows(secrets)
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
    # The key stood for the question of q, whose own name stays.
    newer = NameRow("k", b"other", "digest 6")
    secrets.writing(lambda rows: rows.keep("trips", newer, derived=False))
    assert found() == [None, None, NameRow("q", b"new", "digest 5")]
    assert secrets.reading(lambda rows: rows.of_key("trips", "k")) == newer


def test_an_entry_that_is_not_the_next_is_refused(make, store):
    """Whoever computed it did so from a head that is not the last any more."""
    made: list[Entry] = []

    def compute(rows: PublicRows) -> None:
        made.append(journal.append(rows, reserve("first")))
        raise Stopped

    with pytest.raises(Stopped):
        store.writing(compute)
    make().writing(lambda rows: journal.append(rows, reserve("second")))
    before = public_rows(store)
    with pytest.raises(LedgerError, match="own rules refuse"):
        store.writing(lambda rows: rows.add(made[0]))
    assert public_rows(store) == before


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
    return dataclasses.replace(entry, hash=link_of(entry))


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
    "a sum of nobody": {"own": (1, 0)},
    "a spender who was never named": {"spender": "ann", "own": (0, 0)},
}
LIMITED: dict[str, dict[str, Any]] = {
    "nobody's": {"spender": "", "own": (0, 0)},
    "somebody's": {"spender": "eve", "own": (0, 0)},
    "over the ceiling": {"cost": (9, 0), "spent": (42, 2), "own": (11, 0)},
    "over the second ceiling": {"cost": (0, 2), "spent": (33, 4), "own": (2, 2)},
    "a sum that does not follow": {"own": (1, 0)},
    "a cost that the sum has not": {"cost": (1, 0), "spent": (34, 2)},
    "an answer of a spender": {"kind": "store", "key": "left"},
}


def is_refused(part: StorePart[R], write: Callable[[R], object]) -> bool:
    """Whether a store refuses to write this, in words that quote none of it."""
    try:
        part.writing(write)
    except LedgerError as error:
        return "own rules refuse" in str(error) and "another" not in str(error)
    return False


def adds(changes: dict[str, Any]) -> Callable[[PublicRows], object]:
    """Adds the next entry, with changes."""
    return lambda rows: rows.add(chained(rows, **changes))


def test_the_rules_refuse_what_a_faulty_program_might_add(store):
    before = public_rows(store)
    for what, changes in BROKEN.items():
        assert is_refused(store, adds(changes)), what
        assert public_rows(store) == before, what
    assert not is_refused(store, adds({}))


def test_the_rules_keep_spenders_to_their_ceilings(store):
    """A charge of 2 was entered for ann, and her ceiling was raised from (5, 1) to (10, 1)."""

    def limit(rows: PublicRows) -> None:
        ann = Spender("trips", "ann", "marbles", (5, 1), (0, 0))
        journal.cap_spender(rows, ann)
        journal.append(
            rows, dataclasses.replace(reserve("hers", (2, 0)), spender="ann", own=(2, 0))
        )
        journal.cap_spender(rows, Spender("trips", "ben", "marbles", (0, 0), (0, 0)))
        journal.cap_spender(rows, Spender("trips", "ann", "marbles", (10, 1), (2, 0)))

    right = {"spender": "ann", "own": (2, 0)}
    store.writing(limit)
    seen = store.reading(lambda rows: (rows.spenders("trips"), rows.spender("trips", "eve")))
    assert seen == (
        [
            Spender("trips", "ann", "marbles", (10, 1), (2, 0)),
            Spender("trips", "ben", "marbles", (0, 0), (0, 0)),
        ],
        None,
    )
    before = public_rows(store)
    for what, changes in LIMITED.items():
        assert is_refused(store, adds(right | changes)), what
        assert public_rows(store) == before, what
    assert not is_refused(store, adds(right))
    for account, has in (("trips", True), ("none", False)):
        assert store.reading(lambda rows, name=account: rows.has_spenders(name)) == has


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


def test_public_rows_are_added_once(store):
    before = public_rows(store)
    for what, write in ONCE.items():
        assert is_refused(store, write), what
        assert public_rows(store) == before, what


ONCE_SECRET: dict[str, Callable[[SecretRows], object]] = {
    "value": lambda rows: rows.add_value("identity", b"another"),
    "replaced": lambda rows: rows.add_replaced([(3, "old 3"), (2, "another")]),
    "stream": lambda rows: rows.add_stream(BEGUN),
    "a stream that has begun": lambda rows: rows.add_stream(
        BEGUN._replace(number=9, at=BEGUN.at._replace(step=1))
    ),
    "a tally of no stream": lambda rows: rows.count(9, b"who"),
}


def test_secret_rows_are_added_once(secrets):
    before = secret_rows(secrets)
    for what, write in ONCE_SECRET.items():
        assert is_refused(secrets, write), what
        assert secret_rows(secrets) == before, what


def test_a_step_is_taken_only_from_the_state_that_it_was_computed_from(secrets):
    run = secrets.writing
    at = run(lambda rows: rows.position(5))
    step, after = step_after(at, "c", b"three")
    before = secret_rows(secrets)
    wrong = {
        "another seal": (5, BEGUN.at.seal, step, after),
        "another stream": (6, at.seal, step, after),
        "not the next": (5, at.seal, step._replace(number=4), after._replace(step=4)),
        "tallies that shrink": (5, at.seal, step, after._replace(tallied=2)),
        "an event that was taken": (5, at.seal, step._replace(event="a"), after),
    }
    for what, given in wrong.items():
        assert run(lambda rows, given=given: rows.commit_step(*given)) is False, what
        assert secret_rows(secrets) == before, what
    assert run(lambda rows: rows.commit_step(5, at.seal, step, after)) is True
    assert run(lambda rows: rows.commit_step(5, at.seal, step, after)) is False
    assert secrets.reading(lambda rows: rows.position(5)) == after


def test_the_last_step_wipes_what_stood_for_persons(secrets):
    secrets.writing(lambda rows: (rows.add_stream(BEGUN._replace(number=6)), rows.count(6, b"who")))
    assert secrets.writing(lambda rows: take_step(rows, "end", b"three", OVER))
    secrets.forget()
    row = secrets.reading(lambda rows: rows.stream(5))
    assert (row.spec, row.secret, row.at.state, row.at.tallied) == (b"spec", b"", OVER, 0)
    assert secret_rows(secrets)["tallies"] == {6: 1}


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
    monkeypatch.setattr(f"support.memory_store.{name}", rows)
    return filled(MemoryStore())


def test_an_entry_that_is_not_compared_is_found(monkeypatch):
    store = with_rows(monkeypatch, Careless)
    with pytest.raises(pytest.fail.Exception):
        test_an_entry_that_is_not_the_next_is_refused(lambda: store, store)
    with pytest.raises(AssertionError, match="a gap"):
        test_the_rules_refuse_what_a_faulty_program_might_add(filled(MemoryStore()))
    for what, changes in BROKEN.items():
        assert not is_refused(filled(MemoryStore()), adds(changes)), what


def test_a_step_that_is_not_compared_is_found(monkeypatch):
    secrets = filled_secrets(with_rows(monkeypatch, Blind).secrets(create=True))
    with pytest.raises(AssertionError, match="another seal"):
        test_a_step_is_taken_only_from_the_state_that_it_was_computed_from(secrets)


def test_tallies_that_are_kept_are_found(monkeypatch):
    secrets = filled_secrets(with_rows(monkeypatch, Keeping).secrets(create=True))
    with pytest.raises(AssertionError):
        test_the_last_step_wipes_what_stood_for_persons(secrets)
