"""What a question may need counted."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.answers.counts import Needs, PersonLattice, Summed
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import EdgesAxis, GridAxis, LabelAxis, Lattice
from sfumato.errors import InternalError, UsageError
from sfumato.privacy.unit import Limits, Unit

X = GridAxis("x", 0.0, 4.0, 4)
VALUE = GridAxis("wage", 0.0, 100.0, 100)
KIND = LabelAxis("kind", ("a", "b"))


def test_columns_are_those_of_cells_sums_and_limits_each_once() -> None:
    needs = Needs(Lattice((X,)), 4, (Summed(VALUE),), cells=Lattice((X, KIND)))
    assert needs.columns == (X, VALUE, KIND)


def test_axes_of_one_name_are_of_one_column() -> None:
    """Otherwise a row would lie in the segment of one value, and add another."""
    segments = EdgesAxis("wage", (0.0, 50.0, 100.0), column="wage_net")
    with pytest.raises(InternalError, match="different columns"):
        Needs(Lattice((segments,)), 2, (Summed(VALUE),))


def test_rows_of_each_person_look_at_no_column() -> None:
    rows = Lattice((EdgesAxis("rows", (1.0, 2.0, 9.0)),))
    assert Needs(rows, 2, counted="rows of each person").columns == ()


@pytest.mark.parametrize(
    ("lattice", "sums"),
    [(Lattice((X, KIND)), ()), (Lattice((KIND,)), ()), (Lattice((X,)), (Summed(VALUE),))],
)
def test_rows_of_each_person_lie_on_one_axis_of_numbers(lattice: Lattice, sums: Any) -> None:
    with pytest.raises(UsageError, match="one axis of such numbers"):
        Needs(lattice, 4, sums, counted="rows of each person")


def test_a_square_is_a_column_of_its_own() -> None:
    needs = Needs(Lattice((X,)), 4, (Summed(VALUE), Summed(VALUE, squares=True)))
    assert needs.n_sums == 3


LIMITED = Unit(4, person="rider", limits=Limits(rows_per_cell=1))


@pytest.mark.parametrize(
    ("needs", "unit", "holds"),
    [
        (Needs(Lattice((X,)), 4), Unit(), True),
        (Needs(Lattice((X,)), 4), Unit(4, person="rider"), True),
        (Needs(Lattice((X,)), 4), LIMITED, False),
        (Needs(Lattice((X,)), 4, (Summed(VALUE),)), Unit(), False),
        (Needs(Lattice((X,)), 4, counted="persons"), Unit(4, person="rider"), False),
        (Needs(Lattice((X,)), 4, counted="rows of each person"), Unit(4, person="p"), False),
    ],
)
def test_only_rows_under_a_limit_on_rows_are_counted_on_other_lattices(
    needs: Needs, unit: Unit, holds: bool
) -> None:
    assert needs.holds_on_other_lattices(unit) is holds


def test_a_bare_cube_knows_no_domain() -> None:
    assert Cube(Lattice((X,)), X.edges()[:-1].astype("int64")).domain is None


ONTO = PersonLattice(0, 1, 0, 1, 2**16)


@pytest.mark.parametrize(
    "asked",
    [
        {"onto": ONTO},
        {"of_person": "sum"},
        {"of_person": "mean", "squares": True, "onto": PersonLattice(0, 1, 0, 1, 2**16 + 1)},
        {"of_person": "mean", "onto": PersonLattice(0, 1, 0, 1, 2**31 + 1)},
    ],
    ids=str,
)
def test_persons_values_lie_on_a_lattice_of_their_own(asked: Any) -> None:
    with pytest.raises(UsageError, match="sums of 'wage'"):
        Summed(VALUE, **asked)


def test_rows_of_persons_may_be_finer_than_what_is_squared() -> None:
    fine = GridAxis("wage", 0.0, 100.0, 2**31)
    assert Summed(fine, squares=True, of_person="mean", onto=ONTO).most == 2**16
    with pytest.raises(UsageError, match="at most 65,536 steps"):
        Summed(fine, squares=True)


@pytest.mark.parametrize(
    ("counted", "summed"),
    [("persons", Summed(VALUE)), ("rows", Summed(VALUE, of_person="mean"))],
)
def test_persons_add_one_value_of_their_rows_and_rows_their_own(counted: Any, summed: Any) -> None:
    with pytest.raises(UsageError, match="adding values up"):
        Needs(Lattice((X,)), 4, (summed,), counted=counted)
