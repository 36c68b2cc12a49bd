"""``sfumato tables``: several tables of one file that add up."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import pyarrow as pa

from sfumato.answers.release import Release
from sfumato.cli.options import (
    answer_options,
    bin_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.output import talk, to_frame
from sfumato.cli.output_paths import FileOrFolder, NewFile
from sfumato.cli.parsing import parse_bins, parse_totals, parse_widths
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.errors import UsageError
from sfumato.tables import Tables, TablesRelease

ROUNDED = (
    "The column published has whole numbers of at least 0 that add up. Small counts in it are too "
    "large on average; compute with the column count."
)


class TableFiles(msgspec.Struct, frozen=True):
    """What is written of the tables beside the release, and how their numbers are shown."""

    published: bool
    csv: Path | None
    excel: Path | None

    def require(self) -> None:
        """Refuse what could not be written: before it is paid for."""
        if self.excel is not None and importlib.util.find_spec("xlsxwriter") is None:
            obstacle = "writing Excel needs xlsxwriter, which is not installed"
            raise UsageError("--excel", obstacle, "Run: pip install 'sfumato[excel]'")

    def write(self, release: TablesRelease) -> None:
        """Write the files that were asked for."""
        if self.csv is not None:
            talk(f"CSV: {release.to_csv(self.csv, published=self.published)}")
        if self.excel is not None:
            talk(f"Excel: {release.to_excel(self.excel)}")
        if self.published:
            talk(ROUNDED)

    def frame(self, release: Release) -> pa.Table:
        """The table that is printed."""
        if self.published and isinstance(release, TablesRelease):
            return release.to_frame(published=True)
        return to_frame(release)


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
@click.option(
    "--csv",
    type=FileOrFolder(),
    help="Also write the tables to this CSV file, or each to a file in this folder.",
)
@click.option(
    "--excel",
    type=NewFile(),
    help="Also write an Excel workbook with a sheet for each table, sums on the edges.",
)
@json_option
@gathers(PublishSettings)
@gathers(TableFiles)
def tables(
    files: TableFiles,
    settings: PublishSettings,
    tables: Sequence[str],
    bins: tuple[str, ...],
    width: tuple[str, ...],
    totals: tuple[str, ...],
) -> None:
    """Publish several tables of FILE that agree in all totals they share.

    FILE is Parquet, CSV or Excel. Declare each column with --axis. A row without a value in one of
    these columns is counted in no table.

    The counts are estimates with fractions, and small ones may be negative. With --published there
    are whole numbers beside them that still add up exactly.

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
    if files.published:
        question.require_published(domain)
    files.require()
    files.write(publish(settings, domain, question, files.frame))
