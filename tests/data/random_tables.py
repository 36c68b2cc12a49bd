"""Random tables of awkward values, and what they count to, in plain Python."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval, grid_axis
from sfumato.domain.lattice import EdgesAxis, GridAxis, LabelAxis, Lattice, LatticeAxis

UTC = dt.UTC
DOMAIN = Domain(
    x=Interval(-1.5, 8.5),
    n=Interval(0, 2**60),
    price=Interval(0, 1),
    flag=Interval(0, 2, step=1),
    day=Interval("2019-12-30", "2020-03-01"),
    at=Interval("2019-12-31T00:00", "2020-01-02T00:00"),
    word=Categories(["a", "ß", "日本", "NA", 'q"\n,'], other="else"),
    code=Categories([3, 1, 2]),
    yes=Categories([True, False]),
)
TYPES = {
    "x": pa.float64(),
    "n": pa.int64(),
    "price": pa.decimal128(12, 4),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "word": pa.string(),
    "code": pa.int16(),
    "yes": pa.bool_(),
}


def grid(name: str, cells: int) -> GridAxis:
    axis = DOMAIN[name]
    assert isinstance(axis, Interval)
    return grid_axis(name, axis, cells)


def labels(name: str) -> LabelAxis:
    axis = DOMAIN[name]
    assert isinstance(axis, Categories)
    return LabelAxis(name, axis.all_labels, axis.other is not None)


LATTICES = [
    Lattice((grid("x", 7),)),
    Lattice((EdgesAxis("x", (-1.5, 0.0, 0.1, 3.0, 8.5)), labels("word"))),
    Lattice((grid("n", 64), grid("flag", 2))),
    Lattice((EdgesAxis("n", (-5.0, 0.0, 0.5, 2.0**52, 2.0**62)), labels("yes"))),
    Lattice((grid("price", 10),)),
    Lattice((grid("day", 62), labels("code"))),
    Lattice((grid("at", 48 * 60), labels("yes"))),
    Lattice((grid("x", 2**12), grid("n", 2**12), grid("price", 2**12))),  # sparse
    Lattice(
        (*(grid(name, 2**20) for name in ("price", "x", "n", "at")), labels("word"))
    ),  # beyond one packed word
    Lattice((grid("x", 2**40), grid("price", 2**27))),  # just beyond
]


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [_row(draw) for _ in range(count)]


def _row(draw: random.Random) -> dict[str, Any]:
    day = dt.date(2020, 1, 1) + dt.timedelta(days=draw.randint(-9, 70))
    at = dt.datetime(2020, 1, 1) + dt.timedelta(
        microseconds=draw.choice([1, 10**6, 60 * 10**6]) * draw.randint(-2000, 2000)
    )
    row = {
        "x": draw.choice(
            [
                draw.gauss(3, 4),
                draw.randint(-3, 10) / 2,
                -1.5,
                8.5,
                0.1,
                math.nan,
                math.inf,
                -math.inf,
                -0.0,
                5e-324,
            ]
        ),
        "n": draw.choice([draw.randint(0, 2**60), 2**53 + 1, 2**54 + 3, 0, -5, 2**62]),
        "price": Decimal(draw.randint(-20, 12000)).scaleb(-4),
        "flag": draw.random() < 0.5,
        "day": day,
        "at": at,
        "word": draw.choice(["a", "ß", "日本", "NA", 'q"\n,', "unseen", "A", "a "]),
        "code": draw.choice([1, 2, 3, 4]),
        "yes": draw.random() < 0.3,
    }
    return {name: None if draw.random() < 0.06 else value for name, value in row.items()}


def table(rows_: list[dict[str, Any]], **types: Any) -> pa.Table:
    chosen = {**TYPES, **types}
    return pa.table(
        {name: pa.array([row[name] for row in rows_], type_) for name, type_ in chosen.items()}
    )


def expected(rows_: Iterable[dict[str, Any]], lattice: Lattice) -> dict[tuple[int, ...], int]:
    found = Counter(tuple(_cell(row[axis.name], axis) for axis in lattice.axes) for row in rows_)
    return {cell: count for cell, count in found.items() if -1 not in cell}


def _cell(value: Any, axis: LatticeAxis) -> int:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return -1
    if isinstance(axis, LabelAxis):
        listed = list(axis.labels[:-1] if axis.other else axis.labels)
        value = value.strip() if isinstance(value, str) else value
        return listed.index(value) if value in listed else len(listed) if axis.other else -1
    number = _number(value)
    if isinstance(axis, EdgesAxis):
        return sum(number >= edge for edge in axis.bounds[1:-1])
    scaled = (number - axis.lower) * axis.cells / (axis.upper - axis.lower)
    return axis.cells - 1 if scaled >= axis.cells else 0 if scaled <= 0 else math.floor(scaled)


def _number(value: Any) -> float:
    if isinstance(value, dt.datetime):
        return float((value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))
    if isinstance(value, dt.date):
        return float((value - dt.date(1970, 1, 1)).days)
    return float(value)


def found(cube: Cube) -> dict[tuple[int, ...], int]:
    """What a cube holds, as a dictionary."""
    import numpy as np

    if cube.coordinates is None:
        occupied = np.flatnonzero(cube.counts)
        where = np.stack(np.unravel_index(occupied, cube.lattice.shape), axis=1)
        return {
            tuple(cell): count
            for cell, count in zip(where.tolist(), cube.counts[occupied].tolist(), strict=True)
        }
    listed = [tuple(cell) for cell in cube.coordinates.tolist()]
    assert listed == sorted(set(listed))
    return dict(zip(listed, cube.counts.tolist(), strict=True))
