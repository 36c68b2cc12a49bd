"""Read tables and count their rows in cells: no other package reads data.

``source.py`` joins a table, its public domain and the unit of privacy, and ``counting.py`` counts
for the publisher. ``reader.py`` is the interface to engines; ``readers/`` holds one file for each
engine, and ``registry.py`` lists them. ``column_types.py`` says what a column may hold, and
``columns.py`` converts columns to numbers and labels. ``scan.py`` counts, by ``tallies.py``, and
``bounding.py`` bounds each person's rows. ``check.py`` tells the custodian what a table would lose.
"""

from sfumato.data.counting import count
from sfumato.data.reader import Reader, RowReader
from sfumato.data.registry import register_reader
from sfumato.data.selecting import select, selects
from sfumato.data.source import Source, snapshot, source

__all__ = [
    "Reader",
    "RowReader",
    "Source",
    "count",
    "register_reader",
    "select",
    "selects",
    "snapshot",
    "source",
]
