"""Limits on a person, periods and clips are options of every command that asks about a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from cli.conftest import Run
from sfumato.cli.commands import cli
from sfumato.cli.parsing import parse_clip

COST = ("--rho", "0.5", "--budget", "9")
AGE = ("people.parquet", "--axis", "age=0..120/1")
KIND = ("--axis", "kind=a,b")
LIMITS = ("--rows-per-person", "--rows-per-cell", "--cells-per-person", "--norm-per-person")
ASKING = ("histogram", "mean", "sum", "variance", "persons", "partition", "quantiles", "cluster")


def guarantee(out: str) -> Any:
    (release,) = json.loads(out)
    return release["guarantee"]


@pytest.mark.parametrize("name", [*ASKING, "check"])
def test_every_command_about_a_file_takes_all_limits(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = {name for each in command.params for name in each.opts}
    assert {*LIMITS, "--person"} <= options


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (("--norm-per-person", 2), "contributing counts cut to a norm of 2"),
        (("--rows-per-cell", 1, "--cells-per-person", 3), "in at most 3 cells"),
        (("--rows-per-person", 3, "--rows-per-cell", 2), "at most 3 rows, at most 2 rows in a"),
        (("--rows-per-person", 3), "at most 3 rows"),
        ((), "at most one row"),
    ],
)
def test_limits_are_those_of_the_guarantee(
    sfumato: Run, limits: tuple[object, ...], said: str
) -> None:
    code, _, err = sfumato("histogram", *AGE, "--person", "who", *limits, *COST)
    assert code == 0, err
    assert said in " ".join(err.split())


def test_a_column_and_a_period_are_the_person(sfumato: Run) -> None:
    code, out, err = sfumato(
        "histogram", *AGE, "--person", "who", "--person", "day", *COST, "--json"
    )
    assert code == 0, err
    assert guarantee(out)["unit"]["period"] == "day"
    code, _, err = sfumato("check", *AGE, "--person", "who", "--person", "day")
    assert code == 0, err


@pytest.mark.parametrize(
    ("command", "limits", "said"),
    [
        ("histogram", ("--norm-per-person", 2), "without a person"),
        ("histogram", ("--person", "who", "--norm-per-person", 0), "whole number from 1"),
        ("histogram", ("--person", "who", "--rows-per-cell", 2), "without a bound"),
        ("quantiles", ("--person", "who", "--norm-per-person", 2), "under limits by cell"),
        ("histogram", ("--person", "who", "--person", "kind"), "declares dates or times"),
        ("histogram", ("--person", "a", "--person", "b", "--person", "c"), "a column of dates"),
    ],
)
def test_limits_that_do_not_fit_are_refused_before_the_charge(
    sfumato: Run, command: str, limits: tuple[object, ...], said: str
) -> None:
    code, _, err = sfumato(command, *AGE, *limits, *COST)
    assert code in (2, 4)
    assert said in " ".join(err.split())
    assert not Path("sfumato.db").exists()


def test_a_check_tells_what_the_limits_leave_out(sfumato: Run) -> None:
    limits = ("--person", "who", "--rows-per-person", 2, "--rows-per-cell", 1)
    code, out, err = sfumato("check", *AGE, *limits)
    assert code == 0, err
    assert "at most 1 row in a cell" in " ".join(out.split())
    code, _, err = sfumato("check", "plan.toml", "--norm-per-person", 2)
    assert code == 2
    assert "the plan says so itself" in err


def test_plans_take_limits_and_a_period(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text("utf-8")
    limited = plan.replace("rows_per_person = 2", "norm_per_person = 2").replace(
        'person = "who"', 'person = ["who", "day"]'
    )
    Path("limited.toml").write_text(limited.replace('type = "uniform"', 'type = "histogram"'))
    code, out, err = sfumato("preview", "limited.toml")
    assert code == 0, err
    assert "counts cut to a norm of 2" in out
    assert "any one person in one day" in " ".join(out.split())


# --- clips ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clip", "said"),
    [("60", ""), ("20:60", ""), ("auto", "lowered_high"), (" 0 : 50 ", "")],
)
def test_a_clip_is_a_number_a_pair_or_auto(sfumato: Run, clip: str, said: str) -> None:
    code, out, err = sfumato(
        "mean", *AGE, *KIND, "--value", "age", "--by", "kind", "--clip", clip, *COST
    )
    assert code == 0, err
    assert said in out + err


@pytest.mark.parametrize(
    ("clip", "said"),
    [
        ("sixty", "a number, LOW:HIGH or auto"),
        ("1:2:3", "a number, LOW:HIGH or auto"),
        ("nan", "a number, LOW:HIGH or auto"),
        ("500", "does not lie within the bounds"),
        ("60:20", "does not lie within the bounds"),
    ],
)
def test_a_clip_that_does_not_fit_is_refused_before_the_charge(
    sfumato: Run, clip: str, said: str
) -> None:
    code, _, err = sfumato("sum", *AGE, "--value", "age", "--clip", clip, *COST)
    assert code == 2
    assert said in " ".join(err.split())
    assert not Path("sfumato.db").exists()


def test_negative_clips_are_read() -> None:
    assert parse_clip("-5:-1") == (-5.0, -1.0)
    assert parse_clip("") is None


@pytest.mark.parametrize("name", ["mean", "sum", "variance"])
def test_the_help_begins_with_what_the_command_does(sfumato: Run, name: str) -> None:
    code, out, _ = sfumato(name, "--help-all")
    assert code == 0
    first = out.splitlines()[2].strip()
    assert first == f"Publish the {name} of a value, by group."
    assert "Write 200, 0:200 or auto." in " ".join(out.split())
    assert "Without it, all rows are one group." in " ".join(out.split())


def test_a_mean_names_its_column_once(sfumato: Run) -> None:
    """A column of labels, dates, or a condition is not what is averaged."""
    asked = ("mean", *AGE, *KIND, "--axis", "day=2013-01-01..2013-01-05", "--by", "kind", *COST)
    code, named, err = sfumato(*asked, "--value", "age", "--json")
    assert code == 0, err
    code, unnamed, err = sfumato(*asked, "--json")
    assert (code, unnamed) == (0, named), err
    assert "Nothing was spent: this is the stored answer." in " ".join(sfumato(*asked)[2].split())


def test_one_of_several_columns_of_numbers_must_be_named(sfumato: Run) -> None:
    several = ("people.parquet", "--axis", "age=0..120/1", "--axis", "who=0..90")
    code, _, err = sfumato("sum", *several, *COST)
    assert code == 2
    assert "2 columns of numbers: age, who. Say which is meant" in " ".join(err.split())
    code, _, err = sfumato("sum", *several, "--where", "who=0..9", *COST)
    assert code == 0, err


# --- what is measured of persons ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "title"),
    [("cells", "Cells of"), ("norm", "Norm of"), ("largest-cell", "Largest cell of")],
)
def test_persons_are_asked_for_what_is_measured(sfumato: Run, of: str, title: str) -> None:
    ask = ("persons", *AGE, *KIND, "--bins", "age=4", "--person", "who", "--of", of)
    code, out, err = sfumato(*ask, "--most-rows", 20, *COST)
    assert code == 0, err
    assert out.startswith(f"# {title} each person by age x kind\n")
    assert "sums of the data" not in err


def test_what_is_measured_in_cells_takes_columns(sfumato: Run) -> None:
    code, _, err = sfumato("persons", "people.parquet", "--person", "who", "--of", "norm", *COST)
    assert code == 2
    assert "Give --axis for each column of the table" in " ".join(err.split())
    assert not Path("sfumato.db").exists()
