"""A stream: a counter that was paid for and takes one durable step after another.

``publisher.open`` charges first, and returns a ``Stream`` only when the charge is on disk; there is
no other way to get one. Each push reads its increment into integers, takes one step of the
mechanism inside the ledger's transaction, and returns the total when that transaction is on disk.

Before it stand what is stored when a stream is opened (``Opening``), its public specification and
its first state; the steps that it has published (``PublishedSteps``), their totals, and their
release; and the tokens that stand for persons while the rows of each are counted
(``person_tokens``).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import GenericAlias, TracebackType
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np

from sfumato.answers import Captions, error_probability
from sfumato.basics import UNREADABLE, from_bytes, renewed_in_children, several
from sfumato.data.steps import Arrival
from sfumato.errors import (
    InternalError,
    LedgerError,
    SfumatoError,
    UsageError,
    explained_methods,
    place_of,
    without_frames,
)
from sfumato.ledger import Entry, Ledger, Step, StreamRecord
from sfumato.ledger.entries import OVER
from sfumato.ledger.stream_record import Work
from sfumato.privacy import with_person_called
from sfumato.publishing.account import receipt_of, signed
from sfumato.questions.counters.calendar import DeclaredSteps
from sfumato.questions.counters.increments import Row, event_text, precedes
from sfumato.questions.counters.mechanism import CounterMechanism, Total, Whole
from sfumato.questions.counters.question import Counter, Errors, Settled
from sfumato.questions.counters.release import CounterRelease, scaled
from sfumato.random.bits import Bits

# --- what is stored -------------------------------------------------------------------------------


class Opening(msgspec.Struct, frozen=True):
    """What is stored with the charge for a stream. All of it is public.

    Attributes
    ----------
    settled : Settled
        The counter with all that is public about its stream.
    private : bool
        Whether the noise is drawn from a private source.
    charged : str
        The cost in the account's measure.
    source : str
        The title of the data source.
    captions : Captions or unset
        The counter's words for people.
    by_curves, budget : str
        The account's total, as receipts say it; "" in streams of before.
    """

    settled: Settled
    private: bool
    charged: str
    source: str
    captions: Captions | msgspec.UnsetType = msgspec.UNSET
    by_curves: str = ""
    budget: str = ""


def first_state(settled: Settled) -> bytes:
    """Encode the state before the first step: the last event's name and the mechanism's state."""
    return msgspec.json.encode(("", settled.mechanism.start()))


def opening_of(steps: StreamRecord) -> Opening:
    """Decode what was stored with the charge, perhaps by another version.

    Raises
    ------
    LedgerError
        If this version cannot read it.
    """
    try:
        return from_bytes(steps.spec, Opening)
    except UNREADABLE:
        pass
    # Raised outside the except block, so that the decoder's error does not go with it.
    raise LedgerError(
        f"the stream {steps.entry.key!r}",
        "this version cannot read it",
        "Use the version that opened it",
        account=steps.entry.account,
    )


# --- published steps ------------------------------------------------------------------------------

_OUTPUT = msgspec.json.Decoder(tuple[int, ...])


class PublishedSteps:
    """The steps of a stream that were read so far, and their estimated totals.

    An estimator takes outputs strictly in order. If an interrupt, or steps that a signal handler
    took, left it out of order, all outputs are read again from the beginning.
    """

    def __init__(self, settled: Settled) -> None:
        self._mechanism = settled.mechanism
        self._resolution = settled.resolution
        self._estimate = self._mechanism.estimator()
        # How many outputs the estimator has taken; -1 while that is not known. It differs from the
        # number of steps found only after an interrupt.
        self._n_estimated = 0
        self._found: dict[int, tuple[Step, list[float]]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, number: int) -> tuple[Step, list[float]]:
        return self._found[number]

    def steps(self) -> list[Step]:
        """Return all steps, in order."""
        return [step for step, _ in self._found.values()]

    def add(self, step: Step) -> None:
        """Read the next step."""
        if self._n_estimated != len(self._found):
            self._n_estimated = -1
            estimate = self._mechanism.estimator()
            known = self.steps()
            for earlier in known:
                estimate(output_of(earlier))
            self._estimate = estimate
            self._n_estimated = len(known)
        # Counted before it is read: an interrupt in between is then noticed by the next call.
        self._n_estimated += 1
        totals = scaled(self._estimate(output_of(step)), self._resolution)
        self._found[step.number] = step, totals


def output_of(step: Step) -> Whole:
    """Return what the mechanism published at a step."""
    return _OUTPUT.decode(step.output)


def history(opening: Opening, entry: Entry, steps: Sequence[Step]) -> CounterRelease:
    """Return the totals of some steps as an unsigned release."""
    return CounterRelease(
        settled=opening.settled,
        outputs=tuple(map(output_of, steps)),
        events=tuple(step.event for step in steps),
        guarantee=opening.settled.guarantee(opening.private),
        receipt=receipt_of(
            entry,
            opening.charged,
            opening.source,
            by_curves=opening.by_curves,
            budget=opening.budget,
        ),
        captions=opening.captions,
    )


# --- persons --------------------------------------------------------------------------------------


def person_tokens(persons: object, column: str, secret: bytes) -> list[bytes | None]:
    """Return a token for each row's person; None for a row without one, which is dropped.

    Parameters
    ----------
    persons : sequence
        One id per row: texts, whole numbers or bytes.
    column : str
        What the source calls its persons.
    secret : bytes
        The stream's secret, without which tokens cannot be computed from ids.

    Raises
    ------
    UsageError
        If there are no persons, or one is neither a text nor a whole number.
    """
    if isinstance(persons, str | bytes) or not hasattr(persons, "__iter__"):
        raise UsageError(
            "a step without persons",
            f"the source says that {column} is the person",
            f"Give persons=, one {column} per row",
        )
    return [
        _token(person, secret)
        for person in (persons.tolist() if hasattr(persons, "tolist") else persons)
    ]


def _token(person: object, secret: bytes) -> bytes | None:
    """Return a keyed hash of a person's id; texts, whole numbers and bytes are told apart."""
    plain = _plain_id(person)
    if plain is None:
        return None
    text = f"{type(plain).__name__} {plain!r}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=secret, digest_size=16).digest()


def _plain_id(person: object) -> str | bytes | int | None:
    """Return an id as a value of a plain type; None if it is missing.

    A text of another class, such as a member of an enumeration, is the same person.
    """
    plain: object = person.item() if hasattr(person, "item") else person
    if isinstance(plain, float) and plain.is_integer():
        # pandas holds whole numbers as floats where others of the column are missing.
        plain = int(plain)
    if plain is None or isinstance(plain, float):
        return None
    if isinstance(plain, str):
        return str.__str__(plain)
    if isinstance(plain, bytes):
        return b"".join([plain])
    if isinstance(plain, int) and not isinstance(plain, bool):
        return int.__int__(plain)
    raise UsageError(
        f"a person of type {type(person).__name__}",
        "a person is a text or a whole number",
        "Give such ids",
    )


# --- the stream -----------------------------------------------------------------------------------

S = TypeVar("S")

CONFIDENCE = 0.95
AGAIN = "Push the step again under its name: if it was taken after all, it counts once."

# Takes the name of the last event; returns the name of this one and its increment, or refuses.
Bring: TypeAlias = Callable[[str], tuple[str, Whole]]

# Takes one step of a mechanism: from the bytes before it to the bytes after it and the output.
Advance: TypeAlias = Callable[[bytes, Bring, Bits], tuple[bytes, Whole]]


class _Rows(NamedTuple):
    """One step's increment.

    Attributes
    ----------
    rows : list of Row
    tokens : list or None
        For each row the token of its person, or None for a row without one. None instead of a list:
        the source names no person column.
    """

    rows: list[Row]
    tokens: list[bytes | None] | None

    def known(self) -> tuple[list[Row], list[bytes]]:
        """Return the rows that are not dropped and whose person is known, and their tokens."""
        if self.tokens is None:
            return [], []
        of_known = [
            (row, token)
            for row, token in zip(self.rows, self.tokens, strict=True)
            if row[0] >= 0 and token is not None
        ]
        return [row for row, _ in of_known], [token for _, token in of_known]


@explained_methods
class Stream:
    """A running total that is published step by step; ``publisher.open`` returns it.

    It is a context manager. Closing it loses nothing: opening the same key again resumes after the
    last step. Several threads and processes may hold one stream; their steps are taken one after
    another.

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

    def __init__(
        self,
        steps: StreamRecord,
        noise: Bits,
        ledger: Ledger,
        captions: Captions | None = None,
        called: str | msgspec.UnsetType = msgspec.UNSET,
    ) -> None:
        self._steps = steps
        self._noise = noise
        self._ledger = ledger
        self._closed = False
        opening = opening_of(steps)
        # Opened again, a stream is shown under the words for people that it has now.
        if captions is not None:
            opening = msgspec.structs.replace(opening, captions=captions)
        self._opening = opening if called is msgspec.UNSET else with_person_called(opening, called)
        self._settled = self._opening.settled
        self._mechanism = self._settled.mechanism
        # Each mechanism of the union has a type of state of its own, so none can be inferred.
        self._advance = _advancing(self._mechanism)  # type: ignore[misc]
        self._calendar = self._settled.counter.calendar
        self._increments = self._settled.increment_reader()
        self._renew()
        renewed_in_children(self, Stream._renew)
        self._errors = Errors(
            self._mechanism, self._settled.resolution, error_probability(CONFIDENCE)
        )
        self._catch_up()

    def _renew(self) -> None:
        """Forget what was read.

        A child process must do so: its parent may have been reading when it was forked.
        """
        self._published = PublishedSteps(self._settled)
        self._lock = threading.RLock()

    @property
    def counter(self) -> Counter:
        """The counter that was opened."""
        return self._settled.counter

    @property
    def step(self) -> int:
        """How many steps were taken, by all processes together."""
        return self._steps.head()[0]

    @property
    def horizon(self) -> int | None:
        """The largest number of steps; None: any number."""
        return self._mechanism.horizon

    @property
    def remaining(self) -> int | None:
        """How many steps are left."""
        return None if self.horizon is None else self.horizon - self.step

    def __repr__(self) -> str:
        settled = self._settled
        return f"<Stream {self._steps.entry.key!r}: {settled.counter.title}; {settled.cost}>"

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
            What is added. Events: their number. Sums: one value or several, one per row. With
            categories: a dict from label to these, a sequence of labels, or for sums a sequence of
            (label, value) pairs.
        event : str, int, date or None
            A name for the step; None: the next step. Under a name that was pushed before nothing is
            counted, and the same total is returned, whatever the increment. A name that comes
            before the last one (whole numbers by size, else as text) is refused, or counted at the
            present step with ``late="count"``. With a calendar: a moment in the step, or its name;
            earlier steps that are not published yet are published first, without rows.
        persons : sequence or None
            The person of each row, where the source names a person column. Of each person the first
            ``rows_per_person`` rows of the whole stream are counted.

        Raises
        ------
        UsageError
            If the horizon is reached, the event comes too late or is not a step of the calendar, or
            the increment or the persons do not fit. Nothing is counted.
        DataError
            If a value is a text, or another thing that cannot be a number. Nothing is counted.
        LedgerError
            If the step cannot be stored.
        """
        self._check_open()
        brought = self._read(increment, persons)
        with self._lock:
            if self._calendar is None:
                step, _ = self._take(event_text(event), brought)
                return self._total(step.number)
            while True:
                step_index = self._step_index(self._calendar, event)
                self._publish_before(self._calendar, step_index)
                step, fresh = self._take(self._calendar.name(step_index), brought)
                # Without a name, the next step is meant. If another process took it meanwhile, it
                # is the one after.
                if fresh or event is not None:
                    return self._total(step.number)

    @without_frames
    def advance(self, until: object = None) -> list[Total]:
        """Publish the steps of the calendar that are missing, without rows; return their totals.

        Parameters
        ----------
        until : str, date or None
            The last step to publish; None: the last of the calendar.

        Raises
        ------
        UsageError
            If the stream is closed or has no calendar, or ``until`` is not a step of it.
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
            before = len(self._published)
            last = len(self._calendar) - 1
            if until is not None:
                last = self._step_index(self._calendar, until)
            self._publish_before(self._calendar, last + 1)
            return list(self.totals(before + 1))

    def _publish_before(self, calendar: DeclaredSteps, step_index: int) -> None:
        empty = _Rows([], None if self._settled.unit.person is None else [])
        for missing in range(len(self._published), step_index):
            self._take(calendar.name(missing), empty)

    def _take(self, name: str, brought: _Rows) -> tuple[Step, bool]:
        """Take a step durably, or find the one of this name, and tell whether it is new."""
        known, tokens = brought.known()

        def work(number: int, stored: bytes, counts: list[int]) -> tuple[bytes, bytes]:
            def bring(last: str) -> tuple[str, Whole]:
                self._check_order(number, name, last)
                kept = brought.rows
                if brought.tokens is not None:
                    # The ledger counted each person's rows, this one included.
                    limit = self._settled.unit.rows_per_person
                    kept = [row for row, count in zip(known, counts, strict=True) if count <= limit]
                return name or last, self._summed(kept)

            horizon = self.horizon
            if horizon is not None and number > horizon:
                raise UsageError(
                    f"step {number:,} of a stream",
                    f"its horizon of {several(horizon, 'step')} is reached",
                    "Open another stream under another key, which pays anew, or state a longer "
                    "horizon, or None, from the start",
                )
            after, output = self._advance(stored, bring, self._noise)
            # The last step leaves nothing behind that could tell what the increments were.
            return OVER if number == horizon else after, msgspec.json.encode(output)

        step, fresh = self._guarded(name, work, tokens)
        self._show(step)
        return step, fresh

    def _show(self, step: Step) -> None:
        """Read a step that was taken, after any that others took before it."""
        if step.number == len(self._published) + 1:
            self._published.add(step)
        elif step.number > len(self._published):
            try:
                self._catch_up()
            except LedgerError as error:
                error.add_note(
                    f"Step {step.number:,} is on disk, and history() will show it: do not push it "
                    "again without its name."
                )
                raise

    def _guarded(self, name: str, work: Work, tokens: list[bytes]) -> tuple[Step, bool]:
        """Take a step, and let no exception out that could carry a value.

        Our own exceptions pass, without their frames; any other becomes an InternalError.
        """
        try:
            return self._steps.take(name, work, tokens)
        except (SfumatoError, KeyboardInterrupt) as error:
            error.__traceback__ = None
            raise
        except Exception as error:
            place = place_of(error)
        # Raised outside the except block, so that the error above, which may quote values, is not
        # kept in __context__.
        raise InternalError(
            f"A step failed: {place}. Please report this line; it holds no data. {AGAIN}"
        )

    @without_frames
    def history(self) -> CounterRelease:
        """Return all totals so far as a release. Costs nothing."""
        with self._lock:
            self._catch_up()
            steps = self._published.steps()
        return signed(history(self._opening, self._steps.entry, steps), self._ledger)

    def __len__(self) -> int:
        return self.step

    def __iter__(self) -> Iterator[Total]:
        """Iterate over the totals that were published so far, in order."""
        return self.totals()

    @without_frames
    def totals(self, first: int = 1) -> Iterator[Total]:
        """Iterate over the totals that were published so far, from a step on."""
        with self._lock:
            self._catch_up()
        return map(self._total, range(first, len(self._published) + 1))

    def _read(self, increment: object, persons: Sequence[object] | None) -> _Rows:
        column = self._settled.unit.person
        if column is not None:
            tokens = person_tokens(persons, column, self._steps.secret)
            return _Rows(self._increments.each(increment, len(tokens)), tokens)
        if persons is not None:
            raise UsageError(
                "persons",
                "the source of this stream names no person column",
                "Leave them out, or open with a person",
            )
        return _Rows(self._increments.rows(increment), None)

    def _check_order(self, number: int, name: str, last: str) -> None:
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

    def _step_index(self, calendar: DeclaredSteps, event: object) -> int:
        """Return the step of the calendar that an event names, from 0 on."""
        step_index = self.step if event is None else calendar.place(event)
        if step_index is None or step_index >= len(calendar):
            raise UsageError(
                "an event outside the calendar",
                f"it is none of the {len(calendar):,} steps from {calendar.name(0)} to "
                f"{calendar.name(len(calendar) - 1)}",
                "Name a step of the calendar; rows outside it count nowhere",
            )
        return step_index

    def _summed(self, rows: list[Row]) -> tuple[int, ...]:
        totals = [0] * self._mechanism.cells
        for cell, units in rows:
            if cell >= 0:
                totals[cell] += units
        return tuple(totals)

    def _catch_up(self) -> None:
        """Read what was published by other objects, in order."""
        known = len(self._published)
        for step in self._steps.since(self._published[known][0] if known else None):
            self._published.add(step)

    def _total(self, number: int) -> Total:
        step, totals = self._published[number]
        labels = self._settled.labels
        value = totals[0] if labels is None else np.array(totals)
        error = self._errors.at(number)
        return Total(
            value=value,
            low=value - error.half_width,
            high=value + error.half_width,
            confidence=CONFIDENCE,
            about=self._settled.about,
            step=number,
            event=step.event,
            all_low=value - error.band_half_width,
            all_high=value + error.band_half_width,
            deviation=error.deviation,
            law=error.law,
            names=() if labels is None else tuple(map(str, labels)),
        )


def _advancing(mechanism: CounterMechanism[S]) -> Advance:
    """Return the steps of a mechanism from bytes to bytes: only here is the type of state known."""
    kind = GenericAlias(tuple, (str, type(mechanism.start())))
    decoder: msgspec.json.Decoder[tuple[str, S]] = msgspec.json.Decoder(kind)

    def advance(stored: bytes, bring: Bring, noise: Bits) -> tuple[bytes, Whole]:
        last, state = decoder.decode(stored)
        name, increment = bring(last)
        after, output = mechanism.step(state, increment, noise)
        return msgspec.json.encode((name, after)), output

    return advance


def push_all(stream: Stream, arrivals: Iterable[Arrival]) -> Iterator[Total]:
    """Push one arrival after another, and yield the totals.

    With a calendar, the totals of steps without arrivals are yielded, too.
    """
    for arrival in arrivals:
        before = 0 if stream._calendar is None else stream.step
        total = stream.push(arrival.increment, arrival.event, persons=arrival.persons)
        if stream._calendar is not None and total.step > before:
            yield from stream.totals(before + 1)
        else:
            yield total
