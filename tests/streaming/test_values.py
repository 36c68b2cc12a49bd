"""Nested values are combined leaf by leaf."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.streaming import (
    EfficientTreeAggregator,
    TreeAggregator,
)
from streaming.linear import steps

BOTH = [TreeAggregator, EfficientTreeAggregator]


@pytest.mark.parametrize("kind", BOTH)
def test_large_arrays_are_worked_on_by_pieces_and_come_out_alike(
    kind: type[TreeAggregator],
) -> None:
    rng = np.random.default_rng(2)
    drawn = [rng.normal(size=(3, 20_011)).astype(np.float32) for _ in range(24)]
    whole = iter(drawn)
    part = iter(drawn)
    for one, other in zip(
        steps(kind(lambda: next(whole)), 12),
        steps(kind(lambda: next(part)[1, :50]), 12),
        strict=True,
    ):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one[1, :50], other, rtol=1e-5, atol=1e-6)
