"""Arrays of numpy: their type in annotations, and how they are read from what somebody gives.

Shape and dtype stand in docstrings, because most functions here take several of both.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]
"""An ndarray of any shape and dtype: the same type as the bare ``np.ndarray``.

A checker that refuses an explicit ``Any`` refuses the bare name wherever it stands, and this one
here only.
"""


def as_floats(values: object) -> NDArray[np.float64]:
    """Read doubles as numpy does; anything else gives an empty array.

    Callers refuse an empty array when they check its shape, without a word of what was given.

    What numpy says of such values may quote them, and no message of ours does.

    >>> as_floats([[1, 2], [3, 4]]).shape, as_floats(["a"]).shape
    ((2, 2), (0,))
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
