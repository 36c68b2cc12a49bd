"""A stacked norm fits into 64 bits, or is refused."""

from __future__ import annotations

import pytest

from sfumato.errors import InternalError
from sfumato.privacy.unit import StackedNorm, Weighed

LEVELS = (((3,),),)


def test_what_one_row_has_and_how_many_rows_always_fit() -> None:
    weighed = (Weighed((0,), -1), Weighed((1,), 3))
    assert StackedNorm(LEVELS, weighed, 18, 9).of_one_row == 2
    assert StackedNorm(LEVELS, weighed, 18, 9).all_kept == 3
    assert StackedNorm(LEVELS, weighed, 17, 9).all_kept == 2
    assert StackedNorm(LEVELS, weighed, 18, 2).all_kept == 2


def test_sums_that_could_pass_64_bits_are_refused() -> None:
    most = 2**63 - 1 - 3 * (2 * 9 + 1)
    assert StackedNorm(LEVELS, (Weighed((0,), -1), Weighed((1,), 2)), most, 9).of_one_row == 1
    with pytest.raises(InternalError, match="64 bits"):
        StackedNorm(LEVELS, (Weighed((0,), -1), Weighed((1,), 2)), most + 1, 9)
    with pytest.raises(InternalError, match="64 bits"):
        StackedNorm(LEVELS, (Weighed((0,), -2), Weighed((1,), 2)), 10, 9)
