"""What a cell of Excel means, and that a cell which means nothing is missing."""

from __future__ import annotations

import datetime as dt

import pytest

from sfumato.data.readers.excel import (
    DURATION,
    MOMENT,
    Cell,
    duration,
    finite,
    meanings,
    moment,
    unescaped,
    written_moment,
)
from sfumato.data.readers.xlsx import Element


@pytest.mark.parametrize(
    ("number", "from_1904", "found"),
    [
        (0.0, False, dt.time(0)),
        (0.75, True, dt.time(18)),
        (1.0, False, dt.date(1900, 1, 1)),
        (59.0, False, dt.date(1900, 2, 28)),
        (61.0, False, dt.date(1900, 3, 1)),
        (1.0, True, dt.date(1904, 1, 2)),
        (45365.25, False, dt.datetime(2024, 3, 14, 6)),
        (2_958_465.0, False, dt.date(9999, 12, 31)),
        (2_958_465.999999999, False, ""),
        (2_958_465.0, True, ""),
        (-0.5, False, ""),
        (1e300, False, ""),
        (-1e300, False, ""),
    ],
)
def test_days_are_moments(number: float, from_1904: bool, found: Cell) -> None:
    assert moment(number, from_1904) == found


def test_days_are_durations() -> None:
    assert duration(1.5) == dt.timedelta(hours=36)
    assert [duration(number) for number in (1e10, 1e300, -1e300)] == ["", "", ""]


def test_numbers_are_finite() -> None:
    assert [finite(text) for text in ("1", " -2.5 ", "1e3")] == [1, -2.5, 1000]
    assert {finite(text) for text in ("", "x", "1_0", "nan", "inf", "1e400")} == {None}


def test_texts_are_decoded_and_moments_are_read() -> None:
    assert unescaped("a_x0041__x00e4_ _xZZ_") == "aAä _xZZ_"
    given = ("2024-03-14", "05:06", "2024-03-14T05:06:00", "2024-02-30", "x", "")
    found = [dt.date(2024, 3, 14), dt.time(5, 6), dt.datetime(2024, 3, 14, 5, 6), "", "", ""]
    assert [written_moment(text) for text in given] == found


CODES = {
    "dd.mm.yyyy": MOMENT,
    "[$-409]d mmm;@": MOMENT,
    "mm:ss.0": MOMENT,
    "[h]:mm": DURATION,
    "[SS]": DURATION,
    '0.00 "days"': None,
    "_-* #,##0 _d": None,
    "[Red]0;h": None,
    "\\d0": None,
    "General": None,
    "0.00E+00": None,
}


def test_formats_of_numbers() -> None:
    """Of the formats that cells have, and not of those that styles with names have."""
    styles = [Element("cellStyleXfs", "xf", {"numFmtId": "14"})]
    for number, code in enumerate(CODES, 164):
        styles.append(Element("numFmts", "numFmt", {"numFmtId": str(number), "formatCode": code}))
        styles.append(Element("cellXfs", "xf", {"numFmtId": str(number)}))
    found = meanings(styles)
    assert [found.get(str(place)) for place in range(len(CODES))] == list(CODES.values())
    listed = ["0", "14", "22", "46", "49", "999", "x", "²"]
    found = meanings([Element("cellXfs", "xf", {"numFmtId": number}) for number in listed])
    assert found == {"1": MOMENT, "2": MOMENT, "3": DURATION}
