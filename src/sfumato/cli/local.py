"""``sfumato local``: cluster people without a trusted curator.

First stands what its commands share: their options, and how clusters are printed. Then comes
``sfumato local simulate``, which tries local clustering on a table, in one setting or in many.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TypeAlias

import click
import msgspec
import numpy as np

from sfumato.answers import pictures
from sfumato.basics import Array, float_of_text
from sfumato.basics.kmeans import kmeans, sse
from sfumato.cli.layers import LayeredCommand, LayeredGroup
from sfumato.cli.options import (
    COLUMNS,
    COST,
    INTEGER,
    OUTPUT,
    QUESTION,
    Several,
    gathers,
    json_ignored_option,
    json_option,
    option,
    plot_option,
    report_option,
    written_options,
)
from sfumato.cli.output import emit_json, print_messages, table
from sfumato.cli.parsing import parse_axes
from sfumato.cli.paths import NewFile, files_read, require_unread
from sfumato.cli.publishing import page_of, picture_of
from sfumato.data.describe import read_numbers
from sfumato.data.options import StatedOptions, file_options
from sfumato.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.local.bpm import BPM
from sfumato.local.client import Client, from_unit, label, read_bounds, reports, to_unit
from sfumato.local.clustering import PrivateKMeans
from sfumato.local.collector import Collector, write
from sfumato.local.decoder import Decoded
from sfumato.local.mechanism import MultivariateLaplace
from sfumato.local.table import COLUMNS as TABLE_COLUMNS
from sfumato.local.table import local_table

# --- what the commands share ----------------------------------------------------------------------

Mechanism: TypeAlias = BPM | MultivariateLaplace

MECHANISM_GROUP = "Mechanism"

AXES = option(
    "--axis",
    "axes",
    group=COLUMNS,
    common=True,
    multiple=True,
    required=True,
    help="Value of a person with its public bounds: NAME=LOW..HIGH. Repeat for each value.",
)
RADIUS = option(
    "--radius",
    group=MECHANISM_GROUP,
    common=True,
    default="auto",
    show_default=True,
    help="Parameter L of the mechanism bpm: the radius of the ball around a point in which its "
    "report is more likely, with every axis scaled to 0 .. 1; auto chooses it from epsilon.",
)
MECHANISM = option(
    "--mechanism",
    group=MECHANISM_GROUP,
    common=True,
    type=click.Choice(["bpm", "laplace"]),
    default="bpm",
    show_default=True,
    help="How a point is perturbed: bounded perturbation mechanism, or multivariate Laplace noise.",
)
CLUSTERS = option(
    "--clusters",
    group=QUESTION,
    common=True,
    type=INTEGER,
    required=True,
    help="Number of clusters.",
)
SEED = option(
    "--seed",
    group=QUESTION,
    type=INTEGER,
    default=0,
    show_default=True,
    help="Seed of the search for clusters, which sees reports only. Noise never has a seed.",
)


class MechanismSettings(msgspec.Struct, frozen=True):
    """The mechanism that the devices use, as far as the command line names it."""

    axes: tuple[str, ...]
    epsilon: str | None
    radius: str
    mechanism: str

    def domain(self) -> Domain:
        """The public axes, all of them Intervals."""
        domain = Domain(parse_axes(self.axes))
        domain.intervals(list(domain))
        return domain

    def made(self) -> Mechanism:
        """The mechanism, with a dimension for each axis; --epsilon is given."""
        assert self.epsilon is not None
        dimension = len(self.axes)
        if self.mechanism == "laplace":
            return MultivariateLaplace(self.epsilon, dimension)
        return BPM(self.epsilon, self.radius, dimension)


def show_clusters(
    decoded: Decoded, domain: Domain, as_json: bool, figures: dict[str, object]
) -> None:
    """Print clusters in the units of the axes; with --json, further figures beside them."""
    bounds = read_bounds(domain.intervals(None), len(domain))
    centers = from_unit(decoded.centers, bounds)
    lengths = bounds[:, 1] - bounds[:, 0]
    half_widths = decoded.half_widths(0.95) * lengths
    if as_json:
        plain = {
            "axes": list(domain),
            "centers": centers,
            "half_widths": half_widths,
            "weights": decoded.weights,
            "in_model": decoded.in_model,
            "evident": decoded.evident,
        }
        emit_json(plain | figures)
        return
    columns = ["share"]
    for name in domain:
        columns += [name, "+-"]
    rows = []
    for weight, center, half_width in zip(decoded.weights, centers, half_widths, strict=True):
        numbers = np.stack([center, half_width], axis=1).ravel()
        shown = [float(f"{number:.4g}") for number in numbers]
        rows.append([round(float(weight), 4), *shown])
    table(columns, rows, "Clusters, by share; +- is a 95% interval")
    if not decoded.evident:
        print_messages(
            "The reports do not show where clusters are: these centres are spread evenly."
        )
    if not decoded.in_model:
        print_messages(
            "The reports do not look like those of that many round clusters: +- is wider for that, "
            "and its 95% is not proved."
        )


# --- sfumato local simulate -----------------------------------------------------------------------


class Rehearsal(msgspec.Struct, frozen=True):
    """What is tried on a table: one setting, or all of some epsilons and values of L."""

    axes: tuple[str, ...]
    epsilons: tuple[str, ...]
    radii: tuple[str, ...]
    mechanism: str
    repeats: int
    out: Path | None
    plot: Path | None
    page: Path | None

    @property
    def is_table(self) -> bool:
        return len(self.epsilons) * len(self.radii) > 1

    def require_sound(self) -> None:
        """Refuse options that do not go together, before the file is read."""
        if self.is_table and (self.out is not None or self.mechanism != "bpm"):
            raise UsageError(
                "--out or --mechanism with several settings",
                "a table shows all mechanisms, and keeps no reports",
                "Leave them out, or name one --epsilon and one --radius",
            )
        if not self.is_table and (self.page is not None or self.repeats != 1):
            raise UsageError(
                "--report or --repeats with one setting",
                "they belong to a table",
                "Give several values of --epsilon or --radius, such as --epsilon 1,2,4",
            )


@click.command(cls=LayeredCommand, short_help="Try it on a table.")
@click.argument("file", type=click.Path(path_type=Path))
@AXES
@CLUSTERS
@option(
    "--epsilon",
    "epsilons",
    group=COST,
    common=True,
    type=Several(click.STRING),
    required=True,
    help="Privacy cost to each person, as in perturb; several, separated by commas, make a table.",
)
@option(
    "--radius",
    "radii",
    group=MECHANISM_GROUP,
    common=True,
    type=Several(click.STRING),
    default="auto",
    show_default=True,
    help="Parameter L of the mechanism bpm, as in perturb; several, separated by commas, make a "
    "table.",
)
@MECHANISM
@SEED
@option(
    "--repeats",
    group=QUESTION,
    type=INTEGER,
    default=1,
    show_default=True,
    help="Of a table: draws of the noise, of which medians are shown.",
)
@written_options
@option(
    "--out",
    group=OUTPUT,
    type=NewFile(),
    help="Also write the simulated reports to this file: Parquet if its name ends in .parquet, "
    "otherwise lines of JSON.",
)
@plot_option("the table or the clusters")
@report_option
@json_option
@gathers(Rehearsal)
@gathers(StatedOptions)
def simulate(
    stated: StatedOptions,
    rehearsal: Rehearsal,
    file: Path,
    clusters: int,
    seed: int,
    as_json: bool,
) -> None:
    """Try local clustering on a table: how much worse is it than k-means on the true rows?

    Each row of FILE (Parquet, CSV or Excel) reports as a device would, and the reports are decoded.
    The comparison reads the true values: use it on data that you may see. Its output is not
    private.

    \b
    With several values of --epsilon or --radius, a table of sums of squares:
      sfumato local simulate people.csv --axis age=0..120 --clusters 3 \\
        --epsilon 1,2,4 --radius .3,.5,auto --plot table.svg
    """
    domain = Domain(parse_axes(rehearsal.axes))
    bounds = read_bounds(domain.intervals(list(domain)), len(domain))
    rehearsal.require_sound()
    for name, path in (("--out", rehearsal.out), ("--report", rehearsal.page)):
        require_unread(name, path, files_read(file))
    columns = read_numbers(file, tuple(domain), file_options(stated))
    values = np.stack([columns[name] for name in domain], axis=1)
    # Rows in which a value is missing report nothing.
    is_whole = ~np.isnan(values).any(axis=1)
    points = to_unit(values[is_whole], bounds)
    if not rehearsal.is_table:
        _rehearse(rehearsal, domain, points, clusters, seed, as_json)
        return
    table_of_sums = local_table(
        points,
        clusters,
        epsilon=rehearsal.epsilons,
        L=rehearsal.radii,
        repeats=rehearsal.repeats,
        random_state=seed,
    )
    said = picture_of(table_of_sums.plot, rehearsal.plot)
    said += page_of([table_of_sums], rehearsal.page)
    if as_json:
        emit_json(table_of_sums)
    else:
        table(list(TABLE_COLUMNS), table_of_sums.lines(), "Sums of squares, over epsilon and L")
        print_messages(*table_of_sums.facts())
    print_messages("These figures are not private: they were computed from true rows.", *said)


def _rehearse(
    rehearsal: Rehearsal, domain: Domain, points: Array, clusters: int, seed: int, as_json: bool
) -> None:
    """Print the clusters that a server would find, and what they lose."""
    (epsilon,) = rehearsal.epsilons
    (radius,) = rehearsal.radii
    mechanism = MechanismSettings(rehearsal.axes, epsilon, radius, rehearsal.mechanism).made()
    drawn = reports(mechanism, points)
    collector = Collector(mechanism)
    collector.add(drawn)
    decoded = collector.decode(clusters, seed)
    said = []
    if rehearsal.out is not None:
        write(drawn, rehearsal.out)
        said.append(f"Reports: {rehearsal.out}")
    said += picture_of(
        lambda: pictures.drawn("local.draw_reports", collector.points(), None, decoded.centers),
        rehearsal.plot,
    )
    losses = _losses(points, collector.points(), decoded, clusters, seed)
    figures = {"rows": len(points), "sse": losses, "mechanism": mechanism.title}
    show_clusters(decoded, domain, as_json, figures)
    best = losses["true rows"]
    print_messages(
        str(mechanism),
        "Sum of squares beyond that of k-means on the true rows: "
        f"decoded {_excess(losses['reports, decoded'], best)}, "
        f"k-means on the reports {_excess(losses['reports, k-means'], best)}.",
        "These three figures are not private: they were computed from true rows.",
        *said,
    )


def _losses(
    points: Array, reported: Array, decoded: Decoded, clusters: int, seed: int
) -> dict[str, float]:
    """Sums of squared distances from the true points to three choices of centres."""
    rng = np.random.default_rng(seed)
    best = kmeans(points, clusters, seed=rng, tries=4)
    naive = kmeans(reported, clusters, seed=rng, tries=4)
    return {
        "true rows": sse(points, best),
        "reports, decoded": sse(points, decoded.centers),
        "reports, k-means": sse(points, naive),
    }


def _excess(value: float, best: float) -> str:
    return f"{100 * (value / best - 1):+,.1f}%" if best > 0 else "unlimited"


# --- the other commands ---------------------------------------------------------------------------


@click.group(cls=LayeredGroup, short_help="Cluster people without a trusted curator.")
def local() -> None:
    """Cluster people without collecting their values.

    Each device perturbs its person's value and sends a report (perturb); a server finds the
    clusters of the people behind the reports (collect). To try it on a table first: simulate.
    """


local.add_command(simulate)


@local.command(short_help="Make one device's report.")
@AXES
@click.option(
    "--value",
    "values",
    multiple=True,
    required=True,
    help="This person's own value: NAME=NUMBER. Repeat for each axis.",
)
@option(
    "--epsilon",
    group=COST,
    common=True,
    required=True,
    help="Privacy cost to each person: the privacy loss between two points at distance 1, "
    "with every axis scaled to 0 .. 1.",
)
@RADIUS
@MECHANISM
@click.option(
    "--memory",
    type=click.Path(path_type=Path),
    help="File in which the device keeps the report, so that a second call prints the same one.",
)
@json_ignored_option
@gathers(MechanismSettings)
def perturb(settings: MechanismSettings, values: tuple[str, ...], memory: Path | None) -> None:
    """Print one person's report, as a line of JSON. Only the report may leave the device.

    \b
    Example:
      sfumato local perturb --axis age=0..120 --value age=37 --epsilon 4 \\
        --memory mine.json
    """
    domain = settings.domain()
    given = dict(text.partition("=")[::2] for text in values)
    if set(given) != set(domain):
        raise UsageError(
            "--value", "each axis needs one value of its name", f"Give {', '.join(domain)}"
        )
    client = Client(settings.made(), domain.intervals(None), memory)
    emit_json(client.report([_number(given[name]) for name in domain]))
    if memory is None:
        print_messages(
            "This report is not kept (see --memory): "
            "another call makes a second report, and costs epsilon again."
        )


@local.command(short_help="Find clusters in reports.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@CLUSTERS
@option(
    "--axis",
    "axes",
    group=COLUMNS,
    common=True,
    multiple=True,
    help="Axis of the devices: NAME=LOW..HIGH, in their order. Centres are then printed in the "
    "units of the axes, otherwise from 0 to 1.",
)
@option(
    "--epsilon",
    group=COST,
    common=True,
    help="Epsilon of the devices. Reports to any other mechanism are refused. Needs --axis.",
)
@click.option(
    "--any-mechanism",
    is_flag=True,
    help="Instead of --epsilon: use the mechanism that the first report names. For rehearsals "
    "only, because a stranger may have sent that report.",
)
@RADIUS
@MECHANISM
@SEED
@report_option
@json_option
@gathers(MechanismSettings)
def collect(
    settings: MechanismSettings,
    files: tuple[Path, ...],
    clusters: int,
    any_mechanism: bool,
    seed: int,
    page: Path | None,
    as_json: bool,
) -> None:
    """Find the clusters of the people behind the reports in FILES (lines of JSON, or Parquet).

    Name the mechanism of the devices by --epsilon and --axis, and by --mechanism and --radius where
    the devices do not use the defaults. Otherwise the first stranger to send a report would decide
    how all reports are decoded.

    \b
    Example:
      sfumato local collect reports.jsonl --clusters 3 --axis age=0..120 \\
        --epsilon 4
    """
    require_unread("--report", page, files)
    collector = Collector(_named_mechanism(settings, any_mechanism))
    for file in files:
        collector.read(file)
    mechanism = collector.mechanism
    if mechanism is not None:
        domain = _domain_of_reports(settings, mechanism.dimension)
    decoded = collector.decode(clusters, seed)
    assert mechanism is not None
    guarantee = collector.guarantee
    figures = {
        "reports": len(collector),
        "refused": collector.refused,
        "mechanism": mechanism.title,
        "epsilon": mechanism.epsilon,
        "private": guarantee.private,
    }
    said = []
    if page is not None:
        said = page_of([_fitted(collector, domain, clusters, seed)], page)
    show_clusters(decoded, domain, as_json, figures)
    print_messages(
        f"{len(collector):,} reports, {collector.refused:,} refused. {guarantee.sentence()}"
    )
    if settings.epsilon is None:
        print_messages(
            f"The first report decided that reports to {label(mechanism)} were decoded: "
            "a stranger may have sent it."
        )
    print_messages(*said)


def _domain_of_reports(settings: MechanismSettings, dimension: int) -> Domain:
    """Return the axes of the devices; those that are not given run from 0 to 1."""
    if not settings.axes:
        return Domain({f"x{i}": Interval(0, 1) for i in range(1, dimension + 1)})
    domain = settings.domain()
    if len(domain) != dimension:
        raise UsageError(
            f"--axis for {len(domain)} axes",
            f"the reports have {dimension}",
            "Give each axis as the devices have it, in their order, or none",
        )
    return domain


def _fitted(collector: Collector, domain: Domain, clusters: int, seed: int) -> PrivateKMeans:
    mechanism = collector.mechanism
    assert mechanism is not None
    learner = PrivateKMeans(
        clusters,
        epsilon=mechanism.epsilon,
        L=mechanism.L if isinstance(mechanism, BPM) else "auto",
        mechanism="bpm" if isinstance(mechanism, BPM) else "laplace",
        random_state=seed,
        bounds={name: domain.intervals(None)[name] for name in domain},
    )
    with warnings.catch_warnings():
        # The page says in a sentence what the warning of few reports says.
        warnings.simplefilter("ignore", UserWarning)
        return learner.fit_reports(collector.points(), private=collector.private)


def _named_mechanism(settings: MechanismSettings, any_mechanism: bool) -> Mechanism | None:
    """The mechanism named on the command line; None to believe the first report."""
    if settings.epsilon is not None:
        if any_mechanism:
            raise UsageError(
                "--any-mechanism with --epsilon",
                "either names the mechanism",
                "Leave --any-mechanism out",
            )
        if not settings.axes:
            raise UsageError(
                "--epsilon without --axis",
                "a mechanism has as many dimensions as there are axes",
                "Give each --axis too",
            )
        return settings.made()
    if not any_mechanism:
        raise UsageError(
            "reports to no named mechanism",
            "the first report, whoever sent it, would decide what is decoded",
            "Give --epsilon and each --axis as the devices have them",
        )
    if (settings.radius, settings.mechanism) != ("auto", "bpm"):
        raise UsageError(
            "--mechanism or --radius alone",
            "a mechanism is not named without its epsilon",
            "Give --epsilon too",
        )
    return None


def _number(text: str) -> float:
    number = float_of_text(text)
    if number is None:
        raise UsageError("--value", "it is not a number", "Write NAME=NUMBER")
    return number
