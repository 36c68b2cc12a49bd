"""The types of a Spark table's columns, as Arrow names them.

They are read off the schema, so a table without rows has the types of a full one. Spark's package
is not imported: a type says its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa


class SparkType(Protocol):
    """What is used of a Spark type."""

    def typeName(self) -> str: ...  # noqa: N802


class SparkField(Protocol):
    """What is used of a field of a Spark schema."""

    @property
    def name(self) -> str: ...
    @property
    def dataType(self) -> SparkType: ...  # noqa: N802


_PLAIN: Mapping[str, pa.DataType] = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NESTED = pa.struct([])
"""Stands for types that no axis reads: arrays, maps, structs, variants, intervals."""


def arrow_type(type_: SparkType) -> pa.DataType:
    """Give the Arrow type of a Spark type.

    A timestamp of Spark is an instant; one without a time zone is a local time.
    """
    name = type_.typeName()
    if name == "decimal":
        return pa.decimal128(getattr(type_, "precision", 38), getattr(type_, "scale", 0))
    return _PLAIN.get(name, _NESTED)


def is_text(type_: SparkType) -> bool:
    """Whether a column holds text: it may have a collation, or be padded with blanks."""
    return type_.typeName() in ("string", "varchar", "char")
