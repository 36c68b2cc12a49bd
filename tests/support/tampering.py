"""Someone with the ledger's file in hand.

Here is what they can do to it, and what a verification then says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sfumato.ledger import Verification, open_ledger

RULES = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"


def secrets_of(path: Path) -> Path:
    """The file beside a ledger that holds its secrets."""
    return path.with_name(path.name + ".secrets")


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without its rules, which are put back afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA ignore_check_constraints = ON")
        rules = db.execute(RULES).fetchall()
        for name, _ in rules:
            db.execute(f"DROP TRIGGER {name}")
        yield db
        for _, sql in rules:
            db.execute(sql)


def verified_after(path: Path, statements: str, edited: Path | None = None) -> Verification:
    """What a verification finds after some statements in a ledger's file, or in another one."""
    with unguarded(edited or path) as db:
        for statement in statements.split(";"):
            db.execute(statement)
    with open_ledger(path) as ledger:
        return ledger.verify()
