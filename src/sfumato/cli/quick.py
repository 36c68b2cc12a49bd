"""``sfumato histogram``, ``sfumato partition`` and ``sfumato quantiles``: one question about one file, without a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import (
    cost_options,
    fresh_option,
    json_option,
    ledger_option,
    out_option,
    parse_axes,
    parse_bins,
    parse_widths,
    source_options,
)
from sfumato.cli.output import emit_json, scanning, show_releases, talk
from sfumato.domain import Categories, Domain, Interval
from sfumato.errors import DataError, UsageError
from sfumato.histogram import Histogram
from sfumato.histogram.accuracy import cost_for
from sfumato.mechanisms.thresholds import RULES, Rule
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
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.quantiles import Quantiles
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
@source_options(optional=True)
@click.option("--bins", multiple=True, help="NUMBER, or NAME=NUMBER, or NAME=edge,edge,edge.")
@click.option("--width", multiple=True, help="Width of bins instead: NUMBER, or NAME=NUMBER.")
@click.option("--selection", type=click.Choice(RULES), default=RULES[0], show_default=True, help="How keys are selected.")
@cost_options
@click.option("--accuracy", help="Instead of a cost: solve for the least epsilon at which counts are within this of the truth.")
@click.option("--confidence", default="0.95", show_default=True, help="With --accuracy: how surely each count is.")
@click.option("--simultaneous", is_flag=True, help="With --accuracy: all counts at once.")
@click.option("--preview", "only_preview", is_flag=True, help="Say cost and accuracy; publish nothing, touch no data.")
@ledger_option
@fresh_option
@out_option
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw it, as SVG, PNG or PDF.")
@json_option
def histogram(
    file: Path | None,
    axes: tuple[str, ...],
    bins: tuple[str, ...],
    width: tuple[str, ...],
    selection: Rule,
    accuracy: str | None,
    confidence: str,
    simultaneous: bool,
    only_preview: bool,
    **options: Any,
) -> None:
    """Publish how many rows of FILE (Parquet or CSV) fall in each cell of the given axes.

    Without FILE, or with --preview, nothing is published: cost and accuracy are printed.

    Example: sfumato histogram trips.parquet --axis hour=0..24/1 --axis kind=a,b --epsilon 0.5 --budget 2

    Keys: sfumato histogram trips.parquet --axis 'shop=*' --epsilon 1 --delta 1e-6 --budget 3,1e-5

    Which epsilon: sfumato histogram --accuracy 30 --confidence .95
    """
    domain = Domain(parse_axes(axes)) if axes else Domain(rows=Categories(["all"]))  # one number
    question = Histogram(tuple(domain), bins=parse_bins(bins), width=parse_widths(width), selection=selection)
    if accuracy is not None:
        if options["epsilon"] is not None:
            raise UsageError("--accuracy with --epsilon", "either of them fixes the cost", "Leave one of them out")
        asked = _Wanted(accuracy, confidence, simultaneous)
        options |= _solved(question, domain, asked, **{name: options[name] for name in ("rows_per_person", "neighbours", "delta")})
    if file is None or only_preview:
        _foresee(question, domain, **{name: options[name] for name in FORESEEN})
        return
    if not axes:
        raise UsageError(f"a histogram of {file}", "it has no axis", "Write --axis age=0..100, --axis kind=a,b or --axis 'shop=*'")
    _publish(file, domain, question, **options)


FORESEEN = ("rows_per_person", "neighbours", "person", "epsilon", "delta", "rho", "as_json")


@dataclass(frozen=True)
class _Wanted:
    accuracy: str
    confidence: str
    simultaneous: bool


def _solved(
    question: Histogram, domain: Domain, wanted: _Wanted, *, rows_per_person: int, neighbours: Neighbours, delta: str
) -> dict[str, str]:
    """The least epsilon for an accuracy, as text; the person is told what it is."""
    cost = cost_for(
        question,
        domain=domain,
        unit=Unit(rows_per_person, neighbours),
        accuracy=wanted.accuracy,
        confidence=wanted.confidence,
        simultaneous=wanted.simultaneous,
        delta=delta,
    )
    assert not isinstance(cost, ZCDP)
    talk(f"The least cost for an accuracy of {wanted.accuracy} with {float(wanted.confidence):.0%} confidence: {cost}.")
    return {"epsilon": str(cost.epsilon)}


def _foresee(
    question: Histogram,
    domain: Domain,
    *,
    rows_per_person: int,
    neighbours: Neighbours,
    person: str | None,
    epsilon: str | None,
    delta: str,
    rho: str | None,
    as_json: bool,
) -> None:
    """Print what a histogram would cost and how accurate it would be."""
    from sfumato.publisher import preview as foresee

    found = foresee(question, domain=domain, unit=Unit(rows_per_person, neighbours, person), epsilon=epsilon, delta=delta, rho=rho)
    if as_json:
        emit_json({"preview": found, "accuracy": found.accuracy()})
    else:
        click.echo(str(found))


@click.command(short_help="Publish a private map.")
@source_options()
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


@click.command(short_help="Publish quantiles.")
@source_options()
@click.option("--at", default="0.25,0.5,0.75", show_default=True, help="Which quantiles, between 0 and 1.")
@click.option("--by", help="Labels that divide the rows: the name of an axis NAME=a,b,c.")
@click.option(
    "--method", type=click.Choice(["auto", "joint", "recursive", "tree"]), default="auto", show_default=True, help="How they are chosen."
)
@cost_options
@ledger_option
@fresh_option
@out_option
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw them, as SVG, PNG or PDF.")
@json_option
def quantiles(file: Path, axes: tuple[str, ...], at: str, by: str | None, method: str, **options: Any) -> None:
    """Publish below which values given shares of the rows of FILE (Parquet or CSV) lie, for each numeric axis.

    Example: sfumato quantiles flights.parquet --axis delay=-60..240 --axis kind=a,b --by kind --epsilon 0.5 --budget 2
    """
    domain = Domain(parse_axes(axes))
    names = tuple(name for name, axis in domain.items() if isinstance(axis, Interval))
    _publish(file, domain, Quantiles(names or None, at=at.split(","), by=by, method=method), **options)


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
    delta: str,
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
    from sfumato.publisher import Publisher

    src = source(file, domain, person=person, rows_per_person=rows_per_person, neighbours=neighbours)  # type: ignore[arg-type]
    publisher = Publisher(src, ledger=ledger, account=account, budget=_total(budget, rho is not None))
    with scanning() as progress:
        answer = publisher.release(question, epsilon=epsilon, delta=delta, rho=rho, fresh=fresh, progress=progress)
    state = publisher.account
    show_releases([answer], as_json=as_json, out=out, charged=f"Remaining: {written(state.rule, state.remaining)}.")
    if plot is not None:
        save_plot(answer, plot)
        talk(f"Plot: {plot}")
    return answer


def _total(budget: str | None, gaussian: bool) -> CentralMeasure | None:
    """Read --budget in the measure of the release."""
    if budget is None:
        return None
    epsilon, comma, delta = budget.partition(",")
    if gaussian:
        return ZCDP(budget)
    return ApproxDP(epsilon, delta) if comma else PureDP(epsilon)


def save_plot(answer: Release, path: Path) -> None:
    """Draw a release into a file whose ending names the format."""
    try:
        answer.plot().figure.savefig(path)
    except (OSError, ValueError):
        reason = "the file cannot be written"
    else:
        return
    raise DataError(f"drawing to {path}", reason, "Choose a path that can be written")
