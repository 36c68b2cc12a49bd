"""Addresses of tables in databases: ``duckdb:file.db?table=t`` and ``postgresql://host/db?table=t``.

An address may hold a password, so it is in no message: what is shown is the table's name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from sfumato.addresses import is_clear, kind_of, public_place, require_clear
from sfumato.errors import UsageError, printable

_POSTGRES = re.compile(r"postgres(?:ql)?:/+", re.I)
_DUCKDB = re.compile(r"duckdb:", re.I)
HARMLESS = ("host", "port", "sslmode", "connect_timeout", "target_session_attrs")
"""The parameters of an address that are shown: none of them can hold a secret."""
_IN_PLANS = (*HARMLESS, "application_name", "dbname", "hostaddr", "sslrootcert", "table", "user")
"""The parameters that a plan holds: they say where the table is, and who reads it."""

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


class TableAddress(NamedTuple):
    """A table, and where it is.

    Attributes
    ----------
    place : str
        The path of a file, or the URL of a server, without the table.
    table : str
        The table's name as it was given.
    """

    place: str
    table: str

    @property
    def parts(self) -> list[str]:
        """The names that the table's name is made of, such as a schema's and its own."""
        return parts_of(self.table)


class SourceAddress(os.PathLike[str]):
    """The address of a table, as a path of files would be given; its text hides a password.

    >>> print(SourceAddress("postgresql://ada:secret@host/db?table=t&password=secret&port=5433"))
    postgresql://host/db?port=5433&table=t
    """

    suffix = ""

    def __init__(self, address: str) -> None:
        self._address = address

    def __fspath__(self) -> str:
        return self._address

    def __str__(self) -> str:
        given, table = _split(self._address)
        place, _, query = given.partition("?")
        pairs = [pair for pair in parse_qsl(query) if pair[0] in HARMLESS]
        if is_postgres(given):
            # Neither user and password, nor parameters that may be a secret.
            place = public_place(given)
        if table is not None:
            pairs.append(("table", table))
        return f"{place}?{urlencode(pairs, quote_via=quote)}" if pairs else place

    def without_password(self) -> str:
        """The address as a file may hold it: whoever has the password elsewhere can use it.

        >>> SourceAddress("postgresql://ada:secret@host/db?sslmode=require&table=t").without_password()
        'postgresql://ada@host/db?sslmode=require&table=t'
        """
        if not (is_postgres(self._address) and is_clear(self._address)):
            return str(self)
        place, _, query = self._address.partition("?")
        login, at, _ = place.partition("://")[2].rpartition("@")
        scheme, sign, where = public_place(place).partition("://")
        pairs = [pair for pair in parse_qsl(query) if pair[0] in _IN_PLANS]
        kept = f"{scheme}{sign}{login.partition(':')[0]}{at}{where}"
        return f"{kept}?{urlencode(pairs, safe='/', quote_via=quote)}" if pairs else kept

    @property
    def name(self) -> str:
        """The table's name."""
        return _split(self._address)[1] or str(self)

    @property
    def stem(self) -> str:
        """The table's own name, without a schema."""
        return parts_of(self.name)[-1]


def address_of(data: str) -> SourceAddress | None:
    """The address that a text is; None where it is a path of files."""
    return SourceAddress(data) if is_postgres(data) or is_duckdb(data) else None


def in_folder(address: str, folder: Path) -> str:
    """An address in a plan: a relative path of a file of DuckDB starts at the plan's folder."""
    if _is_elsewhere(address):
        return address
    scheme, _, path = address.partition(":")
    return f"{scheme}:{folder / path}"


def for_folder(address: str, folder: Path) -> str:
    """The address as a plan in a folder names it: the inverse of ``in_folder``."""
    if _is_elsewhere(address):
        return address
    scheme, _, rest = address.partition(":")
    path, mark, query = rest.partition("?")
    return f"{scheme}:{os.path.relpath(Path(path).resolve(), folder.resolve())}{mark}{query}"


def _is_elsewhere(address: str) -> bool:
    """Whether an address means the same in each folder."""
    path = address.partition(":")[2]
    return not is_duckdb(address) or path.startswith("~") or Path(path).is_absolute()


def is_postgres(data: object) -> bool:
    """Whether it is an address of a server of PostgreSQL."""
    text = _text(data)
    return text is not None and _POSTGRES.match(text) is not None


def is_duckdb(data: object) -> bool:
    """Whether it is an address of a file of DuckDB."""
    text = _text(data)
    return text is not None and _DUCKDB.match(text) is not None


def postgres_address(data: object) -> TableAddress | None:
    """Read the address of a table on a server of PostgreSQL; None for anything else."""
    text = _text(data)
    found = None if text is None else _POSTGRES.match(text)
    if text is None or found is None:
        return None
    require_clear(f"postgresql://{text[found.end() :]}", "the address of a source")
    # A path of Python makes one slash of two.
    rest = text[found.end() :]
    if text[found.start() : found.end()].count("/") > 2:
        rest = "/" + rest
    place, table = _split(rest)
    return TableAddress(f"postgresql://{place}", _stated(table, "postgresql://host/database"))


def duckdb_address(data: object) -> TableAddress | None:
    """Read the address of a table in a file of DuckDB; None for anything else."""
    text = _text(data)
    if text is None or not _DUCKDB.match(text):
        return None
    place, table = _split(text.partition(":")[2])
    if "?" in place or kind_of(place) is not None:
        # It may be a password, so it is not quoted.
        raise UsageError(
            "the address of a source in a file of DuckDB",
            "it has more than the path of a file and a table",
            'Write it as in "duckdb:trips.db?table=trips"',
        )
    if not place or place.startswith(":memory:"):
        raise UsageError(
            "a source duckdb: without a file",
            "only the connection that made a database in memory sees it",
            'Give a relation of that connection, as in connection.table("trips")',
        )
    return TableAddress(place, _stated(table, "duckdb:trips.db"))


def with_table(data: object, table: str) -> str:
    """Add the name of a table to the address of a database."""
    text = _text(data)
    if text is None or not (_POSTGRES.match(text) or _DUCKDB.match(text)):
        raise UsageError(
            f"table = {table!r}",
            "the source is no database",
            'Leave it out, or give an address such as "postgresql://host/database"',
        )
    if _split(text)[1] is not None:
        raise UsageError(f"table = {table!r}", "the address names a table", "Name it once")
    return f"{text}{'&' if '?' in text else '?'}table={quote(table, safe='')}"


def parts_of(table: str) -> list[str]:
    """The parts of a name that points separate; a part with a point stands in quotes.

    >>> parts_of('public."daily.trips"')
    ['public', 'daily.trips']
    """
    found, at = [], 0
    while match := _PART.match(table, at):
        found.append(match[1].replace('""', '"') if match[1] else match[2])
        at = match.end()
        if at < len(table) and table[at] != ".":
            break
        at += 1
    if at != len(table) + 1 or len(found) > 3 or "\0" in table:
        raise UsageError(
            f"table = {printable(table)!r}",
            "it is not the name of a table",
            'Write table="trips" or table="schema.trips"; put a name with a point in quotes',
        )
    return found


def _text(data: object) -> str | None:
    given: object = os.fspath(data) if isinstance(data, os.PathLike) else data
    return given if isinstance(given, str) else None


def _split(address: str) -> tuple[str, str | None]:
    """The address without the table, and the table."""
    place, _, query = address.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    tables = [value for name, value in pairs if name == "table"]
    others = urlencode([pair for pair in pairs if pair[0] != "table"], quote_via=quote)
    return f"{place}?{others}" if others else place, tables[-1] if tables else None


def _stated(table: str | None, example: str) -> str:
    if not table:
        raise UsageError(
            "a database as a source",
            "it may have several tables, and none is named",
            f'Write sf.source("{example}", domain, table="trips"), or add ?table=trips',
        )
    parts_of(table)
    return table
