"""Arrays of numpy: their type in annotations, and how they are read from what somebody gives.

Shape and dtype stand in docstrings: most functions here take several of both, and numpy's own type of an array that says
neither is what this name stands for.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]
"""An ndarray of any shape and dtype. The bare ``np.ndarray`` is the same type, but a checker cannot tell it from an oversight."""


def as_floats(values: object) -> NDArray[np.float64]:
    """Read doubles as numpy does; where there is no such array, one of no numbers, so that a check of shape refuses it.

    What numpy says of such values may quote them, and no message of ours does.

    >>> as_floats([[1, 2], [3, 4]]).shape, as_floats(["a"]).shape
    ((2, 2), (0,))
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
