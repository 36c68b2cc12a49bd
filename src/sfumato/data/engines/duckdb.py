"""How DuckDB spells what a count needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from secrets import token_hex
from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.engines.dated import DatedDialect
from sfumato.data.engines.dialect import END_OF_TIME, FIRST_TIME, SECRETS
from sfumato.data.engines.secrets import text_of_secret
from sfumato.data.keyed_hash import Purpose

_CELLS_OF_A_BYTE = 256
_EXACT_DIGITS = 15
"""Decimals of so few digits are divided exactly as they become doubles."""


class DuckDB(DatedDialect):
    """The dialect of DuckDB, from version 1.1 on.

    Parameters
    ----------
    secrets : str
        The relation that holds the secrets: see ``secrets_table``.

    Text is compared under the collation "C", which is binary. The keyed hash is MD5 of the secret
    and of DuckDB's own hash of the words: it need not be beyond attack, since no property of the
    hash is needed for privacy, but it must mix well, so that all rows are kept equally often.
    """

    texts_first = True

    def __init__(self, secrets: str = DatedDialect.secrets) -> None:
        self.secrets = secrets

    def double(self, number: float) -> str:
        if math.isnan(number):
            return "CAST('NaN' AS DOUBLE)"
        if math.isinf(number):
            return f"CAST('{'-' if number < 0 else ''}Infinity' AS DOUBLE)"
        digits = repr(float(number))
        return digits if "e" in digits else f"{digits}e0"

    def text(self, text: str) -> str | None:
        quoted = text.replace("'", "''")
        if "\0" in text:
            quoted = quoted.replace("\0", "' || chr(0) || '")
        return f"('{quoted}' COLLATE \"C\")"

    def number(self, column: str, type_: pa.DataType) -> str:
        if pt.is_float64(type_):
            return column
        if pt.is_decimal(type_) and type_.precision > _EXACT_DIGITS:
            # DuckDB's own cast of these rounds twice.
            return f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
        return f"CAST({column} AS DOUBLE)"

    def written(self, column: str, type_: pa.DataType) -> str:
        return f'(CAST({column} AS VARCHAR) COLLATE "C")'

    def of_times(self, column: str, type_: pa.DataType) -> str:
        if type_.unit == "ns" and type_.tz is not None:
            # Few functions know instants of nanoseconds; without a zone they are the same numbers.
            column = f"({column} AT TIME ZONE 'UTC')"
        if type_.unit == "ns":
            # Infinities have no nanoseconds; they are beyond all bounds.
            ns = (
                f"CASE WHEN isfinite({column}) THEN epoch_ns({column})"
                f" WHEN {column} > TIMESTAMP_NS '1970-01-01' THEN 9223372036854775807"
                f" WHEN {column} IS NOT NULL THEN -9223372036854774808 END"
            )
            return f"((CAST({ns} AS HUGEINT) + 9223372036854775000) // 1000 - 9223372036854775)"
        native = {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP"}[type_.unit]
        zone = "+00" if type_.tz is not None else ""
        native = "TIMESTAMPTZ" if type_.tz is not None else native
        first, last = (
            f"CAST('{day} 00:00:00{zone}' AS {native})" for day in (FIRST_TIME, END_OF_TIME)
        )
        first = f"CAST({first} - INTERVAL 1 DAY AS {native})"
        return f"epoch_us({self.held(column, first, last)})"

    def exact(self, column: str, type_: pa.DataType) -> str:
        if _may_be_huge(type_):
            return f"TRY_CAST({column} AS HUGEINT)"
        return f"CAST({column} AS DOUBLE)" if pt.is_floating(type_) else column

    def exact_literal(self, number: int, type_: pa.DataType) -> str | None:
        if pt.is_floating(type_):
            return self.double(float(number)) if int(float(number)) == number else None
        if _may_be_huge(type_):
            return f"CAST({number} AS HUGEINT)" if abs(number) < 2**127 else None
        if pt.is_decimal(type_):
            digits = type_.precision - type_.scale
            cast = f"CAST({number} AS DECIMAL({type_.precision}, {type_.scale}))"
            return cast if abs(number) < 10**digits else None
        low = 0 if pt.is_unsigned_integer(type_) else -(2 ** (type_.bit_width - 1))
        if not low <= number < low + 2**type_.bit_width:
            return None
        return f"CAST({number} AS {'U' if low == 0 else ''}{_INTEGERS[type_.bit_width]})"

    def held_by_arrow(self, column: str, type_: pa.DataType) -> str:
        """A column whose values Arrow holds: some whole numbers have more digits, and turn over."""
        if not _may_be_huge(type_):
            return column
        double, held = f"CAST({column} AS DOUBLE)", "DECIMAL(38, 0)"
        return (
            f"CASE WHEN {double} >= 1e37 THEN CAST(1e37 AS {held})"
            f" WHEN {double} <= -1e37 THEN CAST(-1e37 AS {held})"
            f" ELSE TRY_CAST({column} AS {held}) END"
        )

    def quotient(self, dividend: str, divisor: str) -> str:
        return f"({dividend} // {divisor})"

    def group_type(self, n_cells: int) -> str:
        # Groups by one byte lie in an array; others are looked up in a hash table.
        return "UTINYINT" if n_cells <= _CELLS_OF_A_BYTE else self.integer_type

    def trimmed(self, text: str) -> str:
        return f"(trim({text}, ' ' || chr(9)) COLLATE \"C\")"

    def priority(self, secret: Purpose, words: Sequence[str]) -> str:
        hashed = f"hash({', '.join(words)})"
        keyed = f"(SELECT {secret} FROM {self.secrets})"
        return f"md5_number(concat({keyed}, {hashed}))"

    def copies(self, rows: str, columns: Sequence[str]) -> str:
        # Counting equal rows and listing them again is several times as fast as numbering them in
        # a window, which sorts.
        listed = ", ".join(columns)
        groups = f"SELECT {listed}, count(*) AS m FROM ({rows}) AS equal_rows GROUP BY {listed}"
        return f"SELECT {listed}, unnest(range(m)) + 1 AS copy FROM ({groups}) AS counted"


_INTEGERS = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}


def _may_be_huge(type_: pa.DataType) -> bool:
    """Whether a column may be one of DuckDB's own integers of 128 bits, such as sums of integers.

    A schema shows these as decimals of 38 digits. They hold numbers of 39 digits, too, for which a
    comparison with such a decimal would fail.
    """
    return bool(pt.is_decimal(type_) and type_.precision == 38 and type_.scale == 0)


class NamedTable(NamedTuple):
    """A table of one query, under a name that nothing in the database has.

    Attributes
    ----------
    name : str
    rows : pyarrow.Table
    """

    name: str
    rows: pa.Table


def secrets_table(key: bytes) -> NamedTable:
    """The relation that holds the secrets; its name is drawn anew, so no other table hides it."""
    rows = pa.table({each: [text_of_secret(key, each)] for each in SECRETS})
    return NamedTable(own_name("secrets"), rows)


def own_name(what: str) -> str:
    """A name that nobody has given to a table of theirs."""
    return f"sfumato_{what}_{token_hex(8)}"
