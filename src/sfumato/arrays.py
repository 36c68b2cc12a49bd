"""The type of numpy arrays in annotations.

Shape and dtype stand in docstrings: most functions here take several of both, and numpy's own type of an array that says
neither is what this name stands for.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]
"""An ndarray of any shape and dtype. The bare ``np.ndarray`` is the same type, but a checker cannot tell it from an oversight."""
