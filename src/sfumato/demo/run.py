"""The demo: two real tables, one ledger, one page, and every job once.

An aircraft, identified by its tail number, takes the place of a person. Each answer counts a
limited number of flights of an aircraft, and says so. The limits follow from the first answer:
how many aircraft there are, and how many flights each has. So they are public, like any number that
is computed from a published answer.

First stands what the demo asks of the cities of the world: a map, and clusters with trust and
without. Then comes what it asks of the flights out of New York, and then the demo itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow.parquet as pq

from sfumato.answers import Release, Within
from sfumato.data import source, steps
from sfumato.demo import (
    AIRPORTS,
    CARRIER_NAMES,
    DISTANCES,
    cities_domain,
    cities_path,
    flights_domain,
    flights_path,
)
from sfumato.domain import Categories, Domain, Interval
from sfumato.errors import DataError
from sfumato.ledger import Ledger, open_ledger
from sfumato.local.clustering import PrivateKMeans
from sfumato.privacy import ApproxDP, Unit
from sfumato.publishing.plan import Plan
from sfumato.publishing.publisher import Publisher
from sfumato.publishing.stream import push_all
from sfumato.questions.aggregates import Mean
from sfumato.questions.clustering import KMeans
from sfumato.questions.counters.calendar import Calendar
from sfumato.questions.counters.question import Counter
from sfumato.questions.counters.release import CounterRelease
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.adaptive import AutoPartitioner
from sfumato.questions.persons import Persons, PersonsRelease, recommend
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.tables import Tables
from sfumato.reports import report
from sfumato.risk import Choice, Choices, Risk
from sfumato.risk.choosing import choose
from sfumato.risk.window import Window, window

# --- cities ---------------------------------------------------------------------------------------

Progress: TypeAlias = Callable[[int, int | None], None]

EPSILON_OF_MAP = EPSILON_OF_CLUSTERS = "0.5"
EPSILON_OF_REPORTS = "8"
CLUSTERS = 5
EVERY_TENTH = 10
"""One city in ten takes part: so many reports are enough."""
# Degrees, for the devices: the bounds of the public domain.
GLOBE = {"longitude": Interval(-180, 180), "latitude": Interval(-90, 90)}
DEGREES = {"longitude": "degrees", "latitude": "degrees"}


def maps_of_cities(ledger: Ledger, progress: Progress | None) -> list[Release]:
    """Where the cities are, and clusters of them by a trusted curator."""
    cities = source(cities_path(), cities_domain(), name="cities")
    publisher = Publisher(cities, ledger=ledger, account="cities", budget="1")
    axes = ["longitude", "latitude"]
    density = AutoPartitioner(axes, heading="Where the cities are", measured_in=DEGREES)
    clusters = KMeans(CLUSTERS, axes, heading="Clusters of cities", measured_in=DEGREES)
    return [
        publisher.release(density, epsilon=EPSILON_OF_MAP, progress=progress),
        publisher.release(clusters, epsilon=EPSILON_OF_CLUSTERS, progress=progress),
    ]


def clusters_of_devices(path: Path) -> PrivateKMeans:
    """The same clusters without trust: devices of cities report where they are, with noise.

    The reports are kept in a file. A second run reads them, since new ones would cost each city
    epsilon again.
    """
    model = PrivateKMeans(CLUSTERS, epsilon=EPSILON_OF_REPORTS, random_state=1, bounds=GLOBE)
    if path.exists():
        return model.fit_reports(np.load(path, allow_pickle=False))
    columns = pq.read_table(cities_path(), columns=list(GLOBE))
    model.fit(np.column_stack([columns[name].to_numpy()[::EVERY_TENTH] for name in GLOBE]))
    np.save(path, model.reports_)
    return model


# --- flights --------------------------------------------------------------------------------------

MOST_FLIGHTS = 1000
"""A public bound on the flights of an aircraft in a year: about three a day."""
# Accounts are named by what they protect.
AIRCRAFT = "aircraft-2013"
SINGLE_FLIGHTS = "single-flights-2013"
AIRCRAFT_BUDGET = ApproxDP("5", "1e-5")
EPSILON_OF_PERSONS = "0.3"
EPSILON_OF_DELAYS = "2.7"
# Three tables of counts, medians, and two tables of means. Medians and means need more than counts.
SHARES_OF_DELAYS = (1, 1, 1, 2, 2, 2)
EPSILON_OF_DESTINATIONS = "1"
EPSILON_OF_TABLES = "1"
MINUTES = {"dep_delay": "minutes"}
# Minutes: early or on time, up to a quarter of an hour late, up to an hour, later.
DELAY_EDGES = (-60, 0, 15, 60, 240)


def _aircraft(ledger: Ledger, limit: int = 1, domain: Domain | None = None) -> Publisher:
    """Publish from the flights, with at most ``limit`` of each aircraft."""
    flights = source(
        flights_path(),
        domain or flights_domain(),
        person="tailnum",
        rows_per_person=limit,
        name="flights-2013",
    )
    return Publisher(flights, ledger=ledger, account=AIRCRAFT, budget=AIRCRAFT_BUDGET)


def flights_of_aircraft(ledger: Ledger, progress: Progress | None) -> PersonsRelease:
    """How many aircraft there are, and how many flights each has: the limits follow from it."""
    # This question counts all flights of an aircraft, whatever the limit is.
    publisher = _aircraft(ledger)
    question = Persons(most_rows=MOST_FLIGHTS, heading="Flights of each aircraft")
    return publisher.release(question, epsilon=EPSILON_OF_PERSONS, progress=progress)


def delays(
    ledger: Ledger, flights_of_aircraft: PersonsRelease, progress: Progress | None
) -> list[Release]:
    """Delays, by carrier and by hour: counts, and the median and mean delay."""
    delays = _question_of_delays()
    plan = Plan(
        [
            delays,
            Histogram(
                ["carrier", "dep_delay"],
                bins=DELAY_EDGES,
                heading="Flights by airline and delay",
                measured_in=MINUTES,
                label_names=CARRIER_NAMES,
            ),
            Histogram(
                ["hour", "dep_delay"],
                bins={"hour": 8, "dep_delay": DELAY_EDGES},
                heading="Flights by hour and delay",
                measured_in=MINUTES,
            ),
            Quantiles(
                "dep_delay",
                at=["0.5"],
                by="carrier",
                heading="Median delay by airline",
                measured_in=MINUTES,
                label_names=CARRIER_NAMES,
            ),
            Mean(
                "dep_delay",
                by="carrier",
                heading="Mean delay by airline",
                measured_in=MINUTES,
                label_names=CARRIER_NAMES,
            ),
            Mean("dep_delay", by="hour", heading="Mean delay by hour", measured_in=MINUTES),
        ],
        shares=SHARES_OF_DELAYS,
    )
    epsilon_of_counts = Fraction(EPSILON_OF_DELAYS) * SHARES_OF_DELAYS[0] / sum(SHARES_OF_DELAYS)
    advice = recommend(flights_of_aircraft, delays, epsilon=epsilon_of_counts)
    publisher = _aircraft(ledger, advice.limit)
    return list(publisher.release(plan, epsilon=EPSILON_OF_DELAYS, progress=progress))


def destinations(
    ledger: Ledger, flights_of_aircraft: PersonsRelease, progress: Progress | None
) -> Release:
    """The destinations, which are not known beforehand, and their numbers of flights."""
    publisher = _aircraft(ledger, limit_of_half(flights_of_aircraft))
    return publisher.release(
        Histogram("dest", heading="Flights by destination"),
        epsilon=EPSILON_OF_DESTINATIONS,
        delta="1e-6",
        progress=progress,
    )


def tables(
    ledger: Ledger, flights_of_aircraft: PersonsRelease, progress: Progress | None
) -> Release:
    """Flights by airline and hour, by airline and destination, and by origin, which add up.

    Here the destinations are a public list of large airports, with all others in one cell.
    """
    axes = dict(flights_domain().items())
    axes["dest"] = Categories(AIRPORTS, other="elsewhere")
    question = Tables(
        [["carrier", "hour"], ["carrier", "dest"], ["carrier", "origin"]],
        heading="Flights in tables that add up",
        label_names=CARRIER_NAMES,
    )
    publisher = _aircraft(ledger, limit_of_half(flights_of_aircraft), Domain(axes))
    return publisher.release(question, epsilon=EPSILON_OF_TABLES, progress=progress)


def limit_of_half(flights_of_aircraft: PersonsRelease) -> int:
    """The limit at which about half of the aircraft lose flights.

    A destination is shown if its count is above a threshold, which grows with the limit. So this
    limit is lower than that of the delays. ``sf.recommend`` needs a number of cells that is known
    beforehand, and that of destinations is not.
    """
    half = flights_of_aircraft.persons().value / 2
    limits: list[int] = flights_of_aircraft.limits.tolist()
    return next(limit for limit in limits if flights_of_aircraft.affected(limit).value <= half)


def _question_of_delays() -> Histogram:
    return Histogram("dep_delay", bins=30, heading="Flights by delay", measured_in=MINUTES)


def window_of_delays(flights_of_aircraft: PersonsRelease) -> Window:
    """Which epsilon a histogram of delays needs, and which is safe. It reads no data."""
    question = _question_of_delays()
    advice = recommend(flights_of_aircraft, question, epsilon="0.3")
    unit = Unit(person="tailnum", rows_per_person=advice.limit)
    # The largest count is about 170,000, so an error of 6,500 is about 4% of it.
    accuracy = Within(6_500, simultaneous=True)
    risk = Risk(prior=0.01, posterior=0.4)
    return window(question, domain=flights_domain(), unit=unit, accuracy=accuracy, risk=risk)


def choice_of_mean() -> Choice | Choices:
    """Which epsilon Lee and Clifton's method allows for one mean over a small, known set.

    An airline flies to all of these airports but one, and wants to publish the mean distance
    without revealing which one it leaves out.
    """
    universe = {"distance": list(DISTANCES.values())}
    return choose(universe, size=len(DISTANCES) - 1, query="mean", risk="1/3")


def day_by_day(ledger: Ledger) -> CounterRelease:
    """Flights so far, by airport, after each day of the year.

    The command line does the same by ``sfumato stream flights.parquet --step date --from ...``.

    It protects any single flight, but not an aircraft with all its flights. So it has an account of
    its own, which says so. A total with a limit of flights per aircraft would stop growing once
    each aircraft had reached its limit.
    """
    flights = source(flights_path(), flights_domain(), name="flights-2013")
    publisher = Publisher(flights, ledger=ledger, account=SINGLE_FLIGHTS, budget="0.1")
    year = Calendar("2013-01-01", "2013-12-31")
    question = Counter(year, by="origin", heading="Flights so far, by airport")
    with publisher.open(question, epsilon="0.1", key="flights-by-day") as stream:
        if stream.remaining:
            columns = steps.StepColumns("date", by="origin")
            # Each step is published as it is taken from this iterator; the totals are read below.
            for _ in push_all(stream, steps.from_parquet(flights_path(), columns, year)):
                pass
            # Days after the last flight, if there are any.
            stream.advance()
        return stream.history()


# --- the demo -------------------------------------------------------------------------------------


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
        of_aircraft = flights_of_aircraft(ledger, progress)
        releases = [
            of_aircraft,
            *delays(ledger, of_aircraft, progress),
            destinations(ledger, of_aircraft, progress),
            tables(ledger, of_aircraft, progress),
            *maps_of_cities(ledger, progress),
            day_by_day(ledger),
        ]
    decisions = [window_of_delays(of_aircraft), choice_of_mean()]
    devices = clusters_of_devices(folder / "device-reports.npy")
    saved = [release.save(folder / f"{i}.json") for i, release in enumerate(releases, 1)]
    page = report(
        [*releases, *decisions, devices], folder / "report.html", title="Flights and cities"
    )
    return Demo(releases, decisions, devices, saved, page, book)
