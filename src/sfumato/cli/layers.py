"""Help in two layers: ``--help`` fits on a screen, ``--help-all`` lists everything by group.

Whether an option is common, and so part of the screen, is stated where the option is made. In a
text of help, what follows a form feed belongs to the second layer. A command whose whole help fits
on a screen has one layer.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

import click

SCREEN_LINES = 40
SCREEN_WIDTH = 80
FORM_FEED = "\f"
HELP_ALL = "--help-all"
WITHOUT_GROUP = "Other options"

# The names of an option, and what the help says of it.
Row = tuple[str, str]


class GroupedOption(click.Option):
    """An option of a group.

    Parameters
    ----------
    group : str
        The heading above it in the second layer.
    common : bool
        Whether the first layer shows it, by the first sentence of its help. It shows each required
        option, too.
    """

    def __init__(
        self, names: list[str], *, group: str = "", common: bool = False, **settings: object
    ) -> None:
        super().__init__(names, **settings)  # type: ignore[arg-type]  # click checks them
        self.group = group or WITHOUT_GROUP
        self.is_common = common or self.required


class LayeredCommand(click.Command):
    """A command that has ``--help-all``."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters that are stated, and --help and --help-all."""
        return [*super().get_params(ctx), HELP_ALL_OPTION]

    def is_long(self, context: click.Context) -> bool:
        """Whether the whole help is longer than a screen, so that --help shows a part of it."""
        screen = click.HelpFormatter(width=SCREEN_WIDTH - 2)
        rows = self._rows(self._options(context), context)
        self._write_whole(context, screen, {"Options": rows})
        return len(screen.getvalue().splitlines()) > SCREEN_LINES

    def help_all(self, context: click.Context) -> str:
        """The second layer: the whole text, and all options by group."""
        if not self.is_long(context):
            return self.get_help(context)
        groups: dict[str, list[click.Parameter]] = {}
        for parameter in self._options(context):
            groups.setdefault(getattr(parameter, "group", WITHOUT_GROUP), []).append(parameter)
        formatter = context.make_formatter()
        rows = {group: self._rows(members, context) for group, members in groups.items()}
        self._write_whole(context, formatter, rows)
        return formatter.getvalue().rstrip("\n")

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text of the first layer."""
        text = inspect.cleandoc(self.help or "")
        before, _, _ = text.partition(FORM_FEED)
        _write_text(before if self.is_long(context) else text, formatter)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the first layer."""
        options = self._options(context)
        if not self.is_long(context):
            _write_rows("Options", self._rows(options, context), formatter)
            return
        common = [option for option in options if getattr(option, "is_common", option.is_eager)]
        rows = [(names, _first_sentence(text)) for names, text in self._rows(common, context)]
        groups = dict.fromkeys(
            option.group for option in options if isinstance(option, GroupedOption)
        )
        listed = ", ".join(group[0].lower() + group[1:] for group in groups)
        _write_rows(
            "Common options", [*rows, (HELP_ALL, f"Show all options: {listed}.")], formatter
        )

    def _options(self, context: click.Context) -> list[click.Parameter]:
        """The options but for --help-all, which no list but that of the first layer shows."""
        return [
            parameter
            for parameter in self.get_params(context)
            if isinstance(parameter, click.Option) and parameter is not HELP_ALL_OPTION
        ]

    def _rows(self, options: Iterable[click.Parameter], context: click.Context) -> list[Row]:
        records = (option.get_help_record(context) for option in options)
        return [record for record in records if record is not None]

    def _write_whole(
        self, context: click.Context, formatter: click.HelpFormatter, groups: dict[str, list[Row]]
    ) -> None:
        self.format_usage(context, formatter)
        _write_text(inspect.cleandoc(self.help or ""), formatter)
        for group, rows in groups.items():
            _write_rows(group, rows, formatter)
        self.format_epilog(context, formatter)


def _show(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and isinstance(context.command, LayeredCommand):
        click.echo(context.command.help_all(context))
        context.exit()


HELP_ALL_OPTION = click.Option(
    [HELP_ALL], is_flag=True, is_eager=True, expose_value=False, callback=_show
)


class LayeredGroup(click.Group):
    """A group whose commands have ``--help-all``."""

    command_class = LayeredCommand


def _write_text(text: str, formatter: click.HelpFormatter) -> None:
    paragraphs = [part.strip("\n") for part in text.split(FORM_FEED)]
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text("\n\n".join(paragraphs))


def _write_rows(heading: str, rows: list[Row], formatter: click.HelpFormatter) -> None:
    with formatter.section(heading):
        # A longer name, such as one with all its choices, has a line of its own.
        formatter.write_dl(rows, col_max=25)


def _first_sentence(text: str) -> str:
    """Return the first sentence of a help, and what stands in brackets at its end.

    >>> _first_sentence("The cost, such as 0.5. Less protects better.  [default: 1]")
    'The cost, such as 0.5.  [default: 1]'
    """
    sentence = re.split(r"(?<=\.)\s+(?=[\"A-Z])|  \[", text, maxsplit=1)[0]
    brackets = re.findall(r"  \[[^][]*\]", text)
    return "".join([sentence, *brackets])
