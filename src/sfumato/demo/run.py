"""The demo: two real tables, one ledger, one page, and every job once.

An aircraft, identified by its tail number, takes the place of a person. Each answer counts a
limited number of flights of an aircraft, and says so. How many aircraft there are and how many
flights each has is an answer too, and says how many of them a limit may cut.

First stands what the demo asks of the cities of the world: a map, and clusters with trust and
without. Then comes what it asks of the flights out of New York, and then the demo itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pyarrow.parquet as pq

from sfumato.answers import Release, Within
from sfumato.data import Source, source, steps
from sfumato.demo import (
    CARRIER_NAMES,
    DISTANCES,
    cities_domain,
    cities_path,
    flights_domain,
    flights_path,
)
from sfumato.domain import Axis, Categories, Domain, Interval, Month
from sfumato.errors import DataError
from sfumato.ledger import Ledger, open_ledger
from sfumato.local.clustering import PrivateKMeans
from sfumato.privacy import ZCDP, ApproxDP
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
from sfumato.reports.page import report
from sfumato.risk import Choice, Choices, Risk
from sfumato.risk.choosing import choose
from sfumato.risk.window import Window, window

# --- cities ---------------------------------------------------------------------------------------

Progress: TypeAlias = Callable[[int, int | None], None]

EPSILON_OF_MAP = EPSILON_OF_CLUSTERS = "0.5"
EPSILON_OF_REPORTS = "8"
CLUSTERS = 5
# One city in ten takes part: so many reports are enough.
EVERY_TENTH = 10
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

# A public bound on the flights of an aircraft in a year: about three a day.
MOST_FLIGHTS = 1000
RHO_OF_PERSONS = "0.005"
RHO_OF_MONTHS = "0.02"
RHO_OF_MEANS = "0.02"
RHO_OF_QUANTILES = "0.01"
RHO_OF_TABLES = "0.03"
EPSILON_OF_DESTINATIONS = "0.1"
EPSILON_OF_TOTALS = "0.1"
MINUTES = {"dep_delay": "minutes"}
MONTH = Month("date")
# A month has about 28,000 flights, so an error of 2,000 is 7% of it.
ERROR_OF_A_MONTH = 2_000
PARTS_OF_THE_DAY = (5, 9, 12, 15, 18, 21, 24)
# Airlines call a flight late that leaves a quarter of an hour after its time.
LATE = (-60, 15, 240)
# The nine airlines with most flights, as their timetables show; all others are one group.
LARGE_AIRLINES = ("9E", "AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN")


def _flights(
    axes: Mapping[str, Axis] = MappingProxyType({}),
    *,
    rows: int | None = None,
    norm: int | None = None,
) -> Source:
    """Return flights within a limit for each aircraft, some axes of which may be stated anew."""
    return source(
        flights_path(),
        Domain({**flights_domain(), **axes}),
        person="tailnum",
        person_called="aircraft",
        rows_per_person=rows,
        norm_per_person=norm,
        name="flights-2013",
    )


def _aircraft(ledger: Ledger, flights: Source) -> Publisher:
    # Accounts are named by what they protect.
    return Publisher(flights, ledger=ledger, account="aircraft-of-2013", budget=ZCDP("0.1"))


def flights_of_aircraft(ledger: Ledger, progress: Progress | None) -> PersonsRelease:
    """How many aircraft there are, and how many flights each has: limits follow from it."""
    # This question counts all flights of an aircraft, whatever the limit is.
    publisher = _aircraft(ledger, _flights(rows=1))
    return publisher.release(
        Persons(most_rows=MOST_FLIGHTS, heading="Flights of each aircraft"),
        rho=RHO_OF_PERSONS,
        progress=progress,
    )


def norms_of_aircraft(ledger: Ledger, progress: Progress | None) -> PersonsRelease:
    """How the flights of each aircraft spread over the months, as the norm of its twelve counts."""
    publisher = _aircraft(ledger, _flights({"month": MONTH}, rows=1))
    return publisher.release(
        Persons(
            most_rows=MOST_FLIGHTS,
            of="norm",
            axes="month",
            heading="Norm of the monthly flights of each aircraft",
        ),
        rho=RHO_OF_PERSONS,
        progress=progress,
    )


def norm_of_aircraft(flights_of_aircraft: PersonsRelease, norms: PersonsRelease) -> int:
    """Return the limit on the norm that suits flights by month. It follows from two answers."""
    return recommend(norms, Histogram("month"), rho=RHO_OF_MONTHS, rows=flights_of_aircraft).limit


def window_of_flights(norm: int) -> Window:
    """Which rho flights by month and by time of day need, and which is safe. It reads no data."""
    flights = _flights({"month": MONTH}, norm=norm)
    by_month = Histogram("month", heading="Flights by month")
    by_time_of_day = Histogram(
        ["hour", "dep_delay"],
        bins={"hour": PARTS_OF_THE_DAY, "dep_delay": LATE},
        heading="Late flights by time of day",
        measured_in=MINUTES,
    )
    return window(
        Plan([by_month, by_time_of_day]),
        domain=flights.domain,
        unit=flights.unit,
        accuracy=Within(ERROR_OF_A_MONTH, simultaneous=True),
        # An attacker who accuses one of a hundred absent aircraft finds at most five of a hundred.
        risk=Risk(fpr=0.01, tpr=0.05),
        measure="zcdp",
    )


def by_month_and_time_of_day(
    ledger: Ledger, norm: int, decision: Window, progress: Progress | None
) -> list[Release]:
    """Flights by month, and late ones by time of day, at the least cost that is accurate enough."""
    publisher = _aircraft(ledger, _flights({"month": MONTH}, norm=norm))
    return list(publisher.release(decision.plan, rho=decision.floor, progress=progress))


def mean_delays(ledger: Ledger, norm: int, progress: Progress | None) -> Release:
    """The mean delay in each three hours of the day; more than two hours count as two hours."""
    # The noise of a mean follows the width of its bounds.
    axes = {"dep_delay": Interval(0, 120, step=1), "hour": Interval(5, 23, step=3)}
    publisher = _aircraft(ledger, _flights(axes, norm=norm))
    return publisher.release(
        Mean("dep_delay", by="hour", heading="Mean delay by time of day", measured_in=MINUTES),
        rho=RHO_OF_MEANS,
        progress=progress,
    )


def quantiles_of_delays(
    ledger: Ledger, flights_of_aircraft: PersonsRelease, progress: Progress | None
) -> Release:
    """How late half of the flights are, three quarters, and nine tenths.

    Quantiles take a limit on rows. The limit is the one that suits counts of the same cost.
    """
    advice = recommend(flights_of_aircraft, Histogram("dep_delay", bins=30), rho=RHO_OF_QUANTILES)
    publisher = _aircraft(ledger, _flights(rows=advice.limit))
    question = Quantiles(
        "dep_delay",
        at=["0.5", "0.75", "0.9"],
        heading="Quantiles of the delay",
        measured_in=MINUTES,
    )
    return publisher.release(question, rho=RHO_OF_QUANTILES, progress=progress)


def tables(ledger: Ledger, norm: int, progress: Progress | None) -> Release:
    """Flights by airline and month, and by airport and month, which add up."""
    airlines = Categories(LARGE_AIRLINES, other="other airlines")
    publisher = _aircraft(ledger, _flights({"month": MONTH, "carrier": airlines}, norm=norm))
    question = Tables(
        [["carrier", "month"], ["origin", "month"]],
        heading="Flights in tables that add up",
        label_names={label: CARRIER_NAMES[label] for label in LARGE_AIRLINES},
    )
    return publisher.release(question, rho=RHO_OF_TABLES, progress=progress)


def _each_flight(ledger: Ledger) -> Publisher:
    """Return a publisher of flights that protects single flights, and no aircraft as a whole.

    A running total with a limit for each aircraft would stop growing once each aircraft had
    reached its limit. So there is an account of its own, which says what it protects.
    """
    flights = source(flights_path(), flights_domain(), name="flights-2013")
    return Publisher(
        flights, ledger=ledger, account="each-flight-of-2013", budget=ApproxDP("0.2", "1e-6")
    )


def destinations(ledger: Ledger, progress: Progress | None) -> Release:
    """The destinations, which are not known beforehand, and their numbers of flights."""
    return _each_flight(ledger).release(
        Histogram("dest", heading="Flights by destination"),
        epsilon=EPSILON_OF_DESTINATIONS,
        delta="1e-6",
        progress=progress,
    )


def day_by_day(ledger: Ledger) -> CounterRelease:
    """Flights so far, by airport, after each day of the year.

    The command line does the same by ``sfumato stream flights.parquet --step date --from ...``.
    """
    year = Calendar("2013-01-01", "2013-12-31")
    with _each_flight(ledger).open(
        Counter(year, by="origin", heading="Flights so far, by airport"),
        epsilon=EPSILON_OF_TOTALS,
        key="flights-by-day",
    ) as stream:
        if stream.remaining:
            columns = steps.StepColumns("date", by="origin")
            # Each step is published as it is taken from this iterator; the totals are read below.
            for _ in push_all(stream, steps.from_parquet(flights_path(), columns, year)):
                pass
            # Days after the last flight, if there are any.
            stream.advance()
        return stream.history()


def choice_of_mean() -> Choice | Choices:
    """Which epsilon Lee and Clifton's method allows for one mean over a small, known set.

    An airline flies to all of these airports but one, and wants to publish the mean distance
    without revealing which one it leaves out.
    """
    universe = {"distance": list(DISTANCES.values())}
    return choose(universe, size=len(DISTANCES) - 1, query="mean", risk="1/3")


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
        norms = norms_of_aircraft(ledger, progress)
        norm = norm_of_aircraft(of_aircraft, norms)
        decision = window_of_flights(norm)
        by_month, by_time_of_day = by_month_and_time_of_day(ledger, norm, decision, progress)
        map_of_cities, clusters = maps_of_cities(ledger, progress)
        releases = [
            by_month,
            map_of_cities,
            by_time_of_day,
            mean_delays(ledger, norm, progress),
            quantiles_of_delays(ledger, of_aircraft, progress),
            tables(ledger, norm, progress),
            of_aircraft,
            norms,
            destinations(ledger, progress),
            day_by_day(ledger),
            clusters,
        ]
    decisions = [decision, choice_of_mean()]
    devices = clusters_of_devices(folder / "device-reports.npy")
    saved = [release.save(folder / f"{i}.json") for i, release in enumerate(releases, 1)]
    page = report(
        [*releases, *decisions, devices], folder / "report.html", title="Flights and cities"
    )
    return Demo(releases, decisions, devices, saved, page, book)
