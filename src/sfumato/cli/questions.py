"""Commands of four questions, whose words and options are written by hand.

``sfumato cluster``: centres of clusters over numeric columns of one file. ``sfumato persons``: how
many persons are in one file, and how many rows each has. ``sfumato quantiles``: quantiles of
numeric columns of one file. ``sfumato tables``: several tables of one file that add up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast, get_args

import click

from sfumato.cli.parsing import parse_tables, parse_totals
from sfumato.cli.publishing import Forms, PublishSettings, publish, question_of
from sfumato.cli.question_command import BINS, WIDTH, Fields, Form, Wording, asking, worded_command
from sfumato.domain import Domain, Interval, Keys
from sfumato.errors import UsageError
from sfumato.questions.clustering import KMeans
from sfumato.questions.clustering.kmeans import Method
from sfumato.questions.persons import Persons
from sfumato.questions.persons.measured import Of
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.tables import Tables, TablesRelease
from sfumato.questions.tables.totals import plain_totals

CLUSTER = Wording(
    text="""Publish the centres and sizes of clusters of the rows of FILE, by k-means.

    FILE is Parquet, CSV or Excel. The columns are numeric. Each is scaled by its bounds before
    distances are measured.

    \b
    Example:
      sfumato cluster people.parquet --axis age=0..100 --axis wage=0..2000 \\
        --clusters 4 --epsilon 1 --budget 2
    """,
    options={
        "n_clusters": "Number of clusters to find.",
        "method": Form(
            click.Choice(get_args(Method)),
            hint="Algorithm: a noisy grid (eugkm), noisy Lloyd steps (dplloyd), a noisy tree "
            "(privtree); auto chooses by the number of columns and a noisy number of rows.",
        ),
    },
    names={"n_clusters": "--clusters"},
)
PERSONS = Wording(
    text="""Publish how many persons are in FILE, and how many rows each has.

    FILE is Parquet, CSV or Excel. The answer says, for every limit on rows per person, how many
    persons have more rows, and which share of the rows the limit keeps. Choose --rows-per-person
    of later answers by it.

    \b
    Example:
      sfumato persons flights.parquet --person tailnum --most-rows 1000 \\
        --epsilon 0.3 --budget 2
    \f
    With --of, the answer is about the limits that hold in the cells of one table.

    \b
    How large the counts of a person are, for --norm-per-person:
      sfumato persons flights.parquet --person tailnum --most-rows 1000 \\
        --of norm --axis hour=0..24/1 --rho 0.05 --budget 1
    """,
    options={
        "most_rows": "Public bound: nobody has more rows than this. Without it the share of rows "
        "that a limit keeps is not known.",
    },
    rare={
        "of": Form(
            click.Choice(get_args(Of)),
            hint="What is measured of each person: the rows; or, in the cells of the columns given "
            "by --axis, the number of cells, the L2 norm of the person's counts, or the rows in "
            "the cell that has most of them.",
        ),
        "bins": replace(
            BINS, hint="With --of: bins of a numeric column, as for sfumato histogram."
        ),
    },
    has_axes=False,
)
QUANTILES = Wording(
    text="""Publish medians, quartiles and other quantiles of the numeric columns of FILE.

    FILE is Parquet, CSV or Excel. A quantile at 0.9 is a value below which 90% of the rows lie.

    \b
    Example:
      sfumato quantiles flights.parquet --axis delay=-60..240 --axis kind=a,b \\
        --by kind --epsilon 0.5 --budget 2
    """,
    options={
        "at": "The quantiles, as increasing shares of the rows between 0 and 1, separated by "
        "commas.  [default: 0.25,0.5,0.75]",
        "by": "Column of labels, declared by --axis NAME=a,b,c: the quantiles of each label's "
        "rows.  [default: of all rows]",
    },
    rare={
        "method": Form(
            click.Choice(["auto", "joint", "recursive", "tree"]),
            hint="Algorithm: all at once (joint), one after another by halving (recursive), from "
            "noisy counts (tree); auto chooses by the number of quantiles.",
        ),
    },
    plots="the answers",
)
TABLES = Wording(
    text="""Publish several tables of FILE that agree in all totals they share.

    FILE is Parquet, CSV or Excel. Declare each column with --axis. A row without a value in one of
    these columns is counted in no table.

    \b
    Example:
      sfumato tables flights.csv --axis carrier=AA,DL,UA --axis hour=0..24/1 \\
        --axis origin=EWR,JFK,LGA --table carrier,hour --table carrier,origin \\
        --rho 0.1 --budget 1
    \f
    The counts are estimates with fractions, and small ones may be negative. With --published there
    are whole numbers beside them that still add up exactly. A workbook has a sheet for each table,
    with its sums on the edges.

    \b
    For readers of spreadsheets, in whole numbers:
      sfumato tables flights.csv --axis carrier=AA,DL,UA --axis hour=0..24/1 \\
        --table carrier,hour --table carrier --epsilon 1 --budget 2 \\
        --published --excel tables.xlsx --csv tables/
    """,
    options={
        "tables": Form(
            gather=parse_tables,
            hint="The columns of one table, separated by commas. Repeat for each table.",
        ),
        "bins": BINS,
        "published": Form(
            click.BOOL,
            flag=True,
            hint="Also give whole numbers of at least 0 that add up exactly, for printing.",
        ),
    },
    rare={
        "width": WIDTH,
        "totals": Form(
            gather=lambda texts: plain_totals(parse_totals(texts)),
            hint="Counts that everybody knows, which the tables then have exactly: "
            "region=north:120,south:80, or 200 for all rows. Repeat for each column.",
        ),
    },
    names={"tables": "--table", "published": "--published"},
)


def ask_persons(settings: PublishSettings, given: Fields) -> None:
    """Publish how many rows each person has; only cells are about axes."""
    if not settings.table.person:
        raise UsageError(
            "sfumato persons",
            "no column was named that identifies the person behind a row",
            "Give --person NAME",
        )
    # No axis is counted. Without one, the person column stands in for the domain of the source.
    domain = (
        settings.table.domain()
        if settings.table.axes
        else Domain({settings.table.person[0]: Keys()})
    )
    measured = given.get("of", "rows")
    if measured != "rows":
        if not settings.table.axes:
            raise UsageError(
                f"sfumato persons --of {measured}",
                "it is measured in cells, and no column says which",
                "Give --axis for each column of the table",
            )
        given["axes"] = settings.table.subject(domain)
    publish(settings, domain, question_of(Persons, given))


# The tables with whole numbers beside the estimates.
PUBLISHED_FORMS = Forms(
    frame=lambda release: cast("TablesRelease", release).to_frame(published=True),
    to_csv=lambda release, path: cast("TablesRelease", release).to_csv(path, published=True),
    write_others=lambda release: [
        "The column published has whole numbers of at least 0 that add up. Small counts in it are "
        "too large on average; compute with the column count."
    ],
)


def ask_tables(settings: PublishSettings, given: Fields) -> None:
    """Publish tables, with whole numbers if they were asked for."""
    is_published = bool(given.pop("published", False))
    question = question_of(Tables, given)
    domain = settings.table.domain()
    if is_published:
        question.require_published(domain)
    publish(settings, domain, question, PUBLISHED_FORMS if is_published else None)


cluster = worded_command("cluster", [KMeans], CLUSTER, asking(KMeans))
persons = worded_command("persons", [Persons], PERSONS, ask_persons)
quantiles = worded_command("quantiles", [Quantiles], QUANTILES, asking(Quantiles, Interval))
tables = worded_command("tables", [Tables], TABLES, ask_tables)
