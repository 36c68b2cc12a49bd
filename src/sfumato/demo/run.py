"""The demo: two real tables, one ledger, one page.

An aircraft, identified by its tail number, takes the place of a person. Each answer counts a
limited number of flights of an aircraft, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sfumato.answers.release import Release
from sfumato.counters.calendar import Calendar
from sfumato.counters.question import Counter
from sfumato.counters.release import CounterRelease
from sfumato.data import Source, source, step_reader
from sfumato.demo import cities_domain, cities_path, flights_domain, flights_path
from sfumato.errors import DataError
from sfumato.histogram import Histogram
from sfumato.ledger import Ledger, open_ledger
from sfumato.pages import report
from sfumato.partition.auto import AutoPartitioner
from sfumato.privacy.measures import ApproxDP
from sfumato.publishing.plan import Plan
from sfumato.publishing.publisher import Publisher
from sfumato.publishing.stream import push_all
from sfumato.quantiles import Quantiles

Progress: TypeAlias = Callable[[int, int | None], None]

# These limits were chosen by looking at the flights, which is allowed only because the flights are
# public. For data of your own, choose from what is publicly known.
FLIGHTS_PER_AIRCRAFT = 400
"""For tables of delays: 9 of 4,043 aircraft have more flights, in all .2% of the flights.

A limit of 12 would leave out 87% of the flights: far more than the noise of the larger limit costs.
"""
FLIGHTS_PER_AIRCRAFT_OF_DESTINATIONS = 50
"""For destinations, whose threshold grows with the limit.

At epsilon 1 and delta 1e-6 a destination is shown from about 680 flights on, which shows 46 of 104
(a limit of 1 shows 50). At a limit of 400 it would take 5,500 flights, which shows 21.
"""
# Accounts are named by what they protect.
AIRCRAFT = "aircraft-2013"
SINGLE_FLIGHTS = "single-flights-2013"
AIRCRAFT_BUDGET = ApproxDP("4", "1e-5")
# Minutes: early or on time, up to a quarter of an hour late, up to an hour, later.
DELAY_EDGES = (-60, 0, 15, 60, 240)


@dataclass(frozen=True)
class Demo:
    """What the demo published, and the files it wrote."""

    releases: list[Release]
    saved: list[Path]
    report: Path
    ledger: Path


def publish(folder: Path, progress: Progress | None = None) -> Demo:
    """Publish delays, destinations, a map of cities and daily totals; write all to ``folder``.

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
        releases = [
            *_delays(ledger, progress),
            _destinations(ledger, progress),
            _map_of_cities(ledger, progress),
            _day_by_day(ledger),
        ]
    saved = [release.save(folder / f"{i}.json") for i, release in enumerate(releases, 1)]
    page = report(releases, folder / "report.html", title="Flights and cities")
    return Demo(releases, saved, page, book)


def _aircraft(limit: int) -> Source:
    """The flights, with at most ``limit`` of each aircraft."""
    return source(
        flights_path(),
        flights_domain(),
        person="tailnum",
        rows_per_person=limit,
        name="flights-2013",
    )


def _delays(ledger: Ledger, progress: Progress | None) -> list[Release]:
    """Delays, by carrier and by time of day, and the median delay of each carrier."""
    plan = Plan(
        [
            Histogram("dep_delay", bins=30),
            Histogram(["carrier", "dep_delay"], bins=DELAY_EDGES),
            Histogram(["hour", "dep_delay"], bins={"hour": 8, "dep_delay": DELAY_EDGES}),
            Quantiles("dep_delay", at=["0.5"], by="carrier"),
        ],
        # A median needs more of the cost than a count.
        shares=[1, 1, 1, 2],
    )
    flights = _aircraft(FLIGHTS_PER_AIRCRAFT)
    publisher = Publisher(flights, ledger=ledger, account=AIRCRAFT, budget=AIRCRAFT_BUDGET)
    return publisher.release(plan, epsilon="2.5", progress=progress)


def _destinations(ledger: Ledger, progress: Progress | None) -> Release:
    """The destinations, which are not known beforehand, and their numbers of flights."""
    flights = _aircraft(FLIGHTS_PER_AIRCRAFT_OF_DESTINATIONS)
    publisher = Publisher(flights, ledger=ledger, account=AIRCRAFT, budget=AIRCRAFT_BUDGET)
    return publisher.release(Histogram("dest"), epsilon="1", delta="1e-6", progress=progress)


def _map_of_cities(ledger: Ledger, progress: Progress | None) -> Release:
    cities = source(cities_path(), cities_domain(), name="cities")
    publisher = Publisher(cities, ledger=ledger, account="cities", budget="1")
    question = AutoPartitioner(["longitude", "latitude"])
    return publisher.release(question, epsilon="0.5", progress=progress)


def _day_by_day(ledger: Ledger) -> CounterRelease:
    """Flights so far, by airport, after each day of the year.

    The command line does the same by ``sfumato stream flights.parquet --step date --from ...``.

    It protects any single flight, but not an aircraft with all its flights. So it has an account of
    its own, which says so. A total with a limit of flights per aircraft would stop growing once
    each aircraft had reached its limit.
    """
    flights = source(flights_path(), flights_domain(), name="flights-2013")
    publisher = Publisher(flights, ledger=ledger, account=SINGLE_FLIGHTS, budget="0.1")
    year = Calendar("2013-01-01", "2013-12-31")
    with publisher.open(Counter(year, by="origin"), epsilon="0.1", key="flights-by-day") as stream:
        if stream.remaining:
            columns = step_reader.StepColumns("date", by="origin")
            # Each step is published as it is taken from this iterator; the totals are read below.
            for _ in push_all(stream, step_reader.from_parquet(flights_path(), columns, year)):
                pass
            # Days after the last flight, if there are any.
            stream.advance()
        return stream.history()
