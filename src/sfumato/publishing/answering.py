"""From a charge that is durable to answers that are stored: count, answer, encode, store.

No exception that leaves this module may carry a value of the data. Ours do not; what others raise
becomes a fault of ours, which names the place only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from sfumato.answers.captions import Captions
from sfumato.answers.codec import UNREADABLE, to_bytes
from sfumato.answers.counts import Counts, Needs
from sfumato.answers.loading import stored_releases
from sfumato.answers.question import AnyQuestion
from sfumato.answers.release import Release
from sfumato.data import Source, snapshot
from sfumato.errors import InternalError, LedgerError, SfumatoError, UsageError, place_of
from sfumato.ledger import Hold
from sfumato.privacy.measures import CentralMeasure, Money
from sfumato.publishing.account import PublisherAccount
from sfumato.publishing.counting import Counting
from sfumato.publishing.left_out import LeftOut
from sfumato.publishing.plan import Plan
from sfumato.publishing.plan_choice import PlanChoice, PlanCost
from sfumato.publishing.receipts import receipt_of, signed
from sfumato.random.bits import Bits

if TYPE_CHECKING:
    from sfumato.data.reader import Progress

T = TypeVar("T")


@dataclass(frozen=True)
class PlannedRelease:
    """A plan as it will be charged and answered. All but the label follows from public things.

    Attributes
    ----------
    plan : Plan
    costs : list of measure
        What each question may spend.
    used : list of measure
        What each question says that it spends of that: what the account is charged.
    needs : list of Needs
        What each question needs counted.
    money : tuple of two int
        The whole charge, in the account's units.
    noise : Bits
    captions : list of Captions or None
        The words for people of each question. They are no part of what is charged.
    label : str
        Tells the state of the data that are asked. It goes nowhere but into the ledger's secrets.
    stated : PlanCost
        The cost as it was asked for.
    choice : PlanChoice or None
        What was picked for the plan; None: it is answered as it is stated.
    """

    plan: Plan
    costs: list[CentralMeasure]
    used: list[CentralMeasure]
    needs: list[Needs]
    money: Money
    noise: Bits
    captions: list[Captions | None]
    label: str = ""
    stated: PlanCost = field(kw_only=True)
    choice: PlanChoice | None = None

    @property
    def picked(self) -> str:
        """What was picked, and why, in sentences; "" where nothing was."""
        return "" if self.choice is None else str(self.choice)


class Answering:
    """Answers planned releases of one source, each under a charge that is durable.

    Parameters
    ----------
    source : Source
    account : PublisherAccount
    """

    def __init__(self, source: Source, account: PublisherAccount) -> None:
        self._source = source
        self._account = account
        self.counting = Counting(source)
        self._left_out = LeftOut(source, account)

    def stored_answers(
        self, planned: PlannedRelease, hold: Hold, progress: Progress | None
    ) -> list[Release]:
        """Answer a plan, store the answers, and return what is stored."""
        with self.counting.lock:
            encoded, releases = _after_charge(
                hold, lambda: self._encoded_answers(planned, hold, progress)
            )
        self._left_out.note(hold.entry, releases, planned.label)
        if hold.store(encoded) != encoded:
            # Another process answered first, and its answer is the one that counts.
            return self.replayed_answers(planned, hold)
        return releases

    def replayed_answers(self, planned: PlannedRelease, hold: Hold) -> list[Release]:
        """The stored answers to a plan, with the words for people and the order of now."""
        shown = []
        found = read_stored(hold)
        self._left_out.note(hold.entry, found, planned.label)
        asked = zip(planned.plan.questions, planned.captions, strict=True)
        for stored, (question, captions) in zip(found, asked, strict=True):
            named = _captioned(stored.arranged(question.layout), captions)
            # A signature covers the words, too, and the order.
            shown.append(stored if named is stored else signed(named, self._account.ledger))
        return shown

    def _encoded_answers(
        self, planned: PlannedRelease, hold: Hold, progress: Progress | None
    ) -> tuple[bytes, list[Release]]:
        """The answers as bytes, and as they are read back from these bytes.

        What cannot be read back is refused before it is stored: its charge would be lost.
        """
        # All counts see one state of the data, where the engine can hold one.
        with snapshot(self._source):
            encoded = to_bytes(self._answers(planned, hold, progress))
        try:
            return encoded, stored_releases(encoded)
        except UNREADABLE:
            pass  # raised outside the except block: what that error quotes stays here
        types = "types that msgspec reads; an array is one-dimensional, of whole numbers"
        raise UsageError(
            f"answering {planned.plan.title}",
            "the answer could not be read back from a file",
            f"Give it fields of {types}",
        )

    def _answers(
        self, planned: PlannedRelease, hold: Hold, progress: Progress | None
    ) -> list[Release]:
        self.counting.begin(planned.label, planned.noise)
        cubes = self.counting.cubes(planned.needs, progress)
        charged = self._account.written(planned.money)
        number = len(planned.needs)
        counted = self.counting.release_counts(planned.needs, cubes, progress)
        asked = zip(planned.plan.questions, counted, planned.costs, planned.used, strict=True)
        answers: list[Release] = []
        for i, (question, counts, cost, used) in enumerate(asked, 1):
            answer = self._answered(question, counts, cost, planned.noise)
            _require_promised(question, answer, used)
            part = f"{i} of {number}"
            receipt = receipt_of(
                hold.entry,
                charged,
                self._source.title,
                part,
                picked=planned.picked,
                named=self._source.named,
            )
            answers.append(msgspec.structs.replace(answer, receipt=receipt))
        assumed = self._source.same_rows if self.counting.queries > 1 else ""
        answers = [_assuming(answer, assumed) for answer in answers]
        stated = self._left_out.stated(answers, planned.label, planned.noise)
        stated = list(map(_captioned, stated, planned.captions))
        return [signed(answer, self._account.ledger) for answer in stated]

    def _answered(
        self, question: AnyQuestion, counts: Counts, cost: CentralMeasure, noise: Bits
    ) -> Release:
        """Let a question answer. What one from elsewhere refuses may quote true counts."""
        try:
            return question.answer(counts, self._source.unit, cost, noise)
        except SfumatoError as error:
            if type(question).__module__.partition(".")[0] == __name__.partition(".")[0]:
                raise
            place = place_of(error)
        # Raised outside the except block, so that the error above does not go along.
        raise UsageError(
            f"answering {question.title}",
            f"its answer raised {place}; the text is withheld, because it may quote true counts",
            "Refuse in needs or preview, which see parameters alone",
        )


def _captioned(answer: Release, captions: Captions | None) -> Release:
    """An answer with the words for people of its question; without any, as it is."""
    if captions is None or captions == answer.captions:
        return answer
    return msgspec.structs.replace(answer, captions=captions)


def _assuming(answer: Release, assumed: str) -> Release:
    """An answer whose guarantee states one more assumption, if there is one."""
    if not assumed:
        return answer
    guarantee = answer.guarantee
    assumptions = (*guarantee.assumptions, assumed)
    guarantee = msgspec.structs.replace(guarantee, assumptions=assumptions)
    return msgspec.structs.replace(answer, guarantee=guarantee)


def read_stored(hold: Hold) -> list[Release]:
    """Decode a stored answer, which another version may have written."""
    try:
        releases = stored_releases(hold.stored or b"[]")
    except UNREADABLE:
        pass
    else:
        return releases
    raise LedgerError(
        f"the answer stored under entry {hold.entry.sequence}",
        "this version cannot read it",
        "Use the version that wrote it",
        account=hold.entry.account,
    )


def _require_promised(question: AnyQuestion, answer: object, used: CentralMeasure) -> None:
    """Refuse an answer that is no release, or that promises something else than was charged."""
    asked = f"answering {question.title}"
    if not isinstance(answer, Release):
        obstacle = f"its answer is of type {type(answer).__name__}, and not a release"
        raise UsageError(asked, obstacle, "Let answer return the release that the class names")
    if answer.guarantee.measure != used:
        obstacle = f"it promises {answer.guarantee.measure}, and {used} was charged"
        raise UsageError(asked, obstacle, "Let preview and answer agree on what is spent")


def _after_charge(hold: Hold, action: Callable[[], T]) -> T:
    """Run an action that reads the data, and let no exception out that could carry a value.

    Our own errors pass, with a note on the charge. All others become a fault of ours.
    """
    entry = hold.entry
    try:
        return action()
    except (SfumatoError, KeyboardInterrupt, GeneratorExit, SystemExit) as error:
        stands = f"The charge stands: entry {entry.sequence} of account {entry.account!r}."
        error.add_note(f"{stands} Nothing was published.")
        error.add_note("The same key resumes once without paying again.")
        raise
    # Not only Exception: engines that panic raise other kinds, and quote values in them.
    except BaseException as error:
        place = place_of(error)
    # Raised outside the except block: the error above would otherwise go along as its context,
    # with whatever it quotes.
    raise InternalError(
        f"Answering failed after the charge: {place}. Nothing was published. "
        "Please report this line; it holds no data."
    )
