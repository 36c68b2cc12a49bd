"""What a window says can be quoted, and where it is empty, its advice opens it."""

import pytest

import sfumato as sf
from risk.opening import FIFTY, MEASURES, TWO, UNITS, opened


def test_what_is_said():
    text = opened().explain()
    assert [line.partition(":")[0] for line in text.splitlines()] == [
        "Decision",
        "It rests on",
        "Floor",
        "Ceiling",
        "Feasible",
    ]
    within = "within +-20, all at once with 95% confidence"
    assert f"epsilon = 0.3351 is the least at which all 50 numbers are {within}" in text
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


def test_a_limit_that_may_be_exceeded_is_quoted_with_its_chance():
    domain = sf.Domain(x=sf.Interval(0, 10, step=1))
    risk = sf.Risk(prior="0.01", posterior="0.05", exceeded="1e-4")
    found = sf.window(
        sf.Histogram("x"),
        domain=domain,
        unit=sf.Unit(),
        accuracy=sf.Within(20),
        risk=risk,
        measure="zcdp",
    )
    assert "from a prior of 0.01, except with probability 0.0001" in found.explain()
    assert "chance" not in str(sf.Risk(prior="0.01", posterior="0.05"))
    assert "with probability 0.01" in str(sf.Risk(disclosure="1/3", exceeded="0.01"))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_advice_opens_an_empty_window(measure):
    shut = opened(
        [FIFTY, TWO],
        [sf.Within(1, simultaneous=True), sf.Within(2)],
        sf.Risk(advantage=0.1),
        **measure,
    )
    assert not shut.feasible
    assert "Decision: none. What is accurate enough is not safe enough" in shut.explain()
    assert f"{shut.parts[0].at_ceiling:,.0f} instead of +-1" in shut.explain()
    wider = [
        sf.Within(part.at_ceiling, simultaneous=part.accuracy.simultaneous) for part in shut.parts
    ]
    assert opened(shut.plan, wider, shut.risk, **measure).feasible
    bolder = sf.Risk(advantage=min(shut.risk_at_floor * (1 + 1e-9), 1 - 1e-12))
    assert opened(shut.plan, [part.accuracy for part in shut.parts], bolder, **measure).feasible
