"""The life of an account and of a charge, in a file and in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Account, open_ledger
from sfumato.ledger.store import PublicRows


def kinds(ledger):
    return [entry.kind for entry in ledger.log()]


def test_a_charge_from_reservation_to_replay(ledger, monkeypatch):
    time = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    monkeypatch.setattr(PublicRows, "clock", lambda rows: time)
    with ledger.reserve("trips", "key", "digest", (300, 0), "a histogram") as hold:
        assert hold.stored is None
        assert ledger.account("trips").spent == (300, 0)
        assert hold.store(b"first") == b"first"
        assert hold.store(b"second") == b"first"
    with ledger.reserve("trips", "key", "digest", (300, 0), "a histogram") as again:
        assert again.stored == b"first"
        assert again.store(b"third") == b"first"
        assert again.entry == hold.entry
    assert kinds(ledger) == ["open", "reserve", "store", "hand"]
    assert ledger.account("trips") == Account("trips", "marbles", (1000, 0), (300, 0))
    assert ledger.account("trips").remaining == (700, 0)
    assert datetime.fromisoformat(hold.entry.time) == time
    assert datetime.fromisoformat(hold.entry.time).utcoffset() == timedelta(0)
    assert (hold.entry.note, hold.entry.cost, hold.entry.sequence) == ("a histogram", (300, 0), 2)
    assert ledger.verify(hold.entry).ok


def test_everything_is_still_there_after_reopening(path, release):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "pure", (10**9, 0))
        release(ledger, "a", b"\0binary\xff")
        head = ledger.verify().head
    with open_ledger(path) as ledger:
        assert release(ledger, "a", b"other") == b"\0binary\xff"
        assert ledger.account("trips").spent == (10, 0)
        assert ledger.verify(head).head == head


def test_an_existing_account_must_be_asked_for_as_it_is(ledger):
    kept = ledger.open_account("trips", "marbles", (1000, 0))
    assert ledger.open_account("trips", "marbles", None) == kept
    with pytest.raises(UsageError, match=r"\(999, 0\) units.*\(1000, 0\) units"):
        ledger.open_account("trips", "marbles", (999, 0))
    with pytest.raises(UsageError, match=r"rule 'pure'.*rule 'marbles'"):
        ledger.open_account("trips", "pure", (1000, 0))
    with pytest.raises(UsageError, match="rule 'zcdp'"):
        ledger.open_account("trips", "zcdp", None)
    assert kinds(ledger) == ["open"]


def test_totals_are_written_exactly_in_messages(ledger):
    ledger.open_account("a", "approx", (3 * 10**9, 10**12))
    with pytest.raises(
        UsageError,
        match=r"epsilon = 2.999999999, delta = 0.000000000000000001 .*epsilon = 3, delta = 0.000001 ",
    ):
        ledger.open_account("a", "approx", (3 * 10**9 - 1, 1))


@pytest.mark.parametrize(
    "use",
    [
        lambda b: b.account("tripz"),
        lambda b: b.open_account("tripz", "marbles", None),
        lambda b: b.log("tripz"),
    ],
)
def test_an_unknown_account_is_refused_with_the_nearest_name(ledger, use):
    with pytest.raises(UsageError, match="did you mean 'trips'"):
        use(ledger)
    with pytest.raises(UsageError, match="did you mean 'trips'"):
        ledger.reserve("tripz", "key", "digest", (1, 0), "")
    assert [account.name for account in ledger.accounts()] == ["trips"]


@pytest.mark.parametrize("cost", [(701, 0), (0, 51), (701, 51), (2**63 - 1, 0)])
def test_over_the_total_on_any_component_nothing_is_written(ledger, cost):
    ledger.open_account("both", "marbles", (1000, 100))
    ledger.reserve("both", "first", "digest", (300, 50), "")
    before = list(ledger.log())
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.reserve("both", "second", "digest", cost, "")
    assert (refusal.value.requested, refusal.value.remaining, refusal.value.account) == (
        cost,
        (700, 50),
        "both",
    )
    assert list(ledger.log()) == before
    ledger.reserve("both", "second", "digest", (700, 50), "the very last unit")
    assert ledger.account("both").remaining == (0, 0)
    ledger.reserve("both", "third", "digest", (0, 0), "what is free may still be entered")
    assert ledger.verify().ok


def test_the_same_key_with_another_digest_is_refused(ledger, release):
    release(ledger, "key")
    with pytest.raises(UsageError, match="another question"):
        ledger.reserve("trips", "key", "another digest", (10, 0), "")
    ledger.open_account("visits", "marbles", (5, 0))
    ledger.reserve("visits", "key", "another digest", (5, 0), "keys belong to their account")
    assert ledger.account("trips").spent == (10, 0)


def test_accounts_and_logs_are_apart(ledger, release):
    ledger.open_account("visits", "marbles", (50, 0))
    release(ledger, "a")
    ledger.reserve("visits", "a", "d", (50, 0), "")
    assert [account.spent for account in ledger.accounts()] == [(10, 0), (50, 0)]
    assert [entry.kind for entry in ledger.log("visits")] == ["open", "reserve"]
    assert [entry.sequence for entry in ledger.log()] == list(range(1, 7))


def test_a_long_log_is_read_in_batches(ledger):
    for number in range(1100):
        ledger.reserve("trips", str(number), "d", (0, 0), "")
    assert [entry.sequence for entry in ledger.log("trips")] == list(range(1, 1102))


@pytest.mark.parametrize(
    "cost", [(-1, 0), (1.0, 0), (True, 0), (1,), (1, 2, 3), 5, (2**63, 0), ("1", 0), None]
)
def test_an_amount_is_two_whole_numbers(ledger, cost):
    with pytest.raises(UsageError, match="two whole numbers"):
        ledger.reserve("trips", "key", "digest", cost, "")
    if cost is not None:
        with pytest.raises(UsageError, match="two whole numbers"):
            ledger.open_account("other", "marbles", cost)
    assert kinds(ledger) == ["open"]


@pytest.mark.parametrize("word", ["", "a\0b", "x" * 5000, "\ud800", 7])
@pytest.mark.parametrize("place", range(3))
def test_names_are_text_that_can_be_kept(ledger, word, place):
    words = ["trips", "key", "digest"]
    words[place] = word
    with pytest.raises(UsageError, match="must be text"):
        ledger.reserve(*words, (1, 0), "")


@pytest.mark.parametrize("lease", [-1, float("nan"), float("inf")])
def test_a_lease_is_a_time(ledger, lease):
    with pytest.raises(UsageError, match="lease"):
        ledger.reserve("trips", "key", "digest", (1, 0), "", lease=lease)


def test_an_answer_is_bytes_and_no_message_holds_it(ledger):
    with ledger.reserve("trips", "key", "digest", (1, 0), "") as hold:
        with pytest.raises(UsageError) as refusal:
            hold.store("canary")
        assert "canary" not in str(refusal.value)
        hold.store(b"canary")
        assert "canary" not in repr(hold)
        assert all("canary" not in repr(entry) for entry in ledger.log())


def test_a_closed_ledger_says_so(path):
    ledger = open_ledger(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.accounts()


def test_in_memory_every_ledger_is_its_own():
    with open_ledger(None) as one, open_ledger(":memory:") as other:
        one.open_account("a", "pure", (1, 0))
        assert other.accounts() == []


def test_a_ledger_is_a_file_on_this_machine():
    with pytest.raises(UsageError, match="a file on this machine"):
        open_ledger("postgres://host/db")
