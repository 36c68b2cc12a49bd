"""Sensitivities, by enumeration of all neighbours."""

import itertools

import msgspec
import pytest

from sfumato.errors import UsageError
from sfumato.privacy.unit import Limits, Unit, unit_within

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
    assert str(unit) == ("any one person in one day with any number of rows, replaced by another")
    assert unit.counted == "all rows that name a person in one day"
    assert unit.of_all_rows == unit
    assert unit.protects == Unit(4, "replace", "rider", period="day").protects


def test_units_whose_charges_do_not_add_up_never_read_the_same():
    """Whom an account protects is compared as text, so no name of a column may stand for another
    unit.
    """
    columns = ["rider", "row", "one row", "rider in one day", "person of at most 3 rows", "r', 'd"]
    units = [
        Unit(rows, neighbours, person, period=period)
        for neighbours in ("add-remove", "replace")
        for rows, person in ((1, None), (3, None), (4, None), *((1, name) for name in columns))
        for period in (msgspec.UNSET, "day", "row")
        if person is not None or period is msgspec.UNSET
    ]
    assert len({unit.protects for unit in units}) == len(units)
    # Limits are enforced where a column names the person, so they may differ.
    assert Unit(1, person="rider").protects == Unit(9, person="rider").protects


def test_the_columns_of_a_person():
    assert Unit().person_columns == ()
    assert Unit(person="rider").person_columns == ("rider",)
    assert Unit(person="rider", period="day").person_columns == ("rider", "day")
    for wrong in ([], ["a", "b", "c"], ["a", "a"]):
        with pytest.raises(UsageError, match="the column of the person"):
            unit_within(None, "add-remove", wrong)


def test_cells_and_rows_of_a_person_under_limits():
    """Unless the number of cells is limited, each row may lie in a cell of its own."""
    assert Unit(7).cells_of_person == Unit(7).rows_counted == 7
    by_row = Unit(7, person="p", limits=Limits(rows_per_cell=2))
    assert (by_row.cells_of_person, by_row.rows_counted) == (7, 7)
    by_cell = Unit(7, person="p", limits=Limits(cells_per_person=3, rows_per_cell=2))
    assert (by_cell.cells_of_person, by_cell.rows_counted) == (3, 6)
