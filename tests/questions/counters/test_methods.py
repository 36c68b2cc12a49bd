"""The choice of a mechanism: figures of the page, and the better one of two."""

from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.questions.counters.methods import Contribution, largest_variance
from sfumato.questions.counters.question import half_widths
from sfumato.questions.counters.tree import ElderTree
from sfumato.streaming.toeplitz import coefficients

PAGE = Path(__file__).parents[3] / "docs" / "counter.md"


@pytest.mark.parametrize(
    ("horizon", "method", "cost", "says"),
    [
        (365, "tree", sf.PureDP(1), "212;"),
        (10**6, "tree", sf.PureDP(1), "2,193 "),
        (365, "toeplitz", sf.ZCDP("0.5"), "8.67;"),
        (365, "blt", sf.ZCDP("0.5"), "8.68;"),
        (10**6, "blt", sf.ZCDP("0.5"), "30.1 "),
    ],
)
def test_the_largest_variances_on_the_page(horizon, method, cost, says):
    found = largest_variance(
        sf.Counter(horizon, method=method).settle(None, sf.Unit(), cost).mechanism
    )
    assert (f"{found:,.0f}" if found >= 100 else f"{found:.3g}") == says.rstrip("; ")
    assert says in PAGE.read_text(encoding="utf-8")


def test_without_a_horizon():
    known, unknown = (
        sf.Counter(horizon).settle(None, sf.Unit(), sf.PureDP(1)).mechanism
        for horizon in (1000, None)
    )
    ratio = (
        half_widths(unknown, 1, 1000, 0.05, False).max()
        / half_widths(known, 1, 1000, 0.05, False).max()
    )
    assert f"{ratio:.1f}" == "1.2"


def test_the_lattice_costs_a_millionth():
    """Against the ideal, real-valued factorisation: variance times squared sensitivity."""
    for horizon in (365, 1024):
        mechanism = (
            sf.Counter(horizon, method="toeplitz").settle(None, sf.Unit(), sf.ZCDP("0.5")).mechanism
        )
        ideal = float((coefficients(horizon) ** 2).sum()) ** 2
        assert largest_variance(mechanism) == pytest.approx(ideal, rel=3e-6)


@pytest.mark.parametrize("unit", [sf.Unit(), sf.Unit(3, "replace")], ids=str)
def test_auto_is_the_better_one(unit):
    for horizon in (8, 365, 3000):
        for delta in ("1e-4", "1e-15"):
            cost = sf.ApproxDP("0.5", delta)
            variances = {
                m: largest_variance(
                    sf.Counter(horizon, method=m).settle(None, unit, cost).mechanism
                )
                for m in ("auto", "tree", "blt")
            }
            assert variances["auto"] <= min(variances.values()) * 1.0001
    assert Contribution(unit, (0, 1)).l1 == unit.rows_per_person * (
        2 if unit.neighbours == "replace" else 1
    )
    assert Contribution(unit, (-2, 1)).row == Fraction(2)


@pytest.mark.parametrize("cost", [sf.ApproxDP("1e-9", "1e-18"), sf.ApproxDP("1", "1e-6")])
def test_a_tree_is_taken_where_there_is_no_gaussian_noise(cost):
    settled = sf.Counter(
        10, value=sf.Interval(0, 10**12, step=1) if cost.epsilon == 1 else 1
    ).settle(None, sf.Unit(), cost)
    assert isinstance(settled.mechanism, ElderTree)
    assert settled.cost == sf.PureDP(cost.epsilon)
