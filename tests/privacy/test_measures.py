"""Measures are exact, positive, and charged upwards."""

from fractions import Fraction

import msgspec
import pytest

from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.errors import UsageError
from sfumato.privacy.measures import (
    ZCDP,
    ApproxDP,
    MetricDP,
    PureDP,
    asked_cost,
    measure_of,
    spendable,
    total_of,
    without_delta,
)


@pytest.mark.parametrize("wrong", [0, -1, "abc", True, float("nan"), None])
def test_parameters_that_make_no_sense(wrong):
    for kind in (PureDP, ZCDP, MetricDP):
        with pytest.raises(UsageError):
            kind(wrong)
    with pytest.raises(UsageError):
        ApproxDP(wrong, 0)


@pytest.mark.parametrize("delta", [1, -0.1, "2"])
def test_delta(delta):
    with pytest.raises(UsageError):
        ApproxDP(1, delta)


def test_money():
    assert PureDP(0.1).money == (10**8, 0)
    assert PureDP(Fraction(1, 3)).money == (333333334, 0)
    assert ApproxDP("0.5", Fraction(1, 3 * 10**17)).money == (5 * 10**8, 4)
    assert ZCDP("0.5").money == (5 * 10**11, 0)


@pytest.mark.parametrize("cost", [PureDP("1/3"), ApproxDP("1/3", "1/7"), ZCDP("1/3")])
def test_what_is_spent_is_whole_units_and_never_more(cost):
    used = spendable(cost)
    assert spendable(used) == used
    assert all(a <= b for a, b in zip(used.money, cost.money, strict=True))
    amounts = [name for name in ("epsilon", "delta", "rho") if hasattr(cost, name)]
    parts = [(getattr(used, name), getattr(cost, name)) for name in amounts]
    assert all(0 < down <= full for down, full in parts)


def test_a_total_is_in_whole_units_and_never_more_than_was_stated():
    assert total_of(PureDP("1/3")) == (333333333, 0)
    assert total_of(ApproxDP("2/3", Fraction(5, 3 * 10**18))) == (666666666, 1)
    assert total_of(ZCDP("2/3")) == (666666666666, 0)
    for total in (PureDP(2), ApproxDP(2, "1e-6"), ZCDP("0.5")):
        assert total_of(total) == total.money


def test_what_needs_no_delta_is_charged_none():
    assert without_delta(ApproxDP("0.5", "1e-6")) == PureDP("0.5")
    for cost in (PureDP("0.5"), ZCDP("0.5")):
        assert without_delta(cost) == cost


@pytest.mark.parametrize(("kind", "most"), [(PureDP, 10**9), (MetricDP, 10**9), (ZCDP, 10**6)])
def test_no_more_than_a_ledger_can_count(kind, most):
    name = "rho" if kind is ZCDP else "epsilon"
    assert getattr(kind(most), name) == most
    with pytest.raises(UsageError, match=f"{name} above 1,000,"):
        kind(most + Fraction(1, 10**9))
    with pytest.raises(UsageError, match="above"):
        ApproxDP(10**9 + 1, "1e-6")


def test_too_small_to_count():
    with pytest.raises(UsageError, match="smallest unit"):
        spendable(PureDP("1e-10"))


def test_keywords():
    assert asked_cost(epsilon="0.5", delta=0, rho=None) == PureDP("0.5")
    assert asked_cost(epsilon="0.5", delta="1e-6", rho=None) == ApproxDP("0.5", "1e-6")
    assert asked_cost(epsilon=None, delta=0, rho="0.1") == ZCDP("0.1")
    for wrong in (
        {"epsilon": None, "rho": None},
        {"epsilon": 1, "rho": 1},
        {"epsilon": None, "rho": 1, "delta": "1e-6"},
    ):
        with pytest.raises(UsageError):
            asked_cost(**{"delta": 0} | wrong)


def test_one_reading_of_totals():
    assert (
        measure_of("a total", epsilon=3)
        == measure_of("a total", epsilon="3", delta="0.0")
        == PureDP(3)
    )
    assert measure_of("a total", epsilon=3, delta="1e-6") == ApproxDP(3, "1e-6")
    assert measure_of("a total", rho="1e-13") == ZCDP(
        "1e-13"
    )  # nothing is rounded: what counts in units rounds down
    with pytest.raises(UsageError, match="a total: --epsilon and --rho are both given"):
        measure_of("a total", epsilon=1, rho=1, prefix="--")
    with pytest.raises(UsageError, match="--rho with --delta"):
        measure_of("a total", delta="1e-6", rho=1, prefix="--")


def test_measures_travel():
    for cost in (PureDP("1/3"), ApproxDP("1/3", "1e-6"), ZCDP("0.1"), MetricDP("2")):
        data = msgspec.json.encode(cost, enc_hook=str)
        assert (
            msgspec.json.decode(data, type=type(cost), dec_hook=lambda kind, plain: Fraction(plain))
            == cost
        )


def test_what_only_totals_state_leaves_the_bytes_of_a_cost_as_they_were():
    stored = b'{"type":"approx","epsilon":"1/2","delta":"1/1000000"}'
    assert to_bytes(ApproxDP("0.5", "1e-6")) == stored
    assert from_bytes(stored, ApproxDP) == ApproxDP("0.5", "1e-6")
    spelled = b'{"type":"approx","epsilon":"1/2","delta":"1/1000000","composition":"sum"}'
    assert to_bytes(from_bytes(spelled, ApproxDP)) == stored
    assert to_bytes(PureDP("0.5")) == b'{"type":"pure","epsilon":"1/2"}'
    assert to_bytes(ZCDP("0.5")) == b'{"type":"zcdp","rho":"1/2"}'
    widening = ZCDP("0.5", widens_to=ApproxDP("6", "1e-6"))
    assert from_bytes(to_bytes(widening), ZCDP) == widening
    assert widening.widens_to.composition == "curves"
