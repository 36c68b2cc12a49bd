"""``sfumato init``: write a plan to fill in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from sfumato.basics.numbers import positive
from sfumato.cli.calendar_text import SPANS
from sfumato.cli.date_bins import date_bins
from sfumato.cli.option_types import INTEGER
from sfumato.cli.options import (
    AXIS_HELP,
    PERSON_HELP,
    ROWS_PER_PERSON_HELP,
    gathers,
    json_option,
    written_options,
)
from sfumato.cli.output import emit_json, say, talk
from sfumato.cli.parsing import parse_axes
from sfumato.cli.source_file import SourceFile, SourcePath
from sfumato.cli.toml_text import toml_key, toml_text, toml_value
from sfumato.cli.whole_bins import even_bins, whole_axis, whole_bins, whole_comment
from sfumato.data.addresses import SourceAddress, for_folder
from sfumato.data.options import StatedOptions, file_options
from sfumato.domain.domain import Axis, Listed
from sfumato.errors import DataError, UsageError, nearest, printable
from sfumato.privacy.unit import Unit

AXIS_OF_KIND = {
    "whole": '{ type = "interval", lower = ?, upper = ?, step = 1 }',
    "number": '{ type = "interval", lower = ?, upper = ? }',
    "date": '{ type = "interval", lower = "2026-01-01", upper = "2027-01-01" }',
    "time": '{ type = "interval", lower = "2026-01-01T00:00", upper = "2027-01-01T00:00" }',
    "yes or no": '{ type = "categories", labels = [false, true] }',
    "text": '{ type = "categories", labels = ["?", "?"] }',
    "unknown": '{ type = "interval", lower = ?, upper = ? }',
}
HINT_OF_KIND = {
    "whole": "# Whole numbers: upper is one above the last of them.",
    "unknown": '# For a column of labels: { type = "categories", labels = ["?", "?"] }',
}
"""What stands above the axes, where a column of the kind is left to fill in."""
WRITTEN_OTHERWISE = {
    "decimal": '# decimal = ","             # if numbers are written 1,5\n',
    "date_format": '# date_format = "%d.%m.%Y"  # if dates are written 14.03.2024\n',
}
PLAN = """\
# A plan for {name}.
# Names and types of columns come from the file's schema; no row was read.
{fill_in}
# State what is publicly known, never what you see in the data. Then:
#   sfumato preview {plan}
#   sfumato release {plan} --ledger budget.db --report report.html

[source]
path = {path}
{written}\
{person}

[domain]
{domain}

[budget]
account = {account}
epsilon = {budget:<10} # for everything that will ever be asked of these data

[release]
epsilon = {epsilon:<10} # for this plan

{questions}
"""
FILL_IN = """\
# For each column that you ask about, take away the #, and replace each ? by
# bounds or labels."""
FILLED_IN = """\
# The axes were given with --axis. Other columns stand behind a #, and are not
# used."""
PERSON = """\
# The column that identifies the person; without it, a row is a person.
{person}
# How many rows of each person are kept, chosen at random.
{rows}"""
QUESTION = """\
[[questions]]
type = "histogram"
axes = {axes}"""

DATES_HINT = "# width = 7   # of dates: days in each bin; without it every day has one"


class Given(msgspec.Struct, frozen=True):
    """What the command line says of the plan; see the options."""

    written: StatedOptions
    axes: tuple[str, ...]
    person: str | None
    rows_per_person: int
    budget: str
    epsilon: str


@click.command(short_help="Write a plan to fill in.")
@click.argument("file", type=SourceFile())
@click.option("--axis", "axes", multiple=True, help=AXIS_HELP)
@click.option("--person", help=PERSON_HELP)
@click.option(
    "--rows-per-person",
    type=INTEGER,
    default=1,
    show_default=True,
    help=ROWS_PER_PERSON_HELP,
)
@click.option(
    "--budget",
    default="1",
    show_default=True,
    help="The most that may ever be spent on these data: an epsilon.",
)
@click.option(
    "--epsilon", default="0.5", show_default=True, help="What the plan may spend of the budget."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write the plan to.  [default: stdout]"
)
@written_options
@json_option
@gathers(Given)
def init(given: Given, file: SourcePath, out: Path | None, as_json: bool) -> None:
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
    from sfumato.data.describe import kinds, likely_separator

    written = given.written
    if written.separator is None:
        likely = likely_separator(file, file_options(written))
        written = msgspec.structs.replace(written, separator=likely)
        given = msgspec.structs.replace(given, written=written)
    found = kinds(file, file_options(written))
    columns = {name: kind for name, kind in found.items() if name and kind in AXIS_OF_KIND}
    if not columns:
        raise DataError(
            f"a plan for {file}", "it has no column of numbers, times or text", "Name another file"
        )
    if as_json:
        emit_json(columns)
        return
    text = _plan(file, out, columns, given)
    if out is None:
        say(text.removesuffix("\n"))
        return
    _write(out, text)
    then = "Fill in the domain, then" if not given.axes else "Next"
    talk(f"Written: {out}. {then}: sfumato preview {out}")


def _plan(file: SourcePath, out: Path | None, columns: Mapping[str, str], given: Given) -> str:
    """The text of the plan. Paths in a plan are relative to the plan's own folder."""
    path = _path_in_plan(file, out)
    _check(file, columns, given)
    domain = {
        name: whole_axis(axis) if columns.get(axis.column or name) == "whole" else axis
        for name, axis in parse_axes(given.axes).items()
    }
    sign = "" if given.person else "# "
    person = PERSON.format(
        person=f"{sign}person = {toml_text(given.person or '?')}",
        rows=f"{sign}rows_per_person = {given.rows_per_person}",
    )
    questions = [
        _question([name], date_bins(axis) or whole_bins(axis) or even_bins(axis))
        for name, axis in domain.items()
    ]
    if not questions:
        hint = DATES_HINT if "date" in columns.values() else ""
        questions = [_question(["?"], hint)]
    return PLAN.format(
        name=printable(file.name),
        plan="PLAN.toml" if out is None else printable(str(out)),
        fill_in=FILLED_IN if domain else FILL_IN,
        path=toml_text(path),
        written=_source_lines(given.written, is_text="unknown" in columns.values()),
        person=person,
        domain="\n".join(_domain_lines(columns, domain)),
        account=toml_text(file.stem),
        budget=toml_text(given.budget),
        epsilon=toml_text(given.epsilon),
        questions="\n\n".join(questions),
    )


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
    line = f"{toml_key(name)} = {_inline(axis)}"
    return f"# {comment}\n{line}" if comment else line


def _question(axes: list[str], bins: str) -> str:
    """One question of the plan, with the line that divides its axis, if there is one."""
    text = QUESTION.format(axes=toml_value(axes))
    return f"{text}\n{bins}" if bins else text


def _path_in_plan(file: SourcePath, out: Path | None) -> str:
    """The path as the plan names it; an address as it was given, without a password."""
    if isinstance(file, SourceAddress):
        address = file.without_password()
        return address if out is None else for_folder(address, out.parent)
    path = file.resolve()
    return str(path if out is None else Path(os.path.relpath(path, out.resolve().parent)))


def _check(file: SourcePath, columns: Mapping[str, str], given: Given) -> None:
    """Refuse what the plan would be refused for: columns that there are not, and no numbers."""
    positive(given.budget, "--budget")
    positive(given.epsilon, "--epsilon")
    Unit(given.rows_per_person, "add-remove", given.person)
    axes = parse_axes(given.axes)
    named = {axis.column or name: f"--axis {name}" for name, axis in axes.items()}
    if given.person is not None:
        named[given.person] = f"--person {given.person}"
    for name, asked in named.items():
        if name not in columns:
            near = nearest(name, columns)
            obstacle = f"{file} has no column {name!r}"
            if near.startswith("did you mean"):
                obstacle += f"; {near}"
            remedy = f"Name it as the column is named; sfumato init {file} lists all"
            if name in SPANS and name in axes:
                # Whoever writes month=date, or month=1..12, wants months of a column of dates.
                column = _only_label(axes[name])
                axis = f"{name}={name}:{column if column in columns else 'COLUMN'}:{SPANS[name]}"
                remedy = f"For {name}s of a column of dates write {axis}"
            raise UsageError(asked, obstacle, remedy)


def _only_label(axis: Axis) -> str:
    labels = axis.all_labels if isinstance(axis, Listed) else ()
    return str(labels[0]) if len(labels) == 1 else ""


def _inline(axis: Axis) -> str:
    """An axis as an inline table of TOML."""
    fields: dict[str, object] = msgspec.to_builtins(axis, enc_hook=list)
    return toml_value(fields)


def _source_lines(written: StatedOptions, *, is_text: bool) -> str:
    """How the file is written: what is stated, and for text what else may be."""
    stated = {name: value for name, value in written.arguments().items() if value is not None}
    lines = [f"{name} = {toml_value(value)}\n" for name, value in stated.items()]
    if is_text:
        lines += [line for name, line in WRITTEN_OTHERWISE.items() if name not in stated]
    return "".join(lines)


def _write(out: Path, text: str) -> None:
    """Write a new file; one that exists may be filled in already and is kept."""
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        obstacle = None
    except OSError as error:
        obstacle = error.strerror or "it cannot be written"
    else:
        return
    if obstacle is None:
        raise UsageError(
            f"writing {out}",
            "there is such a file, and it may be filled in already",
            "Choose another name",
        )
    raise DataError(f"writing {out}", obstacle, "Choose a path that can be written")
