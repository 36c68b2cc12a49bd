"""``sfumato partition``: a map of numeric columns of one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import listed_question, tag_of
from sfumato.cli.option_types import FLOAT, INTEGER
from sfumato.cli.options import (
    charged_option,
    cost_options,
    fresh_option,
    gathers,
    json_option,
    out_option,
    plot_option,
    source_options,
    words_options,
)
from sfumato.cli.output import talk
from sfumato.cli.output_paths import NewFile
from sfumato.cli.publishing import PublishSettings, made, publish
from sfumato.errors import UsageError
from sfumato.lazily import listed
from sfumato.partition.partition import Partition

SHORT_NAMES = {"adaptive-grid": "adaptive", "multi-quantile": "quantile"}


def _methods() -> dict[str, type[AnyQuestion]]:
    """The partitioners of the library by the names that --method takes."""
    found = {}
    for place in listed("questions").values():
        if place.startswith("sfumato.partition."):
            kind = listed_question(place)
            tag = tag_of(kind)
            found[SHORT_NAMES.get(tag, tag)] = kind
    return found


METHODS = _methods()


class PartitionSettings(msgspec.Struct, frozen=True):
    """How space is divided."""

    method: str | None
    partitions: int | None
    depth: int | None
    fanout: int | None
    stop_below: float | None

    def question(self, axes: tuple[str, ...]) -> AnyQuestion:
        """The partitioner that these options describe."""
        options = {
            "partitions": self.partitions,
            "depth": self.depth,
            "fanout": self.fanout,
            "stop_below": self.stop_below,
        }
        given = {name: value for name, value in options.items() if value is not None}
        method = self.method or ("auto" if self.partitions is None else "uniform")
        return _partitioner(method, axes, given)


@click.command(short_help="Publish a map.")
@source_options()
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    help="Method that divides the space into cells."
    "  [default: auto, or uniform if --partitions is given]",
)
@click.option(
    "--partitions",
    type=INTEGER,
    help="For uniform: approximate number of cells."
    "  [default: chosen by EUGkM's rule, from a noisy count of the rows]",
)
@click.option(
    "--depth",
    type=INTEGER,
    help="For binary, median, quantile: the largest number of splits on the way to a cell."
    "  [default: 8; quantile: 3]",
)
@click.option(
    "--fanout",
    type=INTEGER,
    help="For quantile, privtree: the number of parts of each split."
    "  [default: quantile: 4; privtree: 2]",
)
@click.option(
    "--stop-below",
    type=FLOAT,
    help="For binary, median, quantile: do not split a cell whose noisy count is below this."
    "  [default: no limit]",
)
@click.option(
    "--geojson",
    type=NewFile(),
    help="Also write the cells to this file as GeoJSON; the columns are longitude and latitude.",
)
@cost_options
@charged_option
@fresh_option
@words_options
@out_option
@plot_option()
@json_option
@gathers(PublishSettings)
@gathers(PartitionSettings)
def partition(
    partition_settings: PartitionSettings,
    settings: PublishSettings,
    geojson: Path | None,
) -> None:
    """Publish where the rows of FILE (Parquet, CSV or Excel) lie: a map of numeric columns.

    The space of the columns is divided into boxes that do not overlap, the cells. Each cell gets a
    noisy count of its rows. By default the cells
    are smaller where there are more rows.

    \b
    Example:
      sfumato partition cities.parquet --axis longitude=-180..180 \\
        --axis latitude=-90..90 --epsilon 1 --budget 2
    """
    domain = settings.domain()
    axes = settings.subject(domain)
    if geojson is not None and len(axes) != 2:
        raise UsageError(
            f"--geojson of {len(axes)} axes",
            "GeoJSON takes two",
            "Partition two axes, longitude and latitude",
        )
    answer = publish(settings, domain, partition_settings.question(axes))
    if geojson is not None and isinstance(answer, Partition):
        answer.to_geojson(geojson)
        talk(f"GeoJSON: {geojson}")


def _partitioner(method: str, axes: tuple[str, ...], given: Mapping[str, object]) -> AnyQuestion:
    """Make the question. An option that the method does not have is refused."""
    kind = METHODS[method]
    for name in given:
        if name not in kind.__struct_fields__:
            others = [
                other
                for other, other_kind in METHODS.items()
                if name in other_kind.__struct_fields__
            ]
            raise UsageError(
                f"--{name.replace('_', '-')} with --method {method}",
                f"it belongs to {', '.join(others)}",
                "Leave it out, or choose another method",
            )
    return made(kind, {"axes": axes, **given})
