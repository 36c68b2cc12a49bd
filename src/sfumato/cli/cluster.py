"""``sfumato cluster``: centres of clusters over numeric columns of one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from sfumato.cli.options import INTEGER, charged_option, cost_options, fresh_option, json_option, out_option, parse_axes, source_options
from sfumato.cli.publishing import publish
from sfumato.cli.targets import Picture
from sfumato.clustering import KMeans
from sfumato.clustering.kmeans import Method
from sfumato.domain import Domain


@click.command(short_help="Publish centres of clusters.")
@source_options()
@click.option("--clusters", type=INTEGER, default=5, show_default=True, help="How many centres.")
@click.option("--method", type=click.Choice(get_args(Method)), default="auto", show_default=True, help="How they are found.")
@cost_options
@charged_option
@fresh_option
@out_option
@click.option("--plot", type=Picture(), help="Also draw it, as SVG, PNG or PDF.")
@json_option
def cluster(file: Path, axes: tuple[str, ...], clusters: int, method: str, **options: Any) -> None:
    """Publish which kinds of rows FILE (Parquet or CSV) holds: centres of clusters over numeric axes, and their weights.

    Distances are measured with each axis scaled to its bounds.
    Example: sfumato cluster people.parquet --axis age=0..100 --axis wage=0..2000 --clusters 4 --epsilon 1 --budget 2
    """
    domain = Domain(parse_axes(axes))
    publish(file, domain, KMeans(clusters, tuple(domain), method=method), **options)  # type: ignore[arg-type]
