"""Two real tables and their public domains: flights out of New York in 2013, and world cities.

The domains come from public knowledge, not from the tables: lists of carriers and country codes,
the calendar, the globe. ``ATTRIBUTION.md`` says where the tables come from.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from sfumato.domain import Categories, Domain, Interval, Keys

CARRIER_NAMES = {
    "9E": "Endeavor Air",
    "AA": "American Airlines",
    "AS": "Alaska Airlines",
    "B6": "JetBlue Airways",
    "DL": "Delta Air Lines",
    "EV": "ExpressJet",
    "F9": "Frontier Airlines",
    "FL": "AirTran Airways",
    "HA": "Hawaiian Airlines",
    "MQ": "Envoy Air",
    "OO": "SkyWest Airlines",
    "UA": "United Airlines",
    "US": "US Airways",
    "VX": "Virgin America",
    "WN": "Southwest Airlines",
    "YV": "Mesa Airlines",
}
# Miles from New York to large airports, as any timetable says.
DISTANCES = {
    "BOS": 187,
    "ORD": 740,
    "ATL": 760,
    "MCO": 944,
    "FLL": 1069,
    "MIA": 1089,
    "DFW": 1391,
    "LAS": 2248,
    "LAX": 2475,
    "SFO": 2586,
}
_ISO_3166 = """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR
    BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ
    EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW
    GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY
    KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV
    MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY
    QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG
    TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA
    ZM ZW
"""
# XK, for Kosovo, is not in the standard but in use.
COUNTRIES = tuple(_ISO_3166.split())


def flights_path() -> Path:
    """The file of flights: 336,776 rows. ``tailnum`` identifies the aircraft."""
    return _path("flights.parquet")


def cities_path() -> Path:
    """The file of cities: 234,908 rows, one for each city."""
    return _path("cities.parquet")


def flights_domain() -> Domain:
    """The public axes of the flights.

    Delays are in minutes, the distance in miles; hour and date are those of the scheduled
    departure. Destinations are not listed.

    >>> flights_domain()["hour"].natural_cells
    24
    """
    return Domain(
        carrier=Categories(list(CARRIER_NAMES)),
        origin=Categories(("EWR", "JFK", "LGA")),
        dest=Keys(),
        month=Interval(1, 13, step=1),
        day=Interval(1, 32, step=1),
        date=Interval("2013-01-01", "2014-01-01"),
        hour=Interval(0, 24, step=1),
        dep_delay=Interval(-60, 240, step=1),
        arr_delay=Interval(-60, 240, step=1),
        distance=Interval(0, 5000, step=1),
    )


def cities_domain() -> Domain:
    """The public axes of the cities: degrees, inhabitants up to forty million, and the country.

    >>> list(cities_domain())
    ['longitude', 'latitude', 'population', 'country']
    """
    return Domain(
        longitude=Interval(-180, 180),
        latitude=Interval(-90, 90),
        population=Interval(0, 40_000_000, step=1),
        country=Categories(COUNTRIES),
    )


def _path(name: str) -> Path:
    return Path(str(files("sfumato.demo").joinpath(name)))
