"""``sfumato cluster``: centres of clusters over numeric columns of one file."""

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
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.questions.clustering import KMeans
from sfumato.questions.clustering.kmeans import Method


@click.command(short_help="Publish centres of clusters.")
@source_options()
@click.option(
    "--clusters", type=INTEGER, default=5, show_default=True, help="Number of clusters to find."
)
@click.option(
    "--method",
    type=click.Choice(get_args(Method)),
    default="auto",
    show_default=True,
    help="Algorithm: a noisy grid (eugkm), noisy Lloyd steps (dplloyd), a noisy tree (privtree); "
    "auto chooses by the number of columns and a noisy number of rows.",
)
@cost_options
@answer_options()
@json_option
@gathers(PublishSettings)
def cluster(settings: PublishSettings, clusters: int, method: Method) -> None:
    """Publish the centres and sizes of clusters of the rows of FILE, by k-means.

    FILE is Parquet, CSV or Excel. The columns are numeric. Each is scaled by its bounds before
    distances are measured.

    \b
    Example:
      sfumato cluster people.parquet --axis age=0..100 --axis wage=0..2000 \\
        --clusters 4 --epsilon 1 --budget 2
    """
    domain = settings.domain()
    publish(settings, domain, KMeans(clusters, settings.subject(domain), method=method))
