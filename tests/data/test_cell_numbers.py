"""Persons are counted by how their rows spread over cells, before any limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import isqrt

import numpy as np
import pyarrow as pa
import pytest

from sfumato.answers.counts import Counted, Needs
from sfumato.data import count, source
from sfumato.data.person_records import NUMBERS
from sfumato.domain.domain import Categories, Domain, Interval, Keys, grid_axis
from sfumato.domain.lattice import EdgesAxis, KeyAxis, LabelAxis, Lattice
from sfumato.errors import UsageError

DOMAIN = Domain(x=Interval(0, 40, step=1), kind=Categories(["a", "b", "c"]), shop=Keys())
ENDS = (1, 2, 3, 4, 6, 9, 16, 40)
AXIS = EdgesAxis("number", ENDS, step=1.0, origin=1.0)
X = grid_axis("x", DOMAIN["x"], 40)
KIND = LabelAxis("kind", ("a", "b", "c"))
LATTICES = {
    "x": Lattice((X,)),
    "x and kind": Lattice((X, KIND)),
    "shop": Lattice((KeyAxis("shop"),)),
}
KINDS: tuple[Counted, ...] = tuple(NUMBERS)


def needs(counted: Counted, cells: Lattice = LATTICES["x"]) -> Needs:
    return Needs(Lattice((AXIS,)), AXIS.size, counted=counted, cells=cells)


def people(n_rows: int, seed: int = 0) -> pa.Table:
    """Rows of persons of very different numbers of rows; some lack a person, some a value."""
    draw = np.random.default_rng(seed)
    person = draw.zipf(1.4, n_rows).clip(max=5000).astype(object)
    # Some persons spread over all cells, others keep to a few.
    x = (draw.integers(0, 40, n_rows) // (1 + person.astype(int) % 20)).astype(object)
    person[draw.random(n_rows) < 0.1] = None
    x[draw.random(n_rows) < 0.1] = None
    kind = draw.choice(np.array(["a", "b", "c", "z"]), n_rows)
    return pa.table(
        {
            "x": pa.array(x, pa.int64()),
            "kind": kind,
            "shop": [f"s{i % 7}" for i in range(n_rows)],
            "p": pa.array(person, pa.int64()),
        }
    )


def number(counted: Counted, counts: Counter[object]) -> int:
    """The number of one person, in plain Python."""
    if counted == "cells of each person":
        return len(counts)
    if counted == "largest cell of each person":
        return max(counts.values())
    squares = sum(n * n for n in counts.values())
    return isqrt(squares - 1) + 1  # rounded up


def directly(table: pa.Table, counted: Counted, columns: tuple[str, ...]) -> list[int]:
    """Persons by their numbers, counted in plain Python."""
    by_person: dict[object, Counter[object]] = defaultdict(Counter)
    for row in table.to_pylist():
        cell = tuple(row[column] for column in columns)
        if row["p"] is not None and None not in cell and "z" not in cell:
            by_person[row["p"]][cell] += 1
    found = [0] * (len(ENDS) - 1)
    for counts in by_person.values():
        found[sum(number(counted, counts) >= end for end in ENDS[1:-1])] += 1
    return found


PEOPLE = people(8000)


@pytest.mark.parametrize("counted", KINDS)
@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("memory", ["1", "20K", "1G"])
def test_persons_are_counted_by_their_number(
    memory: str, lattice: str, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    src = source(PEOPLE, DOMAIN, person="p", rows_per_person=2)
    cube = count(src, [needs(counted, LATTICES[lattice])])[0]
    assert cube.counts.tolist() == directly(PEOPLE, counted, LATTICES[lattice].names)


@pytest.mark.parametrize("counted", KINDS)
@pytest.mark.parametrize("cut", [1, 7, 999])
def test_batches_change_nothing(
    cut: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", "1")
    table = PEOPLE.slice(0, 1500)
    parts = [table.slice(start, cut) for start in range(0, len(table), cut)]
    shuffled = np.random.default_rng(1).permutation(len(parts))
    src = source(pa.concat_tables([parts[i] for i in shuffled]), DOMAIN, person="p")
    assert count(src, [needs(counted)])[0].counts.tolist() == directly(table, counted, ("x",))


@pytest.mark.parametrize("counted", KINDS)
def test_one_person_moves_one_count_by_one(counted: Counted) -> None:
    table = people(200, seed=3)
    columns = ("x",)
    whole = np.array(directly(table, counted, columns))
    persons = table["p"].to_pylist()
    for leaver in {person for person in persons if person is not None}:
        staying = table.filter(pa.array([person != leaver for person in persons]))
        found = count(source(staying, DOMAIN, person="p"), [needs(counted)])[0].counts
        moved = np.abs(whole - found)
        # A person without a row in a cell is counted nowhere.
        assert moved.sum() <= 1
    assert whole.sum() > 20


def test_norms_are_rounded_up_exactly() -> None:
    rows = [1, 2, 3, 4, 10**6, 10**6, 1]
    starts = np.array([0, 1, 4, 5])
    # 1; 2, 3, 4 with 29 = 5.4^2; 10^6; and 10^6 beside 1, which is a little more.
    found = NUMBERS["norm of each person"](np.array(rows), starts)
    assert found.tolist() == [1, 6, 10**6, 10**6 + 1]


def test_one_scan_counts_several_kinds() -> None:
    src = source(PEOPLE, DOMAIN, person="p", rows_per_person=3)
    every = [needs(counted) for counted in KINDS]
    together = count(src, [*every, Needs(LATTICES["x"], 40)])
    for counted, cube in zip(KINDS, together, strict=False):
        assert cube.counts.tolist() == directly(PEOPLE, counted, ("x",))


def test_without_persons_nobody_is_counted() -> None:
    nobody = pa.table({"x": [1, 2], "p": pa.array([None, None], pa.int64())})
    cube = count(source(nobody, Domain(x=DOMAIN["x"]), person="p"), [needs(KINDS[0])])[0]
    assert cube.total == 0


@pytest.mark.parametrize("counted", KINDS)
def test_it_says_which_cells_and_takes_a_column_of_persons(counted: Counted) -> None:
    with pytest.raises(UsageError, match="which cells"):
        Needs(Lattice((AXIS,)), AXIS.size, counted=counted)
    with pytest.raises(UsageError, match="no column names them"):
        source(PEOPLE, DOMAIN).require([needs(counted)])
