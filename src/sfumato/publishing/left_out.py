"""How much the limits on a person leave out, said in every answer where it was paid for.

An answer about persons (``sf.Persons``) tells what any limit on rows per person leaves out, or any
limit by cell: on cells, on the norm of a person's counts or on rows in a cell. Once it
stands in the ledger it is public, so later answers about the same state of the same data may quote
it. Which state that was, only the ledger's secrets know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeVar

import msgspec

from sfumato.answers.codec import UNREADABLE
from sfumato.answers.loading import stored_releases
from sfumato.answers.release import Release
from sfumato.data import Source
from sfumato.domain.lattice import Lattice
from sfumato.errors import LedgerError
from sfumato.ledger import Entry
from sfumato.publishing.account import PublisherAccount
from sfumato.questions.persons import PersonsRelease
from sfumato.questions.persons.measured import MEASURED, title_of
from sfumato.random.bits import Bits

R = TypeVar("R", bound=Release)

TITLES = tuple(title_of(each, "person", ()) for each in MEASURED.values())
"""How the titles of questions about persons begin."""
LONGEST_NOTE = 200
"""Characters of a question's title in the log."""


class LeftOut:
    """The latest answer about the persons of a source that its account has paid for.

    Parameters
    ----------
    source : Source
    account : PublisherAccount
    """

    def __init__(self, source: Source, account: PublisherAccount) -> None:
        self._source = source
        self._account = account
        # Entries are never changed, so each is looked at once.
        self._last_seen = 0
        self._charged: dict[str, Entry] = {}
        self._found: list[tuple[Entry, list[PersonsRelease]]] = []

    def note(self, charge: Entry, answers: Sequence[Release], label: str) -> None:
        """Note in the ledger's secrets of which state of the data answers about persons are.

        Call it before they are stored: whoever finds them stored then finds their state, too.
        """
        if any(isinstance(answer, PersonsRelease) for answer in answers):
            self._account.ledger.note_state(charge, label)

    def stated(self, answers: Sequence[Release], label: str, noise: Bits) -> list[Release]:
        """The answers, with a sentence on what each limit leaves out, where that is known.

        Answers about persons in the same plan were paid for with the others, and count too.

        Parameters
        ----------
        answers : sequence of Release
        label : str
            The state of the data that they are about. What is known of another state is not said.
        noise : Bits
            Where their noise came from.
        """
        if self._source.unit.person is None:
            return list(answers)
        known = [*self._stored(label), *answers]
        fitting = [each for each in known if isinstance(each, PersonsRelease)]
        # Noise from a public seed belongs into answers that say so themselves.
        usable = [
            each
            for each in fitting
            if (each.guarantee.private or not noise.private) and self._of_same_rows(each)
        ]
        return [self._stating(answer, usable) for answer in answers]

    def _of_same_rows(self, release: PersonsRelease) -> bool:
        """Whether the same public conditions, on axes that mean the same, chose its rows."""
        where = self._source.unit.where
        if where is msgspec.UNSET or release.unit.where != where:
            return release.unit.where == where
        declared = dict(release.domain)
        axes = {condition.axis for condition in where}
        return all(declared.get(axis) == self._source.domain.get(axis) for axis in axes)

    def _stating(self, answer: R, known: Sequence[PersonsRelease]) -> R:
        """An answer, with what is known of the limits under which it was counted."""
        sentences = [_quoted(about, limit) for about, limit in self._about_limits(answer, known)]
        said = " ".join(sentence for sentence in sentences if sentence)
        return _with_sentence(answer, said) if said else answer

    def _about_limits(
        self, answer: Release, known: Sequence[PersonsRelease]
    ) -> Iterator[tuple[PersonsRelease, int]]:
        """The latest answer about each of the limits under which an answer was counted."""
        unit = answer.guarantee.unit
        if unit.limits is msgspec.UNSET:
            if unit == self._source.unit and (of_rows := _latest(known, "rows_per_person")):
                yield of_rows, unit.rows_per_person
            return
        if unit.of_all_rows != self._source.unit.of_all_rows:
            return
        # A person is counted once in a cell by definition where persons are counted.
        skipped = {"rows_per_cell"} if unit.counts_persons else set()
        for name, limit in unit.limits.given.items():
            cells = getattr(answer, "lattice", None)
            if name in skipped or not isinstance(cells, Lattice):
                continue
            if (about := _latest(known, name, cells)) is not None:
                yield about, limit

    def _stored(self, label: str) -> list[PersonsRelease]:
        """Stored answers about the persons of this state of the data, in the order of storing."""
        ledger = self._account.ledger
        for entry in ledger.log(self._account.name, after=self._last_seen):
            self._last_seen = entry.sequence
            if entry.kind == "reserve" and _may_be_about_persons(entry.note):
                self._charged[entry.key] = entry
            elif entry.kind == "store" and entry.key in self._charged:
                charge = self._charged[entry.key]
                if found := self._about_persons(charge):
                    self._found.append((charge, found))
        fitting = [found for charge, found in self._found if ledger.is_of_state(charge, label)]
        return list(chain.from_iterable(fitting))

    def _about_persons(self, charge: Entry) -> list[PersonsRelease]:
        """What is stored under a charge about persons whom the source protects alike."""
        try:
            answers = stored_releases(self._account.ledger.answer(charge.sequence) or b"[]")
        except (*UNREADABLE, LedgerError):
            # Another version wrote it, or it is damaged: `verify` says so. It is not quoted.
            return []
        persons = self._source.unit.of_all_rows
        return [
            each
            for each in answers
            if isinstance(each, PersonsRelease) and each.unit.of_all_rows == persons
        ]


def _may_be_about_persons(note: str) -> bool:
    """Whether a charge of this note was for an answer about persons, or for a plan with one."""
    # The note of a long plan is cut, and may have named the question.
    return len(note) >= LONGEST_NOTE or any(title in note for title in TITLES)


def _latest(
    known: Sequence[PersonsRelease], limit: str, cells: Lattice | None = None
) -> PersonsRelease | None:
    """The latest answer about what a limit bounds, in the same cells."""
    for release in reversed(known):
        if release.measured.limit == limit and (cells is None or _is_about(release, cells)):
            return release
    return None


def _is_about(release: PersonsRelease, cells: Lattice) -> bool:
    domain = release.domain_of_source()
    if release.spread is msgspec.UNSET or domain is None:
        return False
    return set(release.spread.cells(domain).axes) == set(cells.axes)


def _quoted(release: PersonsRelease, limit: int) -> str:
    """The sentence; with the charge that it comes from, if that is another one."""
    sentence = release.sentence(limit)
    receipt = release.receipt
    if not sentence or receipt is None:
        return sentence
    return f"{sentence} (Entry {receipt.entry} of the ledger, {receipt.time[:10]}.)"


def _with_sentence(answer: R, sentence: str) -> R:
    counted = f"{answer.guarantee.counted} {sentence}"
    guarantee = msgspec.structs.replace(answer.guarantee, counted=counted)
    return msgspec.structs.replace(answer, guarantee=guarantee)
