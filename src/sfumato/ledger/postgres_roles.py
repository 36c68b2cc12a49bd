"""Who may do what with a ledger on a server, as the rights of database roles.

A custodian is a member of the role that owns the ledger. An analyst may read the public part, and
may call the functions of ``guard.sql``, which let nobody pass a ceiling. An auditor may read the
public part. Nobody but custodians may read the secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sfumato.errors import UsageError
from sfumato.ledger import refusals
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.postgres_server import identifier
from sfumato.ledger.sql import Ask
from sfumato.ledger.store import Role

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
    if _is_member(ask, owner, person) and person.role != "custodian":
        statements = [f"REVOKE {identifier(owner)} FROM {who}"]
    else:
        statements = []
    if person.role == "custodian":
        return [f"GRANT {identifier(owner)} TO {who}"]
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
