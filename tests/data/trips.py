"""Trips in small Parquet files, and how tests of several files read and refuse them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import random_tables
from data.refusals import CANARY
from sfumato.data import Source, count, source
from sfumato.domain.domain import Categories, Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
from sfumato.errors import SfumatoError

TRIPS = Domain(
    age=Interval(0, 120, step=1),
    year=Interval(2000, 2030, step=1),
    place=Categories(["a", "b c/d", "2013"]),
    day=Interval("2020-01-01", "2020-01-05"),
)


TRIPS_BY_AGE = Lattice((grid_axis("age", TRIPS["age"], 12),))  # type: ignore[arg-type]


BY_YEAR = Lattice((grid_axis("year", TRIPS["year"], 30),))  # type: ignore[arg-type]


def parquet(path: Path, ages: list[int], **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"age": ages, **more}), path)
    return path


def refused_in_both(
    src: Source, kind: type[SfumatoError], *words: str, lattice: Lattice = TRIPS_BY_AGE
) -> None:
    """Before a charge as in the count, and without a word of what a name may tell."""
    for action in (lambda: src.require([lattice]), lambda: count(src, [lattice])):
        with pytest.raises(kind) as caught:
            action()
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert CANARY not in str(caught.value)
        assert caught.value.__context__ is None


def tens(data: object, lattice: Lattice = TRIPS_BY_AGE) -> dict[int, int]:
    return {
        cell[0]: count
        for cell, count in random_tables.found(count(source(data, TRIPS), [lattice])[0]).items()
    }
