"""Keep the rows that satisfy the public conditions of a source; see ``privacy/where.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.basics.numbers import Array
from sfumato.data.columns import viewless
from sfumato.data.locating import RowLocator
from sfumato.domain.conditions import Condition, OneOf, Within
from sfumato.domain.domain import Domain, Interval, Listed
from sfumato.domain.lattice import DROPPED, EdgesAxis, LatticeAxis
from sfumato.domain.scale import number_of
from sfumato.errors import InternalError


class RowFilter:
    """Says which rows of a batch satisfy all conditions.

    Parameters
    ----------
    conditions : sequence of OneOf or Within
    domain : Domain
        Its axes say how the columns are read.

    Attributes
    ----------
    axes : tuple of LatticeAxis
        What it looks at.
    """

    def __init__(self, conditions: Sequence[Condition], domain: Domain) -> None:
        compiled = [_compiled(condition, domain) for condition in conditions]
        self.axes: tuple[LatticeAxis, ...] = tuple(axis for axis, _ in compiled)
        self._kept_cells = [kept for _, kept in compiled]
        self._locator = RowLocator(self.axes)

    @property
    def conditions(self) -> list[tuple[LatticeAxis, Array]]:
        """Each axis, with the cells that satisfy its condition: bool ndarray of shape (cells,)."""
        return list(zip(self.axes, self._kept_cells, strict=True))

    def satisfied(self, batch: pa.RecordBatch) -> Array:
        """Which rows satisfy all conditions: bool ndarray of shape (rows,)."""
        satisfied = np.ones(len(batch), bool)
        cells = self._locator.cells(batch)
        for axis, kept in zip(self.axes, self._kept_cells, strict=True):
            found = cells[axis]
            satisfied &= np.where(found == DROPPED, False, kept[found])
        return satisfied

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that satisfy all conditions."""
        columns = [_filterable(column) for column in batch.columns]
        plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        return plain.filter(pa.array(self.satisfied(batch)))


def _filterable(column: pa.Array) -> pa.Array:
    """The column in a form that every version of Arrow can filter."""
    is_view = pt.is_string_view(column.type) or pt.is_binary_view(column.type)
    return viewless(column) if is_view else column


def _compiled(condition: Condition, domain: Domain) -> tuple[LatticeAxis, Array]:
    """The axis that a condition looks at, and which of its cells satisfy it."""
    declared = domain[condition.axis]
    match condition:
        case OneOf(axis=name, labels=labels) if isinstance(declared, Listed):
            axis = declared.label_axis(name)
            wanted = {(type(label), label) for label in labels}
            return axis, np.array([(type(label), label) in wanted for label in axis.labels])
        case Within() if isinstance(declared, Interval):
            return _range(condition, declared)
        case _:
            raise InternalError("A condition does not fit the axis that it was made for.")


def _range(condition: Within, interval: Interval) -> tuple[EdgesAxis, Array]:
    """The axis cut at the ends of a range, and which of the pieces lies between them."""
    low, high = interval.numbers
    lower = low if condition.lower is None else number_of(condition.lower)
    upper = high if condition.upper is None else number_of(condition.upper)
    edges = sorted({low, lower, upper, high})
    axis = EdgesAxis(
        condition.axis,
        tuple(edges),
        interval.time,
        interval.stand_in,
        interval.stride,
        low,
        interval.column,
    )
    return axis, np.array([lower <= edge < upper for edge in edges[:-1]])
