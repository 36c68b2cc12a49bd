"""Arrays that are used again and again, so that their memory is asked for once.

The system fills every page that a process asks for with zeros. For arrays of a few megabytes this
takes as long as a few passes over them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from sfumato.basics.numbers import Array

_LEAST_BYTES = 2**22  # numpy asks for huge pages from this size on


class Scratch:
    """Hands out arrays by name. An array is valid until its name is asked for again."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def array(self, name: str, length: int, dtype: DTypeLike) -> Array:
        """Give an array of the length and type; what is in it is arbitrary.

        Parameters
        ----------
        name : str
            Always of one type.
        """
        held = self._arrays.get(name)
        if held is None or len(held) < length:
            itemsize = np.dtype(dtype).itemsize
            # A little more than was asked for: the next partition may be a little larger.
            room = length + length // 8
            if room * itemsize >= _LEAST_BYTES // 4:
                room = max(room, _LEAST_BYTES // itemsize)
            held = self._arrays[name] = np.empty(room, dtype)
        return held[:length]
