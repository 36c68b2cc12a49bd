"""Keys that executors select: what they give is laid out, and anything else is refused."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.counts import Needs, ShownKeys
from sfumato.data import select_in_engine, selects
from sfumato.data.scan import Scan
from sfumato.domain.lattice import GridAxis, KeyAxis, LabelAxis, Lattice
from sfumato.errors import InternalError
from sfumato.mechanisms.thresholds import KeyRule, ThresholdLaplace
from support.spark_tasks import TableInTasks

DOMAIN = sf.Domain(kind=sf.Categories(["a", "b"]), shop=sf.Keys(), at=sf.Interval(0, 3, step=1))
SHOP = KeyAxis("shop")
ALONE = Needs(Lattice((SHOP,)), 1)
BESIDE = Needs(Lattice((LabelAxis("kind", ("a", "b")), SHOP, GridAxis("at", 0, 3, 3))), 6)
RULE = KeyRule(ThresholdLaplace(Fraction(1, 10), 10), bytes(32))


class Given(TableInTasks):
    """Gives what a test says that the executors selected."""

    def __init__(self, *batches: Any, key: pa.DataType | None = None) -> None:
        schema = [("kind", pa.string()), ("shop", key or pa.string()), ("at", pa.float64())]
        super().__init__(pa.schema(schema).empty_table())
        self.given = batches

    def select(self, scan: Scan, rule: KeyRule) -> Iterator[pa.RecordBatch]:
        return iter(self.given)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def shown_by(reader: Given, needs: Needs = ALONE) -> ShownKeys:
    return select_in_engine(sf.source(reader, DOMAIN, name="t"), needs, RULE, key=bytes(32))


@pytest.mark.parametrize(
    ("keys", "ordered"),
    [
        (["zoo", "Ärger", "", "bar"], ["", "bar", "zoo", "Ärger"]),
        ([7, -3, 10, 2], [-3, 2, 7, 10]),
        ([True, False], [False, True]),
        (pa.array(["b", "a"]).dictionary_encode(), ["a", "b"]),
        (pa.array([5, 1], pa.int8()), [1, 5]),
        (pa.array(["b", "a"], pa.string_view()), ["a", "b"]),
    ],
    ids=str,
)
def test_keys_are_sorted_with_their_counts(keys: Any, ordered: list[Any]) -> None:
    listed = pa.array(keys)
    values = np.arange(len(listed)) + 20
    parts = [batch(key=listed[i : i + 1], noisy_rows=values[i : i + 1]) for i in range(len(listed))]
    shown = shown_by(Given(*parts, batch(key=listed[:0], noisy_rows=values[:0])))
    (axis,) = shown.lattice.axes
    assert axis == LabelAxis("shop", tuple(ordered))
    assert shown.values.tolist() == [20 + listed.to_pylist().index(key) for key in ordered]
    assert shown.cells is None


def test_the_cells_of_keys_are_numbered_by_them() -> None:
    one = batch(
        key=["b", "a"], noisy_rows=[31, 32], cell_0=[1, 0], cell_2=[2, 0], rows=pa.array([4, 5])
    )
    other = batch(
        key=["b"], rows=[6], cell_2=pa.array([0], pa.int32()), cell_0=[0], noisy_rows=[31]
    )
    shown = shown_by(Given(one, other), BESIDE)
    assert shown.lattice.shape == (2, 2, 3)
    assert shown.values.tolist() == [32, 31]
    assert shown.cells is not None
    assert shown.cells.coordinates is not None
    assert shown.cells.coordinates.tolist() == [[0, 0, 0], [0, 1, 0], [1, 1, 2]]
    assert shown.cells.counts.tolist() == [5, 6, 4]


@pytest.mark.parametrize("needs", [ALONE, BESIDE], ids=["alone", "beside"])
@pytest.mark.parametrize("parts", [0, 2])
def test_no_key_may_be_shown_at_all(needs: Needs, parts: int) -> None:
    names = ["key", "noisy_rows", *(["cell_0", "cell_2", "rows"] if needs is BESIDE else [])]
    empty = pa.record_batch({name: pa.array([], pa.int64()) for name in names})
    shown = shown_by(Given(*[empty] * parts), needs)
    assert shown.values.shape == (0,)
    assert shown.lattice.size == 0
    assert (shown.cells is None) == (needs is ALONE)


WRONG = {
    "true counts": (ALONE, [batch(key=["a"], rows_of_key=[3], noisy_rows=[4])]),
    "no noise": (ALONE, [batch(key=["a"], rows_of_key=[3])]),
    "one key twice": (ALONE, [batch(key=["a"], noisy_rows=[12])] * 2),
    "a key with two counts": (ALONE, [batch(key=["a", "a"], noisy_rows=[12, 13])]),
    "a cell twice": (
        BESIDE,
        [batch(key=["a"], noisy_rows=[12], cell_0=[0], cell_2=[0], rows=[9])] * 2,
    ),
    "a cell that is none": (
        BESIDE,
        [batch(key=["a"], noisy_rows=[12], cell_0=[2], cell_2=[0], rows=[9])],
    ),
    "a cell below all": (
        BESIDE,
        [batch(key=["a"], noisy_rows=[12], cell_0=[0], cell_2=[-1], rows=[9])],
    ),
    "cells that are missing": (BESIDE, [batch(key=["a"], noisy_rows=[12])]),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_groups_are_refused(name: str) -> None:
    needs, parts = WRONG[name]
    with pytest.raises(InternalError, match="from other groups"):
        shown_by(Given(*parts), needs)


def test_whether_executors_select_is_a_matter_of_the_question() -> None:
    src = sf.source(Given(), DOMAIN, name="t")
    assert selects(src, ALONE)
    assert selects(src, BESIDE)
    assert not selects(src, Needs(Lattice(BESIDE.lattice.axes[:1]), 2))
    mean = sf.Mean("at", by="shop").needs(DOMAIN)
    assert mean.lattice.keyed
    assert not selects(src, mean)
    rows = sf.source(pa.table({"kind": ["a"], "shop": ["b"], "at": [1.0]}), DOMAIN, name="t")
    assert not selects(rows, ALONE)


def test_what_is_no_key_is_refused_before_the_engine_is_asked() -> None:
    with pytest.raises(sf.DataError, match="keys are"):
        shown_by(Given(key=pa.float64()))
