"""Every command has a help text and an option for JSON."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from sfumato.cli import COMMANDS, cli

Run = Callable[..., tuple[int, str, str]]


def every_command() -> list[list[str]]:
    context = click.Context(cli)
    found = []
    for name in sorted(COMMANDS):
        command = cli.get_command(context, name)
        assert command is not None
        found += (
            [[name, sub] for sub in sorted(command.commands)]
            if isinstance(command, click.Group)
            else [[name]]
        )
    return found


@pytest.mark.parametrize("args", every_command(), ids=" ".join)
def test_every_command_has_help_and_json(sfumato: Run, args: list[str]) -> None:
    code, out, _ = sfumato(*args, "--help")
    assert code == 0
    assert "--json" in out
    assert max(map(len, out.splitlines())) <= 100
    assert len(out.splitlines()[2].strip()) > 20  # a sentence that says what it does
