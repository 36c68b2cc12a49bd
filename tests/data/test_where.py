"""Rows that do not satisfy a public condition are no rows of the table."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.data import count, source
from sfumato.data.cells import RowFilter
from sfumato.data.source import Source
from sfumato.domain.conditions import OneOf, conditions_of

DOMAIN = sf.Domain(
    x=sf.Interval(0, 100),
    tenth=sf.Interval(0, 1, step=0.1, missing=0.5),
    gap=sf.Interval(0, 10, missing=True),
    kind=sf.Categories(["a", "b"], other="else", missing="none"),
)


def satisfied(where: Any, **columns: Any) -> list[bool]:
    found = RowFilter(conditions_of(where, DOMAIN), DOMAIN)
    return list(found.satisfied(pa.RecordBatch.from_pydict(columns)).tolist())


def test_ranges_are_half_open_and_reach_beyond_the_bounds() -> None:
    """As bins do: values beyond the bounds count as the nearest of them."""
    x = [-5.0, 0.0, 17.999, 18.0, 64.9, 65.0, 100.0, 1e300, float("nan"), None]
    assert satisfied({"x": (18, 65)}, x=x) == [n in (3, 4) for n in range(10)]
    assert satisfied({"x": (None, 18)}, x=x) == [n < 3 for n in range(10)]
    assert satisfied({"x": (65, 100)}, x=x) == [5 <= n < 8 for n in range(10)]
    assert satisfied({"x": (None, None)}, x=x) == [n < 8 for n in range(10)]


def test_a_missing_number_is_where_the_axis_puts_it() -> None:
    tenth = [0.3, 0.7, None, float("nan")]
    assert satisfied({"tenth": (0.3, 0.7)}, tenth=tenth) == [True, False, True, True]
    assert satisfied({"gap": (None, None)}, gap=tenth) == [True, True, False, False]


def test_labels_of_unlisted_and_missing_values() -> None:
    kind = ["a", "b", "c", None]
    assert satisfied({"kind": ["b", "else"]}, kind=kind) == [False, True, True, False]
    assert satisfied({"kind": ["none"]}, kind=kind) == [False, False, False, True]
    both = {"kind": ["a"], "x": (0, 50)}
    assert satisfied(both, kind=["a", "a", "b"], x=[1, 60, 1]) == [True, False, False]


@pytest.mark.parametrize("type_", [pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_forms_of_columns(type_: pa.DataType) -> None:
    column = pa.array(["a", "b", None, "a"]).cast(type_)
    batch = pa.RecordBatch.from_arrays([column], names=["kind"])
    kept = RowFilter([OneOf("kind", ("a",))], DOMAIN).kept(batch)
    assert kept["kind"].cast(pa.string()).to_pylist() == ["a", "a"]


def table(rows: list[tuple[int, float, str]]) -> pa.Table:
    who, x, kind = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "who": pa.array(who, pa.int64()),
            "x": pa.array(x, pa.float64()),
            "kind": pa.array(kind, pa.string()),
        }
    )


def opened(rows: list[tuple[int, float, str]], **given: Any) -> Source:
    return source(table(rows), DOMAIN, "who", 3, **given)


MOST = 6


def drawn(draw: random.Random, who: int) -> list[tuple[int, float, str]]:
    rows = draw.randint(0, MOST)
    far = 1e6 if who == 0 and draw.random() < 0.3 else 100.0
    return [(who, draw.uniform(0, far), draw.choice("abc")) for _ in range(rows)]


class AboveTheMean(RowFilter):
    """No condition: whether a row is kept depends on other persons' rows."""

    def satisfied(self, batch: pa.RecordBatch) -> Any:
        mean = pc.mean(batch["x"]).as_py() or 0.0
        return np.asarray(batch["x"]) >= mean


def largest_change(neighbours: str, kind: type[RowFilter] | None = None) -> int:
    """How far one person moves the counts under a condition, in L1.

    Nobody has more rows than the limit, so that the same rows of all others are counted.
    """
    draw = random.Random(3)
    needs = [sf.Histogram("x", bins=20).needs(DOMAIN)]
    changes = []
    for _ in range(100):
        others = [row for who in range(1, 12) for row in drawn(draw, who)]
        counted = []
        for rows in (drawn(draw, 0), drawn(draw, 0) if neighbours == "replace" else []):
            where = {"x": (2, 98), "kind": ["a", "else"]}
            src = source(table([*rows, *others]), DOMAIN, "who", MOST, where=where)
            if kind is not None:
                src._row_filter = kind([], DOMAIN)
            counted.append(count(src, needs)[0].counts)
        changes.append(int(np.abs(counted[0] - counted[1]).sum()))
    return max(changes)


@pytest.mark.parametrize(("neighbours", "most"), [("add-remove", MOST), ("replace", 2 * MOST)])
def test_one_person_moves_the_counts_no_further_than_the_limit(neighbours: str, most: int) -> None:
    assert most / 3 < largest_change(neighbours) <= most
    # A rule that looks at other rows is no public condition, and is caught.
    assert largest_change(neighbours, AboveTheMean) > most


def test_persons_are_bounded_within_the_rows_that_satisfy_it() -> None:
    """Nobody loses a row to one that was not asked for."""
    rows = [(who, x, "a") for who in range(50) for x in (1.0, 2.0, 3.0, 60.0, 70.0, 80.0)]
    needs = [sf.Histogram("x", bins=10).needs(DOMAIN)]
    (cube,) = count(opened(rows, where={"x": (50, None)}), needs)
    assert cube.counts.tolist() == [0] * 6 + [50] * 3 + [0]
    (persons,) = count(opened(rows, where={"x": (50, None)}), [sf.Persons(12).needs(DOMAIN)])
    assert persons.counts[2] == 50  # three rows each


def test_a_release_says_it_everywhere(tmp_path: Path) -> None:
    pq.write_table(table([(i % 40, float(i % 100), "ab"[i % 2]) for i in range(500)]),
                   tmp_path / "t.parquet")  # fmt: skip
    where: dict[str, object] = {"x": (18, 65), "kind": ["a"]}
    words = " where kind is a, and x is from 18 to below 65"

    def publisher(**given: Any) -> sf.Publisher:
        src = source(tmp_path / "t.parquet", DOMAIN, "who", 3, **given)
        return sf.Publisher(src, ledger=tmp_path / "l.db", budget=9)

    question = sf.Histogram("x", bins=4)
    with publisher(where=where) as asked:
        release = asked.release(question, epsilon=1)
        assert release.receipt is not None
        assert release.receipt.source == f"t.parquet, rows{words}"
        assert str(release.guarantee).count(words) == 3
        assert "conditions on rows were chosen without" in str(release.guarantee)
        assert words in str(asked.preview(question, epsilon=1))
        assert asked.release(question, epsilon=1).replayed
        assert pickle.loads(pickle.dumps(asked.source)).unit == asked.source.unit
    release.save(tmp_path / "r.json")
    assert sf.load(tmp_path / "r.json") == release
    for other in ({}, {"where": {"x": (18, 65)}}, {"where": {**where, "x": (18, 64)}}):
        with publisher(**other) as differs:
            # Another question of the same account, which pays for it.
            assert not differs.release(question, epsilon=1).replayed
    with publisher() as last:
        assert last.remaining == 5


def test_a_check_counts_the_rows_that_are_dropped() -> None:
    rows = [(i, float(i), "a") for i in range(100)]
    found = sf.Publisher(opened(rows, where={"x": (None, 30)}), budget=1).check(sf.Histogram("x"))
    assert (found.rows, found.not_asked) == (100, 70)
    assert found.questions[0].counted == 30
    assert found.questions[0].dropped == 0
    assert "70 rows are dropped: the conditions (where) do not hold" in str(found)


def test_a_condition_on_a_column_that_the_table_lacks_is_refused_before_the_charge() -> None:
    publisher = sf.Publisher(opened([], where={"gap": (1, 2)}), budget=1)
    with pytest.raises(sf.DataError, match="column 'gap'"):
        publisher.release(sf.Histogram("x"), epsilon=1)
    assert publisher.remaining == 1


def test_a_stream_has_no_rows_to_drop() -> None:
    publisher = sf.Publisher(opened([], where={"x": (1, 2)}), budget=1)
    with pytest.raises(sf.UsageError, match="no condition drops their rows"):
        publisher.open(sf.Counter(4), epsilon=1)


def test_a_source_without_conditions_has_no_filter() -> None:
    src = opened([])
    assert src._row_filter is None
    assert src.unit.where is msgspec.UNSET
