"""Opening a ledger from the path that a user gives."""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import UsageError
from sfumato.ledger.book import Book
from sfumato.ledger.sqlite import SQLiteStore


def open_ledger(
    where: str | Path | None,
    *,
    create: bool = True,
    anchor: str | Path | None = None,
) -> Book:
    """Open the ledger in a file, or one in memory that ends with its process.

    Parameters
    ----------
    where : str, Path or None
        A file, created readable by its owner only, with a file of secrets beside it; None or
        ``":memory:"`` for an account book in memory.
    create : bool
        Whether a missing file is created.
    anchor : str, Path or None
        A second file, best on another disk, to which every charge appends the last entry's number
        and hash. An older copy of the ledger that is put back is then refused.

    Raises
    ------
    UsageError
        If ``where`` is the address of a server.
    LedgerError
        If the file cannot be opened, or is no ledger.

    >>> with open_ledger(None) as ledger:
    ...     _ = ledger.open_account("trips", "pure", (3_000_000_000, 0))
    ...     with ledger.reserve("trips", "key", "digest", (500_000_000, 0), "a histogram") as hold:
    ...         answer = hold.store(b"noisy counts")
    ...     ledger.account("trips").remaining
    (2500000000, 0)
    """
    if where is not None and "://" in str(where):
        obstacle = "a ledger is a file on this machine"
        raise UsageError(f"ledger={str(where)!r}", obstacle, 'Give a path such as "budget.db"')
    return Book(SQLiteStore(where, create=create), anchor=anchor)
