"""What the two kinds of files of a ledger hold: their tables and rules, and how to check them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class FileKind:
    """One kind of file.

    Attributes
    ----------
    application, version : int
        How the header of the file marks it.
    script : str
        The SQL that makes an empty file one of this kind.
    noun : str
        What messages call it.
    pragmas : tuple of str
        Settings of each connection to it, beside those of every file.
    owner_only : bool
        Whether a file that others than its owner may open is refused.
    later : str
        The SQL that adds to a file what a later use of it needs, and makes it one of the next
        version; "" where there is none.
    """

    application: int
    version: int
    script: str
    noun: str
    pragmas: tuple[str, ...] = ()
    owner_only: bool = False
    later: str = ""

    @property
    def newest(self) -> int:
        """The highest version that such a file may have."""
        return self.version + 1 if self.later else self.version


BOOK = FileKind(0x53666D74, 4, "book.sql", "the ledger", later="spenders.sql")  # "Sfmt"
SECRETS = FileKind(
    0x53666D73,  # "Sfms"
    1,
    "secrets.sql",
    "the secrets of the ledger",
    # What is overwritten or deleted is zeroed in the file, so that a wiped state is gone.
    pragmas=("secure_delete = ON",),
    owner_only=True,
)
OBJECTS = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"


@cache
def script(name: str) -> str:
    """The statements of a script."""
    folder = resources.files("sfumato.ledger.sqlite")
    return folder.joinpath(name).read_text(encoding="utf-8")


def version_of(db: sqlite3.Connection) -> int:
    """The version of a file's tables; 0 where there are none yet."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def extend(db: sqlite3.Connection, kind: FileKind) -> None:
    """Make a file one of the newest version of its kind, within a transaction."""
    for statement in statements(script(kind.later)):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {kind.newest}")


def statements(script: str) -> Iterator[str]:
    """Cut a script into statements; each ends at the end of a line."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""


@cache
def expected_objects(kind: FileKind, version: int) -> Mapping[str, str]:
    """The tables, indexes and triggers of a kind of file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in statements(script(kind.script)):
            db.execute(statement)
        if version > kind.version:
            extend(db, kind)
        return dict(db.execute(OBJECTS).fetchall())


def differences(db: sqlite3.Connection, kind: FileKind) -> list[str]:
    """Tables, indexes and triggers that are not what this version creates."""
    expected = expected_objects(kind, version_of(db))
    found = dict(db.execute(OBJECTS).fetchall())
    known = expected.keys() | found.keys()
    names = sorted(name for name in known if expected.get(name) != found.get(name))
    edited = "was dropped, replaced or added to the ledger's tables and rules"
    return [f"{name!r} {edited}" for name in names]


def damage(db: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    found = [str(line) for (line,) in db.execute("PRAGMA integrity_check(5)")]
    return [] if found == ["ok"] else [f"the file is damaged: {line}" for line in found]
