"""Partitions as tables, Parquet and GeoJSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.answers.edges import edge_array
from sfumato.errors import DataError, UsageError
from sfumato.writing import require_no_database

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.partition.partition import Partition


def frame(partition: Partition) -> pa.Table:
    """One row per box: ``axis_lower`` and ``axis_upper`` per axis, count, low, high (95%)."""
    import pyarrow as pa

    low, high = partition.interval()
    columns: dict[str, Any] = {}
    for i, axis in enumerate(partition.geometry.axes):
        columns[f"{axis.name}_lower"] = edge_array(partition.lower[:, i], axis.time)
        columns[f"{axis.name}_upper"] = edge_array(partition.upper[:, i], axis.time)
    return pa.table(columns | {"count": partition.counts, "low": low, "high": high})


def parquet(partition: Partition, path: str | os.PathLike[str]) -> None:
    """Write the table of boxes as Parquet."""
    import pyarrow.parquet as pq

    _written(path, lambda: pq.write_table(frame(partition), os.fspath(path)))


def geojson(partition: Partition, path: str | os.PathLike[str] | None, axes: Sequence[str] | None) -> dict[str, Any]:
    """Boxes of two axes as a GeoJSON FeatureCollection, written where a path is given."""
    names = partition.axes
    pair = tuple(axes) if axes is not None else names if not names[0].lower().startswith("lat") else names[::-1]
    if sorted(pair) != sorted(names) or len(pair) != 2:
        raise UsageError("GeoJSON", f"this partition has the axes {', '.join(names)}", "Partition two axes, longitude and latitude")
    x, y = (names.index(name) for name in pair)
    corners = (partition.lower[:, x], partition.lower[:, y], partition.upper[:, x], partition.upper[:, y])
    numbers = (*corners, partition.counts, *partition.interval())
    rows = zip(*(part.tolist() for part in numbers), strict=True)
    features = [_feature(*row) for row in rows]
    collection = {"type": "FeatureCollection", "counted": partition.guarantee.counted, "features": features}
    if path is not None:
        target = Path(path)
        _written(target, lambda: target.write_text(json.dumps(collection), encoding="utf-8"))
    return collection


def _feature(west: float, south: float, east: float, north: float, count: float, low: float, high: float) -> dict[str, Any]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    properties = {"count": count, "low": low, "high": high}
    return {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}, "properties": properties}


def _written(path: str | os.PathLike[str], write: Callable[[], object]) -> None:
    require_no_database(Path(path), "writing")
    try:
        write()
    except OSError as error:
        reason = error.strerror or "the file cannot be written"
    else:
        return
    raise DataError(f"writing {path}", reason, "Choose a path that can be written")
