"""How much a limit on rows leaves out, said in every answer where it was paid for.

An answer about persons (``sf.Persons``) tells what any limit on rows per person leaves out. Once it
stands in the ledger it is public, so later answers about the same source may quote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from sfumato.answers.codec import UNREADABLE
from sfumato.answers.loading import stored_releases
from sfumato.answers.release import Release
from sfumato.data import Source
from sfumato.errors import LedgerError
from sfumato.ledger import Entry
from sfumato.persons import Persons, PersonsRelease
from sfumato.publishing.account import PublisherAccount
from sfumato.random.bits import Bits

R = TypeVar("R", bound=Release)

TITLE = Persons().title
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
        self._found: list[PersonsRelease] = []

    def stated(self, answers: Sequence[Release], noise: Bits) -> list[Release]:
        """The answers, with a sentence on what the limit on rows leaves out, where that is known.

        Answers about persons in the same plan were paid for with the others, and count too.
        """
        unit = self._source.unit
        if unit.person is None or unit.by_cell:
            return list(answers)
        known = [*self._stored(), *answers]
        fitting = [each for each in known if isinstance(each, PersonsRelease)]
        # Noise from a public seed belongs into answers that say so themselves.
        usable = [each for each in fitting if each.guarantee.private or not noise.private]
        sentence = _quoted(usable[-1], unit.rows_per_person) if usable else ""
        if not sentence:
            return list(answers)
        return [
            _with_sentence(answer, sentence) if answer.guarantee.unit == unit else answer
            for answer in answers
        ]

    def _stored(self) -> list[PersonsRelease]:
        """Stored answers about the persons of this source, in the order of their charges."""
        for entry in self._account.ledger.log(self._account.name, after=self._last_seen):
            self._last_seen = entry.sequence
            # The note of a long plan is cut, and may have named the question.
            if entry.kind == "reserve" and (TITLE in entry.note or len(entry.note) >= LONGEST_NOTE):
                self._charged[entry.key] = entry
            elif entry.kind == "store" and entry.key in self._charged:
                self._found += self._about_persons(self._charged[entry.key])
        return self._found

    def _about_persons(self, charge: Entry) -> list[PersonsRelease]:
        """What is stored under a charge about the persons of this source."""
        try:
            answers = stored_releases(self._account.ledger.answer(charge.sequence) or b"[]")
        except (*UNREADABLE, LedgerError):
            # Another version wrote it, or it is damaged: `verify` says so. It is not quoted.
            return []
        return [each for each in answers if isinstance(each, PersonsRelease) and self._fits(each)]

    def _fits(self, release: PersonsRelease) -> bool:
        """Whether it is about this data set, and about the same persons."""
        receipt = release.receipt
        same_persons = release.unit.of_all_rows == self._source.unit.of_all_rows
        return receipt is not None and receipt.source == self._source.title and same_persons


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
