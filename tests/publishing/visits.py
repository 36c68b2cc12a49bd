"""A source without rows, for streams of visits."""

from __future__ import annotations

import pyarrow as pa

import sfumato as sf

DOMAIN = sf.Domain(day=sf.Interval(0, 1), kind=sf.Categories(["a", "b"], other="rest"))


EMPTY = pa.table(
    {
        "day": pa.array([], pa.float64()),
        "kind": pa.array([], pa.string()),
        "who": pa.array([], pa.string()),
    }
)


def source(**words: object) -> object:
    return sf.source(EMPTY, DOMAIN, name="visits", **words)  # type: ignore[arg-type]
