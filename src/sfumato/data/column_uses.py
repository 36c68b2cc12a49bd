"""What several axes may read from one column, and what the columns of a table must be called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from sfumato.data.guard import guarded
from sfumato.data.reader import Reader
from sfumato.domain.lattice import GridAxis, LatticeAxis
from sfumato.errors import DataError, UsageError, nearest

if TYPE_CHECKING:
    import pyarrow as pa


def shared(first: LatticeAxis, second: LatticeAxis) -> LatticeAxis:
    """How a column is read that two axes are about.

    Raises
    ------
    UsageError
        If one of them reads the column as values of another kind.
    """
    if first.name == second.name or _readings(first) == _readings(second):
        return second
    if _reads_times(first) and _reads_times(second):
        # Moments say more than times: whether each of them has a zone.
        return first if first.calendar is not msgspec.UNSET else second
    raise UsageError(
        f"axes {first.name!r} and {second.name!r}",
        f"both are about the column {second.column_name!r}, and read it as values of another kind",
        "Ask them one after another, or write the column twice, under two names",
    )


def _readings(axis: LatticeAxis) -> object:
    """What decides how the fields of a column are read."""
    return axis.has_keys, axis.has_labels, axis.listed, axis.value_kinds, axis.calendar


def _reads_times(axis: LatticeAxis) -> bool:
    return axis.value_kinds == {"time"}


def counts_days(column: LatticeAxis) -> bool:
    """Whether a column may hold a period: it is read as dates, or a calendar is made of it."""
    if column.calendar is not msgspec.UNSET:
        return True
    return column.has_edges and column.scale.kind == "date"


def dates(name: str) -> GridAxis:
    """An axis of all dates that Python knows, by which readers read a column as dates."""
    return GridAxis(name, -719_162.0, 2_932_897.0, 1, "day")


def type_names(types: Sequence[pa.DataType]) -> str:
    from sfumato.data.column_types import type_name

    return " and ".join(sorted({type_name(type_) for type_ in types}))


def check_names(table: Reader, columns: Iterable[str], person: Sequence[str] = ()) -> None:
    """Refuse a table that has not each of these columns once; some of them name the person."""
    names = guarded(table.name, table.names)
    for name in columns:
        if name not in names:
            explained = guarded(table.name, table.misreading)
            header = not table.has_schema
            obstacle, remedy = explained or _no_column(name, names, header=header)
            if explained is None and name in person:
                remedy = "Give person the name of a column"
            if name in table.index_names():
                obstacle = "it is the index of the frame, and no column"
                remedy = "Give frame.reset_index()"
            raise DataError(f"{table.name}, column {name!r}", obstacle, remedy)
        if names.count(name) > 1:
            raise DataError(
                f"{table.name}, column {name!r}",
                "several columns have that name",
                "Rename the columns",
            )


def check_person_names(table: Reader, person: Sequence[str]) -> None:
    """Find a misspelt person at once: an account is bound to the person's column for good.

    What else is wrong with the table is said when a question is asked, before the charge.
    """
    if not person:
        return
    try:
        # The part knows whether its first line may hold data, which is not quoted then.
        first = guarded(table.name, table.parts)[0]
        guarded(first.name, first.names)
    except DataError:
        return
    check_names(first, person, person)


def _no_column(name: str, names: Sequence[str], header: bool) -> tuple[str, str]:
    """Say what stands in the way, and what to do, if a table lacks a column.

    The first line of a file may hold data: it is quoted only where it nearly is the name asked for.
    """
    suggestion = nearest(name, names)
    if header and not suggestion.startswith("did you mean"):
        return (
            "there is no column of that name in the first line",
            "Name the axis as the column is named, or give the file a header; if lines stand above "
            "it, add header_row=3 (command line: --header-row 3)",
        )
    return f"there is no column of that name; {suggestion}", "Name the axis as the column is named"
