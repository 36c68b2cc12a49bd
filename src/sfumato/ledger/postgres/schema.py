"""What the two schemas of a ledger hold: their tables and rules, and how to check them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sfumato.ledger.sql_public import Ask


@dataclass(frozen=True)
class SchemaKind:
    """One kind of schema.

    Attributes
    ----------
    mark : str
        The comment that says what the schema is; its version follows.
    version : int
    scripts : tuple of str
        The SQL that makes an empty schema one of this kind.
    noun : str
        What messages call it.
    suffix : str
        What its name adds to the name of the ledger's schema.
    """

    mark: str
    version: int
    scripts: tuple[str, ...]
    noun: str
    suffix: str


BOOK = SchemaKind(
    "sfumato ledger, version", 5, ("book.sql", "charge.sql", "guard.sql"), "the ledger", ""
)
SECRETS = SchemaKind(
    "sfumato secrets, version", 2, ("secrets.sql",), "the secrets of the ledger", "_secrets"
)

LAST = "only_owner.sql"
"""What is run at the end, whatever the kind."""

# One line for each table, column, constraint, index, trigger and function of the schema in use, and
# for each right of a role that no command of this library gives.
OBJECTS = """
    SELECT format('table %s %s rules %s policies %s', c.relname, c.relkind, c.relhasrules,
                  c.relrowsecurity)
    FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind NOT IN ('i', 'S')
    UNION ALL
    SELECT format('column %s.%s %s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                  CASE WHEN a.attnotnull THEN ' not null' ELSE '' END)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
      AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT format('constraint %s %s', r.conrelid::regclass, pg_get_constraintdef(r.oid))
    FROM pg_constraint r
    WHERE r.connamespace = current_schema()::regnamespace AND r.contype IN ('c', 'p', 'f', 'u')
    UNION ALL
    SELECT format('index %s', pg_get_indexdef(i.indexrelid, 0, true))
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisprimary
    UNION ALL
    SELECT format('trigger %s %s', t.tgenabled, pg_get_triggerdef(t.oid, true))
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT format('function %s %s guarded %s owned %s', p.oid::regprocedure, md5(p.prosrc),
                  p.prosecdef AND p.proconfig = ARRAY[format('search_path=%s, %s, pg_temp',
                    quote_ident(current_schema() || '_secrets'), quote_ident(current_schema()))],
                  p.proowner = n.nspowner)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = current_schema()
    UNION ALL
    SELECT format('right to %s %s given to %s', lower(x.privilege_type), of.what,
                  coalesce(r.rolname, 'everybody'))
    FROM (
      SELECT c.relname, c.relowner, c.relacl, 'SELECT'
      FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind <> 'i'
      UNION ALL
      SELECT c.relname, c.relowner, a.attacl, 'SELECT'
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      WHERE c.relnamespace = current_schema()::regnamespace AND a.attacl IS NOT NULL
      UNION ALL
      SELECT p.proname, p.proowner, p.proacl, 'EXECUTE'
      FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
      UNION ALL
      SELECT 'schema', n.nspowner, n.nspacl, 'USAGE'
      FROM pg_namespace n WHERE n.nspname = current_schema()
    ) AS of (what, owner, rights, usual), aclexplode(of.rights) x
    LEFT JOIN pg_roles r ON r.oid = x.grantee
    WHERE x.grantee <> of.owner
      AND (x.privilege_type <> of.usual OR x.grantee = 0 OR x.is_grantable
           OR right(current_schema(), 8) = '_secrets')
"""


@cache
def script(kind: SchemaKind) -> str:
    """The statements that make an empty schema one of a kind."""
    folder = resources.files("sfumato.ledger.postgres")
    names = (*kind.scripts, LAST)
    texts = (folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    return "\n".join(texts)


@cache
def expected_objects(kind: SchemaKind) -> frozenset[str]:
    """The lines of ``OBJECTS`` for a schema that nobody has touched."""
    folder = resources.files("sfumato.ledger.postgres")
    name = kind.scripts[0].replace(".sql", ".objects")
    return frozenset(folder.joinpath(name).read_text(encoding="utf-8").splitlines())


def objects(ask: Ask) -> frozenset[str]:
    """The lines of ``OBJECTS`` for the schema in use."""
    (schema,) = next(iter(ask("SELECT quote_ident(current_schema())", ())))
    found: Iterable[object] = (line for (line,) in ask(OBJECTS, ()))
    return frozenset(str(line).replace(f"{schema}.", "") for line in found)


def differences(ask: Ask, kind: SchemaKind) -> list[str]:
    """Tables, constraints, triggers and functions that are not what this version creates."""
    changed = expected_objects(kind) ^ objects(ask)
    edited = "was dropped, replaced or added to the ledger's tables and rules"
    named = sorted({" ".join(line.split()[:3]) for line in changed})
    return [f"{name!r} {edited}" for name in named]
