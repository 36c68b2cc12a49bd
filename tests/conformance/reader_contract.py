"""What every reader promises (``sfumato.data.reader``), clause by clause.

Each clause is shown to fail for a reader that breaks it (see ``toys``).

A clause takes ``opened``, which gives a fresh reader of the same rows each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from conformance.kinds import Rows
from data import random_tables
from sfumato.cube import Cube
from sfumato.data import count, source
from sfumato.data.column_types import ids_form, misfit, plain_type
from sfumato.data.columns import decoded
from sfumato.data.reader import Columns, CountingReader, Reader, RowReader
from sfumato.domain import Categories, Domain, Keys
from sfumato.lattice import KeyAxis, LabelAxis, Lattice

COLUMNS: Columns = {
    **{axis.name: axis for lattice in random_tables.LATTICES for axis in lattice.axes},
    "who": None,
}
PERSONS = Domain(**random_tables.DOMAIN, who=Keys())
BY_PERSON = Lattice((KeyAxis("who"),))
KEYS = (bytes(range(32)), bytes(32))


# --- every reader ---------------------------------------------------------------------------------


def says_what_it_has(opened: Callable[[], Reader], columns: Columns = COLUMNS) -> None:
    """Each column wanted is there once and of a type that fits.

    Asked again, the reader gives the same names, types and label.
    """
    reader = opened()
    assert reader.name
    for part in reader.parts():
        names = part.names()
        assert [names.count(name) for name in columns] == [1] * len(columns)
        schema = part.schema(columns)
        for name, column in columns.items():
            assert misfit(column, schema.field(name).type) is None, name
        assert part.names() == names
        assert part.schema(columns).equals(schema)
    assert reader.label("n") == reader.label("n") != ""
    assert all(isinstance(hint, str) for hint in reader.hints())


# --- readers of rows ------------------------------------------------------------------------------


def gives_all_rows_twice(
    opened: Callable[[], RowReader], rows: int, columns: Columns = COLUMNS, *, once: bool = False
) -> None:
    """Two scans give all rows, of the declared types, in any order; and so does one column."""
    reader = opened()
    assert reader.rows() in (None, rows)
    first = _scanned(reader, columns)
    assert {len(values) for values in first.values()} == {rows}
    again = opened() if once else reader
    assert _rows(_scanned(again, columns)) == _rows(first), "another scan gives other rows"
    for name, column in columns.items():
        alone = opened() if once else reader
        assert _rows(_scanned(alone, {name: column})) == _rows({name: first[name]})


def _rows(columns: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """The rows of a table in sorted order: a reader may give them in any."""
    return sorted(zip(*columns.values(), strict=True))


def _scanned(reader: RowReader, columns: Columns) -> dict[str, list[str]]:
    said = {name: _types_said(reader, columns, name) for name in columns}
    found: dict[str, list[str]] = {name: [] for name in columns}
    for batch in reader.batches(columns):
        assert isinstance(batch, pa.RecordBatch)
        for name in columns:
            assert batch.schema.names.count(name) == 1
            assert plain_type(batch.schema.field(name).type) in said[name], (
                f"{name} changes its type"
            )
            found[name] += map(repr, decoded(batch[name]).to_pylist())
    return found


def _types_said(reader: RowReader, columns: Columns, name: str) -> list[pa.DataType]:
    types = [part.schema(columns).field(name).type for part in reader.parts()]
    one = ids_form(types) if columns[name] is None else None
    return [*map(plain_type, types), one]


def says_types_without_values(made_of: Callable[[Rows], RowReader], rows: Rows) -> None:
    """A table without rows, or whose first row is all nulls, has the types of a full one."""
    nulls = [dict.fromkeys(rows[0])]
    types = made_of(rows).schema(COLUMNS)
    assert made_of([]).schema(COLUMNS).equals(types)
    assert made_of([*nulls, *rows]).schema(COLUMNS).equals(types)


# --- readers that count ---------------------------------------------------------------------------


def counts_as_a_scan(opened: Callable[[], CountingReader], scanned: RowReader) -> None:
    """Where nobody's rows are cut, its cubes are those of a scan of the same rows, bit for bit."""
    for person, limit in ((None, 1), ("who", 10**6)):
        own = count(
            source(opened(), random_tables.DOMAIN, person=person, rows_per_person=limit),
            random_tables.LATTICES,
        )
        scan = count(
            source(scanned, random_tables.DOMAIN, person=person, rows_per_person=limit),
            random_tables.LATTICES,
        )
        for one, other in zip(own, scan, strict=True):
            _same(one, other)
    by_key = [count(source(each, PERSONS), [BY_PERSON])[0] for each in (opened(), scanned)]
    assert _keyed(by_key[0]) == _keyed(by_key[1])


def _same(one: Cube, other: Cube) -> None:
    assert one.lattice == other.lattice
    assert one.counts.dtype == np.int64
    assert one.counts.tobytes() == other.counts.tobytes()
    assert (one.coordinates is None) == (other.coordinates is None)
    if one.coordinates is not None and other.coordinates is not None:
        assert one.coordinates.dtype == np.int64
        assert one.coordinates.tobytes() == other.coordinates.tobytes()


def _keyed(cube: Cube) -> dict[object, int]:
    """Counts by key. Keys without a counted row may be listed or not, but all are in order."""
    assert cube.coordinates is not None
    keys = list(cube.keys["who"])
    assert keys == sorted(set(keys), key=str)
    return {
        keys[place]: number
        for (place,), number in zip(cube.coordinates.tolist(), cube.counts.tolist(), strict=True)
    }


def bounds_persons(opened: Callable[[], CountingReader], rows: Rows, limit: int) -> None:
    """Each person keeps as many rows as the limit allows.

    They are the same rows on every lattice and in every run under one key.
    """
    own = Counter(row["who"] for row in rows if row["who"] is not None)
    src = source(opened(), PERSONS, person="who", rows_per_person=limit)
    assert _keyed(count(src, [BY_PERSON])[0]) == {
        who: min(number, limit) for who, number in own.items()
    }
    fine = random_tables.grid("x", 64)
    coarse = random_tables.grid("x", 8)
    seen = []
    for key in KEYS:
        one, other = count(src, [Lattice((fine,)), Lattice((coarse,))], key=key)
        assert one.on(Lattice((coarse,))).counts.tolist() == other.counts.tolist()
        again = count(
            source(opened(), PERSONS, person="who", rows_per_person=limit),
            [Lattice((fine,))],
            key=key,
        )[0]
        assert again.counts.tolist() == one.counts.tolist(), "another run keeps other rows"
        seen.append(one.counts.tolist())
    assert seen[0] != seen[1], "the key does not choose"


def chooses_alike(made_of: Callable[[Rows], CountingReader], runs: int = 400) -> None:
    """Every row of a person is kept equally often, also among equal rows.

    One of four rows must be kept in a quarter of the runs. By Hoeffding's inequality, a correct
    choice exceeds this bound with probability 1e-9. The keys are fixed, so no outcome depends on
    luck.
    """
    blank = dict.fromkeys(COLUMNS) | {"who": "p"}
    reader = made_of([{**blank, "word": word} for word in ("a", "a", "a", "ß")])
    lattice = Lattice((LabelAxis("word", ("a", "ß")),))
    src = source(reader, {"word": Categories(["a", "ß"])}, person="who", rows_per_person=1)
    kept = sum(
        int(count(src, [lattice], key=run.to_bytes(32, "big"))[0].counts[1]) for run in range(runs)
    )
    assert abs(kept / runs - 0.25) < (np.log(2e9) / (2 * runs)) ** 0.5
