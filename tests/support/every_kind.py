"""A release of every kind, over one small public table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.testing import deterministic

ROWS = 2_000
DOMAIN = sf.Domain(
    wage=sf.Interval(0, 100_000),
    year=sf.Interval(1990, 2010, step=1),
    day=sf.Interval("2026-01-01", "2026-02-01"),
    carrier=sf.Categories(["WN", "AA", "=1+1"], other="else"),
    shop=sf.Keys(),
)
HALF = {"epsilon": "0.5"}
QUESTIONS = {
    "histogram": (sf.Histogram("year"), HALF),
    "table": (sf.Histogram(["carrier", "day"], bins=4), HALF),
    "ranges": (sf.Histogram("wage", bins=64, workload="ranges"), HALF),
    "bounded": (sf.Histogram("year", noise="bounded"), {"epsilon": "1", "delta": "1e-6"}),
    "keys": (sf.Histogram("shop"), {"epsilon": "2", "delta": "1e-6"}),
    "tables": (sf.Tables([["carrier", "year"], ["carrier", "day"]], bins=[20, 4]), HALF),
    "mean": (sf.Mean("wage", by="carrier"), HALF),
    "means": (sf.Mean(["wage", "year"]), HALF),
    "means over persons": (sf.Mean("wage", by="carrier", per="person"), HALF),
    "sum": (sf.Sum("wage", clip="auto"), HALF),
    "variance": (sf.Variance("year"), HALF),
    "quantiles": (sf.Quantiles(["wage", "year"], by="carrier"), HALF),
    "partition": (sf.AutoPartitioner(["wage", "year"]), HALF),
    "clusters": (sf.KMeans(3, ["wage", "year"]), HALF),
    "persons": (sf.Persons(most_rows=10), HALF),
}


def source() -> sf.Source:
    """The table, from whole numbers alone."""
    at = np.arange(ROWS)
    rows = pa.table(
        {
            "wage": (at * 7919 % 100_003).astype(float),
            "year": 1990 + at * 13 % 20,
            "day": np.datetime64("2026-01-01", "D") + (at * 5 % 31),
            "carrier": [["WN", "AA", "=1+1", "ZZ"][i * i % 4] for i in range(ROWS)],
            "shop": [f"=shop {i % 5}" for i in range(ROWS)],
            "id": at // 3,
        }
    )
    return sf.source(rows, DOMAIN, person="id", rows_per_person=4, name="every kind")


@cache
def releases() -> Mapping[str, sf.Release]:
    """A release of every kind, by name."""
    with (
        deterministic(2026),
        sf.Publisher(source(), budget=sf.ApproxDP(100, "0.5")) as publisher,
    ):
        found: dict[str, sf.Release] = {
            name: publisher.release(question, **cost)
            for name, (question, cost) in QUESTIONS.items()
        }
        with publisher.open(sf.Counter(horizon=9, by="carrier"), epsilon="1", key="k") as stream:
            for step in range(5):
                stream.push(["WN", "AA"], event=f"2026-01-0{step + 1}", persons=[1, 2])
            found["counter"] = stream.history()
    return found
