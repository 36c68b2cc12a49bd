"""What click refuses has three parts, as text and as JSON; ``test_mistakes`` has the words."""

from __future__ import annotations

import json
from collections.abc import Callable

import click
import pytest

from sfumato.cli.commands import IN_A_PLAN, cli, in_parts

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    "words",
    [
        ["histogram", "people.parquet", "--espilon", "1"],
        ["release"],
        ["release", "plan.toml", "another.toml"],
        ["ledger", "list"],
        ["nothing"],
        ["doctor", ""],
        ["mean", "people.parquet", "--axis", "kind=a,b", "--epsilon", "1"],
        ["histogram", "people.parquet", "--rows-per-person", "2.5"],
    ],
    ids=" ".join,
)
def test_as_json_it_is_an_error_like_ours(sfumato: Run, words: list[str]) -> None:
    code, out, err = sfumato(*words, "--json")
    found = json.loads(err)
    assert (code, out) == (2, "")
    assert (found["error"], found["exit_code"]) == ("UsageError", 2)
    assert sfumato(*words)[2] == f"Error: {found['message']}\n"


def test_a_preview_of_another_question_is_found_in_a_plan(sfumato: Run) -> None:
    code, _, err = sfumato("quantiles", "people.parquet", "--axis", "age=0..100", "--preview")
    assert code == 2
    assert "sfumato preview PLAN.toml" in " ".join(err.split())
    assert "--preview" in sfumato("histogram", "--help")[1]


def test_labels_of_a_column_of_whole_numbers_are_written_as_a_range(sfumato: Run) -> None:
    asked = ["histogram", "people.parquet", "--epsilon", "1", "--budget", "2"]
    code, _, err = sfumato(*asked, "--axis", "who=1,2")
    assert code == 4
    assert "(command line: --axis who=1..3/1)" in " ".join(err.split())
    code, out, err = sfumato(*asked, "--axis", "who=1..3/1")
    assert code == 0, err
    assert [line.split("\t")[0] for line in out.splitlines()[2:]] == ["1 and below", "2 and above"]
    code, _, err = sfumato(*asked, "--axis", "m=month:who:2013-01..2013-02")
    assert code == 4
    assert "Convert the column, or declare it as what it is" in " ".join(err.split())


def test_a_group_alone_prints_its_help(sfumato: Run) -> None:
    code, out, err = sfumato("ledger")
    assert code in (0, 2)  # before click 8.2 it counts as asked for
    assert "Commands:" in (out if code == 0 else err)


def test_what_click_says_otherwise_is_kept() -> None:
    """Also an error without the command it came from."""
    error = in_parts(click.ClickException("The tide is out."), ["preview", "--rows"])
    assert error.args == (
        "sfumato preview",
        "The tide is out",
        "Type sfumato preview --help for all that it takes",
    )


def test_terminal_escapes_are_not_printed(sfumato: Run) -> None:
    _, _, err = sfumato("hist\x1b[31mogram")
    assert "\x1b" not in err


@pytest.mark.parametrize("command", ["release", "preview"])
def test_what_a_plan_says_is_no_option_of_its_commands(sfumato: Run, command: str) -> None:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    assert not {name for option in found.params for name in option.opts} & set(IN_A_PLAN)
    for option, field in IN_A_PLAN.items():
        code, out, err = sfumato(command, "plan.toml", option, "1")
        assert (code, out) == (2, "")
        assert f"{command} {option}: the plan says it" in err
        assert f"Write {field} in the plan." in err
