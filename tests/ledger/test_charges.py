"""The life of a charge, leases included: never over the total, and one answer for one key."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.basics import processes as process_identity
from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Account, Ledger, open_ledger
from sfumato.ledger.store import PublicRows
from support.tampering import unguarded

ASK = ("trips", "key", "digest", (10, 0), "a test")


class Clock:
    """Time that passes only while somebody sleeps; something may happen in the first sleep."""

    def __init__(self) -> None:
        self.start = datetime.now(UTC)
        self.seconds = 0.0
        self.meanwhile: Callable[[], object] | None = None

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds
        happens = self.meanwhile
        self.meanwhile = None
        if happens is not None:
            happens()

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the system's."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.seconds)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(PublicRows, "clock", lambda rows: clock.now())
    return clock


def kinds(ledger):
    return [entry.kind for entry in ledger.log()]


def test_leaving_by_an_exception_keeps_the_charge_and_ends_the_lease(ledger):
    with pytest.raises(MemoryError), ledger.reserve(*ASK) as hold:
        raise MemoryError
    assert ledger.account("trips").spent == (10, 0)
    with ledger.reserve(*ASK) as again:
        assert again.entry == hold.entry
        assert again.store(b"answer") == b"answer"
    assert kinds(ledger) == ["open", "reserve", "abandon", "resume", "store", "hand"]
    assert ledger.account("trips").spent == (10, 0)
    assert ledger.verify().ok


def test_a_charge_is_resumed_as_often_as_it_is_asked_for_under_one_seed(ledger):
    seeds = []

    def fail() -> None:
        with ledger.reserve(*ASK) as hold:
            seeds.append(hold.seed)
            raise ZeroDivisionError

    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            fail()
    with ledger.reserve(*ASK) as hold:
        seeds.append(hold.seed)
        hold.store(b"answer")
    assert len(set(seeds)) == 1
    assert len(seeds[0]) == 32
    with ledger.reserve("trips", "another", "digest", (10, 0), "") as other:
        assert other.seed != seeds[0]
    assert ledger.account("trips").spent == (20, 0)
    assert ledger.verify().ok


def test_a_charge_of_an_earlier_version_is_resumed_once_and_then_has_a_seed(ledger):
    """Nobody knows what its first attempts drew, so there may be no third of them."""
    rows = ledger._opened_secrets().store

    def interrupt() -> None:
        with pytest.raises(ZeroDivisionError), ledger.reserve(*ASK):
            raise ZeroDivisionError

    interrupt()
    rows.writing(lambda secrets: secrets.wipe_seed("trips", "key"))  # as if it never had one
    interrupt()
    interrupt()  # under the seed that the first resumption made
    rows.writing(lambda secrets: secrets.wipe_seed("trips", "key"))
    with pytest.raises(LedgerError, match="was resumed before version"):
        ledger.reserve(*ASK)
    assert ledger.account("trips").spent == (10, 0)


def test_a_seed_is_wiped_when_the_answer_is_stored_and_by_the_next_to_open(ledger):
    rows = ledger._opened_secrets().store
    with ledger.reserve(*ASK) as hold:
        assert rows.reading(lambda secrets: secrets.seeds()) == {("trips", "key"): hold.seed}
        hold.store(b"answer")
    assert rows.reading(lambda secrets: secrets.seeds()) == {}
    # A process that was killed between the answer and the wiping leaves the seed.
    rows.writing(lambda secrets: secrets.keep_seed("trips", "key", hold.seed))
    ledger.reserve("trips", "open", "other", (1, 0), "")
    ledger._examined = False
    assert ledger.reserve(*ASK).stored == b"answer"
    assert [*rows.reading(lambda secrets: secrets.seeds())] == [("trips", "open")]


def test_a_charge_is_not_resumed_at_another_cost(ledger):
    account, key, asked, (first, second), note = ASK
    with ledger.reserve(*ASK):
        pass
    for cost in ((first + 1, second), (first, second + 1), (first - 1, second)):
        with pytest.raises(LedgerError, match="picked another cost"):
            ledger.reserve(account, key, asked, cost, note)
    with ledger.reserve(*ASK) as again:
        again.store(b"answer")
    # An answer that is stored was paid for, whatever its question costs now.
    assert ledger.reserve(account, key, asked, (first + 1, second), note).stored == b"answer"


def test_leaving_without_an_answer_ends_the_lease_too(ledger):
    with ledger.reserve(*ASK):
        pass
    assert kinds(ledger) == ["open", "reserve", "abandon"]


def test_a_live_lease_is_waited_for_and_then_refused(ledger, clock):
    ledger.reserve(*ASK)
    with pytest.raises(LedgerError, match="another process is answering this key") as refusal:
        ledger.reserve(*ASK, wait=0.2)
    assert refusal.value.account == "trips"
    assert clock.seconds == pytest.approx(0.2)
    assert kinds(ledger) == ["open", "reserve"]


def test_who_waits_gets_the_answer_of_the_holder(ledger, clock):
    hold = ledger.reserve(*ASK)

    def answer() -> None:
        other = threading.Thread(target=hold.store, args=[b"the holder's"])
        other.start()
        other.join()

    clock.meanwhile = answer
    assert ledger.reserve(*ASK, wait=20).stored == b"the holder's"
    assert clock.meanwhile is None
    assert ledger.account("trips").spent == (10, 0)


def test_who_waits_takes_over_when_the_lease_runs_out(ledger, clock):
    ledger.reserve(*ASK, lease=1)
    second = ledger.reserve(*ASK, wait=10**6)
    assert second.stored is None
    assert clock.seconds >= 1
    assert kinds(ledger) == ["open", "reserve", "resume"]


def test_of_two_answers_the_first_is_kept_and_both_get_it(ledger):
    late = ledger.reserve(*ASK, lease=0)
    second = ledger.reserve(*ASK)
    assert second.store(b"second") == b"second"
    assert late.store(b"late") == b"second"
    assert kinds(ledger) == ["open", "reserve", "resume", "store", "hand"]


def test_a_late_holder_cannot_end_the_lease_of_its_successor(ledger):
    with ledger.reserve(*ASK, lease=0):
        ledger.reserve(*ASK)
    assert kinds(ledger) == ["open", "reserve", "resume"]


@pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell which processes run"
)
def test_a_holder_that_has_ended_loses_its_lease_at_once(path):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        child = os.fork()
        if child == 0:
            ledger.reserve(*ASK)
            os._exit(0)
        os.waitpid(child, 0)
        with ledger.reserve(*ASK, wait=0) as hold:
            assert hold.store(b"taken over") == b"taken over"
        assert kinds(ledger) == ["open", "reserve", "resume", "store", "hand"]


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


def test_a_cost_in_units_of_another_measure_is_refused_where_it_is_charged(ledger):
    """The account may have been opened meanwhile, by another process, in another measure."""
    ledger.open_account("opened", "marbles", (1000, 0))
    before = list(ledger.log())
    with pytest.raises(UsageError, match="'opened' with rule 'pebbles'"):
        ledger.reserve("opened", "key", "digest", (1, 0), "", rule="pebbles")
    with pytest.raises(UsageError, match="'opened' with rule 'pebbles'"):
        ledger.stream("opened", "key", "digest", (1, 0), "", spec=b"{}", state=b"0", rule="pebbles")
    assert list(ledger.log()) == before
    ledger.reserve("opened", "key", "digest", (1, 0), "", rule="marbles")
    assert ledger.account("opened").spent == (1, 0)


def test_the_same_key_with_another_digest_is_refused(ledger, release):
    release(ledger, "key")
    with pytest.raises(UsageError, match="another question"):
        ledger.reserve("trips", "key", "another digest", (10, 0), "")
    ledger.open_account("visits", "marbles", (5, 0))
    ledger.reserve("visits", "key", "another digest", (5, 0), "keys belong to their account")
    assert ledger.account("trips").spent == (10, 0)


amounts = st.tuples(st.integers(0, 40), st.integers(0, 40)) | st.tuples(
    st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)
)


steps = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from("klmnop"),
    amounts,
    st.sampled_from(["store", "fail", "hold"]),
)


def ask(ledger: Ledger, account: str, key: str, cost: tuple[int, int], then: str) -> str:
    """Reserve, then store, fail or hold the lease; return what came of it."""
    try:
        with ledger.reserve(
            account, key, repr(cost), cost, "", wait=0, lease=0 if then == "hold" else 900
        ) as hold:
            if then == "store":
                hold.store(repr(cost).encode())
            if then == "fail":
                raise ZeroDivisionError
    except BudgetExceeded:
        return "over"
    except UsageError:
        return "conflict"
    except (ZeroDivisionError, LedgerError):
        return "unanswered"
    return "left"


@settings(max_examples=60, deadline=None)
@given(
    total=st.tuples(st.integers(0, 100), st.integers(0, 100)), asked=st.lists(steps, max_size=25)
)
def test_the_sum_of_reserved_costs_never_exceeds_the_total_and_is_what_was_spent(total, asked):
    with open_ledger(None) as ledger:
        for name in "ab":
            ledger.open_account(name, "marbles", total)
        first: dict[tuple[str, str], tuple[int, int]] = {}
        for name, key, cost, then in asked:
            left = ledger.account(name).remaining
            before = first.get((name, key))
            outcome = ask(ledger, name, key, cost, then)
            affordable = cost[0] <= left[0] and cost[1] <= left[1]
            assert outcome == "over" if before is None and not affordable else outcome != "over"
            assert (outcome == "conflict") == (before not in (None, cost))
            if before is None and outcome != "over":
                first[name, key] = cost
        for account in ledger.accounts():
            costs = [entry.cost for entry in ledger.log(account.name) if entry.kind == "reserve"]
            assert account.spent == (sum(c[0] for c in costs), sum(c[1] for c in costs))
            assert all(spent <= limit for spent, limit in zip(account.spent, total, strict=True))
        assert ledger.verify().ok


def test_an_edited_answer_is_never_handed_out(charged_path):
    with unguarded(charged_path) as db:
        db.execute("UPDATE payloads SET payload = x'00' WHERE sequence = 3")
    with (
        open_ledger(charged_path) as ledger,
        pytest.raises(LedgerError, match="missing or was edited") as refusal,
    ):
        ledger.reserve("trips", "a", "digest of a", (10, 0), "")
    assert refusal.value.account == "trips"
