"""The demo: two real tables, one ledger, one page.

Flights are counted per aircraft: an aircraft (its tail number) is the person whose presence must not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.data import feed, source
from sfumato.demo import cities_domain, cities_path, flights_domain, flights_path
from sfumato.errors import DataError
from sfumato.histogram import Histogram
from sfumato.ledger import Ledger, open_ledger
from sfumato.pages import report
from sfumato.partition import AutoPartitioner
from sfumato.plan import Plan
from sfumato.privacy.measures import ApproxDP
from sfumato.publisher import Publisher
from sfumato.quantiles import Quantiles
from sfumato.release import Release
from sfumato.streaming.calendar import Calendar
from sfumato.streaming.counter import Counter, CounterRelease
from sfumato.streams import pour

FLIGHTS_PER_AIRCRAFT = 12  # of some 80 on average: the more are kept, the more noise must hide one aircraft
DELAY_EDGES = (-60, 0, 15, 60, 240)  # minutes: early or on time, up to a quarter of an hour, up to an hour, later


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
        flights = source(flights_path(), flights_domain(), person="tailnum", rows_per_person=FLIGHTS_PER_AIRCRAFT, name="flights-2013")
        plan = Plan(
            [
                Histogram("dep_delay", bins=30),
                Histogram(["carrier", "dep_delay"], bins=DELAY_EDGES),
                Histogram(["hour", "dep_delay"], bins={"dep_delay": DELAY_EDGES}),
                Quantiles("dep_delay", by="carrier"),
            ]
        )
        publisher = Publisher(flights, ledger=ledger, account="flights-2013", budget=ApproxDP("3", "1e-5"))
        releases = publisher.release(plan, epsilon="2", progress=progress)
        releases.append(publisher.release(Histogram("dest"), epsilon="1", delta="1e-6", progress=progress))
        cities = source(cities_path(), cities_domain(), name="cities")
        publisher = Publisher(cities, ledger=ledger, account="cities", budget="1")
        releases.append(publisher.release(AutoPartitioner(["longitude", "latitude"]), epsilon="0.5", progress=progress))
        releases.append(_day_by_day(ledger))
    saved = [release.save(folder / f"{i}.json") for i, release in enumerate(releases, 1)]
    page = report(releases, folder / "report.html", title="Flights and cities")
    return Demo(releases, saved, page, book)


def _day_by_day(ledger: Ledger) -> CounterRelease:
    """Flights so far, by airport, after each day of the year: `sfumato stream flights.parquet --step date --from 2013-01-01 ...`.

    Each flight stands for itself here: a total that counted only the first dozen flights of an aircraft would stand still by February.
    """
    flights = source(flights_path(), flights_domain(), name="flights-2013")
    publisher = Publisher(flights, ledger=ledger, account="flights-2013-by-day", budget="0.1")
    year = Calendar("2013-01-01", "2013-12-31")
    with publisher.open(Counter(year, by="origin"), epsilon="0.1", key="flights-by-day") as stream:
        if stream.remaining:
            for _ in pour(stream, feed.from_parquet(flights_path(), feed.Columns("date", by="origin"), year)):
                pass
            stream.advance()
        return stream.history()
