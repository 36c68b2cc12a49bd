"""What an account is bound to, and the ceiling of a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Ledger, journal, open_ledger
from sfumato.ledger import journal as bindings
from sfumato.ledger.entries import Binding
from sfumato.privacy.unit import Unit

DOMAIN = sf.Domain(x=sf.Interval(0, 4))
ROWS = sf.source(np.zeros((3, 1)), DOMAIN, name="n")
NAMELESS = sf.source(np.zeros((3, 1)), DOMAIN)
PERSONS = sf.source(pa.table({"x": [1.0, 2.0], "who": [1, 1]}), DOMAIN, person="who", name="n")
HISTOGRAM = sf.Histogram("x")


def opened(
    path: Path, source: sf.Source = ROWS, account: str = "a", **options: object
) -> sf.Publisher:
    return sf.Publisher(source, ledger=path, account=account, **({"budget": "9"} | options))


def test_an_account_for_nameless_data_does_not_pass_by_a_ceiling(path):
    """Its charges are not among those that the ceiling adds up."""
    with opened(path, NAMELESS) as publisher:
        publisher.release(HISTOGRAM, epsilon="1/2")
    with opened(path, account="named", ceiling="1") as publisher:
        publisher.release(HISTOGRAM, epsilon="1")
    with opened(path) as publisher:
        for key in ("1", "2"):
            with pytest.raises(sf.UsageError, match="ceiling"):
                publisher.release(HISTOGRAM, epsilon="1", key=key)
        with pytest.raises(sf.UsageError, match="ceiling"):
            publisher.open(sf.Counter(4), epsilon="1")
        assert publisher.account.spent == (500_000_000, 0)


def test_where_data_sets_have_ceilings_data_have_names(path):
    """The data without a name may be of the same data set: the account would pass by its ceiling.

    An account that paid for such data before goes on.
    """
    with opened(path, NAMELESS, "before") as before, opened(path, NAMELESS) as nameless:
        before.release(HISTOGRAM, epsilon="1")
        opened(path, ceiling="1").close()
        with pytest.raises(sf.UsageError, match="may belong to one of them"):
            nameless.release(HISTOGRAM, epsilon="1")
        with pytest.raises(sf.UsageError, match="may belong to one of them"):
            opened(path, NAMELESS)
        assert before.release(HISTOGRAM, epsilon="1", key="again").receipt is not None
    with opened(path) as named:
        named.release(HISTOGRAM, epsilon="1")
        with pytest.raises(sf.BudgetExceeded):
            named.release(HISTOGRAM, epsilon="1", key="again")
        assert named.account.spent == (10**9, 0)


def test_a_ceiling_that_cannot_be_kept_is_refused(path):
    with opened(path, NAMELESS) as publisher:
        publisher.release(HISTOGRAM, epsilon="1")
    with opened(path, ceiling="1") as publisher, pytest.raises(sf.UsageError, match="ceiling"):
        publisher.release(HISTOGRAM, epsilon="1/2", key="k")


def test_a_ceiling_holds_from_the_moment_when_it_is_stated(path):
    """A refusal, or a rival that charges first, does not undo it."""
    with opened(path, ceiling="1") as publisher, opened(path) as rival:
        for each in (rival, publisher):
            with pytest.raises(sf.BudgetExceeded) as refusal:
                each.release(HISTOGRAM, epsilon="2")
            assert (refusal.value.requested, refusal.value.remaining) == (2, 1)
        with opened(path, ceiling="2") as other, pytest.raises(sf.UsageError, match="ceiling"):
            other.release(HISTOGRAM, epsilon="1")
        assert publisher.ledger.verify().ok


def test_a_column_called_row_is_not_a_row(path):
    names = [
        "row",
        "person of at most 3 rows",
        "a, replaced by another",
        "who\n",
        "who\\n",
        "'who'",
    ]
    units = [Unit(), Unit(3), *(Unit(person=name) for name in names)]
    assert len({unit.protects for unit in units}) == len(units)
    table = pa.table({"x": [1.0, 2.0], "row": [1, 1]})
    with opened(path) as publisher:
        publisher.release(HISTOGRAM, epsilon="1")
    with pytest.raises(sf.UsageError, match="do not add up"):
        opened(path, sf.source(table, DOMAIN, person="row", rows_per_person=5, name="n"))


@pytest.mark.parametrize("ask", ["release", "open"])
def test_a_charge_that_is_taken_over_binds_its_account(path, monkeypatch, ask):
    """An older version may have left one: without an answer, and its account not bound."""
    with open_ledger(path) as ledger:
        ledger.open_account("a", "pure", (9 * 10**9, 0))
        monkeypatch.setattr(bindings, "fix", lambda *_: None)
        publisher = opened(path, PERSONS)
        monkeypatch.setattr(
            journal, "store_answer", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        questions = {
            "release": lambda p: p.release(HISTOGRAM, epsilon="1", key="k"),
            "open": lambda p: p.open(sf.Counter(4), epsilon="1", key="k"),
        }
        with pytest.raises(KeyboardInterrupt):
            questions[ask](publisher)
        monkeypatch.undo()
        opened(path).release(HISTOGRAM, epsilon="1")
        assert ledger.account("a").protects == "one row, added or removed"
        with pytest.raises(sf.UsageError, match="do not add up"):
            questions[ask](publisher)


def test_persons_whose_names_differ_in_capital_letters_only_are_most_likely_the_same(path):
    shouted = sf.source(pa.table({"x": [1.0], "Who": [1]}), DOMAIN, person="Who", name="n")
    with opened(path, PERSONS) as publisher:
        publisher.release(HISTOGRAM, epsilon="1")
    with pytest.raises(sf.UsageError, match=r"only capital letters differ.*same persons"):
        opened(path, shouted)
    with pytest.raises(sf.UsageError, match="the two costs do not add up"):
        opened(path, ROWS)


def charged(ledger: Ledger, account: str, cost: tuple[int, int], data: str = "n") -> None:
    binding = Binding("one row, added or removed", data)
    ledger.reserve(account, None, f"{account} {cost}", cost, "", binding=binding)


@pytest.mark.parametrize("last", [(5, 7), (5, 8), (6, 7)])
def test_each_component_of_all_accounts_keeps_within_the_ceiling(last):
    with open_ledger(None) as ledger:
        for name in ("a", "b", "other"):
            ledger.open_account(name, "approx", (100, 100))
        ledger.cap("a", Binding("one row, added or removed", "n", (20, 20)))
        charged(ledger, "other", (90, 90), data="another")
        charged(ledger, "a", (10, 3))
        charged(ledger, "b", (5, 10))
        if last == (5, 7):
            charged(ledger, "b", last)
            assert ledger.account("b").spent == (10, 17)
            last = (1, 0)
        with pytest.raises(BudgetExceeded):
            charged(ledger, "b", last)
        with pytest.raises(BudgetExceeded):
            charged(ledger, "a", last)


def test_amounts_in_different_measures_do_not_count_towards_one_ceiling():
    with open_ledger(None) as ledger:
        ledger.open_account("a", "pure", (100, 0))
        ledger.open_account("rho", "zcdp", (100, 0))
        ledger.cap("a", Binding("one row, added or removed", "n", (20, 0)))
        charged(ledger, "a", (1, 0))
        with pytest.raises(sf.UsageError, match="ceiling"):
            charged(ledger, "rho", (1, 0))
        assert ledger.account("rho").spent == (0, 0)


def test_a_ceiling_that_comes_with_a_charge_holds_for_the_accounts_after_it():
    with open_ledger(None) as ledger:
        for name in ("a", "b"):
            ledger.open_account(name, "pure", (100, 0))
        first = Binding("one row, added or removed", "n", (20, 0))
        ledger.reserve("a", None, "q", (15, 0), "", binding=first)
        charged(ledger, "b", (5, 0))
        with pytest.raises(BudgetExceeded):
            charged(ledger, "b", (1, 0))


def test_of_two_ceilings_that_are_stated_at_once_the_first_stays():
    """Both found none; the second writes after the first did."""
    with open_ledger(None) as ledger:
        account = ledger.open_account("a", "pure", (100, 0))
        for most in (20, 50):
            binding = Binding("one row, added or removed", "n", (most, 0))
            ledger._store.writing(lambda rows, each=binding: bindings.cap_once(rows, account, each))
        charged(ledger, "a", (20, 0))
        with pytest.raises(BudgetExceeded):
            charged(ledger, "a", (1, 0))
