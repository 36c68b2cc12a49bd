"""Options that several commands share, so that they read and mean the same everywhere.

First stand types of option values that click itself does not read strictly enough; last, the
options of commands that have an engine count: ``--engine spark``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, cast

import click
import msgspec

from sfumato.basics import MOST_DIGITS, float_of_text, kind_of, whole_of_text
from sfumato.cli.layers import GroupedOption
from sfumato.cli.output import print_messages
from sfumato.cli.paths import FileOrFolder, NewFile, NewFolder, Picture, SourceFile
from sfumato.data.options import StatedOptions
from sfumato.errors import UsageError, shown
from sfumato.ledger import Ledger, open_ledger
from sfumato.ledger.book import open_to_charge

if TYPE_CHECKING:
    from sfumato.data.readers.spark import SparkFiles


# --- types of values ------------------------------------------------------------------------------


class Reading(click.ParamType):  # type: ignore[type-arg]  # before click 8.4 it takes no parameter
    """Text that a function reads, or refuses by returning None.

    Click's own numbers accept underscores and the digits of every script.
    """

    def __init__(self, name: str, read: Callable[[str], object], wanted: str) -> None:
        self.name = name
        self.read = read
        self.wanted = wanted

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Read a value from the command line; one that is read already passes as it is."""
        read = self.read(value) if isinstance(value, str) else value
        if read is None:
            digits = f" of at most {MOST_DIGITS} digits" if len(str(value)) > MOST_DIGITS else ""
            self.fail(f"{shown(value)} is not {self.wanted}{digits}.", param, ctx)
        return read


class Several(Reading):
    """Values separated by commas."""

    def __init__(self, part: click.ParamType[object]) -> None:
        super().__init__(part.name, str, "a list")
        self.part = part

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[object, ...]:
        parts = value.split(",") if isinstance(value, str) else [value]
        stripped = (part.strip() if isinstance(part, str) else part for part in parts)
        return tuple(self.part.convert(part, param, ctx) for part in stripped)


class LedgerPlace(click.ParamType):  # type: ignore[type-arg]  # as above
    """Where a ledger is: the path of a file, or the address of a database."""

    name = "path"

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | Path:
        """Leave an address as it is: a path would join its slashes."""
        text = os.fspath(value)
        return Path(text) if kind_of(text) is None else text


INTEGER = Reading("integer", whole_of_text, "a whole number")
FLOAT = Reading("float", float_of_text, "a finite number")
LEDGER = LedgerPlace()


# --- options --------------------------------------------------------------------------------------

Options = TypeVar("Options", bound=msgspec.Struct)
P = ParamSpec("P")
R = TypeVar("R")
Run: TypeAlias = Callable[..., object]
Decorated = TypeVar("Decorated", bound=Run)

# The groups of options, as --help-all names them.
COLUMNS = "Columns"
PERSONS = "Persons"
WRITTEN = "File format"
QUESTION = "Question"
COST = "Privacy cost"
ACCOUNT = "Ledger"
OUTPUT = "Output"
ENGINE = "Engine"

AXIS_HELP = (
    "A column and what is public about it: age=0..120, ward=Surgery,Medicine or shop=*; "
    "repeat for each column. "
    "Whole numbers: absences=0..13/1, where 1 is the step: 0 to 12, each in a bin of its own. "
    "Dates: day=2025-01-01..2026-01-01. "
    "Labels: ward=Surgery,Medicine, or shop=* if you cannot list them. "
    'Write a label with a comma as "a, b". '
    "Months of a column of dates: m=month:day:2025-01..2025-12; likewise week and year, and "
    "weekday:COLUMN or hour:COLUMN. Behind COLUMN a time zone may stand: h=hour:at:Europe/Berlin. "
    "With ,missing behind numbers, missing values have a bin of their own."
)
PERSON_HELP = "Column that identifies the person of each row.  [default: each row is one person]"
PERSONS_HELP = (
    "Column that identifies the person of each row. Repeat it with a column of dates to protect a "
    "person on one day.  [default: each row is one person]"
)
PERSON_CALLED_HELP = (
    "What sentences call a person, such as rider. It costs nothing.  [default: person]"
)
ROWS_PER_PERSON_HELP = (
    "Largest number of rows of one person that are counted. "
    "Of a person with more rows, so many are chosen at random (contribution bound)."
)
NEIGHBOURS_HELP = (
    "What is protected: add-remove hides whether a person is in the table; "
    "replace hides only what their rows say."
)
WHERE_HELP = (
    "Condition on an axis: only rows that satisfy it are counted. Labels: ward=Surgery,Medicine. "
    "Numbers or dates: age=18..65, from 18 to below 65; one of the two may be left out. "
    "Repeat for each axis; a row must satisfy all. The question is about the axes without a "
    "condition, if there are any."
)
DEFAULT_ACCOUNT = "default"


def gathers(
    kind: type[Options],
) -> Callable[[Callable[Concatenate[Options, P], R]], Callable[P, R]]:
    """Pass a command some of its options as one value, its first parameter.

    Parameters
    ----------
    kind : type
        A struct whose fields are named like the options to gather. A field that is a struct itself
        gathers those that are named like its own fields. Where a command has no such option, a
        field keeps its default.
    """

    def decorate(command: Callable[Concatenate[Options, P], R]) -> Callable[P, R]:
        @functools.wraps(command)
        def run(*args: P.args, **given: P.kwargs) -> R:
            return command(_taken(given, kind), *args, **given)

        return run

    return decorate


def _taken(given: dict[str, object], kind: type[Options]) -> Options:
    """Take the fields of a struct out of the options that are given, and make it of them.

    Click has read and checked the values, so nothing is converted here: msgspec converts no field
    that may be a text or a path.
    """
    fields: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            fields[field.name] = _taken(given, field.type)
        elif field.required or field.name in given:
            fields[field.name] = given.pop(field.name)
    return kind(**fields)


def option_names(kind: type[msgspec.Struct]) -> Iterator[str]:
    """Yield the names of the options that a struct gathers."""
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from option_names(field.type)
        else:
            yield field.name


def grouped(*options: Callable[[Run], Run]) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds several options to a command, in the order of --help."""

    def decorate(command: Decorated) -> Decorated:
        decorated: Run = command
        # A decorator that runs last stands first in --help.
        for add in reversed(options):
            decorated = add(decorated)
        return cast("Decorated", decorated)

    return decorate


def option(
    *names: str, group: str = "", common: bool = False, **settings: object
) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds a ``GroupedOption`` to a command."""
    return click.option(*names, cls=GroupedOption, group=group, common=common, **settings)


def parameters(*options: Callable[[Run], Run]) -> list[click.Parameter]:
    """Return the parameters that decorators add to a command, in the order of --help."""
    holder = click.Command(None)
    grouped(*options)(holder)
    return holder.params[::-1]


# --- output ---

json_option = option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON on stdout instead of text.",
    group=OUTPUT,
    common=True,
)
json_ignored_option = option(
    "--json",
    is_flag=True,
    expose_value=False,
    group=OUTPUT,
    common=True,
    help="Changes nothing: the output is JSON in any case.",
)
report_option = option(
    "--report",
    "page",
    type=NewFile(),
    help="Also write one HTML page to this file.",
    group=OUTPUT,
    common=True,
)
# --out, --csv and --excel: see ``AnswerFiles``.
files_options = grouped(
    option(
        "--out",
        type=NewFolder(),
        help="Also save each release as JSON in this folder, for sfumato report.",
        group=OUTPUT,
        common=True,
    ),
    option(
        "--csv",
        type=FileOrFolder(".csv"),
        help="Also write the numbers to this CSV file. Of several tables: a folder, with a file "
        "for each.",
        group=OUTPUT,
        common=True,
    ),
    option(
        "--excel",
        type=FileOrFolder(".xlsx"),
        help="Also write this Excel workbook. Of several answers: a folder, with a workbook for "
        "each.",
        group=OUTPUT,
        common=True,
    ),
)


def plot_option(what: str = "the answer") -> Callable[[Decorated], Decorated]:
    """Return --plot; ``what`` is the object of the sentence, singular or plural."""
    return option(
        "--plot",
        type=Picture(),
        help=f"Also draw {what}: a .svg, .png or .pdf file.",
        group=OUTPUT,
        common=True,
    )


# --heading, --measured-in and --label-name: what people are shown.
words_options = grouped(
    option(
        "--heading",
        help="Title of the answer for people.  [default: the question]",
        group=OUTPUT,
    ),
    option(
        "--measured-in",
        help="Unit of measure of the values for people, such as minutes.",
        group=OUTPUT,
    ),
    option(
        "--label-name",
        multiple=True,
        group=OUTPUT,
        help="Name of a label for people, such as WN=Southwest. Repeat for each label.",
    ),
)


# --- ledger ---------------------------------------------------------------------------------------


def _keep(context: click.Context, option: click.Parameter, value: object) -> None:
    context.meta[f"sfumato {option.name}"] = value


DEFAULT_LEDGER = Path("sfumato.db")
ledger_option = option(
    "--ledger",
    type=LEDGER,
    default=DEFAULT_LEDGER,
    envvar="SFUMATO_LEDGER",
    show_default=True,
    group=ACCOUNT,
    help="File that records what was spent, or a PostgreSQL database such as "
    "postgresql://host/database. The environment variable SFUMATO_LEDGER sets it too.",
)
# --fresh and --stored: what to do about an answer that was paid for.
paid_options = grouped(
    option(
        "--fresh",
        is_flag=True,
        group=ACCOUNT,
        help="Pay again and draw new noise, even if the answer is stored.",
    ),
    option(
        "--stored",
        is_flag=True,
        group=ACCOUNT,
        help="Show the newest stored answer with its day, even if the data changed; pay nothing.",
    ),
)
# --ledger and --anchor, for commands that write to the ledger or verify it.
anchored_option = grouped(
    ledger_option,
    option(
        "--anchor",
        group=ACCOUNT,
        type=click.Path(path_type=Path),
        envvar="SFUMATO_ANCHOR",
        expose_value=False,
        callback=_keep,
        help="File that records the ledger's last entry, to detect that an older copy of the "
        "ledger was put back. Best on another disk. "
        "The environment variable SFUMATO_ANCHOR sets it too.",
    ),
)
# --ledger, --anchor and --spender, for commands that pay for releases.
charged_option = grouped(
    anchored_option,
    option(
        "--spender",
        group=ACCOUNT,
        envvar="SFUMATO_SPENDER",
        expose_value=False,
        callback=_keep,
        help="Who spends, if the account has spenders. A server knows you by your role. "
        "The environment variable SFUMATO_SPENDER sets it too.",
    ),
)


def _kept() -> tuple[Path | None, str | None]:
    """Return the values of --anchor and --spender."""
    meta = click.get_current_context().meta
    return meta.get("sfumato anchor"), meta.get("sfumato spender")


def opened(ledger: str | Path, *, create: bool = False) -> Ledger:
    """Open the ledger of the running command, with its anchor, for its spender."""
    anchor, spender = _kept()
    return open_ledger(ledger, create=create, anchor=anchor, spender=spender)


def opened_to_charge(ledger: str | Path) -> Ledger:
    """Open the ledger that pays for what the running command publishes."""
    if isinstance(ledger, Path) and not ledger.exists():
        click.get_current_context().call_on_close(lambda: _say_if_made(ledger))
    anchor, spender = _kept()
    return open_to_charge(ledger, anchor=anchor, spender=spender)


def _say_if_made(ledger: Path) -> None:
    """Say that a ledger is new, if the command made it."""
    if ledger.exists():
        print_messages(f"The ledger {ledger} is new: it knows of nothing that was spent before.")


# --- cost -----------------------------------------------------------------------------------------


cost_options = grouped(
    option(
        "--epsilon",
        group=COST,
        common=True,
        help="Privacy cost, such as 0.5; a smaller one protects better. The noise is Laplace.",
    ),
    option(
        "--rho",
        group=COST,
        help="Instead of --epsilon: the cost in zero-concentrated differential privacy, with "
        "Gaussian noise.",
    ),
    option(
        "--delta",
        group=COST,
        default="0",
        show_default=True,
        help="With --epsilon, for columns declared NAME=*: the probability, such as 1e-6, "
        "with which the protection may fail.",
    ),
)


# --- source and account ---------------------------------------------------------------------------


def _date_formats(
    _: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> str | dict[str, str] | None:
    """Return one format, or one of each column; a format begins with no name and equals sign."""
    if not texts:
        return None
    if len(texts) == 1 and ("=" not in texts[0] or texts[0].startswith("%")):
        return texts[0]
    named = [text.partition("=") for text in texts]
    if not all(name and equals for name, equals, _ in named):
        raise UsageError(
            "--date-format several times",
            "one of them names no column",
            'Write --date-format day="%d.%m.%Y" for each column of dates',
        )
    return {name: text for name, _, text in named}


WRITTEN_HELP = {
    "separator": 'CSV: the sign between fields, such as ";" or tab.  [default: a comma]',
    "decimal": 'CSV: "," if numbers are written 1,5.  [default: a point]',
    "thousands": 'CSV: "." if numbers are written 1.234.  [default: nothing]',
    "encoding": "CSV: such as cp1252 or utf-16.  [default: utf-8]",
    "date_format": 'How dates are written, such as "%d.%m.%Y", or NAME=FORMAT for one column; '
    "repeat for others.  [default: ISO, 2026-11-22]",
    "sheet": "Excel: the sheet to read.  [default: the only one]",
    "header_row": "CSV or Excel: the line or row that names the columns.  [default: 1]",
}


_WRITTEN = {
    field.name: option(
        f"--{field.name.replace('_', '-')}",
        type=INTEGER if field.type == int | None else click.STRING,
        multiple=field.name == "date_format",
        callback=_date_formats if field.name == "date_format" else None,
        help=WRITTEN_HELP[field.name],
        group=WRITTEN,
    )
    for field in msgspec.structs.fields(StatedOptions)
}
# --separator and all else that says how a file is written.
written_options = grouped(*_WRITTEN.values())
# The same for commands that read text alone.
text_options = grouped(*(option for name, option in _WRITTEN.items() if name != "sheet"))


def rows_per_person_option(help_text: str) -> Callable[[Decorated], Decorated]:
    """Return the option of the only limit on a person that a command has."""
    return option(
        "--rows-per-person",
        group=PERSONS,
        common=True,
        type=INTEGER,
        default=1,
        show_default=True,
        help=help_text,
    )


def neighbours_option(help_text: str = NEIGHBOURS_HELP) -> Callable[[Decorated], Decorated]:
    """Return the option of what one person changes."""
    return option(
        "--neighbours",
        group=PERSONS,
        type=click.Choice(["add-remove", "replace"]),
        default="add-remove",
        show_default=True,
        help=help_text,
    )


# The limits on a person, for commands that count the rows of a file.
limit_options = grouped(
    option(
        "--rows-per-person",
        type=INTEGER,
        help=f"{ROWS_PER_PERSON_HELP} Another limit may stand instead.  [default: 1]",
        group=PERSONS,
        common=True,
    ),
    option(
        "--rows-per-cell",
        type=INTEGER,
        help="Contribution bound: the largest number of rows of one person that are counted in a "
        "cell.",
        group=PERSONS,
    ),
    option(
        "--cells-per-person",
        type=INTEGER,
        help="Contribution bound: the largest number of cells in which a person is counted; of "
        "more, so many are chosen at random.",
        group=PERSONS,
    ),
    option(
        "--norm-per-person",
        type=INTEGER,
        help="Contribution bound on the L2 norm of a person's counts, which the noise of --rho "
        "follows: rows beyond it are left out at random.",
        group=PERSONS,
    ),
)


def source_options(
    *, has_file: bool = True, has_axes: bool = True
) -> Callable[[Decorated], Decorated]:
    """Return FILE, its axes and its persons, for commands that ask about one file.

    Parameters
    ----------
    has_file, has_axes : bool
        Whether a file and axes must be given.
    """
    return grouped(
        click.argument("file", type=SourceFile(), required=has_file),
        option(
            "--axis",
            "axes",
            multiple=True,
            required=has_axes,
            help=AXIS_HELP,
            group=COLUMNS,
            common=True,
        ),
        option("--where", multiple=True, help=WHERE_HELP, group=COLUMNS),
        option("--person", multiple=True, help=PERSONS_HELP, group=PERSONS, common=True),
        option("--person-called", help=PERSON_CALLED_HELP, group=PERSONS),
        limit_options,
        neighbours_option(),
        option(
            "--data-version",
            help="Version of the data, such as 2 or 2026-11. Give a new one when the data change: "
            "stored answers of other versions are not used.",
            group=COLUMNS,
        ),
        written_options,
    )


account_option = option(
    "--account",
    default=DEFAULT_ACCOUNT,
    show_default=True,
    help="Account in the ledger that pays. Tables about the same persons share one; name another "
    "for other persons, who otherwise share the budget of this one.",
    group=ACCOUNT,
)
account_options = grouped(
    account_option,
    option(
        "--budget",
        help="The most that the account may ever spend; needed when it is new. Write EPSILON, or "
        "EPSILON,DELTA, or rho=RHO; with --rho, a rho.",
        group=ACCOUNT,
        common=True,
    ),
)


# --- engines --------------------------------------------------------------------------------------


class EngineSettings(msgspec.Struct, frozen=True):
    """What counts the rows, and where it runs."""

    engine: Literal["spark"] | None
    master: str | None
    remote: str | None

    @contextmanager
    def opened(self, path: str) -> Iterator[SparkFiles | None]:
        """The Parquet files at a path as the engine's table; None without an engine."""
        if self.engine is None:
            if self.master is not None or self.remote is not None:
                raise UsageError(
                    "--master or --remote", "they are about Spark", "Add --engine spark"
                )
            yield None
            return
        from sfumato.data.readers.spark import SparkFiles, opened_session

        with opened_session(self.master, self.remote) as session:
            yield SparkFiles(path, session)


engine_options = grouped(
    option(
        "--engine",
        group=ENGINE,
        type=click.Choice(["spark"]),
        help="What counts the rows of Parquet files.  [default: this program]",
    ),
    option(
        "--master",
        group=ENGINE,
        metavar="URL",
        help="Where Spark runs, such as local[2] or yarn.  [default: as Spark is configured]",
    ),
    option(
        "--remote",
        group=ENGINE,
        metavar="URL",
        help="A Spark Connect server, such as sc://host:15002.",
    ),
)
