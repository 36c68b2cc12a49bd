"""Streams: charges that are answered step by step. One statement stores what a step publishes and the state it leaves behind.

A step is computed from a row that holds the state, stored only if that row is still the stream's, and shown only when it is on disk.
So two processes cannot both take one step, and a process that is killed leaves either nothing or the whole step. What was computed from
a row that was not the stream's any more is forgotten: nobody has seen it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from sfumato.errors import LedgerError
from sfumato.ledger.chain import payload_digest
from sfumato.ledger.ledger import Entry
from sfumato.ledger.store import Run, Store

Work: TypeAlias = Callable[[int, bytes, list[int]], tuple[bytes, bytes]]
Row: TypeAlias = tuple[int, bytes, int, str, str]

ROW = "SELECT step, state, tallied, head, seal FROM streams WHERE stream = ?"
MOVE = "INSERT INTO moves VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
FIND = "SELECT step, event, output, hash FROM steps WHERE stream = ? AND event = ? AND event <> ''"


class Step(NamedTuple):
    """One step as it was published. ``event`` is "" where none was named; ``hash`` covers all steps up to this one."""

    number: int
    event: str
    output: bytes
    hash: str


class Steps:
    """A stream in the hands of its caller. Any number of processes may hold it; its steps are taken one after another.

    Attributes
    ----------
    entry : Entry
        The reservation that paid for the stream.
    spec : bytes
        What was given when the stream was first opened.
    """

    def __init__(self, entry: Entry, spec: bytes, store: Store) -> None:
        self.entry, self.spec = entry, spec
        self._store, self._spec_digest = store, payload_digest(spec)

    def __repr__(self) -> str:
        return f"Steps(account={self.entry.account!r}, key={self.entry.key!r})"

    def take(self, event: str, work: Work, words: Sequence[bytes] = ()) -> tuple[Step, bool]:
        """Take one step, durably, and return it; or the step that this event took before, and False.

        Parameters
        ----------
        event : str
            "" for a step without a name, which is never taken for another.
        work : callable
            From the number of the step, the state before it, and how often each of the words was counted by then, to the state after it
            and the output. If it raises, nothing is changed. It may be called twice, if another process takes the step meanwhile.
        words : sequence of bytes
            To be counted with the step.

        Raises
        ------
        LedgerError
            If the step cannot be stored; it was then not taken, or, where the disk failed at the last moment, the next call finds it.
        """
        found = None if words else self._store.singly(lambda run: self._try(run, event, work))
        return found or self._store.atomic(lambda db: self._insist(db, event, work, words))

    def _try(self, run: Run, event: str, work: Work) -> tuple[Step, bool] | None:
        """Take the step by one statement, which the ledger's rules refuse if the stream has moved since its row was read: then None."""
        number = self.entry.sequence
        row = run(ROW, (number,))
        found = run(FIND, (number, event)) if event else None  # after the row, so that none is missed that it counts
        if found:
            return Step(*found[0]), False
        taken, values = self._next(row, event, work, [])
        return None if run(MOVE, values) is None else (taken, True)

    def _insist(self, db: sqlite3.Connection, event: str, work: Work, words: Sequence[bytes]) -> tuple[Step, bool]:
        """Take the step while nobody else can write."""
        number = self.entry.sequence
        earlier = find(db, number, event) if event else None
        if earlier is not None:
            return earlier, False
        counts = [_count(db, number, word) for word in words]
        taken, values = self._next(db.execute(ROW, (number,)).fetchall(), event, work, counts)
        db.execute(MOVE, values)
        return taken, True

    def _next(self, rows: list[Row] | None, event: str, work: Work, counts: list[int]) -> tuple[Step, tuple[object, ...]]:
        """Compute a step from the stream's row: what is published, and what stores it together with the row that it leaves behind."""
        if not rows:
            raise _spoilt(self.entry)
        number, ((step, state, tallied, head, seal),) = self.entry.sequence, rows
        if not isinstance(state, bytes) or seal != sealed(number, self._spec_digest, step, state, tallied, head):
            raise _spoilt(self.entry)
        step, tallied = step + 1, tallied + len(counts)
        state, output = work(step, state, counts)
        head = linked(head, number, step, event, output)
        after = sealed(number, self._spec_digest, step, state, tallied, head)
        return Step(step, event, output, head), (number, seal, step, event, output, head, state, tallied, after)

    def since(self, last: Step | None) -> list[Step]:
        """All steps after a given one (None: all there are), in order, each checked against its hash."""
        number, head = (0, self.entry.hash) if last is None else (last.number, last.hash)
        query = "SELECT step, event, output, hash FROM steps WHERE stream = ? AND step > ? ORDER BY step"
        values = self.entry.sequence, number
        found = self._store.reading(lambda db: [Step(*columns) for columns in db.execute(query, values)])
        for step in found:
            number += 1
            sound = step.number == number and isinstance(step.output, bytes)
            if not sound or step.hash != linked(head, self.entry.sequence, number, step.event, step.output):
                raise _spoilt(self.entry)
            head = step.hash
        return found

    def head(self) -> tuple[int, str]:
        """How many steps were taken, and the hash that covers them."""
        query = "SELECT step, head FROM streams WHERE stream = ?"
        step, head = self._store.reading(lambda db: db.execute(query, (self.entry.sequence,)).fetchone())
        return step, head


def _count(db: sqlite3.Connection, stream: int, who: bytes) -> int:
    """Count a word, and return how often it was counted by now."""
    where = (stream, who)
    found = db.execute("SELECT rows FROM tallies WHERE stream = ? AND who = ?", where).fetchone()
    if found is None:
        db.execute("INSERT INTO tallies VALUES (?, ?, 1)", where)
    else:
        db.execute("UPDATE tallies SET rows = rows + 1 WHERE stream = ? AND who = ?", where)
    return 1 if found is None else int(found[0]) + 1


def begin(db: sqlite3.Connection, entry: Entry, spec: bytes, state: bytes) -> None:
    """Write a stream of no steps beside the charge that pays for it."""
    number = entry.sequence
    seal = sealed(number, payload_digest(spec), 0, state, 0, entry.hash)
    db.execute("INSERT INTO streams VALUES (?, ?, 0, ?, 0, ?, ?)", (number, spec, state, entry.hash, seal))


def spec_of(db: sqlite3.Connection, entry: Entry) -> bytes:
    """What a stream was opened with."""
    found = db.execute("SELECT spec FROM streams WHERE stream = ?", (entry.sequence,)).fetchone()
    if found is None:
        raise _spoilt(entry)
    return bytes(found[0])


def find(db: sqlite3.Connection, stream: int, event: str) -> Step | None:
    """The step that an event took."""
    found = db.execute(FIND, (stream, event)).fetchone()
    return None if found is None else Step(*found)


def linked(previous: str, stream: int, step: int, event: str, output: bytes) -> str:
    """The hash of a step, over its parts, each with its length in bytes before it; that of the first continues the hash of the charge."""
    whose, at, name = str(stream), str(step), event.encode("utf-8", "surrogatepass")
    before = f"4:step{len(previous)}:{previous}{len(whose)}:{whose}{len(at)}:{at}{len(name)}:{event}{len(output)}:"
    return hashlib.sha256(before.encode("utf-8", "surrogatepass") + output).hexdigest()


def sealed(stream: int, spec_digest: str, step: int, state: bytes, tallied: int, head: str) -> str:
    """The hash of a stream's own row."""
    whose, at, count = str(stream), str(step), str(tallied)
    before = f"6:stream{len(whose)}:{whose}{len(spec_digest)}:{spec_digest}{len(at)}:{at}{len(state)}:"
    return hashlib.sha256(before.encode() + state + f"{len(count)}:{count}{len(head)}:{head}".encode()).hexdigest()


def faults(db: sqlite3.Connection) -> Iterator[str]:
    """What does not follow in any stream, as sentences that quote neither states nor outputs."""
    paid = dict(db.execute("SELECT sequence, hash FROM entries WHERE kind = 'reserve'").fetchall())
    named = {number for (number,) in db.execute("SELECT stream FROM streams")}
    for table in ("steps", "tallies"):
        for (number,) in db.execute(f"SELECT DISTINCT stream FROM {table}"):
            if number not in named:
                yield f"{table} belong to stream {number}, which is missing"
    for columns in db.execute("SELECT stream, spec, step, state, tallied, head, seal FROM streams ORDER BY stream"):
        number, seal = columns[0], columns[-1]
        if number not in paid:
            yield f"stream {number} has no charge"
            continue
        spec, state = columns[1], columns[3]
        sound = isinstance(spec, bytes) and isinstance(state, bytes)
        if not sound or sealed(number, payload_digest(spec), columns[2], state, *columns[4:6]) != seal:
            yield f"the state of stream {number} was edited: its hash does not match"
        rows = db.execute("SELECT step, event, output, hash FROM steps WHERE stream = ? ORDER BY step", (number,))
        yield from _walk(number, paid[number], rows, (columns[2], columns[5]))
        counted = db.execute("SELECT coalesce(sum(rows), 0) FROM tallies WHERE stream = ?", (number,)).fetchone()[0]
        if counted != columns[4]:
            yield f"the tallies of stream {number} were edited: their sum does not match"


def _walk(stream: int, head: str, rows: Iterable[tuple[int, str, bytes, str]], last: tuple[int, str]) -> Iterator[str]:
    """Follow the chain of one stream to the step that its state has reached."""
    at = 0
    for step, event, output, hashed in rows:
        if step != at + 1:
            yield f"step {step} of stream {stream} follows step {at}: steps are missing or were moved"
        if not isinstance(output, bytes) or hashed != linked(head, stream, step, event, output):
            yield f"step {step} of stream {stream} was edited: its hash does not match"
        at, head = step, hashed
    if (at, head) != last:
        yield f"stream {stream} ends at step {at}, but its state is that of another step: it was cut, or an older state put back"


def _spoilt(entry: Entry) -> LedgerError:
    obstacle = "its stored state is missing or was edited"
    return LedgerError(f"the stream {entry.key!r}", obstacle, "Verify the ledger, and restore the latest whole copy", account=entry.account)
