"""Axes from dates and times as text, and what is said to whoever writes them otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.cli.parsing import FIELDS, SPANS, meant, parse_axes

RIGHT = "month=month:date:2025-01..2025-12"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("month:date=2025-01..2025-12", f"Write {RIGHT}"),
        ("month:date=2025-01-01..2025-12-31", "Write month=month:date:2025-01-01..2025-12-31"),
        ("month:date", f"Write {RIGHT}"),
        ("m=date:month", "Write m=month:date:2025-01..2025-12"),
        ("m=months:date:2025-03..2025-06", "Write m=month:date:2025-03..2025-06"),
        ("m=month:date=2025-03..2025-06", "Write m=month:date:2025-03..2025-06"),
        ("m=month:date,2025-03..2025-06", "Write m=month:date:2025-03..2025-06"),
        ("month=month(date)", f"Write {RIGHT}"),
        ("m=month:date:2025..2026", "Write m=month:date:2025-01..2025-12"),
        ("y=year:date", "Write y=year:date:2020..2025"),
        ("w=week:date:2025-01..2025-20", "Write w=week:date:2025-W01..2025-W52"),
        ("w=weekday:date:Mon..Fri", "Write w=weekday:date:Europe/Berlin"),
        ("w=date:weekday", "Write w=weekday:date"),
        (
            "date=2025-11..2025-12",
            "Write date=2025-11-01..2026-01-01 for its days, or month=month:",
        ),
    ],
)
def test_what_is_written_otherwise_is_shown_in_the_right_order(text: str, remedy: str) -> None:
    with pytest.raises(sf.UsageError) as caught:
        parse_axes((text,))
    assert caught.value.remedy.startswith(remedy)
    # What is advised is accepted.
    for word in caught.value.remedy.replace(",", "").split():
        if "=" in word:
            assert len(parse_axes((word,))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "kind=a:b",
        "kind=month:1,month:2",
        "a:b=0..5",
        "month=January,March",
        'at="x:hour"',
        "month:day=0..5",
        "at=2025-01-01T06:00..2025-01-02T06:00",
    ],
)
def test_other_axes_with_such_words_are_read_as_before(text: str) -> None:
    assert list(parse_axes((text,))) == [text.partition("=")[0]]


@pytest.mark.parametrize("text", ["age=0..100", "kind", "", "=", "month", "a:b:c:month:d=1..2"])
def test_nothing_is_meant_where_no_field_is_named(text: str) -> None:
    assert meant(text) is None


def test_every_span_is_one_of_its_field() -> None:
    for field, span in SPANS.items():
        (axis,) = parse_axes((f"x={field}:day:{span}",)).values()
        assert isinstance(axis, FIELDS[field])


@pytest.mark.parametrize("text", ["month=date", "month=1..12"])
def test_a_plan_is_not_begun_on_a_column_named_month_that_there_is_not(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("date,ward\n2025-01-01,a\n")
    assert run(["init", str(tmp_path / "t.csv"), "--axis", text]) == 2
    column = "date" if "date" in text else "COLUMN"
    assert f"write month=month:{column}:2025-01..2025-12." in capsys.readouterr().err
