"""Read tables and count their rows in cells: no other package reads data.

``source.py`` joins a table, its public domain and the unit of privacy, and counts it;
``key_selection.py`` selects keys for the publisher. ``reader.py`` is the interface to engines,
``readers/`` holds one file for each engine, ``registry.py`` lists them, ``addresses.py`` reads the
addresses of databases, and ``options.py`` says how files are written.

Values: ``schema.py`` says what a column may hold; ``columns.py`` converts columns to numbers and
labels, ``fields.py`` fields of text, ``objects.py`` Python objects, ``dates.py`` dates and times;
``keys.py`` numbers keys, and ``cells.py`` finds the cells of rows.

Counts: ``scan.py`` counts, in ``packed_counts.py``.

Persons: ``priorities.py`` gives tokens to persons and priorities to rows, by keyed hashes;
``row_order.py`` orders rows by them, ``bounding.py`` bounds each person's rows,
``person_records.py`` holds records of persons, in partitions in memory or in a file.

``check.py`` tells the custodian what a table would lose, by ``losses.py``; ``describe.py`` says
what a file's schema tells; ``steps.py`` reads the steps of a stream.
"""

from sfumato.data.key_selection import select_in_engine
from sfumato.data.reader import Reader, RowReader
from sfumato.data.registry import register_reader
from sfumato.data.source import Source, count, selects, snapshot, source

__all__ = [
    "Reader",
    "RowReader",
    "Source",
    "count",
    "register_reader",
    "select_in_engine",
    "selects",
    "snapshot",
    "source",
]
