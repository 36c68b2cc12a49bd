"""What differs between engines that speak SQL: how they spell things, and what their types hold.

A dialect writes expressions. It never sees a value of the data, and nothing that it writes may fail
for some values only: whether a query fails must follow from the schema.

In every dialect, NaN is equal to itself and greater than any number, division of whole numbers that
are not negative rounds down, and ``CASE`` evaluates a branch only where it is chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.keyed_hash import Purpose
from sfumato.errors import InternalError

SECRETS: tuple[Purpose, ...] = ("rows", "cells")
"""The columns of the relation that holds the secrets: what each chooses among."""

FIRST_TIME = "0001-01-01"
END_OF_TIME = "10000-01-01"
"""Dates and times before the one and from the other on lie outside the calendar, and beyond every
bound that can be declared. Before anything is calculated, they are held at the last day before the
one, and at the other.
"""


class Named(Protocol):
    """Gives a name to an expression: over columns, or over names of lower levels."""

    def __call__(self, expression: str, level: int = 0) -> str: ...


class Dialect(ABC):
    """The spellings of one engine. A method returns an expression, unless it says otherwise.

    Attributes
    ----------
    double_type, integer_type : str
        The types of IEEE doubles, and of integers of 64 bits.
    wide_type : str
        A type of integers of at least 38 digits, or of 126 bits.
    texts_first : bool
        Whether rows are grouped by their texts before labels are looked up in these.
    fence : str
        What ends a subquery whose expressions are to be evaluated once. Some engines otherwise copy
        an expression to each place that uses its name.
    barrier : str
        A whole number that is not negative, and below which no filter is moved. Some engines move
        filters below the expressions that they look at, and so copy these, level after level. Empty
        where a fence keeps filters where they are, or copies are few.
    drops_groups : bool
        Whether the reader drops groups that lack a cell or a key. Some engines would move a filter
        of rows below the expressions that it looks at, and calculate these twice.
    row_by_row : bool
        Whether an expression in a branch is evaluated only for the rows that come there.
    underflows : bool
        Whether a quotient too small for a double is zero, as IEEE has it, and no error.
    secrets : str
        The relation of one row that holds the secrets: a column of text for each of ``SECRETS``.
    """

    texts_first: ClassVar[bool] = False
    double_type: ClassVar[str] = "DOUBLE"
    integer_type: ClassVar[str] = "BIGINT"
    wide_type: ClassVar[str] = "HUGEINT"
    fence: ClassVar[str] = ""
    barrier: ClassVar[str] = ""
    drops_groups: bool = False
    row_by_row: ClassVar[bool] = False
    underflows: ClassVar[bool] = True
    secrets: str = "sfumato_secrets"

    # --- names and literals ---------------------------------------------------------------------

    def name(self, name: str) -> str:
        """Quote the name of a column."""
        return '"' + name.replace('"', '""') + '"'

    @abstractmethod
    def double(self, number: float) -> str:
        """Write a double exactly, also NaN and the infinities."""

    @abstractmethod
    def text(self, text: str) -> str | None:
        """Write a text; None for one that no value of the engine can equal."""

    def integer(self, number: int, type_: str | None = None) -> str:
        """Write an integer of 64 bits, or of another type that holds it."""
        return f"CAST({number} AS {type_ or self.integer_type})"

    # --- columns as cells read them -------------------------------------------------------------

    @abstractmethod
    def number(self, column: str, type_: pa.DataType) -> str:
        """Read numbers or booleans as the nearest doubles; null where the value is null.

        Parameters
        ----------
        column : str
            As it stands in the query.
        type_ : pyarrow.DataType
            Its type, as the reader's schema has it.
        """

    @abstractmethod
    def written(self, column: str, type_: pa.DataType) -> str:
        """Read a column as text that is compared byte by byte, whatever its collation."""

    @abstractmethod
    def days(self, column: str, type_: pa.DataType) -> str:
        """Read dates or times as whole days since 1970-01-01 in UTC, floored."""

    @abstractmethod
    def microseconds(self, column: str, type_: pa.DataType) -> str:
        """Read dates or times as whole microseconds since 1970-01-01 in UTC, floored."""

    @abstractmethod
    def exact(self, column: str, type_: pa.DataType) -> str:
        """Read numbers so that they compare with whole numbers exactly."""

    @abstractmethod
    def exact_literal(self, number: int, type_: pa.DataType) -> str | None:
        """Write a whole number as ``exact`` reads it; None if no value of the type equals it."""

    def person(self, column: str, type_: pa.DataType) -> str:
        """Read ids of persons so that equal ones are one person; null where there is none."""
        if pt.is_floating(type_):
            number = self.number(column, type_)
            # The sum makes the two zeros one.
            return f"CASE WHEN {number} <> {self.double(math.nan)} THEN {number} + 0 END"
        if pt.is_string(type_) or pt.is_large_string(type_) or pt.is_dictionary(type_):
            return self.written(column, type_)
        return column

    def key(self, column: str, type_: pa.DataType) -> str:
        """Read keys: texts, integers or booleans."""
        if pt.is_boolean(type_):
            return column
        if pt.is_integer(type_):
            return f"CAST({column} AS {self.integer_type})"
        return self.written(column, type_)

    # --- arithmetic -----------------------------------------------------------------------------

    @abstractmethod
    def quotient(self, dividend: str, divisor: str) -> str:
        """Divide whole numbers, the first not negative and the second positive, rounding down."""

    def wide_quotient(self, dividend: str, divisor: str) -> str:
        """The same of integers of the wide type."""
        return self.quotient(dividend, divisor)

    def floor(self, double: str, type_: str | None = None) -> str:
        """The greatest integer not above a double: of 64 bits, or of another type that holds it."""
        return f"CAST(floor({double}) AS {type_ or self.integer_type})"

    @abstractmethod
    def trimmed(self, text: str) -> str:
        """A text without blanks and tabs at its ends."""

    @abstractmethod
    def date(self, days: str) -> str:
        """The date of a number of days since 1970-01-01, within the calendar."""

    def year(self, date: str) -> str:
        """The year of a date within the calendar."""
        return f"CAST(extract(year FROM {date}) AS {self.integer_type})"

    def month(self, date: str) -> str:
        """The month of a date, from 1 on."""
        return f"CAST(extract(month FROM {date}) AS {self.integer_type})"

    def week(self, date: str) -> str:
        """The week of a date by ISO 8601."""
        return f"CAST(extract(week FROM {date}) AS {self.integer_type})"

    def group_type(self, n_cells: int) -> str:
        """The type of integers below ``n_cells`` by which rows are grouped fastest."""
        del n_cells
        return self.integer_type

    def of_type(self, integer: str, type_: str) -> str:
        """An integer of 64 bits in another type that holds it."""
        return integer if type_ == self.integer_type else f"CAST({integer} AS {type_})"

    def total(self, integers: str) -> str:
        """Add up whole numbers that are not negative, without overflow."""
        return f"sum({integers})"

    # --- persons --------------------------------------------------------------------------------

    @abstractmethod
    def priority(self, secret: Purpose, words: Sequence[str]) -> str:
        """A keyed hash of at least 64 bits that can be sorted by.

        Parameters
        ----------
        secret : {"rows", "cells"}
            The column of ``secrets`` that keys it.
        words : sequence of expressions
            What is hashed: of any types, and possibly null. Different words have different hashes,
            but for collisions.
        """

    @abstractmethod
    def copies(self, rows: str, columns: Sequence[str]) -> str:
        """A query that numbers equal rows from 1 on, in any order, as a further column ``copy``.

        Parameters
        ----------
        rows : str
            A query.
        columns : sequence of str
            All columns that it has.
        """

    def prioritized(
        self,
        rows: str,
        persons: Sequence[str],
        choice: Sequence[str],
        carried: Sequence[str],
    ) -> str | None:
        """A query that gives rows their priorities in a way of the engine's own; None: as others.

        Parameters
        ----------
        rows : str
            A query of the columns of the other parameters; see ``persons.PersonColumns``.
        persons, choice, carried : sequence of str

        Returns
        -------
        str or None
            A query of the columns of ``persons``, ``choice`` and ``carried``, and of ``priority``.
        """
        del rows, persons, choice, carried
        return None


def plain(type_: pa.DataType) -> pa.DataType:
    """The type of the values, where an engine says that it holds a dictionary of them."""
    return type_.value_type if pt.is_dictionary(type_) else type_


def no_reading(type_: pa.DataType) -> InternalError:
    """The error of a type that was not refused before, although it does not fit."""
    return InternalError(f"A column of type {type_} is read as what it does not hold.")
