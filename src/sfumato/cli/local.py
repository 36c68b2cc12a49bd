"""``sfumato local``: cluster people without a trusted curator."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from sfumato.basics.numbers import float_of_text
from sfumato.cli.answer_files import page_of
from sfumato.cli.local_options import (
    AXES,
    CLUSTERS,
    EPSILON,
    MECHANISM,
    REACH,
    SEED,
    Mechanism,
    MechanismSettings,
    show_clusters,
)
from sfumato.cli.local_simulate import simulate
from sfumato.cli.options import (
    gathers,
    json_option,
    report_option,
)
from sfumato.cli.output import emit_json, talk
from sfumato.cli.output_paths import require_unread
from sfumato.domain.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.local.bpm import BPM
from sfumato.local.client import Client, label
from sfumato.local.clustering import PrivateKMeans
from sfumato.local.collector import Collector


@click.group(short_help="Cluster people without a trusted curator.")
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
@EPSILON
@REACH
@MECHANISM
@click.option(
    "--memory",
    type=click.Path(path_type=Path),
    help="File in which the device keeps the report, so that a second call prints the same one.",
)
@json_option
@gathers(MechanismSettings)
def perturb(
    settings: MechanismSettings, values: tuple[str, ...], memory: Path | None, as_json: bool
) -> None:
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
        talk(
            "This report is not kept (see --memory): "
            "another call makes a second report, and costs epsilon again."
        )


@local.command(short_help="Find clusters in reports.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@CLUSTERS
@click.option(
    "--axis",
    "axes",
    multiple=True,
    help="Axis of the devices: NAME=LOW..HIGH, in their order. Centres are then printed in the "
    "units of the axes, otherwise from 0 to 1.",
)
@click.option(
    "--epsilon",
    help="Epsilon of the devices. Reports to any other mechanism are refused. Needs --axis.",
)
@click.option(
    "--any-mechanism",
    is_flag=True,
    help="Instead of --epsilon: use the mechanism that the first report names. For rehearsals "
    "only, because a stranger may have sent that report.",
)
@REACH
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

    Name the mechanism of the devices by --epsilon and --axis, and by --mechanism and --reach where
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
    domain = settings.domain() if settings.axes else None
    mechanism = collector.mechanism
    if domain is not None and mechanism is not None and len(domain) != mechanism.dimension:
        raise UsageError(
            f"--axis for {len(domain)} axes",
            f"the reports have {mechanism.dimension}",
            "Give each axis as the devices have it, in their order, or none",
        )
    decoded = collector.decode(clusters, seed)
    assert mechanism is not None
    guarantee = collector.guarantee
    if domain is None:
        names = (f"x{i}" for i in range(1, mechanism.dimension + 1))
        domain = Domain({name: Interval(0, 1) for name in names})
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
    talk(f"{len(collector):,} reports, {collector.refused:,} refused. {guarantee.sentence()}")
    if settings.epsilon is None:
        talk(
            f"The first report decided that reports to {label(mechanism)} were decoded: "
            "a stranger may have sent it."
        )
    for line in said:
        talk(line)


def _fitted(collector: Collector, domain: Domain, clusters: int, seed: int) -> PrivateKMeans:
    """The same clusters, as a report shows them."""
    mechanism = collector.mechanism
    assert mechanism is not None
    found = PrivateKMeans(
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
        return found.fit_reports(collector.points(), private=collector.private)


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
    if (settings.reach, settings.mechanism) != ("auto", "bpm"):
        raise UsageError(
            "--mechanism or --reach alone",
            "a mechanism is not named without its epsilon",
            "Give --epsilon too",
        )
    return None


def _number(text: str) -> float:
    number = float_of_text(text)
    if number is None:
        raise UsageError("--value", "it is not a number", "Write NAME=NUMBER")
    return number
