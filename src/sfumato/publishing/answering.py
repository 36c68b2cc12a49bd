"""From a charge that is durable to answers that are stored: count, answer, encode, store.

No exception that leaves this module may carry a value of the data. Ours do not; what others raise
becomes a fault of ours, which names the place only.

*How much the limits on a person leave out* (``LeftOut``), said in every answer where it was paid
for.

An answer about persons (``sf.Persons``) tells what any limit on rows per person leaves out, or any
limit by cell: on cells, on the norm of a person's counts or on rows in a cell. Once it
stands in the ledger it is public, so later answers about the same state of the same data may quote
it. Which state that was, only the ledger's secrets know.

*What is asked* (``as_stored``, ``release_hashes``), in the one form under which a ledger finds its
stored answer again.

It knows the state of the data, so it goes nowhere but into the ledger's secrets. Its form must not
change: stored answers are found again by it, also those of version 0.1 in a ledger that was
upgraded. Noise from a public seed is part of it, so that such an answer never stands in for a
private one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, reduce
from operator import or_
from secrets import token_bytes
from types import GenericAlias
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET

from sfumato.answers import (
    AnyQuestion,
    Captions,
    Counts,
    Kind,
    Needs,
    Release,
    require_registered,
    stored_releases,
)
from sfumato.basics import UNREADABLE, DeferredClass, from_bytes, to_bytes
from sfumato.data import Source, snapshot
from sfumato.data.reader import Progress
from sfumato.domain import Lattice
from sfumato.errors import InternalError, LedgerError, SfumatoError, UsageError, place_of
from sfumato.ledger import Entry, Hold
from sfumato.privacy import (
    CentralMeasure,
    Event,
    Money,
    counted_rows,
    limit_in_words,
    with_person_called,
)
from sfumato.publishing.account import PublisherAccount, R, as_of_its_day, receipt_of, signed
from sfumato.publishing.counting import KEY, Counting, Draws, RowChoice
from sfumato.publishing.divisions import Choice
from sfumato.publishing.plan import Plan
from sfumato.random.bits import Bits, of_charge

if TYPE_CHECKING:
    from sfumato.questions.counters.question import Counter, Settled
    from sfumato.questions.persons import PersonsRelease
else:
    PersonsRelease = DeferredClass("sfumato.questions.persons", "PersonsRelease")


# --- what limits leave out ------------------------------------------------------------------------


# Characters of a question's title in the log.
LONGEST_NOTE = 200

# Part of the title of every question about persons.
ABOUT_PERSONS = " of each person"


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
        self._read: list[tuple[Entry, PersonsRelease]] = []

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
        fitting = [release for release in known if isinstance(release, PersonsRelease)]
        # Noise from a public seed belongs into answers that say so themselves.
        usable = [
            release
            for release in fitting
            if (release.guarantee.private or not noise.private) and self._is_of_same_rows(release)
        ]
        return [self._stating(answer, usable) for answer in answers]

    def _is_of_same_rows(self, release: PersonsRelease) -> bool:
        """Tell whether the same public conditions, on axes that mean the same, chose its rows."""
        where = self._source.unit.where
        if where is msgspec.UNSET or release.unit.where != where:
            return release.unit.where == where
        declared = dict(release.domain)
        axes = {condition.axis for condition in where}
        return all(declared.get(axis) == self._source.domain.get(axis) for axis in axes)

    def _stating(self, answer: R, known: Sequence[PersonsRelease]) -> R:
        """Add to an answer what is known of the limits under which it was counted."""
        told = dict(self._about_limits(answer, known))
        if not any(told.values()):
            return answer
        unit = answer.guarantee.unit
        sentences = []
        for name, limit in unit.limits_kept.items():
            unknown = (
                f"{limit_in_words(name, limit, unit.who)}, and how many rows that leaves out is "
                "not known."
            )
            sentences.append(told.get(name) or f"{unknown[:1].upper()}{unknown[1:]}")
        left_out = " ".join(sentences)
        further = answer.guarantee.counted.removeprefix(counted_rows(unit))
        return _promising(
            answer, left_out=left_out, counted=f"{counted_rows(unit, left_out)}{further}"
        )

    def _about_limits(
        self, answer: Release, known: Sequence[PersonsRelease]
    ) -> Iterator[tuple[str, str]]:
        """Yield the limits under which an answer was counted, each with what is known of it."""
        unit = answer.guarantee.unit
        if unit.uncalled.of_all_rows != self._source.unit.uncalled.of_all_rows:
            return
        cells = getattr(answer, "lattice", None)
        if not unit.by_cell:
            cells = None
        elif not isinstance(cells, Lattice):
            return
        for name, limit in unit.limits_kept.items():
            about = [release for release in known if _is_about(release, name, cells)]
            if not about:
                continue
            sentence = about[-1].sentence(limit)
            receipt = about[-1].receipt
            if sentence and receipt is not None:
                # It comes from another charge.
                paid = f"(entry {receipt.entry} of the ledger, {receipt.time[:10]})"
                sentence = f"{sentence[:-1]} {paid}."
            yield name, sentence

    def _stored(self, label: str) -> list[PersonsRelease]:
        """Return stored answers about persons of this state of the data, in order of storing."""
        ledger = self._account.ledger
        for entry in ledger.log(self._account.name, after=self._last_seen):
            self._last_seen = entry.sequence
            # The note of a long plan is cut, and may have named the question.
            is_about = ABOUT_PERSONS in entry.note or len(entry.note) >= LONGEST_NOTE
            if entry.kind == "reserve" and is_about:
                self._charged[entry.key] = entry
            elif entry.kind == "store" and entry.key in self._charged:
                charge = self._charged[entry.key]
                self._read += [(charge, release) for release in self._about_persons(charge)]
        return [release for charge, release in self._read if ledger.is_of_state(charge, label)]

    def _about_persons(self, charge: Entry) -> list[PersonsRelease]:
        """Return stored answers about persons whom the source protects alike."""
        try:
            answers = stored_releases(self._account.ledger.answer(charge.sequence) or b"[]")
        except (*UNREADABLE, LedgerError):
            # Another version wrote it, or it is damaged: `verify` says so.
            return []
        persons = self._source.unit.uncalled.of_all_rows
        return [
            release
            for release in answers
            if isinstance(release, PersonsRelease) and release.unit.uncalled.of_all_rows == persons
        ]


def _is_about(release: PersonsRelease, limit: str, cells: Lattice | None) -> bool:
    """Tell whether an answer is about what a limit bounds, in cells of the same axes, if any."""
    if release.measured.limit != limit or cells is None:
        return release.measured.limit == limit
    domain = release.domain_of_source()
    # The share of rows that a limit on rows keeps is another one beside limits by cell.
    if limit == "rows_per_person" or release.spread is msgspec.UNSET or domain is None:
        return False
    return set(release.spread.cells(domain).axes) == set(cells.axes)


def _promising(answer: R, **changes: object) -> R:
    guarantee = msgspec.structs.replace(answer.guarantee, **changes)
    return msgspec.structs.replace(answer, guarantee=guarantee)


# --- answering ------------------------------------------------------------------------------------


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
    event : Event or None
        What all answers draw, where the account counts it.
    noise : Bits
    captions : list of Captions or None
        The words for people of each question. They are no part of what is charged.
    label : str
        Tells the state of the data that are asked. It goes nowhere but into the ledger's secrets.
    stated : measure or Kind
        The cost as it was asked for; a kind: the least one of it that is accurate enough.
    choice : Choice or None
        What was picked for the plan; None: it is answered as it is stated.
    """

    plan: Plan
    costs: list[CentralMeasure]
    used: list[CentralMeasure]
    needs: list[Needs]
    money: Money
    event: Event | None
    noise: Bits
    captions: list[Captions | None]
    label: str = ""
    stated: CentralMeasure | Kind = field(kw_only=True)
    choice: Choice | None = None

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

    def proposed_draws(self, planned: PlannedRelease) -> Draws:
        """Return what the answers to a plan are to be drawn from, if it is charged now."""
        key = token_bytes(KEY)
        if of_charge(key, planned.noise) is planned.noise:
            # Bits that a test has put in force are not drawn from before the charge.
            return Draws(key, RowChoice(token_bytes(KEY), ()))
        return Draws(
            key, self.counting.proposed_choice(planned.label, planned.noise, planned.needs)
        )

    def stored_answers(
        self, planned: PlannedRelease, hold: Hold, progress: Progress | None
    ) -> list[Release]:
        """Answer a plan, store the answers, and return what is stored.

        No exception leaves that could carry a value. Our own pass, with a note on the charge. All
        others become a fault of ours.
        """
        charge = f"entry {hold.entry.sequence} of account {hold.entry.account!r}"
        try:
            # All counts see one state of the data, where the engine can hold one.
            with self.counting.lock, snapshot(self._source):
                draws = Draws.of(hold.seed)
                noise = of_charge(draws.key, planned.noise)
                # Bits that a test has put in force choose the rows, too.
                rows = None if noise is planned.noise else draws.rows
                self.counting.begin(planned.label, planned.noise, rows)
                counted = self.counting.counts(planned.needs, progress)
                answers = self._answers(planned, hold, counted, noise)
            encoded = to_bytes(answers)
            releases = _read_back(encoded, answers, planned.plan)
        except (SfumatoError, KeyboardInterrupt, GeneratorExit, SystemExit) as error:
            error.add_note(f"The charge stands: {charge}. Nothing was published.")
            error.add_note("Ask again to resume it without paying again; it draws the same noise.")
            raise
        # Not only Exception: engines that panic raise other kinds, and quote values in them.
        except BaseException as error:
            place = place_of(error)
        else:
            # Before the answers are stored: whoever finds them finds the state of their data, too.
            self._left_out.note(hold.entry, releases, planned.label)
            if hold.store(encoded) != encoded:
                # Another process answered first, and its answer is the one that counts.
                return self.replayed_answers(planned, hold)
            return releases
        # Raised outside the except block: the error above would otherwise go along as its context,
        # with whatever it quotes.
        raise InternalError(
            f"Answering failed after the charge: {place}. Nothing was published. "
            "Please report this line; it holds no data."
        )

    def replayed_answers(
        self, planned: PlannedRelease, hold: Hold, *, as_of: bool = False
    ) -> list[Release]:
        """Return the stored answers to a plan, with the words for people and the order of now.

        Parameters
        ----------
        planned : PlannedRelease
        hold : Hold
        as_of : bool
            Whether they are of any state of the data, and say the day on which they were paid for.
        """
        releases = read_stored(hold, planned.plan.questions)
        if as_of:
            releases = [as_of_its_day(release) for release in releases]
        else:
            self._left_out.note(hold.entry, releases, planned.label)
        shown = []
        called = self._source.unit.person_called
        for stored, question, captions in zip(
            releases, planned.plan.questions, planned.captions, strict=True
        ):
            release = _captioned(stored.arranged(question.layout), captions)
            if called not in (msgspec.UNSET, release.guarantee.unit.person_called):
                release = with_person_called(release, called)
            # A signature covers the words, too, and the order.
            is_as_stored = release is stored and not as_of
            shown.append(stored if is_as_stored else signed(release, self._account.ledger))
        return shown

    def _answers(
        self, planned: PlannedRelease, hold: Hold, counted: Sequence[Counts], noise: Bits
    ) -> list[Release]:
        charged = self._account.charged(planned.money, planned.event)
        rows = zip(planned.plan.questions, counted, planned.costs, planned.used, strict=True)
        answers: list[Release] = []
        for number, (question, counts, cost, used) in enumerate(rows, 1):
            answer = self._answered(question, counts, cost, noise)
            _require_promised(question, answer, used)
            receipt = receipt_of(
                hold.entry,
                charged,
                self._source.title,
                f"{number} of {len(counted)}",
                picked=planned.picked,
                named=self._source.named,
                by_curves=self._account.total_by_curves,
                budget=self._account.budget,
            )
            answers.append(msgspec.structs.replace(answer, receipt=receipt))
        if self._source.same_rows and self.counting.queries > 1:
            answers = [
                _promising(
                    answer, assumptions=(*answer.guarantee.assumptions, self._source.same_rows)
                )
                for answer in answers
            ]
        stated = self._left_out.stated(answers, planned.label, planned.noise)
        # A signature covers all that stands above, so it comes last.
        return [
            signed(answer, self._account.ledger)
            for answer in map(_captioned, stated, planned.captions)
        ]

    def _answered(
        self, question: AnyQuestion, counts: Counts, cost: CentralMeasure, noise: Bits
    ) -> Release:
        """Let a question answer. What one from elsewhere refuses may quote true counts."""
        try:
            return question.answer(counts, self._source.unit, cost, noise)
        except SfumatoError as error:
            if _is_ours(question):
                raise
            place = place_of(error)
        # Raised outside the except block, so that the error above does not go along.
        raise UsageError(
            f"answering {question.title}",
            f"its answer raised {place}; the text is withheld, because it may quote true counts",
            "Refuse in needs or preview, which see parameters alone",
        )


def _is_ours(question: AnyQuestion) -> bool:
    return type(question).__module__.startswith("sfumato.")


def _captioned(answer: Release, captions: Captions | None) -> Release:
    """Return an answer with the words for people of its question; without any, as it is."""
    if captions is None or captions == answer.captions:
        return answer
    return msgspec.structs.replace(answer, captions=captions)


def read_stored(hold: Hold, questions: Sequence[AnyQuestion]) -> list[Release]:
    """Decode a stored answer to some questions, which another version may have written."""
    try:
        return stored_releases(hold.stored or b"[]", questions)
    except UNREADABLE:
        pass  # raised outside the except block: what that error quotes stays here
    raise LedgerError(
        f"the answer stored under entry {hold.entry.sequence}",
        "this version cannot read it",
        "Use the version that wrote it",
        account=hold.entry.account,
    )


def _require_promised(question: AnyQuestion, answer: object, used: CentralMeasure) -> None:
    """Refuse an answer that is no release, or that promises something else than was charged."""
    attempt = f"answering {question.title}"
    if not isinstance(answer, Release):
        raise UsageError(
            attempt,
            f"its answer is of type {type(answer).__name__}, and not a release",
            "Let answer return the release that the class names",
        )
    if answer.guarantee.measure != used:
        raise UsageError(
            attempt,
            f"it promises {answer.guarantee.measure}, and {used} was charged",
            "Let preview and answer agree on what is spent",
        )


def _read_back(encoded: bytes, answers: Sequence[Release], plan: Plan) -> list[Release]:
    """Decode answers as whoever finds them stored will.

    What cannot be read back is refused before it is stored: its charge would be lost.
    """
    kinds = reduce(or_, dict.fromkeys(map(type, answers)))
    try:
        # What our own questions answer is known; of others it is what is registered.
        if all(map(_is_ours, plan.questions)):
            return from_bytes(encoded, cast("type[list[Release]]", GenericAlias(list, (kinds,))))
        return stored_releases(encoded, plan.questions)
    except UNREADABLE:
        pass  # raised outside the except block: what that error quotes stays here
    raise UsageError(
        f"answering {plan.title}",
        "the answer could not be read back from a file",
        "Give it fields of types that msgspec reads; an array is one-dimensional, of whole numbers",
    )


# --- what is asked --------------------------------------------------------------------------------


def as_stored(plan: Plan) -> Plan:
    """Return a plan with its questions as files hold them, from which they are read back alike.

    An answer holds its question. Signed with the question as it was asked, it would not match the
    signature once it is saved and loaded. Words for people are no part of what is stored there.
    """
    from_elsewhere = [question for question in plan.questions if not _is_ours(question)]
    if from_elsewhere:
        require_registered(from_elsewhere)
    return msgspec.structs.replace(
        plan, questions=[question.uncaptioned().as_in_files() for question in plan.questions]
    )


def release_hashes(account: str, source: Source, planned: PlannedRelease) -> list[str]:
    """Hash what is asked: the questions, of which state of the data, at which cost.

    The first is the one of now. The others are those of earlier versions, in which a question that
    was written in another way was another question, and a plan's cost was divided as it is stated.
    """
    domain = source.domain
    hash_of = partial(_hash, account, source, planned.noise, planned.label)
    questions: list[object] = [question.asks(domain) for question in planned.plan.questions]
    forms: list[list[object]] = [
        questions,
        [question.canonical(domain) for question in planned.plan.questions],
    ]
    before = _stated_parts(planned)
    hashes = [hash_of(questions, _cost_asked(planned))]
    if planned.choice is None or planned.costs == before:
        hashes += [hash_of(form, planned.costs) for form in forms]
    elif planned.plan.is_bare and before is not None:
        hashes += [hash_of(form, before) for form in forms]
    return list(dict.fromkeys(hashes))


def place_hash(account: str, source: Source, planned: PlannedRelease) -> str | None:
    """Hash what is asked, of whatever state of the data; None where nothing names the data."""
    place = source.place
    if place is None:
        return None
    questions: list[object] = [question.asks(source.domain) for question in planned.plan.questions]
    # No label begins so, and none may be taken for a place.
    return _hash(account, source, planned.noise, f"\0{place}", questions, _cost_asked(planned))


def _hash(
    account: str, source: Source, noise: Bits, label: str, questions: list[object], costs: object
) -> str:
    axes = list(source.domain.items())
    # What a person is called is no part of what is asked.
    unit = source.unit.uncalled
    return _fingerprint((account, questions, costs, axes, unit, label, _seed(noise)))


def _cost_asked(planned: PlannedRelease) -> object:
    """Return the cost of each question; where it was picked, what it was picked from.

    What was asked, and not what was picked: a version that picks better still finds the answer that
    was paid for.
    """
    if planned.choice is None or planned.costs == _stated_parts(planned):
        return planned.costs
    # The cost of the plan, with all that decides what is picked.
    stated = planned.stated
    cost: dict[str, object] = {"cost": stated, "delta": Fraction(0)}
    if isinstance(stated, Kind):
        cost = {"cost": None, "delta": stated.delta}
    plan = planned.plan
    options = (plan.shares, plan.accuracy, plan.weights, plan.minimise, plan.noise, plan.rows)
    return "picked", cost, [None if option is UNSET else option for option in options]


def _stated_parts(planned: PlannedRelease) -> list[CentralMeasure] | None:
    """Divide the cost as where nothing is picked; None without a cost."""
    stated = planned.stated
    return None if isinstance(stated, Kind) else planned.plan.costs(stated)


def stream_hash(
    account: str, source: Source, counter: Counter, settled: Settled, noise: Bits
) -> str:
    """Hash what a stream is opened for.

    The source's name is part of it: streams of two sources under one key would add up rows of
    both.
    """
    seed = _seed(noise)
    opened = (counter, settled.cost, source.unit.uncalled, settled.axis, settled.labels, seed)
    return f"{_fingerprint((account, 'stream', *opened))} of {source.title}"


def _seed(noise: Bits) -> str:
    return "private" if noise.private else "public seed"


def _fingerprint(asked_for: object) -> str:
    return hashlib.sha256(to_bytes(asked_for)).hexdigest()
