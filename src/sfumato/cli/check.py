"""``sfumato check``: what a table would lose before anything is paid, for the custodian's own screen."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.options import AXIS_HELP, json_option, parse_axes
from sfumato.cli.output import scanning
from sfumato.domain import Domain
from sfumato.errors import UsageError
from sfumato.lattice import Lattice
from sfumato.publishing.plan_file import domain_of, read_plan


@click.command(short_help="Look at your own table before you pay.")
@click.argument("path", metavar="PLAN|FILE", type=click.Path(path_type=Path))
@click.option("--axis", "axes", multiple=True, help=f"For a FILE: {AXIS_HELP}")
@click.option("--person", help="For a FILE: column that names the person behind a row.")
@click.option(
    "--rows-per-person", type=int, help="For a FILE: rows kept of each person; 1 if left out."
)
@json_option
def check(
    path: Path,
    axes: tuple[str, ...],
    person: str | None,
    rows_per_person: int | None,
    as_json: bool,
) -> None:
    """Say how many rows of a table match no label, are clamped, missing, or beyond the limit of a person.

    PLAN is a TOML file, and each of its questions is looked at; of a FILE (Parquet or CSV), the axes given.
    Nothing is charged. The output is true of your data and protected by nothing: it is NOT FOR PUBLICATION,
    and bounds chosen from it are no longer public.

    Example: sfumato check examples/flights.toml

    Example: sfumato check people.csv --axis age=0..120/1 --axis kind=a,b --person id
    """
    from sfumato.data import source
    from sfumato.data.check import check as look

    lattices: list[tuple[str, Lattice]] | None = None
    if path.suffix.lower() == ".toml":
        if axes or person is not None or rows_per_person is not None:
            raise UsageError(
                "--axis, --person or --rows-per-person with a plan",
                "the plan says so itself",
                "Leave them out",
            )
        spec = read_plan(path)
        domain = domain_of(spec)
        where = spec.source
        src = source(
            where.path,
            domain,
            where.person,
            where.rows_per_person,
            where.neighbours,
            where.name,
            where.version,
        )
        lattices = [(each.title, each.needs(domain).lattice) for each in spec.questions]
    else:
        if not axes:
            raise UsageError(
                f"a check of {path}",
                "it names no axis",
                "Write --axis age=0..100 or --axis kind=a,b",
            )
        limit = 1 if rows_per_person is None else rows_per_person
        src = source(path, Domain(parse_axes(axes)), person, limit)
    with scanning() as progress:
        found = look(src, lattices, progress)
    click.echo(found.to_json() if as_json else str(found))
