"""What a stacked norm keeps of a person is what plain Python keeps, in pieces or at once."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.bounding import LimitedRows, StackedLimits
from sfumato.data.packed_counts import Packing
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.privacy.unit import StackedNorm, Weighed

LEVELS = (((2,), (3, 1)), ((3,),))
"""Four towns in two regions, by three ages."""
PACKING = Packing(Lattice((GridAxis("town", 0, 4, cells=4), GridAxis("age", 0, 3, cells=3))))
REGION = (0, 0, 0, 1)
# By regions and ages; by towns; less all: a norm, because the towns' squares outweigh these.
WEIGHED = (Weighed((0, 0), -1), Weighed((1, 1), 3), Weighed((2, 0), 4))

Rows = list[tuple[int, int, int]]  # person, town and age, in the order of person and priority
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=40
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


def person_rows(rows: Rows) -> LimitedRows:
    persons, towns, ages = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    packed = [cells.astype(np.int32) for cells in PACKING.pack([towns, ages])]
    return LimitedRows([persons.astype(np.uint64)], packed)


def squared(rows: list[tuple[int, int]]) -> int:
    towns = Counter(town for town, _ in rows)
    ages = Counter((REGION[town], age) for town, age in rows)
    of_towns = sum(n**2 for n in towns.values())
    return 4 * of_towns + 3 * sum(n**2 for n in ages.values()) - len(rows) ** 2


def in_plain_python(rows: Rows, norm: StackedNorm) -> list[int]:
    kept = []
    taken: dict[int, list[tuple[int, int]]] = defaultdict(list)
    stopped = set()
    for index, (person, town, age) in enumerate(rows):
        own = [*taken[person], (town, age)]
        if len(own) > norm.rows or squared(own) > norm.most:
            stopped.add(person)
        if person not in stopped:
            taken[person] = own
            kept.append(index)
    return kept


@given(ROWS.filter(bool), st.integers(6, 120), st.integers(1, 9))
def test_rows_are_taken_up_to_the_first_that_does_not_fit(
    rows: Rows, most: int, limit: int
) -> None:
    norm = StackedNorm(LEVELS, WEIGHED, most, limit)
    kept = StackedLimits(norm, PACKING).kept(person_rows(rows))
    assert kept.tolist() == in_plain_python(rows, norm)


@given(
    ROWS.filter(bool), st.integers(6, 120), st.integers(1, 9), st.lists(st.booleans(), min_size=40)
)
def test_pieces_may_be_reduced_first(rows: Rows, most: int, limit: int, piece: list[bool]) -> None:
    norm = StackedNorm(LEVELS, WEIGHED, most, limit)
    limits = StackedLimits(norm, PACKING)
    survivors = []
    for side in (True, False):
        indices = np.array([i for i in range(len(rows)) if piece[i] is side], np.int64)
        if len(indices):
            survivors += indices[limits.reduced(person_rows(rows).take(indices))].tolist()
    survivors.sort()
    kept = limits.kept(person_rows(rows).take(np.array(survivors, np.int64)))
    assert [survivors[i] for i in kept] == in_plain_python(rows, norm)


def test_what_comes_after_the_last_row_may_overflow() -> None:
    """A person with 2^14 rows in one cell, whose squares would pass 2^64 some hundred times."""
    weight = 2**44
    norm = StackedNorm(LEVELS, (Weighed((2, 1), weight),), 25 * weight, 25)
    rows = person_rows([(person, 0, 0) for person in (1, 2) for _ in range(2**14)])
    kept = StackedLimits(norm, PACKING).kept(rows)
    assert kept.tolist() == [*range(5), *range(2**14, 2**14 + 5)]
    heavy = StackedNorm(LEVELS, (Weighed((2, 1), 2**56),), 4 * 2**56, 25)
    assert StackedLimits(heavy, PACKING).kept(rows).tolist() == [0, 1, 2**14, 2**14 + 1]


@pytest.mark.parametrize("rows", [1, 2])
def test_persons_of_few_rows_keep_all(rows: int) -> None:
    norm = StackedNorm(LEVELS, (Weighed((0, 0), 5),), 4 * 5, 100)
    some = person_rows([(person, town, 0) for person in range(3) for town in range(rows)])
    assert StackedLimits(norm, PACKING).kept(some).tolist() == list(range(3 * rows))
    none = LimitedRows([np.zeros(0, np.uint64)], [np.zeros(0, np.int32)])
    assert StackedLimits(norm, PACKING).kept(none).tolist() == []


def test_of_no_axis_the_number_of_rows_is_limited() -> None:
    packing = Packing(Lattice(()))
    norm = StackedNorm((), (Weighed((), 2),), 18, 50)
    persons = np.repeat(np.array([3, 8], np.uint64), [2, 7])
    limits = StackedLimits(norm, packing)
    rows = LimitedRows([persons], packing.pack([], len(persons)))
    assert limits.kept(rows).tolist() == [0, 1, 2, 3, 4]
    assert limits.candidates([persons]).tolist() == list(range(9))
