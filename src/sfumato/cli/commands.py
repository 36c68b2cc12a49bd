"""The list of commands, each imported only when it runs."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sfumato._version import __version__

if TYPE_CHECKING:
    from sfumato.answers.registry import Declared

# Importing numpy and pyarrow takes most of a second, so that `sfumato --help` imports no command.
COMMANDS = {
    "audit": (
        "sfumato.cli.audit",
        "Test whether each mechanism keeps within its privacy claim.",
    ),
    "bench": ("sfumato.cli.bench", "Measure how fast Sfumato is on this machine."),
    "check": (
        "sfumato.cli.check",
        "Count the rows that a release would drop or clamp, for you alone.",
    ),
    "choose": (
        "sfumato.cli.choose",
        "Find which epsilon is both accurate enough and safe enough.",
    ),
    "cluster": ("sfumato.cli.cluster", "Publish the centres and sizes of clusters in one file."),
    "demo": ("sfumato.cli.demo", "Publish the two example tables and write a report."),
    "disclose": (
        "sfumato.cli.disclose",
        "Write a disclosure document for a public registry.",
    ),
    "doctor": ("sfumato.cli.doctor", "Check that this machine is fit to publish."),
    "histogram": ("sfumato.cli.histogram", "Publish how many rows of one file are in each group."),
    "init": ("sfumato.cli.init", "Write a plan: a file that says what to publish of a table."),
    "ledger": ("sfumato.cli.ledger", "Open, list and verify privacy accounts."),
    "local": ("sfumato.cli.local", "Cluster people without a trusted curator."),
    "partition": (
        "sfumato.cli.partition",
        "Publish a map of one file: how many rows lie in each part of it.",
    ),
    "persons": (
        "sfumato.cli.persons",
        "Publish how many persons there are, and how many rows each has.",
    ),
    "preview": (
        "sfumato.cli.plans",
        "Show the cost and accuracy of a plan without reading the data.",
    ),
    "quantiles": (
        "sfumato.cli.quantiles",
        "Publish medians, quartiles and other quantiles of one file.",
    ),
    "release": ("sfumato.cli.plans", "Publish the answers to a plan."),
    "report": ("sfumato.cli.report", "Write saved releases as one HTML page."),
    "stream": ("sfumato.cli.stream", "Publish a running total, step by step."),
    "tables": ("sfumato.cli.tables", "Publish several tables of one file that add up."),
    "verify": ("sfumato.cli.verify", "Check that a release is the one that was published."),
}

SECTIONS = {
    "To begin": ("demo", "init", "check", "preview", "release", "report"),
    "One question about one file": (
        *("histogram", "tables", "persons", "quantiles", "partition", "cluster"),
    ),
    "Epsilon, and what was spent": ("choose", "ledger", "verify", "disclose"),
    "Day by day, and without a trusted curator": ("stream", "local"),
    "Sfumato itself": ("doctor", "audit", "bench"),
}
"""The commands as --help shows them: first what most people need."""
QUESTIONS = "One question about one file"
"""The section of the commands that are made from questions."""

COMMAND_OF_PACKAGE = {"clustering": "cluster"}  # the only question package with another name
COMMAND_NAME = re.compile(r"[a-z][a-z0-9-]*")


def own_questions() -> dict[str, str]:
    """The library's questions that no command above asks, by the name of the command made for them.

    Returns
    -------
    dict
        From command name to "module:class".
    """
    from sfumato.basics.lazily import listed

    found = {}
    for name, place in listed("sfumato.questions").items():
        _, _, package, *_ = place.split(".")  # sfumato.questions.PACKAGE...
        package = package.partition(":")[0]
        if COMMAND_OF_PACKAGE.get(package, package) not in COMMANDS:
            command_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
            found[command_name] = place
    return found


def outside_questions() -> dict[str, Declared]:
    """Questions of installed packages by command name, read from metadata: nothing is imported."""
    from sfumato.answers.registry import declared

    return {found.name: found for found in declared() if _no_command(found) is None}


def _no_command(found: Declared) -> str | None:
    """Why a question that a package declares is no command; None if it is one."""
    if not COMMAND_NAME.fullmatch(found.name):
        return "the name of a command has lower-case letters, digits and hyphens"
    if found.name in {*COMMANDS, *own_questions()}:
        return "Sfumato has a command of that name"
    return None


def unavailable_questions() -> dict[str, str]:
    """Questions of installed packages that are no commands, by name, and why."""
    from sfumato.answers.registry import declared

    reasons = {found: _no_command(found) for found in declared()}
    return {
        found.name: f"From the package {found.package}. No command: {reason}. Ask it in a plan."
        for found, reason in reasons.items()
        if reason is not None
    }


class ReaderLeft(Exception):
    """Whoever reads our output has left, as `head` does."""


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Raise `ReaderLeft` for a broken pipe, of which click would make an exit code of its own."""
    try:
        yield
    except BrokenPipeError:
        left = ReaderLeft()
    else:
        return
    raise left


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is asked for."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        """Read the words before the command; --help among them is printed here."""
        with _reader_may_leave():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _reader_may_leave():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, sorted."""
        return sorted({*COMMANDS, *own_questions(), *outside_questions()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import or make the command of this name; None if there is none."""
        if cmd_name in COMMANDS:
            module, _ = COMMANDS[cmd_name]
            command: click.Command = getattr(importlib.import_module(module), cmd_name)
            return command
        own = own_questions()
        outside = outside_questions()
        if cmd_name not in {*own, *outside}:
            return None
        from sfumato.answers import registry
        from sfumato.basics.lazily import described
        from sfumato.cli.question_command import command_of

        if cmd_name in own:
            kind = registry.listed_question(own[cmd_name])
            return command_of(cmd_name, kind, described("sfumato.questions").get(kind.__name__, ""))
        return command_of(cmd_name, registry.declared_question(outside[cmd_name]))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown name, fail with the nearest known one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            if args[0] not in known:
                from sfumato.cli.refusals import unknown_command

                raise unknown_command(args[0], known, "sfumato")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for --help, without importing any."""
        from sfumato.basics.lazily import described
        from sfumato.errors import printable

        own = {name: text for name, (_, text) in COMMANDS.items()}
        for name, place in own_questions().items():
            kind = place.partition(":")[2]
            own[name] = described("sfumato.questions").get(
                kind, f"Ask sfumato.{kind} about one file."
            )
        for section, listed in SECTIONS.items():
            first, *rest = listed
            names = (first, *own_questions(), *rest) if section == QUESTIONS else listed
            with formatter.section(section):
                formatter.write_dl([(name, own[name]) for name in names])
        outside = outside_questions()
        rows = [(name, f"From the package {found.package}.") for name, found in outside.items()]
        rows += [(printable(name), printable(why)) for name, why in unavailable_questions().items()]
        if rows:
            with formatter.section("Questions of installed packages"):
                formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Data go to stdout, messages to stderr. Exit codes: 0 done, 2 usage, 3 budget, 4 data, "
    "5 ledger, 70 a bug in Sfumato, 141 nobody reads stdout any more.",
)
@click.version_option(__version__, prog_name="sfumato")
def cli() -> None:
    """Publish statistics about people, and limit what they reveal about any one person.

    \b
    See what it does:        sfumato demo
    Publish your own table:  sfumato init FILE --out PLAN.toml
                             sfumato preview PLAN.toml
                             sfumato release PLAN.toml --report report.html
    Learn about a command:   sfumato COMMAND --help
    """
