"""The demo: two real tables, one ledger, one page, and every job once.

An aircraft, identified by its tail number, takes the place of a person. Each answer counts a
limited number of flights of an aircraft, and says so. The limits follow from the first answer:
how many aircraft there are, and how many flights each has. So they are public, like any number that
is computed from a published answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sfumato.answers.release import Release
from sfumato.demo import cities, flights
from sfumato.errors import DataError
from sfumato.ledger import open_ledger
from sfumato.local.clustering import PrivateKMeans
from sfumato.reports import report
from sfumato.risk import Choice, Choices
from sfumato.risk.window import Window

Progress: TypeAlias = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Demo:
    """What the demo published, what it decided before, and the files it wrote."""

    releases: list[Release]
    decisions: list[Choice | Choices | Window]
    devices: PrivateKMeans
    saved: list[Path]
    report: Path
    ledger: Path


def publish(folder: Path, progress: Progress | None = None) -> Demo:
    """Publish tables of flights, maps and clusters of cities and daily totals; write all files.

    Parameters
    ----------
    folder : Path
        It is made if it does not exist. A second run finds the ledger there and pays nothing.
    progress : callable or None
        Called with the number of rows read and the total, None if it is not known.

    Raises
    ------
    DataError
        If the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        obstacle = error.strerror or "the folder cannot be made"
    else:
        return _publish(folder, progress)
    raise DataError(f"the demo in {folder}", obstacle, "Choose a folder that can be written")


def _publish(folder: Path, progress: Progress | None) -> Demo:
    book = folder / "budget.db"
    with open_ledger(book) as ledger:
        of_aircraft = flights.flights_of_aircraft(ledger, progress)
        releases = [
            of_aircraft,
            *flights.delays(ledger, of_aircraft, progress),
            flights.destinations(ledger, of_aircraft, progress),
            flights.tables(ledger, of_aircraft, progress),
            *cities.maps_of_cities(ledger, progress),
            flights.day_by_day(ledger),
        ]
    decisions = [flights.window_of_delays(of_aircraft), flights.choice_of_mean()]
    devices = cities.clusters_of_devices(folder / "device-reports.npy")
    saved = [release.save(folder / f"{i}.json") for i, release in enumerate(releases, 1)]
    page = report(
        [*releases, *decisions, devices], folder / "report.html", title="Flights and cities"
    )
    return Demo(releases, decisions, devices, saved, page, book)
