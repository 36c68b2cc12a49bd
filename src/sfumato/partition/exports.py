"""Write boxes as GeoJSON, and tables as Parquet."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.basics.files import require_no_database
from sfumato.basics.numbers import Array
from sfumato.errors import DataError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Boxes:
    """Boxes with their counts.

    Attributes
    ----------
    axes : tuple of str
    lower, upper : float64 ndarrays of shape (cells, d)
    counts : ndarray of shape (cells,)
    interval : two ndarrays of shape (cells,)
        Lower and upper ends of the 95% intervals of the counts.
    """

    axes: tuple[str, ...]
    lower: Array
    upper: Array
    counts: Array
    interval: tuple[Array, Array]


def geojson(boxes: Boxes, counted: str, axes: Sequence[str] | None) -> dict[str, object]:
    """Boxes of two axes as a GeoJSON FeatureCollection.

    Parameters
    ----------
    boxes : Boxes
    counted : str
        Says which rows the counts are about.
    axes : pair of names or None
        The axes of longitude and latitude.
    """
    names = boxes.axes
    longitude_first = names[::-1] if names[0].lower().startswith("lat") else names
    pair = longitude_first if axes is None else tuple(axes)
    if sorted(pair) != sorted(names) or len(pair) != 2:
        raise UsageError(
            "GeoJSON",
            f"this partition has the axes {', '.join(names)}",
            "Partition two axes, longitude and latitude",
        )
    x, y = (names.index(name) for name in pair)
    corners = (boxes.lower[:, x], boxes.lower[:, y], boxes.upper[:, x], boxes.upper[:, y])
    columns = [column.tolist() for column in (*corners, boxes.counts, *boxes.interval)]
    features = [_feature(*row) for row in zip(*columns, strict=True)]
    return {"type": "FeatureCollection", "counted": counted, "features": features}


def _feature(
    west: float,
    south: float,
    east: float,
    north: float,
    count: float,
    low: float,
    high: float,
) -> dict[str, object]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    properties = {"count": count, "low": low, "high": high}
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": properties,
    }


def write_parquet(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table as Parquet."""
    import pyarrow.parquet as pq

    _write_file(path, lambda: pq.write_table(table, os.fspath(path)))


def write_json(plain: Mapping[str, object], path: str | os.PathLike[str]) -> None:
    """Write plain values as JSON."""
    target = Path(path)
    _write_file(target, lambda: target.write_text(json.dumps(plain), encoding="utf-8"))


def _write_file(path: str | os.PathLike[str], write: Callable[[], object]) -> None:
    require_no_database(Path(path), "writing")
    try:
        write()
    except OSError as error:
        reason = error.strerror or "the file cannot be written"
    else:
        return
    raise DataError(f"writing {path}", reason, "Choose a path that can be written")
