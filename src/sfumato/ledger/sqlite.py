"""The ledger in a SQLite file, or in memory: one class, the same semantics."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType

from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import holder, rows, steps
from sfumato.ledger.audit import audit, expected_objects
from sfumato.ledger.chain import COLUMNS, entry_of, payload_digest
from sfumato.ledger.ledger import LARGEST, Account, Amount, Entry, Hold, Verification, written
from sfumato.ledger.steps import Steps
from sfumato.ledger.store import Store

LONGEST_TEXT = 4096  # bytes
LONGEST_LEASE = 366 * 86400.0  # seconds
FIRST_PAUSE, LAST_PAUSE = 0.005, 0.1  # seconds between two looks for another holder's answer
BATCH = 500  # entries of the log that are read at a time


@dataclass(frozen=True, slots=True)
class _Request:
    """What a caller of `reserve` asks for."""

    account: str
    key: str
    digest: str
    cost: Amount
    note: str
    lease: float
    resumes: int | None

    def __post_init__(self) -> None:
        for name in ("account", "key", "digest", "note"):
            _check_text(name, getattr(self, name), empty=name == "note")
        _check_amount("cost", self.cost)
        if not 0 <= self.lease <= LONGEST_LEASE:
            raise UsageError(f"lease={self.lease!r}", "a lease lasts from 0 seconds to a year", "Choose a lease such as 900 seconds")

    def until(self) -> str:
        """When a lease that begins now ends."""
        return rows.stamp(datetime.now(UTC) + timedelta(seconds=self.lease))


class SQLiteLedger:
    """An account book in a SQLite file; see `Ledger` for what each verb promises."""

    def __init__(self, where: str | Path | None, *, create: bool = True) -> None:
        if where is not None and "://" in str(where):
            raise UsageError(f"ledger={str(where)!r}", "a ledger is a file on this machine", 'Give a path such as "budget.db"')
        self._store = Store(where, create=create)

    def __repr__(self) -> str:
        return f"SQLiteLedger({self._store.path or ':memory:'!r})"

    def __enter__(self) -> SQLiteLedger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger; closing twice is harmless."""
        self._store.close()

    # --- accounts ----------------------------------------------------------------------------------------------------------

    def open_account(self, name: str, rule: str, total: Amount | None) -> Account:
        """Create an account, or check that it exists with exactly this rule and total (None: with any total)."""
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
        found = self._store.reading(lambda db: rows.account(db, name))
        return found or self._store.atomic(lambda db: rows.account(db, name) or rows.open_account(db, name, rule, total))

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
        key: str,
        digest: str,
        cost: Amount,
        note: str,
        *,
        lease: float = 900.0,
        wait: float = 60.0,
        resumes: int | None = 1,
    ) -> Hold:
        """Charge an account, durably, before anything is counted; or replay what the key has paid for. See `Ledger.reserve`."""
        request = _Request(account, key, digest, cost, note, lease, resumes)
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
        stored = self._hand_out(first) if mine is None else None
        return Hold(first, stored, partial(self._keep, first), partial(self._abandon, mine))

    def _settle(self, db: sqlite3.Connection, request: _Request) -> tuple[list[Entry], Entry | None]:
        """What was entered under the key before, and the entry by which the caller may work now."""
        past = rows.of_key(db, request.account, request.key)
        if not past:
            return past, self._charge(db, request)
        if past[0].digest != request.digest:
            raise _conflict(past[0])
        if _answered(past) or _live(past[-1]):
            return past, None
        return past, _take_over(db, request, past)

    def _charge(self, db: sqlite3.Connection, request: _Request) -> Entry:
        account, cost = self._known(db, request.account), request.cost
        left = account.remaining
        if cost[0] > left[0] or cost[1] > left[1]:
            raise _exceeded(account, cost)
        r = request
        lease = {"until": r.until(), "holder": holder.current()}
        return rows.append(db, rows.Draft(r.account, "reserve", r.key, r.digest, (cost[0], cost[1]), r.note, **lease))

    def _keep(self, first: Entry, payload: bytes) -> bytes:
        """Store an answer if there is none, then hand out what is there."""

        def keep(db: sqlite3.Connection) -> None:
            if not rows.has(db, first, "store"):
                stored = rows.append(db, rows.follow(first, "store", payload_hash=payload_digest(payload)))
                db.execute("INSERT INTO payloads (sequence, payload) VALUES (?, ?)", (stored.sequence, payload))

        self._store.atomic(keep)
        return self._hand_out(first)

    def _hand_out(self, first: Entry) -> bytes:
        """Read an answer back, compare it with its entry, and enter that it is handed out, before it is."""
        found, handed = self._store.reading(lambda db: (rows.answer(db, first), rows.has(db, first, "hand")))
        if found is None or not isinstance(found[1], bytes) or payload_digest(found[1]) != found[0].payload_hash:
            raise _spoilt(first)
        if not handed:
            self._store.atomic(lambda db: rows.has(db, first, "hand") or rows.append(db, rows.follow(first, "hand")))
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

    def stream(self, account: str, key: str, digest: str, cost: Amount, note: str, *, spec: bytes, state: bytes) -> Steps:
        """Charge an account for a stream, durably, or go on with the one that the key has paid for. See `Ledger.stream`."""
        request = _Request(account, key, digest, cost, note, 0.0, None)

        def open_(db: sqlite3.Connection) -> Steps:
            past = rows.of_key(db, account, key)
            if past and past[0].digest != digest:
                raise _conflict(past[0])
            entry = past[0] if past else self._charge(db, request)
            if not past:
                steps.begin(db, entry, spec, state)
            return Steps(entry, steps.spec_of(db, entry), self._store)

        return self._store.atomic(open_)

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

    def verify(self, head: Entry | tuple[int, str] | None = None) -> Verification:
        """Recompute the whole ledger and compare. See `Ledger.verify` for what can be found, and what cannot."""
        expected = expected_objects()
        try:
            return self._store.reading(lambda db: audit(db, head, expected))
        except LedgerError as error:
            if not isinstance(error.__cause__, sqlite3.Error):
                raise
            return Verification(0, (0, ""), (f"the ledger cannot be read: {error.obstacle}",))


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
        f"key {first.key!r} in account {first.account!r}", obstacle, "Choose another key, or ask exactly what was asked before"
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
