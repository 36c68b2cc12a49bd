"""Scratch arrays are used again as long as they are long enough."""

from __future__ import annotations

import numpy as np

from sfumato.data.priorities import Scratch


def test_an_array_is_used_again() -> None:
    scratch = Scratch()
    first = scratch.array("a", 100, np.int64)
    first[:] = 7
    assert scratch.array("a", 60, np.int64).tolist() == [7] * 60
    assert scratch.array("b", 60, np.int32).dtype == np.int32
    assert not np.shares_memory(first, scratch.array("b", 60, np.int32))
    longer = scratch.array("a", 10**6, np.int64)
    assert len(longer) == 10**6
    assert not np.shares_memory(first, longer)
    assert len(scratch.array("a", 0, np.int64)) == 0
