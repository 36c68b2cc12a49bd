"""A stream: a counter that was paid for, taking one durable step after another.

``publisher.open`` charges first and hands out a ``Stream`` only when the charge is on disk; there
is no other way to get one. Each push reads its increment into integers, takes one step of the
machine inside the ledger's transaction, and shows the total when that transaction is on disk.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import GenericAlias, TracebackType
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np

from sfumato._version import __version__
from sfumato.answers.codec import UNREADABLE, from_bytes, to_bytes
from sfumato.answers.estimate import error_probability
from sfumato.answers.origin import signed_part
from sfumato.answers.receipt import Receipt
from sfumato.answers.release import Release
from sfumato.counters.bands import Errors
from sfumato.counters.calendar import Steps as CalendarSteps
from sfumato.counters.increments import Row, event_text, precedes
from sfumato.counters.machine import Machine, Whole
from sfumato.counters.question import Counter, CounterRelease, Settled, scaled
from sfumato.counters.totals import Total
from sfumato.data.step_reader import Arrival
from sfumato.errors import (
    InternalError,
    LedgerError,
    SfumatoError,
    UsageError,
    place_of,
    without_frames,
)
from sfumato.forking import renewed_in_children
from sfumato.ledger import Entry, Ledger, Step, StreamRecord
from sfumato.ledger.entries import OVER
from sfumato.ledger.stream_record import Work
from sfumato.random.bits import Bits

S = TypeVar("S")

CONFIDENCE = 0.95
AGAIN = "Push the step again under its name: if it was taken after all, it counts once."
_OUTPUT = msgspec.json.Decoder(tuple[int, ...])

Bring: TypeAlias = Callable[[str], tuple[str, Whole]]
"""From the name of the last event to that of this one, and what it brings; or a refusal."""

Advance: TypeAlias = Callable[[bytes, Bring, Bits], tuple[bytes, Whole]]
"""Takes one step of a machine: from the bytes before it to the bytes after it, and the output."""


class Opening(msgspec.Struct, frozen=True):
    """What is stored with the charge. All of it is public."""

    settled: Settled
    private: bool
    charged: str
    source: str


class _Shown:
    """The steps of a stream that were read so far, and the totals that they stand for.

    Totals are read one after another. After an interrupt in between, or steps that a signal handler
    took in between, they are read again from the beginning.
    """

    def __init__(self, settled: Settled) -> None:
        self._machine = settled.machine
        self._grain = settled.grain
        self._read = self._machine.follow()
        self._fed = 0
        self._found: dict[int, tuple[Step, list[float]]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, number: int) -> tuple[Step, list[float]]:
        return self._found[number]

    def steps(self) -> list[Step]:
        """All of them, in order."""
        return [step for step, _ in self._found.values()]

    def add(self, step: Step) -> None:
        """Read the next one."""
        if self._fed != len(self._found):
            self._begin_again()
        self._fed += 1
        self._found[step.number] = step, scaled(self._read(_output(step)), self._grain)

    def _begin_again(self) -> None:
        self._fed = -1
        read = self._machine.follow()
        known = self.steps()
        for step in known:
            read(_output(step))
        self._read = read
        self._fed = len(known)


class Stream:
    """A running total that is published step by step; ``publisher.open`` makes it.

    It is a context manager. Closing it frees nothing and loses nothing: opening the same key again
    resumes after the last step. Several threads and processes may hold one stream; their steps are
    taken one after another.

    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.empty((0, 1)), sf.Domain(x=sf.Interval(0, 1)), name="visits")
    >>> counter = sf.Counter(horizon=365)
    >>> publisher = sf.Publisher(src, budget="1")
    >>> with publisher.open(counter, epsilon="1", key="visits") as stream:
    ...     total = stream.push(20, event="2026-11-20")
    ...     total = stream.push(31, event="2026-11-21")
    ...     again = stream.push(31, event="2026-11-21")  # counted once
    ...     release = stream.history()
    >>> total.step, again == total, release.values.shape
    (2, True, (2,))
    """

    def __init__(self, steps: StreamRecord, noise: Bits, ledger: Ledger) -> None:
        self._steps = steps
        self._noise = noise
        self._ledger = ledger
        self._closed = False
        self._opening = _opening(steps)
        self._settled = self._opening.settled
        self._machine = self._settled.machine
        # Of a union of machines, each of which has states of its own, no one type of state follows.
        self._advance = _advancing(self._machine)  # type: ignore[misc]
        self._calendar = self._settled.counter.calendar
        self._reader = self._settled.reader()
        self._renew()
        renewed_in_children(self, Stream._renew)
        self._errors = Errors(self._machine, self._settled.grain, error_probability(CONFIDENCE))
        self._catch_up()

    def _renew(self) -> None:
        """Forget what was read, as a child process must, whose parent may have been reading."""
        self._shown = _Shown(self._settled)
        self._lock = threading.RLock()

    # --- what it is -------------------------------------------------------------------------------

    @property
    def counter(self) -> Counter:
        """The counter that was opened."""
        return self._settled.counter

    @property
    def step(self) -> int:
        """How many steps were taken, by anyone."""
        return self._steps.head()[0]

    @property
    def horizon(self) -> int | None:
        """How many steps there may be; None: any number."""
        return self._machine.horizon

    @property
    def remaining(self) -> int | None:
        """How many steps are left."""
        return None if self.horizon is None else self.horizon - self.step

    def __repr__(self) -> str:
        what = f"{self._settled.counter.title}; {self._settled.cost}"
        return f"<Stream {self._steps.entry.key!r}: {what}>"

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take no more steps through this object; closing twice is harmless."""
        self._closed = True

    # --- what it does -----------------------------------------------------------------------------

    @without_frames
    def push(
        self,
        increment: object,
        event: object = None,
        *,
        persons: Sequence[object] | None = None,
    ) -> Total:
        """Take one step, durably, and return the running total.

        Parameters
        ----------
        increment : int, number, label, dict or sequence
            What the step brings. Events: their number. Sums: one value or several, each of one row.
            With categories: a dict from label to these, a sequence of labels, or for sums a
            sequence of (label, value) pairs.
        event : str, int, date or None
            A name for the step. The same name again counts nothing and returns the same total,
            whatever is brought. A name before the last one (whole numbers by size, else as text) is
            refused, or counted at the present step with ``late="count"``. With a calendar: a moment
            in the step, or its name; steps before it that are not published yet are published
            first, without rows. None: the next step.
        persons : sequence or None
            Who stands behind each row, where the source names a person column: of each person the
            first ``rows_per_person`` rows of the whole stream count.

        Raises
        ------
        UsageError
            If the horizon is reached, the event comes too late or is no step of the calendar, or
            the increment or persons do not fit. Nothing is taken.
        DataError
            If a value is a text, or another thing that can be no number. Nothing is taken.
        LedgerError
            If the step cannot be stored.
        """
        self._check_open()
        rows, words = self._read(increment, persons)
        with self._lock:
            if self._calendar is None:
                return self._total(self._take(event_text(event), rows, words)[0].number)
            while True:
                place = self._place(self._calendar, event)
                self._publish_before(self._calendar, place)
                taken, fresh = self._take(self._calendar.name(place), rows, words)
                # Else another took what was the next step: then the one after it.
                if fresh or event is not None:
                    return self._total(taken.number)

    @without_frames
    def advance(self, until: object = None) -> list[Total]:
        """Publish the calendar's steps that are still missing, without rows; return their totals.

        Parameters
        ----------
        until : str, date or None
            The last step to publish; None: that of the calendar.

        Raises
        ------
        UsageError
            If the stream is closed or has no calendar, or ``until`` is no step of it.
        """
        self._check_open()
        if self._calendar is None:
            raise UsageError(
                "advancing a stream",
                "it has no calendar",
                "Open sf.Counter(sf.Calendar(...)), or push each step",
            )
        with self._lock:
            self._catch_up()
            before = len(self._shown)
            last = len(self._calendar) - 1 if until is None else self._place(self._calendar, until)
            self._publish_before(self._calendar, last + 1)
            return list(self.totals(before + 1))

    def _publish_before(self, calendar: CalendarSteps, place: int) -> None:
        nobody: list[bytes | None] | None = None if self._settled.unit.person is None else []
        for missing in range(len(self._shown), place):
            self._take(calendar.name(missing), [], nobody)

    def _take(
        self,
        name: str,
        rows: list[Row],
        words: list[bytes | None] | None,
    ) -> tuple[Step, bool]:
        """Take a step, durably, or find the one that was taken under this name, and say which."""
        paired = [] if words is None else zip(rows, words, strict=True)
        known = [(row, word) for row, word in paired if row[0] >= 0 and word is not None]

        def work(number: int, stored: bytes, counts: list[int]) -> tuple[bytes, bytes]:
            def bring(last: str) -> tuple[str, Whole]:
                self._check(number, name, last)
                kept = rows
                if words is not None:
                    counted = zip(known, counts, strict=True)
                    kept = [row for (row, _), count in counted if self._fits(count)]
                return name or last, self._summed(kept)

            self._check_horizon(number)
            after, output = self._advance(stored, bring, self._noise)
            # The last step leaves nothing behind that could tell what the increments were.
            return OVER if number == self.horizon else after, msgspec.json.encode(output)

        taken, fresh = self._guarded(name, work, [word for _, word in known])
        if taken.number == len(self._shown) + 1:
            self._shown.add(taken)
        elif taken.number > len(self._shown):
            try:
                self._catch_up()
            except LedgerError as error:
                on_disk = f"Step {taken.number:,} is on disk, and history() will show it"
                error.add_note(f"{on_disk}: do not push it again without its name.")
                raise
        return taken, fresh

    def _guarded(self, name: str, work: Work, words: list[bytes]) -> tuple[Step, bool]:
        """Let no exception out that could carry a value.

        Ours pass, without the frames of a step; others become a fault of ours.
        """
        try:
            return self._steps.take(name, work, words)
        except (SfumatoError, KeyboardInterrupt) as error:
            error.__traceback__ = None
            raise
        except Exception as error:
            place = place_of(error)
        # Raised outside the except block: the error above stays out of __context__, with whatever
        # it may quote.
        failed = f"A step failed: {place}. Please report this line; it holds no data."
        raise InternalError(f"{failed} {AGAIN}")

    @without_frames
    def history(self) -> CounterRelease:
        """All totals so far, as a release. Costs nothing."""
        with self._lock:
            self._catch_up()
            steps = self._shown.steps()
        return signed(_history(self._opening, self._steps.entry, steps), self._ledger)

    def __len__(self) -> int:
        return self.step

    def __iter__(self) -> Iterator[Total]:
        """The totals that were published so far, in order."""
        return self.totals()

    @without_frames
    def totals(self, first: int = 1) -> Iterator[Total]:
        """The totals that were published so far, from a step on."""
        with self._lock:
            self._catch_up()
        return map(self._total, range(first, len(self._shown) + 1))

    # --- how it does it ---------------------------------------------------------------------------

    def _read(
        self,
        increment: object,
        persons: Sequence[object] | None,
    ) -> tuple[list[Row], list[bytes | None] | None]:
        """Rows in grains, and for each a word that stands for its person."""
        named = self._settled.unit.person
        if named is None:
            if persons is not None:
                raise UsageError(
                    "persons",
                    "the source of this stream names no person column",
                    "Leave them out, or open with a person",
                )
            return self._reader.rows(increment), None
        if persons is None or isinstance(persons, str | bytes) or not hasattr(persons, "__iter__"):
            raise UsageError(
                "a step without persons",
                f"the source says that {named} is the person",
                f"Give persons=, one {named} per row",
            )
        whose = list(persons.tolist() if hasattr(persons, "tolist") else persons)
        return self._reader.each(increment, len(whose)), [self._word(person) for person in whose]

    def _word(self, person: object) -> bytes | None:
        """A keyed hash of a person's name; text, whole numbers and bytes are told apart.

        A missing name gives None: rows without a person are dropped, as everywhere.
        """
        plain: object = person.item() if hasattr(person, "item") else person
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)  # as pandas holds whole numbers beside missing ones
        if plain is None or isinstance(plain, float):
            return None
        # A text of a class of its own, as of an enumeration, is the same person.
        if isinstance(plain, str):
            plain = str.__str__(plain)
        elif isinstance(plain, bytes):
            plain = b"".join([plain])
        elif isinstance(plain, int) and not isinstance(plain, bool):
            plain = int.__int__(plain)
        else:
            raise UsageError(
                f"a person of type {type(person).__name__}",
                "a person is a text or a whole number",
                "Give such ids",
            )
        text = f"{type(plain).__name__} {plain!r}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._steps.secret, digest_size=16).digest()

    def _fits(self, count: int) -> bool:
        return count <= self._settled.unit.rows_per_person

    def _check_horizon(self, number: int) -> None:
        horizon = self._machine.horizon
        if horizon is not None and number > horizon:
            longer = "state a longer horizon, or None, from the start"
            remedy = f"Open another stream under another key, which pays anew, or {longer}"
            raise UsageError(
                f"step {number:,} of a stream",
                f"its horizon of {horizon:,} steps is reached",
                remedy,
            )

    def _check(self, number: int, name: str, last: str) -> None:
        if self._calendar is not None and name != self._calendar.name(number - 1):
            raise UsageError(
                "a step of a calendar",
                "it is not the next one",
                "Push the steps in order; those that are left out are published",
            )
        ordered = self._calendar is None and self._settled.counter.late == "refuse"
        if name and last and ordered and precedes(name, last):
            raise UsageError(
                "an event out of order",
                "its name comes before that of the last step",
                'Push in order, or open with late="count"',
            )

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(
                "pushing to a stream",
                "it is closed",
                "Open it again under the same key: it goes on where it stopped",
            )

    def _place(self, calendar: CalendarSteps, event: object) -> int:
        """The step of the calendar that an event names, from 0 on."""
        place = self.step if event is None else calendar.place(event)
        if place is None or place >= len(calendar):
            ends = f"from {calendar.name(0)} to {calendar.name(len(calendar) - 1)}"
            obstacle = f"it is none of the {len(calendar):,} steps {ends}"
            raise UsageError(
                "an event outside the calendar",
                obstacle,
                "Name a step of the calendar; rows outside it count nowhere",
            )
        return place

    def _summed(self, rows: list[Row]) -> tuple[int, ...]:
        totals = [0] * self._machine.cells
        for cell, units in rows:
            if cell >= 0:
                totals[cell] += units
        return tuple(totals)

    def _catch_up(self) -> None:
        """Read what was published by other objects, in order."""
        known = len(self._shown)
        for step in self._steps.since(self._shown[known][0] if known else None):
            self._shown.add(step)

    def _total(self, number: int) -> Total:
        step, totals = self._shown[number]
        value = totals[0] if self._settled.labels is None else np.array(totals)
        each, every, deviation, law = self._errors.at(number)
        return Total(
            value=value,
            low=value - each,
            high=value + each,
            confidence=CONFIDENCE,
            about=self._settled.about,
            step=number,
            event=step.event,
            all_low=value - every,
            all_high=value + every,
            deviation=deviation,
            law=law,
            names=() if self._settled.labels is None else tuple(map(str, self._settled.labels)),
        )


def _advancing(machine: Machine[S]) -> Advance:
    """The steps of a machine, from bytes to bytes: only here the type of its states is known."""
    kind = GenericAlias(tuple, (str, type(machine.start())))
    decoder: msgspec.json.Decoder[tuple[str, S]] = msgspec.json.Decoder(kind)

    def advance(stored: bytes, bring: Bring, noise: Bits) -> tuple[bytes, Whole]:
        last, state = decoder.decode(stored)
        name, increment = bring(last)
        after, output = machine.step(state, increment, noise)
        return msgspec.json.encode((name, after)), output

    return advance


def receipt_of(entry: Entry, charged: str, source: str, part: str = "1 of 1") -> Receipt:
    """What proves a charge: the entry that paid, and what it paid for."""
    return Receipt(
        account=entry.account,
        key=entry.key,
        digest=entry.digest,
        entry=entry.sequence,
        entry_hash=entry.hash,
        time=entry.time,
        charged=charged,
        part=part,
        source=source,
        version=__version__,
    )


def history_of(steps: StreamRecord, number: int) -> CounterRelease:
    """The first steps of a stream as a release, unsigned; all there are, if there are fewer."""
    return _history(_opening(steps), steps.entry, steps.since(None)[:number])


def _history(opening: Opening, entry: Entry, steps: Sequence[Step]) -> CounterRelease:
    return CounterRelease(
        settled=opening.settled,
        outputs=tuple(map(_output, steps)),
        events=tuple(step.event for step in steps),
        guarantee=opening.settled.guarantee(opening.private),
        receipt=receipt_of(entry, opening.charged, opening.source),
    )


R = TypeVar("R", bound=Release)


def signed(release: R, ledger: Ledger) -> R:
    """A release with the ledger's signature, where the ledger has a key."""
    signer = ledger.signer()
    if signer is None or release.receipt is None:
        return release
    receipt = msgspec.structs.replace(release.receipt, signer=signer)
    message = signed_part(msgspec.structs.replace(release, receipt=receipt))
    receipt = msgspec.structs.replace(receipt, signature=ledger.sign(message))
    return msgspec.structs.replace(release, receipt=receipt)


def pour(stream: Stream, arrivals: Iterable[Arrival]) -> Iterator[Total]:
    """Push one arrival after another, and pass on the totals.

    With a calendar also those of steps that nothing arrived for.
    """
    for arrival in arrivals:
        before = 0 if stream._calendar is None else stream.step
        total = stream.push(arrival.increment, arrival.event, persons=arrival.persons)
        if stream._calendar is not None and total.step > before:
            yield from stream.totals(before + 1)
        else:
            yield total


def first_state(settled: Settled) -> bytes:
    """The state before the first step: the last event's name, and the machine's own state."""
    return msgspec.json.encode(("", settled.machine.start()))


def spec(opening: Opening) -> bytes:
    """What is stored with the charge."""
    return to_bytes(opening)


def _output(step: Step) -> tuple[int, ...]:
    return _OUTPUT.decode(step.output)


def _opening(steps: StreamRecord) -> Opening:
    """What was stored with the charge, which another version may have written."""
    try:
        found: Opening = from_bytes(steps.spec, Opening)
    except UNREADABLE:
        pass
    else:
        return found
    raise LedgerError(
        f"the stream {steps.entry.key!r}",
        "this version cannot read it",
        "Use the version that opened it",
        account=steps.entry.account,
    )
