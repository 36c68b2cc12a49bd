"""Write docs/cli.md from the commands' own help.

`make docs` runs it before it builds the site; the page is in no repository.
"""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli import COMMANDS, cli, own_questions
from sfumato.cli.layers import LayeredCommand

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"

INTRODUCTION = """\
What `sfumato COMMAND --help-all` prints, for every command. `python -m sfumato` is the same as
`sfumato`.

Data go to stdout, messages to stderr. With `--json`, data and errors are JSON.

| exit code | meaning |
|---|---|
| 0 | done |
| 2 | the command line is wrong |
| 3 | the budget does not suffice |
| 4 | the data, or a file, are not as they must be |
| 5 | the ledger cannot be used |
| 70 | a bug in Sfumato |
| 130, 141 | stopped by Ctrl-C; nobody reads stdout any more |

A command that writes a file replaces the one that was there, and says so: it can be written again
at no cost. Only `sfumato init` refuses without `--force`, because people edit plans."""


def page() -> str:
    """The whole page."""
    parts = ["# The command line", INTRODUCTION]
    context = click.Context(
        cli, info_name="sfumato", terminal_width=100, help_option_names=["-h", "--help"]
    )
    parts.append(_block("sfumato", cli, context))
    for name in sorted({*COMMANDS, *own_questions()}):
        command = cli.get_command(context, name)
        assert command is not None
        parts += _sections(f"sfumato {name}", command, context)
    return "\n\n".join(parts) + "\n"


def _sections(path: str, command: click.Command, parent: click.Context) -> list[str]:
    context = click.Context(
        command, info_name=path.rsplit(maxsplit=1)[-1], parent=parent, terminal_width=100
    )
    parts = [f"## {path}", _block(path, command, context)]
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            parts += _sections(f"{path} {name}", command.commands[name], context)
    return parts


def _block(path: str, command: click.Command, context: click.Context) -> str:
    is_layered = isinstance(command, LayeredCommand)
    text = command.help_all(context) if is_layered else command.get_help(context)
    return f"```text\n{text}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
