"""Every command has a help text and an option for JSON."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from sfumato.cli import COMMANDS, cli, own_questions
from sfumato.cli.commands import SECTIONS

Run = Callable[..., tuple[int, str, str]]


def every_command() -> list[list[str]]:
    context = click.Context(cli)
    found = []
    for name in sorted(COMMANDS):
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
