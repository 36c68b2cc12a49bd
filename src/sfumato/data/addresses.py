"""Addresses of tables in databases: ``duckdb:file.db?table=t`` and ``postgresql://host/db?table=t``.

An address may hold a password, so it is in no message: what is shown is the table's name.

A plan may come from a stranger. So its address says where a table is and who reads it, and nothing
that is secret or that sends the reader elsewhere (``required_of_plan``); and no password that the
custodian keeps goes to a server that only the plan names (``of_plan``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from sfumato.basics.text import is_clear, kind_of, public_place, require_clear
from sfumato.errors import UsageError, printable

_POSTGRES = re.compile(r"postgres(?:ql)?:/+", re.I)
_DUCKDB = re.compile(r"duckdb:", re.I)
HARMLESS = ("host", "port", "sslmode", "connect_timeout", "target_session_attrs")
"""The parameters of an address that are shown: none of them can hold a secret."""
_IN_PLANS = frozenset(
    {
        *HARMLESS,
        *("application_name", "channel_binding", "dbname", "load_balance_hosts", "sslrootcert"),
        *("table", "user"),
    }
)
"""The parameters that a plan holds: they say where the table is, and who reads it."""

_VALUES_IN_PLANS = {
    "sslmode": ("require", "verify-ca", "verify-full"),
    "channel_binding": ("require",),
    "sslrootcert": ("system",),
}
"""The values that some of them have there: weaker ones would let others read along."""

_HOST = r"(?:[\w.%~-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?"
_PLACE_IN_PLANS = re.compile(rf"(?:[^@/?#\[\]]*@)?{_HOST}(?:,{_HOST})*(?:/[^?#\[\]]*)?", re.ASCII)
"""A user, hosts and a database, read alike by the driver and here."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_FILE = f"{os.devnull}/none"
"""A path that no file can have: the driver looks for passwords there, and asks for none."""

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
        """Return the address as a file may hold it: whoever has the password elsewhere can use it.

        >>> SourceAddress("postgresql://ada:secret@host/db?sslmode=require&table=t").without_password()
        'postgresql://ada@host/db?sslmode=require&table=t'
        """
        if not (is_postgres(self._address) and is_clear(self._address)):
            return str(self)
        place, _, query = self._address.partition("?")
        login, at, _ = place.partition("://")[2].rpartition("@")
        scheme, sign, where = public_place(place).partition("://")
        pairs = [pair for pair in parse_qsl(query) if _may_be_in_plan(*pair)]
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
    """Return the address that a text is; None where it is a path of files."""
    return SourceAddress(data) if is_postgres(data) or is_duckdb(data) else None


def in_folder(address: str, folder: Path) -> str:
    """Return an address in a plan: a relative path of DuckDB starts at the plan's folder."""
    if _is_elsewhere(address):
        return address
    scheme, _, path = address.partition(":")
    return f"{scheme}:{folder / path}"


def for_folder(address: str, folder: Path) -> str:
    """Return the address as a plan in a folder names it: the inverse of ``in_folder``."""
    if _is_elsewhere(address):
        return address
    scheme, _, rest = address.partition(":")
    path, mark, query = rest.partition("?")
    return f"{scheme}:{os.path.relpath(Path(path).resolve(), folder.resolve())}{mark}{query}"


def _may_be_in_plan(name: str, value: str) -> bool:
    return name in _IN_PLANS and value in _VALUES_IN_PLANS.get(name, (value,))


def required_of_plan(address: str, where: str) -> None:
    """Refuse the address of a server in a plan that is more than a place and a reader.

    Parameters
    ----------
    address : str
        As the plan has it; anything but the address of a server passes.
    where : str
        The plan and the field, for the message.

    Raises
    ------
    UsageError
        It names what is refused, quotes no value of it, and has the line to write.
    """
    url = _server_url(address)
    if url is None:
        return
    require_clear(url, where)
    if not _PLACE_IN_PLANS.fullmatch(_place(url)):
        raise UsageError(
            where,
            "it is not clear which host and database its address names",
            'Write path = "postgresql://user@host/database?table=trips"',
        )
    refused = _refused_of_plan(url)
    if not refused:
        return
    # What does not look like the name of a parameter may be a part of a password.
    known = sorted({name for name in refused if re.fullmatch("[a-z_]{1,32}", name)})
    stated = ", ".join(known) or "an unknown parameter"
    raise UsageError(
        where,
        f"its address states {stated}, which a plan may not: it could send your password away, or"
        " let others read along",
        f'Write path = "{SourceAddress(url).without_password()}", and give passwords and'
        " files of keys by your own environment, such as PGPASSFILE",
    )


def _refused_of_plan(url: str) -> list[str]:
    """Return what an address states that a plan may not."""
    refused = [name for name, value in _parameters(url) if not _may_be_in_plan(name, value)]
    hosts = _hosts(url)
    # Nobody reads along at a socket, so any mode of TLS may stand there.
    if hosts and all(map(_is_socket, hosts)):
        refused = [name for name in refused if name != "sslmode"]
    if ":" in _place(url).rpartition("@")[0]:
        refused.append("password")
    return refused


def of_plan(address: str, environment: Mapping[str, str]) -> str:
    """Return the address in a plan as it is connected to.

    A server must prove that it knows the password, if it asks for one: the password itself is sent
    to nobody. And only a server that the custodian's environment names, by PGHOST, is given the
    chance to ask.

    Parameters
    ----------
    address : str
        One that ``required_of_plan`` lets pass; it is asked once more.
    environment : mapping of str to str
        The custodian's own.

    >>> of_plan("postgresql://ada@db.example/city?table=t", {"PGHOST": "db.example"})
    'postgresql://ada@db.example/city?table=t&require_auth=scram-sha-256%2Cnone&sslmode=require'
    """
    url = _server_url(address)
    if url is None:
        return address
    required_of_plan(address, "the source of a plan")
    added = {}
    if "PGREQUIREAUTH" not in environment:
        added["require_auth"] = "scram-sha-256,none"
    hosts = _hosts(url)
    states_mode = "sslmode" in dict(_parameters(url)) or "PGSSLMODE" in environment
    if not states_mode and not all(map(_is_here, hosts)):
        added["sslmode"] = "require"
    if not set(hosts) <= set(environment.get("PGHOST", "").split(",")):
        # Nothing that the custodian keeps is offered to a server that only the plan names.
        added |= {"password": "", "passfile": _NO_FILE}
    sign = "&" if "?" in url else "?"
    return f"{url}{sign}{urlencode(added, quote_via=quote)}" if added else url


def server_of(address: str) -> str | None:
    """Return which server is asked, and as whom, for the custodian's screen; None if none is."""
    url = _server_url(address)
    if url is None:
        return None
    hosts = ", ".join(_hosts(url)) or os.environ.get("PGHOST") or "this machine"
    user = dict(_parameters(url)).get("user") or unquote(_place(url).rpartition("@")[0])
    return printable(f"{hosts} as {user}" if user else hosts)


def _parameters(address: str) -> list[tuple[str, str]]:
    return parse_qsl(address.partition("?")[2], keep_blank_values=True)


def _place(url: str) -> str:
    return url.partition("://")[2].partition("?")[0]


def _hosts(url: str) -> list[str]:
    """Return the hosts that an address names, wherever it does; none where it names none."""
    place = _place(url).rpartition("@")[2].partition("/")[0]
    named = [re.sub(r":[0-9]*$", "", host).strip("[]") for host in place.split(",")]
    stated = [value for name, value in _parameters(url) if name == "host"]
    # A comma may be written as %2C: the driver takes it for the end of a host all the same.
    return [host for host in ",".join([*map(unquote, named), *stated]).split(",") if host]


def _is_socket(host: str) -> bool:
    return host.startswith(("/", "@"))


def _is_here(host: str) -> bool:
    return _is_socket(host) or host in _LOOPBACK


def _is_elsewhere(address: str) -> bool:
    """Tell whether an address means the same in each folder."""
    path = address.partition(":")[2]
    return not is_duckdb(address) or path.startswith("~") or Path(path).is_absolute()


def is_postgres(data: object) -> bool:
    """Tell whether it is an address of a server of PostgreSQL."""
    text = _text(data)
    return text is not None and _POSTGRES.match(text) is not None


def is_duckdb(data: object) -> bool:
    """Tell whether it is an address of a file of DuckDB."""
    text = _text(data)
    return text is not None and _DUCKDB.match(text) is not None


def postgres_address(data: object) -> TableAddress | None:
    """Read the address of a table on a server of PostgreSQL; None for anything else."""
    text = _text(data)
    url = None if text is None else _server_url(text)
    if url is None:
        return None
    require_clear(url, "the address of a source")
    place, table = _split(url)
    return TableAddress(place, _stated(table, "postgresql://host/database"))


def _server_url(text: str) -> str | None:
    """Return the address of a server as its driver reads it; None for anything else."""
    scheme = _POSTGRES.match(text)
    if scheme is None:
        return None
    # A path of Python makes one slash of two.
    no_host = "/" if scheme[0].count("/") > 2 else ""
    return f"postgresql://{no_host}{text[scheme.end() :]}"


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
    """Return the parts of a name that points separate; a part with a point stands in quotes.

    >>> parts_of('public."daily.trips"')
    ['public', 'daily.trips']
    """
    names = []
    at = 0
    while match := _PART.match(table, at):
        names.append(match[1].replace('""', '"') if match[1] else match[2])
        at = match.end()
        if at < len(table) and table[at] != ".":
            break
        at += 1
    if at != len(table) + 1 or len(names) > 3 or "\0" in table:
        raise UsageError(
            f"table = {printable(table)!r}",
            "it is not the name of a table",
            'Write table="trips" or table="schema.trips"; put a name with a point in quotes',
        )
    return names


def quoted(name: str) -> str:
    """Return the name of a table or of a column, as queries have it."""
    return '"' + name.replace('"', '""') + '"'


def _text(data: object) -> str | None:
    given: object = os.fspath(data) if isinstance(data, os.PathLike) else data
    return given if isinstance(given, str) else None


def _split(address: str) -> tuple[str, str | None]:
    """Return the address without the table, and the table."""
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
