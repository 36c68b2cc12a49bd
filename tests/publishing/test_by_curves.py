"""An account by curves pays for what is drawn; what is left is said in answers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.ledger import open_ledger
from sfumato.privacy import Event
from sfumato.publishing.answering import PlannedRelease
from sfumato.publishing.counting import Draws

AGES = np.array([[31.0], [35.5], [64.0]])
DOMAIN = sf.Domain(age=sf.Interval(0, 100))
TOTAL = sf.ApproxDP("2", "1e-6", composition="curves")


@pytest.fixture
def pub(tmp_path: Path) -> Iterator[sf.Publisher]:
    source = sf.source(AGES, DOMAIN, name="ages")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget=TOTAL) as publisher:
        yield publisher


def test_counts_are_charged_by_what_they_draw(pub: sf.Publisher) -> None:
    release = pub.release(sf.Histogram("age", bins=4), epsilon="0.02")
    (entry,) = [entry for entry in pub.ledger.log() if entry.kind == "reserve"]
    assert entry.event == "laplace(1, 50)"
    assert entry.cost == (20_000_000, 0)
    assert release.receipt is not None
    assert release.receipt.charged == "epsilon = 0.02, delta = 0"
    assert pub.release(sf.Histogram("age", bins=4), epsilon="0.02").replayed
    assert pub.ledger.verify().ok


def test_a_plan_is_the_sum_of_its_parts(pub: sf.Publisher) -> None:
    pub.release([sf.Histogram("age", bins=4), sf.Histogram("age", bins=2)], epsilon="0.02")
    (entry,) = [entry for entry in pub.ledger.log() if entry.kind == "reserve"]
    assert entry.event == "2 laplace(1, 100)"


def test_answers_in_rho_are_paid_too(pub: sf.Publisher) -> None:
    release = pub.release(sf.Histogram("age", bins=4), rho="0.001")
    assert release.receipt is not None
    assert release.receipt.charged == "rho = 0.001"
    pub.release(sf.Histogram("age", bins=4), epsilon="0.02")
    assert pub.account.state[:3] == (20_000_000, 0, 10**9)


def test_a_stream_is_paid_when_it_is_opened_by_all_levels_of_its_tree(pub: sf.Publisher) -> None:
    stream = pub.open(sf.Counter(200), epsilon="0.1")
    (entry,) = [entry for entry in pub.ledger.log() if entry.kind == "reserve"]
    assert entry.event == "2 laplace(1, 20)"
    before = pub.account.state
    stream.push(3)
    assert pub.account.state == before
    receipt = stream.history().receipt
    assert receipt is not None
    assert (receipt.by_curves, receipt.budget) == ("epsilon = 2, delta = 0.000001", "")
    pub.open(sf.Counter(8, method="toeplitz"), rho="0.001")
    assert pub.account.state[2] == 10**9


def test_what_is_left_is_said_in_answers(pub: sf.Publisher) -> None:
    assert pub.account.remaining_answers(epsilon="0.02") == 423
    for _ in range(3):
        pub.release(sf.Histogram("age", bins=4), epsilon="0.02", fresh=True)
    assert pub.account.remaining_answers(epsilon="0.02") == 420
    assert "420 more answers at epsilon = 0.02 (by sums 97)" in str(pub.account)
    with pytest.raises(sf.UsageError):
        pub.account.remaining_answers(epsilon="0.1", rho="0.1")


def test_a_refusal_names_the_largest_epsilon_that_fits(pub: sf.Publisher) -> None:
    for _ in range(10):
        pub.release(sf.Histogram("age", bins=4), epsilon="0.1", fresh=True)
    with pytest.raises(sf.BudgetExceeded, match="the largest that fits is epsilon = ") as refused:
        pub.release(sf.Histogram("age", bins=4), epsilon="1.5")
    largest, aside = refused.value.remaining
    assert aside == Fraction(1, 4_000_000)
    # By sums 1 would be left. A single answer of all of it fits, as sums never pay for more.
    assert 1 <= largest < Fraction(3, 2)
    pub.release(sf.Histogram("age", bins=4), epsilon=largest)
    assert pub.account.remaining_answers(epsilon="0.1") == 0
    with pytest.raises(sf.BudgetExceeded, match=r"a charge of rho = 0\.5 to account") as refused:
        pub.release(sf.Histogram("age", bins=4), rho="0.5")
    assert refused.value.requested == Fraction(1, 2)


def test_an_account_by_sums_says_what_is_left(tmp_path: Path) -> None:
    source = sf.source(AGES, DOMAIN, name="ages")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="2") as publisher:
        assert publisher.account.remaining_answers(epsilon="0.02") == 100
        assert str(publisher.account).splitlines() == [
            "account 'a': epsilon = 2, by sums",
            "  left: epsilon = 2",
            "  100 more answers at epsilon = 0.02",
        ]


def test_a_preview_says_how_many_such_answers_the_account_can_pay(pub: sf.Publisher) -> None:
    said = str(pub.preview(sf.Histogram("age", bins=4), epsilon="0.02"))
    assert "account 'a' can pay 423 such answers (by sums 100)" in said
    pub.release(sf.Histogram("age", bins=4), epsilon="1")
    said = str(pub.preview(sf.Histogram("age", bins=4), rho="0.001"))
    assert "such answers" in said
    assert "by sums" not in said


def test_the_receipt_of_an_account_that_may_be_widened_names_the_target(tmp_path: Path) -> None:
    total = sf.ZCDP("0.5", widens_to=sf.ApproxDP("5.4", "1e-6"))
    source = sf.source(AGES, DOMAIN, name="ages")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget=total) as publisher:
        receipt = publisher.release(sf.Histogram("age", bins=4), rho="0.1").receipt
    assert receipt is not None
    assert receipt.most == sf.ApproxDP("5.4", "1e-6")


def test_receipts_and_reports_state_the_total(pub: sf.Publisher, tmp_path: Path) -> None:
    answers = [
        pub.release(sf.Histogram("age", bins=4), epsilon="0.02"),
        pub.release(sf.Histogram("age", bins=2), rho="0.001"),
    ]
    receipt = answers[0].receipt
    assert receipt is not None
    assert receipt.total == sf.ApproxDP("2", "1e-6")
    assert "by curves" in dict(receipt.lines())["Together"]
    answers[0].save(tmp_path / "a.json")
    assert sf.load(tmp_path / "a.json").receipt == receipt
    sf.report(answers, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "bounded, taken together, by epsilon = 2, delta = 0.000001" in page
    assert "All its answers, those not on this page too, are bounded by epsilon = 2" in page


@pytest.mark.parametrize("when", ["before the plan", "between plan and charge"])
def test_a_receipt_says_what_an_account_that_was_widened_meanwhile_was_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    source = sf.source(AGES, DOMAIN, name="ages")
    ledger = tmp_path / "b.db"
    budget = sf.ZCDP("0.3", widens_to=sf.ApproxDP("8", "1e-5", composition="curves"))

    def widened() -> None:
        with open_ledger(ledger) as book:
            book.widen("a")

    with sf.Publisher(source, ledger=ledger, account="a", budget=budget) as publisher:
        if when == "before the plan":
            widened()
        else:
            proposed = publisher._answering.proposed_draws

            def propose(planned: PlannedRelease) -> Draws:
                widened()
                return proposed(planned)

            monkeypatch.setattr(publisher._answering, "proposed_draws", propose)
        receipt = publisher.release(sf.Histogram("age", bins=4), epsilon="0.5").receipt
        assert receipt is not None
        assert receipt.charged == "epsilon = 0.5, delta = 0"
        assert receipt.by_curves == "epsilon = 8, delta = 0.00001"
        assert publisher.account.spent == (500_000_000, 0)


@pytest.mark.parametrize("stated", ["laplace(1, 100)", "zcdp(1/2)"])
def test_a_question_that_states_less_than_its_cost_is_refused_before_the_charge(
    pub: sf.Publisher, monkeypatch: pytest.MonkeyPatch, stated: str
) -> None:
    monkeypatch.setattr(sf.Histogram, "event", lambda *_: Event.read(stated))
    with pytest.raises(sf.UsageError, match=r"less than its cost of epsilon = 0\.02"):
        pub.release(sf.Histogram("age", bins=4), epsilon="0.02")
    assert not any(entry.kind == "reserve" for entry in pub.ledger.log())
