"""Large tables by a fixed recipe: points on the unit square, and the persons who were there.

Half of the rows lie in 40 clusters of unlike weight and width, three tenths along a road that winds across the square, two
tenths anywhere. The same number of rows gives the same file, whoever makes it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.arrays import Array

PART_ROWS = 2**20
CLUSTERS = 40
SEED = 20_260_101


def points(rows: int, part: int = 0) -> Array:
    """Draw one part of the table: float64 ndarray of shape (2, rows), within [0, 1].

    >>> points(1000).shape
    (2, 1000)
    """
    layout = np.random.default_rng(SEED)
    centres, widths = layout.random((2, CLUSTERS)), layout.uniform(0.002, 0.05, CLUSTERS)
    weights = layout.dirichlet(np.full(CLUSTERS, 0.5))
    draw = np.random.default_rng([SEED, part])
    clustered, along = rows // 2, (3 * rows) // 10
    which = draw.choice(CLUSTERS, clustered, p=weights)
    at = draw.random(along)
    road = np.stack([at, 0.5 + 0.3 * np.sin(7 * at) + 0.1 * np.cos(23 * at)])
    both = np.concatenate(
        [
            centres[:, which] + widths[which] * draw.standard_normal((2, clustered)),
            road + 0.001 * draw.standard_normal((2, along)),
            draw.random((2, rows - clustered - along)),
        ],
        axis=1,
    )
    return np.asarray(np.clip(both[:, draw.permutation(rows)], 0, 1))


def write(path: Path, rows: int, persons: int = 0) -> None:
    """Write a Parquet file of columns x and y, and ``person`` if there are any, part by part.

    Parameters
    ----------
    path : Path
    rows : int
        16 bytes each, since such doubles do not compress; 24 with persons.
    persons : int
        How many persons there are; each row is of one of them, at random. 0: no such column.
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
