"""``sfumato histogram``: counts of one file by category and bin; the epsilon for an accuracy."""

from __future__ import annotations

from typing import get_args

import click
import msgspec

from sfumato.answers import AccuracyRequest, Kind, Within, least_alone
from sfumato.basics import positive
from sfumato.cli.output import emit_json, print_messages, prose
from sfumato.cli.publishing import PublishSettings, publish, question_of
from sfumato.cli.question_command import BINS, WIDTH, Fields, Form, Wording, worded_command
from sfumato.domain import Categories, Domain
from sfumato.errors import UsageError
from sfumato.mechanisms import RULES
from sfumato.publishing.previews import preview
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.question import CountedThings

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


def ask_histogram(settings: PublishSettings, given: Fields) -> None:
    """Publish a histogram, or show what it would cost."""
    # Without an axis there is one number to speak of: the count of all rows.
    table = settings.table
    domain = table.domain() if table.axes else Domain(rows=Categories(["all"]))
    accuracy = given.pop("accuracy", None)
    confidence = str(given.pop("confidence", "0.95"))
    simultaneous = bool(given.pop("simultaneous", False))
    is_only_shown = bool(given.pop("preview", False))
    question = question_of(Histogram, {"axes": table.subject(domain)} | given)
    if accuracy is not None:
        if settings.paid.epsilon is not None:
            raise UsageError(
                "--accuracy with --epsilon",
                "either of them fixes the cost",
                "Leave one of them out",
            )
        epsilon = _least_epsilon(
            question, domain, settings, str(accuracy), confidence, simultaneous=simultaneous
        )
        paid = msgspec.structs.replace(settings.paid, epsilon=epsilon)
        settings = msgspec.structs.replace(settings, paid=paid)
    if table.file is None or is_only_shown:
        _preview(question, domain, settings)
        return
    if not table.axes:
        raise UsageError(
            f"a histogram of {table.file}",
            "it has no axis",
            "Write --axis age=0..100, --axis kind=a,b or --axis 'shop=*'",
        )
    publish(settings, domain, question)


def _least_epsilon(
    question: Histogram,
    domain: Domain,
    settings: PublishSettings,
    accuracy: str,
    confidence: str,
    *,
    simultaneous: bool,
) -> str:
    """Return the least epsilon for an accuracy, as text. Also print it to stderr."""
    kind = Kind.of("pure", settings.paid.delta)
    share = float(positive(confidence, "--confidence"))
    within = Within(float(positive(accuracy, "--accuracy")), share, simultaneous)
    request = AccuracyRequest(question, domain, settings.table.unit(), None, within)
    cost = kind.cost(least_alone(request, kind))
    print_messages(
        f"The least cost for an accuracy of {accuracy} with {100 * share:.10g}% confidence: {cost}."
    )
    return str(kind.level(cost))


def _preview(question: Histogram, domain: Domain, settings: PublishSettings) -> None:
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


histogram = worded_command("histogram", [Histogram], HISTOGRAM, ask_histogram)
