"""Frames of pandas as sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import sfumato as sf
from data.trips import tens
from sfumato.data import count


def frame(name: str, values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object)})


def test_keys_that_pandas_widened_are_the_whole_numbers_that_they_were() -> None:
    """pandas holds whole numbers as doubles or unsigned integers beside a missing or huge one."""
    domain = sf.Domain(shop=sf.Keys())
    plain = [3, 3, 5, -7]
    for more in ([], [None], [1.5], [float("inf")]):
        frame = pd.DataFrame({"shop": plain + more})
        (cube,) = count(sf.source(frame, domain), [sf.Histogram("shop").needs(domain).lattice])
        assert cube.counts.sum() == 4
    (cube,) = count(
        sf.source(pd.DataFrame({"shop": [3, 2**63]}), domain),
        [sf.Histogram("shop").needs(domain).lattice],
    )
    assert cube.counts.sum() == 1


def test_objects_of_pandas_have_one_type_in_all_parts() -> None:
    import pandas as pd

    ages = np.full(2**16 + 10, None, object)
    ages[-5:] = 33
    assert tens(pd.DataFrame({"age": ages})) == {3: 5}
