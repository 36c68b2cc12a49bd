"""The steps that a stream has published: their totals, and their release."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sfumato.ledger import Entry, Step, StreamRecord
from sfumato.publishing.opening import Opening, opening_of
from sfumato.publishing.receipts import receipt_of
from sfumato.questions.counters.mechanism import Whole
from sfumato.questions.counters.question import Settled
from sfumato.questions.counters.release import CounterRelease, scaled

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
            self._begin_again()
        # Counted before it is read: an interrupt in between is then noticed by the next call.
        self._n_estimated += 1
        totals = scaled(self._estimate(output_of(step)), self._resolution)
        self._found[step.number] = step, totals

    def _begin_again(self) -> None:
        self._n_estimated = -1
        estimate = self._mechanism.estimator()
        known = self.steps()
        for step in known:
            estimate(output_of(step))
        self._estimate = estimate
        self._n_estimated = len(known)


def output_of(step: Step) -> Whole:
    """Return what the mechanism published at a step."""
    return _OUTPUT.decode(step.output)


def history_of(steps: StreamRecord, number: int) -> CounterRelease:
    """Return the first steps of a stream as an unsigned release; all, if there are fewer."""
    return history(opening_of(steps), steps.entry, steps.since(None)[:number])


def history(opening: Opening, entry: Entry, steps: Sequence[Step]) -> CounterRelease:
    """Return the totals of some steps as an unsigned release."""
    return CounterRelease(
        settled=opening.settled,
        outputs=tuple(map(output_of, steps)),
        events=tuple(step.event for step in steps),
        guarantee=opening.settled.guarantee(opening.private),
        receipt=receipt_of(entry, opening.charged, opening.source),
        captions=opening.captions,
    )
