"""Commands that ask one question about one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.basics.structs import to_bytes
from sfumato.publishing.plan_file import read_plan, toml_value

Run = Callable[..., tuple[int, str, str]]


def test_histogram_and_partition_of_one_file(sfumato: Run) -> None:
    args = [
        "people.parquet",
        "--axis",
        "age=0..120",
        "--person",
        "who",
        "--epsilon",
        "0.5",
        "--budget",
        "2",
        "--ledger",
        "b.db",
    ]
    code, out, err = sfumato(
        "histogram",
        *args,
        "--axis",
        "kind=a,b",
        "--bins",
        "age=0,18,120",
        "--plot",
        "h.png",
        "--out",
        "saved",
    )
    assert code == 0, err
    assert len(out.splitlines()) == 2 + 4
    assert Path("h.png").stat().st_size > 5_000
    code, out, err = sfumato("partition", *args, "--json", "--partitions", 7)
    assert code == 0, err
    assert len(json.loads(out)[0]["counts"]) == 7
    (saved,) = Path("saved").glob("*.json")
    code, out, _ = sfumato("report", saved, "--out", "page.html")
    assert (code, out) == (0, "page.html\n")
    technical = Path("page.html").read_text()
    assert "Content-Security-Policy" in technical
    assert "Holds because" in technical
    assert sfumato("report", saved, "--for", "board", "--out", "board.html")[0] == 0
    assert "Holds because" not in Path("board.html").read_text()


def test_json_holds_the_table_that_people_see(sfumato: Run) -> None:
    args = [
        "people.parquet",
        "--axis",
        "age=0..120",
        "--epsilon",
        "1",
        "--budget",
        "9",
        "--ledger",
        "b.db",
        "--json",
    ]
    for command, columns in (
        ("cluster", {"age", "age_error", "averaged", "averaged_low", "predicted_high"}),
        ("quantiles", {"quantile", "value", "low", "high", "rank_error"}),
        ("histogram", {"age", "age_lower", "age_upper", "count", "low", "high"}),
    ):
        code, out, err = sfumato(command, *args)
        assert code == 0, err
        (answer,) = json.loads(out)
        assert columns <= set(answer["table"])
        Path("one.json").write_text(json.dumps(answer))
        assert sf.load("one.json").to_frame().to_pydict() == answer["table"]


def test_rho_pays_from_an_account_in_rho(sfumato: Run) -> None:
    args = ["people.parquet", "--axis", "age=0..120", "--ledger", "b.db", "--json"]
    code, out, err = sfumato("histogram", *args, "--rho", "0.02", "--budget", "0.1")
    assert code == 0, err
    assert json.loads(out)[0]["law"]["type"] == "discrete-gaussian"


def test_a_question_is_about_the_axes_without_a_condition(sfumato: Run, tmp_path: Path) -> None:
    axes = ("people.parquet", "--axis", "age=0..120/40", "--axis", "kind=a,b")
    pays = ("--epsilon", "1", "--budget", "9", "--ledger", tmp_path / "c.db")
    asked = sfumato("histogram", *axes, "--where", "kind=a", *pays)
    assert asked[0] == 0
    assert "Histogram of age\n" in asked[1]
    assert "the rows counted where kind is a," in asked[2]
    both = ("--where", "kind=a", "--where", "age=40..")
    assert "Histogram of age x kind" in sfumato("histogram", *axes, *both, *pays)[1]
    assert "Mean of age" in sfumato("mean", *axes, "--value", "age", "--where", "kind=b", *pays)[1]
    quantiles = sfumato("quantiles", *axes, "--by", "kind", "--where", "age=40..", *pays)
    assert "Quantiles of age by kind" in quantiles[1]
    taken = sfumato("histogram", *axes, "--where", "age=40..", "--bins", "age=0,40,120", *pays)
    assert (taken[0], taken[1]) == (2, "")
    assert "--where age=... takes age out of the question." in taken[2]
    found = sfumato("check", *axes, "--where", "kind=a")
    assert "rows are dropped: the conditions (where) do not hold" in found[1]
    assert sfumato("histogram", *axes, "--where", "knd=a", *pays)[0] == 2


WORDS = ("--heading", "Ages", "--measured-in", "years", "--label-name", "a=Anna")


def test_words_for_people_are_shown_and_cost_nothing(sfumato: Run) -> None:
    args = ["people.parquet", "--axis", "kind=a,b", "--axis", "age=0..120", "--epsilon", "1"]
    args += ["--budget", "9", "--ledger", "b.db"]
    code, plain, err = sfumato("histogram", *args)
    assert code == 0, err
    code, out, err = sfumato("histogram", *args, *WORDS, "--plot", "h.svg", "--out", "saved")
    assert code == 0, err
    assert "Nothing was spent: this is the stored answer." in err
    assert out.splitlines()[0] == "# Ages"
    assert out.splitlines()[1:] == plain.splitlines()[1:], "a program reads the same table"
    svg = Path("h.svg").read_text()
    assert "<!-- Anna -->" in svg
    assert "<!-- Ages -->" in svg
    (saved,) = Path("saved").glob("*.json")
    assert sf.load(saved).heading == "Ages"
    assert sfumato("report", saved, "--out", "page.html")[0] == 0
    page = Path("page.html").read_text()
    assert "Anna" in page
    assert "age (years)" in page


def test_every_command_of_a_question_takes_them(sfumato: Run) -> None:
    args = ["people.parquet", "--axis", "age=0..120", "--epsilon", "0.5", "--budget", "9"]
    args += ["--ledger", "b.db", "--heading", "Ages"]
    for command, more in (
        ("partition", []),
        ("quantiles", []),
        ("cluster", ["--clusters", "2"]),
        ("mean", ["--value", "age"]),
        ("persons", ["--person", "who", "--account", "who"]),
    ):
        code, out, err = sfumato(command, *args, *more)
        assert code == 0, err
        assert out.splitlines()[0] == "# Ages"


def test_a_name_without_a_label_is_refused(sfumato: Run) -> None:
    args = ["people.parquet", "--axis", "kind=a,b", "--epsilon", "1", "--budget", "9"]
    for text in ("a", "=Anna", "a="):
        code, _, err = sfumato("histogram", *args, "--label-name", text)
        assert code == 2
        assert "--label-name WN=Southwest" in err
    code, _, err = sfumato("histogram", *args, "--label-name", "c=Carl")
    assert code == 2
    assert "no label 'c'" in err


def test_bins_for_the_only_axis_and_by_name_are_one_question(sfumato: Run) -> None:
    args = ["people.parquet", "--axis", "age=0..120", "--epsilon", "1", "--budget", "1"]
    first = sfumato("histogram", *args, "--ledger", "b.db", "--bins", "0,60,120")
    second = sfumato("histogram", *args, "--ledger", "b.db", "--bins", "age=0,60,120")
    assert first[0] == second[0] == 0
    assert first[1] == second[1]
    assert "Nothing was spent" in second[2]


PARTITIONS = {
    ("--method", "binary", "--depth", "2", "--shares", "release=2,threshold=1"): {
        "depth": 2,
        "shares": {"release": "2"},
    },
    ("--method", "binary", "--depth", "2", "--allocation", "1,2,4"): {
        "depth": 2,
        "allocation": ["1", "2", "4"],
    },
    ("--method", "median", "--allocation", "linear", "--stop-below", "5"): {
        "stop_below": 5.0,
        "allocation": "linear",
    },
    ("--method", "quantile", "--at", "0.5,0.9,0.99", "--depth", "1"): {
        "depth": 1,
        "at": ["1/2", "9/10", "99/100"],
    },
    ("--method", "uniform", "--theta", "2", "--stop-below", "8"): {"theta": 2.0, "stop_below": 8.0},
    ("--method", "uniform", "--shares", "release=2,partition=1,threshold=1"): {
        "shares": {"release": "2", "partition": "1"}
    },
}


@pytest.mark.parametrize("options", PARTITIONS, ids=" ".join)
def test_every_setting_of_a_partitioner_has_an_option(
    options: tuple[str, ...], sfumato: Run
) -> None:
    args = ["people.parquet", "--axis", "age=0..120", "--person", "who", "--epsilon", "1"]
    code, _, err = sfumato("partition", *args, *options, "--budget", "2", "--json")
    assert code == 0, err
    given = dict(zip(options[::2], options[1::2], strict=True))
    tag = {"quantile": "multi-quantile"}.get(given["--method"], given["--method"])
    plan = f"""
        [source]
        path = "people.parquet"
        person = "who"
        [domain]
        age = {{ type = "interval", lower = 0, upper = 120 }}
        [budget]
        account = "a"
        epsilon = 2
        [release]
        epsilon = 1
        [[questions]]
        type = "{tag}"
        axes = ["age"]
    """
    for name, value in PARTITIONS[options].items():
        plan += f"{name} = {toml_value(value)}\n"
    Path("plan.toml").write_text(plan)
    (asked,) = read_plan(Path("plan.toml")).plan().questions
    stored = json.loads(to_bytes(asked))
    assert {name: stored[name] for name in PARTITIONS[options]} == PARTITIONS[options]
    code, _, err = sfumato("release", "plan.toml", "--ledger", "plan.db")
    assert code == 0, err


def test_settings_that_a_partitioner_does_not_have_are_refused(sfumato: Run) -> None:
    args = ["people.parquet", "--axis", "age=0..120", "--epsilon", "1", "--budget", "2"]
    for options, words in (
        (("--method", "binary", "--theta", "3"), "it belongs to uniform"),
        (("--method", "uniform", "--allocation", "linear"), "it belongs to binary"),
        (("--method", "binary", "--shares", "1,2,3"), "release=2,partition=1,threshold=1"),
        (("--method", "quantile", "--at", "0.9,0.5"), "they must increase"),
    ):
        code, _, err = sfumato("partition", *args, *options)
        assert code == 2
        assert words in " ".join(err.split())


def test_a_command_says_whose_budget_it_shares(sfumato: Run) -> None:
    asked = ("histogram", "people.parquet", "--axis", "kind=a,b", "--epsilon", "1", "--budget", "3")
    _, _, err = sfumato(*asked, "--ledger", "b.db")
    assert "Remaining in account 'default': epsilon = 2. Every command without --account" in err
    _, _, err = sfumato(*asked, "--ledger", "b.db", "--account", "people")
    assert "Remaining in account 'people': epsilon = 2.\n" in err
    assert "without --account" not in err


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (("--epsilon", 1, "--budget", 3), "showing them needs a delta"),
        (("--epsilon", 1, "--delta", "1e-6", "--budget", 3), "counts epsilon alone"),
        (("--rho", 1, "--budget", 3), "showing them needs a delta"),
    ],
    ids=str,
)
def test_a_cost_that_cannot_be_charged_opens_no_account(
    sfumato: Run, cost: tuple[object, ...], said: str
) -> None:
    """A total that is once given stands, so that the next try would meet it."""
    keys = ("histogram", "people.parquet", "--axis", "kind=*")
    code, _, err = sfumato(*keys, *cost)
    assert code == 2
    assert said in " ".join(err.split())
    assert not Path("sfumato.db").exists()
    code, _, err = sfumato(*keys, "--epsilon", 1, "--delta", "1e-6", "--budget", "3,1e-5")
    assert code == 0, err
