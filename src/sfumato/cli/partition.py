"""``sfumato partition``: a map of numeric columns of one file."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from sfumato.answers import AnyQuestion, Release, listed_question, tag_of
from sfumato.basics import listed
from sfumato.cli.options import Reading
from sfumato.cli.parsing import parse_allocation, parse_shares
from sfumato.cli.paths import NewFile, files_read, require_unread
from sfumato.cli.publishing import Forms, PublishSettings, publish, question_of
from sfumato.cli.question_command import Fields, Form, Wording, worded_command
from sfumato.errors import UsageError
from sfumato.questions.partition.release import Partition

SHORT_NAMES = {"adaptive-grid": "adaptive", "multi-quantile": "quantile"}
PARTITIONERS = [
    listed_question(place)
    for place in listed("sfumato.questions").values()
    if place.startswith("sfumato.questions.partition.")
]
# The partitioners of the library by the names that --method takes.
METHODS: dict[str, type[AnyQuestion]] = {
    SHORT_NAMES.get(tag_of(kind), tag_of(kind)): kind for kind in PARTITIONERS
}


def _map_forms(geojson: Path) -> Forms:
    """Return the forms of a map whose cells are also written as GeoJSON."""

    def write(release: Release) -> list[str]:
        cast(Partition, release).to_geojson(geojson)
        return [f"GeoJSON: {geojson}"]

    return Forms(write_others=write)


PARTITION = Wording(
    text="""Publish where the rows of FILE (Parquet, CSV or Excel) lie: a map of numeric columns.

    The space of the columns is divided into boxes that do not overlap, the cells. Each cell gets a
    noisy count of its rows. By default the cells are smaller where there are more rows.

    \b
    Example:
      sfumato partition cities.parquet --axis longitude=-180..180 \\
        --axis latitude=-90..90 --epsilon 1 --budget 2
    """,
    options={
        "method": Form(
            click.Choice(list(METHODS)),
            hint="Method that divides the space into cells."
            "  [default: auto; with --partitions, uniform]",
        ),
        "partitions": "For uniform: approximate number of cells."
        "  [default: by EUGkM's rule, from a noisy count]",
        "geojson": Form(
            NewFile(),
            hint="Also write the cells to this file as GeoJSON. The columns are longitude and "
            "latitude.",
        ),
    },
    rare={
        "depth": "For binary, median, quantile: the largest number of splits on the way to a cell."
        "  [default: 8; quantile: 3]",
        "fanout": "For quantile, privtree: the number of parts of each split."
        "  [default: quantile: 4; privtree: 2]",
        "at": "For quantile: the quantiles at which a cell is split, increasing, separated by "
        "commas.  [default: even ones]",
        "theta": "For uniform: the constant of EUGkM's rule; a larger one makes larger cells."
        "  [default: 10]",
        "stop_below": "For binary, median, quantile: do not split a cell whose noisy count is "
        "below this; for uniform: a block of cells with fewer stays one cell."
        "  [default: no limit]",
        "shares": Form(
            Reading("shares", parse_shares, "shares such as release=2,partition=1,threshold=1"),
            hint="For uniform, binary, median, quantile: how the cost is divided between the "
            "counts of the cells (release), choosing where they lie (partition), and the counts "
            "that decide whether a cell is split (threshold). Write "
            "release=2,partition=1,threshold=1; a part that is left out is 0.  [default: binary: "
            "1, 0, 1; median, quantile: 2, 1, 1; uniform: 1/50 for partition]",
        ),
        "allocation": Form(
            Reading("text", parse_allocation, "a name, or weights"),
            hint="For binary, median, quantile: how a share is divided over the levels: uniform, "
            "geometric, linear, or a weight for each, from the largest cell down."
            "  [default: geometric]",
        ),
    },
)


def ask_partition(settings: PublishSettings, given: Fields) -> None:
    """Publish a map by the method that is named. An option that it does not have is refused."""
    geojson = given.pop("geojson", None)
    method = str(given.pop("method", "uniform" if "partitions" in given else "auto"))
    domain = settings.table.domain()
    axes = settings.table.subject(domain)
    if geojson is not None and len(axes) != 2:
        raise UsageError(
            "--geojson of one axis" if len(axes) == 1 else f"--geojson of {len(axes)} axes",
            "GeoJSON takes two",
            "Partition two axes, longitude and latitude",
        )
    forms = None
    if isinstance(geojson, Path):
        forms = _map_forms(geojson)
        if settings.table.file is not None:
            require_unread("--geojson", geojson, files_read(settings.table.file))
    for name in given:
        owners = [other for other, kind in METHODS.items() if name in kind.__struct_fields__]
        if method not in owners:
            raise UsageError(
                f"--{name.replace('_', '-')} with --method {method}",
                f"it belongs to {', '.join(owners)}",
                "Leave it out, or choose another method",
            )
    question = question_of(METHODS[method], {"axes": axes} | given)
    publish(settings, domain, question, forms)


partition = worded_command("partition", list(METHODS.values()), PARTITION, ask_partition)
