"""Limits on one person's rows imply norms of their counts: enumerated over all count vectors."""

from __future__ import annotations

from itertools import product

import msgspec
import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.privacy.unit import Limits, Unit, limits_of, merged

CELLS = 4  # as many as rows, so that each row may have its own
MOST = 4
CHOICES = (None, 1, 2, 3)
ALL_LIMITS = [
    Limits(*given) for given in product(CHOICES, repeat=3) if any(one is not None for one in given)
]


def allowed_vectors(limits: Limits, rows: int) -> list[tuple[int, ...]]:
    """Every vector of a person's counts over a few cells, descending, within the limits."""
    vectors = (v for v in product(range(rows + 1), repeat=CELLS) if list(v) == sorted(v)[::-1])
    within = [v for v in vectors if sum(v) <= rows]
    if limits.rows_per_cell is not None:
        within = [v for v in within if max(v) <= limits.rows_per_cell]
    if limits.cells_per_person is not None:
        within = [v for v in within if sum(map(bool, v)) <= limits.cells_per_person]
    if limits.norm_per_person is not None:
        within = [v for v in within if sum(n * n for n in v) <= limits.norm_per_person**2]
    return within


@pytest.mark.parametrize("limits", ALL_LIMITS, ids=lambda limits: ", ".join(limits.in_words()))
def test_no_person_within_the_limits_exceeds_the_norms(limits: Limits) -> None:
    for rows in range(1, MOST + 1):
        vectors = allowed_vectors(limits, rows)
        assert max(map(sum, vectors)) <= limits.rows_counted(rows)
        squares = max(sum(n * n for n in v) for v in vectors)
        assert squares <= limits.squared_norm(rows)
        assert max(map(max, vectors)) == limits.largest_cell(rows)
        if limits.norm_per_person is None:
            # Without a limit on the norm itself the bounds are attained.
            assert squares == limits.squared_norm(rows)


def test_replacing_a_person_doubles_l1_and_the_squared_l2() -> None:
    limits = Limits(rows_per_cell=1, cells_per_person=4)
    added = Unit(4, person="rider", limits=limits)
    replaced = msgspec.structs.replace(added, neighbours="replace")
    assert (added.counts_l1, added.counts_l2_squared, added.largest_cell) == (4, 4, 1)
    assert (replaced.counts_l1, replaced.counts_l2_squared, replaced.largest_cell) == (8, 8, 1)


def test_counting_persons_moves_a_cell_by_one() -> None:
    unit = Unit(100, person="rider").counting_persons(9)
    assert (unit.counts_l1, unit.counts_l2_squared, unit.largest_cell) == (9, 9, 1)


def test_a_unit_without_further_limits_is_stored_as_before() -> None:
    plain = Unit(12, person="rider")
    stored = msgspec.json.encode(plain)
    assert stored == b'{"rows_per_person":12,"neighbours":"add-remove","person":"rider"}'
    limited = Unit(12, person="rider", limits=Limits(norm_per_person=3), period="day")
    assert msgspec.json.decode(msgspec.json.encode(limited), type=Unit) == limited


def test_a_period_is_part_of_what_is_protected() -> None:
    unit = Unit(2, person="rider", period="day")
    assert unit.person_columns == ("rider", "day")
    assert unit.protects == "one rider in one day, added or removed"
    assert str(unit) == ("any one person in one day contributing at most 2 rows, added or removed")


def test_limits_are_said_in_words() -> None:
    limits = Limits(rows_per_cell=2, cells_per_person=1, norm_per_person=7)
    assert str(Unit(12, person="rider", limits=limits)) == (
        "any one person contributing at most 12 rows, at most 2 rows in a cell, at most 1 cell, "
        "counts cut to a norm of 7, added or removed"
    )


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, 10**16])
def test_a_limit_that_is_no_whole_number_is_refused(wrong: int) -> None:
    with pytest.raises(UsageError):
        Limits(rows_per_cell=wrong)


def test_limits_are_those_that_are_given() -> None:
    assert limits_of(None, None, None) is None
    assert limits_of(1, None, None) == Limits(rows_per_cell=1)
    assert limits_of(None, 2, None) == Limits(cells_per_person=2)
    assert limits_of(None, None, 3) == Limits(norm_per_person=3)
    with pytest.raises(UsageError, match="none of them is given"):
        Limits()
    assert Limits(rows_per_cell=10**15).rows_per_cell == 10**15
    with pytest.raises(UsageError, match="10\\^15"):
        Limits(rows_per_cell=10**15 + 1)


def test_limits_need_a_person_and_a_bound_on_rows() -> None:
    with pytest.raises(UsageError):
        Unit(limits=Limits(rows_per_cell=1))
    with pytest.raises(UsageError):
        Unit(period="day")
    with pytest.raises(UsageError):
        merged(None, Limits(rows_per_cell=2))
    assert merged(None, Limits(norm_per_person=3)) == 9
    assert merged(5, Limits(rows_per_cell=2, cells_per_person=2)) == 4
    assert merged(None, None) == 1


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize(
    "limits",
    [
        Limits(rows_per_cell=2),
        Limits(norm_per_person=3),
        Limits(cells_per_person=2),
        Limits(rows_per_cell=1, cells_per_person=5),
        Limits(rows_per_cell=3, norm_per_person=4),
    ],
)
def test_no_person_exceeds_the_norms_in_few_cells(limits: Limits, cells: int) -> None:
    rows = 7
    within = Unit(rows, person="p", limits=limits).on_cells(cells)
    reached_l1 = reached_l2 = 0
    for person in product(range(rows + 1), repeat=cells):
        counts = np.array(person)
        allowed = (
            counts.sum() <= rows
            and counts.max() <= (limits.rows_per_cell or rows)
            and (counts > 0).sum() <= (limits.cells_per_person or cells)
            and (counts**2).sum() <= (limits.norm_per_person or 10**6) ** 2
        )
        if allowed:
            reached_l1 = max(reached_l1, int(counts.sum()))
            reached_l2 = max(reached_l2, int((counts**2).sum()))
    assert reached_l1 <= within.counts_l1 <= reached_l1 + 1
    assert reached_l2 <= within.counts_l2_squared
    assert within.counts_l1 <= Unit(rows, person="p", limits=limits).counts_l1
