"""A ledger on the tests' server with a custodian, two analysts, an auditor and a stranger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg

from sfumato.ledger import Binding, Book
from sfumato.ledger.postgres import Person, PostgresStore, give
from support import postgres

BOUND = Binding("one row", "n")
NAMES = ("carl", "ann", "ben", "eve", "stranger")


@dataclass(frozen=True)
class People:
    """A ledger's schema, and how each person reaches it; ann may spend 30 of 100, ben 50."""

    schema: str

    def name(self, who: str) -> str:
        """The database role of a person; the server is shared by tests."""
        return f"{who}_{self.schema}"

    def address(self, who: str) -> str:
        return postgres.address().replace("postgres:@", f"{self.name(who)}:@")

    def store(self, who: str) -> PostgresStore:
        return PostgresStore(self.address(who), schema=self.schema, create=False)

    def book(self, who: str) -> Book:
        return Book(self.store(who))

    def connect(self, who: str) -> psycopg.Connection[tuple[object, ...]]:
        """A connection of a person's own, such as psql makes."""
        return psycopg.connect(self.address(who), autocommit=True)


def settle(folder: Path) -> People:
    """Make roles and a ledger as an administrator and a custodian would."""
    people = People(postgres.schema_of(folder))
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        for who in NAMES:
            admin.execute(f"CREATE ROLE {people.name(who)} LOGIN")
        admin.execute(f"GRANT CREATE ON DATABASE postgres TO {people.name('carl')}")
    store = PostgresStore(people.address("carl"), schema=people.schema)
    with Book(store) as book:
        book.open_account("trips", "marbles", (100, 0))
        book.add_spender("trips", people.name("ann"), (30, 0))
        book.add_spender("trips", people.name("ben"), (50, 0))
        book.open_account("visits", "marbles", (100, 0))
        give(
            store,
            [
                Person(people.name("ann"), "analyst"),
                Person(people.name("ben"), "analyst"),
                Person(people.name("eve"), "auditor"),
            ],
        )
    return people
