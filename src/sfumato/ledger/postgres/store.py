"""The two schemas of a ledger in PostgreSQL as the two parts of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeAlias, TypeVar, cast

from sfumato.errors import LedgerError, UsageError
from sfumato.ledger.entries import Entry
from sfumato.ledger.postgres.addresses import public_address
from sfumato.ledger.postgres.database import Database
from sfumato.ledger.postgres.rows import PostgresAnalystRows, PostgresPublicRows, PostgresSecretRows
from sfumato.ledger.postgres.schema import BOOK, SECRETS
from sfumato.ledger.request import NewCharge
from sfumato.ledger.sql_public import Ask
from sfumato.ledger.store import (
    Caller,
    PublicRows,
    Role,
    SecretRows,
    SecretStore,
    Store,
    StoreError,
)

T = TypeVar("T")
Charged: TypeAlias = tuple[int, str, int, int, str, str, str]
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
CHARGE = """
    SELECT sequence, time, spent_first, spent_second, until, previous, hash
    FROM charge_new(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
ANSWER = "SELECT sequence, hash FROM answer_new(?, ?, ?)"
OPEN_TO = """
    SELECT DISTINCT coalesce(quote_ident(r.rolname), 'PUBLIC') AS who
    FROM pg_namespace n, aclexplode(n.nspacl) x LEFT JOIN pg_roles r ON r.oid = x.grantee
    WHERE n.nspname = ? AND x.grantee <> n.nspowner ORDER BY who
"""


class PostgresStore(Store):
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

    has_calls = True

    def __init__(self, address: str, *, schema: str = "sfumato", create: bool = True) -> None:
        self._address = address
        self._schema = schema
        self.database = Database(address, schema, kind=BOOK, create=create)
        self._who: Caller | None = None

    def __repr__(self) -> str:
        return f"PostgresStore({public_address(self._address)!r})"

    @property
    def label(self) -> str:
        return self.database.label

    def caller(self, stated: str | None) -> Caller:
        """The role that logged in: the server knows it, whatever is stated."""
        who = self._who = self._who or self._logged_in()
        if stated is not None and stated != who.name:
            obstacle = f"you are logged in to the server as {who.name!r}"
            raise UsageError(f"spending as {stated!r}", obstacle, "Leave the spender out")
        return who

    def _logged_in(self) -> Caller:
        found = self.database.reading(lambda ask: list(ask(WHO, (self._schema,))))
        ((name, owns, enters, reads),) = found
        if not reads:
            obstacle = f"{str(name)!r} may not read it"
            remedy = (
                f"Ask its custodian to run `sfumato ledger roles --analyst {name}`, "
                f"to spend from it, or `--auditor {name}`, to read it"
            )
            raise LedgerError(self.label, obstacle, remedy)
        role: Role = "custodian" if owns else "analyst" if enters else "auditor"
        return Caller(str(name), role)

    def reading(self, action: Callable[[PublicRows], T]) -> T:
        return self.database.reading(self._given(action))

    def writing(self, action: Callable[[PublicRows], T]) -> T:
        return self.database.atomic(self._given(action))

    def _given(self, action: Callable[[PublicRows], T]) -> Callable[[Ask], T]:
        """The action, given the rows as this caller may use them."""
        kind = ROWS[self.caller(None).role]
        secrets = f"{self._schema}{SECRETS.suffix}"
        return lambda ask: action(kind(ask, self.database.reached, secrets))

    def charge(self, new: NewCharge) -> Entry | None:
        account = new.account
        key, tag, digest = new.name
        cost = new.cost
        found = self.database.at_once(
            CHARGE,
            (
                account,
                new.given,
                tag,
                list(new.former) or None,
                key,
                digest,
                *cost,
                new.note,
                float(new.lease),
                new.holder,
                new.protects,
                new.data,
                None if new.ceiling is None else list(new.ceiling),
            ),
        )
        if found is None:
            return None
        number, time, first, second, until, previous, linked = cast("Charged", found)
        self.database.reached.known.entry = (number, linked)
        return Entry(
            number,
            account,
            "reserve",
            time,
            key,
            digest,
            cost,
            new.note,
            "",
            (first, second),
            until,
            new.holder,
            previous,
            linked,
        )

    def answer(self, first: Entry, payload: bytes) -> bool:
        found = self.database.at_once(ANSWER, (first.sequence, first.hash, payload))
        if found is not None:
            self.database.reached.known.entry = cast("tuple[int, str]", found)
        return found is not None

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
            store.require_owner_only()
        except BaseException:
            store.close()
            raise
        return store

    def require_private(self) -> None:
        """Nothing to refuse: its secrets are used only while they are open to their owner alone."""

    def close(self) -> None:
        self.database.close()


class PostgresSecretStore(SecretStore):
    """The secrets of a ledger, in a schema that only its owner may read."""

    def __init__(self, address: str, schema: str, *, create: bool) -> None:
        # Secrets are opened when they are needed, by a ledger that has reached the server.
        self.database = Database(address, schema, kind=SECRETS, create=create, was_reached=True)

    @property
    def label(self) -> str:
        return self.database.label

    def reading(self, action: Callable[[SecretRows], T]) -> T:
        return self.database.reading(self._given(action))

    def looking(self, action: Callable[[SecretRows], T]) -> T:
        return self.database.apart(self._given(action))

    def writing(self, action: Callable[[SecretRows], T]) -> T:
        return self.database.atomic(self._given(action))

    def writing_ahead(self, action: Callable[[SecretRows], T]) -> T:
        return self.database.atomic(self._given(action), ahead=True)

    def _given(self, action: Callable[[SecretRows], T]) -> Callable[[Ask], T]:
        return lambda ask: action(PostgresSecretRows(ask, self.database.reached))

    def require_owner_only(self) -> None:
        """Refuse secrets that a role was let into, as files are refused that others may open."""
        name = self.database.schema
        found = self.database.reading(lambda ask: list(ask(OPEN_TO, (name,))))
        if found:
            others = ", ".join(str(who) for (who,) in found)
            obstacle = f"roles other than its owner may open its secrets: {others}"
            remedy = f"Run `REVOKE ALL ON SCHEMA {name} FROM {others}`, then ask again"
            raise LedgerError(self.label, obstacle, remedy)

    def forget(self) -> None:
        """Rewrite the tables without the rows that were wiped.

        The server's own log of changes keeps them until it is recycled.
        """
        with suppress(StoreError):
            self.database.apart(lambda ask: ask("VACUUM (FULL) streams, tallies", ()))

    def close(self) -> None:
        self.database.close()
