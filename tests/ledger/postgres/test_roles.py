"""Custodians, analysts and auditors of a shared ledger, each with a role of their own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from ledger.adding import add_one, open_stream
from ledger.postgres.people import BOUND, People, settle
from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Binding, Book
from sfumato.ledger import journal as bindings
from sfumato.ledger.moving import migrate
from sfumato.ledger.postgres import Person, PostgresStore, give
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.ledger.store import Role
from sfumato.publishing.verifying import verify
from support import postgres
from support.memory_store import MemoryStore


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> People:
    """A ledger that the tests of this module share."""
    return settle(Path(tmp_path_factory.mktemp("people")))


def test_an_analyst_spends_within_the_own_ceiling(people: People) -> None:
    name = people.name("ann")
    with people.book("ann") as book:
        with book.reserve("trips", None, "question", (20, 0), "a note", binding=BOUND) as hold:
            assert hold.store(b"answer") == b"answer"
        assert hold.entry.spender == name
        assert hold.entry.own == (20, 0)
        again = book.reserve("trips", None, "question", (20, 0), "a note", binding=BOUND)
        assert again.stored == b"answer"
        with pytest.raises(BudgetExceeded) as refusal:
            book.reserve("trips", None, "more", (11, 0), "", binding=BOUND)
        assert refusal.value.remaining == (10, 0)
        assert book.verify().ok, book.verify().faults
    with people.book("carl") as book:
        assert book.verify().ok, book.verify().faults
        assert [(each.name, each.spent) for each in book.spenders("trips")] == [
            (name, (20, 0)),
            (people.name("ben"), (0, 0)),
        ]
        replayed = book.reserve("trips", None, "question", (20, 0), "a note", binding=BOUND)
        assert replayed.stored == b"answer"


def test_an_analyst_who_is_no_spender_of_an_account_is_refused(people: People) -> None:
    with people.book("ann") as book:
        for place in (None, "a place"):
            with pytest.raises(UsageError, match="the role that is logged in is no spender of it"):
                book.reserve("visits", None, "question", (1, 0), "", place=place)


def test_an_auditor_reads_and_verifies_and_no_more(people: People) -> None:
    with people.book("eve") as book:
        assert book.verify().ok
        assert book.signer() is None
        with pytest.raises(LedgerError, match="may only read this ledger"):
            book.reserve("trips", None, "question", (1, 0), "")
        with pytest.raises(LedgerError, match="only its custodian"):
            book.open_account("new", "marbles", (1, 0))


def test_a_custodian_who_spends_is_a_spender_and_runs_streams(people: People) -> None:
    name = people.name("carl")
    with people.book("carl") as book:
        book.open_account("counts", "marbles", (100, 0))
        book.add_spender("counts", people.name("ann"), (10, 0))
        with pytest.raises(UsageError, match=r"is none of them\. Name yourself too"):
            open_stream(book, account="counts")
        book.add_spender("counts", name, (10, 0))
        stream = open_stream(book, account="counts")
        assert stream.take("e1", add_one, [b"someone"])[1]
        assert stream.entry.spender == name
        assert book.verify().ok, book.verify().faults
    with people.book("ann") as book:
        before = list(book.log())
        with pytest.raises(LedgerError, match="its state is a secret"):
            open_stream(book, account="counts")
        assert list(book.log()) == before
        assert book.steps(stream.entry.sequence) is None
        assert book.verify().ok


def test_an_anchor_of_an_analyst_notices_an_older_ledger(people: People, tmp_path: Path) -> None:
    anchor = tmp_path / "anchor"
    with Book(people.store("ben"), anchor=anchor) as book:
        with book.reserve("trips", "anchored", "q", (1, 0), "", binding=BOUND) as hold:
            hold.store(b"answer")
        assert book.verify().ok
    last = anchor.read_text(encoding="ascii").split()
    assert last[:2] == ["entry", str(hold.entry.sequence)]
    anchor.write_text(f"entry {hold.entry.sequence + 99} {'0' * 64}\n", encoding="ascii")
    with Book(people.store("ben"), anchor=anchor) as book:
        with pytest.raises(LedgerError, match="an older copy was put back"):
            book.reserve("trips", "next", "q", (1, 0), "")
        assert not book.verify().ok


def test_a_file_with_spenders_moves_to_a_server_where_they_log_in(
    people: People, tmp_path: Path
) -> None:
    name = people.name("ann")
    schema = f"{people.schema}_moved"
    with Book(SQLiteStore(tmp_path / "b.db"), spender=name) as book:
        book.open_account("trips", "marbles", (100, 0))
        book.add_spender("trips", name, (30, 0))
        with book.reserve("trips", None, "q", (10, 0), "", binding=BOUND) as hold:
            hold.store(b"answer")
    target = PostgresStore(people.address("carl"), schema=schema)
    source = SQLiteStore(tmp_path / "b.db")
    migrate(source, target)
    give(target, [Person(name, "analyst")])
    theirs = PostgresStore(people.address("ann"), schema=schema, create=False)
    with Book(theirs) as book:
        assert book.verify(hold.entry).ok
        assert book.reserve("trips", None, "q", (10, 0), "").stored == b"answer"
        assert book.reserve("trips", None, "more", (20, 0), "").entry.own == (30, 0)
        # The ledger moves on: what analysts could do in it ends.
        migrate(target, MemoryStore())
        with pytest.raises(LedgerError, match="moved to another place"):
            book.reserve("trips", None, "late", (0, 0), "")
    target.close()


def test_a_ceiling_of_the_data_set_holds_for_analysts(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for one who leaves the library's own checks out."""
    name = people.name("ben")
    with people.book("carl") as book:
        for account in ("capped 1", "capped 2", "new"):
            book.open_account(account, "marbles", (100, 0))
            book.add_spender(account, name, (100, 0))
        book.cap("capped 1", Binding("one row", "capped", (15, 0)))
    bound = Binding("one row", "capped")
    with people.book("ben") as book:
        book.reserve("capped 1", None, "q", (10, 0), "", binding=bound)
        with pytest.raises(BudgetExceeded, match="ceiling"):
            book.reserve("capped 2", None, "q", (6, 0), "", binding=bound)
        book.reserve("capped 2", None, "q", (1, 0), "", binding=bound)
        monkeypatch.setattr(bindings, "require_under_ceiling", lambda *_: None)
        monkeypatch.setattr(bindings, "require_named", lambda *_: None)
        with pytest.raises(LedgerError, match="own rules refuse"):
            book.reserve("capped 2", None, "r", (5, 0), "")
        with pytest.raises(LedgerError, match="own rules refuse"):
            book.reserve("new", None, "r", (5, 0), "", binding=Binding("one row"))
        with pytest.raises(LedgerError, match="only its custodian"):
            book.cap("trips", Binding("one row", "n", (15, 0)))
        assert book.verify().ok


def test_an_analyst_publishes_as_anybody_does(people: People) -> None:
    """Answers about persons included: of which state of the data they are, the server keeps."""
    with people.book("carl") as book:
        book.open_account("pure", "pure", (10**10, 0))
        book.add_spender("pure", people.name("ann"), (2 * 10**9, 0))
    rows = np.arange(200)
    frame = pa.table({"age": 20.0 + rows % 60, "who": rows % 40})
    domain = sf.Domain(age=sf.Interval(0, 120))
    source = sf.source(frame, domain, person="who", rows_per_person=3, name="ages")
    with sf.Publisher(source, ledger=people.book("ann"), account="pure") as publisher:
        assert publisher.remaining == 2
        persons = publisher.release(sf.Persons(most_rows=8), epsilon="1")
        ages_of = publisher.release(sf.Histogram("age", bins=4), epsilon="0.5")
        assert not publisher.release(
            sf.Histogram("age", bins=4), epsilon="0.5", fresh=True
        ).replayed
        assert publisher.release(sf.Persons(most_rows=8), epsilon="1").replayed
        assert publisher.remaining == 0
        with pytest.raises(BudgetExceeded) as refusal:
            publisher.release(sf.Histogram("age", bins=5), epsilon="0.5")
        assert refusal.value.remaining == 0
    with people.book("carl") as book:
        book.signer(create=True)
        book.add_spender("pure", people.name("carl"), (10**9, 0))
        with sf.Publisher(source, ledger=book, account="pure") as publisher:
            theirs = publisher.release(sf.Histogram("age", bins=6), epsilon="1")
    with sf.Publisher(source, ledger=people.book("ann"), account="pure") as publisher:
        same = publisher.release(sf.Histogram("age", bins=6), epsilon="1")
        renamed = publisher.release(sf.Histogram("age", bins=6, heading="Ages"), epsilon="1")
    assert theirs.receipt.signature == same.receipt.signature != ""
    assert (renamed.values == same.values).all()
    # Her words are not those that were signed, and she has no key.
    assert (renamed.receipt.signer, renamed.receipt.signature) == ("", "")
    with people.book("eve") as book:
        assert verify(theirs, book).ok
        assert verify(persons, book).ok
        assert verify(ages_of, book).ok
        assert book.verify().ok


# --- what the server gives beside -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("power", "said"),
    [
        ("GRANT pg_read_all_data TO {0}", "is a member of pg_read_all_data"),
        ("GRANT pg_write_all_data TO {0}", "is a member of pg_write_all_data"),
        ("GRANT pg_execute_server_program TO {0}", "pg_execute_server_program"),
        ("GRANT postgres TO {0}", "may become a superuser"),
        ("ALTER ROLE {0} REPLICATION", "may copy the whole server"),
    ],
)
@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_a_role_that_reads_the_secrets_in_any_case_is_refused(
    people: People, role: Role, power: str, said: str
) -> None:
    name = f"powerful_{people.schema}"
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN".encode())
        admin.execute(power.format(name).encode())
        with (
            closing(people.store("carl")) as store,
            pytest.raises(UsageError, match=said) as refusal,
        ):
            give(store, [Person(name, role)])
        assert "secrets of the ledger are open to it" in str(refusal.value)
        with closing(people.store("carl")) as store:
            give(store, [Person(name, None)])
        admin.execute(f"DROP ROLE {name}".encode())


def test_default_rights_of_a_database_open_no_ledger(tmp_path: Path) -> None:
    """As where everything new is to be read by a group of people."""
    schema = postgres.schema_of(tmp_path)
    owner, reader = f"owner_{schema}", f"Reader {schema}"
    address = postgres.address().replace("postgres:@", f"{owner}:@")
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        for who in (owner, f'"{reader}"'):
            admin.execute(f"CREATE ROLE {who} LOGIN".encode())
        admin.execute(f"GRANT CREATE ON DATABASE postgres TO {owner}".encode())
        for given in (
            "SELECT, INSERT ON TABLES",
            "USAGE ON SCHEMAS",
            "EXECUTE ON FUNCTIONS",
            "ALL ON SEQUENCES",
        ):
            default = f'ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT {given} TO "{reader}"'
            admin.execute(f"{default}, PUBLIC".encode())
    with Book(PostgresStore(address, schema=schema)) as book:
        book.open_account("trips", "marbles", (100, 0))
        book.reserve("trips", None, "q", (1, 0), "", binding=BOUND)
        assert book.verify().ok, book.verify().faults
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        for name in (schema, f"{schema}_secrets"):
            may = admin.execute("SELECT has_schema_privilege(%s, %s, 'usage')", (reader, name))
            assert may.fetchone() == (False,)


@pytest.mark.parametrize("whom", ["ann", "everybody"])
def test_secrets_that_others_were_let_into_are_not_used(people: People, whom: str) -> None:
    name = "PUBLIC" if whom == "everybody" else people.name(whom)
    secrets = f"{people.schema}_secrets"
    with people.connect("carl") as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA {secrets} TO {name}".encode())
        try:
            with (
                people.book("carl") as book,
                pytest.raises(LedgerError, match=f"may open its secrets: {name}"),
            ):
                book.reserve("visits", None, "q", (1, 0), "")
        finally:
            connection.execute(f"REVOKE ALL ON SCHEMA {secrets} FROM {name}".encode())
    with people.book("carl") as book:
        assert book.verify().ok
