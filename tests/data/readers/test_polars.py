"""Frames of polars as sources."""

from __future__ import annotations

import uuid
from typing import Any

import polars as pl
import pytest

import sfumato as sf
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import Lattice

TWO = sf.Interval(0, 2)


HALVES = Lattice((grid_axis("x", TWO, 2),))


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame])
def test_python_objects_of_polars_are_no_ids(frame: Any) -> None:
    one = str(uuid.uuid4())
    data = frame({"p": [uuid.UUID(one) for _ in range(9)], "x": [1.0] * 9})
    with pytest.raises(sf.DataError, match="Python objects"):
        sf.source(data, sf.Domain(x=TWO), person="p").require([HALVES])


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame])
def test_several_scans_of_a_lazy_frame_assume_the_same_rows(frame: Any) -> None:
    """A plan takes one scan; a grid finer than the lattice is counted in another."""
    data = frame({"x": [1.0, 0.5] * 50})
    domain = sf.Domain(x=sf.Interval(0, 1))
    plan = [sf.Histogram("x", bins=2), sf.Sum("x")]
    scans = {1: plan, 2: [sf.UniformPartitioner("x", partitions=2**16 + 1)]}
    for n_scans, questions in scans.items():
        with sf.Publisher(sf.source(data, domain), budget=1) as publisher:
            (release, *_) = publisher.release(questions, epsilon=1)
            assert publisher._answering.counting.queries == n_scans
        stated = any("lazy frame" in line for line in release.guarantee.assumptions)
        assert stated == (n_scans > 1 and frame is pl.LazyFrame)
