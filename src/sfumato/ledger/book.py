"""The account book: the life of a charge, written once, over any store.

A charge passes through at most three durable states, each an entry: *reserved*, *stored*, *handed
out*. It is never refunded. The book knows nothing of questions, measures or data, and nothing of
SQL.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType

from sfumato import signing
from sfumato.errors import LedgerError, UsageError, nearest
from sfumato.forking import renewed_in_children
from sfumato.ledger import (
    audit_streams,
    bindings,
    journal,
    process_identity,
    refusals,
    stream_record,
)
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.audit import MOST_FAULTS, audit, first_look
from sfumato.ledger.chain import payload_digest
from sfumato.ledger.entries import BEGUN, MIXED, Account, Amount, Binding, Entry, Verification
from sfumato.ledger.hold import Hold
from sfumato.ledger.request import Request, require_amount, require_text
from sfumato.ledger.secrets import Conflict, Secrets, Unknown, new_identity
from sfumato.ledger.store import PublicRows, SecretRows, Store, StoreError
from sfumato.ledger.stream_record import StreamRecord

FIRST_PAUSE = 0.005  # seconds before the second look for another holder's answer
LAST_PAUSE = 0.1
BATCH = 500  # entries of the log that are read at a time


class Book:
    """An account book for many processes and threads, which only ever grows.

    ``open_ledger`` opens one in a file or in memory; users write its type as ``sf.Ledger``.

    Parameters
    ----------
    store : Store
        Keeps the rows. Its secret part is opened when it is needed: whoever reads or verifies a
        copy needs the public part alone.
    anchor : str, Path or None
        A second file, best on another disk, to which every charge appends the ledger's head. An
        older copy of the ledger that is put back is then refused.
    """

    def __init__(self, store: Store, *, anchor: str | Path | None = None) -> None:
        self._store = store
        self._anchor = None if anchor is None else Anchor(anchor)
        self._kept: Secrets | None = None
        self._streams: list[StreamRecord] = []
        self._looked = False
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
        opened = self._streams
        self._streams = []
        try:
            self._anchor_streams(opened)
        finally:
            if self._kept is not None:
                self._kept.close()
            self._store.close()

    # --- the two parts ----------------------------------------------------------------------------

    def _secrets(self) -> Secrets:
        """The secrets, opened before any transaction that needs them begins."""
        if self._kept is None:
            with self._opening:  # two threads would make two secrets for one ledger in memory
                self._kept = self._kept or self._open_secrets()
        return self._kept

    def _open_secrets(self) -> Secrets:
        known = self._store.reading(lambda rows: rows.identity())
        identity = known or self._store.writing(new_identity)
        # A ledger that was charged had secrets. New ones would let its streams begin again under
        # their old charge.
        create = not self._store.reading(lambda rows: rows.charged())
        return Secrets(self._store.secrets(create=create), identity, create=create)

    def _secrets_if_any(self) -> Secrets | None:
        if self._kept is None and not self._store.has_secrets():
            return None
        return self._secrets()

    def _look(self) -> Secrets:
        """Look once, before anything is written, at what a damaged or older ledger would show."""
        secrets = self._secrets()
        if self._looked:
            return secrets
        fault = self._store.reading(first_look)
        if fault is not None:
            remedy = "Restore a copy that verifies; do not publish from this one"
            raise LedgerError(self._store.label, fault, remedy)
        if secrets.store.reading(lambda rows: rows.any_stream()):
            self._store.require_private()
        self._check_anchor(secrets)
        self._looked = True
        return secrets

    # --- the anchor -------------------------------------------------------------------------------

    def _check_anchor(self, secrets: Secrets) -> None:
        if self._anchor is None:
            return
        if fault := self._anchor_fault(self._anchor, secrets):
            raise LedgerError(self._store.label, fault, "Restore the latest copy, with its secrets")
        self._anchor.require_writable()

    def _anchor_fault(self, anchor: Anchor, secrets: Secrets | None) -> str | None:
        """What the anchor knows and the ledger does not; of streams only with the secrets."""
        reached = anchor.read()
        sequence, digest = reached.entry
        sound = sequence == 0 or self._hash_of(sequence) == digest
        if secrets is not None:
            sound = sound and secrets.store.reading(partial(_reached, streams=reached.streams))
        if sound:
            return None
        obstacle = "an older copy was put back, or its history was rewritten"
        return f"it is not the ledger that {anchor.label} knows: {obstacle}"

    def _hash_of(self, sequence: int) -> str | None:
        entry = self._store.reading(lambda rows: rows.entry(sequence))
        return None if entry is None else entry.hash

    def _anchor_head(self) -> None:
        if self._anchor is not None:
            tip = self._store.reading(lambda rows: rows.tip(""))
            self._anchor.note(f"entry {tip.sequence} {tip.hash}")

    def _anchor_streams(self, opened: list[StreamRecord]) -> None:
        if self._anchor is not None:
            heads = [(stream.entry.sequence, *stream.head()) for stream in opened]
            lines = [f"stream {number} {step} {digest}" for number, step, digest in heads if step]
            if lines:
                self._anchor.note(*lines)

    # --- signatures -------------------------------------------------------------------------------

    def signer(self, *, create: bool = False) -> str | None:
        """The public key under which this ledger signs releases; None where there is none."""
        private = self._secrets().value(signing.NAME, signing.new_key if create else None)
        return None if private is None else signing.public_of(private)

    def sign(self, message: bytes) -> str:
        """Sign bytes under the ledger's key; "" where it has none."""
        private = self._secrets().value(signing.NAME)
        return "" if private is None else signing.sign(private, message)

    # --- accounts ---------------------------------------------------------------------------------

    def open_account(self, name: str, rule: str, total: Amount | None) -> Account:
        """Create an account, or check that it exists with this rule and total (None: any total).

        What it protects is fixed by its first charge: before that, a slip in a source's description
        binds nothing.
        """
        require_text("account", name)
        require_text("rule", rule)
        if total is None:
            found = self.account(name)
        else:
            require_amount("total", total)
            found = self._find_or_open(name, rule, total)
        if found.rule != rule or (total is not None and found.total != tuple(total)):
            raise refusals.differs(found, rule, total)
        return found

    def _find_or_open(self, name: str, rule: str, total: Amount) -> Account:
        self._look()

        def settle(rows: PublicRows) -> Account:
            return rows.account(name) or journal.open_account(rows, name, rule, total)

        found = self._store.reading(lambda rows: rows.account(name))
        return found or self._store.writing(settle)

    def fits(self, account: Account, binding: Binding) -> None:
        """Refuse a binding that differs from the account's own, if it has one."""
        self._look()
        bindings.require_fit(account, binding)

    def cap(self, account: str, binding: Binding) -> None:
        """Fix the ceiling of the data set that an account pays for, if it has none yet.

        A charge refuses one that differs.
        """
        self._look()

        def settle(rows: PublicRows) -> None:
            bindings.cap_once(rows, self._known(rows, account), binding)

        self._store.writing(settle)

    def accounts(self) -> list[Account]:
        """All accounts, in the order in which they were opened."""
        return self._store.reading(lambda rows: rows.accounts())

    def account(self, name: str) -> Account:
        """One account, as it stands now."""
        return self._store.reading(lambda rows: self._known(rows, name))

    def _known(self, rows: PublicRows, name: str) -> Account:
        found = rows.account(name)
        if found is None:
            others = nearest(name, (account.name for account in rows.accounts()))
            obstacle = f"{self._store.label} has no such account ({others})"
            remedy = "Name an account that exists, or give its budget to open it"
            raise UsageError(f"account {name!r}", obstacle, remedy)
        return found

    # --- the life of a charge ---------------------------------------------------------------------

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
        resumes: int | None = 1,
    ) -> Hold:
        """Charge an account, durably, before anything is counted; or replay what is paid for.

        Parameters
        ----------
        account : str
        key : str or None
            Names the charge within its account. None: the key that was made for this question, or a
            new random one.
        asked : str
            What the charge is for. It is kept among the secrets, as an HMAC; the same key for
            something else is refused.
        cost : tuple of two int
        note : str
            For the reader of the log.
        binding : Binding or None
            What all charges of the account have in common. The first fixes it, others are refused.
        lease : float
            Seconds after which another caller may take the key over, if no answer is stored. A
            holder that has ended, as far as this machine can tell, loses it at once.
        wait : float
            Seconds to wait for another holder's answer.
        resumes : int or None
            How often a reservation without an answer may be taken over under its old charge (None:
            always). Whether a run fails may depend on the data, so this is not free of consequence:
            after that the charge stays spent and the key stays shut.

        Raises
        ------
        BudgetExceeded
            The account cannot pay; nothing is written.
        UsageError
            The key stands for something else, or the account does not exist.
        LedgerError
            The ledger cannot be written, or another process is still answering this key.
        """
        request = Request(account, key, asked, cost, note, lease, resumes, binding)
        self._look()
        deadline = time.monotonic() + wait
        pause = FIRST_PAUSE
        found = self._attempt(request)
        while isinstance(found, Entry):
            left = deadline - time.monotonic()
            if left <= 0:
                raise refusals.still_answering(found)
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, LAST_PAUSE)
            if not self._works(found):
                found = self._attempt(request)
        return found

    def _attempt(self, request: Request) -> Hold | Entry:
        """Charge, take over or replay, in one transaction.

        Or return the entry by which another holder is at work.
        """
        past, mine = self._store.writing(lambda rows: self._settle(rows, request))
        if past and mine is None and not _answered(past):
            return past[-1]
        first = past[0] if past else mine
        assert first is not None
        if mine is not None:
            self._anchor_head()
        stored = self._hand_out(first) if mine is None else None
        return Hold(first, stored, partial(self._keep, first), partial(self._abandon, mine))

    def _settle(self, rows: PublicRows, request: Request) -> tuple[list[Entry], Entry | None]:
        """What was entered under the key before, and the entry by which the caller may work now."""
        request, past = self._named(rows, request)
        if not past:
            return past, self._charge(rows, request)
        if _answered(past) or _live(rows, past[-1]):
            return past, None
        self._fix_if_any(rows, request)
        return past, _take_over(rows, request, past)

    def _named(self, rows: PublicRows, request: Request) -> tuple[Request, list[Entry]]:
        """The request under its key and digest, and what was entered under them before.

        Every charge is a transaction that writes, so nobody else can give the question another name
        meanwhile.
        """
        account = request.account

        def charged(key: str) -> bool:
            return bool(rows.of_key(account, key))

        failure: UsageError | LedgerError
        try:
            name = self._secrets().name(account, request.key, request.asked, charged)
        except Conflict:
            failure = refusals.conflict(rows.of_key(account, request.name)[0])
        except Unknown:
            failure = refusals.unknown(rows.of_key(account, request.name)[0])
        else:
            past = rows.of_key(account, name.key)
            # Older secrets put back alone may know the key by another question, which it stood for
            # in vain before.
            if not past or past[0].digest == name.digest:
                return dataclasses.replace(request, key=name.key, digest=name.digest), past
            failure = refusals.unknown(past[0])
        raise failure

    def _charge(self, rows: PublicRows, request: Request) -> Entry:
        account = self._known(rows, request.account)
        cost = (request.cost[0], request.cost[1])
        left = account.remaining
        if cost[0] > left[0] or cost[1] > left[1]:
            raise refusals.exceeded(account, cost)
        if account.protects == MIXED:
            raise refusals.mixed(account)
        if request.binding is not None:
            bindings.fix(rows, account, request.binding)
            bindings.hold_under_ceiling(rows, account, request.binding, cost)
        draft = journal.Draft(
            request.account,
            "reserve",
            request.name,
            request.digest,
            cost,
            request.note,
            until=journal.lease_end(rows, request.lease),
            holder=process_identity.current(),
        )
        return journal.append(rows, draft)

    def _fix_if_any(self, rows: PublicRows, request: Request) -> None:
        if request.binding is not None:
            bindings.fix(rows, self._known(rows, request.account), request.binding)

    def _keep(self, first: Entry, payload: bytes) -> bytes:
        """Store an answer if there is none, then hand out what is there."""
        self._store.writing(lambda rows: _store_once(rows, first, payload))
        return self._hand_out(first)

    def _hand_out(self, first: Entry) -> bytes:
        """Read an answer back, compare it with its entry, and enter that it is handed out."""
        past, payload = self._store.reading(lambda rows: _answer(rows, first))
        if payload is None:
            raise refusals.spoilt(first)
        if not _has(past, "hand"):
            self._store.writing(lambda rows: _hand_once(rows, first))
            self._anchor_head()
        return payload

    def _abandon(self, mine: Entry | None) -> None:
        """End a lease, if it is still this holder's."""
        if mine is not None:
            self._store.writing(lambda rows: _abandon(rows, mine))

    def _works(self, entry: Entry) -> bool:
        """Whether another holder is at work on the key of an entry by now."""

        def look(rows: PublicRows) -> bool:
            return _live(rows, rows.of_key(entry.account, entry.key)[-1])

        return self._store.reading(look)

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
    ) -> StreamRecord:
        """Charge an account for a stream of steps, durably; or go on with one that is paid for.

        The charge comes first, then the stream among the secrets, then the entry which says that it
        is there. A process that ends in between leaves the next one to go on. After that entry a
        missing stream is an error: begun anew, it would spend its charge a second time.

        Parameters
        ----------
        account, key, asked, cost, note, binding
            As for `reserve`. There is no lease: every step is a transaction of its own, whoever
            takes it.
        spec : bytes
            What the stream is: public, stored with the charge, and ignored where the stream exists.
        state, secret : bytes
            The state before its first step, and what else its steps need: kept among the secrets
            until the last step.

        Raises
        ------
        BudgetExceeded, UsageError, LedgerError
            As for `reserve`.
        """
        request = Request(account, key, asked, cost, note, 0.0, None, binding)
        secrets = self._look().store
        entry, begun = self._store.writing(lambda rows: self._paid(rows, request))
        if not begun:
            secrets.writing(lambda rows: stream_record.begin(rows, entry, spec, state, secret))
        found = secrets.reading(lambda rows: stream_record.found(rows, entry, secrets))
        if not begun:
            self._store.writing(lambda rows: _store_once(rows, entry, found.spec, BEGUN))
            self._anchor_head()
        self._streams.append(found)
        return found

    def _paid(self, rows: PublicRows, request: Request) -> tuple[Entry, bool]:
        """The charge of a stream, and whether the stream was begun."""
        request, past = self._named(rows, request)
        if not past:
            return self._charge(rows, request), False
        self._fix_if_any(rows, request)
        return past[0], _answered(past)

    # --- the log ----------------------------------------------------------------------------------

    def log(self, account: str | None = None) -> Iterator[Entry]:
        """Entries in order, of one account or of all."""
        if account is not None:
            self.account(account)
        return self._entries(account)

    def _entries(self, account: str | None) -> Iterator[Entry]:
        last = 0
        while True:
            batch = self._store.reading(partial(_batch, after=last, account=account))
            yield from batch
            if len(batch) < BATCH:
                return
            last = batch[-1].sequence

    def answer(self, entry: int) -> bytes | None:
        """What is stored under a charge: its answer, or what a stream was opened with."""
        first = self._charge_of(entry)
        if first is None:
            return None
        past, payload = self._store.reading(lambda rows: _answer(rows, first))
        if payload is None and _answered(past):
            raise refusals.spoilt(first)
        return payload

    def steps(self, entry: int) -> StreamRecord | None:
        """The stream that a charge paid for; None where there is none."""
        first = self._charge_of(entry)
        secrets = self._secrets_if_any()
        if first is None or secrets is None:
            return None
        store = secrets.store
        if store.reading(lambda rows: rows.stream(entry)) is None:
            return None
        return store.reading(lambda rows: stream_record.found(rows, first, store))

    def _charge_of(self, sequence: int) -> Entry | None:
        entry = self._store.reading(lambda rows: rows.entry(sequence))
        return entry if entry is not None and entry.kind == "reserve" else None

    def was(self, entry: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded; None where it has no other."""
        secrets = self._secrets_if_any()
        return None if secrets is None else secrets.replaced(entry)

    # --- checking it ------------------------------------------------------------------------------

    def verify(self, head: Entry | tuple[int, str] | None = None) -> Verification:
        """Recompute the whole ledger and compare.

        Found: an entry, answer, step or account that was edited, added, deleted or moved; a
        balance, lease or total that does not follow from the entries; a stream's state that does
        not belong to its last step; triggers that were dropped or replaced; a damaged file; a plain
        cut of the tail.

        Not found without help from outside: a history that someone with write access rewrote as a
        whole, hashes and counters included, or an older copy put back in place. Both are valid
        chains. Against them, keep the ``head`` of an earlier verification, or any receipt,
        elsewhere and pass it here: that entry must then still stand where it stood. What was added
        after the latest head kept outside remains undetectable when cut.
        """
        try:
            return self._verify((head.sequence, head.hash) if isinstance(head, Entry) else head)
        except StoreError as error:
            return Verification(0, (0, ""), (f"the ledger cannot be read: {error.obstacle}",))

    def _verify(self, known: tuple[int, str] | None) -> Verification:
        secrets = self._secrets_if_any()
        if secrets is not None and known is not None:
            known = self._upgraded(secrets, known)
        found = self._store.reading(partial(audit, known=known))
        faults = list(found.verification.faults)
        if self._anchor is not None and (fault := self._anchor_fault(self._anchor, secrets)):
            faults.append(fault)
        if secrets is not None:
            last = found.verification.head[0]

            def look(rows: SecretRows) -> list[str]:
                return [*rows.damage(), *audit_streams.faults(rows, found.paid, found.begun, last)]

            faults += secrets.store.reading(look)
        return dataclasses.replace(found.verification, faults=tuple(faults[:MOST_FAULTS]))

    def _upgraded(self, secrets: Secrets, known: tuple[int, str]) -> tuple[int, str]:
        """An entry known by its hash before the ledger was upgraded, by the one it has now."""
        if secrets.replaced(known[0]) != known[1]:
            return known
        return known[0], self._hash_of(known[0]) or ""


# --- within a transaction -------------------------------------------------------------------------


def _batch(rows: PublicRows, after: int, account: str | None) -> list[Entry]:
    return list(rows.entries(after, account, BATCH))


def _reached(rows: SecretRows, streams: dict[int, tuple[int, str]]) -> bool:
    """Whether each stream has the step that is known of it, with its hash."""
    for number, (step, digest) in streams.items():
        found = rows.step(number, step)
        if step and (found is None or found.hash != digest):
            return False
    return True


def _store_once(rows: PublicRows, first: Entry, payload: bytes, note: str = "") -> None:
    """Enter an answer, if there is none."""
    if not rows.has(first.account, first.key, "store"):
        journal.store_answer(rows, journal.follow(first, "store", note=note), payload)


def _hand_once(rows: PublicRows, first: Entry) -> None:
    """Enter that an answer is handed out, if it never was."""
    if not rows.has(first.account, first.key, "hand"):
        journal.append(rows, journal.follow(first, "hand"))


def _answer(rows: PublicRows, first: Entry) -> tuple[list[Entry], bytes | None]:
    """The entries of a key, and its answer, if it is the one that was entered."""
    past = rows.of_key(first.account, first.key)
    for entry in past:
        if entry.kind == "store":
            payload = rows.answer(entry.sequence)
            sound = isinstance(payload, bytes) and payload_digest(payload) == entry.payload_hash
            return past, payload if sound else None
    return past, None


def _abandon(rows: PublicRows, mine: Entry) -> None:
    if rows.of_key(mine.account, mine.key)[-1].sequence == mine.sequence:
        journal.append(rows, journal.follow(mine, "abandon"))


def _take_over(rows: PublicRows, request: Request, past: list[Entry]) -> Entry:
    """Resume a reservation without an answer under its old charge."""
    resumed = sum(entry.kind == "resume" for entry in past)
    if request.resumes is not None and resumed >= request.resumes:
        raise refusals.shut(past[0])
    until = journal.lease_end(rows, request.lease)
    draft = journal.follow(past[0], "resume", until=until, holder=process_identity.current())
    return journal.append(rows, draft)


def _has(past: list[Entry], kind: str) -> bool:
    return any(entry.kind == kind for entry in past)


def _answered(past: list[Entry]) -> bool:
    return _has(past, "store")


def _live(rows: PublicRows, last: Entry) -> bool:
    """Whether the last entry of a key is a lease that runs, of a holder who may be at work."""
    lease = last.kind in ("reserve", "resume") and journal.stamp(rows.clock()) < last.until
    return lease and not process_identity.ended(last.holder)
