"""Blanks and texts that stand for missing values, in one column of fields."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.fields import parsed_column, quick_types, without_blanks
from sfumato.data.options import NO_OPTIONS
from sfumato.data.reader import Column, Losses
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import KeyAxis, LabelAxis

NUMBER = grid_axis("x", sf.Interval(0, 9), 3)
LABELS = LabelAxis("x", ("a", "NA", " b"))


def texts(*fields: bytes | None) -> pa.Array:
    return pa.array(fields, pa.binary())


@pytest.mark.parametrize(
    "fields",
    [(), (None,), (b"",), (b"a", None, b"bc"), (b" a", b"\tb ", b"c d", b"  ", None, b"\xff ")],
)
def test_blanks_are_taken_off_both_ends(fields: tuple[bytes | None, ...]) -> None:
    wanted = [None if field is None else field.strip(b" \t") for field in fields]
    assert without_blanks(texts(*fields)).to_pylist() == wanted
    long = texts(b" x", *fields, b"y ")
    assert without_blanks(long.slice(1, len(fields))).to_pylist() == wanted


@pytest.mark.parametrize(
    ("column", "fields", "wanted", "unparsed"),
    [
        (NUMBER, [b" 1", b"2 ", b" NA ", b"  ", b"x"], [1.0, 2.0, None, None, None], 1),
        (LABELS, [b" a", b"NA", b" null", b" b", b"  "], [" a", "NA", None, " b", None], 0),
        (LabelAxis("x", (True, False)), [b" T ", b"no", b"?", b" "], [True, False, None, None], 1),
        (KeyAxis("x"), [b"007", b" 7", b" ", b"NA"], ["007", " 7", None, None], 0),
        (None, [b"007", b" 7", b"nan", b"\xff"], ["007", " 7", None, None], 1),
    ],
)
def test_missing_fields_are_not_counted_as_unparsed(
    column: Column, fields: list[bytes], wanted: list[object], unparsed: int
) -> None:
    losses = Losses()
    assert parsed_column(texts(*fields), "x", column, losses).to_pylist() == wanted
    assert losses.unparsed["x"] == unparsed


def test_a_listed_label_is_a_value_in_its_column_alone() -> None:
    columns = {"x": LABELS, "y": NUMBER}
    # Read as doubles, a column would have "NA" be missing in all columns of the file.
    assert pa.float64() in quick_types({"y": NUMBER}, NO_OPTIONS).values()
    assert pa.float64() not in quick_types(columns, NO_OPTIONS).values()
    assert parsed_column(texts(b"NA"), "y", NUMBER, Losses()).to_pylist() == [None]
