"""Addresses of databases as people write them, which may hold a password.

What is shown of an address is what is known to be harmless: the server, its port and the database.
User, password and parameters are never shown.
"""

from __future__ import annotations

import re

from sfumato.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # a single letter is a drive of Windows
_CREDENTIALS = re.compile(r":[^/\\]*@|pass(word|wd)?\s*=|pwd\s*=", re.I)
_HARMLESS = re.compile(r"[\w.,:%/ \[\]{}=*+~-]*")

KINDS = frozenset(
    {
        *("bigquery", "clickhouse", "cockroachdb", "databricks", "db2", "duckdb", "file", "hive"),
        *("impala", "jdbc", "mariadb", "md", "mongodb", "mssql", "mysql", "odbc", "oracle"),
        *("postgres", "postgresql", "presto", "redshift", "snowflake", "spark", "sqlite"),
        *("sqlserver", "trino"),
    }
)
"""Kinds of addresses that no file is named by, also where no two slashes follow."""


def kind_of(text: str) -> str | None:
    """The kind of address that a text is meant as; None for the path of a file.

    "" stands for one that names no kind, and seems to hold a password.

    >>> kind_of("duckdb:trips.db"), kind_of("jdbc:sqlite:trips.db"), kind_of("mysql://host/trips")
    ('duckdb', 'jdbc', 'mysql')
    >>> kind_of("ada:secret@host/trips")
    ''
    >>> [kind_of(path) for path in ("budget.db", "2026-11-22T10:30.db", "C:\\\\budget.db", "a:b")]
    [None, None, None, None]
    """
    found = _SCHEME.match(text)
    if found is not None:
        kind = found[1].lower()
        if kind.partition("+")[0] in KINDS or "://" in text:
            return kind
    return "" if "://" in text or _CREDENTIALS.search(text) else None


def public_place(address: str) -> str:
    """The address of a place without user, password and parameters.

    >>> public_place("postgresql://ada:secret@host:5433/trips?password=secret")
    'postgresql://host:5433/trips'
    >>> public_place("postgresql://ada:se/cret@host/trips")
    'postgresql://...'
    """
    scheme, sign, rest = address.partition("://")
    if not sign or not _SCHEME.fullmatch(f"{scheme}:"):
        return f"{kind_of(address) or '...'}:..."
    place = rest.partition("?")[0].rpartition("@")[2]
    is_harmless = _HARMLESS.fullmatch(place) and not _CREDENTIALS.search(place)
    return f"{scheme}://{place if is_harmless and is_clear(address) else '...'}"


def is_clear(address: str) -> bool:
    """Whether all who read the address find the same password: no sign of it ends it too soon."""
    before, at, after = address.partition("://")[2].partition("@")
    return not at or not (set("/?#") & set(before) or "@" in after)


def require_clear(address: str, asked: str) -> None:
    """Refuse an address in which a part of the password might be taken for a part of the place.

    Parameters
    ----------
    address : str
        Of a server, with ``://``.
    asked : str
        What is asked for, for the message.

    Raises
    ------
    UsageError
        If the address is not clear; the message quotes nothing of it.
    """
    if not is_clear(address):
        raise UsageError(
            asked,
            "it is not clear where the user and the password end",
            "Write %40 for @, %2F for /, %3F for ? and %23 for # in a name, a password or a value",
        )
