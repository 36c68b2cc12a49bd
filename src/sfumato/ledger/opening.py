"""Opening a ledger from the path that a user gives."""

from __future__ import annotations

from pathlib import Path

from sfumato.basics.text import kind_of
from sfumato.errors import UsageError
from sfumato.ledger.book import Book
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.ledger.store import Store

SERVERS = ("postgresql://", "postgres://")


def open_ledger(
    where: str | Path | None,
    *,
    create: bool = True,
    anchor: str | Path | None = None,
    spender: str | None = None,
) -> Book:
    """Open the ledger in a file or on a server, or one in memory that ends with its process.

    Parameters
    ----------
    where : str, Path or None
        A file, created readable by its owner only, with a file of secrets beside it; the address of
        a PostgreSQL database, such as ``"postgresql://user@host/database"``, which needs the extra
        ``postgres``; None or ``":memory:"`` for an account book in memory.
    create : bool
        Whether a missing ledger is created.
    anchor : str, Path or None
        A second file, best on another disk, to which every charge appends the last entry's number
        and hash. An older copy of the ledger that is put back is then refused.
    spender : str or None
        Who spends, where an account has spenders; on a server, the role that logs in.

    Raises
    ------
    UsageError
        If ``where`` is the address of another kind of server, or psycopg is not installed.
    LedgerError
        If it cannot be opened, or is no ledger.

    >>> with open_ledger(None) as ledger:
    ...     _ = ledger.open_account("trips", "pure", (3_000_000_000, 0))
    ...     with ledger.reserve("trips", "key", "digest", (500_000_000, 0), "a histogram") as hold:
    ...         answer = hold.store(b"noisy counts")
    ...     ledger.account("trips").remaining
    (2500000000, 0)
    """
    return Book(store_of(where, create=create), anchor=anchor, spender=spender)


def open_to_charge(
    where: str | Path | None,
    *,
    anchor: str | Path | None = None,
    spender: str | None = None,
) -> Book:
    """Open the ledger that is to pay for a release; see ``open_ledger``.

    A missing file is created. A missing ledger on a server is not: it may be another database than
    the one that was meant, whose owner does not expect a ledger in it, and the budget of a new
    ledger would be spent beside that of the right one.
    """
    return open_ledger(where, create=not _is_server(where), anchor=anchor, spender=spender)


def store_of(where: str | Path | None, *, create: bool) -> Store:
    """The store of a ledger in a file, on a server or in memory; see ``open_ledger``."""
    if isinstance(where, str) and _is_server(where):
        return PostgresStore(where, create=create)
    kind = None if where is None else kind_of(str(where))
    if kind is not None:
        # An address may hold a password: only its kind is quoted.
        asked = f"ledger = {kind}:..." if kind else "ledger = an address"
        obstacle = "a ledger is a file, or a PostgreSQL database"
        remedy = (
            'Give a path such as "budget.db", or "postgresql://user@host/database"; '
            "for a file with such a name, its path from the root"
        )
        raise UsageError(asked, obstacle, remedy)
    return SQLiteStore(where, create=create)


def _is_server(where: str | Path | None) -> bool:
    return isinstance(where, str) and where.startswith(SERVERS)
