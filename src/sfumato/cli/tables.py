"""``sfumato tables``: several tables of one file that add up."""

from __future__ import annotations

import click

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
from sfumato.cli.parsing import parse_bins, parse_widths
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.tables import Tables


@click.command(short_help="Publish several tables that add up.")
@source_options()
@click.option(
    "--table",
    "tables",
    multiple=True,
    required=True,
    help="The columns of one table, separated by commas. Repeat for each table.",
)
@click.option(
    "--bins",
    multiple=True,
    help="Bins of a numeric column: how many (10, or age=10 for one column), or their edges "
    "(age=0,18,65,100). Repeat for each column.",
)
@click.option(
    "--width",
    multiple=True,
    help="Instead of --bins: the width of each bin (5, or age=5 for one column).",
)
@cost_options
@charged_option
@fresh_option
@words_options
@out_option
@plot_option()
@json_option
@gathers(PublishSettings)
def tables(
    settings: PublishSettings,
    tables: tuple[str, ...],
    bins: tuple[str, ...],
    width: tuple[str, ...],
) -> None:
    """Publish several tables of FILE that agree in all totals they share.

    FILE is Parquet, CSV or Excel. Declare each column with --axis. A row without a value in one of
    these columns is counted in no table.

    \b
    Example:
      sfumato tables flights.csv --axis carrier=AA,DL,UA --axis hour=0..24/1 \\
        --axis origin=EWR,JFK,LGA --table carrier,hour --table carrier,origin \\
        --rho 0.1 --budget 1
    """
    asked = [[name.strip() for name in table.split(",") if name.strip()] for table in tables]
    question = Tables(asked, bins=parse_bins(bins), width=parse_widths(width))
    publish(settings, settings.domain(), question)
