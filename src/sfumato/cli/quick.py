"""``sfumato histogram``, ``sfumato partition`` and ``sfumato cluster``: one question about one file, without a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from sfumato.cli.options import cost_options, fresh_option, json_option, ledger_option, out_option, parse_axes, parse_bins, source_options
from sfumato.cli.output import scanning, show_releases, talk
from sfumato.clustering import KMeans
from sfumato.clustering.kmeans import Method
from sfumato.domain import Domain
from sfumato.errors import DataError, UsageError
from sfumato.histogram import Histogram
from sfumato.partition import (
    AdaptiveGridPartitioner,
    AutoPartitioner,
    BinaryPartitioner,
    MedianPartitioner,
    MultiQuantilePartitioner,
    Partition,
    PrivTreePartitioner,
    UniformPartitioner,
)
from sfumato.release import Release
from sfumato.releases import AnyPartitioner, AnyQuestion

PICTURES = (".svg", ".png", ".pdf")
METHODS: dict[str, type[AnyPartitioner]] = {
    "auto": AutoPartitioner,
    "uniform": UniformPartitioner,
    "adaptive": AdaptiveGridPartitioner,
    "privtree": PrivTreePartitioner,
    "binary": BinaryPartitioner,
    "median": MedianPartitioner,
    "quantile": MultiQuantilePartitioner,
}
PARAMETERS = ("partitions", "depth", "fanout", "stop_below")


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
@click.option("--method", type=click.Choice(list(METHODS)), default="auto", show_default=True, help="How space is divided.")
@click.option("--partitions", type=int, help="uniform: number of cells to aim at; else EUGkM's rule decides from a noisy count.")
@click.option("--depth", type=int, help="binary, median, quantile: how many times a box is split at most.")
@click.option("--fanout", type=int, help="quantile, privtree: into how many boxes a box is split.")
@click.option("--stop-below", type=float, help="binary, median, quantile: a box with fewer rows, by a noisy count, is not split.")
@click.option("--geojson", type=click.Path(path_type=Path), help="Also write the cells as GeoJSON.")
@cost_options
@ledger_option
@fresh_option
@out_option
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw it, as SVG, PNG or PDF.")
@json_option
def partition(file: Path, axes: tuple[str, ...], method: str, geojson: Path | None, **options: Any) -> None:
    """Publish where the rows of FILE (Parquet or CSV) lie: disjoint cells of numeric axes, each with a noisy count.

    Example: sfumato partition cities.parquet --axis longitude=-180..180 --axis latitude=-90..90 --epsilon 1 --budget 2
    """
    domain = Domain(parse_axes(axes))
    asked = {name: value for name in PARAMETERS if (value := options.pop(name)) is not None}
    answer = _publish(file, domain, _partitioner(method, tuple(domain), asked), **options)
    if geojson is not None and isinstance(answer, Partition):
        answer.to_geojson(geojson)
        talk(f"GeoJSON: {geojson}")


@click.command(short_help="Publish centres of clusters.")
@source_options
@click.option("--clusters", type=int, default=5, show_default=True, help="How many centres.")
@click.option("--method", type=click.Choice(get_args(Method)), default="auto", show_default=True, help="How they are found.")
@cost_options
@ledger_option
@fresh_option
@out_option
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw it, as SVG, PNG or PDF.")
@json_option
def cluster(file: Path, axes: tuple[str, ...], clusters: int, method: str, **options: Any) -> None:
    """Publish which kinds of rows FILE (Parquet or CSV) holds: centres of clusters over numeric axes, and their weights.

    Distances are measured with each axis scaled to its bounds.
    Example: sfumato cluster people.parquet --axis age=0..100 --axis wage=0..2000 --clusters 4 --epsilon 1 --budget 2
    """
    domain = Domain(parse_axes(axes))
    _publish(file, domain, KMeans(clusters, tuple(domain), method=method), **options)  # type: ignore[arg-type]


def _partitioner(method: str, axes: tuple[str, ...], asked: dict[str, Any]) -> AnyQuestion:
    """The question that the options describe; an option that the method does not know is refused."""
    kind = METHODS[method]
    for name in asked:
        if name not in kind.__struct_fields__:
            fits = ", ".join(word for word, other in METHODS.items() if name in other.__struct_fields__)
            raise UsageError(
                f"--{name.replace('_', '-')} with --method {method}", f"it belongs to {fits}", "Leave it out, or choose another method"
            )
    return kind(axes, **asked)


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
