"""A person's number beside fractions of Python, up to the edge of 64 bits and beyond."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.answers.counts import PersonLattice, PersonStatistic
from sfumato.errors import UsageError

WHOLE = st.integers(-(2**40), 2**40)
STEP = st.one_of(st.integers(1, 12), st.integers(1, 2**40))
LATTICES = st.builds(PersonLattice, WHOLE, STEP, WHOLE, STEP, st.integers(1, 2**31))
ROWS = st.lists(
    st.tuples(st.integers(1, 10**9), st.integers(0, 2**31)).map(lambda pair: (pair[0], pair[1])),
    min_size=1,
    max_size=5,
)
STATISTICS = st.sampled_from(["mean", "sum"])


def with_fractions(lattice: PersonLattice, statistic: str, total: int, rows: int) -> int:
    """The nearest number, the upper one of two."""
    value = Fraction(lattice.row_start * rows + lattice.row_step * total)
    if statistic == "mean":
        value /= rows
    steps = (value - lattice.start) / lattice.step
    return min(max(math.floor(steps + Fraction(1, 2)), 0), lattice.most)


@given(lattice=LATTICES, statistic=STATISTICS, persons=ROWS)
def test_it_is_the_nearest_number(
    lattice: PersonLattice, statistic: PersonStatistic, persons: list[tuple[int, int]]
) -> None:
    rows = np.array([n for n, _ in persons])
    sums = np.array([n * mean for n, mean in persons])
    found = lattice.located(statistic, sums, rows)
    assert found.dtype == np.int64
    assert found.tolist() == [
        with_fractions(lattice, statistic, n * mean, n) for n, mean in persons
    ]


def test_a_half_is_rounded_up_also_below_zero() -> None:
    lattice = PersonLattice(row_start=-4, row_step=1, start=-4, step=1, most=8)
    found = lattice.located("mean", np.array([1, 7]), np.array([2, 2]))
    assert found.tolist() == [1, 4]  # -3.5 and -0.5


def test_one_row_alone_keeps_its_number() -> None:
    lattice = PersonLattice(0, 1, 0, 1, 2**31)
    numbers = np.array([0, 1, 12_345, 2**31])
    assert lattice.located("mean", numbers, np.ones(4, np.int64)).tolist() == numbers.tolist()


@pytest.mark.parametrize("statistic", ["mean", "sum"])
def test_units_beyond_64_bits_raise_no_error_whatever_the_data(statistic: PersonStatistic) -> None:
    for step in (1, 2**70):
        lattice = PersonLattice(row_start=0, row_step=2**70, start=0, step=step, most=9)
        for total in (0, 1, 99):
            found = lattice.located(statistic, np.array([total]), np.array([1]))
            assert found.tolist() == [min(total * 2**70 // step, 9)]


def test_nobody_has_no_number() -> None:
    nobody = np.zeros(0, np.int64)
    assert PersonLattice(0, 1, 0, 1, 1).located("sum", nobody, nobody).tolist() == []


@pytest.mark.parametrize("numbers", [(0, 0, 0, 1, 1), (0, 1, 0, 0, 1), (0, 1, 0, 1, 0)])
def test_steps_are_positive(numbers: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(UsageError, match="steps must be positive"):
        PersonLattice(*numbers)
