"""Tables in, counted cells out: the only room that reads data.

``source.py`` joins a table, its public domain and the unit of privacy, and counts for the publisher;
``tables.py`` opens files, frames and arrays; ``columns.py`` turns columns into numbers and labels;
``scan.py`` counts; ``bounding.py`` bounds each person's rows.
"""

from sfumato.data.source import Source, count, source

__all__ = ["Source", "count", "source"]
