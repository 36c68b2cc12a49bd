"""A second file that remembers how far a ledger had come, so that an older copy put back is noticed.

Each line is one fact: ``entry SEQUENCE HASH`` or ``stream NUMBER STEP HASH``. The file is only appended to. It is of use where
whoever restores the ledger does not restore it, too: on another disk, or with another owner.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import LedgerError, UsageError

MODE = 0o600
_LONGEST_NUMBER = 18  # digits: what SQLite's integers surely hold


@dataclass(frozen=True)
class Reached:
    """How far a ledger had come: its last entry, and the last step of each stream, each with its hash."""

    entry: tuple[int, str]
    streams: dict[int, tuple[int, str]]


class Anchor:
    """The file that remembers. It may be written by several processes."""

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(f"anchor = {type(path).__name__}", "it is not a path", 'Write anchor="budget.anchor"')
        self.path = os.path.realpath(path)
        self.label = f"the anchor {str(path)!r}"

    def read(self) -> Reached:
        """How far the ledger had come."""
        entry: tuple[int, str] = (0, "")
        streams: dict[int, tuple[int, str]] = {}
        for line in self._lines():
            match line.split():
                case ["entry", sequence, digest] if _is_number(sequence):
                    entry = max(entry, (int(sequence), digest))
                case ["stream", number, step, digest] if _is_number(number) and _is_number(step):
                    reached = (int(step), digest)
                    streams[int(number)] = max(streams.get(int(number), (0, "")), reached)
                case _:
                    obstacle = "it holds a line that is not an anchor's"
                    raise LedgerError(self.label, obstacle, "Name the file that this ledger wrote")
        return Reached(entry, streams)

    def _lines(self) -> list[str]:
        try:
            return Path(self.path).read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
        raise LedgerError(self.label, reason, "Name a file that can be read, or a new one")

    def require_writable(self) -> None:
        """Refuse a file that cannot be appended to. To be called before a charge, which is noted after it is durable."""
        self.note()

    def note(self, *lines: str) -> None:
        """Append lines, durably."""
        text = "".join(f"{line}\n" for line in lines).encode("ascii")
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, MODE)
            try:
                os.write(handle, text)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            reason = error.strerror or "it cannot be written"
        else:
            return
        raise LedgerError(self.label, reason, "Name a file that can be written")


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) <= _LONGEST_NUMBER
