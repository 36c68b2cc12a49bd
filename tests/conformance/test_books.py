"""The book of the ledger works alike on every store."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from conformance.stores import SHARED, STORES
from sfumato.basics import processes as process_identity
from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Binding, Book, Store
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.charge import Hold
from sfumato.ledger.entries import OVER
from sfumato.ledger.postgres import PostgresPublicRows
from sfumato.ledger.secrets import KEY_BYTES
from sfumato.ledger.store import (
    PublicRows,
)
from support.workers import all_end_well


def live(book: Book) -> list[object]:
    """Lead charges and a stream through their lives, and give all that the book said.

    There is a charge from reservation to replay, refusals, a charge that is taken over, ceilings,
    and a stream to its last step.
    """
    seen: list[object] = [
        book.open_account("a", "pure", (10 * 10**9, 0)),
        book.open_account("b", "pure", (10**9, 0)),
    ]
    for _ in range(2):  # paid for, then replayed
        with book.reserve(
            "a",
            None,
            "question",
            (10**9, 0),
            "a histogram",
            binding=Binding("one row", "n", (6 * 10**9, 0)),
        ) as hold:
            seen += [hold.entry, hold.stored, hold.store(b"answer")]
    refused = {
        "over the total": lambda: book.reserve("b", "k", "q", (2 * 10**9, 0), ""),
        "over the ceiling": lambda: book.reserve(
            "a", "k", "q", (6 * 10**9, 0), "", binding=Binding("one row", "n")
        ),
        "another question": lambda: book.reserve("a", hold.entry.key, "other", (1, 0), ""),
        "another person": lambda: book.reserve(
            "a", "k", "q", (1, 0), "", binding=Binding("one person", "n")
        ),
        "no account": lambda: book.reserve("c", "k", "q", (1, 0), ""),
        "another total": lambda: book.open_account("a", "pure", (1, 0)),
    }
    for what, ask in refused.items():
        with pytest.raises((BudgetExceeded, UsageError)) as refusal:
            ask()
        seen.append(
            (
                what,
                type(refusal.value),
                refusal.value.args[1].replace(book._store.label, "the ledger"),
            )
        )
    with pytest.raises(ZeroDivisionError), book.reserve("b", "left", "q", (10**9, 0), ""):
        raise ZeroDivisionError
    with book.reserve("b", "left", "q", (10**9, 0), "") as again:
        seen += [again.entry, again.store(b"at last")]
    with pytest.raises(BudgetExceeded):
        book.reserve("b", "more", "q", (1, 0), "")
    with (
        book.reserve("b", "free", "q", (0, 0), "") as running,
        pytest.raises(LedgerError, match="another process"),
    ):
        book.reserve("b", "free", "q", (0, 0), "", wait=0)
    seen.append(running.entry)
    seen += [spend(book)]
    seen += [
        stream(book),
        stream(book),
        book.signer(),
        book.signer(create=True),
        book.sign(b"message"),
    ]
    seen += [
        list(book.log()),
        book.accounts(),
        [book.answer(number) for number in range(1, 20)],
        book.verify(),
    ]
    assert book.verify().ok, book.verify().faults
    assert book.verify(hold.entry).ok
    return seen


def spend(book: Book) -> list[object]:
    """Name the only spender of an account, and let them spend all they may."""
    who = book._store.caller(None).name or "postgres"
    book.open_account("c", "pure", (10**9, 0))
    stated = {"spender": who}
    seen: list[object] = [book.add_spender("c", who, (5, 0)), book.set_spender("c", who, (6, 0))]
    with book.reserve("c", "first", "q", (4, 0), "", **stated) as hold:
        seen += [hold.entry, hold.store(b"theirs")]
    for cost in ((3, 0), (0, 1)):
        with pytest.raises(BudgetExceeded) as refusal:
            book.reserve("c", "second", "q", cost, "", **stated)
        seen += [refusal.value.args, refusal.value.remaining]
    seen += [book.spenders("c"), book.left("c", who), book.set_spender("c", who, (1, 0))]
    assert book.left("c", who) == (0, 0)
    return seen


def stream(book: Book) -> list[object]:
    """Open a stream, or go on with it, and take its next two steps, of four."""

    def work(number: int, state: bytes, counts: list[int]) -> tuple[bytes, bytes]:
        return (OVER if number == 4 else b"%s+%d" % (state, sum(counts))), b"%d" % number

    steps = book.stream(
        "a", "s", "stream", (10**9, 0), "steps", spec=b"spec", state=b"0", secret=b"secret"
    )
    taken = [
        steps.take("", work, [b"who", b"other", b"who"]),
        steps.take(f"e{steps.head()[0]}", work),
    ]
    assert steps.take(taken[1][0].event, work) == (taken[1][0], False)
    return [taken, steps.since(None), steps.head(), steps.spec]


def test_the_life_of_charges(make):
    with Book(make()) as book:
        live(book)
        assert book.account("a").spent == (2 * 10**9, 0)
        assert book.account("b").spent == (10**9, 0)


def test_every_store_keeps_the_same_book(tmp_path, monkeypatch):
    """Under one clock and the same random bytes, all hashes are equal."""
    seen = {}
    for name, make in STORES.items():
        numbers = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(
                "sfumato.ledger.secrets.secrets.token_hex",
                # Not every store keeps the digest of a charge that was refused.
                lambda count, numbers=numbers: (
                    f"{next(numbers) if count == KEY_BYTES else 0:0{2 * count}x}"
                ),
            )
            patch.setattr(
                "sfumato.ledger.secrets.secrets.token_bytes",
                lambda count, numbers=numbers: next(numbers).to_bytes(count),
            )
            for kind in (PublicRows, PostgresPublicRows):
                patch.setattr(kind, "clock", lambda rows: datetime(2026, 1, 1, tzinfo=UTC))
            patch.setattr(process_identity, "current", lambda: "")
            patch.setattr("sfumato.ledger.book.signing.new_key", lambda: bytes(32))
            with Book(make(tmp_path)) as book:
                seen[name] = live(book)
    first, *others = seen.values()
    assert len(first[-4]) > 15
    for other in others:
        assert other == first


def test_books_on_one_store_share_their_charges(make):
    first = Book(make())
    second = Book(make())
    first.open_account("a", "pure", (10, 0))
    hold = first.reserve("a", "k", "q", (10, 0), "")
    with pytest.raises(LedgerError, match="another process is answering"):
        second.reserve("a", "k", "q", (10, 0), "", wait=0)
    with pytest.raises(BudgetExceeded):
        second.reserve("a", "other", "q", (1, 0), "")
    hold.store(b"answer")
    assert second.reserve("a", "k", "q", (10, 0), "").stored == b"answer"
    assert second.verify().ok


def charge(book: Book) -> Hold:
    return book.reserve("a", "k", "q", (10, 0), "", wait=0)


def kept_out(make: Callable[[], Store]) -> None:
    """Ask in another process."""
    with Book(make()) as book, pytest.raises(LedgerError, match="another process is answering"):
        charge(book)


def test_whoever_was_not_told_of_their_charge_goes_on_at_once(make, request, tmp_path, monkeypatch):
    """A disk is full when the charge is noted in the anchor, and then nobody else goes on."""
    with Book(make(), anchor=tmp_path / "anchor") as book:
        book.open_account("a", "pure", (10, 0))
        noted = Anchor.note
        full = LedgerError("the anchor", "no room is left", "Make room")

        def note(anchor: Anchor, *lines: str) -> None:
            noted(anchor, *lines)
            if lines:
                raise full

        monkeypatch.setattr(Anchor, "note", note)
        for _ in range(2):
            with pytest.raises(LedgerError, match="no room is left"):
                charge(book)
        monkeypatch.undo()
        if request.node.callspec.params["make"] in SHARED:
            all_end_well([lambda: kept_out(make)])
        with charge(book) as hold:
            assert hold.store(b"answer") == b"answer"
        assert [entry.kind for entry in book.log()] == ["open", "reserve", "store", "hand"]
        assert book.account("a").spent == (10, 0)
        assert book.verify().ok


def test_a_ceiling_holds_however_an_account_was_bound(make):
    with Book(make()) as book:
        for name in ("first", "second", "third"):
            book.open_account(name, "pure", (100, 0))
        capped = Binding("one row", "n", (10, 0))
        for name in ("first", "second"):
            book.reserve(name, "k", "q", (3, 0), "", binding=capped)
        with pytest.raises(UsageError, match="without a name"):
            book.reserve("third", "k", "q", (3, 0), "", binding=Binding("one row"))
        with pytest.raises(UsageError, match="without a name"):
            book.fits(book.account("third"), Binding("one row"))
        for binding in (capped, Binding("one row", "n"), None):
            with pytest.raises(BudgetExceeded, match="over all accounts"):
                book.reserve("second", "l", "q", (5, 0), "", binding=binding)
        assert [account.spent[0] for account in book.accounts()] == [3, 3, 0]
        assert book.verify().ok


def test_a_lease_ends_by_the_clock_of_the_store(make, monkeypatch):
    """Machines that share one may have clocks an hour apart."""
    store_time = datetime(2026, 1, 1, tzinfo=UTC)
    for kind in (PublicRows, PostgresPublicRows):
        monkeypatch.setattr(kind, "clock", lambda rows: store_time)
    first = Book(make())
    second = Book(make())
    first.open_account("a", "pure", (10, 0))
    first.reserve("a", "k", "q", (10, 0), "", lease=60)
    with pytest.raises(LedgerError, match="another process is answering"):
        second.reserve("a", "k", "q", (10, 0), "", wait=0)
    store_time += timedelta(seconds=60)
    assert second.reserve("a", "k", "q", (10, 0), "", wait=0).stored is None
