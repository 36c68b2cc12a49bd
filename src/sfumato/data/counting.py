"""Count what is needed of a source: true counts, for a publisher that has charged for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.data.guard import guarded
from sfumato.data.reader import CountingReader, Progress
from sfumato.data.source import Source, as_need
from sfumato.errors import DataError
from sfumato.lattice import Lattice
from sfumato.privacy.unit import Unit

if TYPE_CHECKING:
    from sfumato.answers.counts import Needs
    from sfumato.cube import Cube
    from sfumato.data.row_priorities import ChosenBy


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
        ``row_priorities.chosen_by``. None: all columns of the needs. In two scans of one table with
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
    from sfumato.data.bounding import fresh_key
    from sfumato.data.row_priorities import chosen_by
    from sfumato.data.scan import scan

    asked = [as_need(need) for need in needs]
    source.require(asked)
    if not asked:
        return []
    reader = source._reader
    key = key or fresh_key()
    chosen = chosen_by(asked) if choice is None else choice
    if isinstance(reader, CountingReader):
        return _by_engine(told(source, reader, chosen), asked, source.unit, key, progress)
    looked_at = [*asked, *(as_need(Lattice((axis,))) for axis in choice or ())]
    columns = source._columns(looked_at)
    return scan(reader, columns, asked, source.unit, key, progress, source._row_filter, chosen)


def n_queries(source: Source, needs: Sequence[Needs]) -> int:
    """In how many queries they are counted: rows take one scan, and engines a query for each.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100))
    >>> ages = sf.source(np.array([[31.0], [64.0]]), domain)
    >>> n_queries(ages, [sf.Histogram("age").needs(domain), sf.Sum("age").needs(domain)])
    1
    """
    return len(needs) if isinstance(source._reader, CountingReader) else 1


def told(source: Source, reader: CountingReader, choice: ChosenBy) -> CountingReader:
    """The reader of a source, told how rows are chosen and which rows there are."""
    row_filter = source._row_filter
    return reader.choosing(choice, () if row_filter is None else row_filter.conditions)


def _by_engine(
    reader: CountingReader,
    needs: Sequence[Needs],
    unit: Unit,
    key: bytes,
    progress: Progress | None,
) -> list[Cube]:
    """Let the engine count, and check that it counted on the lattices asked for."""

    def counted() -> list[Cube]:
        cubes = reader.count(needs, unit, key, progress)
        if [cube.lattice for cube in cubes] != [need.lattice for need in needs]:
            raise DataError(
                reader.name,
                "its engine counted other cells than were asked for",
                "Report it to the author of its reader",
            )
        return cubes

    return guarded(reader.name, counted)
