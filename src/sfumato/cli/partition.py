"""``sfumato partition``: a map of numeric columns of one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import listed_question, tag_of
from sfumato.answers.release import Release
from sfumato.basics.lazily import listed
from sfumato.cli.answer_files import Forms
from sfumato.cli.option_types import FLOAT, INTEGER, Reading
from sfumato.cli.options import (
    answer_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.output_paths import NewFile, files_read, require_unread
from sfumato.cli.parsing import parse_allocation, parse_shares
from sfumato.cli.publishing import PublishSettings, made, publish
from sfumato.errors import UsageError
from sfumato.privacy.allocation import Shares
from sfumato.questions.partition.release import Partition

SHARES = Reading("shares", parse_shares, "shares such as release=2,partition=1,threshold=1")

SHORT_NAMES = {"adaptive-grid": "adaptive", "multi-quantile": "quantile"}


def _methods() -> dict[str, type[AnyQuestion]]:
    """The partitioners of the library by the names that --method takes."""
    found = {}
    for place in listed("sfumato.questions").values():
        if place.startswith("sfumato.questions.partition."):
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
    at: str | None
    theta: float | None
    stop_below: float | None
    shares: Shares | None
    allocation: str | None

    def question(self, axes: tuple[str, ...]) -> AnyQuestion:
        """The partitioner that these options describe."""
        options = {
            "partitions": self.partitions,
            "depth": self.depth,
            "fanout": self.fanout,
            "at": None if self.at is None else self.at.split(","),
            "theta": self.theta,
            "stop_below": self.stop_below,
            "shares": self.shares,
            "allocation": None if self.allocation is None else parse_allocation(self.allocation),
        }
        given = {name: value for name, value in options.items() if value is not None}
        method = self.method or ("auto" if self.partitions is None else "uniform")
        return _partitioner(method, axes, given)


class MapForms(Forms):
    """The cells also as GeoJSON."""

    def __init__(self, geojson: Path) -> None:
        self.geojson = geojson

    def write_others(self, release: Release) -> list[str]:
        """Write the GeoJSON file."""
        assert isinstance(release, Partition)
        release.to_geojson(self.geojson)
        return [f"GeoJSON: {self.geojson}"]


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
    "--at",
    help="For quantile: the quantiles at which a cell is split, increasing, separated by commas."
    "  [default: even ones]",
)
@click.option(
    "--theta",
    type=FLOAT,
    help="For uniform: the constant of EUGkM's rule; a larger one makes larger cells."
    "  [default: 10]",
)
@click.option(
    "--stop-below",
    type=FLOAT,
    help="For binary, median, quantile: do not split a cell whose noisy count is below this; for "
    "uniform: a block of cells with fewer stays one cell.  [default: no limit]",
)
@click.option(
    "--shares",
    type=SHARES,
    help="For uniform, binary, median, quantile: how the cost is divided between the counts of the "
    "cells (release), choosing where they lie (partition), and the counts that decide whether a "
    "cell is split (threshold). Write release=2,partition=1,threshold=1; a part that is left out "
    "is 0.  [default: binary: 1, 0, 1; median, quantile: 2, 1, 1; uniform: 1/50 for partition]",
)
@click.option(
    "--allocation",
    help="For binary, median, quantile: how a share is divided over the levels: uniform, "
    "geometric, linear, or a weight for each, from the largest cell down."
    "  [default: geometric]",
)
@click.option(
    "--geojson",
    type=NewFile(),
    help="Also write the cells to this file as GeoJSON; the columns are longitude and latitude.",
)
@cost_options
@answer_options()
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
            "--geojson of one axis" if len(axes) == 1 else f"--geojson of {len(axes)} axes",
            "GeoJSON takes two",
            "Partition two axes, longitude and latitude",
        )
    if settings.file is not None:
        require_unread("--geojson", geojson, files_read(settings.file))
    forms = None if geojson is None else MapForms(geojson)
    publish(settings, domain, partition_settings.question(axes), forms)


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
