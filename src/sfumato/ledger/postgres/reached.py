"""What a process saw committed on a server, so that it notices a server that has forgotten it.

A server may be replaced while a process uses it: by a copy that lagged behind, or by its own files
of yesterday. Charges that were confirmed may be missing then, and would be spent a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from sfumato.ledger.sql_public import Ask

Fact: TypeAlias = tuple[int, str]
"""The number of an entry or a step, and its hash."""

ENTRY = "SELECT hash FROM entries WHERE sequence = ?"
STEP = "SELECT hash FROM steps WHERE stream = ? AND step = ?"
VALUE = "SELECT value FROM about WHERE name = ?"


@dataclass
class Facts:
    """Some of what a transaction wrote, by which it is known again.

    Attributes
    ----------
    entry : tuple of int and str, or None
        The last entry: its number and hash.
    steps : dict
        The last step of each stream: its number and hash.
    values : dict
        Secret values, by their names.
    """

    entry: Fact | None = None
    steps: dict[int, Fact] = field(default_factory=dict)
    values: dict[str, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.entry or self.steps or self.values)

    def stand(self, ask: Ask) -> bool:
        """Whether the part of a ledger that is asked has all of them."""
        asked: list[tuple[str, tuple[object, ...], str | bytes]] = []
        if self.entry is not None:
            number, digest = self.entry
            asked.append((ENTRY, (number,), digest))
        for stream, (number, digest) in self.steps.items():
            asked.append((STEP, (stream, number), digest))
        asked += [(VALUE, (name,), value) for name, value in self.values.items()]
        return all(list(ask(query, values)) == [(found,)] for query, values, found in asked)


class Reached:
    """How far one part of a ledger had come when this process last wrote to it.

    Attributes
    ----------
    known : Facts
        What is committed.
    written : Facts
        What the open transaction has written.
    now : datetime or None
        The server's time when the open transaction got its turn; None unless it writes.
    """

    def __init__(self) -> None:
        self.known = Facts()
        self.written = Facts()
        self.now: datetime | None = None

    def begin(self, now: datetime | None) -> None:
        """Begin a transaction."""
        self.written = Facts()
        self.now = now

    def settle(self) -> None:
        """The transaction is committed."""
        self.known.entry = self.written.entry or self.known.entry
        self.known.steps |= self.written.steps
