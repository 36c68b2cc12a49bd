"""``sfumato histogram`` and ``sfumato partition``: counts, and a map, of the columns of one file.

The first counts by category and bin, and finds the epsilon for an accuracy. The second makes a map
of numeric columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import click
import msgspec

from sfumato.answers import (
    AccuracyRequest,
    AnyQuestion,
    Kind,
    Release,
    Within,
    least_alone,
    listed_question,
    tag_of,
)
from sfumato.basics.lazily import listed
from sfumato.basics.numbers import positive
from sfumato.cli.options import (
    FLOAT,
    INTEGER,
    Reading,
    answer_options,
    bin_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.output import emit_json, prose, talk
from sfumato.cli.parsing import parse_allocation, parse_bins, parse_shares, parse_widths
from sfumato.cli.paths import NewFile, files_read, require_unread
from sfumato.cli.publishing import Forms, PublishSettings, made, publish
from sfumato.domain import Categories, Domain
from sfumato.errors import UsageError
from sfumato.mechanisms.thresholds import RULES, Rule
from sfumato.privacy import Shares
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.question import CountedThings, NoiseKind, Workload
from sfumato.questions.partition.release import Partition

# --- sfumato histogram ----------------------------------------------------------------------------


class BinSettings(msgspec.Struct, frozen=True):
    """How the axes are divided, and how keys are selected."""

    bins: tuple[str, ...]
    width: tuple[str, ...]
    records: int | None
    rows: int | None
    selection: Rule
    count: CountedThings
    workload: Workload | None
    noise: NoiseKind | None

    def question(self, axes: tuple[str, ...]) -> Histogram:
        """The histogram of some axes of the domain."""
        return Histogram(
            axes,
            bins=parse_bins(self.bins),
            width=parse_widths(self.width),
            selection=self.selection,
            records=self.records,
            rows=self.rows,
            count=self.count,
            workload=self.workload,
            noise=self.noise,
        )


class AccuracySettings(msgspec.Struct, frozen=True):
    """The accuracy to solve for, in place of a cost."""

    accuracy: str | None
    confidence: str
    simultaneous: bool


@click.command(short_help="Publish a histogram.")
@source_options(optional=True)
@bin_options
@click.option(
    "--records",
    type=INTEGER,
    help="Instead of --bins, for one column: the approximate number of rows in each bin. "
    "Part of the cost pays for choosing the edges.",
)
@click.option(
    "--rows", type=INTEGER, help="With --records: the total number of rows, if it is public."
)
@click.option(
    "--selection",
    type=click.Choice(RULES),
    default=RULES[0],
    show_default=True,
    help="For columns declared NAME=*: the rule that selects which values to publish.",
)
@click.option(
    "--count",
    type=click.Choice(get_args(CountedThings)),
    default="rows",
    show_default=True,
    help="What is counted. With persons, --person names the column; each person is counted once "
    "in a cell, and in at most --rows-per-person cells.",
)
@click.option(
    "--workload",
    type=click.Choice(get_args(Workload)),
    help="What the noise is made for: ranges makes ranges of bins and running totals along the "
    "one numeric column more accurate, and single counts less.",
)
@click.option(
    "--noise",
    type=click.Choice(get_args(NoiseKind)),
    help="What the noise is like: bounded keeps every count within a stated bound of the truth, "
    "always. It needs --delta.",
)
@cost_options
@click.option(
    "--accuracy",
    help="Instead of --epsilon: the largest acceptable error of a count, in rows. "
    "The least epsilon that achieves it is used.",
)
@click.option(
    "--confidence",
    default="0.95",
    show_default=True,
    help="With --accuracy: probability that the error of a count is no larger.",
)
@click.option(
    "--simultaneous",
    is_flag=True,
    help="With --accuracy: --confidence holds for all counts at once, not for each separately.",
)
@click.option(
    "--preview",
    "only_preview",
    is_flag=True,
    help="Only print cost and accuracy. No data are read, and nothing is spent.",
)
@answer_options()
@json_option
@gathers(PublishSettings)
@gathers(BinSettings)
@gathers(AccuracySettings)
def histogram(
    wanted: AccuracySettings,
    bin_settings: BinSettings,
    settings: PublishSettings,
    only_preview: bool,
) -> None:
    """Count the rows of FILE in each group, with noise, and publish the counts.

    FILE is Parquet, CSV or Excel. Groups are the labels of a column, bins of its numbers, or all
    combinations of several columns.
    Without FILE, or with --preview, cost and accuracy are printed, and nothing is published.

    \b
    Counts by hour and kind:
      sfumato histogram trips.parquet --axis hour=0..24/1 --axis kind=a,b \\
        --epsilon 0.5 --budget 2

    \b
    Bins with about 1000 rows each:
      sfumato histogram trips.parquet --axis fare=0..500/0.01 --records 1000 \\
        --epsilon 1 --budget 2

    \b
    Values that you cannot list beforehand:
      sfumato histogram trips.parquet --axis 'shop=*' \\
        --epsilon 1 --delta 1e-6 --budget 3,1e-5

    \b
    The epsilon that an accuracy takes:
      sfumato histogram --accuracy 30 --confidence 0.95
    """
    # Without an axis there is one number to speak of: the count of all rows.
    domain = settings.domain() if settings.axes else Domain(rows=Categories(["all"]))
    question = bin_settings.question(settings.subject(domain))
    if wanted.accuracy is not None:
        if settings.epsilon is not None:
            raise UsageError(
                "--accuracy with --epsilon",
                "either of them fixes the cost",
                "Leave one of them out",
            )
        epsilon = _least_epsilon(question, domain, wanted.accuracy, wanted, settings)
        settings = msgspec.structs.replace(settings, epsilon=epsilon)
    if settings.file is None or only_preview:
        _preview(question, domain, settings)
        return
    if not settings.axes:
        raise UsageError(
            f"a histogram of {settings.file}",
            "it has no axis",
            "Write --axis age=0..100, --axis kind=a,b or --axis 'shop=*'",
        )
    publish(settings, domain, question)


def _least_epsilon(
    question: Histogram,
    domain: Domain,
    accuracy: str,
    wanted: AccuracySettings,
    settings: PublishSettings,
) -> str:
    """The least epsilon for an accuracy, as text. Also prints it to stderr."""
    kind = Kind.of("pure", settings.delta)
    confidence = float(positive(wanted.confidence, "--confidence"))
    within = Within(float(positive(accuracy, "--accuracy")), confidence, wanted.simultaneous)
    unit = settings.unit()
    cost = kind.cost(least_alone(AccuracyRequest(question, domain, unit, None, within), kind))
    sure = f"{100 * confidence:.10g}% confidence"
    talk(f"The least cost for an accuracy of {accuracy} with {sure}: {cost}.")
    return str(kind.level(cost))


def _preview(question: Histogram, domain: Domain, settings: PublishSettings) -> None:
    """Print what a histogram would cost and how accurate it would be."""
    from sfumato.publishing.previews import preview

    found = preview(
        question,
        domain=domain,
        unit=settings.unit(),
        epsilon=settings.epsilon,
        delta=settings.delta,
        rho=settings.rho,
    )
    if settings.as_json:
        emit_json({"preview": found, "accuracy": found.accuracy(), "counted": found.counted})
    else:
        prose(str(found))


# --- sfumato partition ----------------------------------------------------------------------------

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
