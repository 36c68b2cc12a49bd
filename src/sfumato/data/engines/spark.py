"""How Spark spells what a count needs.

Nothing here depends on a setting of the session: not on ANSI mode, the time zone, the case of
names, or how string literals are escaped. No cast can fail or wrap around, because what is cast is
first held within bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.engines.calendar import END_DAY, FIRST_DAY
from sfumato.data.engines.dialect import SECRETS, Dialect, no_reading
from sfumato.data.engines.secrets import text_of_secret
from sfumato.data.keyed_hash import Purpose
from sfumato.times import MICROSECONDS_A_DAY

ROWS = "{sfumato_rows}"
"""What stands in a query for the table: ``SparkSession.sql`` puts the name of a view there."""

_BLANKS = "CAST(X'2009' AS STRING)"  # a blank and a tab


class Spark(Dialect):
    """The dialect of Spark 4.

    The keyed hash is Spark's own XXH64, which begins with the secret and hashes it once more at the
    end. It need not be beyond attack, since no property of the hash is needed for privacy. It must
    mix well, so that all rows are kept equally often.

    Parameters
    ----------
    names : mapping of str to str
        What the view calls the columns of the table: names that need no quotes. Columns whose names
        differ in case only, or occur twice, stay apart so.
    drops_groups : bool
        See ``Dialect``.
    """

    wide_type: ClassVar[str] = "DECIMAL(38, 0)"
    row_by_row: ClassVar[bool] = True
    # A filter is not moved below a column that Spark takes for one that is not deterministic. This
    # one costs next to nothing, and no result depends on it.
    barrier: ClassVar[str] = "spark_partition_id()"
    secrets = "{sfumato_secrets}"

    def __init__(self, names: Mapping[str, str], *, drops_groups: bool = True) -> None:
        self._names = names
        self.drops_groups = drops_groups

    # --- names and literals ---------------------------------------------------------------------

    def name(self, name: str) -> str:
        quoted = f"`{name.replace('`', '``')}`"
        return self._names.get(name, quoted)

    def double(self, number: float) -> str:
        if math.isnan(number):
            return "CAST('NaN' AS DOUBLE)"
        if math.isinf(number):
            return f"CAST('{'-' if number < 0 else ''}Infinity' AS DOUBLE)"
        return f"{float(number)!r}D"

    def text(self, text: str) -> str | None:
        # In hexadecimal digits: settings change how quotes and backslashes are read.
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    # --- columns as cells read them -------------------------------------------------------------

    def number(self, column: str, type_: pa.DataType) -> str:
        if pt.is_float64(type_):
            return column
        if pt.is_boolean(type_):
            return f"CAST(CAST({column} AS INT) AS DOUBLE)"
        return f"CAST({column} AS DOUBLE)"

    def written(self, column: str, type_: pa.DataType) -> str:
        # Text that is not UTF-8 is missing, as in a scan.
        return f"CASE WHEN is_valid_utf8({column}) THEN {column} END"

    def days(self, column: str, type_: pa.DataType) -> str:
        if pt.is_date(type_):
            return _held(f"CAST(unix_date({column}) AS BIGINT)", column, 1)
        micros = self.microseconds(column, type_)
        return f"(({micros} - pmod({micros}, {_DAY})) div {_DAY})"

    def microseconds(self, column: str, type_: pa.DataType) -> str:
        if pt.is_date(type_):
            return f"({self.days(column, type_)} * {_DAY})"
        if not pt.is_timestamp(type_):
            raise no_reading(type_)
        if type_.tz is not None:
            return _held(f"unix_micros({column})", column, MICROSECONDS_A_DAY)
        # The parts of a local time do not depend on the session's time zone, as a cast would.
        days = f"CAST(unix_date(CAST({column} AS DATE)) AS BIGINT)"
        seconds = f"CAST(hour({column}) * 3600 + minute({column}) * 60 AS BIGINT)"
        micros = f"CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT)"
        whole = f"{_held(days, column, 1)} * {_DAY} + {seconds} * 1000000L + {micros}"
        return f"({whole})"

    def exact(self, column: str, type_: pa.DataType) -> str:
        return f"CAST({column} AS DOUBLE)" if pt.is_floating(type_) else column

    def exact_literal(self, number: int, type_: pa.DataType) -> str | None:
        if pt.is_floating(type_):
            return self.double(float(number)) if int(float(number)) == number else None
        if pt.is_decimal(type_):
            digits = type_.precision - type_.scale
            cast = f"CAST({number} AS DECIMAL({type_.precision}, {type_.scale}))"
            return cast if abs(number) < 10**digits else None
        most = 2 ** (type_.bit_width - 1)
        return f"CAST({number} AS {_INTEGERS[type_.bit_width]})" if -most <= number < most else None

    def person(self, column: str, type_: pa.DataType) -> str:
        # Bytes name a person, whether they are UTF-8 or not.
        return column if pt.is_string(type_) else super().person(column, type_)

    # --- arithmetic -----------------------------------------------------------------------------

    def quotient(self, dividend: str, divisor: str) -> str:
        return f"(({dividend}) div {divisor})"

    def wide_quotient(self, dividend: str, divisor: str) -> str:
        # A quotient of decimals is rounded; that of a multiple is exact.
        return f"((({dividend}) - ({dividend}) % ({divisor})) / ({divisor}))"

    def trimmed(self, text: str) -> str:
        return f"trim(BOTH {_BLANKS} FROM {text})"

    def date(self, days: str) -> str:
        return f"date_from_unix_date(CAST({days} AS INT))"

    def total(self, integers: str) -> str:
        return f"sum(CAST({integers} AS DECIMAL(38, 0)))"

    # --- persons --------------------------------------------------------------------------------

    def priority(self, secret: Purpose, words: Sequence[str]) -> str:
        keyed = f"(SELECT {secret} FROM {self.secrets})"
        # XXH64 passes over nulls, so it is told where they are.
        hashed = ", ".join(f"isnull({word}), {word}" for word in words)
        return f"xxhash64({keyed}, {hashed}, {keyed})"

    def copies(self, rows: str, columns: Sequence[str]) -> str:
        listed = ", ".join(columns)
        number = f"row_number() OVER (PARTITION BY {listed} ORDER BY {columns[0]})"
        return f"SELECT *, {number} AS copy FROM ({rows}) AS equal_rows"

    def prioritized(
        self,
        rows: str,
        persons: Sequence[str],
        choice: Sequence[str],
        carried: Sequence[str],
    ) -> str:
        # The numbers of copies come from the window by person that the choice needs as well, so
        # rows are shuffled once. The first copy has the hash itself as its priority, so most rows
        # lie in their final order already when they are sorted again.
        kept = ", ".join((*persons, *choice, *carried))
        first = self.priority("rows", [*persons, *choice])
        hashed = f"SELECT {kept}, {first} AS first_priority FROM ({rows}) AS chosen"
        order = ", ".join(("first_priority", *choice, *carried))
        by_person = f"PARTITION BY {', '.join(persons)} ORDER BY {order}"
        copied = (
            f"SELECT {kept}, first_priority,"
            f" row_number() OVER ({by_person}) - rank() OVER ({by_person}) + 1 AS copy"
            f" FROM ({hashed}) AS hashed"
        )
        further = self.priority("rows", ["'copy'", "first_priority", "copy"])
        priority = f"CASE WHEN copy = 1 THEN first_priority ELSE {further} END"
        return f"SELECT {kept}, {priority} AS priority FROM ({copied}) AS copied"


_DAY = f"{MICROSECONDS_A_DAY}L"
_INTEGERS = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}


def _held(whole: str, column: str, a_day: int) -> str:
    """Hold days or microseconds just outside the ends of the calendar; null stays null."""
    first, end = (FIRST_DAY - 1) * a_day, END_DAY * a_day
    return f"CASE WHEN {column} IS NOT NULL THEN least(greatest({whole}, {first}L), {end}L) END"


def secrets_table(key: bytes) -> pa.Table:
    """The relation that holds the secrets."""
    return pa.table({each: [text_of_secret(key, each)] for each in SECRETS})
