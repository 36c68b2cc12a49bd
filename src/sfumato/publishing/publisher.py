"""The only place where a source, a ledger account and questions meet.

It charges first, counts second and publishes last. Wrong arguments are refused before anything else
is done.
"""

from __future__ import annotations

import inspect
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypedDict, TypeVar, Unpack, overload

import msgspec

from sfumato.answers import AnyQuestion, Kind, Preview, Question, Release, marked
from sfumato.basics import Deferred, DeferredClass, Exactly, to_bytes
from sfumato.data import Source
from sfumato.data.reader import OPENING, Progress
from sfumato.errors import (
    DataError,
    UsageError,
    explained,
    explained_methods,
    warn_once,
    without_frames,
)
from sfumato.ledger import Account, Hold, Ledger
from sfumato.privacy import CentralMeasure, Unit, asked_cost
from sfumato.publishing.account import PublisherAccount, R
from sfumato.publishing.answering import (
    LONGEST_NOTE,
    Answering,
    PlannedRelease,
    as_stored,
    place_hash,
    release_hashes,
    stream_hash,
)
from sfumato.publishing.plan import Plan, as_plan, costs_of, event_of, plan_cost
from sfumato.publishing.plan_choice import choose
from sfumato.publishing.previews import PlanPreviews, checked, needs_to_check, previewed
from sfumato.random.bits import current

if TYPE_CHECKING:
    from sfumato.data.losses import Check
    from sfumato.publishing import stream as streams
    from sfumato.publishing.stream import Stream
    from sfumato.questions.counters.question import Counter, CounterPreview
else:
    streams = Deferred("sfumato.publishing.stream")
    Counter = DeferredClass("sfumato.questions.counters.question", "Counter")


# --- arguments ------------------------------------------------------------------------------------


P = ParamSpec("P")


class CostOptions(TypedDict, total=False):
    """How a cost is given by name."""

    epsilon: Exactly | None
    delta: Exactly
    rho: Exactly | None


class PreviewOptions(CostOptions, total=False):
    """What ``Publisher.preview`` takes by name."""

    rows: int | None


class ReleaseOptions(CostOptions, total=False):
    """What ``Publisher.release`` takes by name."""

    key: str | None
    fresh: bool
    stored: bool
    progress: Progress | None


def check_key(key: object) -> None:
    """Refuse a key that is no text."""
    if key is not None and (not isinstance(key, str) or not key):
        raise UsageError(
            f"key of type {type(key).__name__}",
            "a key is a text that is not empty",
            "Name the release, or leave the key out",
        )


def check_stream_unit(unit: Unit) -> None:
    """Refuse limits that a stream does not keep: it counts a person's rows in all its steps."""
    if unit.by_cell or len(unit.person_columns) > 1:
        raise UsageError(
            "opening a Counter under limits by cell or a period",
            "a stream keeps a limit on the rows of a person in all its steps alone",
            "Give the source one person column and rows_per_person",
        )
    if unit.where is not msgspec.UNSET:
        raise UsageError(
            "opening a Counter on a source with where",
            "steps are pushed, and are not read from the source: no condition drops their rows",
            "Push the rows that satisfy it alone, and give the source no condition",
        )


def check_flag(name: str, flag: object, meaning: str) -> None:
    """Refuse a flag that is neither true nor false."""
    if not isinstance(flag, bool):
        raise UsageError(
            name, "it is true or false", f"Write {name}=True to {meaning}, or leave it out"
        )


def check_stored(key: object, *, fresh: bool, stored: bool) -> None:
    """Refuse to give a stored answer where another one is named, or is to be paid for."""
    other = "fresh=True" if fresh else "key"
    if stored and (fresh or key is not None):
        raise UsageError(
            f"stored=True with {other}",
            "it gives the newest answer that is stored, and pays for none",
            f"Leave {other} out, or leave stored out",
        )


def check_progress(progress: object) -> None:
    """Refuse what cannot be called."""
    is_function = callable(progress)
    if progress is None or (callable(progress) and _takes_two(progress)):
        return
    raise UsageError(
        "progress" if is_function else f"progress = {type(progress).__name__}",
        "it does not take two arguments" if is_function else "it cannot be called",
        "Give a function of rows done and rows in all",
    )


def _takes_two(function: Callable[P, object]) -> bool:
    """Whether a function can be called with two arguments; one that does not say so may."""
    try:
        inspect.signature(function).bind(0, None)
    except TypeError:
        return False
    except ValueError:  # a function of C without a signature
        return True
    return True


def warn_of_no_name(source: Source) -> None:
    """Say once that answers about a table in memory without a name are not found again."""
    if source.name is not None or not source.in_memory:
        return
    warn_once(
        "This table has no name, so whoever runs this again pays again: its stored answers are not "
        'found. Write sf.source(..., name="people"), and a new version= whenever its rows change.',
        # Four levels up is whoever asked for the release: one is the wrapper that drops frames.
        stacklevel=4,
    )


# --- the publisher --------------------------------------------------------------------------------

R2 = TypeVar("R2", bound=Release)
R3 = TypeVar("R3", bound=Release)

# Says what was charged, and what was not because its answer is stored; level INFO.
LOG = logging.getLogger("sfumato")


@explained_methods
class Publisher:
    """Publish answers about one source, and charge each of them to one account.

    Use it in a ``with`` statement, which closes the ledger.

    Parameters
    ----------
    source : Source
        From ``sf.source``.
    ledger : path, Ledger or None
        The file that holds the account; a missing file is made. Or the address of a PostgreSQL
        database in which there is a ledger: `sfumato ledger init` makes one. None: an account in
        memory, which ends with this process; a warning says so once.
    account : str or None
        The name of the account; None: "default".
    budget : number, text, PureDP, ApproxDP, ZCDP or None
        The account's total, with which it is opened if there is none of its name. A number or text
        such as ``"0.5"`` is a pure epsilon above 0; ``"3,1e-6"`` is an epsilon and a delta, and
        ``"rho=0.5"`` a rho. None: the account must
        exist.
    ceiling : number, text, PureDP, ApproxDP, ZCDP or None
        What all accounts of this ledger may spend together on the data set that the source names.
    spender : str or None
        Who spends, where the custodian has named spenders of the account. A file takes your word;
        a server knows you by the role that logs in, and you may leave it out.

    Raises
    ------
    UsageError
        If the account does not exist and no budget is given; if its total is another one; if it
        protects someone else (by another person column, or another relation between neighbours);
        or if it pays for a data set of another name.
    LedgerError
        If the ledger cannot be opened.

    Guarantee: all answers that are charged to the account together have at most its total as their
    privacy loss, for the unit of the source.
    Holds because: a charge is durable before a row is read and is never refunded; costs add up
    exactly. For accounts kept in rho: Bun, Steinke 2016.
    Not covered: charges in another ledger; an account in memory, once its process has ended.

    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.array([[1.0], [2.0], [2.5]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> pub = Publisher(src, budget="1")
    >>> pub.release(sf.Histogram("x", bins=4), epsilon="0.5").values.shape
    (4,)
    >>> pub.remaining
    Fraction(1, 2)
    """

    _opens_at_once: ClassVar[bool] = True

    def __init__(
        self,
        source: Source,
        *,
        ledger: str | Path | Ledger | None = None,
        account: str | None = None,
        budget: Exactly | CentralMeasure | None = None,
        ceiling: Exactly | CentralMeasure | None = None,
        spender: str | None = None,
    ) -> None:
        if not isinstance(source, Source):
            raise UsageError(
                f"sf.Publisher of type {type(source).__name__}",
                "it publishes from a source",
                'Write sf.Publisher(sf.source(data, domain), ledger="sfumato.db", ...)',
            )
        self.source = source
        self._account = PublisherAccount(
            source,
            ledger=ledger,
            account=account,
            budget=budget,
            ceiling=ceiling,
            spender=spender,
        )
        self.ledger = self._account.ledger
        self._answering = Answering(source, self._account)
        if self._opens_at_once:
            self._account.open()

    @property
    @explained
    def account(self) -> Account:
        """The account as it stands now."""
        return self._account.now

    @property
    @explained
    def remaining(self) -> object:
        """What is left: an epsilon or a rho as a Fraction, or a pair of epsilon and delta.

        Where the account has spenders, it is what is left of their own ceiling if that is less.
        """
        return self._account.remaining

    def __repr__(self) -> str:
        return f"<Publisher of {self.source!r} at the expense of account {self._account.name!r}>"

    @overload
    def preview(self, question: AnyQuestion, **given: Unpack[PreviewOptions]) -> Preview: ...
    @overload
    def preview(self, question: Counter, **given: Unpack[PreviewOptions]) -> CounterPreview: ...
    @overload
    def preview(
        self, question: Plan | Sequence[AnyQuestion], **given: Unpack[PreviewOptions]
    ) -> PlanPreviews: ...
    def preview(
        self,
        question: AnyQuestion | Counter | Plan | Sequence[AnyQuestion],
        *,
        epsilon: Exactly | None = None,
        delta: Exactly = 0,
        rho: Exactly | None = None,
        rows: int | None = None,
    ) -> Preview | PlanPreviews:
        """What would this cost, and how accurate would it be? Touches no data, spends nothing.

        The parameters are those of ``sf.preview``; domain and unit are the source's. What is picked
        for a plan is what the account can pay for.
        """
        self._account.renew()
        preview = previewed(
            question,
            self.source.domain,
            self.source.unit,
            rows,
            self._account.rule,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
        )
        if not (
            isinstance(question, Question)
            and isinstance(preview, Preview)
            and self._account.by_curves
        ):
            return preview
        cost = asked_cost(epsilon=epsilon, delta=delta, rho=rho)
        event = question.event(self.source.domain, self.source.unit, cost)
        return msgspec.structs.replace(preview, payable=self._account.payable(event))

    def check(
        self,
        question: AnyQuestion | Plan | Sequence[AnyQuestion] | None = None,
        *,
        progress: Progress | None = None,
        all_labels: bool = False,
    ) -> Check:
        """Show what the table would lose to bounds, labels, missing values and limits.

        The result is not for publication: it holds true counts, for the custodian's own screen.
        Nothing is charged, and nothing is stored. Bounds or labels that are chosen from it are no
        longer public.

        Parameters
        ----------
        question : question, list of questions, Plan or None
            None: all axes of the domain together.
        progress : callable or None
            Called with the rows read so far and, where known, the rows in all.
        all_labels : bool
            Whether all labels that are not listed are shown, and not the most frequent ones alone.

        Returns
        -------
        Check
            Print it.
        """
        needs = None
        if question is not None:
            needs = needs_to_check(as_plan(question), self.source.domain, self.source.unit)
        return checked(self.source, needs, progress, all_labels=all_labels)

    @overload
    def release(self, question: Question[R], **given: Unpack[ReleaseOptions]) -> R: ...
    @overload
    def release(
        self, question: tuple[Question[R]], **given: Unpack[ReleaseOptions]
    ) -> tuple[R]: ...
    @overload
    def release(
        self, question: tuple[Question[R], Question[R2]], **given: Unpack[ReleaseOptions]
    ) -> tuple[R, R2]: ...
    @overload
    def release(
        self,
        question: tuple[Question[R], Question[R2], Question[R3]],
        **given: Unpack[ReleaseOptions],
    ) -> tuple[R, R2, R3]: ...
    @overload
    def release(self, question: Plan, **given: Unpack[ReleaseOptions]) -> tuple[Release, ...]: ...
    @overload
    def release(
        self, question: Sequence[Question[R]], **given: Unpack[ReleaseOptions]
    ) -> tuple[R, ...]: ...
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
        stored: bool = False,
        progress: Progress | None = None,
    ) -> Release | tuple[Release, ...]:
        """Answer a question: charge the account, count the rows, add noise, store the answer.

        The same question at the same cost returns the stored answer, and costs nothing. Its
        ``replayed`` is then true, and the logger "sfumato" says so at level INFO. If it was paid
        for when the data were in another state, nothing is charged before you say what you want:
        the stored answer (``stored``), one about these data that is found again by their
        ``version`` (see ``sf.source``), or one that is paid for in any case (``fresh``).

        A charge whose answer was never stored, because the program failed or was stopped, is
        resumed when the question is asked again, as often as it takes. It draws the same noise each
        time, and costs nothing more.

        Parameters
        ----------
        question : question, list of questions, or Plan
            Several questions take one charge. They share the cost equally, by the shares of the
            plan, or as is picked for it: see ``Plan``.
        epsilon, delta, rho : number or text
            Give epsilon (with delta) or rho, above 0; delta below 1. Delta is charged only if a
            question needs it, or Gaussian noise is picked for a plan. A plan that says how accurate
            each answer must be may leave epsilon and rho out: the least cost is then charged.
        key : str or None
            A name for this release. The same key asked again returns the same stored answer and
            costs nothing. None: a random key, which the ledger finds again when the same question
            is asked at the same cost of the same data.
        fresh : bool
            Whether to pay for a new draw of the noise although the answer is stored.
        stored : bool
            Whether to give the newest answer that is stored, in whatever state the data were then,
            and to charge nothing. It says the day on which it was paid for. Not together with
            ``fresh`` or ``key``.
        progress : callable or None
            Called with the rows read so far and, where known, the rows in all.

        Returns
        -------
        Release
            The answer; for a list or a plan a tuple of them, in the order of the questions. Each
            states its own guarantee. Type checkers know the kind of each answer to a tuple of up to
            three questions.

        Raises
        ------
        UsageError
            If the question does not fit the domain, the key stands for another question, or nothing
            is ``stored``. Nothing is spent. ``Infeasible``, if a plan asks for more accuracy than
            its cost allows. ``StoredElsewhere``, if it was paid for in another state of the data.
        BudgetExceeded
            If the account cannot pay. Nothing is spent.
        DataError
            If the data cannot be read. If the schema shows it, nothing is spent; if it is found
            later, the charge stands.
        LedgerError
            If the ledger cannot be written.

        Guarantee
        ---------
        The charge is durable before a row is read; the answer is durable before it is returned.

        >>> import numpy as np, sfumato as sf
        >>> ages = np.array([[31.0], [31.5], [64.0]])
        >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 120)), name="ages")
        >>> with sf.Publisher(src, budget="1") as publisher:
        ...     release = publisher.release(sf.Histogram("age", bins=4), epsilon="0.5")
        ...     again = publisher.release(sf.Histogram("age", bins=4), epsilon="0.5")
        >>> release.values.shape, again.replayed, again == release
        ((4,), True, True)
        """
        if isinstance(question, Counter):
            raise UsageError(
                "releasing a Counter",
                "it is answered step by step",
                'Write publisher.open(counter, epsilon="1", key="visits")',
            )
        check_key(key)
        check_flag("fresh", fresh, "pay for a new draw")
        check_flag("stored", stored, "be given the stored answer")
        check_stored(key, fresh=fresh, stored=stored)
        check_progress(progress)
        if key is None and not fresh and self._account.lasts:
            warn_of_no_name(self.source)
        plan = as_plan(question).settled(self.source.domain)
        stated = plan_cost(plan, epsilon=epsilon, delta=delta, rho=rho)
        planned = self._planned(plan, stated, single=isinstance(question, Question))
        # What the schema shows to be unreadable is refused before the charge.
        self.source.require(planned.needs)
        self._require_scans(planned.plan)
        # The state of the data that the charge is for. If it is another one when the data are
        # counted, nothing is published.
        planned = replace(planned, label=self.source.label)
        # The charge is on disk before a row is read: whatever fails from here on, it stands, and no
        # failure can be repeated for nothing until its noise is favourable.
        with self._reserved(planned, key, fresh=fresh, stored=stored) as hold:
            # It may have been widened since the plan was made: the receipt states the charge.
            self._account.renew()
            replayed = hold.stored is not None
            if replayed:
                releases = self._answering.replayed_answers(planned, hold, as_of=stored)
            else:
                releases = self._answering.stored_answers(planned, hold, progress)
        if replayed:
            LOG.info("Stored answer, nothing spent: %s.", _noted(planned))
        else:
            LOG.info("Charged to account %r: %s.", self._account.name, _noted(planned))
        answers = tuple(marked(release, replayed=replayed) for release in releases)
        return answers[0] if isinstance(question, Question) else answers

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
        """Pay for a running total, once for all its steps, and open it; or resume it.

        Parameters
        ----------
        counter : Counter
        epsilon, delta, rho : number or text
            Give epsilon (with delta) or rho: the cost of the whole stream. Delta is charged only
            where the noise needs it.
        key : str or None
            A name for this stream. The same key opens the same stream again, after its last step,
            and costs nothing. None: a random key, which the ledger finds again for the same
            counter, cost, unit and source.

        Returns
        -------
        Stream

        Raises
        ------
        UsageError
            If the counter does not fit the domain or the cost, or the key stands for something
            else. Nothing is spent.
        BudgetExceeded
            If the account cannot pay. Nothing is spent.

        Guarantee
        ---------
        The charge is durable before there is a stream to push to. The source gives its unit and its
        domain; its rows are not read.
        """
        if not isinstance(counter, Counter):
            raise UsageError(
                f"opening a {type(counter).__name__}",
                "only a Counter is opened",
                "Ask other questions by release(...)",
            )
        check_key(key)
        check_stream_unit(self.source.unit)
        noise = current()
        cost = asked_cost(epsilon=epsilon, delta=delta, rho=rho)
        captions = counter.captions
        counter = counter.uncaptioned()
        settled = counter.settle(self.source.domain, self.source.unit, cost)
        if captions is not None:
            captions.require(counter.title, settled.categories, self.source.domain)
        self._account.renew()
        event = settled.event if self._account.counts_events else None
        money = self._account.money([settled.cost], event)
        charged = self._account.charged(money, event)
        words = msgspec.UNSET if captions is None else captions
        opening = streams.Opening(
            settled,
            noise.private,
            charged,
            self.source.title,
            words,
            self._account.total_by_curves,
            self._account.budget,
        )
        with self._account.refusing_in_measure(money, event):
            self._account.open(money)
            record = self.ledger.stream(
                self._account.name,
                key,
                stream_hash(self._account.name, self.source, counter, settled, noise),
                money,
                counter.title[:LONGEST_NOTE],
                spec=to_bytes(opening),
                state=streams.first_state(settled),
                secret=secrets.token_bytes(32),
                binding=self._account.binding,
                spender=self._account.spender,
                event="" if event is None else str(event),
                rule=self._account.rule,
            )
        # Only now, with the charge on disk, is there anything to push to.
        return streams.Stream(record, noise, self.ledger, captions, self.source.unit.person_called)

    def close(self) -> None:
        """Close the ledger; closing twice is harmless."""
        self.ledger.close()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what is asked ----------------------------------------------------------------------------

    def _planned(
        self, given: Plan, stated: CentralMeasure | Kind, *, single: bool
    ) -> PlannedRelease:
        """Check a plan against domain, unit and account, without any data.

        What each question may spend, and is charged, is fixed here.
        """
        domain = self.source.domain
        unit = self.source.unit
        plan = as_stored(given)
        plan.require_unit(unit)
        self._account.renew()
        choice = None if single else choose(plan, domain, unit, stated, self._account.rule)
        costs = costs_of(plan, stated, choice)
        # A question may need less than its part, such as one that needs no delta.
        used = [
            question.preview(domain, unit, part).cost
            for question, part in zip(plan.questions, costs, strict=True)
        ]
        event = None
        if self._account.counts_events:
            event = event_of(plan, domain, unit, costs, used, choice)
        money = self._account.money(used, event, choice)
        # What could not be counted, answered and stored is refused here: its charge would be lost.
        needs = plan.needs_at(domain, unit, costs)
        captions = [question.captions for question in given.questions]
        for words, question in zip(captions, plan.questions, strict=True):
            if words is not None:
                words.require(question.title, question.shown_lattice(domain), domain)
        return PlannedRelease(
            plan,
            costs,
            used,
            needs,
            money,
            event,
            current(),
            captions,
            stated=stated,
            choice=choice,
        )

    def _require_scans(self, plan: Plan) -> None:
        """Refuse to count again what can be read once."""
        for question in plan.questions:
            if self.source.read_once and question.counts_again(self.source.domain):
                raise DataError(
                    self.source.title,
                    f"it can be read once, and {question.title} may count the rows again",
                    f"Give a table, a file, or {OPENING}",
                )

    @contextmanager
    def _reserved(
        self, planned: PlannedRelease, key: str | None, *, fresh: bool, stored: bool
    ) -> Iterator[Hold]:
        is_named = key is not None
        if fresh:
            # A key of its own, which nobody asked for before, is always charged.
            key = f"{key or secrets.token_hex(8)}+{secrets.token_hex(8)}"
        account = self._account.name
        question_hash, *formerly = release_hashes(account, self.source, planned)
        place = None if is_named else place_hash(account, self.source, planned)
        if stored:
            newest = self.ledger.newest_answer(
                account, question_hash, place, formerly=formerly, spender=self._account.spender
            )
            if newest is None:
                raise UsageError(
                    f"the stored answer to {_noted(planned)}",
                    f"account {account!r} has none at this cost, of data of this name or path",
                    "Ask without stored=True (command line: without --stored), which pays for one",
                )
            yield newest
            return
        with self._account.refusing_in_measure(planned.money, planned.event):
            self._account.open(planned.money)
            hold = self.ledger.reserve(
                account,
                key,
                question_hash,
                planned.money,
                _noted(planned),
                binding=self._account.binding,
                formerly=formerly,
                spender=self._account.spender,
                event="" if planned.event is None else str(planned.event),
                place=place,
                fresh=fresh and not is_named,
                seed=self._answering.proposed_draws(planned).kept(),
                rule=self._account.rule,
            )
        with hold:
            yield hold


class CommandPublisher(Publisher):
    """A publisher whose account its first charge opens: a command that is refused leaves none."""

    _opens_at_once = False


def _noted(planned: PlannedRelease) -> str:
    return planned.plan.title[:LONGEST_NOTE]
