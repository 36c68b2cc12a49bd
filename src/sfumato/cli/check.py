"""``sfumato check``: what a release would drop or clamp, for the data custodian's own screen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import (
    AXIS_HELP,
    COLUMNS,
    OUTPUT,
    PERSON_CALLED_HELP,
    PERSONS,
    PERSONS_HELP,
    WHERE_HELP,
    gathers,
    json_option,
    limit_options,
    option,
    written_options,
)
from sfumato.cli.output import prose, scanning, writes_file
from sfumato.cli.paths import SourceFile, SourcePath
from sfumato.cli.plans import source_of
from sfumato.cli.publishing import TableSettings
from sfumato.errors import DataError, UsageError
from sfumato.publishing.plan_file import domain_of, read_plan
from sfumato.publishing.previews import checked, needs_to_check
from sfumato.questions.histogram import Histogram

if TYPE_CHECKING:
    from sfumato.answers import Needs
    from sfumato.data import Source


@click.command(cls=LayeredCommand, short_help="Count rows that a release would drop or clamp.")
@click.argument("file", metavar="PLAN|FILE", type=SourceFile())
@option("--axis", "axes", group=COLUMNS, common=True, multiple=True, help=AXIS_HELP)
@option("--where", group=COLUMNS, multiple=True, help=WHERE_HELP)
@option("--person", group=PERSONS, common=True, multiple=True, help=PERSONS_HELP)
@option("--person-called", group=PERSONS, help=PERSON_CALLED_HELP)
@limit_options
@written_options
@option(
    "--all-labels",
    is_flag=True,
    help="Show all labels that are not listed, on the screen: not with --json.",
    group=OUTPUT,
    common=True,
)
@json_option
@gathers(TableSettings)
def check(table: TableSettings, all_labels: bool, as_json: bool) -> int:
    """Count the rows of a table that a release would drop or clamp.

    Use it before you pay, to find unlisted labels, values out of bounds, missing values and
    persons with more rows than the limit. PLAN is a TOML file, and each of its questions is
    checked; a FILE (Parquet, CSV or Excel) is checked for the axes given.

    Nothing is charged. The output states facts of your data, without protection: it is NOT FOR
    PUBLICATION, and bounds chosen from it are no longer public.

    Exit code 4 means that a release would be refused: the output says why.

    \b
    Examples:
      sfumato check examples/flights.toml
      sfumato check people.csv --axis age=0..121/1 --axis kind=a,b --person id
    """
    if all_labels:
        _require_screen(as_json=as_json)
    assert table.file is not None  # click requires it
    needs: list[tuple[str, Needs]] | None = None
    if table.file.suffix.lower() == ".toml":
        if table != TableSettings(table.file):
            raise UsageError(
                "options of a file with a plan", "the plan says so itself", "Leave them out"
            )
        rows, needs = _of_plan(table.file)
    else:
        rows = _of_file(table)
        if rows.unit.by_cell:
            needs = _in_cells(rows)
    with scanning() as progress:
        losses = checked(rows, needs, progress, all_labels=all_labels)
    if as_json:
        click.echo(losses.to_json())
    else:
        click.echo(str(losses))
        _advise(rows, needs)
    return 0 if losses.refused is None else DataError.exit_code


def _require_screen(*, as_json: bool) -> None:
    """Refuse to write all labels for programs, or into a file: they are the data's own values."""
    remedy = "Leave one of them out"
    if as_json:
        obstacle = "all labels are for the screen alone, and programs read JSON"
        raise UsageError("--all-labels with --json", obstacle, remedy)
    if writes_file(sys.stdout):
        obstacle = "all labels are for the screen alone, and stdout is a file"
        raise UsageError("--all-labels", obstacle, "Leave out > FILE; to turn pages, add | less")


def _advise(rows: Source, needs: list[tuple[str, Needs]] | None) -> None:
    """Say which question tells what the limits leave out, so that it can be published."""
    from sfumato.questions.persons import advice

    lattices = [need.lattice for _, need in needs or [] if need.counted == "rows"]
    axes = lattices[0].names if lattices else ()
    if said := advice(rows.unit, in_rho=False, axes=axes):
        how = said.removeprefix("to learn how much that leaves out, ")
        prose(f"\nTo publish how much a limit leaves out, {how}.")


def _of_plan(path: SourcePath) -> tuple[Source, list[tuple[str, Needs]]]:
    """The source of a plan, and the title and needs of each of its questions."""
    spec = read_plan(path)
    domain = domain_of(spec)
    rows = source_of(spec)
    plan = spec.plan().settled(domain)
    plan.require_unit(rows.unit)
    return rows, needs_to_check(plan, domain, rows.unit)


def _of_file(table: TableSettings) -> Source:
    """The source of a file, of which at least one axis is declared."""
    if not table.axes:
        raise UsageError(
            f"a check of {table.file}",
            "it names no axis",
            "Write --axis age=0..100 or --axis kind=a,b",
        )
    return table.source(table.domain())


def _in_cells(rows: Source) -> list[tuple[str, Needs]]:
    """The table of all axes: limits by cell hold in its cells."""
    table = Histogram(tuple(rows.domain))
    return [(table.title, table.needs(rows.domain))]
