"""What click refuses, in the three parts of our own errors: asked, obstacle, what to type."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from sfumato.errors import UsageError, nearest, shown

LONG_DASHES = "—–−"
OF_A_PLAN = ("sfumato release", "sfumato preview")
IN_A_PLAN = {
    "--account": "account under [budget]",
    "--budget": "epsilon or rho under [budget]",
    "--epsilon": "epsilon under [release]",
    "--rho": "rho under [release]",
    "--delta": "delta under [release]",
    "--axis": "the axis under [domain]",
    "--person": "person under [source]",
    "--rows-per-person": "rows_per_person under [source]",
    "--neighbours": "neighbours under [source]",
    "--where": "the condition under [source.where]",
    "--data-version": "version under [source]",
    "--bins": "bins under [[questions]]",
    "--width": "width under [[questions]]",
}
"""What other commands have options for, and a plan has fields for."""


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
    command = " ".join(["sfumato", *words]) if context is None else str(context.command_path)
    for_help = f"Type {command} --help for all that it takes"
    match error:
        case click.NoSuchOption():
            found = _unknown_option(error, args, command)
        case click.BadOptionUsage():
            asked = f"{command} {error.option_name}"
            remedy = f"Write the value behind it. {for_help}"
            found = UsageError(asked, "a value must follow it", remedy)
        case click.MissingParameter():
            found = _lacking(error, command, for_help)
        case click.BadParameter():
            found = _bad_value(error, command, for_help)
        case _:
            found = _of_message(error, context, command)
    return found


def _of_message(
    error: click.ClickException, context: click.Context | None, command: str
) -> UsageError:
    """The error of which click says only by its text what it is."""
    extra = re.match(r"Got unexpected extra arguments? \((.*)\)", error.message, re.S)
    if extra is not None:
        return _extra_words(extra[1], command, context)
    word = re.match(r"No such command '(.*)'", error.message, re.S)
    if word is not None and context is not None and isinstance(context.command, click.Group):
        return unknown_command(word[1], context.command.list_commands(context), command)
    for_help = f"Type {command} --help for all that it takes"
    return UsageError(command, error.message.rstrip("."), for_help)


def unknown_command(name: str, known: Sequence[str], path: str) -> UsageError:
    """The error of a command that there is not."""
    return UsageError(
        f"{path} {name}",
        f"there is no such command; {nearest(name, known)}",
        f"Type {path} --help for the list",
    )


def _options(error: click.UsageError) -> list[str]:
    context = error.ctx
    if context is None:
        return []
    names = [name for each in context.command.get_params(context) for name in each.opts]
    return [name for name in names if name.startswith("-")]


def _unknown_option(error: click.NoSuchOption, args: Sequence[str], command: str) -> UsageError:
    known = _options(error)
    name = error.option_name
    # click reads -epsilon as -e and what follows it.
    for word in args:
        if re.match(rf"{re.escape(name)}[A-Za-z]", word) and not word.startswith("--"):
            long = f"-{word.partition('=')[0]}"
            near = long if long in known else "--epsilon"
            asked = f"{command} {word}"
            return UsageError(asked, "one hyphen stands before it", f"Write {near}, with two")
    if name == "--preview":
        obstacle = "of the commands that ask one question, only sfumato histogram has this option"
        remedy = "Write a plan with sfumato init, and type: sfumato preview PLAN.toml"
        return UsageError(f"{command} {name}", obstacle, remedy)
    if name in IN_A_PLAN and command in OF_A_PLAN:
        obstacle = "the plan says it, so that it can be read and agreed on beforehand"
        return UsageError(f"{command} {name}", obstacle, f"Write {IN_A_PLAN[name]} in the plan")
    obstacle = f"there is no such option; {nearest(name, known)}"
    return UsageError(f"{command} {name}", obstacle, f"Type {command} --help for all options")


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
    name = error.param.opts[0] if error.param is not None and error.param.opts else ""
    asked = f"{command} {name}".rstrip()
    obstacle = error.message.rstrip(".")
    wrong = re.match(r"'(.*?)' is not one of ", obstacle)
    if wrong is not None and error.param is not None and isinstance(error.param.type, click.Choice):
        choices = [str(choice) for choice in error.param.type.choices]
        obstacle = f"{wrong[1]!r} is none of its values; {nearest(wrong[1], choices)}"
        return UsageError(asked, obstacle, f"Write {name} and one of {', '.join(choices)}")
    wanted = re.search(r" is not (an? .*)$", obstacle)
    remedy = for_help if wanted is None else f"Give {wanted[1]}"
    return UsageError(asked, obstacle, remedy)


def _extra_words(extra: str, command: str, context: click.Context | None) -> UsageError:
    """Words that belong to no option: most often a value that the shell took apart."""
    first = extra.split(maxsplit=1)[0] if extra.split() else extra
    asked = f"{command} ... {shown(extra)}"
    if first[0] in LONG_DASHES:
        obstacle = "it begins with a long dash, which a text processor makes of two hyphens"
        return UsageError(asked, obstacle, f"Write --{first.lstrip(LONG_DASHES)}")
    if ".." in extra or "=" in extra:
        obstacle = "it stands alone, because a blank before it was not quoted"
        remedy = "Write --axis 'NAME=VALUES' with no blank around =, in quotes if NAME has one"
        return UsageError(asked, obstacle, remedy)
    obstacle = "it is one word too many"
    taken = [] if context is None else context.command.get_params(context)
    if not any(isinstance(each, click.Argument) for each in taken):
        remedy = f"Leave it out, or write an option before it: {command} --help lists them"
        return UsageError(asked, obstacle, remedy)
    remedy = f"Name one file, or several by a pattern in quotes, as in {command} 'data/*.csv'"
    return UsageError(asked, obstacle, remedy)
