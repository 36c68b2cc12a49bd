"""Tables in, counted cells out: the only room that reads data.

``source.py`` joins a table, its public domain and the unit of privacy, and counts for the
publisher; ``reader.py`` is the seam to engines, ``readers/`` holds one file an engine, and
``registry.py`` lists them; ``columns.py`` turns columns into numbers and labels; ``scan.py``
counts; ``bounding.py`` bounds each person's rows.
"""

from sfumato.data.reader import CountingReader, Reader, RowReader
from sfumato.data.registry import register_reader
from sfumato.data.source import Source, count, snapshot, source

__all__ = [
    "CountingReader",
    "Reader",
    "RowReader",
    "Source",
    "count",
    "register_reader",
    "snapshot",
    "source",
]
