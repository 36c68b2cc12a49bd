"""Two real tables that ship with the library, and what is publicly known of them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from sfumato.domain import Categories, Domain, Interval

# IATA codes of the airlines that flew from New York in 2013: public knowledge, not read off the flights.
CARRIERS = ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")


def flights_path() -> Path:
    """Where the 336,776 flights that left New York in 2013 lie (Parquet; CC0)."""
    return Path(str(files("sfumato.demo") / "flights.parquet"))


def cities_path() -> Path:
    """Where the world's places of at least 500 people lie (Parquet; CC-BY 4.0, GeoNames)."""
    return Path(str(files("sfumato.demo") / "cities.parquet"))


def flights_domain() -> Domain:
    """Public axes of the flights: delays in minutes, the hour of scheduled departure, the day, the airline, the airport."""
    return Domain(
        date=Interval("2013-01-01", "2014-01-01"),
        hour=Interval(0, 24, step=1),
        carrier=Categories(CARRIERS),
        origin=Categories(["EWR", "JFK", "LGA"]),
        dep_delay=Interval(-60, 240),
        arr_delay=Interval(-90, 240),
        distance=Interval(0, 5000),
    )


def cities_domain() -> Domain:
    """Public axes of the places: degrees of longitude and latitude, inhabitants."""
    return Domain(longitude=Interval(-180, 180), latitude=Interval(-90, 90), population=Interval(0, 40_000_000))
