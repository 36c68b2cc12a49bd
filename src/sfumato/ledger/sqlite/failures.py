"""What errors of SQLite mean to the caller."""

from __future__ import annotations

import sqlite3

from sfumato.ledger.store import REFUSED, REPORT

# What a result code of SQLite means to the caller: the obstacle and the remedy.
MEANING: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "the disk is full",
        "Free some space and ask again; what is written stands, what is not was never charged",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk refused to read or write",
        "Check the disk, its quota and its space, then ask again",
    ),
    sqlite3.SQLITE_READONLY: (
        "the file or its folder is read-only",
        "Make both writable, or use another ledger",
    ),
    sqlite3.SQLITE_PERM: (
        "the file may not be opened by this user",
        "Ask its owner for access, or use another ledger",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened",
        "Check that its folder exists and that both may be written",
    ),
    sqlite3.SQLITE_NOTADB: (
        "the file is not a ledger",
        "Give the path of a ledger, or of a file that does not exist yet",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "Keep a copy, do not publish from it, and restore the latest whole copy",
    ),
    sqlite3.SQLITE_BUSY: (
        "other processes kept it busy",
        "Ask again; if it stays so, look for a process that is stopped",
    ),
    sqlite3.SQLITE_CONSTRAINT: (REFUSED, REPORT),
    sqlite3.SQLITE_TOOBIG: ("the answer is too large to be stored", "Ask for fewer cells"),
}
UNKNOWN = (
    "the file cannot be used",
    "Verify the ledger, and restore the latest whole copy if it is damaged",
)


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code of an error, or -1."""
    number = getattr(error, "sqlite_errorcode", None)
    return -1 if number is None else number & 0xFF


def error_name(error: sqlite3.Error) -> str:
    """The name of an error's result code."""
    return str(getattr(error, "sqlite_errorname", type(error).__name__))
