"""A ledger in PostgreSQL: its rows, and its two schemas as the two parts of a store.

The tables are in ``book.sql`` and ``secrets.sql``.

*Who may do what with it*, as the rights of database roles. A custodian is a member of the role that
owns the ledger. An analyst may read the public part, and may call the functions of ``guard.sql``,
which let nobody pass a ceiling. An auditor may read the public part. Nobody but custodians may read
the secrets.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, cast

from sfumato.errors import LedgerError, UsageError
from sfumato.ledger import refusals
from sfumato.ledger.entries import Entry, MaybeCurve, Step, binding
from sfumato.ledger.postgres_server import (
    BOOK,
    NO_SPENDER,
    SECRETS,
    Database,
    Reached,
    Statements,
    differences,
    identifier,
    noted,
    public_address,
)
from sfumato.ledger.sql import Ask, Row, SQLNameRows, SQLPublicRows, SQLRows, SQLSecretRows
from sfumato.ledger.store import (
    Caller,
    Guard,
    Named,
    NameRows,
    Position,
    PublicRows,
    R,
    Request,
    Role,
    SecretRows,
    SecretStore,
    Store,
    StoreError,
    StorePart,
    T,
    Verdict,
)

# --- rows -----------------------------------------------------------------------------------------

# A word that needs no quotes, and holds no mark of a value.
PLAIN = re.compile("[a-z_][a-z0-9_]*")

IS_OF_STATE = "SELECT is_of_state(?, ?, ?)"


class PostgresNameRows(SQLNameRows):
    """The names of questions within one transaction."""

    wipe: ClassVar[str] = "CALL {}wipe_seed(?, ?)"


class PostgresPublicRows(SQLPublicRows):
    """The public rows within one transaction."""

    place: ClassVar[str] = "place"
    with_spenders = True
    with_curves = True

    def __init__(self, ask: Ask, reached: Reached, secrets: str = "") -> None:
        super().__init__(ask)
        self._reached = reached
        self._secrets = secrets

    @staticmethod
    def stored(curve: MaybeCurve) -> list[list[int]]:
        return [list(state) for state in curve]

    def extend(self) -> None:
        """Every schema of this version holds curves."""

    def name_rows(self) -> NameRows | None:
        if not PLAIN.fullmatch(self._secrets):
            return None
        names = PostgresNameRows(self._ask)
        names.schema = f"{self._secrets}."
        return names

    def foresee(self, look: Callable[[PublicRows], object]) -> None:
        if isinstance(self._ask, Statements):
            statements: list[tuple[str, tuple[object, ...]]] = []
            look(type(self)(noted(statements), self._reached, self._secrets))
            self._ask.foresee(statements)

    def add(self, entry: Entry) -> None:
        super().add(entry)
        self._note(entry)

    def _note(self, entry: Entry) -> None:
        self._reached.written.entry = (entry.sequence, entry.hash)

    def clock(self) -> datetime:
        """The server's time: the clocks of several machines may differ."""
        now = self._reached.now
        if now is None:
            row = self._one("SELECT clock_timestamp()")
            assert row is not None
            now = cast("datetime", row[0])
        return now.astimezone(UTC)

    def highest(self) -> int:
        row = self._one("SELECT sequence FROM reached")
        return 0 if row is None else cast("int", row[0])

    def damage(self, *, thorough: bool) -> list[str]:
        del thorough  # the server looks after its own files
        return differences(self._ask, BOOK)


class PostgresAnalystRows(PostgresPublicRows):
    """The public rows for a role that does not own them: what it adds goes through the guard."""

    def name_rows(self) -> NameRows | None:
        return None

    def guard(self) -> Guard:
        return PostgresGuard(self._ask)

    def add(self, entry: Entry) -> None:
        self._enter(entry, None)

    def add_bound(self, entry: Entry, protects: str, data: str) -> None:
        # The server reads what is bound off the entry, so that one is never there alone.
        assert entry.note == binding(protects, data)
        self._enter(entry, None)

    def add_answered(self, entry: Entry, payload: bytes) -> None:
        self._enter(entry, payload)

    def _enter(self, entry: Entry, payload: bytes | None) -> None:
        values = self.columns(entry)
        marks = ", ".join("?" * len(values))
        self._ask(f"SELECT enter(ROW({marks})::entries, ?)", (*values, payload))
        self._note(entry)


class PostgresGuard(SQLRows, Guard):
    """Calls the functions of ``guard.sql``, which alone may look at the secrets."""

    def name(self, request: Request, fresh: tuple[str, str]) -> Named:
        values = (request.key, list(request.words), *fresh, request.place, request.fresh)
        (row,) = self._of_spender(
            "SELECT verdict, name_key, name_digest FROM name_question(?, ?, ?, ?, ?, ?, ?)",
            request.account,
            *values,
        )
        return Named(*cast("tuple[Verdict, str, str]", row))

    def keys(self, request: Request) -> list[str]:
        names = (request.account, list(request.words), request.place)
        return [str(key) for (key,) in self._of_spender("SELECT names_of(?, ?, ?)", *names)]

    def _of_spender(self, query: str, account: str, *values: object) -> list[Row]:
        """What a function of the guard gives the spenders of an account; others are refused."""
        import psycopg

        try:
            return list(self._ask(query, (account, *values)))
        except psycopg.Error as error:
            if error.sqlstate != NO_SPENDER:
                raise
            raise UsageError(
                f"charging account {account!r}",
                "the role that is logged in is no spender of it",
                refusals.TO_BE_NAMED,
            ) from None

    def seed(self, charge: int, proposed: bytes) -> bytes | None:
        row = self._one("SELECT seed_of(?, ?)", charge, proposed)
        return None if row is None else cast("bytes | None", row[0])

    def note_state(self, charge: int, state: str) -> None:
        self._one(IS_OF_STATE, charge, state, True)

    def is_of_state(self, charge: int, state: str) -> bool:
        row = self._one(IS_OF_STATE, charge, state, False)
        return row is not None and bool(row[0])


class PostgresSecretRows(PostgresNameRows, SQLSecretRows):
    """The secret rows within one transaction."""

    def __init__(self, ask: Ask, reached: Reached) -> None:
        super().__init__(ask)
        self._reached = reached

    def add_value(self, name: str, value: bytes) -> None:
        super().add_value(name, value)
        self._reached.written.values[name] = value

    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        import psycopg

        published = (step.number, step.event, step.output, step.hash)
        values = (stream, before, *published, after.state, after.tallied, after.seal)
        # What a refused step did is undone, and the transaction goes on.
        self._ask("SAVEPOINT step", ())
        try:
            self._ask("SELECT take_step(?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        except psycopg.IntegrityError:
            self._ask("ROLLBACK TO SAVEPOINT step", ())
            return False
        self._ask("RELEASE SAVEPOINT step", ())
        self._reached.written.steps[stream] = (step.number, step.hash)
        return True

    def damage(self) -> list[str]:
        return differences(self._ask, SECRETS)


# --- the store ------------------------------------------------------------------------------------

ROWS: Mapping[Role, type[PostgresPublicRows]] = {
    "custodian": PostgresPublicRows,
    "analyst": PostgresAnalystRows,
    "auditor": PostgresPublicRows,
}
WHO = """
    SELECT session_user::text, pg_has_role(current_user, n.nspowner, 'usage'),
           bool_or(has_function_privilege(p.oid, 'execute')), has_schema_privilege(n.oid, 'usage')
    FROM pg_namespace n LEFT JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = 'enter'
    WHERE n.nspname = ? GROUP BY n.oid, n.nspowner
"""
OPEN_TO = """
    SELECT DISTINCT coalesce(quote_ident(r.rolname), 'PUBLIC') AS who
    FROM pg_namespace n, aclexplode(n.nspacl) x LEFT JOIN pg_roles r ON r.oid = x.grantee
    WHERE n.nspname = ? AND x.grantee <> n.nspowner ORDER BY who
"""


class PostgresPart(StorePart[R]):
    """One part of a ledger, in a schema of its own."""

    database: Database

    @abstractmethod
    def _given(self, action: Callable[[R], T]) -> Callable[[Ask], T]:
        """The action, given the rows as this caller may use them."""

    @property
    def label(self) -> str:
        return self.database.label

    def reading(self, action: Callable[[R], T]) -> T:
        return self.database.reading(self._given(action))

    def writing(self, action: Callable[[R], T]) -> T:
        return self.database.atomic(self._given(action))

    def close(self) -> None:
        self.database.close()


class PostgresStore(PostgresPart[PublicRows], Store):
    """A ledger in a PostgreSQL database, which many machines share.

    Parameters
    ----------
    address : str
        A URL such as ``"postgresql://user@host/database"``. A password in it is never shown.
    schema : str
        The schema of the public rows. Secret rows are in a second one, whose name adds
        ``_secrets``; only its owner may read it.
    create : bool
        Whether missing schemas are made.
    """

    def __init__(self, address: str, *, schema: str = "sfumato", create: bool = True) -> None:
        self._address = address
        self._schema = schema
        self.in_one = PLAIN.fullmatch(schema) is not None
        self.database = Database(address, schema, kind=BOOK, create=create)
        self._who: Caller | None = None
        # Its functions use tables of the secrets that those have since the same version.
        if self.database.was_older and self.has_secrets():
            PostgresSecretStore(address, schema, create=False).close()

    def __repr__(self) -> str:
        return f"PostgresStore({public_address(self._address)!r})"

    def caller(self, stated: str | None) -> Caller:
        """The role that logged in: the server knows it, whatever is stated."""
        if self._who is None:
            rows = self.database.reading(lambda ask: list(ask(WHO, (self._schema,))))
            ((name, owns, enters, reads),) = rows
            if not reads:
                raise LedgerError(
                    self.label,
                    f"{str(name)!r} may not read it",
                    f"Ask its custodian to run `sfumato ledger roles --analyst {name}`, "
                    f"to spend from it, or `--auditor {name}`, to read it",
                )
            role: Role = "custodian" if owns else "analyst" if enters else "auditor"
            self._who = Caller(str(name), role)
        who = self._who
        if stated is not None and stated != who.name:
            raise UsageError(
                f"spending as {stated!r}",
                f"you are logged in to the server as {who.name!r}",
                "Leave the spender out",
            )
        return who

    def _given(self, action: Callable[[PublicRows], T]) -> Callable[[Ask], T]:
        kind = ROWS[self.caller(None).role]
        secrets = f"{self._schema}{SECRETS.suffix}"
        return lambda ask: action(kind(ask, self.database.reached, secrets))

    def has_secrets(self) -> bool:
        return self.database.exists(SECRETS.suffix)

    def secrets(self, *, create: bool) -> SecretStore:
        if not create and not self.has_secrets():
            raise LedgerError(
                self.label,
                f"its secrets are missing: this user sees no schema "
                f"{self._schema + SECRETS.suffix!r}",
                "Use the role that made it, or restore it from the same backup; without it, only "
                "verify the ledger",
            )
        store = PostgresSecretStore(self._address, self._schema, create=create)
        try:
            # What is read here once is no secret any more, so it is not used.
            name = store.database.schema
            openers = store.database.reading(lambda ask: list(ask(OPEN_TO, (name,))))
            if openers:
                others = ", ".join(str(who) for (who,) in openers)
                raise LedgerError(
                    store.label,
                    f"roles other than its owner may open its secrets: {others}",
                    f"Run `REVOKE ALL ON SCHEMA {name} FROM {others}`, then ask again",
                )
        except BaseException:
            store.close()
            raise
        return store

    def require_private(self) -> None:
        """Nothing to refuse: its secrets are used only while they are open to their owner alone."""


class PostgresSecretStore(PostgresPart[SecretRows], SecretStore):
    """The secrets of a ledger, in a schema that only its owner may read."""

    def __init__(self, address: str, schema: str, *, create: bool) -> None:
        # Secrets are opened when they are needed, by a ledger that has reached the server.
        self.database = Database(address, schema, kind=SECRETS, create=create, was_reached=True)

    def _given(self, action: Callable[[SecretRows], T]) -> Callable[[Ask], T]:
        return lambda ask: action(PostgresSecretRows(ask, self.database.reached))

    def forget(self) -> None:
        """Rewrite the tables without the rows that were wiped.

        The server's own log of changes keeps them until it is recycled.
        """
        with suppress(StoreError):
            self.database.apart(lambda ask: ask("VACUUM (FULL) streams, tallies", ()))


# --- roles ----------------------------------------------------------------------------------------

# The functions that analysts may call.
GUARD = (
    "{book}.take_turn()",
    "{book}.name_question(text, text, text[], text, text, text, boolean)",
    "{book}.names_of(text, text[], text)",
    "{book}.seed_of(bigint, bytea)",
    "{book}.is_of_state(bigint, text, boolean)",
    "{book}.enter({book}.entries, bytea)",
)

OWNER = "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = ?"
PEOPLE = """
    SELECT r.rolname::text, pg_has_role(r.oid, n.nspowner, 'usage'),
           bool_or(has_function_privilege(r.oid, p.oid, 'execute'))
    FROM pg_roles r, pg_namespace n JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = 'enter'
    WHERE n.nspname = current_schema() AND r.rolcanlogin AND NOT r.rolsuper
      AND has_schema_privilege(r.oid, n.oid, 'usage')
    GROUP BY r.oid, r.rolname, n.nspowner ORDER BY r.rolname
"""
FACTS = "SELECT rolsuper, pg_has_role(rolname, ?, 'member') FROM pg_roles WHERE rolname = ?"

# What lets a role that is no superuser read or write beside all rights.
POWERS = """
    SELECT DISTINCT power FROM pg_roles r, pg_roles g, LATERAL (VALUES
      (g.rolsuper AND r.oid <> g.oid, 'may become a superuser of the server'),
      (g.rolreplication, 'may copy the whole server (REPLICATION)'),
      (r.oid = g.oid AND r.rolcreaterole AND current_setting('server_version_num')::int < 160000,
       'may give itself other roles (CREATEROLE)'),
      (g.rolname IN ('pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files',
                     'pg_write_server_files', 'pg_execute_server_program'),
       'is a member of ' || g.rolname)
    ) AS found(has, power)
    WHERE r.rolname = ? AND has AND pg_has_role(r.oid, g.oid, 'member') ORDER BY power
"""


@dataclass(frozen=True)
class Person:
    """What a database role may do with a ledger.

    Attributes
    ----------
    name : str
        The role with which the person logs in.
    role : str or None
        ``"custodian"``, ``"analyst"``, ``"auditor"``; None: nothing.
    """

    name: str
    role: Role | None


def give(store: PostgresStore, persons: Sequence[Person]) -> list[str]:
    """Give people exactly the rights of their roles. To give them twice is harmless.

    Returns
    -------
    list of str
        The statements that were run.

    Raises
    ------
    UsageError
        If the server has no such role, or one that has all rights in any case. Nothing is given.
    LedgerError
        If the caller may not give them.
    """
    caller = store.caller(None)
    if not caller.is_custodian:
        raise refusals.custodians_only(
            "giving roles", caller, "Ask the custodian to run `sfumato ledger roles`"
        )
    statements = grants(store, persons)
    store.database.run(statements)
    return statements


def people(store: PostgresStore) -> list[Person]:
    """Who may log in and do something with a ledger, by name; superusers are not among them."""
    rows = store.database.reading(lambda ask: list(ask(PEOPLE, ())))
    roles: list[tuple[str, bool, bool]] = cast("list[tuple[str, bool, bool]]", rows)
    return [
        Person(name, "custodian" if owns else "analyst" if enters else "auditor")
        for name, owns, enters in roles
    ]


def grants(store: PostgresStore, persons: Sequence[Person]) -> list[str]:
    """The statements that `give` runs; parameters and errors are the same."""
    named: dict[str, Person] = {}
    for person in persons:
        if named.setdefault(person.name, person) != person:
            raise UsageError(
                f"rights for {person.name!r}", "two roles are named for it", "Name each person once"
            )

    def look(ask: Ask) -> list[str]:
        schema = store.database.schema
        ((owner,),) = ask(OWNER, (schema,))
        return [
            statement
            for person in persons
            for statement in _grants(ask, schema, str(owner), person)
        ]

    return store.database.reading(look)


def _grants(ask: Ask, schema: str, owner: str, person: Person) -> list[str]:
    book = identifier(schema)
    who = identifier(person.name)
    is_member = _is_member(ask, owner, person)
    if person.role == "custodian":
        return [f"GRANT {identifier(owner)} TO {who}"]
    statements = [f"REVOKE {identifier(owner)} FROM {who}"] if is_member else []
    guard = ", ".join(template.format(book=book) for template in GUARD)
    statements += [
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {book} FROM {who}",
        f"REVOKE ALL ON FUNCTION {guard} FROM {who}",
        f"REVOKE ALL ON SCHEMA {book} FROM {who}",
    ]
    if person.role is not None:
        statements.append(f"GRANT USAGE ON SCHEMA {book} TO {who}")
        statements.append(f"GRANT SELECT ON ALL TABLES IN SCHEMA {book} TO {who}")
    if person.role == "analyst":
        statements.append(f"GRANT EXECUTE ON FUNCTION {guard} TO {who}")
    return statements


def _is_member(ask: Ask, owner: str, person: Person) -> bool:
    """Whether a role is one of the custodians; refuse a name that is no role, or one with power."""
    facts = list(ask(FACTS, (owner, person.name)))
    if not facts:
        raise UsageError(
            f"rights for {person.name!r}",
            "the server has no such role",
            f"Create it first, as its administrator: CREATE ROLE {identifier(person.name)} LOGIN",
        )
    is_superuser, is_member = cast("tuple[bool, bool]", facts[0])
    if (is_superuser or person.name == owner) and person.role != "custodian":
        power = "owns the ledger" if person.name == owner else "is a superuser of the server"
        raise UsageError(
            f"rights for {person.name!r}",
            f"this role {power}, and may do everything",
            "Give each person a role of their own",
        )
    if person.role not in ("analyst", "auditor"):
        return is_member
    # What lets a role read the secrets or change the ledger whatever it is given.
    powers = [str(power) for (power,) in ask(POWERS, (person.name,))]
    if powers:
        raise UsageError(
            f"rights for {person.name!r}",
            f"this role {' and '.join(powers)}, so the secrets of the ledger are open to it",
            "Take that from the role, or give the person another one for the ledger",
        )
    return is_member
