"""``sfumato cluster``: centres of clusters over numeric columns of one file."""

from __future__ import annotations

from typing import get_args

import click

from sfumato.cli.options import (
    INTEGER,
    charged_option,
    cost_options,
    fresh_option,
    gathers,
    json_option,
    out_option,
    plot_option,
    source_options,
)
from sfumato.cli.publishing import Publishing, publish
from sfumato.clustering import KMeans
from sfumato.clustering.kmeans import Method


@click.command(short_help="Publish centres of clusters.")
@source_options()
@click.option("--clusters", type=INTEGER, default=5, show_default=True, help="How many centres.")
@click.option(
    "--method",
    type=click.Choice(get_args(Method)),
    default="auto",
    show_default=True,
    help="How they are found.",
)
@cost_options
@charged_option
@fresh_option
@out_option
@plot_option()
@json_option
@gathers(Publishing)
def cluster(told: Publishing, clusters: int, method: Method) -> None:
    """Publish which kinds of rows FILE (Parquet or CSV) holds: centres of clusters over numeric axes, and their weights.

    Distances are measured with each axis scaled to its bounds.
    Example: sfumato cluster people.parquet --axis age=0..100 --axis wage=0..2000 --clusters 4 --epsilon 1 --budget 2
    """
    domain = told.domain()
    publish(told, domain, KMeans(clusters, tuple(domain), method=method))
