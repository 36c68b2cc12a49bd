"""The only place where a source, a ledger account and questions meet: charge first, count second, publish last."""

from __future__ import annotations

import hashlib
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, overload

import msgspec

from sfumato.answers.codec import UNREADABLE, to_bytes
from sfumato.answers.loading import stored_releases
from sfumato.answers.preview import Preview
from sfumato.answers.question import AnyQuestion, Question
from sfumato.answers.registry import require_registered
from sfumato.answers.release import Release, marked
from sfumato.counters.question import Counter, CounterPreview
from sfumato.cube import Cube
from sfumato.data import Source, count, snapshot
from sfumato.data.bounding import fresh_key
from sfumato.domain import Axis, Domain, Lattice
from sfumato.errors import (
    BudgetExceeded,
    DataError,
    InternalError,
    LedgerError,
    SfumatoError,
    SfumatoWarning,
    UsageError,
    place_of,
    without_frames,
)
from sfumato.forking import renewed_in_children
from sfumato.ledger import Account, Binding, Hold, Ledger, open_ledger, written
from sfumato.numbers import Exactly
from sfumato.privacy.composition import charge, in_measure, rule_of
from sfumato.privacy.measures import CentralMeasure, Money, asked_cost, measure_of, total_of
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan import Plan, as_plan
from sfumato.publishing.stream import Opening, Stream, first_state, receipt_of, signed, spec
from sfumato.random.bits import Bits, current

if TYPE_CHECKING:
    from sfumato.data.findings import Check
    from sfumato.data.reader import Progress

R = TypeVar("R", bound=Release)
T = TypeVar("T")


MOST_ROWS = 10**15


@overload
def preview(
    question: AnyQuestion,
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> Preview: ...
@overload
def preview(
    question: Counter,
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> CounterPreview: ...
@overload
def preview(
    question: Plan | Sequence[AnyQuestion],
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> list[Preview]: ...
def preview(
    question: AnyQuestion | Counter | Plan | Sequence[AnyQuestion],
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> Preview | list[Preview]:
    """What would this cost, and how accurate would it be? Touches no data, spends nothing.

    Parameters
    ----------
    question : question, list of questions, or Plan
    domain : Domain
    unit : Unit
    epsilon, delta, rho : number or text
        Give epsilon (with delta) or rho.
    rows : int or None
        Your own public guess of the number of rows, for what depends on it.

    Returns
    -------
    Preview, or a list of them for a list or a plan.

    >>> from sfumato.domain import Interval
    >>> from sfumato.histogram import Histogram
    >>> preview(Histogram("age", bins=10), domain=Domain(age=Interval(0, 100)), unit=Unit(), epsilon="0.5").accuracy()
    6
    """
    if not isinstance(unit, Unit):
        raise UsageError(
            f"unit = {type(unit).__name__}",
            "it is not a unit of privacy",
            "Write unit=source.unit, or sf.Unit(rows_per_person=4)",
        )
    if rows is not None and (
        isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows <= MOST_ROWS
    ):
        raise UsageError(
            "rows",
            "your guess of the number of rows is a whole number from 0 to 10^15",
            "Write rows=100_000",
        )
    space, cost = (
        domain if isinstance(domain, Domain) else Domain(domain),
        asked_cost(epsilon=epsilon, delta=delta, rho=rho),
    )
    if isinstance(question, Counter):
        return question.preview(space, unit, cost, rows)
    plan = as_plan(question)
    parts = plan.costs(cost)
    plan.needs(space)
    found = [
        q.preview(space, unit, part, rows) for q, part in zip(plan.questions, parts, strict=True)
    ]
    return found[0] if isinstance(question, Question) else found


@dataclass(frozen=True)
class _Order:
    """A plan as it will be charged and answered."""

    plan: Plan
    costs: list[CentralMeasure]
    used: list[CentralMeasure]
    """What each question says that it spends of its cost: what the account is charged."""
    lattices: list[Lattice]
    money: Money
    noise: Bits
    label: str = ""
    """What tells the state of the data that the question was asked of."""


class Publisher:
    """Publishes answers about one source at the expense of one account.

    Parameters
    ----------
    source : Source
        From ``sf.source``.
    ledger : path, Ledger or None
        A file that keeps the account; None: an account in memory that ends with this process, with a warning, once.
    account : str or None
        Its name; None: "default".
    budget : number, text, PureDP, ApproxDP, ZCDP or None
        The account's total; a number is a pure epsilon. None: the account exists. A total that differs from the existing
        account's raises.
    ceiling : number, text, PureDP, ApproxDP, ZCDP or None
        What all accounts of this ledger may spend together on the data set that the source names.

    Raises
    ------
    UsageError
        If the account does not exist and no budget is given, or its total differs; if it protects someone else (another
        person column, or another relation between neighbours), or pays for a data set of another name.
    LedgerError
        If the ledger cannot be opened.

    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.array([[1.0], [2.0], [2.5]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> pub = Publisher(src, budget="1")
    >>> pub.release(sf.Histogram("x", bins=4), epsilon="0.5").values.shape
    (4,)
    >>> pub.remaining
    Fraction(1, 2)
    """

    def __init__(
        self,
        source: Source,
        *,
        ledger: str | Path | Ledger | None = None,
        account: str | None = None,
        budget: Exactly | CentralMeasure | None = None,
        ceiling: Exactly | CentralMeasure | None = None,
    ) -> None:
        if not isinstance(source, Source):
            raise UsageError(
                f"a publisher of {type(source).__name__}",
                "it publishes from a source",
                "Write sf.Publisher(sf.source(data, domain), ...)",
            )
        self.source = source
        total, most = _measure(budget), _measure(ceiling)
        if most is not None and source.name is None:
            obstacle = "a ceiling is that of a data set, and this source has no name"
            raise UsageError(f"ceiling = {ceiling}", obstacle, "Give sf.source(..., name=...)")
        if most is not None and total is not None and rule_of(most) != rule_of(total):
            raise _other_measure(ceiling)
        self.ledger = (
            open_ledger(ledger) if ledger is None or isinstance(ledger, str | Path) else ledger
        )
        if not isinstance(self.ledger, Ledger):
            raise UsageError(
                f"ledger = {type(ledger).__name__}",
                "it is neither a path nor a ledger",
                'Write ledger="budget.db"',
            )
        if ledger is None:
            _warn_that_it_forgets()
        self._name = "default" if account is None else account
        self._binding = Binding(source.unit.protects, source.name or "")
        found = self._account(total)
        self.ledger.fits(found, self._binding)
        self._rule = found.rule
        if most is not None:
            if rule_of(most) != self._rule:
                raise _other_measure(ceiling)
            self._binding = replace(self._binding, ceiling=total_of(most))
            self.ledger.cap(self._name, self._binding)
        self._renew()
        renewed_in_children(self, Publisher._renew)

    def _account(self, total: CentralMeasure | None) -> Account:
        """Open the account, or find it."""
        if total is None:
            return self.ledger.account(self._name)
        return self.ledger.open_account(self._name, rule_of(total), total_of(total))

    def _renew(self) -> None:
        """Forget what was counted, as a child process must, whose parent may have been counting."""
        self._counting = threading.RLock()  # around all that follows
        self._cubes: list[Cube] = []
        self._counted: tuple[str, Bits] | None = (
            None  # the label of the data behind them, and where the next came from:
        )
        self._choice = (
            b""  # the secret that chose each person's rows, the same rows on every lattice
        )

    @property
    def account(self) -> Account:
        """The account as it stands now."""
        return self.ledger.account(self._name)

    @property
    def remaining(self) -> object:
        """What is left: an epsilon or a rho as a Fraction, or a pair of epsilon and delta."""
        return in_measure(self.account.remaining, self._rule)

    def __repr__(self) -> str:
        return f"<Publisher of {self.source!r} at the expense of account {self._name!r}>"

    @overload
    def preview(
        self,
        question: AnyQuestion,
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        rows: int | None = None,
    ) -> Preview: ...
    @overload
    def preview(
        self,
        question: Counter,
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        rows: int | None = None,
    ) -> CounterPreview: ...
    @overload
    def preview(
        self,
        question: Plan | Sequence[AnyQuestion],
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        rows: int | None = None,
    ) -> list[Preview]: ...
    def preview(
        self,
        question: AnyQuestion | Counter | Plan | Sequence[AnyQuestion],
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        rows: int | None = None,
    ) -> Preview | list[Preview]:
        """What would this cost, and how accurate would it be? Touches no data, spends nothing."""
        return preview(
            question,
            domain=self.source.domain,
            unit=self.source.unit,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            rows=rows,
        )

    def check(
        self,
        question: AnyQuestion | Plan | Sequence[AnyQuestion] | None = None,
        *,
        progress: Progress | None = None,
    ) -> Check:
        """Look at what the table would lose to bounds, labels, missing values and limits. Not for publication.

        Print the result: true counts, for the custodian's own screen. Nothing is charged, and nothing is stored.
        None: all axes of the domain together. Bounds or labels chosen from it are no longer public.
        """
        from sfumato.data.check import check

        space = self.source.domain
        asked = None if question is None else as_plan(question).questions
        lattices = (
            None if asked is None else [(each.title, each.needs(space).lattice) for each in asked]
        )
        return check(self.source, lattices, progress)

    @overload
    def release(
        self,
        question: Question[R],
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        key: str | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
    ) -> R: ...
    @overload
    def release(
        self,
        question: Plan | Sequence[AnyQuestion],
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        key: str | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
    ) -> list[Release]: ...
    @without_frames
    def release(
        self,
        question: AnyQuestion | Plan | Sequence[AnyQuestion],
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        key: str | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
    ) -> Release | list[Release]:
        """Charge the account, count once, and return the answer that was stored.

        Parameters
        ----------
        question : question, list of questions, or Plan
            Several questions share the cost: one scan, one charge.
        epsilon, delta, rho : number or text
            Give epsilon (with delta) or rho. Delta is charged only where a question needs it.
        key : str or None
            The same key asked again returns the same stored answer and costs nothing. None: a random one, found again by
            the ledger when the same question is asked at the same cost of the same data.
        fresh : bool
            Pay for a new draw although the answer is stored.
        progress : callable or None
            Called with the rows read so far and, where known, the rows in all.

        Returns
        -------
        Release, or a list of them for a list or a plan.

        Raises
        ------
        UsageError
            If the question does not fit the domain, or the key stands for another question. Nothing is spent.
        BudgetExceeded
            If the account cannot pay. Nothing is spent.
        DataError
            If the data cannot be read: before the charge if the schema shows it, else after, and the charge stands.

        Guarantee
        ---------
        The charge is durable before a row is read; the answer is durable before it is returned.
        """
        if isinstance(question, Counter):
            raise UsageError(
                "releasing a Counter",
                "it is answered step by step",
                'Write publisher.open(counter, epsilon="1", key="visits")',
            )
        _check_key(key)
        if not isinstance(fresh, bool):
            raise UsageError(
                "fresh",
                "it is true or false",
                "Write fresh=True to pay for a new draw, or leave it out",
            )
        if progress is not None and not callable(progress):
            raise UsageError(
                f"progress = {type(progress).__name__}",
                "it cannot be called",
                "Give a function of rows done and rows in all",
            )
        plan = as_plan(question)
        require_registered(plan.questions)
        # An answer holds its question: signed as it was asked, it would be read back as another one.
        plan = msgspec.structs.replace(
            plan, questions=[each.as_in_files() for each in plan.questions]
        )
        order = self._order(plan, asked_cost(epsilon=epsilon, delta=delta, rho=rho))
        self.source.require(order.lattices)
        order = replace(order, label=self.source.label)
        with self._reserve(key, fresh, order) as hold:
            replayed = hold.stored is not None
            found: list[Release] = []
            if hold.stored is None:
                with self._counting:
                    answer, found = _after_charge(
                        hold, lambda: self._answered(order, hold, progress)
                    )
                if hold.store(answer) != answer:
                    found = []  # another process was faster, and its answer is the one that counts
            found = found or _read(hold.stored or b"[]", hold)
        releases = [marked(one, replayed=replayed) for one in found]
        return releases[0] if isinstance(question, Question) else releases

    @without_frames
    def open(
        self,
        counter: Counter,
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        key: str | None = None,
    ) -> Stream:
        """Pay for a running total, once and for all its steps, and open it; or resume it where it stopped.

        Parameters
        ----------
        counter : Counter
        epsilon, delta, rho : number or text
            Give epsilon (with delta) or rho: the cost of the whole stream. Delta is charged only where the noise needs it.
        key : str or None
            The same key opens the same stream again and costs nothing. None: a random one, found again by the ledger for the
            same counter, cost, unit and source.

        Raises
        ------
        UsageError
            If the counter does not fit the domain or the cost, or the key stands for something else. Nothing is spent.
        BudgetExceeded
            If the account cannot pay. Nothing is spent.

        Guarantee
        ---------
        The charge is durable before there is a stream to push to. The source's unit and domain hold; its rows are not read.
        """
        if not isinstance(counter, Counter):
            raise UsageError(
                f"opening a {type(counter).__name__}",
                "only a Counter is opened",
                "Ask other questions by release(...)",
            )
        _check_key(key)
        noise, unit = current(), self.source.unit
        settled = counter.settle(
            self.source.domain, unit, asked_cost(epsilon=epsilon, delta=delta, rho=rho)
        )
        money = charge(settled.cost, self._rule)
        seed = "private" if noise.private else "public seed"
        what = (
            self._name,
            "stream",
            counter,
            settled.cost,
            unit,
            settled.axis,
            settled.labels,
            seed,
        )
        # Streams of two sources under one key would add up rows of both, so the source's name is part of what is asked.
        asked = f"{_fingerprint(what)} of {self.source.title}"
        opening = Opening(settled, noise.private, written(self._rule, money), self.source.title)
        with self._refusals(money):
            steps = self.ledger.stream(
                self._name,
                key,
                asked,
                money,
                counter.title[:200],
                spec=spec(opening),
                state=first_state(settled),
                secret=secrets.token_bytes(32),
                binding=self._binding,
            )
        return Stream(steps, noise, self.ledger)

    def close(self) -> None:
        """Close the ledger; closing twice is harmless."""
        self.ledger.close()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _order(self, plan: Plan, cost: CentralMeasure) -> _Order:
        """Check a plan against domain, unit and account, and fix what each question may spend. Touches no data."""
        space, unit, costs = self.source.domain, self.source.unit, plan.costs(cost)
        used = [
            q.preview(space, unit, part).cost for q, part in zip(plan.questions, costs, strict=True)
        ]
        money = [charge(part, self._rule) for part in used]
        total = sum(part[0] for part in money), sum(part[1] for part in money)
        return _Order(plan, costs, used, plan.needs(space), total, current())

    def _asked(self, order: _Order) -> str:
        """Fix what is asked, of which data, for what price; noise from a public seed is another thing altogether.

        This knows the state of the data, so it goes nowhere but into the ledger's secrets. Its form is that of version 0.1,
        whose answers are still found by it.
        """
        source, seed = self.source, "private" if order.noise.private else "public seed"
        asked = [question.canonical(source.domain) for question in order.plan.questions]
        return _fingerprint(
            (
                self._name,
                asked,
                order.costs,
                list(source.domain.items()),
                source.unit,
                order.label,
                seed,
            )
        )

    @contextmanager
    def _reserve(self, key: str | None, fresh: bool, order: _Order) -> Iterator[Hold]:
        if fresh:
            key = f"{key or secrets.token_hex(8)}+{secrets.token_hex(8)}"
        title = order.plan.title[:200]
        with self._refusals(order.money):
            hold = self.ledger.reserve(
                self._name, key, self._asked(order), order.money, title, binding=self._binding
            )
        with hold:
            yield hold

    @contextmanager
    def _refusals(self, money: Money) -> Iterator[None]:
        """Say in the account's own measure what it refused."""
        try:
            yield
        except BudgetExceeded as error:
            error.requested = in_measure(money, self._rule)
            match error.remaining:
                case (int(first), int(second)):
                    error.remaining = in_measure((first, second), self._rule)
            raise

    def _answered(
        self, order: _Order, hold: Hold, progress: Progress | None
    ) -> tuple[bytes, list[Release]]:
        """The answers as they are stored, and as they are read back. What cannot be read back is not stored."""
        with snapshot(
            self.source
        ):  # all counts see one state of the data, where its engine can hold one
            answer = to_bytes(self._answers(order, hold, progress))
        try:
            return answer, stored_releases(answer)
        except UNREADABLE:
            pass  # what it quotes stays here
        remedy = "Give it fields of types that msgspec reads; an array is one-dimensional, of whole numbers"
        raise UsageError(
            f"answering {order.plan.title}", "the answer could not be read back from a file", remedy
        )

    def _answers(self, order: _Order, hold: Hold, progress: Progress | None) -> list[Release]:
        now = (
            order.label,
            order.noise,
        )  # data that were changed since would answer for those of before
        if (
            self.source.in_memory
            or self._counted is None
            or self._counted[0] != now[0]
            or self._counted[1] is not now[1]
        ):
            self._cubes, self._counted, self._choice = (
                [],
                now,
                fresh_key(),
            )  # a table in memory may have been changed in place
        cubes, unit, number = (
            self._count(order.lattices, progress),
            self.source.unit,
            len(order.lattices),
        )
        answers, charged = list[Release](), written(self._rule, order.money)
        recount = partial(self._recount, progress)
        for i, (question, cube, cost) in enumerate(
            zip(order.plan.questions, cubes, order.costs, strict=True), 1
        ):
            answer = question.answer(_Counts(cube, recount), unit, cost, order.noise)
            _require_promised(question, answer, order.used[i - 1])
            receipt = receipt_of(hold.entry, charged, self.source.title, f"{i} of {number}")
            answers.append(signed(msgspec.structs.replace(answer, receipt=receipt), self.ledger))
        return answers

    def _count(self, lattices: list[Lattice], progress: Progress | None) -> list[Cube]:
        """Count in one scan whatever no cube at hand can answer. The data are to stay what they were: persons keep their rows."""
        missing = [lattice for lattice in dict.fromkeys(lattices) if self._cached(lattice) is None]
        needed = [
            one
            for one in missing
            if not any(other != one and other.refines(one) for other in missing)
        ]
        if needed:
            self._cubes += count(self.source, needed, progress, key=self._choice)
            if self._counted is None or self._counted[0] != self.source.label:
                self._counted = None
                raise DataError(
                    self.source.title,
                    "it was changed while it was read",
                    "Ask again when nobody writes to it",
                )
        cubes = [self._cached(lattice) for lattice in lattices]
        return [cube for cube in cubes if cube is not None]

    def _recount(self, progress: Progress | None, lattice: Lattice) -> Cube:
        """Count the rows of this answer on another lattice."""
        return self._count([lattice], progress)[0]

    def _cached(self, lattice: Lattice) -> Cube | None:
        return next((cube.on(lattice) for cube in self._cubes if cube.serves(lattice)), None)


class _Counts:
    """The counted rows of one release: every lattice is counted under the same choice of each person's rows."""

    def __init__(self, cube: Cube, recount: Callable[[Lattice], Cube]) -> None:
        self._cube = cube
        self._recount = recount

    @property
    def lattice(self) -> Lattice:
        return self._cube.lattice

    def serves(self, lattice: Lattice) -> bool:
        return True

    def on(self, lattice: Lattice) -> Cube:
        return self._cube.on(lattice) if self._cube.serves(lattice) else self._recount(lattice)


def _require_promised(question: AnyQuestion, answer: object, used: CentralMeasure) -> None:
    """Refuse an answer that is none, or that promises something else than was charged."""
    asked = f"answering {question.title}"
    if not isinstance(answer, Release):
        obstacle = f"its answer is of type {type(answer).__name__}, and not a release"
        raise UsageError(asked, obstacle, "Let answer return the release that the class names")
    if answer.guarantee.measure != used:
        obstacle = f"it promises {answer.guarantee.measure}, and {used} was charged"
        raise UsageError(asked, obstacle, "Let preview and answer agree on what is spent")


def _check_key(key: object) -> None:
    if key is not None and (not isinstance(key, str) or not key):
        raise UsageError(
            f"key of type {type(key).__name__}",
            "a key is a text that is not empty",
            "Name the release, or leave the key out",
        )


def _measure(amount: Exactly | CentralMeasure | None) -> CentralMeasure | None:
    """A total as it may be given: a number is a pure epsilon."""
    return (
        amount
        if amount is None or isinstance(amount, CentralMeasure)
        else measure_of("a total", epsilon=amount)
    )


def _fingerprint(what: object) -> str:
    return hashlib.sha256(to_bytes(what)).hexdigest()


def _other_measure(ceiling: object) -> UsageError:
    return UsageError(
        f"ceiling = {ceiling}",
        "it is in another measure than the account",
        "Write it as the budget is written",
    )


_warned = False


def _warn_that_it_forgets() -> None:
    """Say once that an account in memory forgets; every process that asks again spends again."""
    global _warned  # noqa: PLW0603 (once in a process)
    if not _warned:
        _warned = True
        text = 'This account is in memory, and forgets what it spent when the program ends. Write ledger="budget.db" to keep it.'
        warnings.warn(text, SfumatoWarning, stacklevel=3)


def _read(stored: bytes, hold: Hold) -> list[Release]:
    """Decode a stored answer, which another version may have written."""
    try:
        releases = stored_releases(stored)
    except UNREADABLE:
        pass
    else:
        return releases
    entry = hold.entry
    obstacle = "this version cannot read it"
    raise LedgerError(
        f"the answer stored under entry {entry.sequence}",
        obstacle,
        "Use the version that wrote it",
        account=entry.account,
    )


def _after_charge(hold: Hold, action: Callable[[], T]) -> T:
    """Let no exception out that could carry a value: ours pass with a word on the charge, others become a fault of ours."""
    try:
        return action()
    except (SfumatoError, KeyboardInterrupt, GeneratorExit, SystemExit) as error:
        error.add_note(
            f"The charge stands: entry {hold.entry.sequence} of account {hold.entry.account!r}. Nothing was published."
        )
        error.add_note("The same key resumes once without paying again.")
        raise
    except BaseException as error:  # engines panic by exceptions of this kind, which quote values
        place = place_of(error)
    # Raised outside the except block: the error above stays out of __context__, with whatever it may quote.
    raise InternalError(
        f"Answering failed after the charge: {place}. Nothing was published. Please report this line; it holds no data."
    )
