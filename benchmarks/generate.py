"""Large tables from a fixed seed: points on the unit square, and a person for each.

Half of the rows lie in 40 clusters of different weights and widths, 30% along a road that winds
across the square, and 20% anywhere. The same number of rows always gives the same file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.basics.numbers import Array

PART_ROWS = 2**20
CLUSTERS = 40
SEED = 20_260_101


def points(rows: int, part: int = 0) -> Array:
    """Draw one part of the table: float64 ndarray of shape (2, rows), within [0, 1].

    >>> points(1000).shape
    (2, 1000)
    """
    layout = np.random.default_rng(SEED)
    centres = layout.random((2, CLUSTERS))
    widths = layout.uniform(0.002, 0.05, CLUSTERS)
    weights = layout.dirichlet(np.full(CLUSTERS, 0.5))
    draw = np.random.default_rng([SEED, part])
    n_clustered = rows // 2
    n_road = (3 * rows) // 10
    which = draw.choice(CLUSTERS, n_clustered, p=weights)
    x = draw.random(n_road)
    road = np.stack([x, 0.5 + 0.3 * np.sin(7 * x) + 0.1 * np.cos(23 * x)])
    parts = [
        centres[:, which] + widths[which] * draw.standard_normal((2, n_clustered)),
        road + 0.001 * draw.standard_normal((2, n_road)),
        draw.random((2, rows - n_clustered - n_road)),
    ]
    together = np.concatenate(parts, axis=1)
    return np.asarray(np.clip(together[:, draw.permutation(rows)], 0, 1))


def write(path: Path, rows: int, persons: int = 0) -> None:
    """Write a Parquet file with columns x and y and, with persons, ``person``.

    Parameters
    ----------
    path : Path
    rows : int
        A row takes 16 bytes, since such doubles do not compress; 24 with persons.
    persons : int
        The number of persons. Each row belongs to one of them, at random. 0: there is no such
        column.
    """
    names = ["x", "y", *(["person"] if persons else [])]
    schema = pa.schema([(name, pa.int64() if name == "person" else pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for part, start in enumerate(range(0, rows, PART_ROWS)):
            size = min(PART_ROWS, rows - start)
            columns = list(points(size, part))
            if persons:
                columns.append(np.random.default_rng([SEED, part, 1]).integers(0, persons, size))
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))
