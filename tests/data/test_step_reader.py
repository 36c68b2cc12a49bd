"""Rows that make the steps of a stream."""

from __future__ import annotations

from sfumato.data import step_reader


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
