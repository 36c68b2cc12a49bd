"""A server that lacks what a process saw committed on it is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from conformance.stores import filled, reserve
from sfumato.errors import LedgerError
from sfumato.ledger import journal
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.postgres_server import Facts, Reached


def test_facts_stand_if_each_hash_is_found() -> None:
    rows = {(3,): "c", (1, 2): "x", (4, 1): "y"}

    def ask(query: str, values: tuple[object, ...]) -> Iterable[tuple[object, ...]]:
        del query
        return [(rows[values],)] if values in rows else []

    assert Facts().stand(ask)
    assert Facts((3, "c"), {1: (2, "x"), 4: (1, "y")}).stand(ask)
    assert not Facts((3, "d")).stand(ask)
    assert not Facts((4, "c")).stand(ask)
    assert not Facts(None, {1: (2, "x"), 4: (2, "y")}).stand(ask)


def test_only_what_was_committed_is_known() -> None:
    reached = Reached()
    reached.begin()
    reached.written.entry = (1, "a")
    reached.written.steps[7] = (1, "s")
    reached.settle()
    reached.begin()
    reached.written.entry = (2, "undone")
    reached.begin()
    reached.written.steps[8] = (1, "t")
    reached.settle()
    assert reached.known == Facts((1, "a"), {7: (1, "s"), 8: (1, "t")})


def test_a_store_remembers_what_it_wrote_and_refuses_a_server_without_it(
    open_store: Callable[[], PostgresStore],
) -> None:
    store = filled(open_store())
    entry = store.writing(lambda rows: journal.append(rows, reserve("new")))
    assert store.database.reached.known.entry == (entry.sequence, entry.hash)
    store.database._drop()
    assert store.reading(lambda rows: rows.highest()) == entry.sequence
    store.database._drop()
    store.database.reached.known.entry = (entry.sequence + 1, "lost")
    for part in (store.reading, store.writing):
        with pytest.raises(LedgerError, match="it lacks what this process saw in it"):
            part(lambda rows: None)


@pytest.mark.parametrize("later", [0, 10_000])
def test_a_commit_is_known_by_what_it_wrote_and_not_by_its_number(
    open_store: Callable[[], PostgresStore], later: int
) -> None:
    """A server that crashed, or took the place of another, gives a number to somebody else."""
    store = filled(open_store())
    database = store.database
    ((number,),) = database.atomic(lambda ask: list(ask("SELECT pg_current_xact_id()::text", ())))
    named = str(int(str(number)) + later)
    entry = store.writing(lambda rows: journal.append(rows, reserve("new")))
    assert database._was_committed(named)
    database.reached.written.entry = (entry.sequence, "another")
    assert not database._was_committed(named)
    database.reached.begin()
    assert not database._was_committed(named), "what wrote nothing runs again"


def test_a_value_is_a_fact(open_store: Callable[[], PostgresStore]) -> None:
    store = open_store()
    secrets = store.secrets(create=True)
    secrets.writing(lambda rows: rows.add_value("a", b"1"))
    database = secrets.database
    assert database._stands(database._ready())
    database.reached.written.values["a"] = b"2"
    assert not database._stands(database._ready())
    secrets.close()
