"""The ledger in a SQLite file, or in memory: one class, the same semantics."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType

from sfumato import signing
from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import audit, holder, rows, steps
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.chain import COLUMNS, entry_of, payload_digest
from sfumato.ledger.ledger import (
    LARGEST,
    MIXED,
    Account,
    Amount,
    Binding,
    Entry,
    Hold,
    Verification,
    written,
)
from sfumato.ledger.secrets import Conflict, Secrets, Unknown, beside
from sfumato.ledger.steps import Steps
from sfumato.ledger.store import BOOK, OPENING, SECRETS, Store

LONGEST_TEXT = 4096  # bytes
LONGEST_LEASE = 366 * 86400.0  # seconds
FIRST_PAUSE, LAST_PAUSE = 0.005, 0.1  # seconds between two looks for another holder's answer
BATCH = 500  # entries of the log that are read at a time


@dataclass(frozen=True, slots=True)
class _Request:
    """What a caller of `reserve` asks for. ``digest`` is that of the ledger: random, and found with the key."""

    account: str
    key: str | None
    asked: str
    cost: Amount
    note: str
    lease: float
    resumes: int | None
    binding: Binding | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        for name in ("account", "asked", "note"):
            _check_text(name, getattr(self, name), empty=name == "note")
        if self.key is not None:
            _check_text("key", self.key)
        _check_amount("cost", self.cost)
        if not 0 <= self.lease <= LONGEST_LEASE:
            raise UsageError(f"lease={self.lease!r}", "a lease lasts from 0 seconds to a year", "Choose a lease such as 900 seconds")

    @property
    def name(self) -> str:
        """The key, once it is found."""
        assert self.key is not None
        return self.key

    def until(self) -> str:
        """When a lease that begins now ends."""
        return rows.stamp(datetime.now(UTC) + timedelta(seconds=self.lease))


class SQLiteLedger:
    """An account book in a SQLite file; see `Ledger` for what each verb promises.

    Its secrets are in a second file beside it, which is opened when it is needed: whoever reads or verifies a copy needs
    the book alone.
    """

    def __init__(
        self,
        where: str | Path | None,
        *,
        create: bool = True,
        anchor: str | Path | None = None,
    ) -> None:
        if where is not None and "://" in str(where):
            raise UsageError(f"ledger={str(where)!r}", "a ledger is a file on this machine", 'Give a path such as "budget.db"')
        self._store = Store(where, create=create)
        self._anchor = None if anchor is None else Anchor(anchor)
        self._kept: Secrets | None = None
        self._streams: list[Steps] = []
        self._looked = False

    def __repr__(self) -> str:
        return f"SQLiteLedger({self._store.path or ':memory:'!r})"

    def __enter__(self) -> SQLiteLedger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger; closing twice is harmless."""
        opened, self._streams = self._streams, []
        try:
            self._anchor_streams(opened)
        finally:
            if self._kept is not None:
                self._kept.close()
            self._store.close()

    # --- the two files -----------------------------------------------------------------------------------------------------

    def _secrets(self) -> Secrets:
        """The secrets, opened before any transaction that needs them begins."""
        if self._kept is None:
            with OPENING:  # two threads would make two secrets for one ledger in memory
                self._kept = self._kept or self._open_secrets()
        return self._kept

    def _open_secrets(self) -> Secrets:
        identity = self._store.reading(rows.identity_if_any) or self._store.atomic(rows.identity)
        # A ledger that was charged had secrets. New ones would let its streams begin again under their old charge.
        create = not self._store.reading(_charged_ever)
        return Secrets(beside(self._store.path), identity, create=create)

    def _secrets_if_any(self) -> Secrets | None:
        path = beside(self._store.path)
        if self._kept is None and (path is None or not os.path.lexists(path)):
            return None
        return self._secrets()

    def _look(self) -> Secrets:
        """Look once, before anything is written, at what a damaged or older ledger would show."""
        secrets = self._secrets()
        if self._looked:
            return secrets
        expected = audit.expected_objects(BOOK)
        fault = self._store.reading(lambda db: audit.first_look(db, expected))
        if fault is not None:
            raise LedgerError(self._store.label, fault, "Restore a copy that verifies; do not publish from this one")
        if self._store.open_to_others() and secrets.store.reading(_has_streams):
            obstacle = "others than its owner may open it, and it holds streams"
            raise LedgerError(self._store.label, obstacle, f"Run `chmod 600 {self._store.path}`, then ask again")
        self._check_anchor(secrets)
        self._looked = True
        return secrets

    def _check_anchor(self, secrets: Secrets) -> None:
        if self._anchor is None:
            return
        if fault := self._anchor_fault(self._anchor, secrets):
            raise LedgerError(self._store.label, fault, "Restore the latest copy, with its secrets")
        self._anchor.require_writable()

    def _anchor_fault(self, anchor: Anchor, secrets: Secrets | None) -> str | None:
        """What the anchor knows and the ledger does not; of streams only where the secrets are at hand."""
        reached = anchor.read()
        found = self._store.reading(lambda db: rows.hash_of(db, reached.entry[0]))
        sound = reached.entry[0] == 0 or found == reached.entry[1]
        if secrets is not None:
            at = secrets.store.reading(lambda db: {n: steps.hash_at(db, n, step) for n, (step, _) in reached.streams.items()})
            sound = sound and all(step == 0 or at[n] == digest for n, (step, digest) in reached.streams.items())
        if sound:
            return None
        return f"it is not the ledger that {anchor.label} knows: an older copy was put back, or its history was rewritten"

    def _anchor_head(self) -> None:
        if self._anchor is not None:
            sequence, digest = self._store.reading(rows.head)
            self._anchor.note(f"entry {sequence} {digest}")

    def _anchor_streams(self, opened: list[Steps]) -> None:
        if self._anchor is not None:
            heads = [(stream.entry.sequence, *stream.head()) for stream in opened]
            lines = [f"stream {n} {step} {digest}" for n, step, digest in heads if step]
            if lines:
                self._anchor.note(*lines)

    # --- signatures --------------------------------------------------------------------------------------------------------

    def signer(self, *, create: bool = False) -> str | None:
        """The public key under which this ledger signs releases; None where the holder made none."""
        private = self._secrets().about(signing.NAME, signing.new_key if create else None)
        return None if private is None else signing.public_of(private)

    def sign(self, message: bytes) -> str:
        """Sign bytes under the ledger's key; "" where it has none."""
        private = self._secrets().about(signing.NAME)
        return "" if private is None else signing.sign(private, message)

    # --- accounts ----------------------------------------------------------------------------------------------------------

    def open_account(self, name: str, rule: str, total: Amount | None) -> Account:
        """Create an account, or check that it exists with exactly this rule and total. See `Ledger.open_account`."""
        _check_text("account", name)
        _check_text("rule", rule)
        if total is None:
            found = self.account(name)
        else:
            _check_amount("total", total)
            found = self._find_or_open(name, rule, total)
        if found.rule != rule or (total is not None and found.total != tuple(total)):
            raise _differs(found, rule, total)
        return found

    def _find_or_open(self, name: str, rule: str, total: Amount) -> Account:
        self._look()
        found = self._store.reading(lambda db: rows.account(db, name))
        return found or self._store.atomic(lambda db: rows.account(db, name) or rows.open_account(db, name, rule, total))

    def fits(self, account: Account, binding: Binding) -> None:
        """Refuse a binding that differs from the account's own, if it has one. See `Ledger.fits`."""
        self._look()
        if account.protects not in ("", MIXED, binding.protects):
            raise _protects_others(account, binding)
        if account.data and account.data != binding.data:
            raise _other_data(account, binding)

    def cap(self, account: str, binding: Binding) -> None:
        """Fix the ceiling of a data set. See `Ledger.cap`."""
        self._look()
        self._store.atomic(lambda db: _cap_once(db, self._known(db, account), binding))

    def accounts(self) -> list[Account]:
        """All accounts, in the order in which they were opened."""
        return self._store.reading(rows.accounts)

    def account(self, name: str) -> Account:
        """One account, as it stands now."""
        return self._store.reading(lambda db: self._known(db, name))

    def _known(self, db: sqlite3.Connection, name: str) -> Account:
        found = rows.account(db, name)
        if found is None:
            obstacle = f"{self._store.label} has no such account ({rows.closest(db, name)})"
            raise UsageError(f"account {name!r}", obstacle, "Name an account that exists, or give its budget to open it")
        return found

    # --- the life of a charge ----------------------------------------------------------------------------------------------

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
        """Charge an account, durably, before anything is counted; or replay what the key has paid for. See `Ledger.reserve`."""
        request = _Request(account, key, asked, cost, note, lease, resumes, binding)
        self._look()
        deadline, pause = time.monotonic() + wait, FIRST_PAUSE
        found = self._attempt(request)
        while isinstance(found, Entry):
            left = deadline - time.monotonic()
            if left <= 0:
                raise _still_answering(found)
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, LAST_PAUSE)
            if not _live(self._last(found)):
                found = self._attempt(request)
        return found

    def _attempt(self, request: _Request) -> Hold | Entry:
        """Charge, take over or replay, in one transaction; or return the entry by which another holder is at work."""
        past, mine = self._store.atomic(lambda db: self._settle(db, request))
        if past and mine is None and not _answered(past):
            return past[-1]
        first = past[0] if past else mine
        assert first is not None
        if mine is not None:
            self._anchor_head()
        stored = self._hand_out(first) if mine is None else None
        return Hold(first, stored, partial(self._keep, first), partial(self._abandon, mine))

    def _settle(self, db: sqlite3.Connection, request: _Request) -> tuple[list[Entry], Entry | None]:
        """What was entered under the key before, and the entry by which the caller may work now."""
        request, past = self._named(db, request)
        if not past:
            return past, self._charge(db, request)
        if _answered(past) or _live(past[-1]):
            return past, None
        self._fix_if_any(db, request)
        return past, _take_over(db, request, past)

    def _named(self, db: sqlite3.Connection, request: _Request) -> tuple[_Request, list[Entry]]:
        """The request under its key and digest, and what was entered under them before.

        Every charge holds the ledger's write lock here, so nobody else can give the question another name meanwhile.
        """
        account = request.account
        try:
            key, digest = self._secrets().request(account, request.key, request.asked, lambda key: bool(rows.of_key(db, account, key)))
        except Conflict:
            failure: UsageError | LedgerError = _conflict(rows.of_key(db, account, str(request.key))[0])
        except Unknown:
            failure = _unknown(rows.of_key(db, account, str(request.key))[0])
        else:
            past = rows.of_key(db, account, key)
            # Older secrets put back alone may know the key by another question, which it stood for in vain before.
            if not past or past[0].digest == digest:
                return dataclasses.replace(request, key=key, digest=digest), past
            failure = _unknown(past[0])
        raise failure

    def _charge(self, db: sqlite3.Connection, request: _Request) -> Entry:
        account, cost = self._known(db, request.account), request.cost
        left = account.remaining
        if cost[0] > left[0] or cost[1] > left[1]:
            raise _exceeded(account, cost)
        if account.protects == MIXED:
            raise _mixed(account)
        if request.binding is not None:
            self._fix(db, account, request.binding)
            self._cap_if_any(db, account, request.binding, cost)
        r = request
        lease = {"until": r.until(), "holder": holder.current()}
        return rows.append(db, rows.Draft(r.account, "reserve", r.name, r.digest, (cost[0], cost[1]), r.note, **lease))

    def _fix_if_any(self, db: sqlite3.Connection, request: _Request) -> None:
        if request.binding is not None:
            self._fix(db, self._known(db, request.account), request.binding)

    def _fix(self, db: sqlite3.Connection, account: Account, wish: Binding) -> None:
        """Fix what the account protects with its first charge, and refuse what would not add up."""
        if not account.protects:
            rows.bind(db, account.name, wish.protects, wish.data)
        else:
            self.fits(account, wish)

    def _cap_if_any(self, db: sqlite3.Connection, account: Account, wish: Binding, cost: Amount) -> None:
        """Hold a charge under the ceiling of its data set."""
        data = account.data if account.protects else wish.data
        if data:
            self._cap(db, account, data, wish.ceiling, cost)
        elif wish.data and (wish.ceiling is not None or rows.ceiling(db, wish.data) is not None):
            # The charges of this account are not among those that the ceiling adds up.
            raise _outside_ceiling(account, wish.data)

    def _cap(self, db: sqlite3.Connection, account: Account, data: str, wish: Amount | None, cost: Amount) -> None:
        """Hold all accounts of one data set together under its ceiling."""
        kept = rows.ceiling(db, data)
        if kept is None:
            if wish is None:
                return
            rows.cap(db, account.name, data, account.rule, wish)
            kept = (account.rule, wish)
        rule, ceiling = kept
        if rule != account.rule or (wish is not None and wish != ceiling):
            raise _other_ceiling(account, data, rule, ceiling)
        theirs = [other for other in rows.of_data(db, data) if other.name != account.name]
        if any(other.rule != rule and any(other.spent) for other in theirs):
            raise _other_ceiling(account, data, rule, ceiling)
        spent = [sum(other.spent[i] for other in (*theirs, account)) for i in (0, 1)]
        left = (ceiling[0] - spent[0], ceiling[1] - spent[1])
        if cost[0] > left[0] or cost[1] > left[1]:
            raise _above_ceiling(account, data, cost, left, ceiling)

    def _keep(self, first: Entry, payload: bytes) -> bytes:
        """Store an answer if there is none, then hand out what is there."""
        self._store.atomic(lambda db: _store_answer(db, first, payload))
        return self._hand_out(first)

    def _hand_out(self, first: Entry) -> bytes:
        """Read an answer back, compare it with its entry, and enter that it is handed out, before it is."""
        found, handed = self._store.reading(lambda db: (rows.answer(db, first), rows.has(db, first, "hand")))
        if found is None or not isinstance(found[1], bytes) or payload_digest(found[1]) != found[0].payload_hash:
            raise _spoilt(first)
        if not handed:
            self._store.atomic(lambda db: rows.has(db, first, "hand") or rows.append(db, rows.follow(first, "hand")))
            self._anchor_head()
        return found[1]

    def _abandon(self, mine: Entry | None) -> None:
        """End a lease, if it is still this holder's."""

        def abandon(db: sqlite3.Connection, mine: Entry) -> None:
            if rows.of_key(db, mine.account, mine.key)[-1].sequence == mine.sequence:
                rows.append(db, rows.follow(mine, "abandon"))

        if mine is not None:
            self._store.atomic(lambda db: abandon(db, mine))

    def _last(self, entry: Entry) -> Entry:
        """The last entry of a key by now."""
        return self._store.reading(lambda db: rows.of_key(db, entry.account, entry.key)[-1])

    # --- streams -----------------------------------------------------------------------------------------------------------

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
    ) -> Steps:
        """Charge an account for a stream, durably, or go on with the one that the key has paid for. See `Ledger.stream`.

        The charge comes first, then the stream among the secrets, then the entry which says that it is there. A process that
        ends in between leaves the next one to go on. After that entry a missing stream is an error: begun anew, it would
        spend its charge a second time.
        """
        request = _Request(account, key, asked, cost, note, 0.0, None, binding)
        secrets = self._look().store
        entry, begun = self._store.atomic(lambda db: self._paid(db, request))
        if not begun:
            secrets.atomic(lambda db: steps.begin(db, entry, spec, state, secret))
        found = secrets.reading(lambda db: steps.found(db, entry, secrets))
        if not begun:
            self._store.atomic(lambda db: _store_answer(db, entry, found.spec, audit.BEGUN))
            self._anchor_head()
        self._streams.append(found)
        return found

    def _paid(self, db: sqlite3.Connection, request: _Request) -> tuple[Entry, bool]:
        """The charge of a stream, and whether the stream was begun."""
        request, past = self._named(db, request)
        if not past:
            return self._charge(db, request), False
        self._fix_if_any(db, request)
        return past[0], _answered(past)

    # --- the log -----------------------------------------------------------------------------------------------------------

    def log(self, account: str | None = None) -> Iterator[Entry]:
        """Entries in order, of one account or of all."""
        if account is not None:
            self.account(account)
        return self._entries(account)

    def _entries(self, account: str | None) -> Iterator[Entry]:
        last, chosen = 0, "" if account is None else "AND account = :account"
        query = f"SELECT {COLUMNS} FROM entries WHERE sequence > :last {chosen} ORDER BY sequence LIMIT {BATCH}"
        while True:
            batch = self._read(query, {"last": last, "account": account})
            yield from batch
            if len(batch) < BATCH:
                return
            last = batch[-1].sequence

    def _read(self, query: str, values: dict[str, object]) -> list[Entry]:
        return self._store.reading(lambda db: [entry_of(columns) for columns in db.execute(query, values)])

    def answer(self, entry: int) -> bytes | None:
        """What is stored under a charge. See `Ledger.answer`."""
        first = self._charge_of(entry)
        found = None if first is None else self._store.reading(lambda db: rows.answer(db, first))
        if found is None:
            return None
        if not isinstance(found[1], bytes) or payload_digest(found[1]) != found[0].payload_hash:
            raise _spoilt(found[0])
        return found[1]

    def steps(self, entry: int) -> Steps | None:
        """The stream that a charge paid for. See `Ledger.steps`."""
        first, secrets = self._charge_of(entry), self._secrets_if_any()
        if first is None or secrets is None:
            return None
        store = secrets.store
        return store.reading(lambda db: steps.found(db, first, store) if steps.has(db, first) else None)

    def _charge_of(self, entry: int) -> Entry | None:
        query = f"SELECT {COLUMNS} FROM entries WHERE sequence = :entry AND kind = 'reserve'"
        return next(iter(self._read(query, {"entry": entry})), None)

    def was(self, entry: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded. See `Ledger.was`."""
        secrets = self._secrets_if_any()
        return None if secrets is None else secrets.replaced(entry)

    def verify(self, head: Entry | tuple[int, str] | None = None) -> Verification:
        """Recompute the whole ledger and compare. See `Ledger.verify` for what can be found, and what cannot."""
        try:
            return self._verify(head)
        except LedgerError as error:
            if not isinstance(error.__cause__, sqlite3.Error):
                raise
            return Verification(0, (0, ""), (f"the ledger cannot be read: {error.obstacle}",))

    def _verify(self, head: Entry | tuple[int, str] | None) -> Verification:
        secrets = self._secrets_if_any()
        known = (head.sequence, head.hash) if isinstance(head, Entry) else head
        if secrets is not None and known is not None:
            known = self._upgraded(secrets, known)
        expected = audit.expected_objects(BOOK)
        found, paid, begun = self._store.reading(lambda db: (audit.audit(db, known, expected), audit.paid(db), audit.begun(db)))
        faults = list(found.faults)
        if self._anchor is not None and (fault := self._anchor_fault(self._anchor, secrets)):
            faults.append(fault)
        if secrets is not None:
            objects = audit.expected_objects(SECRETS)
            faults += secrets.store.reading(lambda db: [*audit.form(db, objects), *steps.faults(db, paid, begun, found.head[0])])
        return dataclasses.replace(found, faults=tuple(faults[: audit.MOST_FAULTS]))

    def _upgraded(self, secrets: Secrets, known: tuple[int, str]) -> tuple[int, str]:
        """An entry known by the hash that it had before the ledger was upgraded, by the one it has now."""
        if secrets.replaced(known[0]) != known[1]:
            return known
        return known[0], self._store.reading(lambda db: rows.hash_of(db, known[0])) or ""


def _cap_once(db: sqlite3.Connection, account: Account, wish: Binding) -> None:
    """Set the ceiling of a data set, if it has none and the account's charges are added up under it."""
    data = account.data if account.protects else wish.data
    if data and wish.ceiling is not None and rows.ceiling(db, data) is None:
        rows.cap(db, account.name, data, account.rule, wish.ceiling)


def _charged_ever(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM entries WHERE kind = 'reserve' LIMIT 1").fetchone() is not None


def _has_streams(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM streams LIMIT 1").fetchone() is not None


def _store_answer(db: sqlite3.Connection, first: Entry, payload: bytes, note: str = "") -> None:
    """Enter an answer, if there is none."""
    if not rows.has(db, first, "store"):
        stored = rows.append(db, rows.follow(first, "store", note=note, payload_hash=payload_digest(payload)))
        db.execute("INSERT INTO payloads (sequence, payload) VALUES (?, ?)", (stored.sequence, payload))


def _answered(past: list[Entry]) -> bool:
    return any(entry.kind == "store" for entry in past)


def _take_over(db: sqlite3.Connection, request: _Request, past: list[Entry]) -> Entry:
    """Resume a reservation without an answer under its old charge."""
    if request.resumes is not None and sum(entry.kind == "resume" for entry in past) >= request.resumes:
        raise _shut(past[0])
    return rows.append(db, rows.follow(past[0], "resume", until=request.until(), holder=holder.current()))


def _live(last: Entry) -> bool:
    """Whether the last entry of a key is a lease that runs and whose holder may still be at work."""
    return last.kind in ("reserve", "resume") and rows.now() < last.until and not holder.ended(last.holder)


# --- refusals --------------------------------------------------------------------------------------------------------------


def _differs(found: Account, rule: str, total: Amount | None) -> UsageError:
    wish = f"rule {rule!r}" if total is None else f"rule {rule!r} and {written(rule, total)} in all"
    kept = f"it exists with rule {found.rule!r} and {written(found.rule, found.total)} in all"
    remedy = "Ask for exactly what it has, leave the budget out, or choose another account name"
    return UsageError(f"account {found.name!r} with {wish}", kept, remedy)


def _exceeded(account: Account, cost: Amount) -> BudgetExceeded:
    left, total = written(account.rule, account.remaining), written(account.rule, account.total)
    return BudgetExceeded(
        f"a charge of {written(account.rule, cost)} to account {account.name!r}",
        f"{left} is left of {total}",
        "Ask for less, or stop publishing from this data set: what is spent is never given back",
        requested=cost,
        remaining=account.remaining,
        account=account.name,
    )


def _conflict(first: Entry) -> UsageError:
    obstacle = f"it has stood for another question, cost, unit or source since {first.time}"
    return UsageError(
        f"key {first.key!r} in account {first.account!r}",
        obstacle,
        "Choose another key, or ask exactly what was asked before, of a source of the same name",
    )


def _unknown(first: Entry) -> LedgerError:
    obstacle = "it was charged, and the ledger's secrets do not say what for: they are not the ones it was charged with"
    return LedgerError(f"key {first.key!r}", obstacle, "Put back the secrets of the ledger, or choose another key", account=first.account)


def _protects_others(account: Account, wish: Binding) -> UsageError:
    return UsageError(
        f"charging account {account.name!r} to protect {wish.protects}",
        f"it protects {account.protects}, and the two costs do not add up",
        "Open an account of its own for this one",
    )


def _mixed(account: Account) -> UsageError:
    return UsageError(
        f"charging account {account.name!r}",
        f"version 0.1 charged it for {MIXED}, so its total guarantees nothing",
        "Open an account of its own for each; what this one has paid for is found as before",
    )


def _outside_ceiling(account: Account, data: str) -> UsageError:
    return UsageError(
        f"charging account {account.name!r} for the data set {data!r}",
        "that data set has a ceiling for all its accounts together, and this one was opened for data without a name",
        f"Open an account by a source that has name={data!r}",
    )


def _other_data(account: Account, wish: Binding) -> UsageError:
    asked = f"the data set {wish.data!r}" if wish.data else "a data set without a name"
    return UsageError(
        f"charging account {account.name!r} for {asked}",
        f"it pays for the data set {account.data!r}",
        f"Write name={account.data!r} if this is that data set, or open another account",
    )


def _other_ceiling(account: Account, data: str, rule: str, ceiling: Amount) -> UsageError:
    return UsageError(
        f"charging account {account.name!r} for the data set {data!r}",
        f"that data set has a ceiling of {written(rule, ceiling)} for all accounts together",
        "Use accounts in that measure, and leave the ceiling out or repeat it exactly",
    )


def _above_ceiling(account: Account, data: str, cost: Amount, left: Amount, ceiling: Amount) -> BudgetExceeded:
    rule = account.rule
    return BudgetExceeded(
        f"a charge of {written(rule, cost)} for the data set {data!r}",
        f"{written(rule, left)} is left of its ceiling of {written(rule, ceiling)}, over all accounts",
        "Ask for less, or stop publishing from this data set: what is spent is never given back",
        requested=cost,
        remaining=left,
        account=account.name,
    )


def _shut(first: Entry) -> LedgerError:
    obstacle = "its charge was resumed before and still has no answer; whether a run fails may depend on the data, so it stays shut"
    return LedgerError(f"key {first.key!r}", obstacle, "The charge stands; choose another key, which pays anew", account=first.account)


def _still_answering(last: Entry) -> LedgerError:
    obstacle = f"another process is answering this key, and its lease runs until {last.until}"
    return LedgerError(f"key {last.key!r}", obstacle, "Wait for its answer, or ask again after that time", account=last.account)


def _spoilt(first: Entry) -> LedgerError:
    obstacle = "its stored answer is missing or was edited"
    return LedgerError(f"key {first.key!r}", obstacle, "Verify the ledger, and restore the latest whole copy", account=first.account)


# --- checks of what is asked -----------------------------------------------------------------------------------------------


def _check_text(name: str, value: object, *, empty: bool = False) -> None:
    try:
        fits = isinstance(value, str) and len(value.encode()) <= LONGEST_TEXT and "\0" not in value and (empty or value != "")
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise UsageError(
            f"the {name} of a charge", f"it must be text of at most {LONGEST_TEXT} bytes", f"Choose a shorter or plainer {name}"
        )


def _check_amount(name: str, amount: object) -> None:
    fits = isinstance(amount, tuple | list) and len(amount) == 2
    if not fits or not all(type(part) is int and 0 <= part <= LARGEST for part in amount):  # type: ignore[attr-defined]
        raise UsageError(f"{name}={amount!r}", f"an amount is two whole numbers from 0 to {LARGEST}", "Give it in the account's units")
