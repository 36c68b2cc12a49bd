"""What tables of text have in common: the domain declares the types, and each field is read alone.

A field is missing if nothing stands in it but blanks, or ``NA``, ``N/A``, ``NaN``, ``nan``,
``NULL``, ``null`` or one of a few more texts (pyarrow's list), unless the domain lists that text as
a label. A field that does not parse is missing as well (see ``fields``).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from sfumato.data.column_types import AS_DECLARED
from sfumato.data.columns import decoded, text_of
from sfumato.data.fields import declared, parse, require_exact_ids
from sfumato.data.file_options import PLAIN, Notation
from sfumato.data.moments import holds_times
from sfumato.data.reader import Column, Columns, Losses
from sfumato.data.written_forms import forms_of
from sfumato.domain.lattice import Label

MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)

_BLANK_BYTES = (ord(" "), ord("\t"))
_OUTER_BLANKS = r"^[ \t]+|[ \t]+$"


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
    fields = [(each, declared(column)) for each, column in columns.items()]
    return pa.schema([pa.field(*field, metadata=AS_DECLARED) for field in fields])


# --- missing fields -------------------------------------------------------------------------------


def common_missing(columns: Columns) -> list[str]:
    """Give the texts that stand for a missing value in all of these columns."""
    listed = {label for column in columns.values() for label in _listed(column)}
    return [text for text in MISSING if text not in listed]


def _listed(column: Column) -> tuple[Label, ...]:
    return () if column is None else column.listed


def _without_missing(texts: pa.Array, column: Column) -> pa.Array:
    """Make null what stands for a missing value in this column, with or without blanks around."""
    listed = _listed(column)
    missing = pa.array([text.encode() for text in MISSING if text not in listed], pa.binary())
    stripped = without_blanks(texts)
    texts = pc.if_else(pc.is_in(stripped, missing), None, texts)
    # Of numbers, dates and booleans, blanks are no part; of a label, they may be.
    return texts if pa.types.is_string(declared(column)) else without_blanks(texts)


def without_blanks(texts: pa.Array) -> pa.Array:
    """Take the blanks off both ends of fields: pyarrow.BinaryArray of the same length.

    >>> without_blanks(pa.array([b" a", None, b"b c\\t"], pa.binary())).to_pylist()
    [b'a', None, b'b c']
    """
    if not _have_outer_blanks(texts):
        return texts
    return pc.replace_substring_regex(texts, _OUTER_BLANKS, "")


def _have_outer_blanks(texts: pa.Array) -> bool:
    """Whether any field begins or ends with a blank: far quicker than to look for them all."""
    _, offsets, data = texts.buffers()
    if data is None or data.size == 0:
        return False
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    is_filled = ends[1:] > ends[:-1]
    text = np.frombuffer(data, np.uint8)
    outer = np.append(text[ends[:-1][is_filled]], text[ends[1:][is_filled] - 1])
    return bool(np.isin(outer, _BLANK_BYTES).any())


# --- batches --------------------------------------------------------------------------------------


def parsed_column(
    texts: pa.Array, name: str, column: Column, losses: Losses, notation: Notation = PLAIN
) -> pa.Array:
    """Read the fields of a column as it is declared, and count what does not parse.

    Parameters
    ----------
    texts : pyarrow.BinaryArray of shape (rows,)
        The fields; null where a field is missing.
    name : str
    column : Column
    losses : Losses
        What does not parse is added to it.
    notation : Notation
        How numbers and dates are written.
    """
    texts = _without_missing(texts, column)
    values = parse(texts, column, notation)
    if values.null_count > texts.null_count:
        losses.unparsed[name] += values.null_count - texts.null_count
        unparsed = texts.filter(values.is_null()).drop_null().to_pylist()
        n_invalid = sum(text_of(raw) is None for raw in unparsed)
        losses.not_utf8.update({name: n_invalid} if n_invalid else {})
        of_times = holds_times(declared(column))
        for looks, n_fields in forms_of(unparsed, of_times=of_times).items():
            losses.forms[name, looks] += n_fields
    return values


def either(values: pa.Array, others: pa.Array) -> pa.Array:
    """Fill the nulls of a column from another one."""
    return pc.coalesce(decoded(values), decoded(others))
