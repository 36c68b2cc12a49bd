"""Spark's types as Arrow's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.data.readers.spark import arrow_type, is_text
from sfumato.data.schema import misfit
from sfumato.domain.domain import Interval, grid_axis

types = pytest.importorskip("pyspark.sql.types")

PLAIN = [
    (types.NullType(), pa.null()),
    (types.BooleanType(), pa.bool_()),
    (types.ByteType(), pa.int8()),
    (types.ShortType(), pa.int16()),
    (types.IntegerType(), pa.int32()),
    (types.LongType(), pa.int64()),
    (types.FloatType(), pa.float32()),
    (types.DoubleType(), pa.float64()),
    (types.DecimalType(20, 4), pa.decimal128(20, 4)),
    (types.StringType(), pa.string()),
    (types.StringType("UNICODE_CI"), pa.string()),
    (types.VarcharType(9), pa.string()),
    (types.CharType(9), pa.string()),
    (types.BinaryType(), pa.binary()),
    (types.DateType(), pa.date32()),
    (types.TimestampType(), pa.timestamp("us", "UTC")),
    (types.TimestampNTZType(), pa.timestamp("us")),
]


@pytest.mark.parametrize(("of_spark", "of_arrow"), PLAIN)
def test_each_type_has_a_counterpart(of_spark: object, of_arrow: pa.DataType) -> None:
    assert arrow_type(of_spark).equals(of_arrow)  # type: ignore[arg-type]
    assert is_text(of_spark) == pa.types.is_string(of_arrow)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "nested", [types.ArrayType(types.LongType()), types.MapType(types.LongType(), types.LongType())]
)
def test_nested_types_fit_no_axis(nested: object) -> None:
    axis = grid_axis("x", Interval(0, 1), 2)
    assert misfit(axis, arrow_type(nested)) is not None  # type: ignore[arg-type]
