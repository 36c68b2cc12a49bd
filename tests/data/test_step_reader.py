"""Rows that make the steps of a stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.data import steps as step_reader
from sfumato.errors import DataError


def test_rows_of_a_stream_that_do_not_parse_are_dropped() -> None:
    columns = step_reader.StepColumns("day", "x")
    rows = [
        "day,x",
        "1,2",
        "1",
        "1,2,3",
        "1,two",
        "1,nan",
        "1,",
        "2,1e3",
        '2,"' + "9" * 200_000 + '"',
        "2,4",
    ]
    found = [(each.event, each.increment) for each in step_reader.from_csv(rows, columns)]
    assert found == [("1", [2.0]), ("2", [1000.0, 4.0])]


def test_a_spreadsheet_is_no_stream(tmp_path: Path) -> None:
    path = tmp_path / "visits.xlsx"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match="Save the sheet as CSV"):
        step_reader.require_columns(path, None)
