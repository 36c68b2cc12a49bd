"""``sfumato local simulate``: try local clustering on a table, in one setting or in many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.cli.answer_files import page_of
from sfumato.cli.local_options import (
    AXES,
    CLUSTERS,
    MECHANISM,
    SEED,
    MechanismSettings,
    show_clusters,
)
from sfumato.cli.option_types import INTEGER, Several
from sfumato.cli.options import (
    gathers,
    json_option,
    plot_option,
    report_option,
    written_options,
)
from sfumato.cli.output import emit_json, table, talk
from sfumato.cli.output_paths import NewFile, files_read, require_unread
from sfumato.cli.parsing import parse_axes
from sfumato.cli.publishing import save_picture
from sfumato.data.options import StatedOptions, file_options
from sfumato.domain.domain import Domain
from sfumato.errors import UsageError
from sfumato.local.client import read_bounds, reports, to_unit
from sfumato.local.collector import Collector, write
from sfumato.local.decoder import Decoded
from sfumato.local.table import COLUMNS, local_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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

    def settings(self) -> MechanismSettings:
        """The one setting."""
        return MechanismSettings(self.axes, self.epsilons[0], self.radii[0], self.mechanism)

    def require_sound(self) -> None:
        """Refuse options that do not go together, before the file is read."""
        if self.is_table and (self.out is not None or self.mechanism != "bpm"):
            raise UsageError(
                "--out or --mechanism with several settings",
                "a table shows all mechanisms, and keeps no reports",
                "Leave them out, or name one --epsilon and one --reach",
            )
        if not self.is_table and (self.page is not None or self.repeats != 1):
            raise UsageError(
                "--report or --repeats with one setting",
                "they belong to a table",
                "Give several values of --epsilon or --reach, such as --epsilon 1,2,4",
            )


@click.command(short_help="Try it on a table.")
@click.argument("file", type=click.Path(path_type=Path))
@AXES
@CLUSTERS
@click.option(
    "--epsilon",
    "epsilons",
    type=Several(click.STRING),
    required=True,
    help="Privacy cost to each person, as in perturb; several, separated by commas, make a table.",
)
@click.option(
    "--reach",
    "--radius",
    "radii",
    type=Several(click.STRING),
    default="auto",
    show_default=True,
    help="Parameter L of the mechanism bpm, as in perturb; several, separated by commas, make a "
    "table.",
)
@MECHANISM
@SEED
@click.option(
    "--repeats",
    type=INTEGER,
    default=1,
    show_default=True,
    help="Of a table: draws of the noise, of which medians are shown.",
)
@written_options
@click.option(
    "--out",
    type=NewFile(),
    help="Also write the simulated reports to this file: Parquet if its name ends in .parquet, "
    "otherwise lines of JSON.",
)
@plot_option("the table, or the clusters,")
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
    With several values of --epsilon or --reach, a table of sums of squares:
      sfumato local simulate people.csv --axis age=0..120 --clusters 3 \\
        --epsilon 1,2,4 --reach .3,.5,auto --plot table.svg
    """
    domain = Domain(parse_axes(rehearsal.axes))
    bounds = read_bounds(domain.intervals(list(domain)), len(domain))
    rehearsal.require_sound()
    for option, path in (("--out", rehearsal.out), ("--report", rehearsal.page)):
        require_unread(option, path, files_read(file))
    points = to_unit(_read(file, tuple(domain), stated), bounds)
    if rehearsal.is_table:
        _tabulate(rehearsal, points, clusters, seed, as_json)
    else:
        _rehearse(rehearsal, domain, points, clusters, seed, as_json)


def _tabulate(rehearsal: Rehearsal, points: Array, clusters: int, seed: int, as_json: bool) -> None:
    """Print sums of squares over epsilon and L."""
    found = local_table(
        points,
        clusters,
        epsilon=rehearsal.epsilons,
        L=rehearsal.radii,
        repeats=rehearsal.repeats,
        random_state=seed,
    )
    said = _drawn(rehearsal, found.plot) + page_of([found], rehearsal.page)
    if as_json:
        emit_json(found)
    else:
        table(list(COLUMNS), found.lines(), "Sums of squares, over epsilon and L")
        for fact in found.facts():
            talk(fact)
    talk("These figures are not private: they were computed from true rows.")
    for line in said:
        talk(line)


def _drawn(rehearsal: Rehearsal, draw: Callable[[], Axes]) -> list[str]:
    """Draw the picture of ``--plot``, if it is asked for; return what to say of it."""
    if rehearsal.plot is None:
        return []
    save_picture(draw, rehearsal.plot)
    return [f"Plot: {rehearsal.plot}"]


def _rehearse(
    rehearsal: Rehearsal, domain: Domain, points: Array, clusters: int, seed: int, as_json: bool
) -> None:
    """Print the clusters that a server would find, and what they lose."""
    mechanism = rehearsal.settings().made()
    drawn = reports(mechanism, points)
    collector = Collector(mechanism)
    collector.add(drawn)
    decoded = collector.decode(clusters, seed)
    said = []
    if rehearsal.out is not None:
        write(drawn, rehearsal.out)
        said.append(f"Reports: {rehearsal.out}")
    said += _drawn(rehearsal, lambda: _reported(collector.points(), decoded.centers))
    losses = _losses(points, collector.points(), decoded, clusters, seed)
    figures = {"rows": len(points), "sse": losses, "mechanism": mechanism.title}
    show_clusters(decoded, domain, as_json, figures)
    talk(str(mechanism))
    best = losses["true rows"]
    talk(
        "Sum of squares beyond that of k-means on the true rows: "
        f"decoded {_excess(losses['reports, decoded'], best)}, "
        f"k-means on the reports {_excess(losses['reports, k-means'], best)}."
    )
    talk("These three figures are not private: they were computed from true rows.")
    for line in said:
        talk(line)


def _reported(places: Array, centers: Array) -> Axes:
    """Draw the reports and the centres that were found in them."""
    from sfumato.charts.local import draw_reports

    return draw_reports(places, centers)


def _losses(
    points: Array, reported: Array, decoded: Decoded, clusters: int, seed: int
) -> dict[str, float]:
    """Sums of squared distances from the true points to three choices of centres."""
    from sfumato.basics.kmeans import kmeans, sse

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


def _read(file: Path, columns: tuple[str, ...], stated: StatedOptions) -> Array:
    """The columns of a file as float64 of shape (n_rows, n_columns), without missing values."""
    from sfumato.data.describe import read_numbers

    found = read_numbers(file, columns, file_options(stated))
    values = np.stack([found[name] for name in columns], axis=1)
    return np.asarray(values[~np.isnan(values).any(axis=1)])
