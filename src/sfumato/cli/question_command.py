"""Commands made from questions: one option for each field.

Each question of the library or of an installed package is a command this way, unless a command
was written for it by hand.

At the end stand four that are written by hand: ``sfumato cluster``, centres of clusters over
numeric columns of one file; ``sfumato persons``, how many persons are in one file, and how many
rows each has; ``sfumato quantiles``, quantiles of numeric columns of one file; and ``sfumato
tables``, several tables of one file that add up.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

import click
import msgspec
import pyarrow as pa
from msgspec.inspect import (
    BoolType,
    CollectionType,
    CustomType,
    DecimalType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    StrType,
    TupleType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)
from msgspec.structs import FieldInfo

from sfumato.answers import AnyQuestion, Release
from sfumato.cli.options import (
    FLOAT,
    INTEGER,
    Reading,
    Several,
    answer_options,
    bin_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.parsing import parse_bins, parse_clip, parse_totals, parse_widths
from sfumato.cli.publishing import AnswerFiles, Forms, PublishSettings, made, publish
from sfumato.data.options import StatedOptions
from sfumato.domain import Domain, Interval, Keys
from sfumato.errors import UsageError
from sfumato.questions.clustering import KMeans
from sfumato.questions.clustering.kmeans import Method
from sfumato.questions.persons import Persons
from sfumato.questions.persons.measured import Of
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.tables import Tables, TablesRelease

# --- commands from questions ----------------------------------------------------------------------

AXIS_FIELDS = ("axes", "axis")
"""The fields that --axis fills."""
TAKEN = {
    *PublishSettings.__struct_fields__,
    *AnswerFiles.__struct_fields__,
    *StatedOptions.__struct_fields__,
    *("anchor", "axis", "help", "json"),
}
"""The names of options that every such command has, which no field can take."""


def command_of(name: str, kind: type[AnyQuestion], short_help: str = "") -> click.Command:
    """The command that asks a question about one file.

    Parameters
    ----------
    name : str
    kind : type of Question
    short_help : str
        What the command does, in one sentence. Empty: the first sentence of the question.

    Raises
    ------
    UsageError
        If the question cannot be asked without a field that has no option.
    """
    summary, texts = described(inspect.getdoc(kind) or "")
    forms = _option_forms(name, kind)

    def ask(settings: PublishSettings, **given: object) -> None:
        domain = settings.domain()
        fields = {field: value for field, value in given.items() if value not in (None, ())}
        # An axis that another option names, such as --by, is not what the question is about.
        named = {
            axis
            for field, value in fields.items()
            if forms[field].reads is click.STRING
            for axis in _as_tuple(value)
        }
        subject = tuple(axis for axis in settings.subject(domain) if axis not in named)
        publish(settings, domain, made(kind, fields | _axis_field(kind, subject)))

    own = [
        _option(field, forms[field.name], texts)
        for field in msgspec.structs.fields(kind)
        if field.name in forms
    ]
    given = "".join(f" {each.opts[0]} age" for each in own if _names_an_axis(each))
    # click keeps the lines of a paragraph that begins with \b as they are.
    example = (
        f"\b\nExample:\n  sfumato {name} FILE --axis age=0..100{given} \\\n"
        "    --epsilon 0.5 --budget 2"
    )
    begins = short_help or summary
    return click.Command(
        name,
        params=[*_source_options.params, *own, *_answer_options.params],
        callback=gathers(PublishSettings)(ask),
        help=f"{begins}\n\n{example}",
        short_help=short_help or summary,
    )


@click.command()
@source_options()
def _source_options() -> None:
    """Holds the options that stand before those of a question; never run."""


@click.command()
@cost_options
@answer_options()
@json_option
def _answer_options() -> None:
    """Holds the options that stand after them; never run."""


# --- fields as options ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How a field is written as an option.

    Attributes
    ----------
    reads : click.ParamType
        What the text of the option is read as.
    several : bool
        Whether the option is a list, separated by commas or repeated.
    flag : bool
        Whether the name alone says it: --name or --no-name.
    hint : str
        How it is written, for the help.
    """

    reads: click.ParamType[object]
    several: bool = False
    flag: bool = False
    hint: str = ""


SCALARS: Mapping[type[Type], Form] = {
    BoolType: Form(click.BOOL, flag=True),
    DecimalType: Form(click.STRING),
    FloatType: Form(FLOAT),
    IntType: Form(INTEGER),
    StrType: Form(click.STRING),
}


CLIP_TYPE = type_info(float | tuple[float, float] | Literal["auto"] | None)
CLIP = Form(
    Reading("clip", parse_clip, "a number, LOW:HIGH or auto"),
    hint="Write 200, 0:200 or auto.",
)


def form_of(kind: Type) -> Form | None:
    """How values of a type are written on a command line; None if they cannot be.

    >>> form_of(type_info(int | None)).reads.name
    'integer'
    >>> form_of(type_info(dict[str, int])) is None
    True
    """
    if kind == CLIP_TYPE:
        return CLIP
    if isinstance(kind, UnionType):
        return _form_of_union(kind)
    if isinstance(kind, ListType | VarTupleType | CollectionType):
        form = form_of(kind.item_type)
        is_scalar = form is not None and not form.several and not form.flag
        return replace(form, several=True) if form is not None and is_scalar else None
    if isinstance(kind, LiteralType) and all(isinstance(value, str) for value in kind.values):
        return Form(click.Choice([str(value) for value in kind.values]))
    if isinstance(kind, CustomType) and kind.cls is Fraction:
        # Text, because a float would be rounded before the question is made.
        return Form(click.STRING)
    return SCALARS.get(type(kind))


def _form_of_union(kind: UnionType) -> Form | None:
    """The one form in which all types of a union can be written, if there is one."""
    if any(isinstance(each, TupleType) for each in kind.types):
        # A tuple is one value of several parts, and an option reads one part only.
        return None
    forms = [form for each in kind.types if (form := form_of(each)) is not None]
    # A single value is a list of one, so that a list is the form for both.
    if any(form.several for form in forms):
        forms = [form for form in forms if form.several]
    reads = {form.reads for form in forms}
    if len(reads) == 1:
        return forms[0]
    if any(form.flag for form in forms):
        return None
    if click.STRING in reads:
        return Form(click.STRING, forms[0].several)
    if reads == {INTEGER, FLOAT}:
        return Form(FLOAT, forms[0].several)
    return None


def _option_forms(name: str, kind: type[AnyQuestion]) -> dict[str, Form]:
    """The fields that become options, by name; the others can be set in a plan only.

    Raises
    ------
    UsageError
        If a field without a default cannot be an option.
    """
    found = {}
    for field in msgspec.structs.fields(kind):
        if field.name in AXIS_FIELDS:
            continue
        form = None if field.name in TAKEN else form_of(type_info(field.type))
        if form is not None:
            found[field.name] = form
        elif field.required:
            obstacle = f"its field {field.name!r} cannot be written as an option"
            remedy = "Ask this question in a plan, or from Python"
            raise UsageError(f"the command {name!r}", obstacle, remedy)
    return found


def _option(field: FieldInfo, form: Form, texts: Mapping[str, str]) -> click.Option:
    """The option of a field. Left out, the field keeps the default of the question."""
    option_name = f"--{field.name.replace('_', '-')}"
    # What the docstring says of None is what holds without the option.
    help_text = texts.get(field.name, "").replace("None: ", "Without it, ")
    help_text = f"{help_text} {form.hint}".strip()
    if isinstance(field.default, str | int | float | Fraction):
        help_text = f"{help_text}  [default: {field.default}]".strip()
    if form.flag:
        return click.Option(
            [f"{option_name}/--no-{option_name[2:]}", field.name],
            default=None,
            required=field.required,
            help=help_text,
        )
    if form.several:
        return click.Option(
            [option_name, field.name],
            multiple=True,
            type=Several(form.reads),
            callback=_joined,
            required=field.required,
            help=help_text,
        )
    return click.Option(
        [option_name, field.name], type=form.reads, required=field.required, help=help_text
    )


def _names_an_axis(option: click.Option) -> bool:
    """Whether an option must be given, and holds text: then the text is most likely an axis."""
    return option.required and option.type.name == "text"


def _joined(
    _: click.Context,
    __: click.Parameter,
    given: tuple[tuple[object, ...], ...],
) -> tuple[object, ...]:
    """The lists of a repeated option as one list."""
    return tuple(value for values in given for value in values)


def _as_tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _axis_field(kind: type[AnyQuestion], subject: tuple[str, ...]) -> dict[str, object]:
    """The field that names the axes that the question is about, with those axes."""
    for field in msgspec.structs.fields(kind):
        form = form_of(type_info(field.type)) if field.name in AXIS_FIELDS else None
        if form is None or (not subject and not field.required):
            continue
        if form.several:
            return {field.name: subject}
        if len(subject) != 1:
            obstacle = f"it is about one axis, and {len(subject)} are left for it"
            remedy = "Declare one --axis that no other option names"
            raise UsageError(f"asking a {kind.__name__}", obstacle, remedy)
        return {field.name: subject[0]}
    return {}


# --- what the docstring says ----------------------------------------------------------------------


def described(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and what its section "Parameters" says of each name.

    >>> parameters = "Parameters\\n----------\\na, b : int\\n    Two ``numbers``,\\n    or none."
    >>> described(f"How many?\\n\\n{parameters}")
    ('How many?', {'a': 'Two numbers, or none.', 'b': 'Two numbers, or none.'})
    """
    doc = doc.replace("``", "")
    summary, _, rest = doc.partition("\n\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    _, heading, section = rest.partition("Parameters\n----------\n")
    for line in section.splitlines() if heading else []:
        entry = re.match(r"(\w+(?:, \w+)*) : ", line)
        if entry is not None:
            names = entry[1].split(", ")
        elif line.startswith(" "):
            texts |= {name: f"{texts.get(name, '')} {line.strip()}".strip() for name in names}
        elif line:
            break
    return " ".join(summary.split()), texts


# --- sfumato cluster ------------------------------------------------------------------------------


@click.command(short_help="Publish centres of clusters.")
@source_options()
@click.option(
    "--clusters", type=INTEGER, default=5, show_default=True, help="Number of clusters to find."
)
@click.option(
    "--method",
    type=click.Choice(get_args(Method)),
    default="auto",
    show_default=True,
    help="Algorithm: a noisy grid (eugkm), noisy Lloyd steps (dplloyd), a noisy tree (privtree); "
    "auto chooses by the number of columns and a noisy number of rows.",
)
@cost_options
@answer_options()
@json_option
@gathers(PublishSettings)
def cluster(settings: PublishSettings, clusters: int, method: Method) -> None:
    """Publish the centres and sizes of clusters of the rows of FILE, by k-means.

    FILE is Parquet, CSV or Excel. The columns are numeric. Each is scaled by its bounds before
    distances are measured.

    \b
    Example:
      sfumato cluster people.parquet --axis age=0..100 --axis wage=0..2000 \\
        --clusters 4 --epsilon 1 --budget 2
    """
    domain = settings.domain()
    publish(settings, domain, KMeans(clusters, settings.subject(domain), method=method))


# --- sfumato persons ------------------------------------------------------------------------------


@click.command(short_help="Publish how many rows each person has.")
@source_options(optional_axes=True)
@click.option(
    "--of",
    type=click.Choice(get_args(Of)),
    default="rows",
    show_default=True,
    help="What is measured of each person: the rows; or, in the cells of the columns given by "
    "--axis, the number of cells, the L2 norm of the person's counts, or the rows in the cell that "
    "has most of them.",
)
@click.option(
    "--bins",
    multiple=True,
    help="With --of: bins of a numeric column, as for sfumato histogram.",
)
@click.option(
    "--most-rows",
    type=INTEGER,
    help="Public bound: nobody has more rows than this. Without it the share of rows that a limit "
    "keeps is not known.",
)
@cost_options
@answer_options()
@json_option
@gathers(PublishSettings)
def persons(
    settings: PublishSettings, most_rows: int | None, of: Of, bins: tuple[str, ...]
) -> None:
    """Publish how many persons are in FILE, and how many rows each has.

    FILE is Parquet, CSV or Excel. The answer says, for every limit on rows per person, how many
    persons have more rows, and which share of the rows the limit keeps. Choose --rows-per-person
    of later answers by it. With --of, the answer is about the limits that hold in the cells of
    one table.

    \b
    Example:
      sfumato persons flights.parquet --person tailnum --most-rows 1000 \\
        --epsilon 0.3 --budget 2

    \b
    How large the counts of a person are, for --norm-per-person:
      sfumato persons flights.parquet --person tailnum --most-rows 1000 \\
        --of norm --axis hour=0..24/1 --rho 0.05 --budget 1
    """
    if not settings.person:
        raise UsageError(
            "sfumato persons",
            "no column was named that identifies the person behind a row",
            "Give --person NAME",
        )
    # No axis is counted. Without one, the person column stands in for the domain of the source.
    domain = settings.domain() if settings.axes else Domain({settings.person[0]: Keys()})
    if of != "rows" and not settings.axes:
        raise UsageError(
            f"sfumato persons --of {of}",
            "it is measured in cells, and no column says which",
            "Give --axis for each column of the table",
        )
    table = None if of == "rows" else settings.subject(domain)
    publish(settings, domain, Persons(most_rows, of, table, parse_bins(bins)))


# --- sfumato quantiles ----------------------------------------------------------------------------


@click.command(short_help="Publish quantiles.")
@source_options()
@click.option(
    "--at",
    default="0.25,0.5,0.75",
    show_default=True,
    help="The quantiles, as increasing shares of the rows between 0 and 1, separated by commas.",
)
@click.option(
    "--by",
    help="Column of labels, declared by --axis NAME=a,b,c: the quantiles of each label's rows."
    "  [default: of all rows]",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "joint", "recursive", "tree"]),
    default="auto",
    show_default=True,
    help="Algorithm: all at once (joint), one after another by halving (recursive), from noisy "
    "counts (tree); auto chooses by the number of quantiles.",
)
@cost_options
@answer_options("the answers")
@json_option
@gathers(PublishSettings)
def quantiles(settings: PublishSettings, at: str, by: str | None, method: str) -> None:
    """Publish medians, quartiles and other quantiles of the numeric columns of FILE.

    FILE is Parquet, CSV or Excel. A quantile at 0.9 is a value below which 90% of the rows lie.

    \b
    Example:
      sfumato quantiles flights.parquet --axis delay=-60..240 --axis kind=a,b \\
        --by kind --epsilon 0.5 --budget 2
    """
    domain = settings.domain()
    intervals = domain.of_kind(Interval)
    names = tuple(name for name in settings.subject(domain) if name in intervals)
    publish(settings, domain, Quantiles(names or None, at=at.split(","), by=by, method=method))


# --- sfumato tables -------------------------------------------------------------------------------

ROUNDED = (
    "The column published has whole numbers of at least 0 that add up. Small counts in it are too "
    "large on average; compute with the column count."
)


class PublishedForms(Forms):
    """The tables with whole numbers beside the estimates."""

    def frame(self, release: Release) -> pa.Table:
        """The table that is printed."""
        assert isinstance(release, TablesRelease)
        return release.to_frame(published=True)

    def to_csv(self, release: Release, path: Path) -> None:
        """Write the CSV file, or one for each table."""
        assert isinstance(release, TablesRelease)
        release.to_csv(path, published=True)

    def write_others(self, release: Release) -> list[str]:
        """Nothing else is written; say what the whole numbers are."""
        return [ROUNDED]


@click.command(short_help="Publish several tables that add up.")
@source_options()
@click.option(
    "--table",
    "tables",
    multiple=True,
    required=True,
    help="The columns of one table, separated by commas. Repeat for each table.",
)
@bin_options
@click.option(
    "--totals",
    multiple=True,
    help="Counts that everybody knows, which the tables then have exactly: region=north:120,"
    "south:80, or 200 for all rows. Repeat for each column.",
)
@click.option(
    "--published",
    is_flag=True,
    help="Also give whole numbers of at least 0 that add up exactly, for printing.",
)
@cost_options
@answer_options()
@json_option
@gathers(PublishSettings)
def tables(
    settings: PublishSettings,
    tables: Sequence[str],
    bins: tuple[str, ...],
    width: tuple[str, ...],
    totals: tuple[str, ...],
    published: bool,
) -> None:
    """Publish several tables of FILE that agree in all totals they share.

    FILE is Parquet, CSV or Excel. Declare each column with --axis. A row without a value in one of
    these columns is counted in no table.

    The counts are estimates with fractions, and small ones may be negative. With --published there
    are whole numbers beside them that still add up exactly. A workbook has a sheet for each table,
    with its sums on the edges.

    \b
    Example:
      sfumato tables flights.csv --axis carrier=AA,DL,UA --axis hour=0..24/1 \\
        --axis origin=EWR,JFK,LGA --table carrier,hour --table carrier,origin \\
        --rho 0.1 --budget 1

    \b
    For readers of spreadsheets, in whole numbers:
      sfumato tables flights.csv --axis carrier=AA,DL,UA --axis hour=0..24/1 \\
        --table carrier,hour --table carrier --epsilon 1 --budget 2 \\
        --published --excel tables.xlsx --csv tables/
    """
    asked = [[name.strip() for name in table.split(",") if name.strip()] for table in tables]
    question = Tables(
        asked,
        bins=parse_bins(bins),
        width=parse_widths(width),
        totals=parse_totals(totals) or None,
    )
    domain = settings.domain()
    if published:
        question.require_published(domain)
    publish(settings, domain, question, PublishedForms() if published else None)
