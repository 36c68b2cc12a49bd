"""How PostgreSQL spells what a count needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.engines.dated import DatedDialect
from sfumato.data.engines.dialect import END_OF_TIME, FIRST_TIME
from sfumato.data.keyed_hash import Purpose

ANY_NUMERIC = pa.decimal256(76, 38)
"""Stands for ``numeric`` without a stated precision, or with more than 38 digits."""

SETTING = "sfumato"
"""The class of the session's settings that hold the secrets."""

_BEYOND = 2**1024 - 2**970
_SHORTEST = f"{2**-1074:.1100f}".rstrip("0")
"""The least positive double, in full."""


class Postgres(DatedDialect):
    """The dialect of PostgreSQL, from version 14 on, of a database in UTF-8.

    A cast or an operation that fails for some values only is never reached by them. The secrets are
    settings of the session, which a connection brings along as it begins: no statement names them.
    """

    texts_first = True
    underflows = False
    double_type = "double precision"
    wide_type = "numeric"
    fence = " OFFSET 0"

    def double(self, number: float) -> str:
        if math.isnan(number):
            return "'NaN'::float8"
        if math.isinf(number):
            return f"'{'-' if number < 0 else ''}Infinity'::float8"
        return f"'{number!r}'::float8"

    def text(self, text: str) -> str | None:
        if "\0" in text:
            return None
        # This form means the same whatever the server's setting of backslashes.
        quoted = text.replace("\\", "\\\\").replace("'", "''")
        return f"(E'{quoted}'::text COLLATE \"C\")"

    def number(self, column: str, type_: pa.DataType) -> str:
        if pt.is_float64(type_):
            return column
        if pt.is_boolean(type_):
            return f"({column}::int)::float8"
        if type_ == ANY_NUMERIC:
            return _double_of_any(column)
        return f"{column}::float8"

    def written(self, column: str, type_: pa.DataType) -> str:
        return f'(CAST({column} AS text) COLLATE "C")'

    def of_times(self, column: str, type_: pa.DataType) -> str:
        native, zone = ("timestamp", "") if type_.tz is None else ("timestamptz", "+00")
        first, last = (f"'{day} 00:00:00{zone}'::{native}" for day in (FIRST_TIME, END_OF_TIME))
        held = self.held(column, f"{first} - interval '1 day'", last)
        return f"CAST(extract(epoch FROM {held}) * 1000000 AS BIGINT)"

    def exact(self, column: str, type_: pa.DataType) -> str:
        return f"{column}::float8" if pt.is_floating(type_) else column

    def exact_literal(self, number: int, type_: pa.DataType) -> str | None:
        if pt.is_floating(type_):
            return self.double(float(number)) if int(float(number)) == number else None
        if pt.is_decimal(type_):
            return f"'{number}'::numeric"
        fits = -(2 ** (type_.bit_width - 1)) <= number < 2 ** (type_.bit_width - 1)
        return f"'{number}'::{_INTEGERS[type_.bit_width]}" if fits else None

    def person(self, column: str, type_: pa.DataType) -> str:
        if pt.is_decimal(type_):
            # Equal numbers may be written with more or fewer zeros.
            return f"trim_scale(nullif({column}, 'NaN'))"
        return super().person(column, type_)

    def quotient(self, dividend: str, divisor: str) -> str:
        return f"({dividend} / {divisor})"

    def wide_quotient(self, dividend: str, divisor: str) -> str:
        return f"div({dividend}, {divisor})"

    def trimmed(self, text: str) -> str:
        return f"btrim({text}, E' \\t')"

    def priority(self, secret: Purpose, words: Sequence[str]) -> str:
        # The server's own hash of a row does not mix the fields well enough to be sorted by, so it
        # is hashed again.
        key = f"(SELECT convert_to(current_setting('{SETTING}.{secret}'), 'UTF8'))"
        # It folds integers, also those of dates and times: 0 and 2^32 + 1 are one. Texts stay two.
        texts = ", ".join(f"CAST({word} AS text)" for word in words)
        hashed = f"hash_record_extended(ROW({texts}), 0)"
        return f"sha256({key} || int8send({hashed}))"

    def copies(self, rows: str, columns: Sequence[str]) -> str:
        listed = ", ".join(columns)
        return (
            f"SELECT {listed}, row_number() OVER (PARTITION BY {listed}) AS copy"
            f" FROM ({rows}) AS uncopied"
        )


_INTEGERS = {16: "int2", 32: "int4", 64: "int8"}


def _double_of_any(column: str) -> str:
    """The nearest double of a number of any size: a plain cast fails outside a double's range."""
    size = f"abs({column})"
    sign = f"CASE WHEN {column} < 0 THEN -1 ELSE 1 END"
    return (
        f"CASE WHEN {column} = 'NaN'::numeric THEN 'NaN'::float8"
        f" WHEN {size} >= {_BEYOND} THEN ({sign}) * 'Infinity'::float8"
        # Half of the least double is rounded to zero, and what lies above it to that double.
        f" WHEN {size} * 2 <= {_SHORTEST} THEN '0'::float8"
        f" WHEN {size} < {_SHORTEST} THEN ({sign}) * '5e-324'::float8"
        f" ELSE {column}::float8 END"
    )
