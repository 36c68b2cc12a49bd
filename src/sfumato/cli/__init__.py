"""The command line. Stdout is data, stderr is talk; exit codes: 0 done, 2 usage, 3 budget, 4 data, 5 ledger, 70 our fault."""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sfumato._version import __version__

if TYPE_CHECKING:
    from sfumato.answers.installed import Declared

# Each command lives in its own module, imported only when it runs: `sfumato --help` needs none of them.
COMMANDS = {
    "audit": ("sfumato.cli.audit", "Show what every mechanism spends, beside what it claims."),
    "bench": ("sfumato.cli.bench", "Measure speed beside peers, in one run."),
    "check": (
        "sfumato.cli.check",
        "Say what a table would lose before anything is paid; for your eyes only.",
    ),
    "choose": ("sfumato.cli.choose", "Find the epsilon that is accurate enough and safe enough."),
    "cluster": (
        "sfumato.cli.cluster",
        "Publish centres of clusters of numeric columns of one file.",
    ),
    "demo": ("sfumato.cli.demo", "Publish the shipped flights and cities, and write a report."),
    "doctor": ("sfumato.cli.doctor", "Check this machine: libraries, randomness, disk, ledger."),
    "histogram": ("sfumato.cli.histogram", "Publish counts by category and bin from one file."),
    "init": (
        "sfumato.cli.init",
        "Write a plan to fill in, from the names and types of a file's columns.",
    ),
    "ledger": ("sfumato.cli.ledger", "Open accounts, and read and verify what was spent."),
    "local": (
        "sfumato.cli.local",
        "Cluster people with no trusted curator: perturb, collect, simulate.",
    ),
    "partition": ("sfumato.cli.partition", "Publish a private map of numeric columns of one file."),
    "preview": (
        "sfumato.cli.plans",
        "Say what a plan costs and how accurate it is; touches no data.",
    ),
    "quantiles": (
        "sfumato.cli.quantiles",
        "Publish medians, quartiles and other quantiles of one file.",
    ),
    "release": (
        "sfumato.cli.plans",
        "Publish the answers to a plan, or print them again for free.",
    ),
    "report": ("sfumato.cli.report", "Turn saved releases into one HTML page."),
    "stream": ("sfumato.cli.stream", "Publish a running total of what comes in, step by step."),
    "verify": ("sfumato.cli.verify", "Check that a release is the one that was published."),
}

ROOMS = {"clustering": "cluster"}  # commands that are not named for the room that they ask
COMMAND_NAME = re.compile(r"[a-z][a-z0-9-]*")
STOPPED = 130  # what a shell reports of a program ended by Ctrl-C


def own_questions() -> dict[str, str]:
    """Questions of the library that no command above asks, by the name of the command made for them."""
    from sfumato.lazily import listed

    found = {}
    for name, place in listed("questions").items():
        room = place.partition(":")[0].split(".")[1]
        if ROOMS.get(room, room) not in COMMANDS:
            found[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()] = place
    return found


def outside_questions() -> dict[str, Declared]:
    """Questions of installed packages, by the names of their commands; nothing is imported."""
    from sfumato.answers.installed import declared

    own = {*COMMANDS, *own_questions()}
    others = [found for found in declared() if found.name not in own]
    return {found.name: found for found in others if COMMAND_NAME.fullmatch(found.name)}


class LazyGroup(click.Group):
    """A group that knows its commands by name, and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *own_questions(), *outside_questions()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, _ = COMMANDS[cmd_name]
            command: click.Command = getattr(importlib.import_module(module), cmd_name)
            return command
        own = own_questions()
        others = outside_questions()
        if cmd_name not in {*own, *others}:
            return None
        from sfumato.answers import registry
        from sfumato.cli.asking import command_of

        if cmd_name in own:
            return command_of(cmd_name, registry.listed_question(own[cmd_name]))
        return command_of(cmd_name, registry.declared_question(others[cmd_name]))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            if args[0] not in known:
                from sfumato.errors import nearest

                ctx.fail(f"There is no command {args[0]!r}; {nearest(args[0], known)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from sfumato.lazily import described

        own = {name: text for name, (_, text) in COMMANDS.items()}
        for name, place in own_questions().items():
            kind = place.partition(":")[2]
            own[name] = described("questions").get(kind, f"Ask sfumato.{kind} about one file.")
        with formatter.section("Commands"):
            formatter.write_dl(sorted(own.items()))
        others = outside_questions()
        if others:
            with formatter.section("Questions of installed packages"):
                rows = [
                    (name, f"From the package {found.package}.") for name, found in others.items()
                ]
                formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 2 usage, 3 budget, 4 data, 5 ledger, 70 a fault of ours.",
)
@click.version_option(__version__, prog_name="sfumato")
def cli() -> None:
    """Publish what personal data show without betraying anyone in them."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(list(sys.argv[1:] if args is None else args)))


def run(args: list[str]) -> int:
    """Run one command line and return its exit code."""
    from sfumato.errors import InternalError, SfumatoError

    try:
        outcome: object = cli.main(args=args, prog_name="sfumato", standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
    except click.exceptions.Abort:
        click.echo(
            "Stopped. A charge that was made stands; the same command resumes it without paying again.",
            err=True,
        )
        code = STOPPED
    except click.ClickException as error:
        _refuse(error)
        code = error.exit_code
    except (SfumatoError, InternalError) as error:
        code = _explain(args, str(error), error, error.exit_code)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stdout = None
        code = 0
    except Exception as error:
        code = _explain(args, _fault(error), error, InternalError.exit_code)
    return code


def _refuse(error: click.ClickException) -> None:
    """Show what click refused, which quotes what was written."""
    from sfumato.errors import printable_lines

    said = io.StringIO()
    error.show(said)
    click.echo(printable_lines(said.getvalue().removesuffix("\n")), err=True)


def _explain(args: list[str], message: str, error: Exception, code: int) -> int:
    from sfumato.errors import printable

    notes = list(getattr(error, "__notes__", []))
    if "--json" in args:
        import json

        click.echo(
            json.dumps(
                {
                    "error": type(error).__name__,
                    "message": message,
                    "notes": notes,
                    "exit_code": code,
                }
            ),
            err=True,
        )
        return code
    click.echo(click.style("Error: ", fg="red", bold=True) + printable(message), err=True)
    for note in notes:
        click.echo(printable(note), err=True)
    return code


def _fault(error: Exception) -> str:
    """Name the place of an unforeseen error."""
    from sfumato.errors import place_of

    return f"a fault of ours, {place_of(error)}. Please report this line; it holds no data."
