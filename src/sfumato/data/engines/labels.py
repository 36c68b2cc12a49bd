"""The cell of a row on an axis of listed labels, as an expression.

Values are compared with labels as a scan compares them (``LabelAxis.lookup``): text with text, byte
by byte, with the blanks at its ends or without; numbers with integers; booleans with booleans. Few
labels are compared one after another; a list of many is joined. The list has each value once, so a
join gives each row at most one cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product

import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.engines.dialect import Dialect, plain
from sfumato.lattice import LabelAxis

COMPARED_LABELS = 12
"""Up to so many labels are compared with one after another."""

BLANKS = " \t"

Joined = Callable[[Mapping[str, int], str], str]
"""Joins a list of distinct literals with their cells to a column, and names the column of cells,
which is null where no literal equals the value.
"""


def labelled(
    axis: LabelAxis,
    column: str,
    type_: pa.DataType,
    dialect: Dialect,
    read: Callable[[str], str],
    joined: Joined,
) -> str:
    """The cell of a row along an axis.

    Parameters
    ----------
    axis : LabelAxis
        Of labels that the column holds.
    column : str
        As it stands in the table.
    type_ : pyarrow.DataType
    dialect : Dialect
    read : callable
        Gives a name to an expression over the table's columns.
    joined : callable
        See ``Joined``.
    """
    type_ = plain(type_)
    missing = _cell(axis.missing_cell, dialect)
    if pt.is_null(type_):
        return missing
    unlisted = _cell(axis.unlisted_cell, dialect)
    if pt.is_boolean(type_):
        value = read(column)
        found = _of_booleans(axis, value, dialect)
        return f"CASE WHEN {value} IS NULL THEN {missing} ELSE {found} END"
    if pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_):
        value = read(dialect.exact(column, type_))
        known = _known(column, type_, dialect, read)
        found = _listed(_numbers(axis, type_, dialect), value, dialect, joined)
    elif dialect.row_by_row and len(axis.listed) <= COMPARED_LABELS:
        return _text_by_text(axis, column, type_, dialect, read)
    else:
        value = read(dialect.written(column, type_))
        known = f"{value} IS NOT NULL"
        found = _of_texts(
            axis, value, dialect, read(dialect.trimmed(value_of(column, type_, dialect))), joined
        )
    return f"CASE WHEN NOT ({known}) THEN {missing} ELSE coalesce({found}, {unlisted}) END"


def value_of(column: str, type_: pa.DataType, dialect: Dialect) -> str:
    """The text of a column."""
    return dialect.written(column, type_)


def _known(column: str, type_: pa.DataType, dialect: Dialect, read: Callable[[str], str]) -> str:
    """Whether a number is neither null nor NaN; never null itself."""
    number = read(dialect.number(column, type_))
    return f"{number} IS NOT NULL AND {number} <> {dialect.double(math.nan)}"


def _cell(cell: int, dialect: Dialect) -> str:
    return f"CAST(NULL AS {dialect.integer_type})" if cell < 0 else dialect.integer(cell)


def _of_booleans(axis: LabelAxis, value: str, dialect: Dialect) -> str:
    cells = [int(cell) for cell in axis.lookup([False, True])]
    no, yes = (_cell(cell, dialect) for cell in cells)
    return f"CASE WHEN {value} THEN {yes} ELSE {no} END"


def _numbers(axis: LabelAxis, type_: pa.DataType, dialect: Dialect) -> dict[str, int]:
    """The literals of the integers among the labels, with their cells."""
    found: dict[str, int] = {}
    for label, cell in zip(axis.listed, axis.listed_cells, strict=True):
        if isinstance(label, int) and not isinstance(label, bool):
            literal = dialect.exact_literal(label, type_)
            if literal is not None:
                found[literal] = cell
    return found


def _text_by_text(
    axis: LabelAxis,
    column: str,
    type_: pa.DataType,
    dialect: Dialect,
    read: Callable[[str], str],
) -> str:
    """The cell of a text, which is looked at more closely only where it is no label as it stands.

    A label as it stands comes first in any case.
    """
    own, bare = _texts(axis)
    value = read(column)
    text = dialect.written(value, type_)
    as_it_stands = _branches(_literals(own, dialect), value, dialect)
    written = _branches(_literals(bare, dialect), dialect.trimmed(value), dialect)
    missing = _cell(axis.missing_cell, dialect)
    closer = (
        f"CASE WHEN {text} IS NULL THEN {missing}"
        f" ELSE coalesce({written}, {_cell(axis.unlisted_cell, dialect)}) END"
    )
    return f"CASE WHEN {value} IS NULL THEN {missing} ELSE coalesce({as_it_stands}, {closer}) END"


def _texts(axis: LabelAxis) -> tuple[dict[str, int], dict[str, int]]:
    """The labels that are texts, and what stands for them once blanks are taken off."""
    listed = zip(axis.listed, axis.listed_cells, strict=True)
    own = {label: cell for label, cell in listed if isinstance(label, str)}
    bare = dict(own)
    if axis.truths is not None and not any(isinstance(label, bool) for label in axis.listed):
        for text, cell in _written_truths(axis).items():
            bare.setdefault(text, cell)
    return own, bare


def _of_texts(axis: LabelAxis, value: str, dialect: Dialect, trimmed: str, joined: Joined) -> str:
    """The cell of a text: that of its own label comes before that of the text without blanks."""
    texts, bare = _texts(axis)
    found = _listed(_literals(bare, dialect), trimmed, dialect, joined)
    if all(text == text.strip(BLANKS) for text in texts):
        # A text that is such a label is the same without the blanks at its ends.
        return found
    own = _listed(_literals(texts, dialect), value, dialect, joined)
    return f"coalesce({own}, {found})"


def _literals(texts: Mapping[str, int], dialect: Dialect) -> dict[str, int]:
    literals = {dialect.text(text): cell for text, cell in texts.items()}
    return {literal: cell for literal, cell in literals.items() if literal is not None}


def _written_truths(axis: LabelAxis) -> dict[str, int]:
    """How booleans are written, in any case, and the cell that each means."""
    assert axis.truths is not None
    found = {}
    for word, digit, cell in zip(("false", "true"), "01", axis.truths, strict=True):
        found[digit] = cell
        for letters in product(*((letter, letter.upper()) for letter in word)):
            found["".join(letters)] = cell
    return found


def _listed(cells: Mapping[str, int], value: str, dialect: Dialect, joined: Joined) -> str:
    if len(cells) > COMPARED_LABELS:
        return joined(cells, value)
    return _branches(cells, value, dialect)


def _branches(cells: Mapping[str, int], value: str, dialect: Dialect) -> str:
    if not cells:
        return f"CAST(NULL AS {dialect.integer_type})"
    branches = " ".join(f"WHEN {text} THEN {dialect.integer(cell)}" for text, cell in cells.items())
    return f"CASE {value} {branches} END"
