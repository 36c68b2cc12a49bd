"""``sfumato quantiles``: quantiles of numeric columns of one file."""

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
)
from sfumato.cli.publishing import Publishing, publish
from sfumato.domain import Interval
from sfumato.quantiles import Quantiles


@click.command(short_help="Publish quantiles.")
@source_options()
@click.option(
    "--at", default="0.25,0.5,0.75", show_default=True, help="Which quantiles, between 0 and 1."
)
@click.option("--by", help="Labels that divide the rows: the name of an axis NAME=a,b,c.")
@click.option(
    "--method",
    type=click.Choice(["auto", "joint", "recursive", "tree"]),
    default="auto",
    show_default=True,
    help="How they are chosen.",
)
@cost_options
@charged_option
@fresh_option
@out_option
@plot_option("them")
@json_option
@gathers(Publishing)
def quantiles(told: Publishing, at: str, by: str | None, method: str) -> None:
    """Publish below which values given shares of the rows of FILE (Parquet or CSV) lie, for each numeric axis.

    Example: sfumato quantiles flights.parquet --axis delay=-60..240 --axis kind=a,b --by kind --epsilon 0.5 --budget 2
    """
    domain = told.domain()
    names = tuple(domain.of_kind(Interval))
    publish(told, domain, Quantiles(names or None, at=at.split(","), by=by, method=method))
