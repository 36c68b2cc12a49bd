"""``sfumato local``: reports from devices, clusters from reports, with no trusted curator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from sfumato.arrays import Array
from sfumato.cli.options import INTEGER, json_option, parse_axes
from sfumato.cli.output import emit_json, table, talk
from sfumato.cli.targets import NewFile
from sfumato.domain import Domain, Interval
from sfumato.errors import DataError, UsageError
from sfumato.local.bpm import BPM
from sfumato.local.client import Client, from_unit, label, read_bounds, reports, to_unit
from sfumato.local.collector import Collector, write
from sfumato.local.decoding.decoder import Decoded
from sfumato.local.laplace import MultivariateLaplace
from sfumato.numbers import float_of_text

if TYPE_CHECKING:
    import pyarrow as pa

AXES = click.option(
    "--axis",
    "axes",
    multiple=True,
    required=True,
    help="NAME=LOW..HIGH, public bounds; again for each.",
)
EPSILON = click.option(
    "--epsilon", required=True, help="Cost to each person, per unit of scaled distance."
)
REACH = click.option(
    "--reach",
    default="auto",
    show_default=True,
    help="BPM's L: how far a report is drawn to its point.",
)
MECHANISM = click.option(
    "--mechanism",
    type=click.Choice(["bpm", "laplace"]),
    default="bpm",
    show_default=True,
    help="How points are perturbed.",
)
CLUSTERS = click.option(
    "--clusters", type=INTEGER, required=True, help="How many clusters to look for."
)
SEED = click.option(
    "--seed",
    type=INTEGER,
    default=0,
    show_default=True,
    help="Seed of the search for clusters; never of the noise.",
)


@click.group(short_help="Cluster people with no trusted curator.")
def local() -> None:
    """Cluster people without collecting their values: devices report, the server decodes."""


@local.command(short_help="Make one device's report.")
@AXES
@click.option(
    "--value",
    "values",
    multiple=True,
    required=True,
    help="NAME=NUMBER: this person's own value; again for each axis.",
)
@EPSILON
@REACH
@MECHANISM
@click.option(
    "--memory",
    type=click.Path(path_type=Path),
    help="File that remembers the report: a second call prints the same one.",
)
@json_option
def perturb(
    axes: tuple[str, ...],
    values: tuple[str, ...],
    epsilon: str,
    reach: str,
    mechanism: str,
    memory: Path | None,
    as_json: bool,
) -> None:
    """Print one person's report as a line of JSON: what may leave the device.

    Example: sfumato local perturb --axis age=0..120 --value age=37 --epsilon 4 --memory mine.json
    """
    domain = _domain(axes)
    given = dict(word.partition("=")[::2] for word in values)
    if set(given) != set(domain):
        raise UsageError(
            "--value", "each axis needs one value of its name", f"Give {', '.join(domain)}"
        )
    client = Client(
        _mechanism(mechanism, epsilon, reach, len(domain)), domain.intervals(None), memory
    )
    emit_json(client.report([_number(given[name]) for name in domain]))
    if memory is None:
        talk(
            "This report is not remembered: another call makes a second one, and costs epsilon again."
        )


@local.command(short_help="Find clusters in reports.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@CLUSTERS
@click.option(
    "--axis",
    "axes",
    multiple=True,
    help="NAME=LOW..HIGH as the devices have it: prints centres in those units.",
)
@click.option(
    "--epsilon",
    help="As the devices have it: refuses reports to any other mechanism. Needs --axis.",
)
@click.option(
    "--any-mechanism",
    is_flag=True,
    help="Instead of --epsilon: believe the first report. For rehearsals only.",
)
@REACH
@MECHANISM
@SEED
@json_option
def collect(
    files: tuple[Path, ...],
    clusters: int,
    axes: tuple[str, ...],
    epsilon: str | None,
    any_mechanism: bool,
    reach: str,
    mechanism: str,
    seed: int,
    as_json: bool,
) -> None:
    """Read reports from FILES (lines of JSON, or Parquet), and print the clusters of the people behind them.

    The mechanism is named by --epsilon, --axis and, where the devices do not have the defaults, --mechanism and --reach: else
    the first stranger to send a report would decide what is decoded.

    Example: sfumato local collect r.jsonl --clusters 3 --axis age=0..120 --epsilon 4
    """
    collector = Collector(_named(axes, epsilon, any_mechanism, reach, mechanism))
    for file in files:
        collector.read(file)
    domain, made = _domain(axes) if axes else None, collector.mechanism
    if domain is not None and made is not None and len(domain) != made.dimension:
        obstacle = f"the reports have {made.dimension}"
        raise UsageError(
            f"--axis for {len(domain)} axes",
            obstacle,
            "Give each axis as the devices have it, in their order, or none",
        )
    decoded = collector.decode(clusters, seed)
    assert made is not None
    promise = collector.guarantee
    domain = domain or Domain({f"x{i}": Interval(0, 1) for i in range(1, made.dimension + 1)})
    _show(
        decoded,
        domain,
        as_json,
        reports=len(collector),
        refused=collector.refused,
        mechanism=made.title,
        epsilon=made.epsilon,
        private=promise.private,
    )
    talk(f"{len(collector):,} reports, {collector.refused:,} refused. {promise.sentence()}")
    if epsilon is None:
        talk(
            f"The first report decided that reports to {label(made)} were decoded: a stranger may have sent it."
        )


def _named(
    axes: tuple[str, ...], epsilon: str | None, any_mechanism: bool, reach: str, mechanism: str
) -> BPM | MultivariateLaplace | None:
    """The mechanism that was named on the command line; None: that of the first report is believed."""
    if any_mechanism and epsilon is not None:
        raise UsageError(
            "--any-mechanism with --epsilon",
            "either names the mechanism",
            "Leave --any-mechanism out",
        )
    if epsilon is None and not any_mechanism:
        obstacle = "the first report, whoever sent it, would decide what is decoded"
        raise UsageError(
            "reports to no named mechanism",
            obstacle,
            "Give --epsilon and each --axis as the devices have them",
        )
    if epsilon is None:
        if (reach, mechanism) != ("auto", "bpm"):
            raise UsageError(
                "--mechanism or --reach alone",
                "a mechanism is not named without its epsilon",
                "Give --epsilon too",
            )
        return None
    if not axes:
        raise UsageError(
            "--epsilon without --axis",
            "a mechanism has as many dimensions as there are axes",
            "Give each --axis too",
        )
    return _mechanism(mechanism, epsilon, reach, len(axes))


@local.command(short_help="Rehearse on a table.")
@click.argument("file", type=click.Path(path_type=Path))
@AXES
@CLUSTERS
@EPSILON
@REACH
@MECHANISM
@SEED
@click.option(
    "--out", type=NewFile(), help="Also write the simulated reports, as JSON lines or .parquet."
)
@json_option
def simulate(
    file: Path,
    axes: tuple[str, ...],
    clusters: int,
    epsilon: str,
    reach: str,
    mechanism: str,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Let each row of FILE (Parquet or CSV) report as a device would, decode, and compare with k-means on the true rows.

    The comparison looks at true values: it is for rehearsals on data that you may see, and is not private.
    """
    from sfumato.plain_kmeans import kmeans, sse

    domain = _domain(axes)
    points = to_unit(_read(file, tuple(domain)), read_bounds(domain.intervals(None), len(domain)))
    made = _mechanism(mechanism, epsilon, reach, len(domain))
    drawn = reports(made, points)
    if out is not None:
        write(drawn, out)
        talk(f"Reports: {out}")
    collector = Collector(made)
    collector.add(drawn)
    decoded = collector.decode(clusters, seed)
    rng = np.random.default_rng(seed)
    best, naive = (
        sse(points, kmeans(cloud, clusters, seed=rng, tries=4))
        for cloud in (points, collector.points())
    )
    ours = sse(points, decoded.centers)
    figures = {
        "rows": len(points),
        "sse": {"true rows": best, "reports, decoded": ours, "reports, k-means": naive},
        "mechanism": made.title,
    }
    _show(decoded, domain, as_json, **figures)
    talk(str(made))
    beyond = f"decoded {_excess(ours, best)}, k-means on the reports {_excess(naive, best)}"
    talk(f"Sum of squares beyond that of k-means on the true rows: {beyond}.")
    talk("These three figures are not private: they were computed from true rows.")


def _excess(value: float, best: float) -> str:
    return f"{100 * (value / best - 1):+,.1f} %" if best > 0 else "unlimited"


def _show(decoded: Decoded, domain: Domain, as_json: bool, **figures: object) -> None:
    bounds = read_bounds(domain.intervals(None), len(domain))
    centers = from_unit(decoded.centers, bounds)
    errors = decoded.half_widths(0.95) * (bounds[:, 1] - bounds[:, 0])
    if as_json:
        found = {
            "axes": list(domain),
            "centers": centers,
            "half_widths": errors,
            "weights": decoded.weights,
        }
        found["in_model"] = decoded.in_model
        emit_json(found | figures)
        return
    head = ["share", *(text for name in domain for text in (name, "+-"))]
    rows = [
        [
            round(float(weight), 4),
            *(float(f"{each:.4g}") for pair in zip(center, half, strict=True) for each in pair),
        ]
        for weight, center, half in zip(decoded.weights, centers, errors, strict=True)
    ]
    table(head, rows, "Clusters, by share; +- is a 95 % interval")
    if not decoded.in_model:
        talk(
            "The reports do not look like those of so many round clusters: +- is wider for that, and its 95 % is not proved."
        )


def _domain(words: tuple[str, ...]) -> Domain:
    domain = Domain(parse_axes(words))
    domain.intervals(list(domain))
    return domain


def _mechanism(name: str, epsilon: str, reach: str, dimension: int) -> BPM | MultivariateLaplace:
    return (
        MultivariateLaplace(epsilon, dimension)
        if name == "laplace"
        else BPM(epsilon, reach, dimension)
    )


def _number(text: str) -> float:
    number = float_of_text(text)
    if number is not None:
        return number
    raise UsageError("--value", "it is not a number", "Write NAME=NUMBER")


def _read(file: Path, columns: tuple[str, ...]) -> Array:
    """The columns of a file as float64, rows with a missing value dropped."""
    from sfumato.data.guard import guarded

    def read() -> pa.Table:
        import pyarrow.parquet as pq
        from pyarrow import csv

        if file.suffix == ".parquet":
            return pq.read_table(file, columns=list(columns))
        return csv.read_csv(file).select(list(columns))

    found = guarded(str(file), read)
    if set(columns) - set(found.column_names):
        raise DataError(
            str(file), "a column is missing", f"Give a file with the columns {', '.join(columns)}"
        )
    values = guarded(
        str(file),
        lambda: np.stack(
            [found[name].to_numpy(zero_copy_only=False).astype(float) for name in columns], axis=1
        ),
    )
    return np.asarray(values[~np.isnan(values).any(axis=1)])
