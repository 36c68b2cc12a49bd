"""Moments: times of which each says by itself whether it is an instant."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data import fields, objects
from sfumato.data.columns import numbers
from sfumato.data.dates import MOMENT, is_moments, times_of, zoned_moments
from sfumato.data.priorities import normalized_ids

AXIS = sf.Weekday("when").label_axis("w")


@pytest.mark.parametrize(
    ("field", "zoned"),
    [
        (b"2024-03-31", False),
        (b"2024-03-31 02:30", False),
        (b"2024-03-31T02:30:00.5", False),
        (b"2024-03-31T02Z", True),
        (b" 2024-03-31T02:30:00.123456789Z\t", True),
        (b"2024-03-31 02:30+01", True),
        (b"2024-03-31 02:30:00-0530", True),
        (b"2024-03-31T02:30+05:30 ", True),
        (b"soon", None),
        (b"2024-03-31T02:30X", None),
        (None, None),
    ],
)
def test_a_field_of_text(field, zoned):
    """Beside a field of another form, so that no whole column is read at once."""
    for texts in ([field], [field, b"1999-01-01 00:00", b"?"]):
        moments = fields.parse(pa.array(texts, pa.binary()), AXIS)
        assert is_moments(moments.type)
        assert moments.null_count == texts.count(None) + texts.count(b"?") + (
            zoned is None and field is not None
        )
        found = moments.to_pylist()[0]
        assert (None if found is None else found["zoned"]) == zoned


def test_python_objects():
    zone = dt.timezone(dt.timedelta(hours=2))
    given = [
        dt.datetime(2024, 1, 1, 2, tzinfo=zone),
        dt.datetime(2024, 1, 1),
        dt.date(2024, 1, 1),
        "2024-01-01",
        None,
        7,
    ]
    moments = objects.parse(given, AXIS)
    assert zoned_moments(moments).tolist() == [True, False, False, False, False, False]
    days = [None if day is None else day.date() for day in times_of(moments).to_pylist()]
    assert days == [dt.date(2024, 1, 1)] * 3 + [None] * 3


def test_moments_serve_as_times_and_as_ids():
    """Where an Interval or a period is about the same column."""
    moments = fields.parse(pa.array([b"1970-01-02T00:00+01:00", None], pa.binary()), AXIS)
    assert numbers(moments, "day").tolist()[0] == 0
    assert normalized_ids(moments).type == MOMENT.field("time").type
    assert numbers(moments.slice(1), "microsecond").tolist() != [0]
