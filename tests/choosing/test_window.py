"""The window: a floor that is least, a ceiling that is largest, and, where it is empty, advice that opens it."""

import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.answers.codec import from_bytes, to_bytes
from sfumato.charts import style
from sfumato.choosing.costs import Kind, Wish, least, least_alone
from sfumato.errors import Infeasible, UsageError
from sfumato.numbers import sidak
from sfumato.privacy.measures import ApproxDP
from sfumato.risk import Worlds

DOMAIN = sf.Domain(
    age=sf.Interval(0, 100, step=2),
    kind=sf.Categories(["a", "b"]),
    lon=sf.Interval(0, 1),
    lat=sf.Interval(0, 1),
)
FIFTY, TWO = sf.Histogram("age"), sf.Histogram("kind")
WISH, RISK = sf.Within(20, confidence=0.95, simultaneous=True), sf.Risk(prior=0.01, posterior=0.05)
UNITS = [sf.Unit(), sf.Unit(rows_per_person=3), sf.Unit(rows_per_person=2, neighbours="replace")]
MEASURES = [{}, {"measure": "zcdp"}, {"delta": "1e-6"}]


def opened(question=FIFTY, accuracy=WISH, risk=None, unit=UNITS[0], **options):
    advantage = sf.Risk(advantage=0.3) if options else RISK
    return sf.window(
        question, domain=DOMAIN, unit=unit, accuracy=accuracy, risk=risk or advantage, **options
    )


def enough(window, cost):
    """Whether every question is as accurate as wished at this cost, by its own preview."""
    shares = zip(window.plan.questions, window.plan.costs(cost), window.parts, strict=True)
    found = [
        (q.preview(DOMAIN, window.unit, share, None), part.accuracy) for q, share, part in shares
    ]
    return all(
        preview.accuracy(wish.confidence, wish.simultaneous) <= wish.half_width
        for preview, wish in found
    )


def less(window, cost):
    return window.kind.cost(int(window.kind.level(cost) * window.kind.units) - 1)


def more(window, cost):
    return window.kind.cost(int(window.kind.level(cost) * window.kind.units) + 1)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("question", [FIFTY, [FIFTY, TWO]], ids=["one", "several"])
def test_the_floor_is_the_least_and_the_ceiling_the_largest(question, measure, unit):
    wishes = WISH if question is FIFTY else [WISH, sf.Within(5)]
    window = opened(question, wishes, unit=unit, **measure)
    assert enough(window, window.floor_cost)
    assert not enough(window, less(window, window.floor_cost))
    assert window.risk.within(window.ceiling_cost)
    assert not window.risk.within(more(window, window.ceiling_cost))


def test_the_floor_of_a_histogram_is_the_closed_form():
    window = opened()
    alpha = -math.expm1(math.log(0.95) / 50)
    tail = lambda epsilon: 2 * math.exp(-21 * epsilon) / (1 + math.exp(-epsilon))  # noqa: E731  P(|Z| > 20)
    assert tail(window.floor) <= alpha < tail(window.floor - 1e-9)
    assert window.ceiling == pytest.approx(math.log(0.05 / 0.95 * 99), abs=1e-9)
    assert window.ceiling <= math.log(0.05 / 0.95 * 99)
    assert window.feasible


def test_shares_give_each_question_exactly_what_it_needs():
    together = opened([FIFTY, TWO], [WISH, sf.Within(5)])
    alone = [opened(FIFTY), opened(TWO, sf.Within(5))]
    assert [part.floor for part in together.parts] == [one.floor_cost for one in alone]
    assert together.floor_cost.epsilon == sum(one.floor_cost.epsilon for one in alone)
    assert enough(together, together.kind.cost(3 * together.kind.units))


def test_shares_that_a_plan_states_are_kept():
    plan = sf.Plan([FIFTY, TWO], shares=[1, 9])
    window = opened(plan)
    assert window.plan == plan
    assert window.floor_cost.epsilon >= 10 * opened().floor_cost.epsilon - Fraction(1, 10**8)
    assert not enough(window, less(window, window.floor_cost))


def test_a_release_at_the_floor_is_as_accurate_as_wished():
    source = sf.source(np.zeros((9, 1)), sf.Domain(age=sf.Interval(0, 100, step=2)), name="t")
    window = opened()
    with sf.Publisher(source, budget="1") as publisher:
        (release,) = publisher.release(window.plan, epsilon=window.floor)
    assert release.accuracy(simultaneous=True).max() <= 20


def test_a_question_whose_cells_depend_on_the_cost():
    grid = sf.UniformPartitioner(["lon", "lat"])
    window = opened(grid, sf.Within(30, simultaneous=True), rows=100_000)
    assert window.parts[0].cells > 1
    costs = window.floor_cost, less(window, window.floor_cost)
    reach = [
        grid.preview(DOMAIN, sf.Unit(), cost, 100_000).accuracy("0.95", True) for cost in costs
    ]
    assert reach[0] <= 30 < reach[1]
    with pytest.raises(UsageError, match="State rows="):
        opened(grid)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_advice_opens_an_empty_window(measure):
    shut = opened(
        [FIFTY, TWO],
        [sf.Within(1, simultaneous=True), sf.Within(2)],
        sf.Risk(advantage=0.1),
        **measure,
    )
    assert not shut.feasible
    assert "Empty" in shut.explain()
    assert f"{shut.parts[0].at_ceiling:,.0f} instead of +-1" in shut.explain()
    wider = [
        sf.Within(part.at_ceiling, simultaneous=part.accuracy.simultaneous) for part in shut.parts
    ]
    assert opened(shut.plan, wider, shut.risk, **measure).feasible
    bolder = sf.Risk(advantage=min(shut.risk_at_floor * (1 + 1e-9), 1 - 1e-12))
    assert opened(shut.plan, [part.accuracy for part in shut.parts], bolder, **measure).feasible


def test_what_is_said():
    text = opened().explain()
    assert [line.partition(":")[0] for line in text.splitlines()] == [
        "Decision",
        "It rests on",
        "Floor",
        "Ceiling",
        "Feasible",
    ]
    assert (
        "epsilon = 0.3351 is the least at which all 50 numbers are within +-20, all at once with 95% confidence"
        in text
    )
    assert (
        "epsilon = 1.65 is the largest that leaves a belief of at most 0.05 from a prior of 0.01"
        in text
    )
    assert "anyone 1% sure that a person is in the data can become at most 1.4% sure" in text
    assert str(opened()) == text
    alone = opened(accuracy=sf.Within(20, simultaneous=True), risk=sf.Risk(advantage=0.1))
    assert "each number by itself" in alone.explain()
    assert "rows per person" in opened(risk=sf.Risk(advantage=0.1), unit=UNITS[1]).explain()
    assert "delta = 0.000001" in opened(delta="1e-6").explain()
    assert (
        "every number is within +-9" in opened(sf.UniformPartitioner("age"), sf.Within(9)).explain()
    )


def test_a_window_travels():
    for window in (
        opened([FIFTY, TWO]),
        opened(measure="zcdp"),
        opened(risk=sf.Risk(disclosure="1/3"), worlds=(9, 5)),
    ):
        assert from_bytes(to_bytes(window), sf.Window) == window
        assert msgspec.json.encode(window.floor)


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
def test_pictures(width):
    with style.sized(width):
        for window in (opened(), opened([FIFTY, TWO], risk=sf.Risk(advantage=0.01))):
            ax = window.plot()
            words = " ".join(text.get_text() for text in ax.get_legend().get_texts())
            assert ("the window" in words) == window.feasible
            assert f"floor: {window.kind.letter} {window.ends[0]}" in words
            assert style.svg(ax.figure, "window", "window").count("<svg") == 1
    given = opened().plot().figure.subplots()
    assert opened().plot(given) is given


def test_worlds_are_given_in_several_ways():
    school = {"school_year": [1, 2, 3, 4], "absence_days": [1, 2, 3, 10]}
    risk = sf.Risk(disclosure="1/3")
    choices = sf.choose(school, size=3)
    expected = (
        math.log(3 / 2) / 2
    )  # three other worlds, two steps away: 1 / (1 + 3 e^(-2 epsilon)) = 1/3
    for worlds in (choices, choices["school_year"], (4, 3), Worlds(4, 3)):
        assert opened(risk=risk, worlds=worlds).ceiling == pytest.approx(expected, abs=2e-9)
    assert opened(risk=risk, worlds=4).ceiling == pytest.approx(2 * expected, abs=2e-9)
    replaced = sf.Unit(neighbours="replace")
    assert opened(risk=risk, worlds=(4, 3), unit=replaced).ceiling == pytest.approx(
        2 * expected, abs=2e-9
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"risk": sf.Risk(disclosure="1/3")}, "State worlds="),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": 3}, "before anything is published"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": 10**400}, "not possible worlds"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": (3, 2)}, "before anything is published"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": (3, 3)}, "1 <= size < records"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": "four"}, "worlds of type str"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": True}, "worlds of type bool"),
        ({"risk": 0.3}, "not a Risk"),
        ({"accuracy": 20}, "not a Within"),
        ({"accuracy": [WISH, WISH]}, "2 accuracies for 1"),
        ({"unit": 3}, "not a unit"),
        ({"measure": "renyi"}, "unknown"),
        ({"measure": "zcdp", "delta": "1e-6"}, "no delta"),
        ({"delta": 2}, "below 1"),
        ({"measure": "zcdp", "risk": RISK}, "smallest cost"),
        ({"question": sf.Histogram("nothing")}, "nothing"),
    ],
    ids=str,
)
def test_refusals(wrong, words):
    with pytest.raises(UsageError, match=words):
        opened(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"half_width": 0},
        {"half_width": math.nan},
        {"half_width": 9, "confidence": 1},
        {"half_width": 9, "simultaneous": "yes"},
    ],
)
def test_wishes(wrong):
    with pytest.raises(UsageError):
        sf.Within(**wrong)


def test_the_search_finds_the_least_wherever_it_starts():
    for aim in (1, 2, 3, 1000, 10**9 - 1, 10**9, 10**9 + 1, 10**18):
        for start in (1, 7, 10**9):
            assert least(lambda units, aim=aim: units >= aim, start, 10**18, "w") == aim
    with pytest.raises(Infeasible, match="no cost"):
        least(lambda _: False, 5, 100, "w")

    def refuses(units):
        if units < 50:
            raise UsageError("a", "b", "c")
        return units >= 70

    assert least(refuses, 60, 100, "w") == 70
    assert least(refuses, 3, 100, "w") == 70
    with pytest.raises(UsageError, match="a: b"):
        least(lambda units: refuses(units % 50), 3, 100, "w")


def test_a_question_that_cannot_say_how_accurate_it_is(monkeypatch):
    def silent(self, domain, unit, cost, rows=None):
        return sf.Preview(self.title, cost, unit, 1)

    monkeypatch.setattr(sf.Histogram, "preview", silent)
    with pytest.raises(UsageError, match="cannot say beforehand"):
        opened()


def test_delta_is_divided_too():
    window = opened([FIFTY, TWO], delta="1e-6")
    assert isinstance(window.floor_cost, ApproxDP)
    assert sum(cost.delta for cost in window.plan.costs(window.floor_cost)) == Fraction("1e-6")


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_least_cost_of_a_question(simultaneous: bool, gaussian: bool) -> None:
    domain, unit = sf.Domain(hour=sf.Interval(0, 24, step=1)), sf.Unit(3, "replace")
    question = sf.Histogram("hour")
    kind = Kind.of("zcdp" if gaussian else "pure")
    cost = kind.cost(
        least_alone(
            Wish(question, domain, unit, None, sf.Within(30, simultaneous=simultaneous)), kind
        )
    )
    assert question.preview(domain, unit, cost).accuracy(simultaneous=simultaneous) == 30
    least = (
        sf.ZCDP(cost.rho - sf.ZCDP("1e-12").rho)
        if gaussian
        else sf.PureDP(cost.epsilon - sf.PureDP("1e-9").epsilon)
    )
    assert question.preview(domain, unit, least).accuracy(simultaneous=simultaneous) == 31
    if not gaussian:
        alpha = sidak(0.05, 24) if simultaneous else 0.05
        exact = sf.histogram_epsilon("geometric", accuracy=30, alpha=alpha, rows_per_person=3)
        assert float(cost.epsilon) == pytest.approx(math.ceil(exact * 1e9) / 1e9, abs=2e-9)


def test_what_is_wrong_at_any_cost_keeps_its_own_name() -> None:
    with pytest.raises(sf.UsageError, match="delta"):
        least_alone(
            Wish(sf.Histogram("k"), sf.Domain(k=sf.Keys()), sf.Unit(), None, sf.Within(30)),
            Kind.of("pure"),
        )


def test_a_limit_that_may_be_exceeded_is_quoted_with_its_chance():
    domain, said = (
        sf.Domain(x=sf.Interval(0, 10, step=1)),
        "from a prior of 0.01, but for a chance of 0.0001",
    )
    risk = sf.Risk(prior="0.01", posterior="0.05", exceeded="1e-4")
    found = sf.window(
        sf.Histogram("x"),
        domain=domain,
        unit=sf.Unit(),
        accuracy=sf.Within(20),
        risk=risk,
        measure="zcdp",
    )
    assert said in found.explain()
    assert "chance" not in str(sf.Risk(prior="0.01", posterior="0.05"))
    assert "for a chance of 0.01" in str(sf.Risk(disclosure="1/3", exceeded="0.01"))
