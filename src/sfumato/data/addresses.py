"""Addresses of tables in databases: ``duckdb:file.db?table=t`` and ``postgresql://host/db?table=t``.

An address may hold a password, so it is in no message: what is shown is the table's name.

A plan may come from a stranger. So its address says where a table is and who reads it, and nothing
that is secret or that sends the reader elsewhere (``required_of_plan``); and no password that the
custodian keeps goes to a server that only the plan names (``of_plan``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote, urlencode

from sfumato.basics import is_clear, kind_of, public_place, require_clear
from sfumato.errors import UsageError, printable

Kind: TypeAlias = Literal["postgresql", "duckdb"]

_POSTGRES = re.compile(r"postgres(?:ql)?:/+", re.I)
_DUCKDB = re.compile(r"duckdb:", re.I)

# The parameters of an address that are shown: none of them can hold a secret.
HARMLESS = ("host", "port", "sslmode", "connect_timeout", "target_session_attrs")
# The parameters that a plan holds: they say where the table is, and who reads it.
_IN_PLANS = frozenset(
    {
        *HARMLESS,
        *("application_name", "channel_binding", "dbname", "load_balance_hosts", "sslrootcert"),
        *("table", "user"),
    }
)

# The values that some of them have there: weaker ones would let others read along.
_VALUES_IN_PLANS = {
    "sslmode": ("require", "verify-ca", "verify-full"),
    "channel_binding": ("require",),
    "sslrootcert": ("system",),
}

_HOST = r"(?:[\w.%~-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?"
# A user, hosts and a database, read alike by the driver and here.
_PLACE_IN_PLANS = re.compile(rf"(?:[^@/?#\[\]]*@)?{_HOST}(?:,{_HOST})*(?:/[^?#\[\]]*)?", re.ASCII)

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True, repr=False)
class Address(os.PathLike[str]):
    """The address of a table, as a path of files would be given; its text hides a password.

    Attributes
    ----------
    given : str
        As it was written, with two slashes before a server. It may hold a password, so it is in
        no message.
    kind : {"postgresql", "duckdb"}
    place : str
        The URL of a server or the path of a file, without parameters.
    parameters : tuple of pairs of str
        All but the table.
    table : str or None
        The table's name as it was given.

    >>> print(read("postgresql://ada:secret@host/db?table=t&password=secret&port=5433"))
    postgresql://host/db?port=5433&table=t
    """

    given: str
    kind: Kind
    place: str
    parameters: tuple[tuple[str, str], ...]
    table: str | None

    suffix = ""

    def __fspath__(self) -> str:
        return self.given

    def __str__(self) -> str:
        # Neither user and password, nor parameters that may be a secret.
        is_server = self.kind == "postgresql"
        place = public_place(self.given) if is_server else f"{self._scheme}{self.place}"
        return self._with_parameters(
            place, (pair for pair in self.parameters if pair[0] in HARMLESS)
        )

    @property
    def url(self) -> str:
        """The address of the database, for its driver."""
        return _joined(self.place, self.parameters)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table or str(self)

    @property
    def stem(self) -> str:
        """The table's own name, without a schema."""
        return self.parts[-1]

    @property
    def parts(self) -> list[str]:
        """The names that the table's name is made of, such as a schema's and its own."""
        return parts_of(self.name)

    def without_password(self) -> str:
        """Return the address as a file may hold it: whoever has the password elsewhere can use it.

        >>> read("postgresql://ada:secret@host/db?sslmode=require&table=t").without_password()
        'postgresql://ada@host/db?sslmode=require&table=t'
        """
        if self.kind == "duckdb" or not is_clear(self.given):
            return str(self)
        login, at, _ = self._after_scheme.rpartition("@")
        scheme, sign, where = public_place(self.given).partition("://")
        place = f"{scheme}{sign}{login.partition(':')[0]}{at}{where}"
        return self._with_parameters(
            place, (pair for pair in self.parameters if _may_be_in_plan(*pair))
        )

    def in_folder(self, folder: Path) -> str:
        """Return an address in a plan: a relative path of DuckDB starts at the plan's folder."""
        if self._is_elsewhere:
            return self.given
        return self._with_parameters(f"{self._scheme}{folder / self.place}", self.parameters)

    def for_folder(self, folder: Path) -> str:
        """Return the address as a plan in a folder names it, without a password.

        It is the inverse of ``in_folder``.
        """
        if self._is_elsewhere:
            return self.without_password()
        path = os.path.relpath(Path(self.place).resolve(), folder.resolve())
        return self._with_parameters(f"{self._scheme}{path}", ())

    @property
    def hosts(self) -> list[str]:
        """The hosts that the address names, wherever it does; none where it names none."""
        place = self._after_scheme.rpartition("@")[2].partition("/")[0]
        named = [re.sub(r":[0-9]*$", "", host).strip("[]") for host in place.split(",")]
        stated = [text for name, text in self.parameters if name == "host"]
        # A comma may be written as %2C: the driver takes it for the end of a host all the same.
        return [host for host in ",".join([*map(unquote, named), *stated]).split(",") if host]

    @property
    def login(self) -> str:
        """The user, and the password where there is one, as they stand before the hosts."""
        return self._after_scheme.rpartition("@")[0]

    @property
    def _after_scheme(self) -> str:
        return self.place.partition("://")[2]

    @property
    def _scheme(self) -> str:
        return f"{self.given.partition(':')[0]}:"

    @property
    def _is_elsewhere(self) -> bool:
        """Whether the address means the same in each folder."""
        is_rooted = self.place.startswith("~") or Path(self.place).is_absolute()
        return self.kind == "postgresql" or is_rooted

    def _with_parameters(self, place: str, parameters: Iterable[tuple[str, str]]) -> str:
        table = [] if self.table is None else [("table", self.table)]
        return _joined(place, [*parameters, *table])


def read(data: object) -> Address | None:
    """Read the address of a table in a database; None for anything else, such as a path.

    Parameters are read as drivers read them: a plus sign is a plus sign, and no blank.

    >>> read("duckdb:trips.db?table=a+b").table
    'a+b'
    """
    if isinstance(data, Address):
        return data
    given: object = os.fspath(data) if isinstance(data, os.PathLike) else data
    if not isinstance(given, str):
        return None
    kind: Kind
    if scheme := _POSTGRES.match(given):
        kind = "postgresql"
        # A path of Python makes one slash of two.
        no_host = "/" if scheme[0].count("/") > 2 else ""
        given = address = f"postgresql://{no_host}{given[scheme.end() :]}"
    elif _DUCKDB.match(given):
        kind = "duckdb"
        address = given.partition(":")[2]
    else:
        return None
    place, _, query = address.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    parameters = [(unquote(name), unquote(text)) for name, _, text in pairs]
    table = dict(parameters).get("table")
    others = tuple(pair for pair in parameters if pair[0] != "table")
    return Address(given, kind, place, others, table)


def table_at(kind: Kind, data: object) -> Address | None:
    """Read the address of a table that is named, in a database of a kind; None for anything else.

    Raises
    ------
    UsageError
        Where it names no table, or it is not clear which database; no password is quoted.
    """
    address = read(data)
    if address is None or address.kind != kind:
        return None
    if kind == "postgresql":
        require_clear(address.given, "the address of a source")
    elif address.parameters or kind_of(address.place) is not None:
        # It may be a password, so it is not quoted.
        raise UsageError(
            "the address of a source in a file of DuckDB",
            "it has more than the path of a file and a table",
            'Write it as in "duckdb:trips.db?table=trips"',
        )
    elif not address.place or address.place.startswith(":memory:"):
        raise UsageError(
            "a source duckdb: without a file",
            "only the connection that made a database in memory sees it",
            'Give a relation of that connection, as in connection.table("trips")',
        )
    if not address.table:
        example = {"postgresql": "postgresql://host/database", "duckdb": "duckdb:trips.db"}[kind]
        raise UsageError(
            "a database as a source",
            "it may have several tables, and none is named",
            f'Write sf.source("{example}", domain, table="trips"), or add ?table=trips',
        )
    parts_of(address.table)
    return address


def _joined(place: str, parameters: Iterable[tuple[str, str]]) -> str:
    query = urlencode(list(parameters), safe="/", quote_via=quote)
    return f"{place}?{query}" if query else place


def _may_be_in_plan(name: str, value: str) -> bool:
    return name in _IN_PLANS and value in _VALUES_IN_PLANS.get(name, (value,))


def _refused_in_plan(server: Address) -> list[str]:
    """Name the parameters of the address of a server that a plan may not hold."""
    refused = [name for name, value in server.parameters if not _may_be_in_plan(name, value)]
    # Nobody reads along at a socket, so any mode of TLS may stand there.
    if server.hosts and all(map(_is_socket, server.hosts)):
        refused = [name for name in refused if name != "sslmode"]
    return [*refused, "password"] if ":" in server.login else refused


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
    server = _server(address)
    if server is None:
        return
    require_clear(server.given, where)
    if not _PLACE_IN_PLANS.fullmatch(server.place.partition("://")[2]):
        raise UsageError(
            where,
            "it is not clear which host and database its address names",
            'Write path = "postgresql://user@host/database?table=trips"',
        )
    refused = _refused_in_plan(server)
    if not refused:
        return
    # What does not look like the name of a parameter may be a part of a password.
    known = sorted({name for name in refused if re.fullmatch("[a-z_]{1,32}", name)})
    stated = ", ".join(known) or "an unknown parameter"
    raise UsageError(
        where,
        f"its address states {stated}, which a plan may not: it could send your password away, or"
        " let others read along",
        f'Write path = "{server.without_password()}", and give passwords and'
        " files of keys by your own environment, such as PGPASSFILE",
    )


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
    'postgresql://ada@db.example/city?require_auth=scram-sha-256%2Cnone&sslmode=require&table=t'
    """
    server = _server(address)
    if server is None:
        return address
    required_of_plan(address, "the source of a plan")
    added = {}
    if "PGREQUIREAUTH" not in environment:
        added["require_auth"] = "scram-sha-256,none"
    states_mode = "sslmode" in dict(server.parameters) or "PGSSLMODE" in environment
    is_here = all(_is_socket(host) or host in _LOOPBACK for host in server.hosts)
    if not states_mode and not is_here:
        added["sslmode"] = "require"
    if not set(server.hosts) <= set(environment.get("PGHOST", "").split(",")):
        # Nothing that the custodian keeps is offered to a server that only the plan names.
        # The driver looks for passwords in a file that cannot be there, and asks for none.
        added |= {"password": "", "passfile": f"{os.devnull}/none"}
    return server._with_parameters(server.place, [*server.parameters, *added.items()])


def server_of(address: str) -> str | None:
    """Return which server is asked, and as whom, for the custodian's screen; None if none is."""
    server = _server(address)
    if server is None:
        return None
    hosts = ", ".join(server.hosts) or os.environ.get("PGHOST") or "this machine"
    user = dict(server.parameters).get("user") or unquote(server.login)
    return printable(f"{hosts} as {user}" if user else hosts)


def _server(address: str) -> Address | None:
    server = read(address)
    return server if server is not None and server.kind == "postgresql" else None


def _is_socket(host: str) -> bool:
    return host.startswith(("/", "@"))


def with_table(data: object, table: str) -> str:
    """Add the name of a table to the address of a database."""
    address = read(data)
    if address is None:
        raise UsageError(
            f"table = {table!r}",
            "the source is no database",
            'Leave it out, or give an address such as "postgresql://host/database"',
        )
    if address.table is not None:
        raise UsageError(f"table = {table!r}", "the address names a table", "Name it once")
    sign = "&" if "?" in address.given else "?"
    return f"{address.given}{sign}table={quote(table, safe='')}"


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
