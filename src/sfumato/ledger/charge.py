"""The life of a charge: reserved, perhaps resumed, answered, handed out. It is never refunded.

Each state is an entry, and durable before anyone hears of it. Every method that writes runs one
transaction of the public part, in which it looks at what was entered under the key before. So of
two callers who ask at once, one charges, and the other finds that charge.

``Hold`` is a reservation, while its caller computes the answer. ``Parts`` are the parts of a
ledger, each opened when it is needed: public rows, secrets, and an anchor. ``Charges`` changes the
states.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import TracebackType

from sfumato.basics.processes import renewed_in_children
from sfumato.errors import LedgerError, UsageError, nearest
from sfumato.ledger import journal, leases, refusals
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.audit import first_fault
from sfumato.ledger.entries import BEGUN, MIXED, Account, Entry, payload_digest
from sfumato.ledger.leases import OWN_LEASES
from sfumato.ledger.secrets import Conflict, Name, Secrets, Unknown, named_by, new_identity
from sfumato.ledger.store import Caller, PublicRows, Request, SecretRows, Store, Unclear
from sfumato.ledger.stream_record import StreamRecord

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
    """

    def __init__(
        self,
        entry: Entry,
        stored: bytes | None,
        store: Callable[[bytes], bytes],
        abandon: Callable[[], None],
    ) -> None:
        self.entry = entry
        self.stored = stored
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


# --- the parts of a ledger ------------------------------------------------------------------------


class Parts:
    """The parts of one ledger, which everything that a `Book` does shares.

    Attributes
    ----------
    store : Store
        The public rows. Whoever reads or verifies a copy of a ledger needs no more.
    anchor : Anchor or None
    """

    def __init__(self, store: Store, anchor: Anchor | None) -> None:
        self.store = store
        self.anchor = anchor
        self._secrets: Secrets | None = None
        self._examined = False
        self._renew()
        renewed_in_children(self, Parts._renew)

    def _renew(self) -> None:
        """Begin with a new lock, as a child process must: its parent may hold the old one."""
        self._opening = threading.RLock()

    def close(self) -> None:
        """Close both parts; closing twice is harmless."""
        if self._secrets is not None:
            self._secrets.close()
        self.store.close()

    # --- secrets ----------------------------------------------------------------------------------

    def secrets(self) -> Secrets:
        """The secrets, opened before any transaction that needs them begins."""
        if self._secrets is None:
            # Without the lock, two threads would make two secrets for one ledger in memory.
            with self._opening:
                self._secrets = self._secrets or self._open_secrets()
        return self._secrets

    def _open_secrets(self) -> Secrets:
        known = self.store.reading(lambda rows: rows.identity())
        identity = known or self.store.writing(new_identity)
        # A ledger that was charged had secrets. New ones would let its streams begin again under
        # their old charge, with new noise for steps that are already published.
        create = not self.store.reading(lambda rows: rows.charged())
        return Secrets(self.store.secrets(create=create), identity, create=create)

    def secrets_if_any(self) -> Secrets | None:
        """The secrets; None where the ledger has none, as an auditor's copy."""
        if self._secrets is None and not self.store.has_secrets():
            return None
        return self.secrets()

    def examined_secrets(self) -> Secrets:
        """The secrets, after one check of the whole ledger that must come before any change."""
        secrets = self.secrets()
        self._examine(secrets)
        return secrets

    def examine(self) -> None:
        """Check the whole ledger once, as must be done before any change.

        It finds what a damaged or an older ledger shows at once; `audit` finds the rest. A caller
        who may not read the secrets looks at the public part.
        """
        self._examine(self.secrets() if self.store.caller(None).is_custodian else None)

    def _examine(self, secrets: Secrets | None) -> None:
        if self._examined:
            return
        fault = self.store.reading(first_fault)
        if fault is not None:
            remedy = "Restore a copy that verifies; do not publish from this one"
            raise LedgerError(self.store.label, fault, remedy)
        if secrets is not None and secrets.store.reading(lambda rows: rows.any_stream()):
            self.store.require_private()
        if self.anchor is not None:
            self._require_anchored(self.anchor, secrets)
        self._examined = True

    # --- the anchor -------------------------------------------------------------------------------

    def _require_anchored(self, anchor: Anchor, secrets: Secrets | None) -> None:
        fault = self.anchor_fault(anchor, secrets)
        if fault is not None:
            raise LedgerError(self.store.label, fault, "Restore the latest copy, with its secrets")
        anchor.require_writable()

    def anchor_fault(self, anchor: Anchor, secrets: Secrets | None) -> str | None:
        """What the anchor remembers and the ledger lacks, as a sentence; None if nothing.

        Without the secrets, only entries are compared: steps of streams are among the secrets.
        """
        reached = anchor.read()
        sequence, digest = reached.entry
        agrees = sequence == 0 or self.hash_of(sequence) == digest
        if agrees and secrets is not None:
            agrees = secrets.store.reading(partial(_has_steps, reached=reached.streams))
        if agrees:
            return None
        obstacle = "an older copy was put back, or its history was rewritten"
        return f"it is not the ledger that {anchor.label} knows: {obstacle}"

    def hash_of(self, sequence: int) -> str | None:
        """The hash of the entry of a number; None where there is no such entry."""
        entry = self.store.reading(lambda rows: rows.entry(sequence))
        return None if entry is None else entry.hash

    def anchor_last_entry(self) -> None:
        """Append the last entry to the anchor, if there is one."""
        if self.anchor is not None:
            tip = self.store.reading(lambda rows: rows.tip(""))
            self.anchor.note(f"entry {tip.sequence} {tip.hash}")

    def anchor_last_steps(self, streams: list[StreamRecord]) -> None:
        """Append the last step of each stream that has taken one to the anchor, if there is one."""
        if self.anchor is None:
            return
        lines: list[str] = []
        for stream in streams:
            step, digest = stream.head()
            if step:
                lines.append(f"stream {stream.entry.sequence} {step} {digest}")
        if lines:
            self.anchor.note(*lines)


def _has_steps(rows: SecretRows, reached: Mapping[int, tuple[int, str]]) -> bool:
    """Whether each stream has the step, with the hash, that the anchor remembers."""
    for number, (step, digest) in reached.items():
        found = rows.step(number, step)
        if step and (found is None or found.hash != digest):
            return False
    return True


# --- charges --------------------------------------------------------------------------------------

FIRST_PAUSE = 0.005  # seconds before the second look for another process's answer
LAST_PAUSE = 0.1
PAUSE_GROWTH = 1.5
OPEN_IT = "Name an account that exists, or open it: `sfumato ledger init`"


class Charges:
    """Charges of one ledger, from reservation to answer.

    Parameters
    ----------
    parts : Parts
        Examined before anything is reserved.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store

    # --- reserving --------------------------------------------------------------------------------

    def reserve(self, request: Request, wait: float) -> Hold:
        """Charge, take over or replay; wait so many seconds for another process's answer."""
        deadline = time.monotonic() + wait
        pause = FIRST_PAUSE
        found = self._call(request) or self._attempt(request)
        while isinstance(found, Entry):
            left = deadline - time.monotonic()
            if left <= 0:
                raise refusals.still_answering(found)
            time.sleep(min(pause, left))
            pause = min(PAUSE_GROWTH * pause, LAST_PAUSE)
            # Only reads, so that those who wait do not keep the one who works from writing.
            if not self._is_being_answered(found):
                found = self._attempt(request)
        return found

    def _call(self, request: Request) -> Hold | None:
        """Charge in a single call, if nothing stands in the way; otherwise `_attempt` has to."""
        bound = request.binding
        is_mixed = bound is not None and bound.protects == MIXED  # `_charge` says why not
        if is_mixed or not self._may_call(request.spender):
            return None
        new = self._parts.secrets().new_charge(request, leases.current())
        try:
            mine = self._store.charge(new)
        except BaseException as error:
            # Whether it is written is unknown: `_attempt` finds it, or the caller by asking again.
            OWN_LEASES.add_called(new)
            if not isinstance(error, Unclear):
                raise
            return None
        try:
            return None if mine is None else self._held([], mine)
        except BaseException:
            if mine is not None:
                OWN_LEASES.add_unused(mine)
            raise

    def _may_call(self, spender: str | None) -> bool:
        return self._store.has_calls and self._store.caller(spender).is_custodian

    def _attempt(self, request: Request) -> Hold | Entry:
        """Charge, take over or replay, in one transaction.

        Where another process is answering the key, return the entry of its lease instead.
        """
        caller = self._store.caller(request.spender)
        tried: list[Entry] = []
        try:
            past, mine = self._store.writing(
                lambda rows: self._settle(rows, request, caller, tried)
            )
            if mine is None:
                is_free = not past or _is_answered(past)
            elif mine in past:
                is_free = OWN_LEASES.use(mine)
                # From here on it is this caller's. Another thread works under it if it is not free.
                tried = [mine] if is_free else []
            else:
                is_free = True
            return self._held(past, mine) if is_free else past[-1]
        except BaseException:
            # Whether anything is written may be unknown: the caller finds it by asking again.
            for entry in tried:
                OWN_LEASES.add_unused(entry)
            raise

    def _held(self, past: list[Entry], mine: Entry | None) -> Hold:
        """What the caller is given: a lease to work under, or the answer."""
        first = past[0] if past else mine
        assert first is not None
        # The charge is durable by now. If the anchor cannot be written, there is no answer yet.
        if mine is not None:
            self._parts.anchor_last_entry()
        stored = self._hand_out(first) if mine is None else None
        return Hold(first, stored, partial(self._keep, first), partial(self._abandon, mine))

    def _settle(
        self, rows: PublicRows, request: Request, caller: Caller, tried: list[Entry]
    ) -> tuple[list[Entry], Entry | None]:
        """What was entered under the key before, and the entry by which the caller may work now.

        An entry that is new is added to ``tried``: it may be written although an error follows.
        """
        request, past = self._named(rows, request)
        if _is_answered(past):
            return past, None
        mine = self._go_on(rows, request, caller, past) if past else None
        if not past:
            mine = self._charge(rows, request, caller)
        if mine is not None and mine not in past:
            tried.append(mine)
        return past, mine

    def _go_on(
        self, rows: PublicRows, request: Request, caller: Caller, past: list[Entry]
    ) -> Entry | None:
        """The entry by which the caller may work on a charge of before; None where others do."""
        last = past[-1]
        if _is_leased(rows, last):
            return None
        journal.require_own(past[0], caller)
        self._require_here(rows)
        self._fix_binding(rows, request)
        if _is_running(rows, last) and OWN_LEASES.is_unused(last):
            _require_same_cost(request, past[0])
            return last
        return _take_over(rows, request, past)

    def reserve_stream(self, request: Request) -> tuple[Entry, bool]:
        """The charge of a stream, made now if it is not there, and whether the stream was begun."""
        caller = self._store.caller(request.spender)
        return self._store.writing(lambda rows: self._settle_stream(rows, request, caller))

    def _settle_stream(
        self, rows: PublicRows, request: Request, caller: Caller
    ) -> tuple[Entry, bool]:
        request, past = self._named(rows, request)
        if not past:
            return self._charge(rows, request, caller), False
        self._fix_binding(rows, request)
        return past[0], _is_answered(past)

    def _named(self, rows: PublicRows, request: Request) -> tuple[Request, list[Entry]]:
        """The request under its key and digest, and what was entered under them before.

        Every charge is a transaction that writes, so nobody else can give the question another name
        meanwhile.
        """
        account = request.account
        charged = lru_cache(partial(rows.of_key, account))  # what it finds stays until the charge
        failure: UsageError | LedgerError
        try:
            name = self._find_name(rows, request, charged)
        except Conflict:
            failure = refusals.conflict(rows.of_key(account, request.name)[0])
        except Unknown:
            failure = refusals.unknown(rows.of_key(account, request.name)[0])
        else:
            past = charged(name.key)
            # The secrets may be older than the book, put back alone. Then they may know the key by
            # a question of before, whose charge was refused, and the digests differ.
            if not past or past[0].digest == name.digest:
                return dataclasses.replace(request, key=name.key, digest=name.digest), past
            failure = refusals.unknown(past[0])
        raise failure

    def _find_name(
        self, rows: PublicRows, request: Request, charged: Callable[[str], list[Entry]]
    ) -> Name:
        account = request.account
        guard = rows.guard()
        if guard is not None:
            # In the transaction of the charge: one is never there without the other.
            return named_by(guard, account, request.key, (request.asked, *request.formerly))
        # The name is on disk before the charge is, or with it. A name without a charge may be given
        # again; a charge without a name would be spent in vain: nobody could find its answer.
        rows.foresee(partial(self._foresee_charge, request))
        return self._parts.secrets().name(
            account,
            request.key,
            request.asked,
            charged,
            formerly=request.formerly,
            rows=rows.name_rows(),
        )

    def _foresee_charge(self, request: Request, rows: PublicRows) -> None:
        """Read what a charge under a new name reads."""
        account = request.account
        names = rows.name_rows()
        if names is not None:
            secrets = self._parts.secrets()
            secrets.foresee(account, request.key, request.asked, request.formerly, names)
        if request.key is not None:
            rows.of_key(account, request.key)
        rows.account(account)
        rows.has_spenders(account)
        if request.binding is not None:
            rows.ceilings()
        rows.tip(account)

    def _require_here(self, rows: PublicRows) -> None:
        """Refuse to pay from a ledger that was moved; a guard does so by itself."""
        if rows.guard() is None:
            self._parts.secrets().require_here(rows.name_rows())

    def _charge(self, rows: PublicRows, request: Request, caller: Caller) -> Entry:
        """Check everything that limits a charge, then enter it."""
        # In the transaction that charges: a ledger is moved while nobody else can write to it.
        self._require_here(rows)
        account = require_account(rows, request.account, self._store.label)
        cost = (request.cost[0], request.cost[1])
        left = account.remaining
        if cost[0] > left[0] or cost[1] > left[1]:
            raise refusals.exceeded(account, cost)
        spender = journal.require_spender(rows, account, caller, cost)
        if account.protects == MIXED:
            raise refusals.mixed(account)
        if request.binding is not None:
            journal.fix(rows, account, request.binding)
        journal.require_under_ceiling(rows, account, request.binding, cost)
        draft = journal.Draft(
            request.account,
            "reserve",
            request.name,
            request.digest,
            cost,
            request.note,
            until=journal.lease_end(rows, request.lease),
            holder=leases.current(),
            spender=spender,
        )
        return journal.append(rows, draft)

    def _fix_binding(self, rows: PublicRows, request: Request) -> None:
        """Bind the account of a charge that version 0.1 made, and that is taken over now."""
        if request.binding is not None:
            account = require_account(rows, request.account, self._store.label)
            journal.fix(rows, account, request.binding)

    def _is_being_answered(self, entry: Entry) -> bool:
        """Whether another process is at work on the key of an entry by now."""

        def look(rows: PublicRows) -> bool:
            return _is_leased(rows, rows.of_key(entry.account, entry.key)[-1])

        return self._store.reading(look)

    # --- answering --------------------------------------------------------------------------------

    def _keep(self, first: Entry, payload: bytes) -> bytes:
        """Store an answer if there is none, and hand out what is there, in one transaction."""
        is_done = is_unclear = False
        try:
            is_done = self._may_call(None) and self._store.answer(first, payload)
        except Unclear:
            is_unclear = True
        kept, is_first = payload, is_done
        if not is_done:
            kept, is_first = self._store.writing(lambda rows: self._keep_here(rows, first, payload))
        if is_first or is_unclear:
            self._parts.anchor_last_entry()
        return kept

    def _keep_here(self, rows: PublicRows, first: Entry, payload: bytes) -> tuple[bytes, bool]:
        """The answer that is stored by now, and whether it is handed out for the first time.

        If the ledger was moved since the charge, the charge moved along without an answer. It is
        resumed there, and a second answer here would be a second draw under it.
        """
        rows.foresee(partial(self._foresee_answer, first))
        if not rows.has(first.account, first.key, "store"):
            self._require_here(rows)
            stored = journal.store_answer(rows, journal.follow(first, "store"), payload)
            journal.append(rows, journal.follow(first, "hand"), last=stored)
            return payload, True
        past, kept = _sound_answer(rows, first)
        if kept is None:
            raise refusals.damaged_answer(first)
        is_first = not _has(past, "hand")
        if is_first:
            journal.append(rows, journal.follow(first, "hand"))
        return kept, is_first

    def _foresee_answer(self, first: Entry, rows: PublicRows) -> None:
        """Read what storing an answer reads."""
        rows.has(first.account, first.key, "store")
        self._require_here(rows)
        rows.tip(first.account)

    def _hand_out(self, first: Entry) -> bytes:
        """Read an answer back, compare it with its entry, and enter that it is handed out."""
        past, payload = self._store.reading(lambda rows: _sound_answer(rows, first))
        if payload is None:
            raise refusals.damaged_answer(first)
        # Entered before the caller has the answer, so that what was seen is never more than what
        # the log says.
        if not _has(past, "hand"):
            self._store.writing(lambda rows: _hand_once(rows, first))
            self._parts.anchor_last_entry()
        return payload

    def _abandon(self, mine: Entry | None) -> None:
        """End a lease, if it is still this process's."""
        if mine is None:
            return
        try:
            self._store.writing(lambda rows: _abandon_own(rows, mine))
        except BaseException:
            OWN_LEASES.add_ended(mine)
            raise

    def enter_stream(self, entry: Entry, spec: bytes) -> None:
        """Enter that the stream of a charge is there, once."""
        self._store.writing(lambda rows: _store_once(rows, entry, spec, BEGUN))
        self._parts.anchor_last_entry()

    # --- reading ----------------------------------------------------------------------------------

    def find(self, sequence: int) -> Entry | None:
        """The reservation of a number; None where the entry is no reservation."""
        entry = self._store.reading(lambda rows: rows.entry(sequence))
        return entry if entry is not None and entry.kind == "reserve" else None

    def answer(self, first: Entry) -> bytes | None:
        """What is stored under a reservation; None where nothing is stored yet."""
        past, payload = self._store.reading(lambda rows: _sound_answer(rows, first))
        if payload is None and _is_answered(past):
            raise refusals.damaged_answer(first)
        return payload


# --- within a transaction -------------------------------------------------------------------------


def require_account(rows: PublicRows, name: str, label: str, remedy: str = OPEN_IT) -> Account:
    """One account with its balance; of one that does not exist, a refusal with similar names."""
    found = rows.account(name)
    if found is None:
        others = nearest(name, (account.name for account in rows.accounts()))
        obstacle = f"{label} has no such account ({others})"
        raise UsageError(f"account {name!r}", obstacle, remedy)
    return found


def _store_once(rows: PublicRows, first: Entry, payload: bytes, note: str = "") -> None:
    """Enter an answer, if there is none: of two that were computed, the first stays."""
    if not rows.has(first.account, first.key, "store"):
        journal.store_answer(rows, journal.follow(first, "store", note=note), payload)


def _hand_once(rows: PublicRows, first: Entry) -> None:
    """Enter that an answer is handed out, if it never was."""
    if not rows.has(first.account, first.key, "hand"):
        journal.append(rows, journal.follow(first, "hand"))


def _sound_answer(rows: PublicRows, first: Entry) -> tuple[list[Entry], bytes | None]:
    """The entries of a key, and its answer, if it is the one that was entered."""
    past = rows.of_key(first.account, first.key)
    for entry in past:
        if entry.kind == "store":
            payload = rows.answer(entry.sequence)
            sound = isinstance(payload, bytes) and payload_digest(payload) == entry.payload_hash
            return past, payload if sound else None
    return past, None


def _abandon_own(rows: PublicRows, mine: Entry) -> None:
    """End a lease, unless another entry followed: a late caller cannot end its successor's."""
    if rows.of_key(mine.account, mine.key)[-1].sequence == mine.sequence:
        journal.append(rows, journal.follow(mine, "abandon"))


def _take_over(rows: PublicRows, request: Request, past: list[Entry]) -> Entry:
    """Resume a reservation without an answer under its old charge."""
    resumed = sum(entry.kind == "resume" for entry in past)
    if request.resumes is not None and resumed >= request.resumes:
        raise refusals.resumed_too_often(past[0])
    _require_same_cost(request, past[0])
    until = journal.lease_end(rows, request.lease)
    draft = journal.follow(past[0], "resume", until=until, holder=leases.current())
    return journal.append(rows, draft)


def _require_same_cost(request: Request, first: Entry) -> None:
    """Refuse to answer a charge that was made for another cost."""
    if tuple(request.cost) != first.cost:
        # What is picked for a plan may differ between versions, and no answer may spend more than
        # was charged for it.
        raise refusals.other_cost(first)


def _has(past: list[Entry], kind: str) -> bool:
    return any(entry.kind == kind for entry in past)


def _is_answered(past: list[Entry]) -> bool:
    return _has(past, "store")


def _is_leased(rows: PublicRows, last: Entry) -> bool:
    """Whether the last entry of a key is a lease under which somebody may be at work."""
    if not _is_running(rows, last):
        return False
    return not (OWN_LEASES.is_unused(last) or OWN_LEASES.is_ended(last))


def _is_running(rows: PublicRows, last: Entry) -> bool:
    """Whether the last entry of a key is a lease that runs, of a process that has not ended."""
    if last.kind not in ("reserve", "resume") or journal.stamp(rows.clock()) >= last.until:
        return False
    return not leases.ended(last.holder)
