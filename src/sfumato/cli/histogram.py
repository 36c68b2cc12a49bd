"""``sfumato histogram``: counts by category and bin of one file; the epsilon for an accuracy."""

from __future__ import annotations

from typing import get_args

import click
import msgspec

from sfumato.answers.accuracy import AccuracyRequest, Kind, Within, least_alone
from sfumato.basics.numbers import positive
from sfumato.cli.option_types import INTEGER
from sfumato.cli.options import (
    answer_options,
    bin_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.output import emit_json, prose, talk
from sfumato.cli.parsing import parse_bins, parse_widths
from sfumato.cli.publishing import PublishSettings, publish
from sfumato.domain.domain import Categories, Domain
from sfumato.errors import UsageError
from sfumato.mechanisms.thresholds import RULES, Rule
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.question import CountedThings, NoiseKind, Workload


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
