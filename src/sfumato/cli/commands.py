"""The list of commands, each imported only when it runs, and what click refuses.

A refusal of click is said in the three parts of our own errors: asked, obstacle, what to type.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sfumato._version import __version__
from sfumato.basics import described, listed
from sfumato.cli.layers import HELP_ALL, LayeredCommand
from sfumato.errors import UsageError, nearest, printable, shown

if TYPE_CHECKING:
    from sfumato.answers import Declared


# --- commands -------------------------------------------------------------------------------------

# Importing numpy and pyarrow takes most of a second, so that `sfumato --help` imports no command.
COMMANDS = {
    "account": ("sfumato.cli.ledger", "Say what is left of an account, and how it adds up."),
    "audit": (
        "sfumato.cli.audit",
        "Test whether each mechanism keeps within its privacy claim.",
    ),
    "bench": ("sfumato.cli.audit", "Measure how fast Sfumato is on this machine."),
    "check": (
        "sfumato.cli.plans",
        "Count the rows that a release would drop or clamp, for you alone.",
    ),
    "choose": (
        "sfumato.cli.choose",
        "Find which epsilon is both accurate enough and safe enough.",
    ),
    "cluster": (
        "sfumato.cli.questions",
        "Publish the centres and sizes of clusters in one file.",
    ),
    "demo": ("sfumato.cli.reports", "Publish the two example tables and write a report."),
    "disclose": (
        "sfumato.cli.reports",
        "Write a disclosure document for a public registry.",
    ),
    "doctor": ("sfumato.cli.audit", "Check that this machine is fit to publish."),
    "histogram": ("sfumato.cli.histogram", "Publish how many rows of one file are in each group."),
    "init": ("sfumato.cli.init", "Write a plan: a file that says what to publish of a table."),
    "ledger": ("sfumato.cli.ledger", "Open, list and verify privacy accounts."),
    "local": ("sfumato.cli.local", "Cluster people without a trusted curator."),
    "partition": (
        "sfumato.cli.partition",
        "Publish a map of one file: how many rows lie in each part of it.",
    ),
    "persons": (
        "sfumato.cli.questions",
        "Publish how many persons there are, and how many rows each has.",
    ),
    "preview": (
        "sfumato.cli.plans",
        "Show the cost and accuracy of a plan without reading the data.",
    ),
    "quantiles": (
        "sfumato.cli.questions",
        "Publish medians, quartiles and other quantiles of one file.",
    ),
    "release": ("sfumato.cli.plans", "Publish the answers to a plan."),
    "report": ("sfumato.cli.reports", "Write saved releases as one HTML page."),
    "stream": ("sfumato.cli.stream", "Publish a running total, step by step."),
    "tables": ("sfumato.cli.questions", "Publish several tables of one file that add up."),
    "verify": ("sfumato.cli.reports", "Check that a release is the one that was published."),
}

# The commands as --help shows them, on one screen: first what most people need.
SECTIONS = {
    "To begin": ("demo", "init", "check", "preview", "release", "report"),
    "One question about one file": (
        *("histogram", "tables", "persons", "quantiles", "partition", "cluster"),
    ),
    "More": (
        *("choose", "account", "ledger", "verify", "disclose"),
        *("stream", "local", "doctor", "audit", "bench"),
    ),
}
# The section of the commands that are made from questions.
QUESTIONS = "One question about one file"

COMMAND_OF_PACKAGE = {"clustering": "cluster"}  # the only question package with another name


def own_questions() -> dict[str, str]:
    """The library's questions that no command above asks, by the name of the command made for them.

    Returns
    -------
    dict
        From command name to "module:class".
    """
    places = {}
    for name, place in listed("sfumato.questions").items():
        _, _, package, *_ = re.split("[.:]", place)  # sfumato.questions.PACKAGE...
        if COMMAND_OF_PACKAGE.get(package, package) not in COMMANDS:
            places[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()] = place
    return places


def outside_questions() -> tuple[dict[str, Declared], dict[str, str]]:
    """Questions of installed packages by name, read from metadata: nothing is imported.

    Returns
    -------
    pair of dict
        Those that are commands, and why others are none.
    """
    from sfumato.answers import declared

    commands = {}
    reasons = {}
    for question in declared():
        if not re.fullmatch(r"[a-z][a-z0-9-]*", question.name):
            reason = "the name of a command has lower-case letters, digits and hyphens"
        elif question.name in {*COMMANDS, *own_questions()}:
            reason = "Sfumato has a command of that name"
        else:
            commands[question.name] = question
            continue
        reasons[question.name] = (
            f"From the package {question.package}. No command: {reason}. Ask it in a plan."
        )
    return commands, reasons


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
        with _reader_may_leave():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *own_questions(), *outside_questions()[0]})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import or make the command of this name; None if there is none."""
        if cmd_name in COMMANDS:
            module, _ = COMMANDS[cmd_name]
            command: click.Command = getattr(importlib.import_module(module), cmd_name)
            return command
        own = own_questions()
        outside, _ = outside_questions()
        if cmd_name not in {*own, *outside}:
            return None
        from sfumato.answers import registry
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
                raise unknown_command(args[0], known, "sfumato")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands alone: --help and --version are what every program has."""
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for --help, without importing any."""
        own = {name: text for name, (_, text) in COMMANDS.items()}
        for name, place in own_questions().items():
            kind = place.partition(":")[2]
            own[name] = described("sfumato.questions").get(
                kind, f"Ask sfumato.{kind} about one file."
            )
        for section, names in SECTIONS.items():
            first, *rest = names
            made = own_questions() if section == QUESTIONS else ()
            with formatter.section(section):
                formatter.write_dl([(name, own[name]) for name in (first, *made, *rest)])
        outside, unavailable = outside_questions()
        rows = [
            (name, f"From the package {question.package}.") for name, question in outside.items()
        ]
        rows += [(printable(name), printable(why)) for name, why in unavailable.items()]
        if rows:
            with formatter.section("Questions of installed packages"):
                formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="sfumato")
def cli() -> None:
    """Publish statistics about people that reveal little about any one of them.

    \b
    Publish your own table:  sfumato init FILE --out PLAN.toml
                             sfumato check PLAN.toml
                             sfumato preview PLAN.toml
                             sfumato release PLAN.toml --report report.html
    Learn about a command:   sfumato COMMAND --help, and --help-all
    """


# --- refusals -------------------------------------------------------------------------------------

LONG_DASHES = "—–−"
# What other commands have options for, and a plan has fields for.
IN_A_PLAN = {
    "--account": "account under [budget]",
    "--budget": "epsilon or rho under [budget]",
    "--epsilon": "epsilon under [release]",
    "--rho": "rho under [release]",
    "--delta": "delta under [release]",
    "--axis": "the axis under [domain]",
    "--person": "person under [source]",
    "--person-called": "person_called under [source]",
    "--rows-per-person": "rows_per_person under [source]",
    "--neighbours": "neighbours under [source]",
    "--where": "the condition under [source.where]",
    "--data-version": "version under [source]",
    "--bins": "bins under [[questions]]",
    "--width": "width under [[questions]]",
}


def in_parts(error: click.ClickException, args: Sequence[str]) -> UsageError:
    """An error of click's as one of ours.

    Parameters
    ----------
    error : click.ClickException
    args : sequence of str
        The words of the command line. They are public: whoever typed them sees the error.
    """
    context = getattr(error, "ctx", None)
    words = [word for word in args[:1] if not word.startswith("-")]
    command: str = " ".join(["sfumato", *words]) if context is None else context.command_path
    for_help = f"Type {_help_of(command, context)} for all that it takes"
    match error:
        case click.NoSuchOption():
            return _unknown_option(error, args, command)
        case click.BadOptionUsage():
            return UsageError(
                f"{command} {error.option_name}",
                "a value must follow it",
                f"Write the value behind it. {for_help}",
            )
        case click.MissingParameter():
            return _lacking(error, command, for_help)
        case click.BadParameter():
            return _bad_value(error, command, for_help)
        case _:
            return _of_message(error, context, command, for_help)


def _of_message(
    error: click.ClickException, context: click.Context | None, command: str, for_help: str
) -> UsageError:
    # Of these errors click says only by their text what they are.
    extra = re.match(r"Got unexpected extra arguments? \((.*)\)", error.message, re.S)
    if extra is not None:
        return _extra_words(extra[1], command, context)
    word = re.match(r"No such command '(.*)'", error.message, re.S)
    if word is not None and context is not None and isinstance(context.command, click.Group):
        return unknown_command(word[1], context.command.list_commands(context), command)
    return UsageError(command, error.message.rstrip("."), for_help)


def _help_of(command: str, context: click.Context | None) -> str:
    target = None if context is None else context.command
    if context is not None and isinstance(target, LayeredCommand):
        return f"{command} {HELP_ALL if target.is_long(context) else '--help'}"
    return f"{command} --help"


def unknown_command(name: str, known: Sequence[str], path: str) -> UsageError:
    """The error of a command that there is not."""
    return UsageError(
        f"{path} {name}",
        f"there is no such command; {nearest(name, known)}",
        f"Type {path} --help for the list",
    )


def _parameters(context: click.Context | None) -> list[click.Parameter]:
    return [] if context is None else context.command.get_params(context)


def _unknown_option(error: click.NoSuchOption, args: Sequence[str], command: str) -> UsageError:
    # Options have their hyphens, arguments none.
    known = [name for parameter in _parameters(error.ctx) for name in parameter.opts]
    flags = [name for name in known if name.startswith("-")]
    name = error.option_name
    # click reads -epsilon as -e and what follows it.
    one_hyphen = re.compile(rf"(?!--){re.escape(name)}[A-Za-z]")
    word = next(filter(one_hyphen.match, args), None)
    if word is not None:
        long = f"-{word.partition('=')[0]}"
        near = long if long in flags else "--epsilon"
        return UsageError(
            f"{command} {word}", "one hyphen stands before it", f"Write {near}, with two"
        )
    if name == "--preview":
        return UsageError(
            f"{command} {name}",
            "of the commands that ask one question, only sfumato histogram has this option",
            "Write a plan with sfumato init, and type: sfumato preview PLAN.toml",
        )
    if name in IN_A_PLAN and command in ("sfumato release", "sfumato preview"):
        return UsageError(
            f"{command} {name}",
            "the plan says it, so that it can be read and agreed on beforehand",
            f"Write {IN_A_PLAN[name]} in the plan",
        )
    argument = name[2:].upper()
    if name[2:] in known:
        return UsageError(
            f"{command} {name}",
            f"{argument} stands alone in this command",
            f"Write {command} {argument}, and the options behind it",
        )
    return UsageError(
        f"{command} {name}",
        f"there is no such option; {nearest(name, flags)}",
        f"Type {_help_of(command, error.ctx)} for all options",
    )


def _lacking(error: click.MissingParameter, command: str, for_help: str) -> UsageError:
    lacking = error.param
    if lacking is None:
        return UsageError(command, error.message, for_help)
    if isinstance(lacking, click.Argument):
        name = lacking.human_readable_name
        return UsageError(command, f"it lacks {name}", f"Write {command} {name} ... {for_help}")
    name = lacking.opts[0]
    example = {"--axis": "--axis age=0..100 or --axis kind=a,b"}.get(
        name, f"{name} and a value after it"
    )
    return UsageError(command, f"it lacks {name}", f"Add {example}. {for_help}")


def _bad_value(error: click.BadParameter, command: str, for_help: str) -> UsageError:
    names = [] if error.param is None else error.param.opts
    name = names[0] if names else ""
    attempt = f"{command} {name}".rstrip()
    obstacle = error.message.rstrip(".")
    wrong = re.match(r"'(.*?)' is not one of ", obstacle)
    if wrong is not None and error.param is not None and isinstance(error.param.type, click.Choice):
        choices = [str(choice) for choice in error.param.type.choices]
        return UsageError(
            attempt,
            f"{wrong[1]!r} is none of its values; {nearest(wrong[1], choices)}",
            f"Write {name} and one of {', '.join(choices)}",
        )
    wanted = re.search(r" is not (an? .*)$", obstacle)
    return UsageError(attempt, obstacle, for_help if wanted is None else f"Give {wanted[1]}")


def _extra_words(extra: str, command: str, context: click.Context | None) -> UsageError:
    """Words that belong to no option: most often a value that the shell took apart."""
    # Of a word of blanks alone there is no first part.
    first = [*extra.split(), extra][0]
    attempt = f"{command} ... {shown(extra)}"
    option = first.lstrip(LONG_DASHES)
    if option != first:
        return UsageError(
            attempt,
            "it begins with a long dash, which a text processor makes of two hyphens",
            f"Write --{option}",
        )
    if ".." in extra or "=" in extra:
        return UsageError(
            attempt,
            "it stands alone, because a blank before it was not quoted",
            "Write --axis 'NAME=VALUES' with no blank around =, in quotes if NAME has one",
        )
    taken = _parameters(context)
    remedy = f"Leave it out, or write an option before it: {_help_of(command, context)} lists them"
    if any(isinstance(parameter, click.Argument) for parameter in taken):
        # The word behind the file may mean a column, a further value, or another file.
        remedy = f"Name one file, or several by a pattern in quotes, as in {command} 'data/*.csv'"
        if first.isidentifier() and any("--axis" in parameter.opts for parameter in taken):
            remedy = f"If it is a column, name it by --axis, as in --axis {first}=0..100"
        elif re.fullmatch(r"[-+.,0-9]+", first):
            remedy = "Write several values with commas and without blanks, as in 0.25,0.5"
    return UsageError(attempt, "it is one word too many", remedy)
