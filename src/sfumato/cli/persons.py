"""``sfumato persons``: how many persons are in one file, and how many rows each has."""

from __future__ import annotations

from typing import get_args

import click

from sfumato.cli.option_types import INTEGER
from sfumato.cli.options import (
    answer_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.parsing import parse_bins
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.domain.domain import Domain, Keys
from sfumato.errors import UsageError
from sfumato.questions.persons import Persons
from sfumato.questions.persons.measured import Of


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
