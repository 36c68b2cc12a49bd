"""What a plan picks: the best of what is offered, from public facts, charged exactly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from publishing import real_tables
from sfumato.basics.numbers import RHO_UNITS
from sfumato.basics.structs import to_bytes
from sfumato.domain.cube import Cube
from sfumato.privacy.measures import CentralMeasure, approx_to_zcdp, asked_cost, zcdp_to_approx
from sfumato.privacy.unit import Limits
from sfumato.random.bits import current

AXES = {f"x{i}": sf.Interval(0, 10, step=1) for i in range(50)}
DOMAIN = sf.Domain({**AXES, "shop": sf.Keys(), "age": sf.Interval(0, 100)})
ROWS = np.array([[i % 10] * 50 for i in range(60)], dtype=float)
APPROX = {"epsilon": 1, "delta": "1e-6"}


def tens(number: int) -> list[sf.Histogram]:
    """Histograms of ten cells each."""
    return [sf.Histogram(f"x{i}") for i in range(number)]


def unequal(sizes: list[int]) -> list[sf.Histogram]:
    """Histograms of so many cells each."""
    return [sf.Histogram(f"x{i}", bins=size) for i, size in enumerate(sizes)]


def previewed(plan, unit=None, **cost):
    return sf.preview(plan, domain=DOMAIN, unit=unit or sf.Unit(), **cost)


def publisher(budget, domain=None):
    domain = domain or sf.Domain(AXES)
    return sf.Publisher(sf.source(ROWS, domain, name="ten"), budget=budget)


def exact_sum(costs: tuple[CentralMeasure, ...]) -> Fraction:
    return sum(
        (cost.rho if isinstance(cost, sf.ZCDP) else cost.epsilon for cost in costs), Fraction(0)
    )


# --- the figures of the issue ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "before", "after"), [(4, 12, 12), (20, 60, 40), (50, 150, 63), (200, 599, 126)]
)
def test_many_histograms_at_an_epsilon_and_a_delta(number: int, before: int, after: int) -> None:
    domain = sf.Domain({f"x{i}": sf.Interval(0, 10, step=1) for i in range(number)})
    found = sf.preview(tens(number), domain=domain, unit=sf.Unit(), **APPROX)
    laplace = sf.Plan(tens(number), noise="laplace")
    plain = sf.preview(laplace, domain=domain, unit=sf.Unit(), **APPROX)
    assert {one.accuracy() for one in plain} == {before}
    assert {one.accuracy() for one in found} == {after}


@pytest.mark.parametrize(("number", "before", "after"), [(4, 144, 62), (20, 719, 138)])
def test_one_row_per_person_and_cell_counts(number: int, before: int, after: int) -> None:
    unit = sf.Unit(12, person="who", limits=Limits(rows_per_cell=1, cells_per_person=12))
    questions = [sf.Histogram([f"x{i}", f"x{i + 1}"]) for i in range(number)]
    found = previewed(questions, unit, **APPROX)
    plain = previewed(sf.Plan(questions, noise="laplace"), unit, **APPROX)
    assert {one.accuracy() for one in plain} == {before}
    assert {one.accuracy() for one in found} == {after}


# --- shares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "minimise", "power"),
    [
        ({"epsilon": 1}, "absolute", 1 / 2),
        ({"epsilon": 1}, "squared", 1 / 3),
        ({"rho": "0.02"}, "absolute", 2 / 3),
        ({"rho": "0.02"}, "squared", 1 / 2),
        ({"epsilon": 1, "delta": "1e-4"}, "absolute", 2 / 3),
    ],
)
def test_shares_follow_the_laws_of_the_cells(cost, minimise: str, power: float) -> None:
    questions = [sf.Histogram("x0"), sf.Histogram(["x0", "x1"]), sf.Histogram(["x0", "x1", "x2"])]
    noise = "gaussian" if "delta" in cost else None
    plan = sf.Plan(questions, minimise=minimise, noise=noise)
    costs = previewed(plan, **cost).choice.costs
    first, *others = (exact_sum((one,)) for one in costs)
    for cells, other in zip((10, 100), others, strict=True):
        assert float(other / first) == pytest.approx(cells**power, rel=1e-4)


def test_no_other_shares_have_a_smaller_error():
    # Brute force over a grid of shares, by the formula of the standard deviation.
    sizes = [2, 10, 40]
    for cost, power in (({"epsilon": 1}, 1.0), ({"rho": "0.01"}, 0.5)):
        plan = sf.Plan(unequal(sizes), minimise="absolute")
        picked = [float(exact_sum((one,))) for one in previewed(plan, **cost).choice.costs]
        whole = sum(picked)

        def error(shares, whole=whole, power=power):
            return sum(
                size / (whole * part) ** power for size, part in zip(sizes, shares, strict=True)
            )

        best = error([part / whole for part in picked])
        grid = np.linspace(0.01, 0.98, 98)
        every = [(a, b, 1 - a - b) for a, b in itertools.product(grid, grid) if a + b < 0.995]
        assert best <= min(map(error, every)) * (1 + 1e-9)


def test_weights_say_what_an_error_is_worth():
    questions = unequal([10, 10])
    plan = sf.Plan(questions, weights={"Histogram of x0": 4})
    costs = previewed(plan, epsilon=1).choice.costs
    assert costs[0].epsilon / costs[1].epsilon == pytest.approx(2)
    alike = previewed(sf.Plan(questions, weights=[1, 1]), epsilon=1).choice
    assert [str(cost) for cost in alike.costs] == ["epsilon = 0.5"] * 2


def test_a_plan_at_an_epsilon_alone_has_equal_shares_as_before():
    found = previewed(unequal([2, 10]), epsilon=1)
    assert found.choice is None
    assert [str(one.cost) for one in found] == ["epsilon = 0.5"] * 2


# --- properties -----------------------------------------------------------------------------------

SIZES = st.lists(st.integers(2, 40), min_size=2, max_size=12)


def offered(plan: sf.Plan, **cost: object) -> dict[str, float]:
    """The sum of all half-widths with each noise, each asked for by name."""
    found = {}
    for noise in ("laplace", "gaussian"):
        with_noise = sf.Plan(plan.questions, minimise="absolute", noise=noise)
        previews = previewed(with_noise, **cost)
        found[noise] = sum(one.cells * one.accuracy() for one in previews)
    return found


@settings(max_examples=15, deadline=None)
@given(sizes=SIZES, epsilon=st.sampled_from(["0.1", "1", "3"]), delta=st.sampled_from([9, 6, 3]))
def test_the_noise_is_the_better_one_and_the_parts_add_up(sizes, epsilon, delta) -> None:
    cost = {"epsilon": epsilon, "delta": f"1e-{delta}"}
    plan = sf.Plan(unequal(sizes))
    found = previewed(plan, **cost)
    total = sum(one.cells * one.accuracy() for one in found)
    by_noise = offered(plan, **cost)
    assert total == min(by_noise.values())
    choice = found.choice
    if choice.in_rho:
        whole = approx_to_zcdp(Fraction(epsilon), Fraction(f"1e-{delta}")).rho
        assert choice.cost == sf.ApproxDP(epsilon, f"1e-{delta}")
    else:
        whole = Fraction(epsilon)
        assert choice.cost == sf.PureDP(epsilon)
    assert exact_sum(choice.costs) == whole


@settings(max_examples=5, deadline=None)
@given(sizes=SIZES, widths=st.lists(st.integers(5, 300), min_size=12, max_size=12))
def test_the_least_cost_is_enough_and_one_unit_less_is_not(sizes, widths) -> None:
    plan = sf.Plan(unequal(sizes), accuracy=widths[: len(sizes)])
    for stated in ({}, {"delta": "1e-6"}):
        found = previewed(plan, **stated)
        for one, width in zip(found, widths, strict=False):
            assert one.accuracy() <= width
        least = found.choice.cost
        with pytest.raises(sf.Infeasible, match="needs"):
            previewed(plan, epsilon=least.epsilon - Fraction(1, 10**9), **stated)
        again = previewed(plan, epsilon=least.epsilon, **stated)
        assert [one.cost for one in again] == [one.cost for one in found]


def test_the_least_cost_is_that_of_the_cheaper_noise():
    plan = sf.Plan(tens(20), accuracy=40)
    least = {
        noise: previewed(sf.Plan(tens(20), accuracy=40, noise=noise), delta="1e-6").choice.cost
        for noise in ("laplace", "gaussian")
    }
    assert least["gaussian"].epsilon < least["laplace"].epsilon
    assert previewed(plan, delta="1e-6").choice.cost == least["gaussian"]


def test_a_cost_above_what_is_needed_is_spent_and_makes_all_more_accurate():
    plan = sf.Plan(unequal([10, 20, 30]), accuracy=[30, 20, 60])
    least = previewed(plan)
    found = previewed(plan, epsilon=3)
    assert exact_sum(found.choice.costs) == 3
    for one, before in zip(found, least, strict=True):
        assert one.accuracy() < before.accuracy()


# --- releases -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "charged"),
    [
        (sf.ApproxDP(3, "1e-5"), "epsilon = 1, delta = 0.000001"),
        (sf.PureDP(3), "epsilon = 1"),
        (sf.ZCDP(1), "rho = 0.024355970359"),
    ],
)
def test_a_release_is_as_accurate_as_its_preview_and_charged_exactly(budget, charged) -> None:
    with publisher(budget) as pub:
        questions = unequal([10, 10, 20, *[10] * 17])
        predicted = pub.preview(questions, **APPROX)
        found = pub.release(questions, **APPROX)
        for one, preview in zip(found, predicted, strict=True):
            assert set(one.accuracy().ravel()) == {preview.accuracy()}
            assert one.guarantee.measure == preview.cost
            assert one.receipt.charged == charged
            assert one.receipt.picked == str(predicted.choice)
        again = pub.release(questions, **APPROX)
        assert again[0].replayed
        assert to_bytes(again) == to_bytes(found)
        assert pub.ledger.verify().ok


def test_the_noise_that_is_drawn_is_that_of_the_parts():
    with publisher(sf.ApproxDP(3, "1e-5")) as pub:
        plan = sf.Plan(unequal([10, 30]), noise="gaussian")
        costs = pub.preview(plan, **APPROX).choice.costs
        for release, cost in zip(pub.release(plan, **APPROX), costs, strict=True):
            assert release.law.sigma_squared == 1 / (2 * cost.rho)


def test_what_was_answered_with_equal_shares_is_given_again(monkeypatch):
    """The stored answers of a plan that was paid for before anything was picked."""
    questions = unequal([10, 30])
    with publisher(sf.ApproxDP(9, "1e-5")) as pub:
        with monkeypatch.context() as before:
            before.setattr("sfumato.publishing.publisher.choose", lambda *_, **__: None)
            old = pub.release(questions, **APPROX)
            old_key = pub.release(questions, epsilon=2, delta="1e-6", key="mine")
            old_rho_cost = {"epsilon": "0.5", "delta": "1e-6"}
            old_other = pub.release(sf.Plan(questions, shares=[1, 2]), **old_rho_cost)
        spent = pub.account.spent
        assert pub.release(questions, **APPROX) == old
        assert pub.release(questions, epsilon=2, delta="1e-6", key="mine") == old_key
        assert pub.release(sf.Plan(questions, shares=[1, 2]), **old_rho_cost) == old_other
        assert pub.account.spent == spent
        # Whoever asks for picked shares asks something else.
        new = pub.release(sf.Plan(questions, minimise="absolute"), **APPROX)
        assert not new[0].replayed
        assert pub.account.spent > spent


def test_an_accuracy_is_part_of_what_is_asked():
    with publisher(sf.PureDP(9)) as pub:
        first = pub.release(sf.Plan(tens(2), accuracy=30))
        other = pub.release(sf.Plan(tens(2), accuracy=31))
        again = pub.release(sf.Plan(tens(2), accuracy={"Histogram of x0": 30, tens(2)[1]: 30}))
        assert [first[0].replayed, other[0].replayed, again[0].replayed] == [False, False, True]


def test_what_comes_to_the_same_is_paid_for_once():
    with publisher(sf.PureDP(9)) as pub:
        pub.release(tens(2), epsilon=1)
        again = pub.release(sf.Plan(tens(2), accuracy=50), epsilon=1)
        assert again[0].replayed
        assert pub.remaining == 8


def test_too_little_is_refused_before_the_charge():
    with publisher(sf.ApproxDP(9, "1e-5")) as pub:
        with pytest.raises(sf.Infeasible, match=r"needs epsilon = 0\.77341263.*delta") as refusal:
            pub.release(sf.Plan(tens(20), accuracy=50), epsilon="0.5", delta="1e-6")
        assert pub.account.spent == (0, 0)
        assert 'epsilon="0.773412633"' in refusal.value.remedy
        found = pub.release(sf.Plan(tens(20), accuracy=50), epsilon="0.773412633", delta="1e-6")
        assert found[0].accuracy().max() == 50


# --- the account, and questions of other kinds ----------------------------------------------------


def test_keys_keep_a_delta_of_their_own():
    plan = sf.Plan([*tens(30), sf.Histogram("shop")])
    choice = previewed(plan, **APPROX).choice
    assert choice.in_rho == tuple(range(30))
    keys = choice.costs[-1]
    assert isinstance(keys, sf.ApproxDP)
    assert keys.delta + choice.block.delta == Fraction("1e-6")
    assert keys.epsilon + choice.block.epsilon == 1
    assert exact_sum(choice.costs[:-1]) == approx_to_zcdp(*_numbers(choice.block)).rho


def _numbers(block: sf.ApproxDP) -> tuple[Fraction, Fraction]:
    return Fraction(block.epsilon), Fraction(block.delta)


@pytest.mark.parametrize(
    "question",
    [
        sf.Quantiles("age"),
        sf.Mean("age"),
        sf.KMeans(2, ["age"]),
        sf.AutoPartitioner("age"),
        sf.UniformPartitioner("age"),
        sf.PrivTreePartitioner("age"),
        sf.Histogram("age", records=20),
    ],
    ids=lambda question: type(question).__name__,
)
def test_other_questions_take_part(question) -> None:
    for cost in (APPROX, {"rho": "0.5"}, {"epsilon": 2}):
        plan = sf.Plan([*tens(12), question], minimise="absolute")
        found = previewed(plan, **cost)
        assert len(found) == 13
        if found.choice is None:
            continue
        if not found.choice.in_rho and "delta" not in cost:
            assert exact_sum(found.choice.costs) == Fraction(next(iter(cost.values())))
        assert len(found.choice.sentences) == len(set(found.choice.sentences))


def test_a_question_without_a_law_takes_a_share_by_its_weight():
    plan = sf.Plan([*tens(3), sf.KMeans(2, ["age"])], weights=[1, 1, 1, 5])
    costs = previewed(plan, epsilon=1).choice.costs
    assert costs[-1].epsilon == pytest.approx(Fraction(5, 8), abs=1e-8)


def test_stated_shares_change_noise_only_if_nobody_is_worse_off():
    alike = previewed(sf.Plan(tens(20), shares=[1] * 20), **APPROX)
    assert {one.accuracy() for one in alike} == {40}
    skewed = previewed(sf.Plan(tens(20), shares=[1000, *[1] * 19]), **APPROX)
    assert skewed.choice.in_rho == ()
    assert str(skewed[0].cost).startswith("epsilon = 0.98")


@pytest.mark.parametrize(
    ("words", "cost", "said"),
    [
        ({"noise": "gaussian"}, {"epsilon": 1}, "no pure epsilon"),
        ({"noise": "laplace"}, {"rho": 1}, "a rho pays"),
        ({"accuracy": [9, None]}, {}, "Histogram of x1 has no accuracy"),
        ({"accuracy": 9}, {"delta": "2"}, "delta"),
    ],
)
def test_what_does_not_fit_the_cost(words, cost, said: str) -> None:
    with pytest.raises(sf.UsageError, match=said):
        previewed(sf.Plan(tens(2), **words), **cost)


def test_a_cost_of_fewer_units_than_questions_is_refused():
    with pytest.raises(sf.UsageError, match="smallest unit"):
        previewed(sf.Plan(tens(3), minimise="absolute"), epsilon="2e-9")
    three = previewed(sf.Plan(unequal([2, 3, 40]), minimise="absolute"), epsilon="3e-9")
    assert [str(one.cost) for one in three] == ["epsilon = 1e-09"] * 3


def test_a_delta_too_small_for_gaussian_noise_leaves_laplace_noise():
    choice = previewed(tens(3), epsilon="1e-6", delta="1e-18").choice
    assert choice.in_rho == ()
    assert choice.cost == sf.PureDP("1e-6")


def test_an_accuracy_that_cannot_be_known_beforehand():
    within = sf.Within(20, simultaneous=True)
    for question, said in (
        (sf.KMeans(2, "age"), "cannot say beforehand"),
        (sf.Mean("age"), "rows"),
    ):
        with pytest.raises(sf.UsageError, match=said):
            previewed(sf.Plan([question], accuracy=within), epsilon=1)
    known = sf.Plan([sf.Mean("age")], accuracy=3, rows=5000)
    assert previewed(known, epsilon=1)[0].accuracy() <= 3


def test_an_account_of_pure_epsilon_says_why_it_has_laplace_noise():
    with publisher(sf.PureDP(3)) as pub:
        choice = pub.preview(tens(20), **APPROX).choice
        assert "the account counts epsilon alone" in str(choice)
        with pytest.raises(sf.UsageError, match="account"):
            pub.preview(sf.Plan(tens(20), noise="gaussian"), **APPROX)


# --- an exact audit of the composition ------------------------------------------------------------


def hockey_stick(sigmas: list[Fraction], epsilon: float) -> float:
    """The exact delta at epsilon of one count by each law together, one row added or removed."""
    mass = np.ones(1)
    loss = np.zeros(1)
    for squared in map(float, sigmas):
        reach = math.ceil(12 * math.sqrt(squared))
        x = np.arange(-reach, reach + 1)
        law = np.exp(-(x**2) / (2 * squared))
        law = law / law.sum()
        mass = np.multiply.outer(mass, law).ravel()
        # P has the row, and Q does not: the outputs differ by one.
        loss = np.add.outer(loss, (1 - 2 * x) / (2 * squared)).ravel()
    return float((mass * np.maximum(0, -np.expm1(epsilon - loss))).sum())


@pytest.mark.parametrize("accuracy", [None, [None, sf.Within(20)]])
def test_an_account_in_rho_says_that_it_has_no_delta(accuracy):
    """None of these questions can be answered at a rho."""
    domain = sf.Domain(shop=sf.Keys(), town=sf.Keys())
    rows = {"shop": ["a"] * 60, "town": ["b"] * 60}
    source = sf.source(pa.table(rows), domain, name="two")
    plan = sf.Plan([sf.Histogram("shop"), sf.Histogram("town")], accuracy=accuracy)
    paying = sf.Publisher(source, budget=sf.ZCDP(10))
    with pytest.raises(sf.UsageError, match="counts rho"):
        paying.release(plan, **APPROX)


def test_the_composition_of_a_plan_keeps_its_cost():
    delta = Fraction("1e-3")
    plan = sf.Plan([sf.Histogram("x0", bins=2), sf.Histogram(["x0", "x1"])], noise="gaussian")
    with publisher(sf.ApproxDP(9, "0.1")) as pub:
        found = pub.release(plan, epsilon=1, delta=delta)
    sigmas = [release.law.sigma_squared for release in found]
    rho = sum(1 / (2 * squared) for squared in sigmas)
    assert rho == approx_to_zcdp(Fraction(1), delta).rho
    assert zcdp_to_approx(rho, delta).epsilon <= 1
    assert hockey_stick(sigmas, 1) <= delta
    # Near misses: a rho one part in a thousand too large, and the whole rho for each question.
    assert zcdp_to_approx(rho * Fraction(1001, 1000), delta).epsilon > 1
    assert zcdp_to_approx(rho + Fraction(2000, RHO_UNITS), delta).epsilon > 1
    assert hockey_stick([1 / (2 * rho)] * 2, 1) > delta


def test_limits_by_cell_are_counted_in_the_composition():
    unit = sf.Unit(12, person="who", limits=Limits(rows_per_cell=1, cells_per_person=12))
    found = previewed(tens(20), unit, **APPROX)
    squared = [one.law.sigma_squared for one in found]
    # A person changes all ten cells of each table by one: the squared length is 10.
    assert (
        sum(Fraction(10) / (2 * one) for one in squared)
        == approx_to_zcdp(Fraction(1), Fraction("1e-6")).rho
    )


# --- real tables ----------------------------------------------------------------------------------


def measured(rows, domain, plan, trials: int, **cost) -> dict[str, float]:
    """What the histograms of a plan lead to: predicted widths, errors that occur, coverage."""
    previews = sf.preview(plan, domain=domain, unit=sf.Unit(), **cost)
    costs = plan.costs(asked_cost(**({"epsilon": None, "delta": 0, "rho": None} | cost)))
    if previews.choice is not None:
        costs = list(previews.choice.costs)
    widths = numbers = 0
    off = 0.0
    held = 0
    tables = [i for i, one in enumerate(plan.questions) if isinstance(one, sf.Histogram)]
    for i in tables:
        question = plan.questions[i]
        lattice = question.needs(domain).lattice
        columns = [rows[:, list(domain).index(axis.name)].copy() for axis in lattice.axes]
        cells = np.stack(
            [axis.locate(one) for axis, one in zip(lattice.axes, columns, strict=True)], axis=1
        )
        cube = Cube.of_cells(lattice, cells)
        width = previews[i].accuracy()
        widths += width * lattice.size
        numbers += lattice.size
        for _ in range(trials):
            found = question.answer(cube, sf.Unit(), costs[i], current())
            errors = np.abs(found.counts - cube.counts)
            off += errors.sum() / trials
            held += int((errors <= width).sum())
    return {
        "sum of half-widths": widths,
        "widest": max(previews[i].accuracy() for i in tables),
        "mean error": round(off / numbers, 3),
        "coverage": round(held / (numbers * trials), 5),
    }


@pytest.mark.deep
def test_picked_plans_on_real_tables(evidence) -> None:
    """Before is what plans did before they picked: Laplace noise, or rho, in equal parts."""
    at_two = {"epsilon": 2, "delta": "1e-7"}
    runs = [
        *[("flights", real_tables.flights, real_tables.pairs(n), APPROX) for n in (4, 20, 50, 200)],
        *[("census", real_tables.census, real_tables.unequal(n), APPROX) for n in (4, 20)],
        *[("census", real_tables.census, real_tables.unequal(n), {"rho": "0.02"}) for n in (4, 20)],
        ("cities", real_tables.cities, real_tables.mixed(), at_two),
    ]
    figures = []
    for name, table, questions, cost in runs:
        rows, domain = table()
        equal = sf.Plan(questions, shares=[1] * len(questions))
        if "delta" in cost:
            equal = msgspec.structs.replace(equal, noise="laplace")
        before = measured(rows, domain, equal, 100, **cost)
        after = measured(rows, domain, sf.Plan(questions), 1000, **cost)
        assert after["sum of half-widths"] <= before["sum of half-widths"]
        assert after["coverage"] >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 1000)
        choice = sf.preview(questions, domain=domain, unit=sf.Unit(), **cost).choice
        figures.append(
            {
                "table": name,
                "rows": len(rows),
                "questions": len(questions),
                "cost": {key: str(value) for key, value in cost.items()},
                "before": before,
                "after": after,
                "picked": str(choice),
            }
        )
    evidence("picked_plans", figures)
