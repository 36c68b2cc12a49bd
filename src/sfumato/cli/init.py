"""``sfumato init``: write a plan to fill in.

Before it stand the bins that a plan begins with. On axes of whole numbers, bins that hold different
numbers of whole numbers would show peaks that are not in the data. Dates get weeks, months or
years, where days would be too many.
"""

from __future__ import annotations

import datetime
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import click
import msgspec

from sfumato.basics import positive, write_bytes
from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import (
    AXIS_HELP,
    COLUMNS,
    COST,
    OUTPUT,
    PERSON_CALLED_HELP,
    PERSON_HELP,
    PERSONS,
    ROWS_PER_PERSON_HELP,
    gathers,
    json_option,
    option,
    rows_per_person_option,
    written_options,
)
from sfumato.cli.output import emit_json, print_messages, print_output
from sfumato.cli.parsing import SPANS, parse_axes
from sfumato.cli.paths import SourceFile, SourcePath, files_read, require_unread
from sfumato.data.addresses import Address
from sfumato.data.dates import date_format
from sfumato.data.describe import Kind, kinds, likely_separator, title_form
from sfumato.data.options import StatedOptions, file_options
from sfumato.domain import Axis, Categories, Interval, Listed
from sfumato.errors import DataError, UsageError, nearest, printable
from sfumato.privacy import unit_within
from sfumato.publishing.plan_file import field_lines, joined_tables, toml_key, toml_text, toml_value
from sfumato.questions.histogram.bins import DEFAULT_BINS

# --- bins of whole numbers ------------------------------------------------------------------------

# Up to so many whole numbers each of them has a bin of its own.
MOST_SINGLE = 62

# How many bins there are at most where several numbers share one.
MOST_BINS = 25

# How many bins of a whole width there are at least, unless the axis is shorter.
LEAST_BINS = 5


def whole_axis(axis: Axis) -> Axis:
    """The axis of a column of whole numbers: bounds without a step become each number between them.

    The upper bound of an axis with a step lies a step above the last number. Other axes stay as
    they are.

    >>> whole_axis(Interval(0, 12)) == Interval(0, 13, step=1)
    True
    """
    if not _has_whole_bounds(axis) or axis.step is not None:
        return axis
    try:
        return msgspec.structs.replace(axis, upper=int(axis.upper) + 1, step=1)
    except UsageError:  # so many numbers that no lattice has a point for each
        return axis


def whole_bins(axis: Axis) -> str:
    """The lines of a question that divide an axis of whole numbers; "" where each has its bin.

    >>> whole_bins(Interval(0, 12, step=1)), whole_bins(Interval(15, 100, step=1))[:9]
    ('', 'width = 5')
    """
    if not _has_whole_bounds(axis) or axis.step != 1:
        return ""
    start = int(axis.lower)
    end = int(axis.upper)
    numbers = end - start
    if numbers <= MOST_SINGLE:
        return ""
    # The least of 1, 2, 5, 10, 20, ... with which there are few bins.
    round_widths = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    width = next(width for width in round_widths if numbers <= MOST_BINS * width)
    if numbers % width == 0:
        return f"width = {width}   # whole numbers in a bin; without this line each has its own"
    first = -(-start // width) * width
    edges = list(range(first, end, width))
    # What is left at an end has a bin of its own where it is half a bin at least.
    if edges[0] - start >= width / 2:
        edges.insert(0, start)
    if end - edges[-1] >= width / 2:
        edges.append(end)
    edges[0] = start
    edges[-1] = end
    note = f"{width} whole numbers each; those at the ends may differ"
    return f"bins = [    # {note}\n{_edge_lines(edges, 10)}\n]"


def _edge_lines(edges: Sequence[object], per_line: int) -> str:
    starts = range(0, len(edges), per_line)
    texts = [toml_value(edges[at : at + per_line]) for at in starts]
    return "\n".join(f"  {text[1:-1]}," for text in texts)


def even_bins(axis: Axis) -> str:
    """The line of a question by which an axis between whole bounds has bins of a whole width.

    A column whose type is not known may have whole numbers only, and the ten bins of an axis
    without a step would hold different numbers of these. "" where ten do not, or no number does.

    >>> even_bins(Interval(0, 12))[:9], even_bins(Interval(0, 100)), even_bins(Interval(0, 101))
    ('bins = 12', '', '')
    """
    if not _has_whole_bounds(axis) or axis.step is not None:
        return ""
    numbers = int(axis.upper) - int(axis.lower)
    if numbers % DEFAULT_BINS == 0:
        return ""
    wanted = range(LEAST_BINS, MOST_BINS + 1)
    fitting = [bins for bins in wanted if numbers % bins == 0]
    if not fitting and numbers > MOST_SINGLE:
        return ""
    bins = max(fitting, default=numbers)
    width = numbers // bins
    return f"bins = {bins}   # each {width} wide; take this line out where you write step = 1"


def whole_comment(axis: Axis, kind: str) -> str:
    """What stands above an axis in a plan: which whole numbers it has, or how it would have them.

    Parameters
    ----------
    axis : Axis
    kind : str
        What the schema says of the column; "unknown" where it says nothing.
    """
    if not _has_whole_bounds(axis):
        return ""
    start = int(axis.lower)
    end = int(axis.upper)
    if axis.step == 1:
        return f"The whole numbers {start} to {end - 1}; those beyond count as the nearest:"
    if axis.step is None and kind == "unknown":
        return f"{WHOLE_ALONE} write upper = {end + 1}, step = 1:"
    return ""


WHOLE_ALONE = "For whole numbers alone"


def _has_whole_bounds(axis: Axis) -> TypeGuard[Interval]:
    if not isinstance(axis, Interval):
        return False
    return isinstance(axis.lower, int) and isinstance(axis.upper, int)


# --- bins of dates --------------------------------------------------------------------------------


def date_bins(axis: Axis) -> str:
    """The lines of a question that divide an axis of dates; "" where its steps are right.

    >>> date_bins(Interval("2026-01-01", "2026-04-11", step=1))
    'width = 7   # days in each bin; without this line every day has one'
    """
    if not isinstance(axis, Interval) or axis.step != 1:
        return ""
    try:
        first = datetime.date.fromisoformat(str(axis.lower))
        end = datetime.date.fromisoformat(str(axis.upper))
    except ValueError:  # numbers, or times
        return ""
    # Each of two months' days has a bin of its own. Up to half a year bins are weeks, up to ten
    # years months, and beyond years.
    days = (end - first).days
    if days <= 62:
        return ""
    if days <= 186:
        return "width = 7   # days in each bin; without this line every day has one"
    n_months = 1 if days <= 3660 else 12
    months = range(12 * first.year, 12 * (end.year + 1), n_months)
    starts = (datetime.date(month // 12, month % 12 + 1, 1) for month in months)
    between = [day for day in starts if first < day < end]
    edges = [day.isoformat() for day in (first, *between, end)]
    unit = {1: "month", 12: "year"}[n_months]
    note = f"by {unit}; in place of them, width = 7 counts by week"
    return f"bins = [    # {note}\n{_edge_lines(edges, 5)}\n]"


# --- sfumato init ---------------------------------------------------------------------------------

AXIS_OF_KIND = {
    "whole": '{ type = "interval", lower = ?, upper = ?, step = 1 }',
    "number": '{ type = "interval", lower = ?, upper = ? }',
    "date": '{ type = "interval", lower = "2026-01-01", upper = "2027-01-01" }',
    "time": '{ type = "interval", lower = "2026-01-01T00:00", upper = "2027-01-01T00:00" }',
    "yes or no": '{ type = "categories", labels = [false, true] }',
    "text": '{ type = "categories", labels = ["?", "?"] }',
    "unknown": '{ type = "interval", lower = ?, upper = ? }',
}
# What stands above the axes, where a column of the kind is left to fill in.
HINT_OF_KIND = {
    "whole": "# Whole numbers: upper is one above the last of them.",
    "unknown": '# For a column of labels: { type = "categories", labels = ["?", "?"] }\n'
    '# For one of dates: lower = "2026-01-01", upper = "2027-01-01"',
}
WRITTEN_OTHERWISE = {
    "decimal": '# decimal = ","             # if numbers are written 1,5',
    "date_format": '# date_format = "%d.%m.%Y"  # if dates are written 14.03.2024',
}
ABOVE = """\
# A plan for {name}.
# Names and types of columns come from the file's schema; no row was read.
{fill_in}
# State what is publicly known, never what you see in the data. Then:
#   sfumato check {plan}
#   sfumato preview {plan}
#   sfumato release {plan} --report report.html

"""
EPSILON = "epsilon = {:<10} # for {}"


class Given(msgspec.Struct, frozen=True):
    """What the command line says of the plan; see the options."""

    written: StatedOptions
    axes: tuple[str, ...]
    person: str | None
    person_called: str | None
    rows_per_person: int
    budget: str
    epsilon: str


@click.command(cls=LayeredCommand, short_help="Write a plan to fill in.")
@click.argument("file", type=SourceFile())
@option("--axis", "axes", group=COLUMNS, common=True, multiple=True, help=AXIS_HELP)
@option("--person", group=PERSONS, common=True, help=PERSON_HELP)
@option("--person-called", group=PERSONS, help=PERSON_CALLED_HELP)
@rows_per_person_option(ROWS_PER_PERSON_HELP)
@option(
    "--budget",
    group=COST,
    common=True,
    default="1",
    show_default=True,
    help="The most that may ever be spent on these data: an epsilon.",
)
@option(
    "--epsilon",
    group=COST,
    common=True,
    default="0.5",
    show_default=True,
    help="What the plan may spend of the budget.",
)
@option(
    "--out",
    group=OUTPUT,
    common=True,
    type=click.Path(path_type=Path),
    help="File to write the plan to.  [default: stdout]",
)
@option(
    "--force",
    group=OUTPUT,
    common=True,
    is_flag=True,
    help="Overwrite the file of --out if it exists.",
)
@written_options
@json_option
@gathers(Given)
def init(given: Given, file: SourcePath, out: Path | None, force: bool, as_json: bool) -> None:
    """Write a plan for FILE: a file that says what to publish, which you can read and change.

    Only names and types of columns are read, never a row: you state what is publicly known of
    their values, here by --axis or in the plan. Each axis given is counted by itself. Where the
    schema says that a column holds whole numbers, age=0..120 becomes the whole numbers 0 to 120.
    With --json the columns and their types are printed instead of a plan. Options that say how the
    file is written become part of the plan.

    \b
    A plan to fill in:
      sfumato init visits.csv --out visits.toml
      sfumato init visits.xlsx --sheet 2024 --out visits.toml

    \b
    A plan to release as it is:
      sfumato init visits.csv --axis age=0..121/1 --person patient \\
        --out visits.toml
    """
    given = msgspec.structs.replace(given, written=_written(file, given.written))
    columns = _columns(file, given.written)
    if as_json:
        emit_json(columns)
        return
    text = _plan(file, out, columns, given)
    if out is None:
        if force:
            raise UsageError(
                "--force",
                "no file is written without --out",
                "Add --out PLAN.toml, or leave it out",
            )
        print_output(text.removesuffix("\n"))
        return
    if force:
        require_unread("--out", out, files_read(file))
        write_bytes(out, text.encode())
    else:
        _write_new(out, text)
    then = "Fill in the domain, then" if not given.axes else "Next"
    print_messages(f"Written: {out}. {then}: sfumato check {out}")
    if f"# {WHOLE_ALONE} " in text:
        print_messages(
            "Where a column holds whole numbers alone, see the comments: each then has its bin."
        )


def _written(file: SourcePath, stated: StatedOptions) -> StatedOptions:
    """Return how the file is written, with the separator that the line of names has.

    Names that look like a title above the table are refused, unless their row was stated.
    """
    if stated.separator is None:
        separator = likely_separator(file, file_options(stated))
        stated = msgspec.structs.replace(stated, separator=separator)
    form = title_form(file, file_options(stated))
    if form is not None and stated.header_row is None:
        raise DataError(
            f"a plan for {file}",
            form,
            "Add --header-row N for the row N that names the columns, or --header-row 1 if row 1 "
            "does",
        )
    if form is not None:
        print_messages(
            f"Note: {form}. If another row names the columns, state that row by --header-row."
        )
    return stated


def _columns(file: SourcePath, written: StatedOptions) -> dict[str, Kind]:
    """Return the kind of each column that can be an axis, by its declared type or date format."""
    kind_of_column = kinds(file, file_options(written))
    formats = written.date_format
    if isinstance(formats, Mapping):
        for name, format_text in formats.items():
            if name not in kind_of_column:
                raise _no_column(file, f"--date-format {name}", name, kind_of_column)
            kind_of_column[name] = "time" if date_format(format_text).has_times else "date"
    columns = {name: kind for name, kind in kind_of_column.items() if name and kind in AXIS_OF_KIND}
    if not columns:
        raise DataError(
            f"a plan for {file}", "it has no column of numbers, times or text", "Name another file"
        )
    return columns


def _plan(file: SourcePath, out: Path | None, columns: Mapping[str, str], given: Given) -> str:
    """Return the text of the plan. Paths in a plan are relative to the plan's own folder."""
    _check(file, columns, given)
    domain = {
        name: whole_axis(axis) if columns.get(axis.column or name) == "whole" else axis
        for name, axis in parse_axes(given.axes).items()
    }
    above = ABOVE.format(
        name=printable(file.name),
        plan="PLAN.toml" if out is None else printable(str(out)),
        fill_in="# The axes were given with --axis. Other columns stand behind a #, and are not\n"
        "# used."
        if domain
        else "# For each column that you ask about, take away the #, and replace each ? by\n"
        "# bounds or labels.",
    )
    source = [
        *field_lines({"path": _path_in_plan(file, out)}),
        *_written_lines(given.written, is_text="unknown" in columns.values()),
        *_person_lines(given),
    ]
    account = field_lines({"account": file.stem})
    all_that_is_asked = "everything that will ever be asked of these data"
    tables = {
        "source": source,
        "domain": _domain_lines(columns, domain),
        "budget": [*account, EPSILON.format(toml_text(given.budget), all_that_is_asked)],
        "release": [EPSILON.format(toml_text(given.epsilon), "this plan")],
    }
    return above + joined_tables(tables, _questions(columns, domain))


def _person_lines(given: Given) -> list[str]:
    """Return the lines of the person column and its limit, behind a # if no column is given."""
    sign = "" if given.person else "# "
    person, limit = field_lines(
        {"person": given.person or "?", "rows_per_person": given.rows_per_person}
    )
    called = {} if given.person_called is None else {"person_called": given.person_called}
    return [
        "# The column that identifies the person; without it, a row is a person.",
        sign + person,
        *field_lines(called),
        "# How many rows of each person are kept, chosen at random.",
        sign + limit,
    ]


def _questions(columns: Mapping[str, str], domain: Mapping[str, Axis]) -> list[list[str]]:
    bins_of = {
        name: date_bins(axis) or whole_bins(axis) or even_bins(axis)
        for name, axis in domain.items()
    }
    if not domain:
        dates_hint = "# width = 7   # of dates: days in each bin; without it every day has one"
        bins_of = {"?": dates_hint if "date" in columns.values() else ""}
    # The lines that divide its axis stand last in a question, if there are any.
    return [
        [*field_lines({"type": "histogram", "axes": [name]}), *filter(None, [bins])]
        for name, bins in bins_of.items()
    ]


def _domain_lines(columns: Mapping[str, str], domain: Mapping[str, Axis]) -> list[str]:
    """The axes of the plan, a line each; behind a # what other columns could be."""
    unstated = {kind for name, kind in columns.items() if name not in domain}
    lines = [hint for kind, hint in HINT_OF_KIND.items() if kind in unstated]
    lines += [
        _axis_line(name, domain[name], kind)
        if name in domain
        else f"# {toml_key(name)} = {AXIS_OF_KIND[kind]}"
        for name, kind in columns.items()
    ]
    # An axis that is derived from a column, such as its months, has a name of its own.
    derived = [name for name in domain if name not in columns]
    return lines + [_axis_line(name, domain[name], "derived") for name in derived]


def _axis_line(name: str, axis: Axis, kind: str) -> str:
    comment = whole_comment(axis, kind)
    if kind == "whole" and isinstance(axis, Categories) and axis.other is None:
        labels = [str(label) for label in axis.all_labels]
        # Labels that are all whole numbers are written as numbers, as the column has them.
        if all(re.fullmatch("0|-?[1-9][0-9]*", label) for label in labels):
            axis = Categories([int(label) for label in labels])
    (line,) = field_lines({name: msgspec.to_builtins(axis, enc_hook=list)})
    return f"# {comment}\n{line}" if comment else line


def _path_in_plan(file: SourcePath, out: Path | None) -> str:
    """The path as the plan names it; an address as it was given, without a password."""
    if isinstance(file, Address):
        return file.without_password() if out is None else file.for_folder(out.parent)
    path = file.resolve()
    return str(path if out is None else Path(os.path.relpath(path, out.resolve().parent)))


def _check(file: SourcePath, columns: Mapping[str, str], given: Given) -> None:
    """Refuse what the plan would be refused for: columns that there are not, and no numbers."""
    positive(given.budget, "--budget")
    positive(given.epsilon, "--epsilon")
    unit_within(
        given.rows_per_person, "add-remove", given.person, person_called=given.person_called
    )
    axes = parse_axes(given.axes)
    named = {axis.column or name: f"--axis {name}" for name, axis in axes.items()}
    if given.person is not None:
        named[given.person] = f"--person {given.person}"
    for name, stated in named.items():
        if name not in columns:
            refusal = _no_column(file, stated, name, columns)
            if name in SPANS and (axis := axes.get(name)) is not None:
                # Whoever writes month=date, or month=1..12, wants months of a column of dates.
                labels = axis.all_labels if isinstance(axis, Listed) else ()
                column = next((label for label in labels[:1] if label in columns), "COLUMN")
                refusal.remedy = (
                    f"For {name}s of a column of dates write {name}={name}:{column}:{SPANS[name]}"
                )
            raise refusal


def _no_column(file: SourcePath, stated: str, name: str, columns: Iterable[str]) -> UsageError:
    near = nearest(name, columns)
    obstacle = f"{file} has no column {name!r}"
    if near.startswith("did you mean"):
        obstacle += f"; {near}"
    return UsageError(
        stated, obstacle, f"Name it as the column is named; sfumato init {file} lists all"
    )


def _written_lines(written: StatedOptions, *, is_text: bool) -> list[str]:
    """Return how the file is written: what is stated, and for text what else may be."""
    stated = {
        name: value for name, value in msgspec.structs.asdict(written).items() if value is not None
    }
    lines = field_lines(stated)
    if is_text:
        lines += [line for name, line in WRITTEN_OTHERWISE.items() if name not in stated]
    return lines


def _write_new(out: Path, text: str) -> None:
    """Write a new file; one that exists may be filled in already and is kept."""
    try:
        # Made only if there is none, in one step: no file that appears meanwhile is overwritten.
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"writing {out}",
            "there is such a file, and it may be filled in already",
            "Choose another name, or add --force to overwrite it",
        ) from None
    except OSError as error:
        raise DataError(
            f"writing {out}",
            error.strerror or "it cannot be written",
            "Choose a path that can be written",
        ) from None
