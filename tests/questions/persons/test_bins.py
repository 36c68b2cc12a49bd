"""Bins of numbers of rows have ends that people choose as limits."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.questions.persons.measured import LARGEST, bin_names, lower_ends, rows_axis, upper_ends


def test_ends_are_round_numbers_up_to_the_bound() -> None:
    found = upper_ends(1000)
    assert found[:12] == (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25)
    assert found[-8:] == (200, 250, 300, 400, 500, 600, 800, 1000)
    assert len(found) == 28


@pytest.mark.parametrize("most_rows", [2, 7, 10, 600, 999, 4096, 10**9])
def test_the_last_end_is_the_bound(most_rows: int) -> None:
    found = upper_ends(most_rows)
    assert found[-1] == most_rows
    assert list(found) == sorted(set(found))


def test_without_a_bound_the_last_bin_has_no_end() -> None:
    assert upper_ends(None)[-2:] == (10**4, LARGEST)
    assert bin_names(None)[-1] == "10,001 or more"


@pytest.mark.parametrize("most_rows", [2, 30, 1000, None])
def test_each_number_of_rows_lies_in_its_bin(most_rows: int | None) -> None:
    axis = rows_axis(most_rows)
    ends = np.array(upper_ends(most_rows))
    starts = lower_ends(most_rows)
    assert axis.locate(ends.astype(float)).tolist() == list(range(axis.size))
    assert axis.locate(starts.astype(float)).tolist() == list(range(axis.size))
    assert starts[0] == 1
    assert (starts[1:] == ends[:-1] + 1).all()
    assert axis.locate(np.array([ends[-1] * 10.0])).tolist() == [axis.size - 1]
    assert len(bin_names(most_rows)) == axis.size
