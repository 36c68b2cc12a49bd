"""``sfumato histogram``: counts by category and bin of one file, and which epsilon an accuracy takes."""

from __future__ import annotations

from dataclasses import dataclass

import click
import msgspec

from sfumato.choosing.costs import AccuracyRequest, Kind, Within, least_alone
from sfumato.cli.options import (
    INTEGER,
    charged_option,
    cost_options,
    fresh_option,
    gathers,
    json_option,
    out_option,
    parse_bins,
    parse_widths,
    plot_option,
    source_options,
)
from sfumato.cli.output import emit_json, say, talk
from sfumato.cli.publishing import Publishing, publish
from sfumato.domain import Categories, Domain
from sfumato.errors import UsageError
from sfumato.histogram import Histogram
from sfumato.mechanisms.thresholds import RULES, Rule
from sfumato.numbers import positive
from sfumato.privacy.unit import Unit


@click.command(short_help="Publish a histogram.")
@source_options(optional=True)
@click.option("--bins", multiple=True, help="NUMBER, or NAME=NUMBER, or NAME=edge,edge,edge.")
@click.option("--width", multiple=True, help="Width of bins instead: NUMBER, or NAME=NUMBER.")
@click.option(
    "--records", type=INTEGER, help="Rows per bin instead, for one axis; the edges are paid for."
)
@click.option(
    "--rows", type=INTEGER, help="With --records: the number of rows, where it is public."
)
@click.option(
    "--selection",
    type=click.Choice(RULES),
    default=RULES[0],
    show_default=True,
    help="How keys are selected.",
)
@cost_options
@click.option(
    "--accuracy",
    help="Instead of a cost: solve for the least epsilon at which counts are within this of the truth of the rows counted.",
)
@click.option(
    "--confidence",
    default="0.95",
    show_default=True,
    help="With --accuracy: how surely each count is.",
)
@click.option("--simultaneous", is_flag=True, help="With --accuracy: all counts at once.")
@click.option(
    "--preview",
    "only_preview",
    is_flag=True,
    help="Say cost and accuracy; publish nothing, touch no data.",
)
@charged_option
@fresh_option
@out_option
@plot_option()
@json_option
@gathers(Publishing)
def histogram(
    told: Publishing,
    bins: tuple[str, ...],
    width: tuple[str, ...],
    records: int | None,
    rows: int | None,
    selection: Rule,
    accuracy: str | None,
    confidence: str,
    simultaneous: bool,
    only_preview: bool,
) -> None:
    """Publish how many rows of FILE (Parquet or CSV) fall in each cell of the given axes.

    Without FILE, or with --preview, nothing is published: cost and accuracy are printed.

    Example: sfumato histogram trips.parquet --axis hour=0..24/1 --axis kind=a,b --epsilon 0.5 --budget 2

    Bins of equal size: sfumato histogram trips.parquet --axis fare=0..500/0.01 --records 1000 --epsilon 1 --budget 2

    Keys: sfumato histogram trips.parquet --axis 'shop=*' --epsilon 1 --delta 1e-6 --budget 3,1e-5

    Which epsilon: sfumato histogram --accuracy 30 --confidence .95
    """
    domain = told.domain() if told.axes else Domain(rows=Categories(["all"]))  # one number
    question = Histogram(
        tuple(domain),
        bins=parse_bins(bins),
        width=parse_widths(width),
        selection=selection,
        records=records,
        rows=rows,
    )
    if accuracy is not None:
        if told.epsilon is not None:
            raise UsageError(
                "--accuracy with --epsilon",
                "either of them fixes the cost",
                "Leave one of them out",
            )
        wanted = _Wanted(accuracy, confidence, simultaneous)
        told = msgspec.structs.replace(told, epsilon=_solved(question, domain, wanted, told))
    if told.file is None or only_preview:
        _foresee(question, domain, told)
        return
    if not told.axes:
        asked = f"a histogram of {told.file}"
        raise UsageError(
            asked, "it has no axis", "Write --axis age=0..100, --axis kind=a,b or --axis 'shop=*'"
        )
    publish(told, domain, question)


@dataclass(frozen=True)
class _Wanted:
    accuracy: str
    confidence: str
    simultaneous: bool


def _solved(question: Histogram, domain: Domain, wanted: _Wanted, told: Publishing) -> str:
    """The least epsilon for an accuracy, as text; the person is told what it is."""
    kind = Kind.of("pure", told.delta)
    accuracy = float(positive(wanted.accuracy, "accuracy"))
    confidence = float(positive(wanted.confidence, "confidence"))
    within = Within(accuracy, confidence, wanted.simultaneous)
    unit = Unit(told.rows_per_person, told.neighbours)
    cost = kind.cost(least_alone(AccuracyRequest(question, domain, unit, None, within), kind))
    talk(
        f"The least cost for an accuracy of {wanted.accuracy} with {confidence:.0%} confidence: {cost}."
    )
    return str(kind.level(cost))


def _foresee(question: Histogram, domain: Domain, told: Publishing) -> None:
    """Print what a histogram would cost and how accurate it would be."""
    from sfumato.publishing.previewing import preview as foresee

    found = foresee(
        question,
        domain=domain,
        unit=told.unit(),
        epsilon=told.epsilon,
        delta=told.delta,
        rho=told.rho,
    )
    if told.as_json:
        emit_json({"preview": found, "accuracy": found.accuracy(), "counted": found.counted})
    else:
        say(str(found))
