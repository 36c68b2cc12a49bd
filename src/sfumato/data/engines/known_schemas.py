"""The types of a table's columns, asked of its engine once for each form of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa


class KnownSchemas:
    """Schemas that an engine gave, kept as long as the table cannot have another form.

    >>> known = KnownSchemas()
    >>> asked = []
    >>> for form in (1, 1, 2, None, None):
    ...     schema = known.schema(["x"], form, lambda: asked.append(form) or pa.schema([]))
    >>> asked
    [1, 2, None, None]
    """

    def __init__(self) -> None:
        self._form: object = None
        self._schemas: dict[tuple[str, ...], pa.Schema] = {}

    def schema(
        self, columns: Iterable[str], form: object, ask: Callable[[], pa.Schema]
    ) -> pa.Schema:
        """Give the schema of some columns.

        Parameters
        ----------
        columns : iterable of str
        form : object
            Equal for as long as the table has the same columns of the same types, such as the
            number of a snapshot. None: nobody knows how long, so the engine is asked each time.
        ask : callable
            Asks the engine.
        """
        if form is None:
            return ask()
        if form != self._form:
            self._form, self._schemas = form, {}
        names = tuple(columns)
        if names not in self._schemas:
            self._schemas[names] = ask()
        return self._schemas[names]
