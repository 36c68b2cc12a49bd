"""A table of 6,000 rows, and a publisher of it with a large budget."""

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from support.quantile_data import DOMAIN


@pytest.fixture(scope="package")
def table():
    rng = np.random.default_rng(4)
    n_rows = 6_000
    return pa.table(
        {
            "x": rng.normal(size=n_rows),
            "y": rng.integers(0, 100, n_rows).astype(float),
            "kind": rng.choice(["a", "b"], n_rows),
            "day": (
                rng.integers(0, 365, n_rows).astype("timedelta64[D]") + np.datetime64("2013-01-01")
            ),
        }
    )


@pytest.fixture
def publisher(table):
    with sf.Publisher(sf.source(table, DOMAIN, name="t"), budget="100") as opened:
        yield opened
