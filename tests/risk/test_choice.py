"""The epsilon for a risk, what is said beside it, and its page."""

import math
import re
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from matplotlib.figure import Figure

from sfumato.charts import style
from sfumato.errors import Infeasible, UsageError
from sfumato.risk import (
    Choice,
    Choices,
    optimal_epsilon,
    posterior_belief,
    tighter_upper_bound_posterior,
    upper_bound_posterior,
)
from sfumato.risk import universe as queries
from sfumato.risk.choice import choose

PAGE = Path(__file__).parents[2] / "docs" / "epsilon.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n(?:.*?)```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    for code, printed in blocks:
        exec(compile(code, PAGE.name, "exec"), {})
        assert capsys.readouterr().out == printed
    assert "<svg" in (tmp_path / "window.svg").read_text(encoding="utf-8")
    assert "<svg" in (tmp_path / "risk.svg").read_text(encoding="utf-8")


SCHOOL = {"school_year": [1, 2, 3, 4], "absence_days": [1, 2, 3, 10]}


def test_a_column_and_a_frame():
    single = choose(SCHOOL["absence_days"], size=3, query="mean", risk=1 / 3)
    several = choose(SCHOOL, 3, "mean")
    assert isinstance(single, Choice)
    assert (single.worlds, single.exact, single.column) == (4, True, None)
    assert single.epsilon == pytest.approx(0.431720119567)
    assert single.upper_bound == pytest.approx(0.382939268769)
    assert list(several) == ["school_year", "absence_days"]
    assert several["absence_days"] == msgspec.structs.replace(single, column="absence_days")
    assert several.epsilon["school_year"] == several["school_year"].epsilon
    assert several.upper_bound["school_year"] < several.epsilon["school_year"]
    assert len(several) == 2
    with pytest.raises(KeyError, match="did you mean 'absence_days'"):
        several["absence_day"]


def test_choices_travel():
    for universe in (SCHOOL, {"a": [5, 5, 5, 5]}):
        choices = choose(universe, 3, "mean")
        assert msgspec.json.decode(msgspec.json.encode(choices), type=Choices) == choices
        assert hash(choices) == hash(choose(universe, 3, "mean"))


def test_what_is_said_can_be_quoted():
    text = str(choose(SCHOOL, 3, "mean"))
    decision = "Decision for one mean of absence_days: epsilon = 0.43172 is the largest"
    rests_on = "It rests on: 3 of 4 records are published, which makes 4 possible worlds"
    assert decision in text
    assert (
        text.index(decision)
        < text.index(rests_on, text.index(decision))
        < text.index("Note", text.index(decision))
    )
    assert "it lacks record 4 in ascending order" in text
    assert "small universes only" in text
    assert "10" not in text.replace("10^", "")  # no value of the universe


def test_the_printed_epsilon_is_rounded_down():
    choice = choose(SCHOOL["school_year"], 3, "mean")
    assert "0.525149 " in str(choice)
    assert choice.epsilon == pytest.approx(0.52514968727)


def test_large_universes_are_warned_of():
    choice = choose(np.arange(10_000), 9_999, "mean")
    assert choice.upper_bound > 4
    assert any("advantage of more than 0.999" in note for note in choice.caveats)
    assert math.log(9_999 * 0.5) == pytest.approx(8.517, abs=1e-3)


def test_an_epsilon_above_ten_is_not_to_be_used():
    choice = choose(np.arange(100_000), 99_999, "mean")
    assert choice.epsilon > 10
    assert str(choice).startswith("Decision for one mean: no epsilon from this method.")
    assert "above 10 epsilon protects hardly anyone" in choice.decision


def test_without_limit_and_without_answer():
    choice = choose([5, 5, 5, 5], 3, "mean")
    assert choice.epsilon == choice.upper_bound == math.inf
    assert "any epsilon" in str(choice)
    silent = choose([1, 2, 3, 4], 3, "mean", risk=0.25)
    assert silent.epsilon == 0
    assert "only silence" in str(silent)
    with pytest.raises(Infeasible):
        choose([1, 2, 3, 4], 3, "mean", risk=0.2)


def test_the_worst_world_has_a_rank():
    assert choose([1, 2, 3, 10], 3, "mean").worst.lacks == 4
    assert choose([-10, 2, 2, 3], 3, "sum").worst.lacks == 1
    assert choose([5, 5, 5, 5], 3, "mean").worst is None
    assert "of 4" in str(choose([1, 2, 3, 10], 3, "var").worst)


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
def test_pictures(width):
    with style.sized(width):
        panels = choose(SCHOOL, 3, "mean").plot()
    assert len(panels) == 2
    dashed = [line for line in panels[0].get_lines() if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == pytest.approx([0.33788759009, 0.52514968727])
    assert style.svg(panels[0].figure, "risk", "bounds").count("<svg") == 1
    assert style.png(panels[0].figure)[:4] == b"\x89PNG"


def test_pictures_on_given_axes():
    axes = Figure().subplots(1, 2)
    assert choose(SCHOOL, 3, "mean").plot(axes)[1] is axes[1]
    one = choose([1, 2, 3], 2, "mean", 0.5).plot(axes[0])
    assert one is axes[0]
    with pytest.raises(UsageError, match="2 panels"):
        choose(SCHOOL, 3, "mean").plot(axes[0])
    assert choose([5, 5, 5, 5], 3, "mean").plot() is not None
    assert choose(np.random.default_rng(1).normal(size=99), 50, "mean").plot() is not None
    assert len(choose({str(i): [1, 2, 3, i] for i in range(4)}, 3, "mean").plot()) == 4


ABSENCE = SCHOOL["absence_days"]
PRIOR = [0.4, 0.1, 0.2, 0.3]


@pytest.mark.parametrize("query", ["mean", "median", "sum", "var", ("percentile", 25)])
@pytest.mark.parametrize("risk", ["0.45", "0.6", "0.9"])
def test_with_a_prior_the_worst_posterior_is_the_risk(query, risk):
    """By the definition: every world, every answer of a world as the output, Bayes' rule."""
    choice = choose(ABSENCE, 3, query, risk, prior=PRIOR)
    assert choice.largest_prior == 0.4
    if choice.epsilon == math.inf:
        return
    results = {
        float(queries.answers(queries.parse(query), np.sort(np.array([world])))[0])
        for world in combinations(ABSENCE, 3)
    }
    worst = max(
        posterior_belief(ABSENCE, 3, query, result, choice.epsilon, prior=PRIOR).max()
        for result in results
    )
    assert worst == pytest.approx(float(risk), abs=1e-9)
    uniform = choose(ABSENCE, 3, query, risk).epsilon
    assert choice.epsilon < uniform
    assert choice.tight == pytest.approx(
        optimal_epsilon(ABSENCE, 3, query, risk, prior=PRIOR), rel=1e-12
    )


def test_a_prior_is_said_and_drawn():
    choice = choose(ABSENCE, 3, "mean", 0.6, prior=PRIOR)
    assert "mean, with the prior given" in choice.decision
    assert "grow from 0.4 to 0.6" in str(choice)
    assert "an adversary with the prior given" in str(choice)
    assert "every world is as likely" not in str(choice)
    assert choice.tight_curve[0] == pytest.approx(0.4)
    assert choice.loose_curve[0] == pytest.approx(0.4)
    assert choice.worst.lacks is None
    legend = choice.plot().get_legend()
    assert legend.get_title().get_text() == "mean, with the prior given"
    assert msgspec.json.decode(msgspec.json.encode(choice), type=Choice) == choice
    assert b"prior" not in msgspec.json.encode(choose(ABSENCE, 3, "mean"))
    by_name = choose(
        SCHOOL, 3, "mean", 0.6, prior={"school_year": [0.25] * 4, "absence_days": PRIOR}
    )
    assert by_name["absence_days"].epsilon == choice.epsilon
    assert by_name["school_year"].epsilon == pytest.approx(
        choose(SCHOOL, 3, "mean", 0.6)["school_year"].epsilon
    )


def test_an_even_prior_is_the_uniform_one():
    even = choose(ABSENCE, 3, "mean", prior=[0.25] * 4)
    assert even.epsilon == pytest.approx(choose(ABSENCE, 3, "mean").epsilon, rel=1e-12)


def test_a_grid_of_epsilons_as_in_the_source():
    epsilons = np.linspace(0, 5, num=500)
    choice = choose(ABSENCE, 3, "mean", epsilons=epsilons)
    assert choice.epsilons == tuple(epsilons.tolist())
    for at in (0, 50, 499):
        level = float(epsilons[at])
        assert choice.tight_curve[at] == pytest.approx(
            tighter_upper_bound_posterior(ABSENCE, 3, "mean", epsilon=level)
        )
        assert choice.loose_curve[at] == pytest.approx(
            upper_bound_posterior(ABSENCE, 3, "mean", epsilon=level)
        )
    assert choose(ABSENCE, 3, "mean", epsilons=5).epsilons[-1] == 5
    zoomed = choose(ABSENCE, 3, "mean", epsilons=["0.2", 0.4, 0.6]).plot()
    assert zoomed.get_xlim() == (0.2, 0.6)


@pytest.mark.parametrize("epsilons", [[1], [2, 1], [1, 1], [-1, 1], 0, "x", [0, math.inf], True])
def test_epsilons_that_make_no_picture(epsilons):
    with pytest.raises(UsageError):
        choose(ABSENCE, 3, "mean", epsilons=epsilons)


def test_logicals_count_as_0_and_1():
    logical = [True, False, True, True, False]
    for query in ("mean", "median", "sum", "var"):
        as_numbers = choose(list(map(int, logical)), 4, query)
        assert choose(logical, 4, query) == as_numbers
    assert choose({"smokes": np.array(logical)}, 4, "mean")["smokes"].epsilon > 0
