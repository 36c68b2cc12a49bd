"""Every command has a help text of one screen, all of it by --help-all, and an option for JSON."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest
from click.shell_completion import ShellComplete

from sfumato.cli import COMMANDS, cli, own_questions
from sfumato.cli.commands import SECTIONS
from sfumato.cli.layers import (
    HELP_ALL,
    SCREEN_LINES,
    SCREEN_WIDTH,
    GroupedOption,
    LayeredCommand,
)

Run = Callable[..., tuple[int, str, str]]


def every_command() -> list[list[str]]:
    context = click.Context(cli)
    found = []
    for name in sorted({*COMMANDS, *own_questions()}):
        command = cli.get_command(context, name)
        assert command is not None
        found += [[name, *rest] for rest in leaves(command)]
    return found


def leaves(command: click.Command) -> list[list[str]]:
    """The words behind a command that name what it can do, at any depth."""
    if not isinstance(command, click.Group):
        return [[]]
    found = sorted(command.commands.items())
    return [[name, *rest] for name, below in found for rest in leaves(below)]


@pytest.mark.parametrize("args", every_command(), ids=" ".join)
def test_every_command_has_help_and_json(sfumato: Run, args: list[str]) -> None:
    code, out, _ = sfumato(*args, "--help")
    assert code == 0
    assert "--json" in out
    assert max(map(len, out.splitlines())) <= 100
    assert len(out.splitlines()[2].strip()) > 20  # a sentence that says what it does


def command_at(args: list[str]) -> tuple[click.Command, click.Context]:
    """The command that these words name, and a context for its help."""
    command: click.Command = cli
    context = click.Context(cli, info_name="sfumato")
    for name in args:
        assert isinstance(command, click.Group)
        below = command.get_command(context, name)
        assert below is not None
        command, context = below, click.Context(below, context, name)
    return command, context


@pytest.mark.parametrize("args", every_command(), ids=" ".join)
def test_help_is_one_screen_and_help_all_has_every_option(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(SCREEN_WIDTH))
    code, out, _ = sfumato(*args, "--help")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= SCREEN_WIDTH
    code, whole, _ = sfumato(*args, "--help-all")
    assert code == 0
    assert max(map(len, whole.splitlines())) <= SCREEN_WIDTH
    command, context = command_at(args)
    assert isinstance(command, LayeredCommand)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert name in whole
                assert name in out or command.is_long(context)
        if parameter.required and isinstance(parameter, click.Option):
            assert parameter.opts[0] in out
    assert (HELP_ALL in out) == command.is_long(context)


@pytest.mark.parametrize("args", every_command(), ids=" ".join)
def test_all_help_of_a_long_command_stands_in_named_groups(args: list[str]) -> None:
    command, context = command_at(args)
    if not isinstance(command, LayeredCommand) or not command.is_long(context):
        return
    plain = [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and not isinstance(parameter, GroupedOption)
    ]
    assert plain == []
    whole = command.help_all(context)
    screen = command.get_help(context)
    for parameter in command.params:
        if isinstance(parameter, GroupedOption):
            assert f"\n{parameter.group}:\n" in whole
            assert f"\n{parameter.group}:\n" not in screen


def test_shells_complete_the_options_of_both_layers() -> None:
    completion = ShellComplete(cli, {}, "sfumato", "_SFUMATO_COMPLETE")
    offered = {completed.value for completed in completion.get_completions(["histogram"], "--")}
    assert {"--axis", "--separator", "--help", HELP_ALL} <= offered


def test_the_help_shows_each_command_once(sfumato: Run) -> None:
    """Most needed first: a stranger reads from the top."""
    code, out, _ = sfumato("--help")
    assert code == 0
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    shown = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and line.strip()]
    for name in (*COMMANDS, *own_questions()):
        assert shown.count(name) == 1, name
    assert out.index("To begin:") < out.index("histogram") < out.index("doctor")
