"""Costs on a page add up where they may, and each charge is listed once."""

import msgspec

from reports.making import answered, receipted
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.reports import page


def test_answers_that_protect_hardly_anyone_together_say_so():
    """Each of them stays below 10, and none of them warns."""
    four = [receipted(answered(Histogram("age", bins=n), PureDP("3")), n) for n in range(2, 6)]
    warning = "bounded by epsilon = 12. Epsilon above 10 protects hardly anyone"
    assert warning in page.render(four)
    assert "hardly anyone" not in page.render(four[:3])


def test_spending_is_listed_once_per_charge():
    parts = [
        receipted(answered(Histogram(axis)), part=f"{i} of 2", charged="epsilon = 1")
        for i, axis in enumerate(("kind", "age"), 1)
    ]
    # One of them is given twice, and was paid for once.
    shown = page.render([*parts, parts[0]])
    table = shown[shown.index("What was spent") : shown.index("Only answers shown")]
    assert table.count("2026-03-01, 09:15:22 UTC") == 1
    assert "Taken together, the answers on this page are bounded by epsilon = 1." in table
    assert "It protects any single row, added or removed." in table


def test_costs_under_several_limits_of_one_person_add_up_and_others_do_not():
    """An aircraft is one person under a limit of 400 rows and of 50."""
    from sfumato.reports import front as spending

    def account(*units):
        releases = []
        for entry, unit in enumerate(units, 1):
            release = receipted(answered(Histogram("kind")), entry=entry)
            guarantee = msgspec.structs.replace(release.guarantee, unit=unit)
            releases.append(msgspec.structs.replace(release, guarantee=guarantee))
        (found,) = spending.accounts(releases)
        return found

    assert account(Unit(400, person="plane"), Unit(50, person="plane")).together == "epsilon = 1"
    assert account(Unit(400, person="plane"), Unit(50, person="plane")).protects.startswith(
        "It protects any one person"
    )
    for other in (Unit(50, "replace", "plane"), Unit(50, person="pilot"), Unit()):
        assert account(Unit(400, person="plane"), other).together is None
        assert "do not add up" in account(Unit(400, person="plane"), other).protects


def test_costs_of_different_measures_are_not_added():
    mixed = [
        receipted(answered(Histogram("kind"))),
        receipted(answered(Histogram("age"), ZCDP("0.1")), entry=2),
    ]
    assert "Taken together" not in page.render(mixed)


def test_answers_that_share_a_rho_cost_what_was_charged_for_it():
    """A plan with Gaussian noise at (epsilon, delta), beside an answer at an epsilon of its own."""
    charged = "epsilon = 1, delta = 0.000001"
    plan = [
        receipted(answered(Histogram(axis), ZCDP("0.01")), part=f"{i} of 2", charged=charged)
        for i, axis in enumerate(("kind", "age"), 1)
    ]
    other = receipted(answered(Histogram("kind"), PureDP("0.5")), 2, charged="epsilon = 0.5")
    shown = page.render([*plan, other])
    assert "bounded by epsilon = 1.5, delta = 0.000001" in shown
    # On an account in rho, the same answers cost their rho.
    in_rho = [
        receipted(answered(Histogram(axis), ZCDP("0.01")), part=f"{i} of 2", charged="rho = 0.02")
        for i, axis in enumerate(("kind", "age"), 1)
    ]
    assert "bounded by rho = 0.02" in page.render(in_rho)


def test_charges_of_two_ledgers_add_up_where_their_names_and_numbers_are_alike():
    """Two accounts in memory are both called default, and their first charges have one number."""
    two = [receipted(answered(Histogram("kind"), PureDP(cost))) for cost in ("1", "2")]
    receipts = [
        msgspec.structs.replace(release.receipt, entry_hash=digest)
        for release, digest in zip(two, ("ab" * 32, "cd" * 32), strict=True)
    ]
    shown = page.render(
        [
            msgspec.structs.replace(release, receipt=receipt)
            for release, receipt in zip(two, receipts, strict=True)
        ]
    )
    assert "bounded by epsilon = 3." in shown
    table = shown[shown.index("What was spent") : shown.index("Only answers shown")]
    assert table.count("2026-03-01, 09:15:22 UTC") == 2
