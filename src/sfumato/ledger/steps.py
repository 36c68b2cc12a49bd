"""Streams: charges that are answered step by step. One statement stores what a step publishes and the state it leaves behind.

They are kept among the ledger's secrets. The last step leaves no state: it wipes the state before it, the tallies of persons and
the secret that stood for them, and the file's log is cut.

A step is computed from a row that holds the state, stored only if that row is still the stream's, and shown only when it is on disk.
So two processes cannot both take one step, and a process that is killed leaves either nothing or the whole step. What was computed from
a row that was not the stream's any more is forgotten: nobody has seen it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from sfumato.errors import LedgerError
from sfumato.ledger.chain import payload_digest
from sfumato.ledger.ledger import Entry
from sfumato.ledger.store import Run, Store

Work: TypeAlias = Callable[[int, bytes, list[int]], tuple[bytes, bytes]]
Row: TypeAlias = tuple[int, bytes, int, str, str]

OVER = b""  # the state of a stream that has taken its last step

ROW = "SELECT step, state, tallied, head, seal FROM streams WHERE stream = ?"
MOVE = "INSERT INTO moves VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
FIND = "SELECT step, event, output, hash FROM steps WHERE stream = ? AND event = ? AND event <> ''"


class Step(NamedTuple):
    """One step as it was published. ``event`` is "" where none was named; ``hash`` covers all steps up to this one."""

    number: int
    event: str
    output: bytes
    hash: str


class _Taken(NamedTuple):
    """A step, whether it was taken now, and whether it was the last."""

    step: Step
    fresh: bool
    over: bool = False


class Steps:
    """A stream in the hands of its caller. Any number of processes may hold it; its steps are taken one after another.

    Attributes
    ----------
    entry : Entry
        The reservation that paid for the stream.
    spec : bytes
        What was given when the stream was first opened.
    secret : bytes
        Likewise; empty when the stream is over.
    """

    def __init__(self, entry: Entry, spec: bytes, secret: bytes, store: Store) -> None:
        self.entry, self.spec, self.secret = entry, spec, secret
        self._store = store
        self._spec_digest, self._over_digest = opened(spec, secret), opened(spec, b"")

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
            A state of `OVER` after it says that this step is the last; before it, that there is no further one.
        words : sequence of bytes
            To be counted with the step.

        Raises
        ------
        LedgerError
            If the step cannot be stored; it was then not taken, or, where the disk failed at the last moment, the next call finds it.
        """
        found = None if words else self._store.singly(lambda run: self._try(run, event, work))
        taken = found or self._store.atomic(lambda db: self._insist(db, event, work, words))
        if taken.over:
            self._store.forget_log()
        return taken.step, taken.fresh

    def _try(self, run: Run, event: str, work: Work) -> _Taken | None:
        """Take the step by one statement, which the ledger's rules refuse if the stream has moved since its row was read: then None."""
        number = self.entry.sequence
        row = run(ROW, (number,))
        found = run(FIND, (number, event)) if event else None  # after the row, so that none is missed that it counts
        if found:
            return _Taken(Step(*found[0]), fresh=False)
        taken, values = self._next(row, event, work, [])
        return None if run(MOVE, values) is None else taken

    def _insist(self, db: sqlite3.Connection, event: str, work: Work, words: Sequence[bytes]) -> _Taken:
        """Take the step while nobody else can write."""
        number = self.entry.sequence
        earlier = find(db, number, event) if event else None
        if earlier is not None:
            return _Taken(earlier, fresh=False)
        counts = [count(db, number, word) for word in words]
        taken, values = self._next(db.execute(ROW, (number,)).fetchall(), event, work, counts)
        db.execute(MOVE, values)
        return taken

    def _next(self, rows: list[Row] | None, event: str, work: Work, counts: list[int]) -> tuple[_Taken, tuple[object, ...]]:
        """Compute a step from the stream's row: what is published, and what stores it together with the row that it leaves behind."""
        if not rows:
            raise _spoilt(self.entry)
        number = self.entry.sequence
        ((step, state, tallied, head, seal),) = rows
        spec = self._over_digest if state == OVER else self._spec_digest
        if not isinstance(state, bytes) or seal != sealed(number, spec, step, state, tallied, head):
            raise _spoilt(self.entry)
        step += 1
        state, output = work(step, state, counts)
        tallied += len(counts)
        return self._after(seal, head, step, event, output, state=state, tallied=tallied)

    def _after(
        self, seal: str, head: str, step: int, event: str, output: bytes, *, state: bytes, tallied: int
    ) -> tuple[_Taken, tuple[object, ...]]:
        """A step, and what stores it after the row of a seal and a head."""
        number = self.entry.sequence
        head = linked(head, number, step, event, output)
        over = state == OVER
        if over:
            tallied = 0
        spec = self._over_digest if over else self._spec_digest
        after = sealed(number, spec, step, state, tallied, head)
        values = (number, seal, step, event, output, head, state, tallied, after)
        return _Taken(Step(step, event, output, head), fresh=True, over=over), values

    def put(self, db: sqlite3.Connection, event: str, output: bytes, *, state: bytes, tallied: int) -> None:
        """Write a step that was published elsewhere, with the state that it leaves here."""
        ((step, _, _, head, seal),) = db.execute(ROW, (self.entry.sequence,)).fetchall()
        _, values = self._after(seal, head, step + 1, event, output, state=state, tallied=tallied)
        db.execute(MOVE, values)

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


def count(db: sqlite3.Connection, stream: int, who: bytes) -> int:
    """Count a word, and return how often it was counted by now."""
    where = (stream, who)
    found = db.execute("SELECT rows FROM tallies WHERE stream = ? AND who = ?", where).fetchone()
    if found is None:
        db.execute("INSERT INTO tallies VALUES (?, ?, 1)", where)
    else:
        db.execute("UPDATE tallies SET rows = rows + 1 WHERE stream = ? AND who = ?", where)
    return 1 if found is None else int(found[0]) + 1


def begin(db: sqlite3.Connection, entry: Entry, spec: bytes, state: bytes, secret: bytes) -> None:
    """Write a stream of no steps, if it is not there yet."""
    number = entry.sequence
    if has(db, entry):
        return
    seal = sealed(number, opened(spec, secret), 0, state, 0, entry.hash)
    columns = (number, spec, secret, 0, state, 0, entry.hash, seal)
    db.execute("INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?, ?, ?)", columns)


def has(db: sqlite3.Connection, entry: Entry) -> bool:
    """Whether there is a stream that a reservation paid for."""
    query = "SELECT 1 FROM streams WHERE stream = ?"
    return db.execute(query, (entry.sequence,)).fetchone() is not None


def found(db: sqlite3.Connection, entry: Entry, store: Store) -> Steps:
    """The stream that a reservation paid for."""
    query = "SELECT spec, secret, step, head FROM streams WHERE stream = ?"
    columns = db.execute(query, (entry.sequence,)).fetchone()
    if columns is None or not all(isinstance(column, bytes) for column in columns[:2]):
        raise _spoilt(entry)
    spec, secret, step, head = columns
    # Where an older ledger was put back without its secrets, they know streams that other charges of these numbers paid for.
    if not (_begins_with(db, entry) if step else head == entry.hash):
        raise _spoilt(entry)
    return Steps(entry, spec, secret, store)


def _begins_with(db: sqlite3.Connection, entry: Entry) -> bool:
    """Whether the first step of a stream continues the hash of its charge."""
    query = "SELECT event, output, hash FROM steps WHERE stream = ? AND step = 1"
    columns = db.execute(query, (entry.sequence,)).fetchone()
    if columns is None or not isinstance(columns[1], bytes):
        return False
    event, output, hashed = columns
    return bool(hashed == linked(entry.hash, entry.sequence, 1, event, output))


def find(db: sqlite3.Connection, stream: int, event: str) -> Step | None:
    """The step that an event took."""
    found = db.execute(FIND, (stream, event)).fetchone()
    return None if found is None else Step(*found)


def linked(previous: str, stream: int, step: int, event: str, output: bytes) -> str:
    """The hash of a step, over its parts, each with its length in bytes before it; that of the first continues the hash of the charge."""
    whose, at, name = str(stream), str(step), event.encode("utf-8", "surrogatepass")
    before = f"4:step{len(previous)}:{previous}{len(whose)}:{whose}{len(at)}:{at}{len(name)}:{event}{len(output)}:"
    return hashlib.sha256(before.encode("utf-8", "surrogatepass") + output).hexdigest()


def opened(spec: bytes, secret: bytes) -> str:
    """The hash of what a stream was opened with."""
    public = payload_digest(spec)
    return payload_digest(public.encode() + secret) if secret else public


def sealed(stream: int, spec_digest: str, step: int, state: bytes, tallied: int, head: str) -> str:
    """The hash of a stream's own row."""
    whose, at, count = str(stream), str(step), str(tallied)
    before = f"6:stream{len(whose)}:{whose}{len(spec_digest)}:{spec_digest}{len(at)}:{at}{len(state)}:"
    return hashlib.sha256(before.encode() + state + f"{len(count)}:{count}{len(head)}:{head}".encode()).hexdigest()


def hash_at(db: sqlite3.Connection, stream: int, step: int) -> str | None:
    """The hash of one step; None where it was not taken."""
    query = "SELECT hash FROM steps WHERE stream = ? AND step = ?"
    found = db.execute(query, (stream, step)).fetchone()
    return None if found is None else str(found[0])


def faults(db: sqlite3.Connection, paid: Mapping[int, str], begun: Mapping[int, str], last: int) -> Iterator[str]:
    """What does not follow in any stream, as sentences that quote neither states nor outputs.

    ``paid`` has the hash of each reservation up to entry ``last`` of the ledger, ``begun`` for those of streams that of
    what they were opened with; streams that were paid for later are not judged.
    """
    yield from _strays(db, begun)
    query = "SELECT stream, spec, secret, step, state, tallied, head, seal FROM streams ORDER BY stream"
    for number, spec, secret, step, state, tallied, head, seal in db.execute(query):
        if number > last:
            continue
        if number not in paid:
            yield f"stream {number} has no charge"
            continue
        sound = all(isinstance(column, bytes) for column in (spec, secret, state))
        if not sound or sealed(number, opened(spec, secret), step, state, tallied, head) != seal:
            yield f"the state of stream {number} was edited: its hash does not match"
        if sound and begun.get(number, payload_digest(spec)) != payload_digest(spec):
            yield f"stream {number} was opened with something else than its entry says"
        rows = db.execute("SELECT step, event, output, hash FROM steps WHERE stream = ? ORDER BY step", (number,))
        yield from walk(number, paid[number], rows, (step, head))
        total = "SELECT coalesce(sum(rows), 0) FROM tallies WHERE stream = ?"
        if db.execute(total, (number,)).fetchone()[0] != tallied:
            yield f"the tallies of stream {number} were edited: their sum does not match"


def _strays(db: sqlite3.Connection, begun: Mapping[int, str]) -> Iterator[str]:
    """Rows without their stream, and streams that were lost."""
    named = {number for (number,) in db.execute("SELECT stream FROM streams")}
    for table in ("steps", "tallies"):
        for (number,) in db.execute(f"SELECT DISTINCT stream FROM {table}"):
            if number not in named:
                yield f"{table} belong to stream {number}, which is missing"
    for number in sorted(begun.keys() - named):
        yield f"stream {number} is missing from the secrets"


def walk(stream: int, head: str, rows: Iterable[tuple[int, str, bytes, str]], last: tuple[int, str]) -> Iterator[str]:
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
