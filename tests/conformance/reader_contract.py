"""What every reader promises (``sfumato.data.reader``), clause by clause.

Each clause is shown to fail for a reader that breaks it (see ``toys``).

A clause takes ``opened``, which gives a fresh reader of the same rows each time.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from conformance.kinds import Rows
from data import random_tables
from sfumato.answers.counts import Needs, ShownKeys
from sfumato.data import count, select_in_engine, selects, source
from sfumato.data.columns import decoded
from sfumato.data.reader import Columns, Reader, RowReader
from sfumato.data.schema import ids_form, misfit, plain_type
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Keys
from sfumato.domain.lattice import KeyAxis, LabelAxis, Lattice
from sfumato.mechanisms.gaussian_keys import ThresholdGaussian
from sfumato.mechanisms.thresholds import KeyRule, ThresholdLaplace, key_law
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Unit

COLUMNS: Columns = {
    **{axis.name: axis for lattice in random_tables.LATTICES for axis in lattice.axes},
    "who": None,
}
PERSONS = Domain(**random_tables.DOMAIN, who=Keys())
BY_PERSON = Lattice((KeyAxis("who"),))
BESIDE = Lattice((random_tables.grid("x", 3), KeyAxis("who"), random_tables.labels("word")))
RULES_OF_KEYS = [
    KeyRule(law, secret)
    for law, secret in (
        (ThresholdLaplace(Fraction(2), 4), bytes(32)),
        (ThresholdLaplace(Fraction(2), 4), bytes(range(32))),
        (ThresholdGaussian(Fraction(9), 3), bytes(32)),
        (key_law(ApproxDP("1", "0.1"), Unit()), bytes(32)),
    )
]
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


# --- Spark, which runs the scan on its executors --------------------------------------------------

LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"person": "who", "rows_per_person": 10**6},
    {"person": "who", "rows_per_person": 2},
    {"person": ["who", "day"], "rows_per_person": 1},
    {"person": "who", "rows_per_person": 5, "rows_per_cell": 1, "cells_per_person": 2},
    {"person": "who", "rows_per_person": 9, "norm_per_person": 2},
)


def counts_as_a_scan(opened: Callable[[], Reader], scanned: RowReader) -> None:
    """Its cubes are those of a scan of the same rows, bit for bit, also where rows are cut."""
    by_key = [Needs(BY_PERSON, 1), Needs(BESIDE, 1)]
    needs = [*(Needs(lattice, 1) for lattice in random_tables.LATTICES), *by_key]
    for limits in LIMITS:
        own, scan = (
            count(source(reader, PERSONS, **limits), needs, key=KEYS[0])
            for reader in (opened(), scanned)
        )
        for one, other in zip(own, scan, strict=True):
            _same(one, other)


def _same(one: Cube, other: Cube) -> None:
    assert one.lattice == other.lattice
    assert one.counts.dtype == np.int64
    _same_arrays(one.counts, other.counts)
    _same_arrays(one.sums, other.sums)
    assert set(one.keys) == set(other.keys)
    if one.keys:
        # A scan also lists the keys of rows that are cut or dropped.
        assert _with_keys(one) == _with_keys(other)
    else:
        _same_arrays(one.coordinates, other.coordinates)


def _same_arrays(one: np.ndarray | None, other: np.ndarray | None) -> None:
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()


def _with_keys(cube: Cube) -> list[tuple[object, ...]]:
    """The cells in their order, with the keys themselves in place of their numbers."""
    assert cube.coordinates is not None
    for keys in cube.keys.values():
        assert keys.to_pylist() == sorted(set(keys.to_pylist()))
    names = [axis.name for axis in cube.lattice.axes]
    return [
        tuple(
            cube.keys[name][cell] if name in cube.keys else cell
            for name, cell in zip(names, cells, strict=True)
        )
        for cells in cube.coordinates.tolist()
    ]


def selects_as_it_counts(opened: Callable[[], Reader], *, limit: int | None = None) -> None:
    """What is shown is what the rule shows of its own counts, under the same choice of rows.

    The same rule shows the same again; another one shows something else.
    """
    person, rows = (None, 1) if limit is None else ("who", limit)
    src = source(opened(), PERSONS, person=person, rows_per_person=rows)
    for lattice in (BY_PERSON, BESIDE):
        needs = Needs(lattice, lattice.public_size)
        assert selects(src, needs)
        cube = count(src, [needs], key=KEYS[0])[0]
        seen = []
        for rule in RULES_OF_KEYS:
            expected = decided(cube, rule)
            for again in range(2):
                shown = select_in_engine(src, needs, rule, key=KEYS[0])
                assert laid(shown, lattice) == expected, (lattice.names, again)
            seen.append(expected)
        assert seen[0] != seen[1], "the rule does not decide"


def decided(cube: Cube, rule: KeyRule) -> list[tuple[object, ...]]:
    """The groups of a cube whose keys a rule shows: key, noisy count, and the cells if any."""
    (at,) = cube.lattice.keyed
    assert cube.coordinates is not None
    keys = cube.keys[cube.lattice.axes[at].name].to_pylist()
    totals = np.zeros(len(keys), np.int64)
    np.add.at(totals, cube.coordinates[:, at], cube.counts)
    batch = pa.record_batch({"key": pa.array(keys), "rows_of_key": totals})
    shown = rule.shown(batch)
    noisy = dict(zip(shown["key"].to_pylist(), shown["noisy_rows"].to_pylist(), strict=True))
    if len(cube.lattice.axes) == 1:
        return sorted((key, rows) for key, rows in noisy.items())
    cells = zip(cube.coordinates.tolist(), cube.counts.tolist(), strict=True)
    groups = [(keys[cell[at]], (*cell[:at], *cell[at + 1 :]), rows) for cell, rows in cells]
    return sorted((key, noisy[key], cell, rows) for key, cell, rows in groups if key in noisy)


def laid(shown: ShownKeys, lattice: Lattice) -> list[tuple[object, ...]]:
    (at,) = lattice.keyed
    axis = shown.lattice.axes[at]
    assert isinstance(axis, LabelAxis)
    keys: list[Any] = list(axis.labels)
    assert keys == sorted(set(keys))
    noisy = dict(zip(keys, shown.values.tolist(), strict=True))
    if shown.cells is None:
        return sorted(noisy.items())
    assert shown.cells.coordinates is not None
    cells = zip(shown.cells.coordinates.tolist(), shown.cells.counts.tolist(), strict=True)
    return sorted(
        (keys[cell[at]], noisy[keys[cell[at]]], (*cell[:at], *cell[at + 1 :]), rows)
        for cell, rows in cells
    )
