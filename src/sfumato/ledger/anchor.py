"""A second file that remembers how far a ledger had come, so that an older copy is noticed.

Each line is one fact: ``entry SEQUENCE HASH`` or ``stream NUMBER STEP HASH``. The file is only
appended to. It helps only if whoever puts back an older ledger does not put back an older anchor as
well, so it belongs on another disk, or to another owner.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sfumato.errors import LedgerError, UsageError
from sfumato.ledger.secrets import Secrets
from sfumato.ledger.store import SecretRows, Store
from sfumato.ledger.stream_record import StreamRecord

FACT = re.compile(
    r"(entry (?P<entry>[0-9]{1,18})|stream (?P<stream>[0-9]{1,18}) (?P<step>[0-9]{1,18})) "
    r"(?P<digest>[0-9a-f]{64})"
)

# The beginning of a line, as a full disk or a loss of power leaves it: it is passed over.
TORN = re.compile(
    r"[a-z]{0,6}|stream [0-9]{0,18}|(entry|stream [0-9]{1,18}) [0-9]{0,18}( [0-9a-f]{0,63})?"
)


class Reached(msgspec.Struct, frozen=True):
    """How far a ledger had come: its last entry and the last step of each stream, with hashes."""

    entry: tuple[int, str]
    streams: dict[int, tuple[int, str]]


class Anchor:
    """The file that remembers. Several processes may write to it.

    Parameters
    ----------
    path : str or Path
        Made, for its owner only, when the first fact is written.
    """

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"anchor = {type(path).__name__}",
                "it is not a path",
                'Write anchor="budget.anchor"',
            )
        self.path = os.path.realpath(path)
        self.label = f"the anchor {str(path)!r}"

    def read(self) -> Reached:
        """How far the ledger had come."""
        entry: tuple[int, str] = (0, "")
        streams: dict[int, tuple[int, str]] = {}
        for line in self._lines():
            fact = FACT.fullmatch(line)
            if fact is None:
                if TORN.fullmatch(line):
                    continue
                raise LedgerError(
                    self.label,
                    "it holds a line that is not an anchor's",
                    "Name the file that this ledger wrote",
                )
            # Several processes append, so a lower number may come later.
            if fact["entry"]:
                entry = max(entry, (int(fact["entry"]), fact["digest"]))
            else:
                number = int(fact["stream"])
                step = (int(fact["step"]), fact["digest"])
                streams[number] = max(streams.get(number, (0, "")), step)
        return Reached(entry, streams)

    def _lines(self) -> list[str]:
        try:
            return Path(self.path).read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
        raise LedgerError(self.label, reason, "Name a file that can be read, or a new one")

    def note(self, *lines: str) -> None:
        """Append lines, durably; without any, only refuse a file that cannot be appended to."""
        # The last line may be the beginning of one, without its end. So each line starts a new one.
        text = "".join(f"\n{line}\n" for line in lines).encode("ascii")
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # One write in append mode: lines of several processes do not mix.
                written = os.write(handle, text)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            reason = error.strerror or "it cannot be written"
        else:
            if written == len(text):
                return
            reason = "its disk is full"
        raise LedgerError(self.label, reason, "Name a file that can be written")

    def note_entry(self, store: Store) -> None:
        """Append the last entry."""
        # Read again, and not the caller's own entry: another process may have added a later one,
        # and the anchor takes the highest in any case.
        tip = store.reading(lambda rows: rows.tip(""))
        self.note(f"entry {tip.sequence} {tip.hash}")

    def note_steps(self, streams: Sequence[StreamRecord]) -> None:
        """Append the last step of each stream that has taken one."""
        heads = [(stream.entry.sequence, *stream.head()) for stream in streams]
        lines = [f"stream {number} {step} {digest}" for number, step, digest in heads if step]
        if lines:
            self.note(*lines)

    def fault(self, store: Store, secrets: Secrets | None) -> str | None:
        """What it remembers and the ledger lacks, as a sentence; None if nothing.

        Without the secrets, only entries are compared: steps of streams are among the secrets.
        """
        reached = self.read()
        sequence, digest = reached.entry
        # A ledger that went on since is fine. One that lacks the entry, or has another under its
        # number, is an older copy or another history.
        agrees = sequence == 0 or hash_of(store, sequence) == digest
        if agrees and secrets is not None:
            agrees = secrets.store.reading(lambda rows: _has_steps(rows, reached))
        other = (
            f"it is not the ledger that {self.label} knows: "
            "an older copy was put back, or its history was rewritten"
        )
        return None if agrees else other


def hash_of(store: Store, sequence: int) -> str | None:
    """The hash of the entry of a number; None where there is no such entry."""
    entry = store.reading(lambda rows: rows.entry(sequence))
    return None if entry is None else entry.hash


def _has_steps(rows: SecretRows, reached: Reached) -> bool:
    """Whether each stream has the step, with the hash, that the anchor remembers."""
    for number, (step, digest) in reached.streams.items():
        taken = rows.step(number, step)
        if step and (taken is None or taken.hash != digest):
            return False
    return True
