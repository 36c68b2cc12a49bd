"""The life of a charge: reserved, perhaps resumed, answered, handed out. It is never refunded.

Each state is an entry, and durable before anyone hears of it. Every function that writes acts
within one transaction of the public part, in which it looks at what was entered under the key
before. So of two callers who ask at once, one charges, and the other finds that charge.

``Hold`` is a reservation, while its caller computes the answer.

*Own leases* are those whose caller was given an error. A connection may be cut after the server has
committed a charge and before the caller hears of it; an anchor may be on a full disk. Then the
charge stands, and so does its lease, for a process that knows nothing of it. This process remembers
what it tried to write, by the hash of the entry. So it goes on at once when it is asked again. All
others wait for the lease to end, as for any other. The hash tells the lease from those of all
others, other threads of this process included: it covers the time, the process and all entries
before. The lease of a process that has ended is free at once.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from types import TracebackType
from typing import NamedTuple

from sfumato.basics import processes, renewed_in_children
from sfumato.errors import LedgerError, UsageError, nearest
from sfumato.ledger import journal, refusals
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.entries import (
    BEGUN,
    MIXED,
    Account,
    Amount,
    Entry,
    Kind,
    allowed_curve,
    payload_digest,
)
from sfumato.ledger.secrets import Secrets, fresh_name, known, require_here
from sfumato.ledger.store import (
    MOVED,
    Caller,
    Guard,
    Named,
    PublicRows,
    Request,
    Store,
    StoreError,
)
from sfumato.privacy.curves import Event

# --- reservations ---------------------------------------------------------------------------------


class Hold:
    """A reservation, while its caller computes the answer; a context manager.

    Leaving it without an answer ends the lease, so that the next caller may resume the key at once.
    The charge stands either way.

    Attributes
    ----------
    entry : Entry
        The reservation. Its sequence, time and hash go into the receipt.
    stored : bytes or None
        The answer, if the key was answered before; then nothing was charged.
    seed : bytes
        What its noise has to come from, so that each attempt to answer draws the same; empty where
        it is answered.
    """

    def __init__(
        self,
        entry: Entry,
        stored: bytes | None,
        store: Callable[[bytes], bytes],
        abandon: Callable[[], None],
        seed: bytes = b"",
    ) -> None:
        self.entry = entry
        self.stored = stored
        self.seed = seed
        self._store = store
        self._abandon = abandon

    def __repr__(self) -> str:
        whose = f"account={self.entry.account!r}, key={self.entry.key!r}"
        return f"Hold({whose}, answered={self.stored is not None})"

    def store(self, payload: bytes) -> bytes:
        """Make an answer durable, and return the answer that is stored.

        If another process stored one first, that one stays and is returned. So all processes that
        answer one key return the same bytes.
        """
        if not isinstance(payload, bytes):
            raise UsageError(
                f"an answer of type {type(payload).__name__}",
                "the ledger stores bytes",
                "Encode the answer first",
            )
        # Once something is stored, a second answer would be a second draw under one charge.
        if self.stored is None:
            self.stored = self._store(payload)
        return self.stored

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.stored is not None:
            return
        try:
            self._abandon()
        except LedgerError:
            # A lease that cannot be ended runs out by itself. The error because of which the
            # caller left must not be hidden by this one.
            if error is None:
                raise


# --- leases that this process wrote ---------------------------------------------------------------


class OwnLeases:
    """Leases that this process wrote, or may have written, and that none of its threads uses.

    A lease is *unused* if no data were read under it: it may be used as it is. It is *ended* if
    somebody did read data under it, and could not tell the ledger that they gave up.
    """

    def __init__(self) -> None:
        self._renew()
        renewed_in_children(self, OwnLeases._renew)

    def _renew(self) -> None:
        """Begin with none, as a child process must: it is another process than the one that wrote.

        The lock is new as well: a thread of the parent may hold the old one.
        """
        self._lock = threading.Lock()
        self._unused: set[str] = set()
        self._ended: set[str] = set()

    def add_unused(self, entry: Entry) -> None:
        """Remember a lease that may be there, and of which no caller was told."""
        with self._lock:
            self._unused.add(entry.hash)

    def add_ended(self, entry: Entry) -> None:
        """Remember a lease whose caller gave up, which the ledger does not know."""
        with self._lock:
            self._ended.add(entry.hash)

    def is_unused(self, entry: Entry) -> bool:
        """Whether the last entry of a key is a lease that this process may use as it is."""
        return entry.hash in self._unused

    def is_ended(self, entry: Entry) -> bool:
        """Whether the last entry of a key is a lease that its caller gave up."""
        return entry.hash in self._ended

    def use(self, entry: Entry) -> bool:
        """Take an unused lease; no where another thread was faster."""
        # Asked and taken under one lock: two threads would otherwise answer under one lease.
        with self._lock:
            if not self.is_unused(entry):
                return False
            self._unused.discard(entry.hash)
            return True


# Those of this process, in whatever ledgers they are.
OWN_LEASES = OwnLeases()


# --- from the request to the answer ---------------------------------------------------------------

OPEN_IT = "Name an account that exists, or open it: `sfumato ledger init`"


class Payer(NamedTuple):
    """Who asks a ledger for a charge, and the parts of that ledger.

    ``secrets`` are None where a guard of the store stands for them.
    """

    store: Store
    secrets: Secrets | None
    anchor: Anchor | None
    caller: Caller

    def note_entry(self) -> None:
        """Append the last entry to the anchor, if there is one."""
        if self.anchor is not None:
            self.anchor.note_entry(self.store)


class Settled(NamedTuple):
    """What was entered under a key before, and the entry by which the caller may work now.

    ``mine`` is None where the key is answered, or where somebody else is at work on it; ``seed`` is
    what the noise of the charge comes from otherwise.
    """

    past: list[Entry]
    mine: Entry | None
    seed: bytes = b""


def attempt(payer: Payer, request: Request) -> Hold | Entry:
    """Charge, take over or replay, in one transaction.

    Where another process is answering the key, return the entry of its lease instead.
    """
    tried: list[Entry] = []
    try:
        settled = payer.store.writing(partial(settle, request=request, payer=payer, tried=tried))
        past, mine, _ = settled
        is_free = is_answered(past) if mine is None else mine not in past
        if mine is not None and not is_free:
            is_free = OWN_LEASES.use(mine)
            # From here on it is this caller's. Another thread works under it if it is not free.
            tried = [mine] if is_free else []
        return _held(payer, settled) if is_free else past[-1]
    except BaseException:
        # Whether anything is written may be unknown: the caller finds it by asking again.
        for entry in tried:
            OWN_LEASES.add_unused(entry)
        raise


def await_turn(payer: Payer, request: Request, lease: Entry, deadline: float) -> Hold:
    """Ask again, until the one who has the lease answers or gives up."""
    pause = 0.005  # seconds before the second look for the other process's answer
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise refusals.of_key(
                lease,
                f"another process is answering this key, and its lease runs until {lease.until}",
                "Wait for its answer, or ask again after that time",
            )
        time.sleep(min(pause, left))
        pause = min(1.5 * pause, 0.1)
        # Only reads, so that those who wait do not keep the one who works from writing.
        if payer.store.reading(partial(is_being_answered, entry=lease)):
            continue
        hold = attempt(payer, request)
        if isinstance(hold, Hold):
            return hold
        lease = hold


def _held(payer: Payer, settled: Settled) -> Hold:
    """What the caller is given: a lease to work under, or the answer."""
    past, mine, seed = settled
    # Receipts name the reservation, also where a later entry is the lease that counts.
    first = past[0] if mine is None else (*past, mine)[0]
    if mine is None:
        # Read back, and compared with its entry.
        past, stored = payer.store.reading(partial(sound_answer, first=first))
        if stored is None:
            raise refusals.of_key(first, *refusals.DAMAGED_ANSWER)
        # Entered before the caller has the answer, so that what was seen is never more than what
        # the log says.
        if not has_entry(past, "hand"):
            payer.store.writing(partial(enter_hand, first=first))
            payer.note_entry()
        return Hold(first, stored, partial(_keep_answer, payer, first), lambda: None)
    # The charge is durable by now. If the anchor cannot be written, there is no answer yet.
    payer.note_entry()
    return Hold(
        first, None, partial(_keep_answer, payer, first), partial(_abandon_lease, payer, mine), seed
    )


def _keep_answer(payer: Payer, first: Entry, payload: bytes) -> bytes:
    kept, is_first = payer.store.writing(
        partial(enter_answer, first=first, payload=payload, secrets=payer.secrets)
    )
    if is_first:
        payer.note_entry()
    if payer.secrets is not None and not payer.store.in_one:
        # The answer stands whatever becomes of this: a seed left over is wiped by the next to open.
        with suppress(StoreError):
            payer.secrets.wipe_seeds([(first.account, first.key)])
    return kept


def _abandon_lease(payer: Payer, mine: Entry) -> None:
    try:
        payer.store.writing(partial(enter_abandonment, mine=mine))
    except BaseException:
        OWN_LEASES.add_ended(mine)
        raise


# --- charging, within a transaction ---------------------------------------------------------------


def settle(rows: PublicRows, request: Request, payer: Payer, tried: list[Entry]) -> Settled:
    """Charge, take over a charge without an answer, or find the answer.

    An entry that is new is added to ``tried``: it may be written although an error follows.
    """
    # Every charge is a transaction that writes, so nobody else can give the question another name
    # meanwhile, and what is found under a key stays until the charge.
    of_key = lru_cache(partial(rows.of_key, request.account))
    guard = rows.guard()
    fresh = fresh_name(request.key)
    if guard is None:
        assert payer.secrets is not None
        # The name is on disk before the charge is, or with it. A name without a charge may be given
        # again; a charge without a name would be spent in vain: nobody could find its answer.
        rows.foresee(partial(_foresee_charge, request=request, payer=payer, key=fresh[0]))
        using = payer.secrets.using(rows.name_rows())
        named = using(partial(payer.secrets.name, request, fresh, of_key))
    else:
        named = _guarded_name(guard, request, fresh, of_key)
    past = _past(request, named, of_key)
    if is_answered(past):
        return Settled(past, None)
    if not past:
        mine = _enter(rows, request, payer, named)
        tried.append(mine)
        return Settled(past, mine, _seed(rows, request, payer, named, [mine]))
    return _go_on(rows, request, payer, named, past, tried)


def _guarded_name(
    guard: Guard, request: Request, fresh: tuple[str, str], of_key: Callable[[str], list[Entry]]
) -> Named:
    """What `Secrets.name` returns, for a caller who may not read the secrets."""
    keys = []
    if request.key is None and request.place is not None:
        # Of this state too: its own name is in the way of no other.
        keys = [key for key in guard.keys(request) if of_key(key)]
    # In the transaction of the charge: one is never there without the other.
    named = guard.name(request, fresh)
    if keys and named.key not in keys:
        return Named("elsewhere", elsewhere=tuple(keys))
    return named


def _seed(
    rows: PublicRows, request: Request, payer: Payer, named: Named, past: list[Entry]
) -> bytes:
    """What the noise of a charge comes from, kept before any is drawn.

    A charge of a version before 0.2.1 has none. Noise may have been drawn for it before, and
    whether a run fails may depend on the data and on the noise. So it is resumed once as of old,
    from a seed that is made now, and if it was resumed before, it is refused.
    """
    if named.seed is not None:
        return named.seed
    guard = rows.guard()
    if guard is not None:
        seed = guard.seed(past[0].sequence, request.seed)
    elif has_entry(past, "resume"):
        seed = None
    else:
        assert payer.secrets is not None
        seed = payer.secrets.keep_seed(request, past[0].key, rows.name_rows())
    if seed is None:
        raise refusals.of_key(
            past[0],
            "its charge was resumed before version 0.2.1 and still has no answer; it is not "
            "resumed again, because each attempt drew new noise, and whether one fails may depend "
            "on the data",
            "The charge stands; choose another key, or ask with fresh=True: it pays anew",
        )
    return seed


def replay(payer: Payer, request: Request) -> Hold | None:
    """The newest answer to a question, about whatever state of the data; None if none is stored."""

    def look(rows: PublicRows) -> list[Entry] | None:
        guard = rows.guard()
        if guard is None:
            assert payer.secrets is not None
            keys = payer.secrets.keys(request, rows.name_rows())
        else:
            keys = guard.keys(request)
        pasts = [rows.of_key(request.account, key) for key in keys]
        return max(filter(is_answered, pasts), key=lambda past: past[0].sequence, default=None)

    past = payer.store.writing(look)
    return None if past is None else _held(payer, Settled(past, None))


def settle_stream(rows: PublicRows, request: Request, payer: Payer) -> tuple[Entry, bool]:
    """The charge of a stream, made now if it is not there, and whether the stream was begun."""
    assert payer.secrets is not None
    of_key = lru_cache(partial(rows.of_key, request.account))
    fresh = fresh_name(request.key)
    rows.foresee(partial(_foresee_charge, request=request, payer=payer, key=fresh[0]))
    using = payer.secrets.using(rows.name_rows())
    named = using(partial(payer.secrets.name, request, fresh, of_key))
    past = _past(request, named, of_key)
    if not past:
        return _enter(rows, request, payer, named), False
    _fix_binding(rows, request, payer)
    return past[0], is_answered(past)


def _foresee_charge(rows: PublicRows, request: Request, payer: Payer, key: str) -> None:
    account = request.account
    names = rows.name_rows()
    secrets = payer.secrets
    if names is not None and secrets is not None:
        known(names, request, secrets.tags(request), secrets.place_tag(request))
    rows.of_key(account, key)
    rows.account(account)
    rows.has_spenders(account)
    if request.binding is not None or request.event:
        rows.ceilings()
    if request.event:
        rows.ceiling_terms()
        rows.data_curve("" if request.binding is None else request.binding.data)
    rows.tip(account)


def _past(request: Request, named: Named, of_key: Callable[[str], list[Entry]]) -> list[Entry]:
    """What was entered for a question; refused where its key stands for another one."""
    if named.verdict == "elsewhere":
        pasts = [of_key(key) for key in named.elsewhere]
        # The newest answer, which can be had; where there is none, the newest charge.
        last = max(pasts, key=lambda past: (is_answered(past), past[0].sequence))
        raise refusals.stored_elsewhere(last[0], is_answered=is_answered(last))
    key = named.key or request.key
    assert key is not None
    past = of_key(key)
    if named.verdict == "conflict":
        raise refusals.conflict(past[0])
    # The secrets may be older than the book, put back alone. Then they may know the key by a
    # question of before, whose charge was refused, and the digests differ.
    if named.verdict == "unknown" or (past and past[0].digest != named.digest):
        raise refusals.of_key(past[0], *refusals.UNKNOWN)
    return past


def _require_here(payer: Payer, named: Named) -> None:
    """Refuse to pay from a ledger that was moved; a guard does so by itself."""
    # Looked up in the transaction that charges: a ledger is moved while nobody else can write.
    if payer.secrets is not None:
        require_here(named.moved_to, payer.secrets.store.label)


def _enter(rows: PublicRows, request: Request, payer: Payer, named: Named) -> Entry:
    """Check everything that limits a charge, then enter it."""
    _require_here(payer, named)
    account = require_account(rows, request.account, payer.store.label)
    # All limits are looked up in the transaction that charges. Looked up before it, two callers
    # might each find room for themselves, and together pass the total.
    cost, event = _counted(request, account)
    curve = allowed_curve(account.composition, account.state, cost, event)
    if curve is None:
        raise refusals.exceeded(account, cost, event)
    spender, own = journal.require_spender(rows, account, payer.caller, cost, event)
    if account.protects == MIXED:
        raise refusals.charging(
            account,
            f"version 0.1 charged it for {MIXED}, so its total guarantees nothing",
            "Open an account of its own for each; what this one has paid for is found as before",
        )
    if request.binding is not None:
        journal.fix(rows, account, request.binding)
    # After the binding is fixed: the ceiling adds up accounts by the data set they are bound to.
    data = journal.require_under_ceiling(rows, account, request.binding, cost, event)
    draft = Entry(
        0,
        request.account,
        "reserve",
        key=named.key,
        digest=named.digest,
        cost=cost,
        note=request.note,
        until=journal.lease_end(rows, request.lease),
        holder=processes.current(),
    )
    if spender is not None:
        after = journal.plus(spender.spent, cost)
        draft = dataclasses.replace(draft, spender=spender.name, own=after)
    if event:
        draft = dataclasses.replace(draft, event=event, curve=curve, own_curve=own, data_curve=data)
    return journal.append(rows, draft)


def _counted(request: Request, account: Account) -> tuple[Amount, str]:
    """What a charge costs an account: an amount; and the event, where it composes by curves."""
    if not account.by_curves:
        # Another process may have opened the account meanwhile, in a measure with other units.
        if request.rule not in ("", account.rule):
            raise refusals.differs(account, request.rule, None)
        return (request.cost[0], request.cost[1]), ""
    if not request.event:
        raise refusals.charging(
            account,
            "it composes by curves, and this charge does not say what is drawn",
            "Ask by sf.Publisher, or give the charge its event",
        )
    return Event.read(request.event).money, request.event


def _go_on(
    rows: PublicRows,
    request: Request,
    payer: Payer,
    named: Named,
    past: list[Entry],
    tried: list[Entry],
) -> Settled:
    """Take over a charge without an answer, under its old charge, unless others work on it."""
    first = past[0]
    last = past[-1]
    # The order matters: a lease that runs is waited for, whoever asks; everything that refuses
    # comes before the entry that takes the key over.
    if is_leased(rows, last):
        return Settled(past, None)
    # They paid for a draw of their own.
    if first.spender != payer.caller.name and (first.spender or not payer.caller.is_custodian):
        raise refusals.of_key(
            first,
            f"{first.spender or 'the custodian'} paid for it, and has no answer yet",
            "Let them ask again, or ask with fresh=True (command line: --fresh), which pays anew",
        )
    _require_here(payer, named)
    _fix_binding(rows, request, payer)
    # What is picked for a plan may differ between versions, and no answer may spend more than was
    # charged for it.
    if not _costs_as_charged(request, first):
        raise refusals.of_key(
            first,
            "it was charged by a version that picked another cost for the same question",
            "The charge stands; use the version that made it, or ask with fresh=True, which pays "
            "anew",
        )
    # Before the entry that resumes: whether noise may have been drawn is read off those before it.
    seed = _seed(rows, request, payer, named, past)
    if _is_running(rows, last) and OWN_LEASES.is_unused(last):
        return Settled(past, last, seed)
    until = journal.lease_end(rows, request.lease)
    draft = journal.follow(first, "resume", until=until, holder=processes.current())
    resumed = journal.append(rows, draft)
    tried.append(resumed)
    return Settled(past, resumed, seed)


def _costs_as_charged(request: Request, charge: Entry) -> bool:
    if charge.event:
        return request.event == charge.event
    # What it may have cost an account, in the measures that the account may have had since.
    costs = [(request.cost[0], request.cost[1])]
    if request.event:
        costs.append((Event.read(request.event).rho_units, 0))
    return charge.cost in costs


def _fix_binding(rows: PublicRows, request: Request, payer: Payer) -> None:
    """Bind the account of a charge that version 0.1 made, and that is taken over now."""
    if request.binding is not None:
        account = require_account(rows, request.account, payer.store.label)
        journal.fix(rows, account, request.binding)


def require_account(rows: PublicRows, name: str, label: str, remedy: str = OPEN_IT) -> Account:
    """One account with its balance; of one that does not exist, a refusal with similar names."""
    account = rows.account(name)
    if account is None:
        others = nearest(name, (other.name for other in rows.accounts()))
        raise UsageError(f"account {name!r}", f"{label} has no such account ({others})", remedy)
    return account


# --- answering, within a transaction --------------------------------------------------------------


def enter_answer(
    rows: PublicRows, first: Entry, payload: bytes, secrets: Secrets | None
) -> tuple[bytes, bool]:
    """Store an answer if there is none: what is stored, and whether it is handed out first now.

    If the ledger was moved since the charge, the charge moved along without an answer. It is
    resumed there, and a second answer here would be a second draw under it.
    """
    rows.foresee(partial(_foresee_answer, first=first))
    if not rows.has(first.account, first.key, "store"):
        names = rows.name_rows()
        if secrets is not None:
            where = secrets.using(names)(lambda kept: kept.value(MOVED))
            require_here(where, secrets.store.label)
        # Stored and handed out in one transaction, the answer entered before the hand: whatever
        # anybody saw, the ledger can show again.
        stored = journal.store_answer(rows, journal.follow(first, "store"), payload)
        journal.append(rows, journal.follow(first, "hand"), last=stored)
        if names is not None:
            names.wipe_seed(first.account, first.key)
        return payload, True
    past, kept = sound_answer(rows, first)
    if kept is None:
        raise refusals.of_key(first, *refusals.DAMAGED_ANSWER)
    is_first = not has_entry(past, "hand")
    if is_first:
        journal.append(rows, journal.follow(first, "hand"))
    return kept, is_first


def _foresee_answer(rows: PublicRows, first: Entry) -> None:
    rows.has(first.account, first.key, "store")
    names = rows.name_rows()
    if names is not None:
        names.value(MOVED)
    rows.tip(first.account)


def keep_spec(rows: PublicRows, first: Entry, spec: bytes) -> None:
    """Enter that the stream of a charge is there, once."""
    if not rows.has(first.account, first.key, "store"):
        journal.store_answer(rows, journal.follow(first, "store", note=BEGUN), spec)


def enter_hand(rows: PublicRows, first: Entry) -> None:
    """Enter that an answer is handed out, if it never was."""
    if not rows.has(first.account, first.key, "hand"):
        journal.append(rows, journal.follow(first, "hand"))


def sound_answer(rows: PublicRows, first: Entry) -> tuple[list[Entry], bytes | None]:
    """The entries of a key, and its answer, if it is the one that was entered."""
    past = rows.of_key(first.account, first.key)
    for entry in past:
        if entry.kind == "store":
            payload = rows.answer(entry.sequence)
            sound = isinstance(payload, bytes) and payload_digest(payload) == entry.payload_hash
            return past, payload if sound else None
    return past, None


def enter_abandonment(rows: PublicRows, mine: Entry) -> None:
    """End a lease, unless another entry followed: a late caller cannot end its successor's."""
    past = rows.of_key(mine.account, mine.key)
    if past[-1].sequence == mine.sequence:
        journal.append(rows, journal.follow(past[0], "abandon"))


# --- leases ---------------------------------------------------------------------------------------


def is_being_answered(rows: PublicRows, entry: Entry) -> bool:
    """Whether another process is at work on the key of an entry by now."""
    return is_leased(rows, rows.of_key(entry.account, entry.key)[-1])


def has_entry(past: list[Entry], kind: Kind) -> bool:
    """Whether any of the entries of a key is of a kind."""
    return any(entry.kind == kind for entry in past)


def is_answered(past: list[Entry]) -> bool:
    """Whether an answer was entered under a key."""
    return has_entry(past, "store")


def is_leased(rows: PublicRows, last: Entry) -> bool:
    """Whether the last entry of a key is a lease under which somebody may be at work."""
    if not _is_running(rows, last):
        return False
    return not (OWN_LEASES.is_unused(last) or OWN_LEASES.is_ended(last))


def _is_running(rows: PublicRows, last: Entry) -> bool:
    """Whether the last entry of a key is a lease that runs, of a process that has not ended."""
    if last.kind not in ("reserve", "resume") or journal.stamp(rows.clock()) >= last.until:
        return False
    return not processes.ended(last.holder)
