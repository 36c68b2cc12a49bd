"""The numbers of an answer as a table for people: short ones open, two axes across each other.

``Finding`` is a line of the table of an audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from sfumato.answers import Release, first_rows, without_edges
from sfumato.basics import cell

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 200
SHORT = 24  # rows up to which a table is open
MOST_ACROSS = 12  # columns of a table of two axes
BROAD = 4  # columns beyond which a phone has to scroll
INTERVALS = ("low", "high")
STATISTICS = ("count", "mean", "sum", "variance")
# Columns of what adds up over rows, which a limit on a person's rows may cut.
TOTALS = frozenset({"count", "sum", "total"})
UNKNOWN = "not known"


@dataclass(frozen=True)
class Cell:
    """One field of a table.

    Attributes
    ----------
    text : str
    interval : str
        The interval, where it stands beside the number; otherwise empty.
    hatched : bool
        Whether the value is not known, or cannot be told from 0.
    is_cut : bool
        Whether a limit on a person's rows may have cut it.
    """

    text: str
    interval: str = ""
    hatched: bool = False
    is_cut: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table of a page.

    Attributes
    ----------
    columns : tuple of str
    text : tuple of bool
        Whether each column is text, which is aligned to the left.
    rows : tuple of tuples of Cell
    total : int
        How many rows there are, also those not shown.
    reading : str
        How to read it.
    crossed : bool
        Whether rows and columns are the two axes of the answer.
    has_margins, has_last_sums : bool
        Whether the last row, and the last column, hold sums.
    """

    columns: tuple[str, ...]
    text: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    reading: str
    crossed: bool = False
    has_margins: bool = False
    has_last_sums: bool = False

    @property
    def is_short(self) -> bool:
        """Whether it is shown open."""
        return self.total <= SHORT

    @property
    def is_broad(self) -> bool:
        """Whether a phone has to scroll it sideways."""
        return len(self.columns) > BROAD


def sheet(release: Release) -> Sheet | None:
    """The table of a release that is named for people; None if it has none."""
    if not release.has_table:
        return None
    frame = without_edges(release.in_digits(release.to_frame()))
    laid = _crossed(release, frame) or _listed(release, frame)
    statistic = next((name for name in STATISTICS if name in frame.column_names), "total")
    if not release.guarantee.unit.limits_kept or not TOTALS.intersection(frame.column_names):
        return laid
    if laid.crossed and statistic not in TOTALS:
        return laid
    marked = marked_cut(laid)
    return replace(marked, reading=f"{marked.reading} {cut_note(statistic)}".strip())


def marked_cut(laid: Sheet) -> Sheet:
    """A table whose totals are marked: a limit on each person's rows may have cut them."""
    is_total = [at > 0 if laid.crossed else name in TOTALS for at, name in enumerate(laid.columns)]
    rows = tuple(
        tuple(replace(field, is_cut=cut) for field, cut in zip(row, is_total, strict=True))
        for row in laid.rows
    )
    return replace(laid, rows=rows)


def cut_note(statistic: str) -> str:
    """What the mark beside a total means."""
    # Sums of values below 0 may be lower without the limit.
    otherwise = "higher" if statistic == "count" else "another one"
    return f"△: without the limit on each person's rows, the {statistic} may be {otherwise}."


# --- one row for each number ----------------------------------------------------------------------


def _listed(release: Release, frame: pa.Table) -> Sheet:
    names = frame.column_names
    table = first_rows(frame, MOST_ROWS, release.kind_of_column)
    known = frame["known"][:MOST_ROWS].to_pylist() if "known" in names else [True] * MOST_ROWS
    # What says something only where the value is known.
    emptied = {"mean", "sum", "variance", "value"}.difference(release.label_columns)
    if "quantile" not in names:
        # Of several values, it is the column of their names.
        emptied -= {"value"}
    rows = tuple(
        tuple(
            Cell(UNKNOWN, hatched=True) if not is_known and name in emptied else Cell(text)
            for name, text in zip(names, row, strict=True)
        )
        for row, is_known in zip(table.rows, known, strict=False)
    )
    reading = _reading(set(names))
    return Sheet(table.columns, table.text, rows, table.total, reading)


def _reading(columns: set[str]) -> str:
    sentences = []
    if set(INTERVALS) <= columns:
        sentences.append(
            "Low and high bound each number separately, with 95% confidence, for the rows counted."
        )
    if "rank_error" in columns:
        sentences.append("Rank error: by how many rows the rank may be off, with 95% confidence.")
    if "known" in columns:
        sentences.append("Where known says no, nothing is known but the interval, if there is one.")
    return " ".join(sentences)


# --- two axes across each other -------------------------------------------------------------------


def _crossed(release: Release, frame: pa.Table) -> Sheet | None:
    """Return the longer axis down and the shorter one across; None unless there are two axes.

    A field whose interval reaches 0 is hatched if it is a count, and one that is not known always.
    """
    names = frame.column_names
    statistic = next((name for name in STATISTICS if name in names), None)
    if statistic is None or len(release.layout) != 2:
        return None
    if not {*release.layout, *INTERVALS} <= {*names}:
        return None
    labels = {name: list(dict.fromkeys(frame[name].to_pylist())) for name in release.layout}
    # Of axes of one length, the first runs down.
    down, across = sorted(release.layout, key=lambda name: -len(labels[name]))
    heads = labels[across]
    # Each field of the table laid out must have a number, or the numbers are listed.
    n_fields = len(labels[down]) * len(heads)
    if not 0 < frame.num_rows == n_fields or len(heads) > MOST_ACROSS:
        return None
    fields, half = _fields(frame, statistic, (down, across))
    if len(fields) != frame.num_rows:
        return None
    rows = _field_rows(fields, labels[down][:MOST_ROWS], heads)
    return Sheet(
        columns=(f"{down} / {across}", *(cell(head, "label") for head in heads)),
        text=(True, *[False] * len(heads)),
        rows=rows,
        total=len(labels[down]),
        reading=_crossed_reading(statistic, half, rows),
        crossed=True,
    )


def _fields(
    frame: pa.Table, statistic: str, axes: tuple[str, str]
) -> tuple[dict[tuple[object, object], Cell], str]:
    """Return the fields by their labels, and the half-width of all, or "" where they differ."""
    values, lows, highs = (frame[name].to_pylist() for name in (statistic, *INTERVALS))
    numbers = list(zip(values, lows, highs, strict=True))
    is_even = len({(high - value, value - low) for value, low, high in numbers}) == 1
    known = frame["known"].to_pylist() if "known" in frame.column_names else [True] * len(values)
    places = zip(*(frame[name].to_pylist() for name in axes), strict=True)
    fields = {
        place: _field(statistic, *ends, is_known, is_even)
        for place, ends, is_known in zip(places, numbers, known, strict=True)
    }
    return fields, cell(highs[0] - values[0]) if is_even else ""


def _field(
    statistic: str, value: float | None, low: float, high: float, is_known: bool, is_even: bool
) -> Cell:
    hatched = not is_known or (statistic == "count" and low <= 0)
    interval = "" if is_even else f"{cell(low)} to {cell(high)}"
    text = cell(value) if is_known and value is not None else UNKNOWN
    return Cell(text, interval, hatched)


def _field_rows(
    fields: Mapping[tuple[object, object], Cell], labels: Sequence[object], heads: Sequence[object]
) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (Cell(cell(label, "label")), *(fields[label, head] for head in heads)) for label in labels
    )


def _crossed_reading(statistic: str, half: str, rows: Sequence[Sequence[Cell]]) -> str:
    reach = (
        f"Each {statistic} is within ±{half}" if half else f"Below each {statistic} is its range"
    )
    sentence = f"{reach}, with 95% confidence, for the rows counted."
    if any(field.hatched for row in rows for field in row):
        meaning = "may be 0" if statistic == "count" else "is not known"
        sentence += f" A hatched {statistic} {meaning}."
    return sentence


# --- the table of an audit ------------------------------------------------------------------------


@runtime_checkable
class Finding(Protocol):
    """One line of an audit: what reports need of ``sfumato.audit.Finding``."""

    columns: ClassVar[tuple[str, ...]]

    @property
    def subject(self) -> str:
        """The mechanism or question."""

    @property
    def failed(self) -> bool:
        """Whether the subject exceeds its claim or could not be judged."""

    @property
    def ok(self) -> bool:
        """Whether it did not fail, and a fault would have been detected."""

    def row(self) -> tuple[str, ...]:
        """The line as text, in the order of ``columns``."""
