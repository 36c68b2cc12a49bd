"""Sensitivities, by enumeration of all neighbours."""

import itertools
from fractions import Fraction

import pytest

from sfumato.errors import UsageError
from sfumato.privacy.unit import Unit

CELLS = 3


def moves(unit, universe):
    """All pairs of what one person may have brought: at most r rows each, none under add-remove on
    one side.
    """
    own = [
        rows
        for size in range(unit.rows_per_person + 1)
        for rows in itertools.combinations_with_replacement(universe, size)
    ]
    return (
        itertools.product(own, own)
        if unit.neighbours == "replace"
        else ((rows, ()) for rows in own)
    )


UNITS = [
    Unit(rows_per_person=r, neighbours=neighbours)
    for r in (1, 2, 3)
    for neighbours in ("add-remove", "replace")
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_counts(unit):
    shifts = [
        [one.count(cell) - other.count(cell) for cell in range(CELLS)]
        for one, other in moves(unit, range(CELLS))
    ]
    assert unit.counts_l1 == max(sum(map(abs, shift)) for shift in shifts)
    assert unit.counts_l2_squared == max(sum(x * x for x in shift) for shift in shifts)
    assert unit.largest_cell == max(max(map(abs, shift)) for shift in shifts)
    assert unit.largest_cell == max(
        abs(sum(shift)) for shift in shifts
    )  # the number of rows moves by no more


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("lower", "upper"), [(-2, 5), (1, 4), (-5, -1), (0, 3)])
def test_sums(unit, lower, upper):
    found = max(abs(sum(one) - sum(other)) for one, other in moves(unit, (lower, upper)))
    assert unit.sum_sensitivity(Fraction(lower), Fraction(upper)) == found


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("lower", "upper"), [(-2, 2), (0, 3)])
def test_sums_over_cells(unit, lower, upper):
    rows = list(itertools.product(range(2), (lower, upper)))
    sums = [
        [
            sum(value for at, value in one if at == cell)
            - sum(value for at, value in other if at == cell)
            for cell in range(2)
        ]
        for one, other in moves(unit, rows)
    ]
    assert unit.sums_l1(upper) == max(sum(map(abs, shift)) for shift in sums)
    assert unit.sums_l2_squared(upper, signed=lower < 0) == max(
        sum(x * x for x in shift) for shift in sums
    )


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "1", None])
def test_rows_that_make_no_sense(wrong):
    with pytest.raises(UsageError):
        Unit(rows_per_person=wrong)


def test_an_unknown_relation():
    with pytest.raises(UsageError, match="unknown"):
        Unit(neighbours="swap")


def test_a_unit_of_all_rows_names_no_limit():
    unit = Unit(4, "replace", "rider", period="day").of_all_rows
    assert str(unit) == ("any one rider in one day with any number of rows, replaced by another")
    assert unit.counted == "all rows that name a rider in one day"
    assert unit.of_all_rows == unit
    assert unit.protects == Unit(4, "replace", "rider", period="day").protects
