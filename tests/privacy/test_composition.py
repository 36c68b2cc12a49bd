"""Conversions and composition: never below the truth, and not far above it."""

import math
from fractions import Fraction

import mpmath
import pytest

from sfumato.errors import InternalError, UsageError
from sfumato.privacy.measures import (
    ZCDP,
    ApproxDP,
    PureDP,
    approx_to_zcdp,
    charge,
    compose,
    in_measure,
    plan_epsilon,
    pure_epsilon,
    pure_to_zcdp,
    rule_of,
    selection_epsilon,
    stated_total,
    zcdp_to_approx,
)


def epsilon_of(rho, delta, orders):
    """The least epsilon over a grid of orders, to 40 digits (Canonne, Kamath, Steinke 2020, Cor.

    13).
    """
    with mpmath.workdps(40):
        r, log_delta = (
            mpmath.mpf(rho.numerator) / rho.denominator,
            mpmath.log(mpmath.mpf(delta.numerator) / delta.denominator),
        )
        return min(
            a * r + (-log_delta - mpmath.log(a - 1) + a * mpmath.log1p(-1 / a)) / (a - 1)
            for a in orders
        )


@pytest.mark.parametrize("delta", [Fraction(1, 10**2), Fraction(1, 10**6), Fraction(1, 10**12)])
@pytest.mark.parametrize(
    "rho", [Fraction(1, 10**6), Fraction(1, 200), Fraction(1, 2), Fraction(20)]
)
def test_concentrated_to_approximate(rho, delta):
    best = 1 + math.sqrt(math.log(1 / delta) / rho)
    orders = [1 + (best - 1) * mpmath.mpf(10) ** (mpmath.mpf(i) / 1000 - 1) for i in range(2001)]
    truth = epsilon_of(rho, delta, orders)
    if truth <= 0:
        pytest.skip("delta alone pays for it")
    stated = zcdp_to_approx(rho, delta)
    assert stated.delta == delta
    assert float(stated.epsilon) <= float(truth) * (1 + 1e-6) + 1e-9
    # The least over all orders: refine around the grid's best, and stay above it.
    middle = min(orders, key=lambda a: epsilon_of(rho, delta, [a]))
    finest = epsilon_of(
        rho,
        delta,
        [
            middle * (1 + mpmath.mpf(i) / 10**5)
            for i in range(-250, 251)
            if middle * (1 + mpmath.mpf(i) / 10**5) > 1
        ],
    )
    assert float(stated.epsilon) >= float(finest) * (1 - 1e-9)


def test_a_rho_that_delta_alone_pays_for_costs_one_unit_of_epsilon():
    stated = zcdp_to_approx(Fraction(1, 10**6), Fraction(1, 100))
    assert 0 < stated.epsilon <= Fraction(1, 10**9)


def test_pure_to_concentrated():
    assert pure_to_zcdp(Fraction(1, 3)) == ZCDP(Fraction(1, 18))


def exact_delta(epsilon, scale, answers):
    """delta(epsilon) of answers with discrete Laplace noise, one coordinate moved by 1: each loss
    is +-1/scale, so they are binomial.
    """
    step = 1 / float(scale)
    up = 1 / (1 + math.exp(-step))
    return sum(
        math.comb(answers, k)
        * (
            up**k * (1 - up) ** (answers - k)
            - math.exp(epsilon) * (1 - up) ** k * up ** (answers - k)
        )
        for k in range(answers + 1)
        if (2 * k - answers) * step > epsilon
    )


@pytest.mark.parametrize(
    ("delta", "continuous"), [(Fraction(1, 10**6), 1.774), (Fraction(1, 10**4), 1.387)]
)
def test_twenty_laplace_answers(delta, continuous):
    """Never below the exact figure, within 1e-3 of it, and above the literature's, which is for
    continuous noise.
    """
    tight = float(plan_epsilon([PureDP("0.1")] * 20, delta))
    assert exact_delta(tight, 10, 20) <= delta
    assert exact_delta(tight - 1e-3, 10, 20) > delta
    assert continuous < tight < 2


def test_a_plan_of_different_costs_is_below_their_sum_and_above_the_largest():
    costs = [PureDP("0.5"), PureDP("0.25"), ApproxDP("0.25", "1e-8")]
    assert Fraction(1, 2) < plan_epsilon(costs, Fraction(1, 10**6)) <= 1
    assert plan_epsilon(costs[:1], Fraction(1, 10**12)) <= Fraction(501, 1000)


def test_charges():
    assert charge(PureDP("0.5"), "pure") == charge(PureDP("0.5"), "approx") == (5 * 10**8, 0)
    assert charge(PureDP("1"), "zcdp") == (5 * 10**11, 0)
    assert charge(ApproxDP(1, "1e-6"), "approx") == (10**9, 10**12)
    for cost, rule in (
        (ApproxDP(1, "1e-6"), "pure"),
        (ZCDP(1), "pure"),
        (ZCDP(1), "approx"),
        (ApproxDP(1, "1e-6"), "zcdp"),
    ):
        with pytest.raises(UsageError, match="cannot be counted in it"):
            charge(cost, rule)
    # Keys cannot be asked for under epsilon alone, so another account is named.
    with pytest.raises(
        UsageError, match="To find keys, or for noise with a bound, open another account"
    ):
        charge(ApproxDP(1, "1e-6"), "pure")


def test_sums():
    assert compose([PureDP("0.1")] * 3) == PureDP("0.3")
    assert compose([PureDP("0.1"), ApproxDP("0.2", "1e-6")]) == ApproxDP("0.3", "1e-6")
    assert compose([ZCDP("0.1"), ZCDP("0.2")]) == ZCDP("0.3")
    with pytest.raises(UsageError):
        compose([ZCDP("0.1"), PureDP("0.2")])


@pytest.mark.parametrize("cost", [PureDP("0.25"), ApproxDP("0.25", "1e-7"), ZCDP("0.125")])
def test_money_and_back(cost):
    amounts = ("epsilon", "delta", "rho")
    numbers = tuple(getattr(cost, name) for name in amounts if hasattr(cost, name))
    assert in_measure(cost.money, rule_of(cost)) == (numbers if len(numbers) > 1 else numbers[0])


def test_a_delta_that_the_costs_have_used_up_is_refused():
    with pytest.raises(UsageError, match="larger delta"):
        plan_epsilon([ApproxDP(1, "1e-6")] * 3, Fraction(1, 10**6))


@pytest.mark.parametrize("rho", ["1e-12", "0.3", "0.5", "1/3", "123.456"])
def test_the_largest_epsilon_that_rho_allows(rho):
    cost, unit = ZCDP(rho), Fraction(1, 10**9)
    pure, selecting = pure_epsilon(cost), selection_epsilon(cost)
    assert pure**2 / 2 <= cost.rho < (pure + unit) ** 2 / 2
    assert selecting**2 / 8 <= cost.rho < (selecting + unit) ** 2 / 8


def test_an_epsilon_is_its_own_and_delta_is_left_out():
    assert pure_epsilon(ApproxDP("0.3", "1e-6")) == pure_epsilon(PureDP("0.3")) == Fraction(3, 10)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("8", "0.01"), ("1e-6", "1e-6")]
)
def test_the_largest_rho_that_epsilon_and_delta_allow(epsilon, delta):
    given, unit = ApproxDP(epsilon, delta), Fraction(1, 10**12)
    rho = approx_to_zcdp(given.epsilon, given.delta).rho
    assert zcdp_to_approx(rho, given.delta).epsilon <= given.epsilon
    assert zcdp_to_approx(rho + unit, given.delta).epsilon > given.epsilon
    # By other means: no order proves less than what is stated of it.
    best = 1 + math.sqrt(math.log(1 / given.delta) / rho)
    orders = [1 + (best - 1) * mpmath.mpf(10) ** (mpmath.mpf(i) / 100 - 1) for i in range(201)]
    assert epsilon_of(rho, given.delta, orders) <= float(given.epsilon) * (1 + 1e-4)


def test_an_epsilon_and_a_delta_that_allow_no_rho_are_refused():
    with pytest.raises(UsageError, match="no Gaussian noise"):
        approx_to_zcdp(Fraction(1, 10**9), Fraction(1, 10**18))


def test_a_rule_that_no_account_has():
    with pytest.raises(InternalError):
        in_measure((1, 1), "renyi")


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("10", PureDP(10)),
        ("10,1e-6", ApproxDP(10, "1e-6")),
        ("0.5, 1e-6", ApproxDP("0.5", "1e-6")),
        ("epsilon = 3, delta = 0.000001", ApproxDP(3, "1e-6")),
        ("rho=0.5", ZCDP("0.5")),
        (" rho = 1/4 ", ZCDP("1/4")),
    ],
)
def test_a_total_is_read_as_it_is_written_and_printed(text, total):
    assert stated_total(text, "budget") == total
    assert stated_total(str(total), "budget") == total
    assert stated_total(total, "budget") is total


def test_a_number_without_a_name_is_in_the_measure_of_the_cost():
    assert stated_total("0.5", "--budget", in_rho=True) == ZCDP("0.5")
    assert stated_total("epsilon=2", "--budget", in_rho=True) == PureDP(2)
    for text in ("0.5,1e-6", "rho=1,rho=2", "gamma=3", "rho=1,delta=1e-6,"):
        with pytest.raises(UsageError, match="--budget"):
            stated_total(text, "--budget", in_rho=True)
    with pytest.raises(UsageError, match=r"decimal comma\. Write 0\.5"):
        stated_total("0,5", "budget")
    with pytest.raises(UsageError, match="rho with delta"):
        stated_total("rho=1,delta=1e-6", "budget")
