"""The groups that a rule selects keys from, of what one query counts: see ``KeyRule``.

The query that counts a lattice with an axis of keys is wrapped, so that each of its rows also says
how many rows its key has in all. Cells are packed in it as a count needs them; they are unpacked
again of the keys that are shown alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from sfumato.data.engines.dialect import Dialect
from sfumato.data.engines.groups import without_keys
from sfumato.data.engines.query import CountQuery
from sfumato.lattice import Lattice
from sfumato.mechanisms.key_rules import KEY, NOISY_ROWS, ROWS_OF_KEY

_ROWS = "rows"


def groups_query(query: CountQuery, dialect: Dialect) -> str:
    """The query that gives the groups of keys, with the columns that a rule is applied to.

    Parameters
    ----------
    query : CountQuery
        Of a lattice with one axis of keys, without sums.
    dialect : Dialect
    """
    packed = [f"g{place}" for place in range(len(without_keys(query.lattice).groups))]
    if len(query.lattice.axes) == 1:
        columns = {KEY: "gk0", ROWS_OF_KEY: "n"}
    else:
        of_key = f"CAST(sum(n) OVER (PARTITION BY gk0) AS {dialect.integer_type})"
        columns = {KEY: "gk0", ROWS_OF_KEY: of_key, _ROWS: "n", **{name: name for name in packed}}
    named = ", ".join(f"{each} AS {name}" for name, each in columns.items())
    # A group that lacks a cell is none of the key's, and is left out before these are added up.
    counted = " AND ".join(f"{name} IS NOT NULL" for name in ("gk0", *packed))
    return f"SELECT {named} FROM ({query.text}) AS counted_groups WHERE {counted}"


def unpacked(lattice: Lattice, shown: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the groups of the keys that are shown a column for each axis."""
    if len(lattice.axes) == 1:
        yield from shown
        return
    packing = without_keys(lattice)
    places = [place for place, axis in enumerate(lattice.axes) if not axis.has_keys]
    for batch in shown:
        packed = [
            batch[f"g{place}"].cast(pa.int64()).to_numpy(zero_copy_only=False)
            for place in range(len(packing.groups))
        ]
        cells = packing.unpack(packed).reshape(len(batch), len(places))
        columns = {name: batch[name] for name in (KEY, NOISY_ROWS, _ROWS)}
        columns |= {
            f"cell_{place}": pa.array(np.ascontiguousarray(column), pa.int64())
            for place, column in zip(places, cells.T, strict=True)
        }
        yield pa.record_batch(columns)
