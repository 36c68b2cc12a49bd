"""Copy a ledger of version 0.1 to a new file, without what it should not have kept.

Version 0.1 hashed the state of the data file into digests and default keys, noted when an answer
was ready, and kept streams with their secrets in the one file. In the copy, digests and default
keys are random; entries that follow a charge have its time; and secrets are in a file of their own,
without those of streams that are over.

Entries keep their numbers, and have new hashes. The old hashes are among the secrets, so that
receipts of that time can still be checked.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote

from sfumato.errors import LedgerError, UsageError
from sfumato.ledger import audit_streams, journal, stream_record
from sfumato.ledger.audit import Books, audited, digest_of
from sfumato.ledger.chain import payload_digest, sealed
from sfumato.ledger.entries import BEGUN, MIXED, OVER, Binding, Entry, Step
from sfumato.ledger.secrets import DIGEST_BYTES, KEY_BYTES, Name, Secrets, new_identity
from sfumato.ledger.sqlite.failures import error_name
from sfumato.ledger.sqlite.public import all_entries, highest_of, totals_of
from sfumato.ledger.sqlite.schema import BOOK, damage, statements
from sfumato.ledger.sqlite.store import SQLiteStore
from sfumato.ledger.store import PublicRows, SecretRows

SCRIPTS = ("schema.sql", "streams.sql", "moves.sql")  # what versions 1, 2 and 3 each added
PAST_STATE = b"-"  # stands for the states between two old steps, which nobody kept


class OldStream(NamedTuple):
    """What a stream of version 0.1 was opened with: its public part, its secret, and so on."""

    spec: bytes
    secret: bytes
    title: str
    horizon: int | None


class Reader(Protocol):
    """Reads what a ledger keeps as bytes only: answers, and what streams were opened with."""

    def answer(self, payload: bytes, entry: Entry) -> bytes:
        """A stored answer whose receipts name the entry as it is now."""

    def binding(self, payload: bytes) -> Binding | None:
        """What a stored answer protects; None where its parts protect different persons."""

    def stream(self, spec: bytes) -> OldStream:
        """What a stream was opened with."""


@dataclass(frozen=True)
class Upgraded:
    """What was copied.

    Attributes
    ----------
    entries, streams, finished : int
        How many entries and streams there are, and how many streams are over: their secrets were
        left behind.
    mixed : tuple of str
        Accounts whose charges protect different persons: their totals guarantee nothing.
    """

    entries: int
    streams: int
    finished: int
    mixed: tuple[str, ...]


def upgrade(old: str | Path, new: str | Path, reader: Reader) -> Upgraded:
    """Copy a ledger of version 0.1 to a new file; the old one is only read.

    Raises
    ------
    UsageError
        If there is a file at ``new`` already.
    LedgerError
        If the old file is no ledger of version 0.1, or does not verify.
    """
    target = os.path.realpath(new)
    ends = ("", ".secrets", "-wal", "-shm", ".secrets-wal", ".secrets-shm")
    made = [target + end for end in ends]
    for path in made:
        if os.path.lexists(path):
            raise UsageError(
                f"upgrading to {str(new)!r}",
                "there is such a file already",
                "Name a file that does not exist yet",
            )
    with closing(_opened(old)) as past:
        _check(old, past)
        try:
            return _Copy(past, target, reader).run()
        except BaseException:
            for path in made:
                with suppress(FileNotFoundError):
                    os.remove(path)
            raise


def _opened(old: str | Path) -> sqlite3.Connection:
    """The old ledger in memory, with the tables that the last of the old versions had."""
    label = f"the ledger {str(old)!r}"
    path = os.path.realpath(old)
    if not os.path.lexists(path):
        raise LedgerError(label, "there is no such file", "Check the path")
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as file:
            file.backup(memory)
        application = memory.execute("PRAGMA application_id").fetchone()[0]
        version = memory.execute("PRAGMA user_version").fetchone()[0]
        if application == BOOK.application and version in range(1, BOOK.version):
            folder = resources.files("sfumato.ledger.sqlite").joinpath("old")
            for name in SCRIPTS[version:]:
                for statement in statements(folder.joinpath(name).read_text(encoding="utf-8")):
                    memory.execute(statement)
            return memory
        obstacle = "it is not a ledger of version 0.1"
    except sqlite3.Error as error:
        obstacle = f"it cannot be read ({error_name(error)})"
    memory.close()
    remedy = "Name a ledger that version 0.1 wrote; later ones need no upgrade"
    raise LedgerError(label, obstacle, remedy)


def _check(old: str | Path, past: sqlite3.Connection) -> None:
    """Refuse a ledger that was edited: its copy, with new hashes, would look whole."""
    payloads = past.execute("SELECT sequence, payload FROM payloads").fetchall()
    hashes = {number: digest_of(payload) for number, payload in payloads}
    books = Books(all_entries(past), totals_of(past), hashes, highest_of(past), {})
    found = audited(books, damage=damage(past))
    faults = [*found.verification.faults, *_stream_faults(past, found.paid)]
    if faults:
        remedy = "Restore a copy that verifies, and upgrade that one"
        raise LedgerError(f"the ledger {str(old)!r}", faults[0], remedy)


class _Stream(NamedTuple):
    stream: int
    spec: bytes
    step: int
    state: bytes
    tallied: int
    head: str
    seal: str


def _streams(past: sqlite3.Connection) -> list[_Stream]:
    query = "SELECT stream, spec, step, state, tallied, head, seal FROM streams ORDER BY stream"
    return [_Stream(*columns) for columns in past.execute(query).fetchall()]


def _steps(past: sqlite3.Connection, stream: int) -> list[Step]:
    query = "SELECT step, event, output, hash FROM steps WHERE stream = ? ORDER BY step"
    return [Step(*columns) for columns in past.execute(query, (stream,)).fetchall()]


def _stream_faults(past: sqlite3.Connection, paid: Mapping[int, str]) -> list[str]:
    faults: list[str] = []
    for old in _streams(past):
        number = old.stream
        spec = payload_digest(old.spec)
        if old.seal != sealed(number, spec, old.step, old.state, old.tallied, old.head):
            faults.append(f"the state of stream {number} was edited: its hash does not match")
        reached = (old.step, old.head)
        steps = _steps(past, number)
        faults.extend(audit_streams.chain_faults(number, paid[number], steps, reached))
    return faults


class _Copy:
    """One upgrade: copies the old tables to the new files."""

    def __init__(self, past: sqlite3.Connection, target: str, reader: Reader) -> None:
        self._past = past
        self._reader = reader
        self._entries = all_entries(past)
        self._opened = {old.stream: reader.stream(old.spec) for old in _streams(past)}
        self._names: dict[tuple[str, str], Name] = {}
        self._charges: dict[tuple[str, str], Entry] = {}
        self._found: dict[str, set[Binding | None]] = {}
        self._store = SQLiteStore(target)
        identity = self._store.writing(new_identity)
        self._secrets = Secrets(self._store.secrets(create=True), identity, create=True)

    def run(self) -> Upgraded:
        """Copy everything."""
        try:
            self._name_requests()
            self._store.writing(self._copy_entries)
            finished = sum(self._copy_stream(old) for old in _streams(self._past))
            mixed = self._store.writing(self._bind)
            self._secrets.store.forget()
        finally:
            self._secrets.close()
            self._store.close()
        return Upgraded(len(self._entries), len(self._opened), finished, mixed)

    def _name_requests(self) -> None:
        """Give each question a random digest, and a random key where it was made of the old one."""
        charges = [entry for entry in self._entries if entry.kind == "reserve"]
        # Version 0.1 made a default key of the first half of the digest.
        default_keys = {entry.digest[:32] for entry in charges}
        for entry in charges:
            derived = entry.key == entry.digest[:32]
            # A user may also have given the default key of another question, as its receipt printed
            # it. "+" begins what a new draw added to a key.
            hashes_data = entry.key.partition("+")[0] in default_keys
            key = secrets.token_hex(KEY_BYTES) if hashes_data else entry.key
            name = Name(key, secrets.token_hex(DIGEST_BYTES))
            stream = self._opened.get(entry.sequence)
            asked = entry.digest if stream is None else f"{entry.digest} of {stream.title}"
            tag = self._secrets.tag(entry.account, asked)
            self._secrets.adopt(entry.account, name, tag, derived=derived)
            self._names[entry.account, entry.key] = name
        hashes = [(entry.sequence, entry.hash) for entry in self._entries]
        self._secrets.store.writing(lambda rows: rows.add_replaced(hashes))

    def _copy_entries(self, rows: PublicRows) -> None:
        for name, (rule, total) in totals_of(self._past).items():
            rows.add_account(name, rule, total)
        for entry in self._entries:
            self._copy_entry(rows, entry)
        for number, opened in self._opened.items():
            draft = journal.follow(self._charge(number), "store", note=BEGUN)
            journal.store_answer(rows, draft, opened.spec)

    def _charge(self, number: int) -> Entry:
        """The charge of a stream, as it was copied."""
        return next(charge for charge in self._charges.values() if charge.sequence == number)

    def _copy_entry(self, rows: PublicRows, old: Entry) -> None:
        at = (old.account, old.key)
        name = self._names.get(at, Name(old.key, old.digest))
        # Only charges, openings and resumptions were dated before the data were read.
        charge = self._charges.get(at)
        time = old.time if charge is None or old.kind == "resume" else charge.time
        draft = journal.Draft(
            old.account,
            old.kind,
            name.key,
            name.digest,
            old.cost,
            old.note,
            until=old.until,
            holder=old.holder,
            time=time,
        )
        if old.kind != "store":
            entry = journal.append(rows, draft)
            if old.kind == "reserve":
                self._charges[at] = entry
            return
        query = "SELECT payload FROM payloads WHERE sequence = ?"
        payload = self._past.execute(query, (old.sequence,)).fetchone()[0]
        assert charge is not None
        self._found.setdefault(old.account, set()).add(self._reader.binding(payload))
        journal.store_answer(rows, draft, self._reader.answer(payload, charge))

    def _copy_stream(self, old: _Stream) -> bool:
        """Copy one stream; return whether it is over, and its secrets were left behind."""
        opened = self._opened[old.stream]
        charge = self._charge(old.stream)
        over = opened.horizon == old.step
        secret = b"" if over else opened.secret
        taken = _steps(self._past, old.stream)
        query = "SELECT who, rows FROM tallies WHERE stream = ?"
        tallies = [] if over else self._past.execute(query, (old.stream,)).fetchall()

        def copy(rows: SecretRows) -> None:
            stream_record.begin(
                rows, charge, opened.spec, PAST_STATE if taken else old.state, secret
            )
            found = stream_record.found(rows, charge, self._secrets.store)
            for step in taken[:-1]:
                found.put(rows, step, PAST_STATE, tallied=0)
            for step in taken[-1:]:
                state = OVER if over else old.state
                found.put(rows, step, state, tallied=0 if over else old.tallied)
            for who, count in tallies:
                for _ in range(count):
                    rows.count(old.stream, who)

        self._secrets.store.writing(copy)
        self._found.setdefault(charge.account, set()).add(self._reader.binding(opened.spec))
        return over

    def _bind(self, rows: PublicRows) -> tuple[str, ...]:
        """Bind each account that protects the same persons throughout; return the others."""
        mixed = []
        for account, found in self._found.items():
            bindings = {dataclasses.replace(each, data="") for each in found if each is not None}
            if len(bindings) == 1 and None not in found:
                journal.bind(rows, account, bindings.pop().protects, "")
            else:
                journal.bind(rows, account, MIXED, "")
                mixed.append(account)
        return tuple(mixed)
