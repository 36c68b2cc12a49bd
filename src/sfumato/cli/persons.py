"""``sfumato persons``: how many persons are in one file, and how many rows each has."""

from __future__ import annotations

import click

from sfumato.cli.option_types import INTEGER
from sfumato.cli.options import (
    charged_option,
    cost_options,
    fresh_option,
    gathers,
    json_option,
    out_option,
    plot_option,
    source_options,
    words_options,
)
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.domain import Domain, Keys
from sfumato.errors import UsageError
from sfumato.persons import Persons


@click.command(short_help="Publish how many rows each person has.")
@source_options(optional_axes=True)
@click.option(
    "--most-rows",
    type=INTEGER,
    help="Public bound: nobody has more rows than this. Without it the share of rows that a limit "
    "keeps is not known.",
)
@cost_options
@charged_option
@fresh_option
@words_options
@out_option
@plot_option()
@json_option
@gathers(PublishSettings)
def persons(settings: PublishSettings, most_rows: int | None) -> None:
    """Publish how many persons are in FILE, and how many rows each has.

    FILE is Parquet, CSV or Excel. The answer says, for every limit on rows per person, how many
    persons have more rows, and which share of the rows the limit keeps. Choose --rows-per-person
    of later answers by it.

    \b
    Example:
      sfumato persons flights.parquet --person tailnum --most-rows 1000 \\
        --epsilon 0.3 --budget 2
    """
    if settings.person is None:
        raise UsageError(
            "sfumato persons",
            "no column was named that identifies the person behind a row",
            "Give --person NAME",
        )
    # No axis is counted. Without one, the person column stands in for the domain of the source.
    domain = settings.domain() if settings.axes else Domain({settings.person: Keys()})
    publish(settings, domain, Persons(most_rows))
