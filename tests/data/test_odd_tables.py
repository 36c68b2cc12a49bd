"""Tables of unusual make: very wide, nested, or of a million distinct words: an answer, or a typed error before the scan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.data import count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.errors import DataError
from sfumato.lattice import LabelAxis, Lattice

X = Interval(0, 1)
LATTICE = Lattice((grid_axis("x", X, 4),))


@pytest.mark.parametrize("columns", [300, pytest.param(100_000, marks=pytest.mark.deep)])
def test_a_wide_file_is_read_by_the_columns_that_are_needed(columns: int, tmp_path: Path) -> None:
    values = pa.array([0.1, 0.6])
    table = pa.Table.from_arrays([values] * columns, [*(f"c{i}" for i in range(columns - 1)), "x"])
    pq.write_table(table, tmp_path / "wide.parquet", compression="none", write_statistics=False)
    for data in (table, tmp_path / "wide.parquet"):
        assert count(source(data, Domain(x=X)), [LATTICE])[0].counts.tolist() == [1, 0, 1, 0]
    with pytest.raises(DataError) as caught:
        count(source(table, Domain(y=X)), [Lattice((grid_axis("y", X, 4),))])
    assert len(str(caught.value)) < 1000  # the columns are not all listed


@pytest.mark.parametrize(
    "nested",
    [
        pa.array([[0.1], [0.6]]),
        pa.array([{"x": 0.1}, {"x": 0.6}]),
        pa.array([[(1, 0.5)], []], pa.map_(pa.int64(), pa.float64())),
    ],
)
def test_a_nested_column_is_refused_where_it_is_asked_for_and_left_alone_where_not(
    nested: pa.Array, tmp_path: Path
) -> None:
    table = pa.table({"x": [0.1, 0.6], "n": nested})
    pq.write_table(table, tmp_path / "nested.parquet")
    for data in (table, tmp_path / "nested.parquet"):
        assert count(source(data, Domain(x=X)), [LATTICE])[0].total == 2
        with pytest.raises(DataError):
            count(source(data, Domain(n=X)), [Lattice((grid_axis("n", X, 4),))])


@pytest.mark.parametrize("encoded", [False, True])
def test_a_million_distinct_words_on_an_axis_of_three(encoded: bool, tmp_path: Path) -> None:
    words = pa.array(np.arange(10**6)).cast(pa.string())
    table = pa.table({"kind": words.dictionary_encode() if encoded else words})
    axis = Categories(["5", "77", "absent"])
    pq.write_table(table, tmp_path / "words.parquet")
    for data in (table, tmp_path / "words.parquet"):
        cube = count(source(data, Domain(kind=axis)), [Lattice((LabelAxis("kind", axis.labels),))])[
            0
        ]
        assert cube.counts.tolist() == [1, 1, 0]
