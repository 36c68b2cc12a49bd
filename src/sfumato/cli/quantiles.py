"""``sfumato quantiles``: quantiles of numeric columns of one file."""

from __future__ import annotations

import click

from sfumato.cli.options import (
    answer_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.domain.domain import Interval
from sfumato.questions.quantiles import Quantiles


@click.command(short_help="Publish quantiles.")
@source_options()
@click.option(
    "--at",
    default="0.25,0.5,0.75",
    show_default=True,
    help="The quantiles, as increasing shares of the rows between 0 and 1, separated by commas.",
)
@click.option(
    "--by",
    help="Column of labels, declared by --axis NAME=a,b,c: the quantiles of each label's rows."
    "  [default: of all rows]",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "joint", "recursive", "tree"]),
    default="auto",
    show_default=True,
    help="Algorithm: all at once (joint), one after another by halving (recursive), from noisy "
    "counts (tree); auto chooses by the number of quantiles.",
)
@cost_options
@answer_options("the answers")
@json_option
@gathers(PublishSettings)
def quantiles(settings: PublishSettings, at: str, by: str | None, method: str) -> None:
    """Publish medians, quartiles and other quantiles of the numeric columns of FILE.

    FILE is Parquet, CSV or Excel. A quantile at 0.9 is a value below which 90% of the rows lie.

    \b
    Example:
      sfumato quantiles flights.parquet --axis delay=-60..240 --axis kind=a,b \\
        --by kind --epsilon 0.5 --budget 2
    """
    domain = settings.domain()
    intervals = domain.of_kind(Interval)
    names = tuple(name for name in settings.subject(domain) if name in intervals)
    publish(settings, domain, Quantiles(names or None, at=at.split(","), by=by, method=method))
