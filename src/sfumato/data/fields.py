"""Read the fields of text files as values, each field by itself.

The domain's declaration says how a field is read, and nothing else does. A field that does not
parse is a missing value.

* Numbers: an optional sign and digits, with a point or an exponent; ``inf``, ``infinity``; ``true``
  is 1, ``false`` is 0.
* Dates and times, by ISO 8601: a date; or a date, a space or T, and a time to the hour, the minute,
  the second or a part of it, with or without a zone (``Z``, ``+01``, ``+0100``, ``+01:00``). A time
  without a zone is read as UTC. ``sfumato.domain.times`` reads a single one.
* Labels: text as it stands; whole numbers by value; booleans as ``true``, ``t``, ``yes``, ``y`` or
  ``1``, and their opposites, in any case.
* Keys and persons: text as it stands.

A ``Notation`` says where numbers or dates are written otherwise: decimal commas, signs between
thousands, a format of dates.

Blanks around numbers, dates and booleans do not matter. Text that is not UTF-8 does not parse.

A column whose fields all have one plain form is read as a whole, which is fast. Any other column is
read field by field where it has to be. Both give the same values (``tests/data/test_fields.py``).

*Forms* of fields that did not parse are counted for ``sfumato check``, which names the option that
reads them. The counts are true of the data, and serve the custodian's screen only.

*Missing fields.* In all tables of text a field is missing if nothing stands in it but blanks, or
``NA``, ``N/A``, ``NaN``, ``nan``, ``NULL``, ``null`` or one of a few more texts (pyarrow's list),
unless the domain lists that text as a label. A field that does not parse is missing as well.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import csv

from sfumato.basics import binary_of, is_true, pc, several, without
from sfumato.data.columns import decoded, text_of
from sfumato.data.dates import (
    MOMENT,
    all_alike,
    holds_times,
    iso_fields,
    of_fields,
)
from sfumato.data.options import NO_OPTIONS, PLAIN, FileOptions, Notation, stating
from sfumato.data.reader import Column, Columns, Losses, NotingReader, check_file
from sfumato.data.schema import AS_DECLARED
from sfumato.domain import BLANKS, Label, field_microseconds
from sfumato.errors import DataError

# Reads one field by itself; None where it does not parse.
ReadOne: TypeAlias = Callable[[bytes], object]

TIMESTAMP = pa.timestamp("us", "UTC")
_TRUTHS = {b"1": True, b"true": True, b"0": False, b"false": False}
_ANSWERS = {
    **_TRUTHS,
    b"t": True,
    b"yes": True,
    b"y": True,
    b"f": False,
    b"no": False,
    b"n": False,
    # A program that knows no missing boolean writes numbers.
    b"1.0": True,
    b"0.0": False,
}


def declared(column: Column) -> pa.DataType:
    """Return the Arrow type of a column of text, by its declaration alone."""
    if column is None or column.has_keys:
        return pa.string()
    if column.calendar is not msgspec.UNSET:
        return MOMENT
    if column.has_labels:
        kinds = column.value_kinds
        if "text" in kinds:
            return pa.string()
        return pa.int64() if "number" in kinds else pa.bool_()
    return pa.float64() if column.time is None else TIMESTAMP


def require_exact_ids(
    name: str, person: str | None, columns: Columns, *, objects: bool = False
) -> None:
    """Refuse to read ids of persons as something else than they are, because of an axis.

    As numbers, two long ids could become equal; as numbers or dates, two ways to write one.

    Parameters
    ----------
    name : str
        What errors call the table.
    person : str or None
        The column that names the person.
    columns : Columns
    objects : bool
        Whether the column holds objects of any type: as keys or labels, True would be "True".

    Raises
    ------
    DataError
        If that column is an axis of anything but text as well.
    """
    column = None if person is None else columns.get(person)
    if column is None:
        return
    is_text = pa.types.is_string(declared(column))
    if is_text and not (objects and (column.has_keys or "boolean" in column.value_kinds)):
        return
    kept_as = "as an object" if objects else "as text"
    raise DataError(
        f"{name}, column {person!r}",
        f"it names the person, {kept_as}, and is an axis of other values at the same time",
        "Write it twice, under two names, or write the table as Parquet",
    )


def parse(texts: pa.Array, column: Column, notation: Notation = PLAIN) -> pa.Array:
    """Read the fields of a column.

    Parameters
    ----------
    texts : pyarrow.BinaryArray of shape (rows,)
        The fields as bytes; null where a field is missing.
    column : Column
    notation : Notation
        How numbers and dates are written.

    Returns
    -------
    pyarrow.Array of shape (rows,)
        The values, of type ``declared(column)``; null where a field is missing or does not parse.
        Whole-number labels may come in dictionary form.

    >>> from sfumato.domain.domain import Interval, grid_axis
    >>> axis = grid_axis("x", Interval(0, 9), 3)
    >>> parse(pa.array([b"1", b" 2.5", b"two", None, b"true"]), axis).to_pylist()
    [1.0, 2.5, None, None, 1.0]
    """
    type_ = declared(column)
    if pa.types.is_float64(type_):
        return _numbers(_in_plain_notation(texts, notation))
    if holds_times(type_):
        dates = notation.dates
        times = _timestamps(texts if dates is None else iso_fields(texts, dates))
        if type_ == MOMENT:
            times = all_alike(times, zoned=dates.has_zone) if dates else of_fields(texts, times)
        return times
    if pa.types.is_boolean(type_):
        return _one_by_one(texts, _answer, type_)
    if column is None or pa.types.is_string(type_):
        try:
            return texts.cast(pa.string())
        except pa.ArrowInvalid:
            return _one_by_one(texts, text_of, pa.string())
    return _whole_labels(_in_plain_notation(texts, notation), column.listed)


# --- whole columns and single fields ------------------------------------------------------------


def _one_by_one(texts: pa.Array, read_one: ReadOne, type_: pa.DataType) -> pa.Array:
    encoded = texts.dictionary_encode()
    values = pa.array([read_one(raw) for raw in encoded.dictionary.to_pylist()], type_)
    return values.take(encoded.indices)


def _plain_as_a_whole(
    texts: pa.Array,
    is_plain: pa.Array,
    read_all: Callable[[pa.Array], pa.Array],
    read_one: ReadOne,
) -> pa.Array:
    is_plain = is_true(is_plain)
    values = read_all(without(texts, pc.invert(is_plain)))
    is_odd = pc.and_not(texts.is_valid(), is_plain)
    # Times are read one by one as integers, and cast afterwards.
    type_ = pa.int64() if pa.types.is_timestamp(values.type) else values.type
    odd_values = _one_by_one(texts.filter(is_odd), read_one, type_)
    return pc.replace_with_mask(values, is_odd, odd_values.cast(values.type))


# --- numbers ------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(rb"[+-]?[0-9]{1,40}")
_PLAIN_NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
# Signs between thousands that look alike: blanks, and apostrophes.
_ALIKE = {" ": ("\u00a0", "\u202f"), "'": ("’",)}


def _in_plain_notation(texts: pa.Array, notation: Notation) -> pa.Array:
    """Rewrite numbers with a decimal point and nothing between thousands.

    Null where a number has a sign in a place where it means nothing, such as 1.5 where the decimals
    follow a comma.
    """
    if notation.has_plain_numbers:
        return texts
    if notation.thousands is not None:
        sign = notation.thousands
        for other in _ALIKE.get(sign, ()):
            texts = pc.replace_substring(texts, other, sign)
        # Where the sign stands between all thousands, it is taken out.
        grouped = pc.match_substring_regex(
            texts,
            rf"^[ \t]*[+-]?[0-9]{{1,3}}([{sign}][0-9]{{3}})+([{notation.decimal}][0-9]*)?[ \t]*$",
        )
        texts = pc.if_else(grouped, pc.replace_substring(texts, sign, ""), texts)
    if notation.decimal == ",":
        texts = without(texts, pc.match_substring(texts, "."))
        texts = pc.replace_substring(texts, ",", ".")
    return texts


def _numbers(texts: pa.Array) -> pa.Array:
    try:
        return _doubles(texts)
    except pa.ArrowInvalid:
        is_plain = pc.match_substring_regex(texts, _PLAIN_NUMBER)
        return _plain_as_a_whole(texts, is_plain, _doubles, _number)


def _doubles(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.string()).cast(pa.float64())


def _number(raw: bytes) -> float | None:
    truth = _TRUTHS.get(raw.strip(BLANKS).lower())
    return _decimal(raw) if truth is None else float(truth)


def _decimal(raw: bytes) -> float | None:
    raw = raw.strip(BLANKS)
    if _NUMBER.fullmatch(raw):
        return float(raw)
    sign = raw[:1] if raw[:1] in (b"+", b"-") else b""
    word = raw.removeprefix(sign).lower()
    if word in (b"inf", b"infinity"):
        return -math.inf if sign == b"-" else math.inf
    return math.nan if word == b"nan" or word.startswith(b"nan(") else None


def _answer(raw: bytes) -> bool | None:
    return _ANSWERS.get(raw.strip(BLANKS).lower())


def _whole_labels(texts: pa.Array, listed: Sequence[Label]) -> pa.Array:
    known = frozenset(listed)
    stand_in = unlisted_number(known)

    def read_one(raw: bytes) -> int | None:
        # Whole numbers are not read as doubles: two long labels would then become equal.
        is_whole = _WHOLE.fullmatch(raw.strip(BLANKS))
        number = int(raw) if is_whole else _decimal(raw)
        if number is None or math.isnan(number):
            return None
        return whole_label(number, known, stand_in)

    encoded = texts.dictionary_encode()
    numbers = pa.array([read_one(raw) for raw in encoded.dictionary.to_pylist()], pa.int64())
    if numbers.null_count:
        return numbers.take(encoded.indices)
    return pa.DictionaryArray.from_arrays(encoded.indices, numbers)


# The least label that is a whole number.
LEAST_LABEL = -(2**63)


def unlisted_number(listed: Collection[Label]) -> int:
    """Choose what all numbers become that are no labels of 64 bits: a number that is not listed."""
    return next(number for number in count(LEAST_LABEL) if number not in listed)


def whole_label(number: float | Decimal, listed: Set[Label], stand_in: int) -> int:
    """Read a number as a label: as itself if it is whole and has 64 bits, or is listed.

    >>> whole_label(7.0, frozenset([1, 2]), -9), whole_label(7.5, frozenset([1, 2]), -9)
    (7, -9)
    """
    if number in listed:
        return int(number)
    if not LEAST_LABEL < number < -LEAST_LABEL:
        return stand_in
    whole = int(number)
    return whole if whole == number else stand_in


# --- dates and times ----------------------------------------------------------------------------

_ZONE = r"(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_CLOCK = r"[ T]([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"

# Days that every month has, in years that every engine knows; other days are read one by one.
_PLAIN_DAY = r"[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"

# The types to which Arrow may cast a column of dates or times as a whole.
_TIME_TYPES = (
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)


def _timestamps(texts: pa.Array) -> pa.Array:
    first = texts.filter(texts.is_valid()).slice(0, 1)
    for type_ in _TIME_TYPES:
        # The first field only says which cast is likely to succeed. All casts that succeed give
        # the same values.
        if _cast(first, type_) is None:
            continue
        times = _cast(texts, type_)
        if times is not None:
            return _in_microseconds(times)
    has_zone = is_true(pc.match_substring_regex(texts, f"^{_PLAIN_DAY}{_CLOCK}{_ZONE}$"))
    no_zone = is_true(pc.match_substring_regex(texts, f"^{_PLAIN_DAY}({_CLOCK})?$"))

    def read_all(plain: pa.Array) -> pa.Array:
        zoned = without(plain, pc.invert(has_zone)).cast(pa.string()).cast(TIMESTAMP)
        local = without(plain, pc.invert(no_zone)).cast(pa.string()).cast(pa.timestamp("us"))
        return pc.coalesce(zoned, local.cast(pa.int64()).cast(TIMESTAMP))

    return _plain_as_a_whole(texts, pc.or_(has_zone, no_zone), read_all, field_microseconds)


def _cast(texts: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Return the column as a whole in one type; None if a field is not of it."""
    try:
        return texts.cast(pa.string()).cast(type_)
    except pa.ArrowInvalid:
        return None


def _in_microseconds(times: pa.Array) -> pa.Array:
    """Convert any of the types to microseconds in UTC, dropping what is finer."""
    if pa.types.is_date32(times.type):
        return times.cast(pa.timestamp("us")).cast(pa.int64()).cast(TIMESTAMP)
    if times.type.unit == "ns":
        times = pc.floor_temporal(times, unit="microsecond").cast(pa.timestamp("us", times.type.tz))
    return times.cast(pa.int64()).cast(TIMESTAMP)


# --- forms of fields that did not parse ---------------------------------------------------------


class WrittenForm(msgspec.Struct, frozen=True):
    """A form of fields, and what to do about it.

    Attributes
    ----------
    of_times : bool
        Whether the column is declared to hold dates or times; otherwise it holds numbers.
    pattern : re.Pattern of bytes
    looks : str
        What the fields look like.
    remedy : str
    """

    of_times: bool
    pattern: re.Pattern[bytes]
    looks: str
    remedy: str


WRITTEN_FORMS = (
    WrittenForm(
        of_times=False,
        pattern=re.compile(rb"[+-]?[0-9]+,[0-9]+"),
        looks="have a decimal comma",
        remedy=f"Add {stating('decimal', ',')}",
    ),
    WrittenForm(
        of_times=False,
        pattern=re.compile(rb"[+-]?[0-9]{1,3}([.,' ][0-9]{3})+([.,][0-9]+)?"),
        looks="have a sign between thousands",
        remedy=f"Add {stating('thousands', '.')}, or the sign that it is",
    ),
    WrittenForm(
        of_times=True,
        pattern=re.compile(rb"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}([ T,].*)?"),
        looks="look like dates of another form",
        remedy=f"Add {stating('date_format', '%d.%m.%Y')}, or the format that it is",
    ),
    WrittenForm(
        of_times=True,
        pattern=re.compile(rb"[0-9]{5}(\.[0-9]+)?"),
        looks="are numbers, as Excel counts days",
        remedy="Format the column as dates in Excel, and save the file again",
    ),
)


def forms_of(fields: Iterable[bytes], *, of_times: bool) -> Counter[str]:
    """Count the fields of each form; a field counts for the first that it has.

    Returns
    -------
    Counter of str
        By what the fields look like.

    >>> forms_of([b"72,5", b"x", b"1,5"], of_times=False)
    Counter({'have a decimal comma': 2})
    """
    known = [form for form in WRITTEN_FORMS if form.of_times == of_times]
    forms = Counter[str]()
    for field in fields:
        looks = (form.looks for form in known if form.pattern.fullmatch(field.strip()))
        if (first := next(looks, None)) is not None:
            forms[first] += 1
    return forms


def sentence(column: str, looks: str, fields: int) -> str:
    """Say what fields of a column look like that do not parse, and what to do."""
    remedy = next(form.remedy for form in WRITTEN_FORMS if form.looks == looks)
    return f"{column}: {fields:,} of the fields that do not parse {looks}. {remedy}."


# --- tables of text -----------------------------------------------------------------------------

MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)


def text_schema(columns: Columns, name: str, person: str | None) -> pa.Schema:
    """Give the types that the domain declares. Nothing is read.

    Parameters
    ----------
    columns : Columns
    name : str
        What errors call the table.
    person : str or None
        The column that names the person.

    Raises
    ------
    DataError
        If that column is an axis of anything but text as well.
    """
    require_exact_ids(name, person, columns)
    fields = [(column_name, declared(column)) for column_name, column in columns.items()]
    return pa.schema([pa.field(*field, metadata=AS_DECLARED) for field in fields])


MERGED = "as merged cells leave"


class TextFile(NotingReader):
    """A file of text, as far as that is alike for all: the domain declares the types.

    A subclass reads the names of the columns, and notes what it loses in reading the rows.
    """

    in_memory = False
    has_schema = False

    def __init__(
        self,
        path: Path,
        name: str,
        person: str | None = None,
        options: FileOptions = NO_OPTIONS,
    ) -> None:
        self.path = path
        self.name = name
        self._person = person
        self._options = options

    @property
    @abstractmethod
    def names_place(self) -> str:
        """Where the columns are named, such as "the first line": what messages call it."""

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types that the domain declares. The file is not read."""
        return text_schema(columns, self.name, self._person)

    def title_form(self) -> str | None:
        """Say what makes the names look like a title, by their form alone; None if nothing does.

        No name is quoted, and nothing below them is looked at.
        """
        filled = [place for place, name in enumerate(self.names()) if name]
        if len(filled) < 2:
            return f"{self.names_place} has {'one' if filled else 'no'} name only, as a title has"
        n_empty = filled[-1] - filled[0] + 1 - len(filled)
        if not n_empty:
            return None
        return f"{self.names_place} has {several(n_empty, 'empty cell')} between names, {MERGED}"

    def other_separator(self) -> tuple[str, str] | None:
        """Say whether the names look as if another sign separated them; those of a sheet do not."""
        return None

    def misreading(self) -> tuple[str, str] | None:
        """Say whether another sign seems to separate the fields, or the names are a title."""
        check_file(self.path, self.name)
        try:
            separator = self.other_separator()
            form = None if separator else self.title_form()
        except DataError:
            # The refusal of the names says what is wrong.
            return None
        if form is None:
            return separator
        row = self._options.header_row + 1
        option = f"header_row={row} (command line: --header-row {row})"
        remedy = f"Add {option} if another row names the columns"
        if form.endswith(MERGED):
            remedy += "; of merged cells, only the first has the name, so give each its own"
        return form, remedy


# --- missing fields -------------------------------------------------------------------------------


def quick_types(columns: Columns, options: FileOptions) -> dict[str, pa.DataType]:
    """Give the types of columns of text that need not be read as bytes, field by field.

    Numbers may be read as doubles, as long as each field of them is one or stands for a missing
    value in all columns. Labels may be read as a dictionary of bytes.
    """
    types: dict[str, pa.DataType] = {}
    listed = {label for column in columns.values() for label in _listed(column)}
    for name, column in columns.items():
        if pa.types.is_float64(declared(column)):
            if listed.isdisjoint(MISSING) and options.notation(name).has_plain_numbers:
                types[name] = pa.float64()
        elif column is not None and column.has_labels and column.calendar is msgspec.UNSET:
            types[name] = pa.dictionary(pa.int32(), pa.binary())
    return types


def _listed(column: Column) -> tuple[Label, ...]:
    return () if column is None else column.listed


def _without_missing(texts: pa.Array, column: Column, type_: pa.DataType) -> pa.Array:
    """Make null what stands for a missing value in this column, with or without blanks around."""
    listed = _listed(column)
    missing = binary_of([text.encode() for text in MISSING if text not in listed])
    texts = without(texts, pc.is_in(without_blanks(texts), missing))
    # Of numbers, dates and booleans, blanks are no part; of a label, they may be.
    return texts if pa.types.is_string(type_) else without_blanks(texts)


def without_blanks(texts: pa.Array) -> pa.Array:
    """Take the blanks off both ends of fields: pyarrow.BinaryArray of the same length.

    >>> without_blanks(pa.array([b" a", None, b"b c\\t"], pa.binary())).to_pylist()
    [b'a', None, b'b c']
    """
    _, offsets, data = texts.buffers()
    if data is None or data.size == 0:
        return texts
    # To look at the first and last bytes is far quicker than to look for blanks in all fields.
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    is_filled = ends[1:] > ends[:-1]
    text = np.frombuffer(data, np.uint8)
    outer = np.append(text[ends[:-1][is_filled]], text[ends[1:][is_filled] - 1])
    if not np.isin(outer, list(b" \t")).any():
        return texts
    return pc.replace_substring_regex(texts, r"^[ \t]+|[ \t]+$", "")


# --- batches --------------------------------------------------------------------------------------


def parsed_column(
    texts: pa.Array, name: str, column: Column, losses: Losses, notation: Notation = PLAIN
) -> pa.Array:
    """Read the fields of a column as it is declared, and count what does not parse.

    Parameters
    ----------
    texts : pyarrow.BinaryArray or DictionaryArray of shape (rows,)
        The fields; null where a field is missing. Each distinct field of a dictionary is read
        once.
    name : str
    column : Column
    losses : Losses
        What does not parse is added to it.
    notation : Notation
        How numbers and dates are written.
    """
    type_ = declared(column)
    if pa.types.is_dictionary(texts.type):
        values = _parsed_dictionary(texts, column, type_, notation)
        if values is not None:
            return values
    # Losses are counted row by row.
    texts = _without_missing(decoded(texts), column, type_)
    values = parse(texts, column, notation)
    if values.null_count > texts.null_count:
        losses.unparsed[name] += values.null_count - texts.null_count
        unparsed = texts.filter(values.is_null()).drop_null().to_pylist()
        n_invalid = sum(text_of(raw) is None for raw in unparsed)
        losses.not_utf8.update({name: n_invalid} if n_invalid else {})
        for looks, n_fields in forms_of(unparsed, of_times=holds_times(type_)).items():
            losses.forms[name, looks] += n_fields
    return values


def _parsed_dictionary(
    encoded: pa.Array, column: Column, type_: pa.DataType, notation: Notation
) -> pa.Array | None:
    """Read the fields of a dictionary; None if one of them does not parse."""
    fields = encoded.dictionary
    if pa.types.is_string(type_) and len(fields) <= 1000:
        texts = [None if field is None else text_of(field) for field in fields.to_pylist()]
        # A small file then needs none of Arrow's functions: their import takes longer than its
        # rows.
        if all(text is not None and text.strip(" \t") not in MISSING for text in texts):
            return pa.DictionaryArray.from_arrays(encoded.indices, fields.view(type_))
    fields = _without_missing(fields, column, type_)
    values = decoded(parse(fields, column, notation))
    if values.null_count > fields.null_count:
        return None
    indices = encoded.indices
    if values.null_count:
        indices = without(indices, values.is_null().take(indices))
    return pa.DictionaryArray.from_arrays(indices, values)


def either(values: pa.Array, others: pa.Array) -> pa.Array:
    """Fill the nulls of a column from another one."""
    return pc.coalesce(decoded(values), decoded(others))
