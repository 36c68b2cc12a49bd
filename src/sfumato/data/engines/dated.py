"""Dates and times as whole numbers, in engines that subtract dates from each other."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.engines.dialect import END_OF_TIME, FIRST_TIME, Dialect, no_reading
from sfumato.times import MICROSECONDS_A_DAY

_EPOCH = "DATE '1970-01-01'"
_BEFORE = 719_163
"""Days from the day before 0001-01-01 to 1970-01-01."""


class DatedDialect(Dialect):
    """A dialect in which the difference of two dates is a whole number of days."""

    def days(self, column: str, type_: pa.DataType) -> str:
        if pt.is_date(type_):
            held = self.held(column, f"DATE '{FIRST_TIME}' - 1", f"DATE '{END_OF_TIME}'")
            return f"CAST({held} - {_EPOCH} AS {self.integer_type})"
        above = f"({self.microseconds(column, type_)} + {_BEFORE * MICROSECONDS_A_DAY})"
        return f"({self.quotient(above, str(MICROSECONDS_A_DAY))} - {_BEFORE})"

    def microseconds(self, column: str, type_: pa.DataType) -> str:
        if pt.is_date(type_):
            return f"({self.days(column, type_)} * {MICROSECONDS_A_DAY})"
        if not pt.is_timestamp(type_):
            raise no_reading(type_)
        return self.of_times(column, type_)

    @abstractmethod
    def of_times(self, column: str, type_: pa.DataType) -> str:
        """Read times as whole microseconds since 1970-01-01 in UTC, floored."""

    def held(self, column: str, first: str, last: str) -> str:
        """Hold dates or times within two others, before anything is calculated of them."""
        # These functions pass over nulls, which must stay nulls.
        bounded = f"least(greatest({column}, {first}), {last})"
        return f"CASE WHEN {column} IS NOT NULL THEN {bounded} END"

    def date(self, days: str) -> str:
        return f"({_EPOCH} + CAST({days} AS INTEGER))"
