"""``sfumato histogram`` and ``sfumato partition``: counts, and a map, of the columns of one file.

The first counts by category and bin, and finds the epsilon for an accuracy. The second makes a map
of numeric columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

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
from sfumato.basics import listed, positive
from sfumato.cli.options import Reading
from sfumato.cli.output import emit_json, prose, talk
from sfumato.cli.parsing import parse_allocation, parse_shares
from sfumato.cli.paths import NewFile, files_read, require_unread
from sfumato.cli.publishing import Forms, PublishSettings, made, publish
from sfumato.cli.question_command import BINS, WIDTH, Fields, Form, Wording, worded_command
from sfumato.domain import Categories, Domain
from sfumato.errors import UsageError
from sfumato.mechanisms import RULES
from sfumato.publishing.previews import preview
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.question import CountedThings
from sfumato.questions.partition.release import Partition

HISTOGRAM = Wording(
    text="""Count the rows of FILE in each group, with noise, and publish the counts.

    FILE is Parquet, CSV or Excel. Groups are the labels of a column, bins of its numbers, or all
    combinations of several columns.

    \b
    Counts by hour and kind:
      sfumato histogram trips.parquet --axis hour=0..24/1 --axis kind=a,b \\
        --epsilon 0.5 --budget 2
    \f
    Without FILE, or with --preview, cost and accuracy are printed, and nothing is published.

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
    """,
    options={
        "bins": BINS,
        "width": WIDTH,
        "count": Form(
            click.Choice(get_args(CountedThings)),
            hint="What is counted. With persons, --person names the column; each person is "
            "counted once in a cell, and in at most --rows-per-person cells.",
        ),
        "preview": Form(
            click.BOOL,
            flag=True,
            hint="Only print cost and accuracy. No data are read, and nothing is spent.",
        ),
    },
    rare={
        "records": "Instead of --bins, for one column: the approximate number of rows in each "
        "bin. Part of the cost pays for choosing the edges.",
        "rows": "With --records: the total number of rows, if it is public.",
        "selection": Form(
            click.Choice(RULES),
            hint="For columns declared NAME=*: the rule that selects which values to publish.",
        ),
        "workload": "What the noise is made for: ranges makes ranges of bins and running totals "
        "along the one numeric column more accurate, and single counts less.",
        "noise": "What the noise is like: bounded keeps every count within a stated bound of the "
        "truth, always. It needs --delta.",
        "accuracy": "Instead of --epsilon: the largest acceptable error of a count, in rows. "
        "The least epsilon that achieves it is used.",
        "confidence": "With --accuracy: probability that the error of a count is no larger."
        "  [default: 0.95]",
        "simultaneous": Form(
            click.BOOL,
            flag=True,
            hint="With --accuracy: --confidence holds for all counts at once, not for each "
            "separately.",
        ),
    },
    names={"simultaneous": "--simultaneous", "preview": "--preview"},
    has_file=False,
    has_axes=False,
)


class AccuracySettings(msgspec.Struct, frozen=True):
    """The accuracy to solve for, in place of a cost, and whether it is only shown."""

    accuracy: str | None = None
    confidence: str = "0.95"
    simultaneous: bool = False
    preview: bool = False


def ask_histogram(settings: PublishSettings, given: Fields) -> None:
    """Publish a histogram, or show what it would cost."""
    # Without an axis there is one number to speak of: the count of all rows.
    domain = settings.table.domain() if settings.table.axes else Domain(rows=Categories(["all"]))
    stated = given.keys() & set(AccuracySettings.__struct_fields__)
    wanted = msgspec.convert({name: given.pop(name) for name in stated}, AccuracySettings)
    question = made(Histogram, {"axes": settings.table.subject(domain)} | given)
    if wanted.accuracy is not None:
        if settings.paid.epsilon is not None:
            raise UsageError(
                "--accuracy with --epsilon",
                "either of them fixes the cost",
                "Leave one of them out",
            )
        epsilon = _least_epsilon(question, domain, wanted.accuracy, wanted, settings)
        paid = msgspec.structs.replace(settings.paid, epsilon=epsilon)
        settings = msgspec.structs.replace(settings, paid=paid)
    if settings.table.file is None or wanted.preview:
        _preview(question, domain, settings)
        return
    if not settings.table.axes:
        raise UsageError(
            f"a histogram of {settings.table.file}",
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
    """Return the least epsilon for an accuracy, as text. Also print it to stderr."""
    kind = Kind.of("pure", settings.paid.delta)
    confidence = float(positive(wanted.confidence, "--confidence"))
    within = Within(float(positive(accuracy, "--accuracy")), confidence, wanted.simultaneous)
    unit = settings.table.unit()
    cost = kind.cost(least_alone(AccuracyRequest(question, domain, unit, None, within), kind))
    talk(
        f"The least cost for an accuracy of {accuracy} with {100 * confidence:.10g}% confidence: "
        f"{cost}."
    )
    return str(kind.level(cost))


def _preview(question: Histogram, domain: Domain, settings: PublishSettings) -> None:
    """Print what a histogram would cost and how accurate it would be."""
    settings.paid.require_cost()
    previewed = preview(
        question,
        domain=domain,
        unit=settings.table.unit(),
        epsilon=settings.paid.epsilon,
        delta=settings.paid.delta,
        rho=settings.paid.rho,
    )
    if settings.as_json:
        emit_json(
            {"preview": previewed, "accuracy": previewed.accuracy(), "counted": previewed.counted}
        )
    else:
        prose(str(previewed))


# --- sfumato partition ----------------------------------------------------------------------------

SHARES = Reading("shares", parse_shares, "shares such as release=2,partition=1,threshold=1")

SHORT_NAMES = {"adaptive-grid": "adaptive", "multi-quantile": "quantile"}


def _methods() -> dict[str, type[AnyQuestion]]:
    """Return the partitioners of the library by the names that --method takes."""
    methods = {}
    for place in listed("sfumato.questions").values():
        if place.startswith("sfumato.questions.partition."):
            kind = listed_question(place)
            tag = tag_of(kind)
            methods[SHORT_NAMES.get(tag, tag)] = kind
    return methods


METHODS = _methods()


def _map_forms(geojson: Path) -> Forms:
    """Return the forms of a map whose cells are also written as GeoJSON."""

    def write(release: Release) -> list[str]:
        cast("Partition", release).to_geojson(geojson)
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
            SHARES,
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
    publish(settings, domain, made(METHODS[method], {"axes": axes} | given), forms)


histogram = worded_command("histogram", [Histogram], HISTOGRAM, ask_histogram)
partition = worded_command("partition", list(METHODS.values()), PARTITION, ask_partition)
