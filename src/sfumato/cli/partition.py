"""``sfumato partition``: a private map of numeric columns of one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import listed_question, tag_of
from sfumato.cli.options import (
    FLOAT,
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
from sfumato.cli.output import talk
from sfumato.cli.publishing import Publishing, made, publish
from sfumato.cli.targets import NewFile
from sfumato.errors import UsageError
from sfumato.lazily import listed
from sfumato.partition.partition import Partition

SHORT = {"adaptive-grid": "adaptive", "multi-quantile": "quantile"}
PLACES = [place for place in listed("questions").values() if place.startswith("sfumato.partition.")]
KINDS = [listed_question(place) for place in PLACES]
METHODS = {SHORT.get(tag_of(kind), tag_of(kind)): kind for kind in KINDS}


@click.command(short_help="Publish a private map.")
@source_options()
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    help="How space is divided; auto, or uniform where --partitions is given.",
)
@click.option(
    "--partitions",
    type=INTEGER,
    help="uniform: number of cells to aim at; else EUGkM's rule decides from a noisy count.",
)
@click.option(
    "--depth", type=INTEGER, help="binary, median, quantile: how many times a box is split at most."
)
@click.option(
    "--fanout", type=INTEGER, help="quantile, privtree: into how many boxes a box is split."
)
@click.option(
    "--stop-below",
    type=FLOAT,
    help="binary, median, quantile: a box with fewer rows, by a noisy count, is not split.",
)
@click.option("--geojson", type=NewFile(), help="Also write the cells as GeoJSON.")
@cost_options
@charged_option
@fresh_option
@out_option
@plot_option()
@json_option
@gathers(Publishing)
def partition(
    told: Publishing,
    method: str | None,
    partitions: int | None,
    depth: int | None,
    fanout: int | None,
    stop_below: float | None,
    geojson: Path | None,
) -> None:
    """Publish where the rows of FILE (Parquet or CSV) lie: disjoint cells of numeric axes, each with a noisy count.

    Example: sfumato partition cities.parquet --axis longitude=-180..180 --axis latitude=-90..90 --epsilon 1 --budget 2
    """
    domain = told.domain()
    if geojson is not None and len(domain) != 2:
        raise UsageError(
            f"--geojson of {len(domain)} axes",
            "GeoJSON takes two",
            "Partition two axes, longitude and latitude",
        )
    options = {"partitions": partitions, "depth": depth, "fanout": fanout, "stop_below": stop_below}
    asked = {name: value for name, value in options.items() if value is not None}
    chosen = method or ("auto" if partitions is None else "uniform")
    answer = publish(told, domain, _partitioner(chosen, tuple(domain), asked))
    if geojson is not None and isinstance(answer, Partition):
        answer.to_geojson(geojson)
        talk(f"GeoJSON: {geojson}")


def _partitioner(method: str, axes: tuple[str, ...], asked: Mapping[str, object]) -> AnyQuestion:
    """The question that the options describe; an option that the method does not know is refused."""
    kind = METHODS[method]
    for name in asked:
        if name not in kind.__struct_fields__:
            fits = ", ".join(
                word for word, other in METHODS.items() if name in other.__struct_fields__
            )
            obstacle = f"it belongs to {fits}"
            remedy = "Leave it out, or choose another method"
            raise UsageError(f"--{name.replace('_', '-')} with --method {method}", obstacle, remedy)
    return made(kind, {"axes": axes, **asked})
