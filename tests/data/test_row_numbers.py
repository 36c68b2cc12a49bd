"""Persons are counted by their number of rows, whatever the limits, the batches and the memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import count, source
from sfumato.data.person_records import PersonNumbers
from sfumato.data.priorities import KeyedHash, PersonRows
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import EdgesAxis, GridAxis, Lattice
from sfumato.errors import UsageError

KEY = bytes(range(32))
DOMAIN = Domain(x=Interval(0, 1000, step=1))
ENDS = (1, 2, 3, 4, 6, 9, 16)
BY_ROWS = Needs(
    Lattice((EdgesAxis("rows", ENDS),)), numbers=len(ENDS), counted="rows of each person"
)
COLUMN = Needs(Lattice((grid_axis("x", DOMAIN["x"], 1000),)), 1000)
MEMORY = ("1", "20K", "300K", "1G")


def people(n_rows: int, seed: int = 0) -> pa.Table:
    """Rows of persons of very different numbers of rows; some lack a person, some a value."""
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 1000, n_rows).astype(object)
    person = draw.zipf(1.4, n_rows).clip(max=5000).astype(object)
    x[draw.random(n_rows) < 0.1] = None
    person[draw.random(n_rows) < 0.1] = None
    return pa.table({"x": pa.array(x, pa.int64()), "p": pa.array(person, pa.int64())})


def directly(table: pa.Table, ends: tuple[int, ...] = ENDS) -> list[int]:
    """Persons by their number of rows, counted in plain Python."""
    rows = Counter(person for person in table["p"].to_pylist() if person is not None)
    found = [0] * (len(ends) - 1)
    for number in rows.values():
        found[sum(number >= end for end in ends[1:-1])] += 1
    return found


PEOPLE = people(30_000)


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("kind", ["integers", "text"])
def test_persons_are_counted_by_their_number_of_rows(
    memory: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    table = PEOPLE
    if kind == "text":
        table = PEOPLE.set_column(1, "p", PEOPLE["p"].cast(pa.string()))
    src = source(table, DOMAIN, person="p", rows_per_person=2)
    assert count(src, [BY_ROWS])[0].counts.tolist() == directly(PEOPLE)


@pytest.mark.parametrize("cut", [1, 7, 999, 2**16])
@pytest.mark.parametrize("memory", ["1", "1G"])
def test_batches_change_nothing(cut: int, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    table = PEOPLE.slice(0, 2000)
    parts = [table.slice(start, cut) for start in range(0, len(table), cut)]
    shuffled = np.random.default_rng(1).permutation(len(parts))
    reordered = pa.concat_tables([parts[i] for i in shuffled])
    src = source(reordered, DOMAIN, person="p")
    assert count(src, [BY_ROWS])[0].counts.tolist() == directly(table)


def test_a_missing_value_elsewhere_does_not_matter() -> None:
    nothing_known = pa.table({"x": pa.array([None] * 5, pa.int64()), "p": [1, 1, 1, 2, None]})
    src = source(nothing_known, DOMAIN, person="p")
    assert count(src, [BY_ROWS])[0].counts.tolist() == [1, 0, 1, 0, 0, 0]


def test_more_rows_than_the_axis_has_lie_in_its_last_cell() -> None:
    src = source(pa.table({"x": [1] * 40, "p": [1] * 40}), DOMAIN, person="p")
    assert count(src, [BY_ROWS])[0].counts.tolist() == [0, 0, 0, 0, 0, 1]


def test_one_scan_counts_rows_and_rows_of_each_person() -> None:
    src = source(PEOPLE, DOMAIN, person="p", rows_per_person=3)
    rows, numbers = count(src, [COLUMN, BY_ROWS], key=KEY)
    assert numbers.counts.tolist() == directly(PEOPLE)
    alone = count(src, [COLUMN], key=KEY)[0]
    assert random_tables.found(rows) == random_tables.found(alone)
    assert random_tables.found(rows) == random_tables.found(
        count(src, [BY_ROWS, COLUMN], key=KEY)[1]
    )


def test_one_person_moves_one_count_by_one() -> None:
    """Of every person of a table that is removed; under no limit would more than that be true."""
    table = people(300, seed=3)
    whole = np.array(directly(table))
    for leaver in {person for person in table["p"].to_pylist() if person is not None}:
        staying = table.filter(pa.array([person != leaver for person in table["p"].to_pylist()]))
        found = count(source(staying, DOMAIN, person="p"), [BY_ROWS])[0].counts
        moved = np.abs(whole - found)
        assert (moved.sum(), moved.max()) == (1, 1)


def numbers_of(batches: list[list[int]]) -> list[int]:
    """The numbers of rows of persons, whose tokens come in batches."""
    each = Lattice((GridAxis("rows", 0.0, 10.0, 10),))
    numbers = PersonNumbers([Needs(each, 10, counted="rows of each person")])
    for ids in batches:
        tokens = [np.array(ids, np.uint64)]
        numbers.add(PersonRows(tokens, tokens, tokens, {}, KeyedHash(KEY, "rows")), {})
    found = [cell for ((cells,),) in numbers.of_persons() for cell in cells.tolist()]
    numbers.close()
    return sorted(found)


def test_joining_parts_of_parts_adds_up() -> None:
    assert numbers_of([[3, 1, 3, 3], [1, 3]]) == [2, 4]


def test_without_persons_nothing_comes() -> None:
    assert numbers_of([[]]) == []


def test_it_takes_a_column_of_persons() -> None:
    src = source(pa.table({"x": [1.0]}), DOMAIN)
    for action in (src.require, lambda needs: count(src, needs)):
        refusing: Any = action
        with pytest.raises(UsageError, match="no column names them"):
            refusing([BY_ROWS])
