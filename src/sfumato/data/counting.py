"""Count what is needed of a source: true counts, for a publisher that has charged for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.data.reader import Progress, RowReader, guarded
from sfumato.data.source import Source, as_need, columns_of
from sfumato.domain import Lattice

if TYPE_CHECKING:
    from sfumato.answers import Needs
    from sfumato.data.priorities import ChosenBy
    from sfumato.data.readers.spark import SparkTable
    from sfumato.data.scan import Scan
    from sfumato.domain import Cube


def count(
    source: Source,
    needs: Sequence[Needs | Lattice],
    progress: Progress | None = None,
    *,
    key: bytes | None = None,
    choice: ChosenBy | None = None,
) -> list[Cube]:
    """Count what is needed, in one scan of the columns: one cube for each need, in order.

    The counts are true, and none of them may be published. Only a publisher that has charged for
    them should call this.

    Values outside the bounds are clamped. A row without a person, or with a missing value in a
    column of a lattice, is dropped for that lattice. Labels that are not listed go to ``other``, or
    their rows are dropped. All of this happens silently.

    Parameters
    ----------
    source : Source
    needs : sequence of Needs or Lattice
        What is to be counted in the cells of each lattice. A lattice alone stands for the rows in
        its cells.
    progress : callable or None
        Called after each chunk with the rows done, and all rows or None. These are private facts,
        for the custodian's screen only.
    key : bytes of length 32 or None
        The secret that chooses which rows a person keeps; None draws a fresh one.
    choice : tuple of LatticeAxis or None
        Whose columns' values choose a person's rows, together with the key; from
        ``priorities.chosen_by``. None: all columns of the needs. In two scans of one table with
        the same key and the same columns, each person keeps the same rows.

    Returns
    -------
    list of Cube

    Raises
    ------
    DataError
        As ``Source.require``; or if the file turns out to be damaged further on.
    """
    # Loaded when data are counted, and not with the package.
    from sfumato.basics import thread_limit
    from sfumato.data.bounding import fresh_key
    from sfumato.data.priorities import chosen_by
    from sfumato.data.scan import cubes_of_pieces

    wanted = tuple(as_need(need) for need in needs)
    # Again, though a publisher asked before the charge: files may have changed since.
    source.require(wanted)
    if not wanted:
        return []
    reader = source._reader
    key = key or fresh_key()
    chosen = chosen_by(wanted) if choice is None else choice
    scan = scan_of(source, wanted, key, chosen)
    if not isinstance(reader, RowReader):
        return on_executors(source).count(scan)
    threads = thread_limit()
    pieces = guarded(reader.name, reader.pieces, scan.columns)
    if progress is None:
        return cubes_of_pieces(scan, pieces, threads=threads)
    all_rows = guarded(reader.name, reader.rows)
    return cubes_of_pieces(scan, pieces, lambda rows_done: progress(rows_done, all_rows), threads)


def scan_of(source: Source, needs: tuple[Needs, ...], key: bytes, choice: ChosenBy) -> Scan:
    """Return what is counted of a source, for whoever counts it.

    Parameters
    ----------
    source : Source
    needs : tuple of Needs
    key : bytes of length 32
    choice : tuple of LatticeAxis
        Whose columns' values choose a person's rows.
    """
    from sfumato.data.scan import Scan

    looked_at = [*needs, *(as_need(Lattice((axis,))) for axis in choice)]
    return Scan(
        name=source._reader.name,
        columns=columns_of(source, looked_at),
        needs=needs,
        unit=source.unit,
        key=key,
        row_filter=source._row_filter,
        choice=choice,
    )


def selects(source: Source, needs: Needs) -> bool:
    """Say whether the executors of a source select keys."""
    if isinstance(source._reader, RowReader):
        return False
    return not (needs.sums or needs.of_each_person or len(needs.lattice.keyed) != 1)


def on_executors(source: Source) -> SparkTable:
    """Return the reader of a source that hands out no rows: the scan goes to where they are."""
    from sfumato.data.readers.spark import SparkTable

    reader = source._reader
    assert isinstance(reader, SparkTable)
    return reader
