"""A table of wards, ages and wages, and its domain."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf

DOMAIN = sf.Domain(
    ward=sf.Categories(["A", "B", "C"]),
    age=sf.Interval(0, 121, step=1),
    wage=sf.Interval(-50, 150),
    day=sf.Interval("2026-01-01", "2026-02-01"),
    shop=sf.Keys(),
)
ROWS = 3000
AT = np.arange(ROWS)
TABLE = pa.table(
    {
        "ward": ["ABB"[i % 3] for i in range(ROWS)],
        "age": (AT * 7 % 100).astype(float),
        "wage": np.sin(AT) * 60 + 20,
        "day": np.datetime64("2026-01-01") + AT % 31,
        "shop": [f"s{i % 5}" for i in range(ROWS)],
    }
)
GROUPS = np.array(["ABB"[i % 3] for i in range(ROWS)])
LARGE = "10000"


def publisher_of_wages() -> sf.Publisher:
    return sf.Publisher(sf.source(TABLE, DOMAIN, name="wards"), budget=10)
