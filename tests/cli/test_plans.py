"""``sfumato preview`` and ``sfumato release``: a plan is paid for once, within its budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]


def test_a_plan_twice_prints_the_same_and_costs_once(sfumato: Run) -> None:
    first = sfumato("release", "plan.toml", "--ledger", "b.db", "--json")
    balance = sfumato("ledger", "show", "--ledger", "b.db", "--json")
    second = sfumato("release", "plan.toml", "--ledger", "b.db", "--json")
    assert first[0] == second[0] == 0
    assert first[1] == second[1]
    assert sfumato("ledger", "show", "--ledger", "b.db", "--json") == balance
    assert json.loads(balance[1])[0]["spent"] == [500_000_000, 0]
    answers = json.loads(first[1])
    assert [a["type"] for a in answers] == ["histogram-release", "partition", "histogram-release"]


def test_what_holds_for_all_answers_of_a_plan_is_said_once(sfumato: Run) -> None:
    _, _, err = sfumato("release", "plan.toml", "--ledger", "b.db")
    assert err.count("At most 2 rows of each person are counted") == 1
    # Their costs differ: shares = [2, 1, 1].
    assert err.count("Pure differential privacy for any one person") == 1
    assert "answer 1 at epsilon = 0.25; answers 2 and 3 at epsilon = 0.125." in " ".join(
        err.split()
    )
    assert err.count("differential privacy") == 1
    plan = Path("plan.toml").read_text(encoding="utf-8")
    Path("equal.toml").write_text(plan.replace("[2, 1, 1]", "[1, 1, 1]").replace("0.5", "0.6"))
    _, _, err = sfumato("release", "equal.toml", "--ledger", "b.db")
    assert err.count("At most 2 rows of each person are counted") == 1
    assert err.count("differential privacy") == 1
    assert "Each of the 3 answers: Pure differential privacy, epsilon = 0.2, for any" in err


def test_what_all_previews_of_a_plan_remark_is_said_once(sfumato: Run) -> None:
    _, out, _ = sfumato("preview", "plan.toml")
    assert out.count("rows of each person are counted; further rows are missing") == 1
    # Their costs differ, and stand beside the questions: shares = [2, 1, 1].
    assert "\nHistogram of day at epsilon = 0.125:\n" in out
    assert out.count("for any one person") == 0
    common = out.index("Each of the 3 answers protects any one person contributing at most 2 rows")
    assert out.index("Histogram of day at") < common < out.index("Together:")
    plan = Path("plan.toml").read_text(encoding="utf-8").replace("[2, 1, 1]", "[1, 1, 1]")
    Path("equal.toml").write_text(plan.replace("0.5", "1"))
    _, out, _ = sfumato("preview", "equal.toml")
    said = " ".join(out.split())
    # Of each, of all together, and twice as the price of knowing what the limit leaves out.
    assert said.count("epsilon = ") == 4
    assert said.count("ask sf.Persons(most_rows=...) first") == 1
    assert "Each of the 3 answers has epsilon = 0.3334 (rounded up) and protects any one" in said
    assert said.count("anyone 1% sure") == 2  # of each, and of all together


def test_a_plan_in_a_pipe_is_tab_separated(sfumato: Run) -> None:
    code, out, err = sfumato("release", "plan.toml", "--ledger", "b.db")
    assert code == 0
    assert out.splitlines()[:2] == [
        "# Histogram of kind x age",
        "kind\tage\tage_lower\tage_upper\tcount\tlow\thigh",
    ]
    assert "Pure differential privacy" in err
    assert "Remaining in account 'people': epsilon = 1.5" in err
    assert "2013-01-02" in out


def test_beyond_the_budget_is_exit_3_and_publishes_nothing(sfumato: Run) -> None:
    assert sfumato("release", "plan.toml", "--ledger", "b.db")[0] == 0
    code, out, err = sfumato("release", "dear.toml", "--ledger", "b.db", "--out", "saved")
    assert (code, out) == (3, "")
    assert "epsilon = 5" in err
    assert "epsilon = 1.5" in err
    assert not Path("saved").exists()
    assert json.loads(sfumato("ledger", "show", "--ledger", "b.db", "--json")[1])[0]["spent"] == [
        500_000_000,
        0,
    ]


def test_previews_touch_neither_data_nor_ledger(sfumato: Run) -> None:
    Path("people.parquet").unlink()
    code, out, _ = sfumato("preview", "plan.toml", "--rows", 300)
    assert code == 0
    assert "Histogram of kind x age at epsilon = 0.25" in out
    assert list(Path().glob("*.db")) == []
    code, out, _ = sfumato("preview", "plan.toml", "--json")
    assert len(json.loads(out)) == 3


def test_a_preview_names_the_cost_of_a_fixed_plan_only_where_it_is_lower(sfumato: Run) -> None:
    assert "fixed plan" not in sfumato("preview", "plan.toml")[1]
    head, question = Path("plan.toml").read_text(encoding="utf-8").split("[[questions]]")[:2]
    head = re.sub("shares = .*", "", head)
    many = head + f"[[questions]]{question}" * 20
    Path("many.toml").write_text(many, encoding="utf-8")
    code, out, err = sfumato("preview", "many.toml")
    assert code == 0, err
    said = " ".join(out.split())
    found = re.search(r"as one fixed plan, it is also epsilon = ([0-9.]+), delta = 0.000001", said)
    assert found is not None
    assert float(found[1]) < 0.495


def test_a_plan_may_state_the_ceiling_of_its_data_set(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text()
    named = plan.replace("[source]\n", '[source]\nname = "people"\n', 1)
    assert named != plan
    capped = named.replace("[budget]\n", "[budget]\nceiling = 0.6\n", 1)
    for number, code in enumerate((0, 3), 1):
        Path(f"{number}.toml").write_text(
            capped.replace('account = "people"', f'account = "people-{number}"')
        )
        assert f"people-{number}" in Path(f"{number}.toml").read_text()
        found, _, err = sfumato("release", f"{number}.toml", "--ledger", "b.db")
        assert found == code, err
    assert "ceiling" in err


def test_a_plan_states_limits_by_cell_and_a_period(sfumato: Run, tmp_path: Path) -> None:
    (tmp_path / "rides.csv").write_text(
        "x,rider,day\n1,a,2024-03-01\n1,a,2024-03-01\n2,b,2024-03-02\n"
    )
    plan = (
        '[source]\npath = "rides.csv"\nperson = ["rider", "day"]\n'
        "rows_per_cell = 1\ncells_per_person = 2\n"
        '[domain]\nx = { type = "interval", lower = 0, upper = 4, step = 1 }\n'
        '[budget]\naccount = "a"\nrho = "1000"\n[release]\nrho = "1000"\n'
        '[[questions]]\ntype = "histogram"\naxes = ["x"]\n'
    )
    path = tmp_path / "limited.toml"
    path.write_text(plan)
    unit = "any one person in one day counted at most once in a cell, and in at most 2 cells"
    assert unit in " ".join(sfumato("preview", str(path))[1].split())
    assert "2 of 3 rows are counted" in sfumato("check", str(path))[1]
    code, out, _ = sfumato("release", str(path), "--ledger", str(tmp_path / "c.db"), "--json")
    assert code == 0
    assert json.loads(out)[0]["counts"] == [0, 1, 1, 0]
    path.write_text(plan.replace("cells_per_person = 2\n", ""))
    assert "without a bound" in sfumato("preview", str(path))[2]
    path.write_text(plan.replace('type = "histogram"\naxes = ["x"]', 'type = "mean"\nvalue = "x"'))
    # All rows are one group of the mean, so nobody is counted in two.
    assert "and in at most one cell" in sfumato("preview", str(path))[1]
    code, out, _ = sfumato("release", str(path), "--ledger", str(tmp_path / "s.db"), "--json")
    assert code == 0
    to_upper, to_lower = json.loads(out)[0]["released"]  # sums of distances from the bounds 0 and 4
    assert round(4 * to_lower / (to_upper + to_lower), 1) == 1.5


def test_a_plan_states_derived_axes_and_conditions(sfumato: Run, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(
        "when,AGE,ward\n2024-03-31T22:30Z,30,a\n2024-04-01 10:00,31,b\n2024-04-02,,a\n"
        "2024-04-02,17,a\n"
    )
    plan = """
[source]
path = "visits.csv"
[source.where]
ward = ["a", "b"]
age = [18, 120]
[domain]
weekday = { type = "weekday", column = "when", timezone = "Europe/Berlin" }
month = { type = "month", column = "when", first = 2024-03-01, last = "2024-04" }
age = { type = "interval", lower = 0, upper = 120, column = "AGE", missing = true }
ward = { type = "categories", labels = ["a", "b"] }
[budget]
account = "a"
epsilon = "10000"
[release]
epsilon = "10000"
[[questions]]
type = "histogram"
axes = ["weekday"]
"""
    path = tmp_path / "visits.toml"
    path.write_text(plan)
    assert "one row where age is at least 18, and ward is a or b" in sfumato("preview", path)[1]
    dropped = "2 rows are dropped: the conditions (where) do not hold"
    assert dropped in sfumato("check", path)[1]
    code, out, _ = sfumato("release", path, "--ledger", tmp_path / "c.db", "--json")
    assert code == 0
    assert json.loads(out)[0]["counts"] == [2, 0, 0, 0, 0, 0, 0]
    path.write_text(plan.replace("[18, 120]", "[18, 121]"))
    code, _, err = sfumato("preview", path)
    assert code == 2
    assert "leaves the public bounds" in err
    path.write_text(plan.replace("Europe/Berlin", "Europe/Brelin"))
    code, _, err = sfumato("check", path)
    assert code == 2
    assert "did you mean 'Europe/Berlin'?" in err


def test_questions_of_a_plan_carry_words_for_people(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8")
    words = 'heading = "Ages"\nmeasured_in = { age = "years" }\nlabel_names = { a = "Anna" }\n'
    named = plan.replace('type = "histogram"\n', f'type = "histogram"\n{words}', 1)
    Path("named.toml").write_text(named, encoding="utf-8")
    first = sfumato("release", "plan.toml", "--ledger", "b.db")
    second = sfumato("release", "named.toml", "--ledger", "b.db", "--out", "saved")
    assert first[0] == second[0] == 0, second[2]
    assert second[1] == first[1].replace("# Histogram of kind x age", "# Ages")
    assert "Nothing was spent" in second[2]


PICKED = """
[source]
path = "people.parquet"
person = "who"
rows_per_person = 12
rows_per_cell = 1
[domain]
age = { type = "interval", lower = 0, upper = 120 }
kind = { type = "categories", labels = ["a", "b", "c"] }
[budget]
account = "people"
epsilon = "2"
delta = "1e-5"
[release]
delta = "1e-6"
[[questions]]
type = "histogram"
axes = ["age"]
accuracy = 90
[[questions]]
type = "histogram"
axes = ["kind", "age"]
accuracy = { half_width = 90, simultaneous = true }
"""


def test_a_plan_states_accuracies_and_pays_the_least_that_suffices(sfumato: Run) -> None:
    Path("picked.toml").write_text(PICKED, encoding="utf-8")
    code, out, _ = sfumato("preview", "picked.toml")
    assert code == 0
    flat = " ".join(out.split())
    assert "each count is within +-90 of the truth" in flat
    assert "Picked: Gaussian noise, because the accuracy that is asked for needs epsilon" in flat
    assert "Together: at most epsilon = " in flat
    plain = json.loads(sfumato("preview", "picked.toml", "--json")[1])
    least = plain[0]["picked"]["cost"]
    assert plain[1]["picked"]["in_rho"] == [0, 1]
    code, _, err = sfumato("release", "picked.toml", "--ledger", "b.db", "--report", "r.html")
    assert code == 0, err
    assert "Picked: Gaussian noise, because" in err
    charged = json.loads(sfumato("ledger", "show", "--ledger", "b.db", "--json")[1])[0]["spent"]
    assert charged == [int(Fraction(least["epsilon"]) * 10**9), 10**12]
    page = Path("r.html").read_text(encoding="utf-8")
    assert "Gaussian noise, because the accuracy that is asked for" in page
    assert "the answers on this page are bounded by epsilon = " in " ".join(page.split())


def test_an_accuracy_beyond_the_cost_is_refused_before_the_charge(sfumato: Run) -> None:
    dear = PICKED.replace('delta = "1e-6"', 'epsilon = "0.01"\ndelta = "1e-6"')
    Path("dear.toml").write_text(dear, encoding="utf-8")
    code, out, err = sfumato("release", "dear.toml", "--ledger", "b.db")
    assert (code, out) == (2, "")
    assert "the accuracy that is asked for needs epsilon = " in err
    assert not Path("b.db").exists()


def test_a_plan_of_pure_epsilon_is_previewed_as_its_account_pays(sfumato: Run) -> None:
    pure = PICKED.replace('delta = "1e-5"\n', "").replace("accuracy = 90\n", "")
    asked = pure.replace('delta = "1e-6"', 'epsilon = "1"\ndelta = "1e-6"')
    Path("pure.toml").write_text(asked, encoding="utf-8")
    code, out, _ = sfumato("preview", "pure.toml")
    assert code == 0
    assert "Laplace noise, because the account counts epsilon alone" in " ".join(out.split())


def test_answers_about_rows_and_persons_say_once_what_they_have_in_common(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8").replace("[2, 1, 1]", "[1, 1, 1, 1]")
    persons = '[[questions]]\ntype = "histogram"\naxes = ["kind"]\ncount = "persons"\n'
    Path("mixed.toml").write_text(plan + persons)
    _, out, _ = sfumato("preview", "mixed.toml")
    said = " ".join(out.split())
    assert "4. Histogram of persons by kind:" in said
    assert "Answers 1, 2 and 3 have epsilon = 0.125 and protect any one person contributing" in said
    assert "Answer 4 has epsilon = 0.125 and protects any one person counted at most once" in said
    assert said.count("rows of each person are counted; further rows are missing") == 1
    _, _, err = sfumato("release", "mixed.toml", "--ledger", "b.db", "--report", "mixed.html")
    assert err.count("Answers 1, 2 and 3: At most 2 rows of each person are counted") == 1
    assert (
        err.count(
            "Answer 4: Each person is counted in at most 2 cells; persons in more cells are missing"
        )
        == 1
    )
    assert err.count("Pure differential privacy, epsilon = 0.125") == 2
    page = Path("mixed.html").read_text(encoding="utf-8")
    counted = page[page.index('<h3 id="counted">') :]
    assert counted.count("At most 2 rows of each person are counted") == 1
    assert counted.count("Each person is counted once in a cell") == 1
