"""The account at whose expense a publisher publishes."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.data import Source
from sfumato.errors import SfumatoWarning
from sfumato.ledger import open_ledger
from sfumato.publishing.publisher import CommandPublisher

PLAN = """
[source]
path = "t.csv"
person = "patent"
[domain]
x = { type = "interval", lower = 0, upper = 4 }
[budget]
account = "a"
epsilon = "1"
[release]
epsilon = "0.5"
[[questions]]
type = "histogram"
axes = ["x"]
bins = 2
"""


def test_a_plan_or_a_file_that_does_not_fit_opens_no_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An account is bound to its person column for good: a misspelt one would be lost."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("patient,x\na,1\nb,2\n")
    Path("p.toml").write_text(PLAN)
    asked = [
        "histogram",
        "t.csv",
        "--axis",
        "x=0..4",
        "--epsilon",
        "0.5",
        "--budget",
        "1",
        "--account",
        "b",
        "--person",
    ]
    assert run(["release", "p.toml", "--ledger", "b.db"]) == 4
    assert run([*asked, "patent", "--ledger", "b.db"]) == 4
    assert capsys.readouterr().err.count("did you mean 'patient'?") == 2
    Path("p.toml").write_text(PLAN.replace("patent", "patient"))
    assert run(["release", "p.toml", "--ledger", "b.db"]) == 0
    assert run([*asked, "patient", "--ledger", "b.db"]) == 0


POINTS = np.random.default_rng(5).random((500, 2))
DOMAIN = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))


def table(name: str | None = "points", **unit: object) -> Source:
    return sf.source(POINTS, DOMAIN, name=name, **unit)  # type: ignore[arg-type]


PEOPLE = pa.table({"x": POINTS[:, 0], "y": POINTS[:, 1], "who": np.arange(500) % 100})


def people(limit: int = 2, name: str | None = "points", **unit: Any) -> Source:
    return sf.source(PEOPLE, DOMAIN, **({"person": "who"} | unit), rows_per_person=limit, name=name)


OTHERS = {
    "another person column": {"person": "y"},
    "no person column": {"person": None},
    "another relation": {"neighbours": "replace"},
    "another data set": {"name": "other"},
    "a data set without a name": {"name": None},
}


@pytest.mark.parametrize("change", OTHERS)
def test_an_account_is_charged_for_one_unit_and_data_set_only(tmp_path: Path, change: str) -> None:
    """Costs for different persons, relations or data add up to a number that guarantees nothing."""
    with sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.25")
    src = sf.source(
        PEOPLE.rename_columns(["x", "z", "y"]),
        sf.Domain(x=sf.Interval(0, 1)),
        **({"person": "y"} | OTHERS[change]),
    )  # type: ignore[arg-type]
    src = people(**OTHERS[change]) if change != "another person column" else src  # type: ignore[arg-type]
    with pytest.raises(sf.UsageError, match="account"):
        sf.Publisher(src, ledger=tmp_path / "b.db", account="a", budget="1").release(
            sf.Histogram("x"), epsilon="0.25"
        )
    with open_ledger(tmp_path / "b.db") as ledger:
        assert ledger.account("a").spent == (250_000_000, 0)
        assert ledger.verify().ok


def test_an_account_that_nothing_has_bound_is_bound_by_its_first_charge(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "b.db") as ledger:
        ledger.open_account("a", "pure", (10**9, 0))
        sf.Publisher(people(), ledger=ledger, account="a").release(
            sf.Histogram("x"), epsilon="0.25"
        )
        found = ledger.account("a")
        assert (found.protects, found.data) == ("one who, added or removed", "points")
        with pytest.raises(sf.UsageError, match="one row"):
            sf.Publisher(people(person=None, limit=1), ledger=ledger, account="a")
        assert ledger.verify().ok


def test_a_data_set_has_one_ceiling_over_all_accounts(tmp_path: Path) -> None:
    """Three accounts on one source were all granted."""
    for number, account in enumerate("abc"):
        with sf.Publisher(
            people(), ledger=tmp_path / "b.db", account=account, budget="1", ceiling="2"
        ) as publisher:
            if number < 2:
                publisher.release(sf.Histogram("x"), epsilon="0.8", key=account)
                continue
            with pytest.raises(sf.BudgetExceeded, match="ceiling"):
                publisher.release(sf.Histogram("x"), epsilon="0.8", key=account)
            publisher.release(sf.Histogram("x"), epsilon="0.4", key=account)
            assert publisher.ledger.verify().ok
    with sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", ceiling="3") as publisher:
        with pytest.raises(sf.UsageError, match="ceiling"):
            publisher.release(sf.Histogram("y"), epsilon="0.1")
        publisher.release(
            sf.Histogram("x"), epsilon="0.8", key="a"
        )  # a stored answer costs nothing
    with (
        sf.Publisher(people(), ledger=tmp_path / "b.db", account="a") as publisher,
        pytest.raises(sf.BudgetExceeded, match="ceiling"),
    ):
        publisher.release(sf.Histogram("y"), epsilon="0.1")
    for wrong in (sf.ZCDP("1"), "0", "-1"):
        with pytest.raises(sf.UsageError):
            sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", ceiling=wrong)
    with pytest.raises(sf.UsageError, match="name"):
        sf.Publisher(people(name=None), budget="1", ceiling="2")


def test_an_account_in_memory_says_once_that_it_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.errors._said", set())
    with pytest.warns(sf.errors.SfumatoWarning, match="forgets"):
        sf.Publisher(table(), budget="1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sf.Publisher(table(), budget="1")
        monkeypatch.setattr("sfumato.errors._said", set())
        sf.Publisher(table(), budget="1", ledger=open_ledger(None))


def test_measures_convert_by_name_only() -> None:
    with sf.Publisher(table(), budget=sf.ZCDP("0.5")) as publisher:
        publisher.release(sf.Histogram("x"), rho="0.1")
        publisher.release(sf.Histogram("x"), epsilon="0.2")
        assert publisher.remaining == Fraction(1, 2) - Fraction(1, 10) - Fraction(2, 100)
        with pytest.raises(sf.UsageError, match="cannot be counted in it"):
            sf.Publisher(table(), budget="1").release(sf.Histogram("x"), rho="0.1")
    with sf.Publisher(table(), budget=sf.ApproxDP("1", "1e-6")) as publisher:
        answer = publisher.release(sf.Histogram("x"), epsilon="0.5", delta="1e-7")
        assert publisher.remaining == (
            Fraction(1, 2),
            Fraction(1, 10**6),
        )  # known cells need no delta
        assert answer.guarantee.measure == sf.PureDP("0.5")


def test_an_account_keeps_its_total(tmp_path: Path) -> None:
    sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="1").close()
    with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a") as publisher:
        assert publisher.remaining == 1
        publisher.release(sf.Histogram("x"), epsilon="0.5")
    with pytest.raises(sf.UsageError, match="1"):
        sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="2")
    with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a") as publisher:
        assert publisher.remaining == Fraction(1, 2)


def test_what_is_refused_leaves_no_ledger_behind(tmp_path: Path) -> None:
    """The budget of a mistaken try would stand, and each further one would be refused for it."""
    with pytest.raises(sf.UsageError, match="no such account"):
        sf.Publisher(table(), ledger=tmp_path / "b.db", account="a")
    path = tmp_path / "b.db"
    with CommandPublisher(table(), ledger=path, account="a", budget="1") as publisher:
        with pytest.raises(sf.BudgetExceeded, match="epsilon = 1 is left of epsilon = 1"):
            publisher.release(sf.Histogram("x"), epsilon="2")
        with pytest.raises(sf.BudgetExceeded):
            publisher.open(sf.Counter(horizon=9), epsilon="2", key="k")
        with pytest.raises(sf.UsageError):
            publisher.release(sf.Histogram("nix"), epsilon="1")
        assert publisher.account.total == (10**9, 0)
    assert list(tmp_path.iterdir()) == []
    with CommandPublisher(table(), ledger=path, account="a", budget="3") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="2")
        assert publisher.remaining == 1


def test_an_account_opened_meanwhile_is_the_one_that_pays(tmp_path: Path) -> None:
    book = tmp_path / "b.db"
    with sf.Publisher(table(), ledger=book, account="a", budget="1") as late:
        with sf.Publisher(table(), ledger=book, account="a", budget="1") as early:
            early.release(sf.Histogram("x"), epsilon="0.75")
        assert late.remaining == Fraction(1, 4)
        with pytest.raises(sf.BudgetExceeded):
            late.release(sf.Histogram("x"), epsilon="0.5", key="k")


@pytest.mark.parametrize("theirs", ["rho=1", "0.5", "1,1e-6"])
def test_an_account_opened_meanwhile_with_another_total_pays_for_nothing(
    tmp_path: Path, theirs: str
) -> None:
    """An epsilon counted in units of rho would cost next to nothing."""
    book = tmp_path / "b.db"
    late = [
        CommandPublisher(people(), ledger=book, account="a", budget="1", ceiling=ceiling)
        for ceiling in (None, "1")
    ]
    with sf.Publisher(people(), ledger=book, account="a", budget=theirs) as early:
        early.release(
            sf.Histogram("x"), **({"rho": "0.1"} if "rho" in theirs else {"epsilon": ".1"})
        )
        before = list(early.ledger.log())
        for publisher in late:
            with pytest.raises(sf.UsageError, match="it exists, and"):
                publisher.release(sf.Histogram("x", bins=2), epsilon="0.25")
            with pytest.raises(sf.UsageError, match="it exists, and"):
                publisher.open(sf.Counter(8), key="k", epsilon="0.25")
            publisher.close()
        assert list(early.ledger.log()) == before


def test_a_ledger_beside_one_that_paid_for_the_same_data_says_so(tmp_path: Path) -> None:
    """Whoever forgets the ledger's name would pay a second time, and never hear of it."""

    def ask(source: Source, book: str, account: str) -> None:
        with sf.Publisher(source, ledger=tmp_path / book, account=account, budget="1") as publisher:
            publisher.release(sf.Histogram("x"), epsilon="0.5")

    ask(people(), "old.db", "a")
    said = "Another ledger, 'old.db', .*account 'a' there .* spent epsilon = 0.5"
    with pytest.warns(SfumatoWarning, match=said):
        ask(people(), "new.db", "other name")
    ask(people(), "new.db", "other name")
    ask(people(name="others"), "third.db", "a")
    ask(people(name="points", person=None, limit=1), "third.db", "b")


def test_without_an_account_or_a_cost_nothing_starts(tmp_path: Path) -> None:
    with pytest.raises(sf.SfumatoError, match="account"):
        sf.Publisher(table(), ledger=tmp_path / "b.db", account="a")
    with sf.Publisher(table(), budget="1") as publisher:
        for cost in ({}, {"epsilon": "1", "rho": "1"}, {"rho": "1", "delta": "1e-6"}):
            with pytest.raises(sf.UsageError):
                publisher.release(sf.Histogram("x"), **cost)


@pytest.mark.parametrize("total", [sf.ZCDP("0.5"), sf.ApproxDP("1", "1e-6")], ids=str)
def test_an_existing_account_of_any_rule_is_found_without_its_total(
    total: object, tmp_path: Path
) -> None:
    sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget=total).close()
    with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.1")


def test_a_total_rounds_down_and_a_cost_up() -> None:
    with sf.Publisher(table(), budget="0.1234567899") as publisher:
        assert publisher.account.total == (123_456_789, 0)
    with pytest.raises(sf.UsageError, match="smallest unit"):
        sf.Publisher(table(), budget="1e-10")


def test_a_slip_binds_no_account(tmp_path: Path) -> None:
    """A misspelt person column is found before the first charge, which would bind the account."""
    with pytest.raises(sf.DataError, match="did you mean 'who'"):
        sf.Publisher(
            people(person="whom"), ledger=tmp_path / "b.db", account="a", budget="1"
        ).release(sf.Histogram("x"), epsilon="1")
    with sf.Publisher(people(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="1")
        assert publisher.account.protects == "one who, added or removed"
