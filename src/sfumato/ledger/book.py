"""The account book of a data set: what may be spent, what was spent, and what was answered.

A `Book` is written once, over any `Store`, and knows nothing of questions, measures or data, and
nothing of SQL. To read and check a ledger, it needs no secrets. ``open_ledger`` opens a ledger from
the path that a user gives.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_bytes as random_bytes
from types import TracebackType

from sfumato.basics import kind_of, renewed_in_children, signing
from sfumato.errors import LedgerError, UsageError, explained
from sfumato.ledger import charge, journal, refusals, stream_record
from sfumato.ledger.anchor import Anchor, hash_of
from sfumato.ledger.audit import MOST_FAULTS, audit, faults, first_fault
from sfumato.ledger.charge import OPEN_IT, Hold, Payer, require_account
from sfumato.ledger.entries import (
    NOTHING,
    Account,
    Amount,
    Binding,
    Entry,
    Spender,
    Verification,
)
from sfumato.ledger.secrets import Secrets, opened
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.ledger.store import (
    MOVED,
    PublicRows,
    Request,
    SecretRows,
    Store,
    StoreError,
    require_amount,
    require_text,
)
from sfumato.ledger.stream_record import StreamRecord

# --- the book -------------------------------------------------------------------------------------

BATCH = 500  # entries of the log that are read at a time


class Book:
    """The record of what was spent, by account. Processes and threads may share it.

    ``sfumato.ledger.open_ledger(path)`` opens one in a file. ``sf.Publisher`` takes it, or its
    path, and calls what is needed. In annotations, write ``sf.Ledger``.

    Parameters
    ----------
    store : Store
        Keeps the rows. Its secret part is opened only if it is needed: to read or verify a copy,
        the public part suffices.
    anchor : str, Path or None
        A second file, best on another disk, to which every charge appends the last entry's number
        and hash. If an older copy of the ledger is put back, it is then refused.

    spender : str or None
        Who spends, where an account has spenders. A server knows by the role that logged in, and
        refuses another name.

    Guarantee: entries are only added, each account keeps within its total, all accounts that pay
    for one data set keep within its ceiling, and each spender within their own.
    Not covered: charges in another ledger; whoever can write to the files can replace them.

    Raises
    ------
    UsageError
        If a path is given instead of a store.

    >>> import numpy as np, sfumato as sf
    >>> from sfumato.ledger import open_ledger
    >>> src = sf.source(np.array([[1.0], [3.0]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> with open_ledger(None) as ledger:
    ...     publisher = sf.Publisher(src, ledger=ledger, account="trial", budget="2")
    ...     _ = publisher.release(sf.Histogram("x", bins=4), epsilon="1")
    ...     ledger.account("trial").spent, ledger.verify().ok
    ...     [entry.kind for entry in ledger.log()]
    ((1000000000, 0), True)
    ['open', 'bind', 'reserve', 'store', 'hand']
    """

    @explained
    def __init__(
        self,
        store: Store,
        *,
        anchor: str | Path | None = None,
        spender: str | None = None,
    ) -> None:
        if isinstance(store, str | Path):
            raise UsageError(
                f"Ledger({str(store)!r})",
                "it is a path, and a book is kept over a store",
                "Give the path to sf.Publisher(ledger=...), or to sfumato.ledger.open_ledger",
            )
        self._store = store
        self._anchor = None if anchor is None else Anchor(anchor)
        self._secrets: Secrets | None = None
        self._spender = spender
        self._streams: list[StreamRecord] = []
        self._examined = False
        self._renew()
        renewed_in_children(self, Book._renew)

    def _renew(self) -> None:
        """Begin with a new lock, as a child process must: its parent may hold the old one."""
        self._opening = threading.RLock()

    def __repr__(self) -> str:
        return f"Book({self._store!r})"

    def __enter__(self) -> Book:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger; closing twice is harmless."""
        streams = self._streams
        self._streams = []
        try:
            if self._anchor is not None:
                self._anchor.note_steps(streams)
        finally:
            if self._secrets is not None:
                self._secrets.store.close()
            self._store.close()

    # --- its parts --------------------------------------------------------------------------------

    def _opened_secrets(self) -> Secrets:
        """The secrets, opened before any transaction that needs them begins."""
        if self._secrets is None:
            # Without the lock, two threads would make two secrets for one ledger in memory.
            with self._opening:
                self._secrets = self._secrets or opened(self._store)
        return self._secrets

    def _secrets_if_any(self) -> Secrets | None:
        if self._secrets is None and not self._store.has_secrets():
            return None
        return self._opened_secrets()

    def _examine(self) -> Secrets | None:
        """Check the whole ledger once, as must be done before any change: its secrets.

        It finds what a damaged or an older ledger shows at once; `audit` finds the rest. A caller
        who may not read the secrets looks at the public part, and gets None.
        """
        secrets = self._opened_secrets() if self._store.caller(None).is_custodian else None
        if self._examined:
            return secrets
        fault = self._store.reading(first_fault)
        if fault is not None:
            raise LedgerError(
                self._store.label,
                fault,
                "Restore a copy that verifies; do not publish from this one",
            )
        if secrets is not None and secrets.store.reading(lambda rows: rows.any_stream()):
            self._store.require_private()
        if self._anchor is not None:
            fault = self._anchor.fault(self._store, secrets)
            if fault is not None:
                raise LedgerError(
                    self._store.label, fault, "Restore the latest copy, with its secrets"
                )
            # A charge is noted only once it is durable, and that is too late to refuse the file.
            self._anchor.note()
        if secrets is not None:
            secrets.wipe_left_over(self._store)
        self._examined = True
        return secrets

    @property
    def label(self) -> str:
        """What messages call it; an address without user and password."""
        return self._store.label

    @property
    def is_newest(self) -> bool:
        """Whether it is in the newest format, which holds curves."""
        return self._store.reading(lambda rows: rows.with_curves)

    # --- accounts ---------------------------------------------------------------------------------

    def accounts(self) -> list[Account]:
        """All accounts, in the order in which they were opened."""
        return self._store.reading(lambda rows: rows.accounts())

    def account(self, name: str, *, remedy: str = OPEN_IT) -> Account:
        """One account, as it stands now; of one that does not exist, a refusal with this remedy."""
        label = self._store.label
        return self._store.reading(lambda rows: require_account(rows, name, label, remedy))

    def paid_beside(self, name: str, binding: Binding) -> list[tuple[str, Account]]:
        """Accounts of other ledgers in the same folder that have paid for what an account binds.

        Parameters
        ----------
        name : str
            That of the account. Data without a name are taken for the same in accounts of one name.
        binding : Binding

        Returns
        -------
        list of pairs
            The name of the other ledger, and its account.
        """
        accounts = []
        for ledger, store in self._store.beside().items():
            with Book(store) as other, suppress(LedgerError):
                accounts += [(ledger, account) for account in other.accounts()]
        return [
            (ledger, account)
            for ledger, account in accounts
            if account.protects == binding.protects
            and account.data == binding.data
            and (binding.data or account.name == name)
        ]

    def spenders(self, account: str) -> list[Spender]:
        """The spenders of an account, in the order in which they were named."""
        return self._store.reading(lambda rows: rows.spenders(self._known(rows, account).name))

    def _known(self, rows: PublicRows, name: str) -> Account:
        return require_account(rows, name, self._store.label)

    # --- the log ----------------------------------------------------------------------------------

    def log(self, account: str | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Entries in order, of one account or of all; only those after a number, if it is given."""
        if account is not None:
            self.account(account)
        return self._entries(account, after)

    def _entries(self, account: str | None, last: int) -> Iterator[Entry]:
        while True:
            batch = self._store.reading(partial(_batch, after=last, account=account))
            yield from batch
            if len(batch) < BATCH:
                return
            last = batch[-1].sequence

    def answer(self, entry: int) -> bytes | None:
        """What is stored under a charge: its answer, or what a stream was opened with.

        Parameters
        ----------
        entry : int
            The number of the reservation, as receipts name it.

        Returns
        -------
        bytes or None
            None where the entry is no reservation, or nothing is stored yet.

        Raises
        ------
        LedgerError
            The answer is missing, or is not the one that was entered.
        """
        first = self._reservation(entry)
        if first is None:
            return None
        past, payload = self._store.reading(partial(charge.sound_answer, first=first))
        if payload is None and charge.is_answered(past):
            raise refusals.of_key(first, *refusals.DAMAGED_ANSWER)
        return payload

    def _reservation(self, number: int) -> Entry | None:
        entry = self._store.reading(lambda rows: rows.entry(number))
        return entry if entry is not None and entry.kind == "reserve" else None

    def steps(self, entry: int) -> StreamRecord | None:
        """The stream that a charge paid for; None where there is none."""
        first = self._reservation(entry)
        secrets = self._secrets_if_any()
        if first is None or secrets is None:
            return None
        store = secrets.store
        if store.reading(lambda rows: rows.stream(entry)) is None:
            return None
        return store.reading(lambda rows: stream_record.found(rows, first, store))

    def was(self, entry: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded; None where it has no other."""
        secrets = self._secrets_if_any()
        if secrets is None:
            return None
        return secrets.store.reading(lambda rows: rows.replaced(entry))

    # --- signatures -------------------------------------------------------------------------------

    def signer(self, *, create: bool = False) -> str | None:
        """The public key under which this ledger signs releases; None where there is none.

        Only its custodian can sign: for others, and for a copy without secrets, there is none.

        Parameters
        ----------
        create : bool
            Whether a key is made, once, where there is none.

        Returns
        -------
        str or None
            64 hexadecimal digits.
        """
        if not create and self._lacks_secrets():
            return None
        self._require_custodian("making the key of the ledger", "Ask its custodian to make it")
        private = self._opened_secrets().value(signing.NAME, signing.new_key if create else None)
        return None if private is None else signing.public_of(private)

    def sign(self, message: bytes) -> str:
        """Sign bytes under the ledger's key; "" where it has none."""
        if self._lacks_secrets():
            return ""
        private = self._opened_secrets().value(signing.NAME)
        return "" if private is None else signing.sign(private, message)

    def moved_to(self) -> str | None:
        """Say where the ledger was moved to; it pays for nothing any more then.

        None: it was not, or nobody but its custodian is told, as of a copy without secrets.
        """
        if self._lacks_secrets():
            return None
        where = self._opened_secrets().value(MOVED)
        return None if where is None else where.decode()

    def _lacks_secrets(self) -> bool:
        return not self._store.caller(None).is_custodian or self._secrets_if_any() is None

    def _require_custodian(self, request: str, remedy: str) -> None:
        caller = self._store.caller(None)
        if not caller.is_custodian:
            raise refusals.custodians_only(request, caller, remedy)

    # --- accounts ---------------------------------------------------------------------------------

    def open_account(
        self,
        name: str,
        rule: str,
        total: Amount | None,
        terms: str = "",
        *,
        first_charge: Amount = NOTHING,
    ) -> Account:
        """Create an account, or check that it exists with this rule and total.

        The first charge fixes whom the account protects, and not its opening: until then, a slip in
        the description of a source binds nothing.

        Parameters
        ----------
        name : str
        rule : str
            The measure in which the account is kept, such as ``"pure"``. It is stored and compared.
        total : tuple of two int, or None
            In the units of the rule. None: the account must exist, with any total.
        terms : str
            How it composes by curves, for good (`sfumato.ledger.stated_terms`): from its opening
            where the rule is "approx", or once it is widened. "": it adds up.
        first_charge : tuple of two int
            What it is opened to pay.

        Raises
        ------
        UsageError
            The account exists with another rule, total or terms, or is asked for without a total
            and does not exist.
        BudgetExceeded
            It would be new, and its total is below the first charge. Nothing is written.
        """
        require_text("account", name)
        require_text("rule", rule)
        if total is None:
            account = self.account(name)
            is_same = account.rule == rule
        else:
            require_amount("total", total)
            account = self._find_or_open(
                Account(name, rule, total, NOTHING, terms=terms), first_charge
            )
            is_same = (rule, tuple(total), terms) in (
                (account.rule, account.total, account.terms),
                self._store.reading(lambda rows: (*rows.totals()[name], account.terms)),
            )
        if not is_same:
            raise refusals.differs(account, rule, total, terms)
        return account

    def _find_or_open(self, new: Account, first_charge: Amount) -> Account:
        if self._store.is_made:
            self._examine()
        account = self._store.reading(lambda rows: rows.account(new.name))
        if account is not None:
            return account
        if any(cost > most for cost, most in zip(first_charge, new.total, strict=True)):
            raise refusals.exceeded(new, first_charge)
        self._examine()
        self._require_custodian(
            f"opening account {new.name!r}",
            "Ask the custodian to run `sfumato ledger init`, or name an account that exists",
        )
        stated = (new.name, new.rule, new.total, new.terms)
        return self._store.writing(
            lambda rows: rows.account(new.name) or journal.open_account(rows, *stated)
        )

    def widen(self, name: str) -> Account:
        """Let an account compose by curves from now on, to the target of its opening; once.

        An account in epsilon or rho then counts epsilon and delta: its promise becomes weaker, and
        it pays for more. What it has spent counts by its worst event.

        Parameters
        ----------
        name : str

        Returns
        -------
        Account
            As it stands then. An account that was widened before is left as it is.

        Raises
        ------
        UsageError
            No target was stated when the account was opened; its whole total does not fit the
            target; or it has spenders or a ceiling, which were fixed in its old measure.
        LedgerError
            The caller is not the custodian of the ledger.
        """
        self._require_custodian(f"widening account {name!r}", "Ask the custodian to widen it")
        self._examine()

        def settle(rows: PublicRows) -> Account:
            account = self._known(rows, name)
            if account.by_curves and rows.totals()[name][0] != account.rule:
                return account
            return journal.widen(rows, account)

        widened = self._store.writing(settle)
        if self._anchor is not None:
            self._anchor.note_entry(self._store)
        return widened

    def fits(self, account: Account, binding: Binding) -> None:
        """Refuse a binding that differs from the account's own, or that it may not begin with."""
        if self._store.is_made:
            self._examine()
        journal.require_fit(account, binding)
        self._store.reading(lambda rows: journal.require_named(rows, account, binding))

    def cap(self, account: str, binding: Binding) -> None:
        """Fix the ceiling of the data set that an account pays for, if it has none yet.

        A charge with another ceiling is refused.
        """
        self._examine()

        if self._store.reading(
            lambda rows: journal.is_capped(rows, self._known(rows, account), binding)
        ):
            return
        self._require_custodian(
            f"a ceiling for account {account!r}",
            "Leave the ceiling out, or ask the custodian to state it once",
        )
        self._store.writing(
            lambda rows: journal.cap_once(rows, self._known(rows, account), binding)
        )

    # --- spenders ---------------------------------------------------------------------------------

    def add_spender(self, account: str, name: str, ceiling: Amount, terms: str = "") -> Spender:
        """Name somebody who may spend from an account, up to a ceiling of their own.

        From then on every charge of the account belongs to one of its spenders. In a ledger on a
        server the name is that of their role; in a file it is what they state as ``spender``.

        Parameters
        ----------
        account, name : str
        ceiling : tuple of two int
            In the units of the account's rule. The account's total holds as well.
        terms : str
            Those of the ceiling, where the account composes by curves.

        Raises
        ------
        UsageError
            The account does not exist, or has this spender with another ceiling.
        LedgerError
            The caller is not the custodian of the ledger.
        """
        return self._name_spender(account, name, ceiling, terms, new=True)

    def set_spender(self, account: str, name: str, ceiling: Amount, terms: str = "") -> Spender:
        """Raise or lower the ceiling of a spender; below what they spent, they spend no more.

        Parameters and errors are those of `add_spender`; the spender must be there.
        """
        return self._name_spender(account, name, ceiling, terms, new=False)

    def _name_spender(
        self, account: str, name: str, ceiling: Amount, terms: str, *, new: bool
    ) -> Spender:
        require_text("account", account)
        require_text("spender", name)
        require_amount("ceiling", ceiling)
        limit = (ceiling[0], ceiling[1])
        self._require_custodian(
            f"the ceiling of {name!r} in account {account!r}", "Ask the custodian to set it"
        )
        self._examine()

        def settle(rows: PublicRows) -> Spender:
            known = self._known(rows, account)
            return journal.name_spender(rows, known, name, limit, terms, new=new)

        spender = self._store.writing(settle)
        if self._anchor is not None:
            self._anchor.note_entry(self._store)
        return spender

    def left(self, account: str, spender: str | None = None) -> Amount:
        """What is left of an account for whoever uses it now, component by component.

        Parameters
        ----------
        account : str
        spender : str or None
            Who spends; None: whom the book names.

        Returns
        -------
        tuple of two int
            What is left of the account, or of the spender's own ceiling if that is less.
        """
        caller = self._store.caller(spender or self._spender)

        def look(rows: PublicRows) -> Amount:
            left = self._known(rows, account).remaining
            known = rows.spender(account, caller.name) if caller.name else None
            own = left if known is None else known.remaining
            return min(left[0], own[0]), min(left[1], own[1])

        return self._store.reading(look)

    # --- charges ----------------------------------------------------------------------------------

    def reserve(
        self,
        account: str,
        key: str | None,
        asked: str,
        cost: Amount,
        note: str,
        *,
        binding: Binding | None = None,
        lease: float = 900.0,
        wait: float = 60.0,
        formerly: Sequence[str] = (),
        spender: str | None = None,
        event: str = "",
        place: str | None = None,
        fresh: bool = False,
        seed: bytes | None = None,
        rule: str = "",
    ) -> Hold:
        """Charge an account, durably, before anything is counted; or find what is paid for.

        Parameters
        ----------
        account : str
            Its name.
        key : str or None
            Names the charge within its account. None: the key that was made for this question, or a
            new random one.
        asked : str
            What the charge is for. It is kept among the secrets, as an HMAC; the same key for
            something else is refused.
        cost : tuple of two int
            In the units of the account's rule; each from 0 to 2^63 - 1.
        note : str
            For the reader of the log; at most 4,096 bytes.
        binding : Binding or None
            What all charges of the account must have in common. The first charge fixes it; charges
            with another binding are refused.
        lease : float
            Seconds for which this process alone may answer the key. After that, another caller may
            take the key over, if no answer is stored. A process that has ended, as far as this
            machine can tell, loses its lease at once. A process that was given an error instead of
            its charge goes on at once when it asks again.
        wait : float
            Seconds to wait for the answer of another process.
        formerly : sequence of str
            ``asked`` in the words of earlier versions, which may have charged for it.
        spender : str or None
            Who spends; None: whom the book names.
        event : str
            What is drawn (`sfumato.privacy.curves`). An account that composes by curves counts it,
            and not the cost; others ignore it.
        place : str or None
            What the charge is for, without the state of the data; None where the key says what it
            is for. What was paid for in another state is refused: see ``StoredElsewhere``.
        fresh : bool
            Whether to charge in any case. The key is then random, and nobody's before. Where
            nothing was paid for this question in this state, later charges without a key find it.
        seed : bytes or None
            What the noise is to come from if it is charged now; None: 32 random bytes. It is kept
            among the secrets until the answer is stored. A charge without an answer is resumed as
            often as it is asked for, and whoever resumes it is given this seed by the hold: with
            new noise in each attempt, those that fail would choose among the answers.
        rule : str
            The measure that ``cost`` counts in; "": that of the account. It is compared in the
            transaction that charges: a cost in units of another measure is refused.

        Returns
        -------
        Hold
            The reservation, and the answer if one is stored.

        Raises
        ------
        BudgetExceeded
            The account cannot pay, or its spender may not; nothing is written.
        UsageError
            The key stands for something else, the account does not exist, or it has spenders and
            the caller is none of them.
        LedgerError
            The ledger cannot be written, or another process is still answering this key.
        """
        request = Request(
            account,
            key,
            asked,
            cost,
            note,
            lease,
            binding,
            formerly=tuple(formerly),
            spender=spender or self._spender,
            event=event,
            place=place,
            fresh=fresh,
            seed=random_bytes(32) if seed is None else seed,
            rule=rule,
        )
        payer = self._payer(request)
        deadline = time.monotonic() + wait
        hold = charge.attempt(payer, request)
        return hold if isinstance(hold, Hold) else charge.await_turn(payer, request, hold, deadline)

    def newest_answer(
        self,
        account: str,
        asked: str,
        place: str | None,
        *,
        formerly: Sequence[str] = (),
        spender: str | None = None,
    ) -> Hold | None:
        """Find the newest answer to a question that was asked without a key, and charge nothing.

        Parameters
        ----------
        account, asked, place, formerly, spender
            As for `reserve`. The answer may be about any state of the data.

        Returns
        -------
        Hold or None
            The charge with its answer; None where none is stored.
        """
        request = Request(
            account,
            None,
            asked,
            (0, 0),
            "",
            0.0,
            formerly=tuple(formerly),
            spender=spender or self._spender,
            place=place,
        )
        return charge.replay(self._payer(request), request)

    def _payer(self, request: Request) -> Payer:
        caller = self._store.caller(request.spender)
        if caller.role == "auditor":
            raise LedgerError(
                f"charging account {request.account!r}",
                f"{caller.name!r} may only read this ledger",
                f"Ask its custodian to run `sfumato ledger roles --analyst {caller.name}`, "
                "and to name the spender",
                account=request.account,
            )
        return Payer(self._store, self._examine(), self._anchor, caller)

    # --- streams ----------------------------------------------------------------------------------

    def stream(
        self,
        account: str,
        key: str | None,
        asked: str,
        cost: Amount,
        note: str,
        *,
        spec: bytes,
        state: bytes,
        secret: bytes = b"",
        binding: Binding | None = None,
        spender: str | None = None,
        event: str = "",
        rule: str = "",
    ) -> StreamRecord:
        """Charge an account for a stream of steps, durably; or go on with one that is paid for.

        Three writes follow each other: the charge, the stream among the secrets, and the entry
        which says that the stream is there. If a process ends in between, the next one goes on from
        where it stopped. Once that entry is there, a missing stream is an error: begun anew, it
        would spend its charge a second time.

        Parameters
        ----------
        account, key, asked, cost, note, binding, spender, event, rule
            As for `reserve`. There is no lease: every step is a transaction of its own, whoever
            takes it.
        spec : bytes
            What the stream is: public, stored with the charge, and ignored where the stream exists.
        state, secret : bytes
            The state before its first step, and what else its steps need: kept among the secrets
            until the last step.

        Returns
        -------
        StreamRecord
            The stream, at the step that it has reached.

        Raises
        ------
        BudgetExceeded, UsageError, LedgerError
            As for `reserve`. Only a custodian may open a stream: its state is a secret.
        """
        request = Request(
            account,
            key,
            asked,
            cost,
            note,
            0.0,
            binding,
            spender=spender or self._spender,
            event=event,
            rule=rule,
        )
        caller = self._store.caller(request.spender)
        if not caller.is_custodian:
            raise LedgerError(
                f"opening a stream in account {account!r}",
                f"its state is a secret of the ledger, which {caller.name!r} may not read",
                "Let the custodian of the ledger run it, or ask for histograms, period by period",
                account=account,
            )
        payer = Payer(self._store, self._examine(), self._anchor, caller)
        secrets = self._opened_secrets().store
        entry, begun = self._store.writing(
            partial(charge.settle_stream, request=request, payer=payer)
        )
        if not begun:
            secrets.writing(lambda rows: stream_record.begin(rows, entry, spec, state, secret))
        record = secrets.reading(lambda rows: stream_record.found(rows, entry, secrets))
        if not begun:
            self._store.writing(partial(charge.keep_spec, first=entry, spec=record.spec))
            payer.note_entry()
        self._streams.append(record)
        return record

    def note_state(self, entry: Entry, state: str) -> None:
        """Keep which state of the data a charge asked about, among the secrets and as an HMAC.

        Parameters
        ----------
        entry : Entry
            The reservation.
        state : str
            Any text that tells this state from others. What was noted first stays.
        """
        if self._store.caller(None).is_custodian:
            self._opened_secrets().note_state(entry.digest, state)
            return

        def note(rows: PublicRows) -> None:
            guard = rows.guard()
            assert guard is not None
            guard.note_state(entry.sequence, state)

        self._store.writing(note)

    def is_of_state(self, entry: Entry, state: str) -> bool:
        """Whether a charge asked about this state of the data; no where none was noted."""
        if self._store.caller(None).is_custodian:
            secrets = self._secrets_if_any()
            return secrets is not None and secrets.is_of_state(entry.digest, state)

        def look(rows: PublicRows) -> bool:
            guard = rows.guard()
            return guard is not None and guard.is_of_state(entry.sequence, state)

        return self._store.reading(look)

    # --- checking it ------------------------------------------------------------------------------

    def verify(self, head: Entry | tuple[int, str] | None = None) -> Verification:
        """Recompute the whole ledger, and say what does not agree.

        It finds an entry, answer, step or account that was edited, added, deleted or moved; a
        balance, lease or total that does not follow from the entries; a stream's state that does
        not belong to its last step; triggers that were dropped or replaced; a damaged file; and a
        plain cut of the tail.

        Alone, it cannot find a history that someone with write access rewrote as a whole, hashes
        and counters included, or an older copy put back in place: both are valid chains. Against
        them, keep the ``head`` of an earlier verification, or any receipt, elsewhere, and pass it
        here: that entry must then still stand where it stood. What was added after the latest head
        kept elsewhere can be cut without being noticed.

        Parameters
        ----------
        head : Entry, or tuple of int and str, or None
            An entry, or its number and hash, that must stand in this ledger.

        Returns
        -------
        Verification
            Also where the ledger cannot be read at all: that is then its fault.
        """
        try:
            return self._verify((head.sequence, head.hash) if isinstance(head, Entry) else head)
        except StoreError as error:
            return Verification(0, (0, ""), (f"the ledger cannot be read: {error.obstacle}",))

    def _verify(self, known: tuple[int, str] | None) -> Verification:
        secrets = self._secrets_if_any()
        if known is not None and self.was(known[0]) == known[1]:
            # It is known by the hash that it had before the ledger was upgraded.
            known = (known[0], hash_of(self._store, known[0]) or "")
        # The public part comes first. A stream that is paid for between the two looks has a later
        # number than the last entry seen, and is not judged.
        audited = self._store.reading(partial(audit, known=known))
        noticed = list(audited.verification.faults)
        if self._anchor is not None:
            fault = self._anchor.fault(self._store, secrets)
            if fault is not None:
                noticed.append(fault)
        if secrets is not None:
            last = audited.verification.head[0]

            def look(rows: SecretRows) -> list[str]:
                return [*rows.damage(), *faults(rows, audited.paid, audited.begun, last)]

            noticed += secrets.store.reading(look)
        return dataclasses.replace(audited.verification, faults=tuple(noticed[:MOST_FAULTS]))


def _batch(rows: PublicRows, after: int, account: str | None) -> list[Entry]:
    return list(rows.entries(after, account, BATCH))


# --- opening --------------------------------------------------------------------------------------


def open_ledger(
    where: str | Path | None,
    *,
    create: bool = True,
    anchor: str | Path | None = None,
    spender: str | None = None,
) -> Book:
    """Open the ledger in a file or on a server, or one in memory that ends with its process.

    Parameters
    ----------
    where : str, Path or None
        A file, created readable by its owner only, with a file of secrets beside it; the address of
        a PostgreSQL database, such as ``"postgresql://user@host/database"``, which needs the extra
        ``postgres``; None or ``":memory:"`` for an account book in memory.
    create : bool
        Whether a missing ledger is created.
    anchor : str, Path or None
        A second file, best on another disk, to which every charge appends the last entry's number
        and hash. An older copy of the ledger that is put back is then refused.
    spender : str or None
        Who spends, where an account has spenders; on a server, the role that logs in.

    Raises
    ------
    UsageError
        If ``where`` is the address of another kind of server, or psycopg is not installed.
    LedgerError
        If it cannot be opened, or is no ledger.

    >>> with open_ledger(None) as ledger:
    ...     _ = ledger.open_account("trips", "pure", (3_000_000_000, 0))
    ...     with ledger.reserve("trips", "key", "digest", (500_000_000, 0), "a histogram") as hold:
    ...         answer = hold.store(b"noisy counts")
    ...     ledger.account("trips").remaining
    (2500000000, 0)
    """
    return Book(store_of(where, create=create), anchor=anchor, spender=spender)


def open_to_charge(
    where: str | Path | None,
    *,
    anchor: str | Path | None = None,
    spender: str | None = None,
) -> Book:
    """Open the ledger that is to pay for a release; see ``open_ledger``.

    A missing file is created with the first charge, so that a refused one leaves none behind. A
    missing ledger on a server is not: it may be another database than the one that was meant, whose
    owner does not expect a ledger in it, and the budget of a new ledger would be spent beside that
    of the right one.
    """
    store = store_of(where, create=not _is_server(where), at_once=False)
    return Book(store, anchor=anchor, spender=spender)


def store_of(where: str | Path | None, *, create: bool, at_once: bool = True) -> Store:
    """The store of a ledger in a file, on a server or in memory; see ``open_ledger``.

    ``at_once``: whether a missing file is made now, and not when it is first written to.
    """
    if isinstance(where, str) and _is_server(where):
        from sfumato.ledger.postgres import PostgresStore

        return PostgresStore(where, create=create)
    kind = None if where is None else kind_of(str(where))
    if kind is not None:
        # An address may hold a password: only its kind is quoted.
        raise UsageError(
            f"ledger = {kind}:..." if kind else "ledger = an address",
            "a ledger is a file, or a PostgreSQL database",
            'Give a path such as "budget.db", or "postgresql://user@host/database"; '
            "for a file with such a name, its path from the root",
        )
    return SQLiteStore(where, create=create, at_once=at_once)


def _is_server(where: str | Path | None) -> bool:
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))
