"""A table with its sums on the edges says what it counts, and how far its numbers may be off."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.answers.cross_tables import ALL, CrossTable, Widths


def made(down="hour", across="carrier", within="", rounded=True):
    shape = (3 if down else 1, 3 if across else 1)
    estimates = np.array([[2.0, 5, 7], [-1, 4, 3], [1, 9, 10]])[: shape[0], : shape[1]]
    half = np.array([[2.0, 2, 3], [2, 2, 3], [4, 4, 5]])[: shape[0], : shape[1]]
    return CrossTable(
        axes=("carrier", "hour"),
        within=within,
        down=down,
        across=across,
        rows=("a", "b", ALL)[-shape[0] :],
        columns=("x", "y", ALL)[: shape[1]],
        estimates=estimates,
        half_widths=half,
        rounded=np.maximum(estimates, 0).astype(np.int64) if rounded else None,
    )


@pytest.mark.parametrize(
    ("table", "title"),
    [
        (made(), "Number of rows by carrier and hour"),
        (made(across=""), "Number of rows by hour"),
        (made(down="", across=""), "Number of rows"),
        (made(within="every origin"), "Number of rows by carrier and hour, every origin"),
    ],
)
def test_its_title_says_what_it_counts(table, title):
    assert table.title == title


def test_equal_widths_are_said_once():
    assert made().widths == Widths(2, 3, 4, 5)
    assert made(down="", across="").widths == Widths(2, None, None, None)


def test_a_count_whose_interval_reaches_0_is_hatched():
    assert made().hatched.tolist() == [
        [True, False, False],
        [True, False, True],
        [True, False, False],
    ]


def test_whole_numbers_are_as_far_off_as_the_farther_end():
    # 2 +- 2 is 0 to 4; -1 +- 2 is 0 to 1, and 0 is shown; 10 +- 5 is 5 to 15.
    assert made().rounded_widths == (2, 5)
    assert made(rounded=False).rounded_widths is None
