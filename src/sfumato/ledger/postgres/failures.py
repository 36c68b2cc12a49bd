"""What errors of PostgreSQL mean to the caller. Its own messages quote rows, so they go nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.ledger.store import REFUSED, REPORT

if TYPE_CHECKING:
    import psycopg

NO_SPENDER = "SFM01"  # the codes of guard.sql
MOVED = "SFM02"
TOO_LARGE = "22003"

# What a class of SQLSTATE codes, or one code, means to the caller: the obstacle and the remedy.
MEANING: dict[str, tuple[str, str]] = {
    "08": ("the connection to the server was lost", "Ask again, under the same key"),
    "22": ("a text in it cannot be stored", "Leave out characters that are not printed"),
    "23": (REFUSED, REPORT),
    "25006": ("the server takes no changes: it is a copy", "Give the address of the first server"),
    "28": ("the server does not let this user in", "Check the user's name and password"),
    "3D": ("the server has no such database", "Check the name of the database"),
    NO_SPENDER: (
        "this role is no spender of the account",
        "Ask the custodian of the ledger to run `sfumato ledger spender add`",
    ),
    MOVED: ("the ledger was moved to another place", "Ask its custodian for the new address"),
    "42501": ("this user may not do that", "Ask the owner of the ledger for access"),
    "53300": ("the server has no connection to spare", "Ask again, or raise its max_connections"),
    "53": ("the server has no room left", "Free some space on it, then ask again"),
    "54000": (
        "a name or key in it is too long for the indexes of the server",
        "Choose names and keys of at most 1,000 bytes",
    ),
    "55P03": (
        "others kept it busy",
        "Ask again; if it stays so, look for a process that is stopped",
    ),
    "57014": ("somebody cancelled it on the server", "Ask again, under the same key"),
    "57": ("the server is going down", "Ask again, under the same key, once it is up"),
}
UNREACHABLE = ("the server cannot be reached", "Check its address, and that it is up")
TURNED_AWAY = (
    "the server is up, and refused the connection",
    "Check the names of user and database, the password, the right to connect, and how many "
    "connections it allows",
)
UNKNOWN = ("the server refused", "Read the server's log")

LOST = ("08", "57P")
"""Codes of a connection that is gone."""

CLASHES = ("40001", "40P01")
"""Codes of a transaction that another one got in the way of: it may be tried again."""


def meaning_of(error: psycopg.Error) -> tuple[str, str]:
    """The obstacle, with the server's code for it, and the remedy."""
    code = error.sqlstate
    if code is None:
        return UNREACHABLE if is_lost(error) else UNKNOWN
    found = MEANING.get(code) or MEANING.get(code[:2]) or UNKNOWN
    return f"{found[0]} (SQLSTATE {code})", found[1]


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone. No code comes with one that was cut."""
    import psycopg

    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(LOST)


def is_clash(error: psycopg.Error) -> bool:
    """Whether another transaction got in the way."""
    return error.sqlstate in CLASHES


def is_refused(error: psycopg.Error) -> bool:
    """Whether a rule of the ledger, or a constraint, refused a row.

    A sum that is larger than any number that the server keeps is more than any account has.
    """
    code = error.sqlstate or ""
    return code.startswith("23") or code == TOO_LARGE
