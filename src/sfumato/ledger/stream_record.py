"""The record of a stream: a charge that is answered step by step.

A stream is kept among the ledger's secrets, in one row that holds its state. A step is computed
from that row and stored together with the state after it, in one transaction; and it is shown only
when it is on disk. So two processes cannot both take one step, and a process that is killed leaves
either nothing or the whole step. The rows take no step that was computed from another row.

The last step leaves no state. It wipes the state before it, the tallies of persons and the secret
that stands for persons, and the store's log is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from sfumato.errors import LedgerError
from sfumato.ledger.entries import OVER, Entry, Step, linked, opened, sealed
from sfumato.ledger.secrets import require_here
from sfumato.ledger.store import (
    MOVED,
    REFUSED,
    REPORT,
    Position,
    SecretRows,
    SecretStore,
    StreamRow,
)

# Computes a step: from its number, the state before it and how often each person was counted, to
# the state after it and the output.
Work: TypeAlias = Callable[[int, bytes, list[int]], tuple[bytes, bytes]]


class StreamRecord:
    """The record of one stream, by which its steps are taken and read.

    Any number of threads and processes may use it; its steps are taken one after another.

    Attributes
    ----------
    entry : Entry
        The reservation that paid for the stream.
    spec : bytes
        What the stream is, as it was given when the stream was first opened.
    secret : bytes
        What else its steps need, given likewise; empty when the stream is over.
    """

    def __init__(self, entry: Entry, spec: bytes, secret: bytes, store: SecretStore) -> None:
        self.entry = entry
        self.spec = spec
        self.secret = secret
        self._store = store
        # Hashed once: these two are part of every seal, and neither spec nor secret ever changes.
        self._spec_digest = opened(spec, secret)
        self._over_digest = opened(spec, b"")

    def __repr__(self) -> str:
        return f"StreamRecord(account={self.entry.account!r}, key={self.entry.key!r})"

    def take(
        self, event: str, work: Work, person_tokens: Sequence[bytes] = ()
    ) -> tuple[Step, bool]:
        """Take one step, durably, or find the step that this event took before.

        Parameters
        ----------
        event : str
            The step's name; no two steps of a stream share one. "" for a step without a name.
        work : callable
            From the number of the step, the state before it, and how often each of the tokens was
            counted by now, to the state after it and the output. If it raises, nothing is changed.
            A state of `OVER` after the step says that it is the last one; before it, that there is
            no further one.
        person_tokens : sequence of bytes
            One for each row of the step, standing for its person; counted with the step.

        Returns
        -------
        tuple of Step and bool
            The step, and whether it was taken now.

        Raises
        ------
        LedgerError
            If the step cannot be stored. Then it was not taken; or, where the disk failed at the
            last moment, it was, and the next call finds it.
        """
        step, is_new, is_over = self._store.writing(
            partial(self._taken, event=event, work=work, person_tokens=person_tokens)
        )
        # What the last step wiped is still in the log of the store, until that is cut.
        if is_over:
            self._store.forget()
        return step, is_new

    def _taken(
        self, rows: SecretRows, event: str, work: Work, person_tokens: Sequence[bytes]
    ) -> tuple[Step, bool, bool]:
        """Take the step, or find it: the step, whether it is taken now, and whether it is the last.

        Nobody else can write meanwhile.
        """
        number = self.entry.sequence
        earlier = rows.step_of(number, event) if event else None
        if earlier is not None:
            return earlier, False, False
        require_here(rows.value(MOVED), self._store.label)
        counts = [rows.count(number, token) for token in person_tokens]
        at = self._sound(rows.position(number))
        state, output = work(at.step + 1, at.state, counts)
        step, after = self._after(at, event, output, state, at.tallied + len(counts))
        if not rows.commit_step(number, at.seal, step, after):
            raise LedgerError(self._store.label, REFUSED, REPORT, account=self.entry.account)
        return step, True, state == OVER

    def _sound(self, at: Position | None) -> Position:
        """The stream's row, if its seal is that of its content: no step continues an edited row."""
        if at is None or not isinstance(at.state, bytes):
            raise damaged_stream(self.entry)
        spec = self._over_digest if at.state == OVER else self._spec_digest
        if at.seal != sealed(self.entry.sequence, spec, at.step, at.state, at.tallied, at.head):
            raise damaged_stream(self.entry)
        return at

    def _after(
        self,
        at: Position,
        event: str,
        output: bytes,
        state: bytes,
        tallied: int,
    ) -> tuple[Step, Position]:
        """The step that publishes an output, and the stream's row after it."""
        number = self.entry.sequence
        step = at.step + 1
        head = linked(at.head, number, step, event, output)
        spec = self._spec_digest
        if state == OVER:
            tallied = 0
            spec = self._over_digest
        seal = sealed(number, spec, step, state, tallied, head)
        return Step(step, event, output, head), Position(step, state, tallied, head, seal)

    def put(self, rows: SecretRows, published: Step, state: bytes, *, tallied: int) -> None:
        """Write a step that was published by the ledger of which this one is a copy."""
        at = self._sound(rows.position(self.entry.sequence))
        step, after = self._after(at, published.event, published.output, state, tallied)
        if not rows.commit_step(self.entry.sequence, at.seal, step, after):
            raise damaged_stream(self.entry)

    def since(self, last: Step | None) -> list[Step]:
        """All steps after a given one (None: all there are), each checked against its hash."""
        stream = self.entry.sequence
        number, head = (0, self.entry.hash) if last is None else (last.number, last.hash)
        steps = self._store.reading(lambda rows: rows.steps(stream, number))
        for step in steps:
            number += 1
            sound = step.number == number and isinstance(step.output, bytes)
            if not sound or step.hash != linked(head, stream, number, step.event, step.output):
                raise damaged_stream(self.entry)
            head = step.hash
        return steps

    def head(self) -> tuple[int, str]:
        """How many steps were taken, and the hash that covers them."""
        at = self._store.reading(lambda rows: rows.position(self.entry.sequence))
        if at is None:
            raise damaged_stream(self.entry)
        return at.step, at.head


def begin(rows: SecretRows, entry: Entry, spec: bytes, state: bytes, secret: bytes) -> None:
    """Write a stream of no steps, if it is not there yet."""
    number = entry.sequence
    if rows.stream(number) is not None:
        return
    seal = sealed(number, opened(spec, secret), 0, state, 0, entry.hash)
    rows.add_stream(StreamRow(number, spec, secret, Position(0, state, 0, entry.hash, seal)))


def found(rows: SecretRows, entry: Entry, store: SecretStore) -> StreamRecord:
    """The stream that a reservation paid for."""
    row = rows.stream(entry.sequence)
    if row is None or not isinstance(row.spec, bytes) or not isinstance(row.secret, bytes):
        raise damaged_stream(entry)
    # If an older book was put back without its secrets, the numbers of its next charges are those
    # of streams in the secrets, which other charges paid for.
    first = rows.step(entry.sequence, 1) if row.at.step else None
    if first is not None and isinstance(first.output, bytes):
        continues = linked(entry.hash, entry.sequence, 1, first.event, first.output) == first.hash
    else:
        continues = not row.at.step and row.at.head == entry.hash
    if not continues:
        raise damaged_stream(entry)
    return StreamRecord(entry, row.spec, row.secret, store)


def damaged_stream(entry: Entry) -> LedgerError:
    """The refusal of a stream whose rows do not follow from each other."""
    return LedgerError(
        f"the stream {entry.key!r}",
        "its stored state is missing or was edited",
        "Verify the ledger, and restore the latest whole copy",
        account=entry.account,
    )
