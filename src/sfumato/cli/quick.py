"""``sfumato histogram``, ``sfumato partition`` and ``sfumato quantiles``: one question about one file, without a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import cost_options, fresh_option, json_option, ledger_option, out_option, parse_axes, parse_bins, source_options
from sfumato.cli.output import scanning, show_releases, talk
from sfumato.domain import Domain, Interval
from sfumato.errors import DataError, UsageError
from sfumato.histogram import Histogram
from sfumato.partition import Partition, UniformPartitioner
from sfumato.quantiles import Quantiles
from sfumato.release import Release
from sfumato.releases import AnyQuestion

PICTURES = (".svg", ".png", ".pdf")


@click.command(short_help="Publish a histogram.")
@source_options
@click.option("--bins", multiple=True, help="NUMBER, or NAME=NUMBER, or NAME=edge,edge,edge.")
@cost_options
@ledger_option
@fresh_option
@out_option
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw it, as SVG, PNG or PDF.")
@json_option
def histogram(file: Path, axes: tuple[str, ...], bins: tuple[str, ...], **options: Any) -> None:
    """Publish how many rows of FILE (Parquet or CSV) fall in each cell of the given axes.

    Example: sfumato histogram trips.parquet --axis hour=0..24/1 --axis kind=a,b --epsilon 0.5 --budget 2
    """
    domain = Domain(parse_axes(axes))
    _publish(file, domain, Histogram(tuple(domain), bins=parse_bins(bins)), **options)


@click.command(short_help="Publish a private map.")
@source_options
@click.option("--method", type=click.Choice(["uniform"]), default="uniform", show_default=True, help="How space is divided.")
@click.option("--partitions", type=int, help="Number of cells to aim at; else EUGkM's rule decides from a noisy count.")
@click.option("--geojson", type=click.Path(path_type=Path), help="Also write the cells as GeoJSON.")
@cost_options
@ledger_option
@fresh_option
@out_option
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw it, as SVG, PNG or PDF.")
@json_option
def partition(file: Path, axes: tuple[str, ...], method: str, partitions: int | None, geojson: Path | None, **options: Any) -> None:
    """Publish where the rows of FILE (Parquet or CSV) lie: disjoint cells of numeric axes, each with a noisy count.

    Example: sfumato partition cities.parquet --axis longitude=-180..180 --axis latitude=-90..90 --epsilon 1 --budget 2
    """
    domain = Domain(parse_axes(axes))
    answer = _publish(file, domain, UniformPartitioner(tuple(domain), partitions=partitions), **options)
    if geojson is not None and isinstance(answer, Partition):
        answer.to_geojson(geojson)
        talk(f"GeoJSON: {geojson}")


@click.command(short_help="Publish quantiles.")
@source_options
@click.option("--at", default="0.25,0.5,0.75", show_default=True, help="Which quantiles, between 0 and 1.")
@click.option("--by", help="Labels that divide the rows: the name of an axis NAME=a,b,c.")
@click.option(
    "--method", type=click.Choice(["auto", "joint", "recursive", "tree"]), default="auto", show_default=True, help="How they are chosen."
)
@cost_options
@ledger_option
@fresh_option
@out_option
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw them, as SVG, PNG or PDF.")
@json_option
def quantiles(file: Path, axes: tuple[str, ...], at: str, by: str | None, method: str, **options: Any) -> None:
    """Publish below which values given shares of the rows of FILE (Parquet or CSV) lie, for each numeric axis.

    Example: sfumato quantiles flights.parquet --axis delay=-60..240 --axis kind=a,b --by kind --epsilon 0.5 --budget 2
    """
    domain = Domain(parse_axes(axes))
    names = tuple(name for name, axis in domain.items() if isinstance(axis, Interval))
    _publish(file, domain, Quantiles(names or None, at=at.split(","), by=by, method=method), **options)


def _publish(
    file: Path,
    domain: Domain,
    question: AnyQuestion,
    *,
    person: str | None,
    rows_per_person: int,
    neighbours: str,
    account: str,
    budget: str | None,
    epsilon: str | None,
    rho: str | None,
    ledger: Path,
    fresh: bool,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> Release:
    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise UsageError(f"--plot {plot}", "its ending names no picture format", f"Use one of {', '.join(PICTURES)}")
    from sfumato.data import source
    from sfumato.ledger.ledger import written
    from sfumato.privacy.measures import ZCDP
    from sfumato.publisher import Publisher

    src = source(file, domain, person=person, rows_per_person=rows_per_person, neighbours=neighbours)  # type: ignore[arg-type]
    total = ZCDP(budget) if budget is not None and rho is not None else budget
    publisher = Publisher(src, ledger=ledger, account=account, budget=total)
    with scanning() as progress:
        answer = publisher.release(question, epsilon=epsilon, rho=rho, fresh=fresh, progress=progress)
    state = publisher.account
    show_releases([answer], as_json=as_json, out=out, charged=f"Remaining: {written(state.rule, state.remaining)}.")
    if plot is not None:
        save_plot(answer, plot)
        talk(f"Plot: {plot}")
    return answer


def save_plot(answer: Release, path: Path) -> None:
    """Draw a release into a file whose ending names the format."""
    try:
        answer.plot().figure.savefig(path)
    except (OSError, ValueError):
        reason = "the file cannot be written"
    else:
        return
    raise DataError(f"drawing to {path}", reason, "Choose a path that can be written")
