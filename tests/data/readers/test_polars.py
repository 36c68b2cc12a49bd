"""Frames of polars as sources."""

from __future__ import annotations

import uuid
from typing import Any

import polars as pl
import pytest

import sfumato as sf
from sfumato.domain import grid_axis
from sfumato.lattice import Lattice

TWO = sf.Interval(0, 2)


HALVES = Lattice((grid_axis("x", TWO, 2),))


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame])
def test_python_objects_of_polars_are_no_ids(frame: Any) -> None:
    one = str(uuid.uuid4())
    data = frame({"p": [uuid.UUID(one) for _ in range(9)], "x": [1.0] * 9})
    with pytest.raises(sf.DataError, match="Python objects"):
        sf.source(data, sf.Domain(x=TWO), person="p").require([HALVES])
