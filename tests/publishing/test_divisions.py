"""The ways to spend a cost: their parts, their deltas, and what an account is charged."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.answers.accuracy import Kind
from sfumato.privacy.measures import approx_to_zcdp, without_delta, zcdp_to_approx
from sfumato.publishing.divisions import Candidate, Choice, divide, needed, spent

DOMAIN = sf.Domain(age=sf.Interval(0, 100, step=1), hour=sf.Interval(0, 24), shop=sf.Keys())
QUESTIONS = [sf.Histogram("age"), sf.Histogram("hour", bins=24), sf.Histogram("shop")]
COST = sf.ApproxDP(2, "1e-6")


def candidates(within=(None, None, None), shares=(None, None, None), questions=QUESTIONS):
    def previewing(question):
        return lambda cost: question.preview(DOMAIN, sf.Unit(), cost)

    return [
        Candidate(question, previewing(question), accuracy, Fraction(1), share)
        for question, accuracy, share in zip(questions, within, shares, strict=False)
    ]


def test_questions_in_rho_share_what_their_epsilon_and_delta_allow():
    found = divide(candidates(), COST, (0, 1))
    keys = found.costs[2]
    assert found.block.epsilon + keys.epsilon == COST.epsilon
    assert found.block.delta == keys.delta == COST.delta / 2
    whole = approx_to_zcdp(Fraction(found.block.epsilon), Fraction(found.block.delta)).rho
    assert sum(cost.rho for cost in found.costs[:2]) == whole
    # The larger table has the larger part.
    assert found.costs[0].rho > 2 * found.costs[1].rho


def test_delta_goes_to_those_who_use_it():
    found = divide(candidates(), COST, ())
    assert [isinstance(cost, sf.ApproxDP) for cost in found.costs] == [False, False, True]
    assert found.costs[2].delta == COST.delta
    assert sum(cost.epsilon for cost in found.costs) == COST.epsilon


def test_stated_shares_divide_epsilon_and_rho():
    shares = [Fraction(1), Fraction(2), Fraction(1)]
    found = divide(candidates(shares=shares), COST, ())
    assert [cost.epsilon for cost in found.costs] == [Fraction(1, 2), 1, Fraction(1, 2)]
    mixed = divide(candidates(shares=shares), COST, (0, 1))
    assert mixed.block.epsilon == Fraction(3, 2)
    assert mixed.costs[1].rho / mixed.costs[0].rho == pytest.approx(2)


def test_a_block_is_charged_whole_and_in_rho_where_the_account_counts_rho():
    found = divide(candidates(questions=QUESTIONS[:2]), COST, (0, 1))
    assert found.money(found.costs, "approx") == COST.money
    rho = approx_to_zcdp(Fraction(2), Fraction("1e-6"))
    assert found.money(found.costs, "zcdp") == rho.money
    alone = Choice(sf.PureDP(2), (sf.PureDP(1), sf.PureDP(1)))
    assert alone.money(alone.costs, "approx") == sf.PureDP(2).money


def test_what_accuracies_need_on_each_way():
    within = (sf.Within(20), sf.Within(10), None)
    asked = candidates(within=within)
    pure = needed(asked, Kind.of("pure", "1e-6"), ())
    each = [asked[i].need(Kind.of("pure")) for i in (0, 1)]
    assert pure == Fraction(sum(each), 10**9)
    rho = Fraction(sum(asked[i].need(Kind.of("zcdp")) for i in (0, 1)), 10**12)
    mixed = needed(asked, Kind.of("pure", "1e-6"), (0, 1))
    assert mixed == zcdp_to_approx(rho, Fraction("5e-7")).epsilon
    assert divide(asked, sf.ApproxDP(pure, "1e-6"), ()) is None  # nothing is left for the keys
    enough = divide(asked, sf.ApproxDP(mixed + 1, "1e-6"), (0, 1))
    for question, cost in zip(asked[:2], enough.costs[:2], strict=True):
        # At most what one unit of epsilon is worth above the need.
        least = Fraction(question.need(Kind.of("zcdp")), 10**12)
        assert least <= cost.rho <= least * (1 + Fraction(1, 10**6))
    assert enough.costs[2].epsilon == 1


def test_a_delta_that_nobody_uses_is_not_spent():
    tables = candidates(questions=QUESTIONS[:2])
    assert spent(tables, COST, ()) == without_delta(COST)
    assert spent(tables, COST, (0, 1)) == COST
    assert spent(candidates(), COST, (0, 1)) == COST
    assert spent(candidates(), COST, ()) == COST
