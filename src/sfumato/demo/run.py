"""The demo: two real tables, one ledger, one page.

An aircraft, named by its tail number, is the person whose presence must not show. Each answer counts at most so many flights of
an aircraft, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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

# Two limits for two jobs. Both were chosen because the flights are public: of data of your own, choose from what is known publicly.
#
# Tables of delays: 9 of 4,043 aircraft have more than 400 flights, and .2% of all flights lie beyond. A limit of 12 would leave out 87%
# of them, which is far more than the noise that the larger limit costs.
FLIGHTS_PER_AIRCRAFT = 400
# Destinations nobody listed: the number of flights from which on one is shown grows with the limit. At epsilon 1 and delta 1e-6 it is
# about 680 at a limit of 50, which shows 46 of 104 destinations (a limit of 1 shows 50), and 5,500 at 400, which shows 21.
FLIGHTS_PER_AIRCRAFT_OF_DESTINATIONS = 50
AIRCRAFT, SINGLE_FLIGHTS = (
    "aircraft-2013",
    "single-flights-2013",
)  # accounts, named by what they protect
DELAY_EDGES = (
    -60,
    0,
    15,
    60,
    240,
)  # minutes: early or on time, up to a quarter of an hour, up to an hour, later


@dataclass(frozen=True)
class Demo:
    """What the demo published and where it lies."""

    releases: list[Release]
    saved: list[Path]
    report: Path
    ledger: Path


def publish(folder: Path, progress: Callable[[int, int | None], None] | None = None) -> Demo:
    """Publish delays by carrier and hour, destinations that nobody listed, and a map of cities; write everything into ``folder``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or "the folder cannot be made"
    else:
        return _publish(folder, progress)
    raise DataError(f"the demo in {folder}", reason, "Choose a folder that can be written")


def _publish(folder: Path, progress: Callable[[int, int | None], None] | None) -> Demo:
    book = folder / "budget.db"
    with open_ledger(book) as ledger:
        budget = ApproxDP("4", "1e-5")
        publisher = Publisher(
            _aircraft(FLIGHTS_PER_AIRCRAFT), ledger=ledger, account=AIRCRAFT, budget=budget
        )
        releases = publisher.release(_delays(), epsilon="2.5", progress=progress)
        publisher = Publisher(
            _aircraft(FLIGHTS_PER_AIRCRAFT_OF_DESTINATIONS),
            ledger=ledger,
            account=AIRCRAFT,
            budget=budget,
        )
        releases.append(
            publisher.release(Histogram("dest"), epsilon="1", delta="1e-6", progress=progress)
        )
        cities = source(cities_path(), cities_domain(), name="cities")
        publisher = Publisher(cities, ledger=ledger, account="cities", budget="1")
        releases.append(
            publisher.release(
                AutoPartitioner(["longitude", "latitude"]), epsilon="0.5", progress=progress
            )
        )
        releases.append(_day_by_day(ledger))
    saved = [release.save(folder / f"{i}.json") for i, release in enumerate(releases, 1)]
    page = report(releases, folder / "report.html", title="Flights and cities")
    return Demo(releases, saved, page, book)


def _aircraft(limit: int) -> Source:
    """The flights, at most so many of each aircraft."""
    return source(
        flights_path(),
        flights_domain(),
        person="tailnum",
        rows_per_person=limit,
        name="flights-2013",
    )


def _delays() -> Plan:
    """Delays by themselves, by carrier and by time of day; and the median by carrier, which needs more of the cost than a count."""
    return Plan(
        [
            Histogram("dep_delay", bins=30),
            Histogram(["carrier", "dep_delay"], bins=DELAY_EDGES),
            Histogram(["hour", "dep_delay"], bins={"hour": 8, "dep_delay": DELAY_EDGES}),
            Quantiles("dep_delay", at=["0.5"], by="carrier"),
        ],
        shares=[1, 1, 1, 2],
    )


def _day_by_day(ledger: Ledger) -> CounterRelease:
    """Flights so far, by airport, after each day of the year: `sfumato stream flights.parquet --step date --from 2013-01-01 ...`.

    It protects any single flight, and no aircraft with all its flights: so it has an account of its own, which says so. A total that
    counted at most some flights of each aircraft would stand still once they had flown them.
    """
    flights = source(flights_path(), flights_domain(), name="flights-2013")
    publisher = Publisher(flights, ledger=ledger, account=SINGLE_FLIGHTS, budget="0.1")
    year = Calendar("2013-01-01", "2013-12-31")
    with publisher.open(Counter(year, by="origin"), epsilon="0.1", key="flights-by-day") as stream:
        if stream.remaining:
            for _ in push_all(
                stream,
                step_reader.from_parquet(
                    flights_path(), step_reader.StepColumns("date", by="origin"), year
                ),
            ):
                pass
            stream.advance()
        return stream.history()
