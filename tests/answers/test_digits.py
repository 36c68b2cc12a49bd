"""Estimates are printed with the digits that their intervals leave to them."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.answers.estimate import to_meaningful_digits
from support import every_kind


def test_a_count_is_a_whole_number_where_its_interval_is_wide() -> None:
    raw = pa.table({"count": [34.8487, -12.000001], "low": [18.3, -28.5], "high": [51.36, 4.5]})
    found = to_meaningful_digits(raw)
    assert found.to_pydict() == {"count": [35, -12], "low": [18, -29], "high": [52, 5]}
    assert pa.types.is_integer(found["count"].type)


def test_spare_digits_are_kept() -> None:
    raw = pa.table({"count": [34.84874], "low": [18.33994], "high": [51.35755]})
    found = to_meaningful_digits(raw, 2).to_pylist()
    assert found == [{"count": 34.85, "low": 18.33, "high": 51.36}]


def test_ends_that_have_few_digits_are_not_moved() -> None:
    """0.29 * 100 is a little less than 29 in doubles."""
    raw = pa.table({"mean": [0.3], "low": [0.29], "high": [0.31]})
    assert to_meaningful_digits(raw).equals(raw)


def test_nothing_known_stays_so_and_there_is_no_negative_zero() -> None:
    raw = pa.table({"mean": [None, math.nan, -0.001], "low": [0.0, 0, -3], "high": [9.0, 9, 3]})
    mean = to_meaningful_digits(raw)["mean"].to_pylist()
    assert mean[0] is None
    assert math.isnan(mean[1])
    assert math.copysign(1, mean[2]) == 1


@pytest.mark.parametrize("spread", [0.0, math.inf, 1e-20])
def test_numbers_without_a_half_width_keep_all_digits(spread: float) -> None:
    raw = pa.table({"mean": [1 / 3], "low": [1 / 3 - spread], "high": [1 / 3 + spread]})
    assert to_meaningful_digits(raw).equals(raw)


def test_half_widths_and_intervals_of_a_name_belong_to_its_column() -> None:
    raw = pa.table({"x": [1 / 3], "x_error": [0.0987], "rank": [0.25], "rank_error": [12]})
    found = to_meaningful_digits(raw).to_pylist()
    assert found == [{"x": 0.333, "x_error": 0.099, "rank": 0.25, "rank_error": 12}]
    raw = pa.table({"kept": [1 / 3], "kept_low": [0.301], "kept_high": [0.389], "y": [1 / 3]})
    found = to_meaningful_digits(raw).to_pylist()
    assert found == [{"kept": 0.333, "kept_low": 0.301, "kept_high": 0.389, "y": 1 / 3}]


@pytest.mark.parametrize("kind", [*every_kind.QUESTIONS])
def test_what_is_printed_lies_within_the_interval_and_the_interval_within_what_is_printed(
    kind: str,
) -> None:
    release = every_kind.releases()[kind]
    table = release.to_frame()
    found = release.in_digits(table)
    assert found.column_names == table.column_names
    if "low" not in table.column_names:
        return
    raw = [np.array(table[name].to_pylist(), float) for name in ("low", "high")]
    printed = [np.array(found[name].to_pylist(), float) for name in ("low", "high")]
    slack = 1e-9 * (1 + np.abs(raw[0]))
    assert (printed[0] <= raw[0] + slack).all()
    assert (printed[1] >= raw[1] - slack).all()
    # At most a tenth of the half-width, where two of its digits are kept.
    assert (printed[1] - printed[0] <= 1.11 * (raw[1] - raw[0]) + 2).all()
