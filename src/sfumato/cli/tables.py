"""``sfumato tables``: several tables of one file that add up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import pyarrow as pa

from sfumato.answers.release import Release
from sfumato.cli.answer_files import Forms
from sfumato.cli.options import (
    answer_options,
    bin_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.parsing import parse_bins, parse_totals, parse_widths
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.questions.tables import Tables, TablesRelease

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
