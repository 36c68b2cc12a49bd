"""What is kept of a person is what plain Python keeps, and within every limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.bounding import LimitedRows, LimitsByCell
from sfumato.data.priorities import KeyedHash
from sfumato.privacy.unit import Limits

KEY = bytes(range(32))
Rows = list[tuple[int, int]]  # person and cell, in the order of person and priority

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=40).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)
SMALL = st.none() | st.integers(1, 4)
LIMITS = st.tuples(SMALL, SMALL, SMALL).filter(any).map(lambda limits: Limits(*limits))


def hashes(persons: list[int] | np.ndarray, cells: list[int] | np.ndarray) -> np.ndarray:
    """What chooses the cells that a person is counted in."""
    return KeyedHash(KEY, "cells").of([np.array(persons, np.uint64), np.array(cells, np.int64)])


def person_rows(rows: Rows) -> LimitedRows:
    persons = np.array([person for person, _ in rows], np.uint64)
    cells = np.array([cell for _, cell in rows], np.int32)
    return LimitedRows([persons], [cells], hashes(persons, cells))


def cells_counted(own: list[int], person: int, limits: Limits) -> set[int]:
    """The cells of least hash: as many as a person is counted in."""
    cells = sorted(set(own), key=lambda cell: int(hashes([person], [cell])[0]))
    return set(cells[: limits.cells_per_person])


def in_plain_python(rows: Rows, most: int, limits: Limits) -> list[int]:
    """Take the rows of each person one by one, as long as they are within the limits."""
    found = []
    own: dict[int, list[int]] = defaultdict(list)
    for person, cell in rows:
        own[person].append(cell)
    taken: dict[int, Counter[int]] = defaultdict(Counter)
    stopped: set[int] = set()
    for index, (person, cell) in enumerate(rows):
        counts = taken[person]
        if person in stopped or cell not in cells_counted(own[person], person, limits):
            continue
        if limits.rows_per_cell is not None and counts[cell] >= limits.rows_per_cell:
            continue
        squares = sum(n**2 for n in counts.values()) + 2 * counts[cell] + 1
        norm = limits.norm_per_person
        if counts.total() >= most or (norm is not None and squares > norm**2):
            stopped.add(person)
            continue
        counts[cell] += 1
        found.append(index)
    return found


@given(ROWS, st.integers(1, 6), LIMITS)
def test_rows_are_taken_one_by_one_as_long_as_they_fit(
    rows: Rows, most: int, limits: Limits
) -> None:
    kept = LimitsByCell(most, limits).kept(person_rows(rows))
    assert kept.tolist() == in_plain_python(rows, most, limits)


@given(ROWS, st.integers(1, 6), LIMITS, st.lists(st.booleans(), min_size=40, max_size=40))
def test_pieces_may_be_reduced_first(
    rows: Rows, most: int, limits: Limits, piece: list[bool]
) -> None:
    within = LimitsByCell(most, limits)
    survivors = []
    for side in (True, False):
        indices = np.array([i for i in range(len(rows)) if piece[i] is side], np.int64)
        survivors += indices[within.reduced(person_rows(rows).take(indices))].tolist()
    survivors.sort()
    kept = within.kept(person_rows(rows).take(np.array(survivors, np.int64)))
    assert [survivors[i] for i in kept] == in_plain_python(rows, most, limits)


@pytest.mark.parametrize(
    ("most", "limits"),
    [
        (2, Limits(cells_per_person=2)),
        (9, Limits(cells_per_person=2, norm_per_person=2)),
        (2, Limits(cells_per_person=2, rows_per_cell=2)),
    ],
)
def test_a_row_that_other_rows_crowd_out_of_a_piece_may_be_kept_of_all(
    most: int, limits: Limits
) -> None:
    """The last row's cell comes before the first rows' cell, in which nobody is counted then."""
    first, second, third = sorted(range(3), key=lambda cell: int(hashes([0], [cell])[0]))
    rows = [(0, third), (0, third), (0, second), (0, first)]
    within = LimitsByCell(most, limits)
    assert in_plain_python(rows, most, limits) == [2, 3]
    survivors = [*within.reduced(person_rows(rows[:3])).tolist(), 3]
    kept = within.kept(person_rows([rows[i] for i in survivors]))
    assert [survivors[i] for i in kept] == [2, 3]


def vectors(n_cells: int, most: int) -> list[tuple[int, ...]]:
    return list(product(range(most + 1), repeat=n_cells))


@pytest.mark.parametrize(
    "limits",
    [
        Limits(rows_per_cell=2),
        Limits(cells_per_person=2),
        Limits(norm_per_person=2),
        Limits(rows_per_cell=1, cells_per_person=2),
        Limits(rows_per_cell=2, cells_per_person=2, norm_per_person=2),
        Limits(rows_per_cell=2, norm_per_person=2),
    ],
)
@pytest.mark.parametrize("most", [3, 5])
def test_no_person_has_more_than_the_norms_say(limits: Limits, most: int) -> None:
    """Every person with up to 3 rows in each of 3 cells; and some reach each norm."""
    largest = [0, 0, 0]
    order = np.random.default_rng(0)
    for vector in vectors(3, 3):
        cells = order.permutation(np.repeat(np.arange(3), vector))
        rows = person_rows([(0, int(cell)) for cell in cells])
        kept = cells[LimitsByCell(most, limits).kept(rows)]
        counts = np.bincount(kept, minlength=3)
        norms = (counts.sum(), (counts**2).sum(), counts.max())
        largest = [max(pair) for pair in zip(largest, norms, strict=True)]
    claimed = [
        limits.rows_counted(most),
        limits.squared_norm(most),
        limits.largest_cell(most),
    ]
    assert all(found <= bound for found, bound in zip(largest, claimed, strict=True))
    # No cell has more than 3 rows to keep.
    assert largest[2] == min(3, claimed[2])


def test_every_cell_of_a_person_is_as_likely_however_many_rows_it_has() -> None:
    """Ten rows in one cell and one in each of two others; one cell is counted in."""
    n_persons = 6000
    cells = np.tile(np.repeat(np.arange(3), (10, 1, 1)), n_persons)
    persons = np.repeat(np.arange(n_persons, dtype=np.uint64), 12)
    limits = Limits(rows_per_cell=1, cells_per_person=1)
    kept = LimitsByCell(1, limits).kept(LimitedRows([persons], [cells], hashes(persons, cells)))
    found = np.bincount(cells[kept], minlength=3)
    assert found.sum() == n_persons
    # Under a fixed key: six standard deviations.
    assert np.abs(found - n_persons / 3).max() < 6 * np.sqrt(n_persons * 2 / 9)


def test_the_choice_of_cells_does_not_depend_on_other_persons() -> None:
    rows = [(person, cell) for person in range(4) for cell in range(5)]
    within = LimitsByCell(2, Limits(rows_per_cell=1, cells_per_person=2))
    together = [rows[i] for i in within.kept(person_rows(rows))]
    for person in range(4):
        own = [row for row in rows if row[0] == person]
        assert [own[i] for i in within.kept(person_rows(own))] == [
            row for row in together if row[0] == person
        ]


@pytest.mark.parametrize("limits", [Limits(norm_per_person=2**40), Limits(rows_per_cell=10**15)])
def test_wide_limits_keep_all(limits: Limits) -> None:
    rows = person_rows([(0, 1)] * 50)
    assert len(LimitsByCell(10**15, limits).kept(rows)) == 50


def test_nobody_keeps_nothing() -> None:
    none = LimitedRows([np.zeros(0, np.uint64)], [np.zeros(0, np.int32)])
    limits = Limits(rows_per_cell=1, cells_per_person=1, norm_per_person=1)
    assert LimitsByCell(1, limits).kept(none).tolist() == []
