"""The past of a stream, in blocks, against plain sums."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sfumato.streaming import (
    GaussianNoiseGenerator,
    Spec,
    ToeplitzAggregator,
    coefficients,
)
from sfumato.streaming.values import BASE
from streaming.linear import steps


@pytest.mark.parametrize("spec", [None, (), (3,), (2, 0), Spec((7, 2), "float32")])
def test_the_past_of_a_long_stream(spec) -> None:  # type: ignore[no-untyped-def]
    """Blocks of all lengths merge.

    Two streams that go on from one saved state do not disturb each other.
    """
    horizon = 5 * BASE * 2**3 + 7
    saved = 3 * BASE - 1
    aggregator = ToeplitzAggregator(GaussianNoiseGenerator(1.0, spec), horizon)
    state = aggregator.init_state()
    drawn = []
    found = []
    for step in range(horizon):
        drawn.append(np.array(state.value))
        if step == saved:
            kept = pickle.dumps(state), state
        noise, state = aggregator.get_cumsum_and_update(state)
        found.append(np.array(noise))
    values = np.array(drawn, dtype=float).reshape(horizon, -1)
    f = coefficients(horizon)
    wanted = (
        np.stack([np.convolve(f, column)[:horizon] for column in values.T], axis=1)
        if values.size
        else values
    )
    rounding = 1e-12 if found[0].dtype == np.float64 else 1e-6
    np.testing.assert_allclose(
        np.array(found).reshape(horizon, -1), wanted, rtol=rounding, atol=rounding
    )
    for again in (pickle.loads(kept[0]), kept[1]):
        np.testing.assert_array_equal(
            np.array(steps(aggregator, horizon - saved, again)), np.array(found[saved:])
        )


@pytest.mark.parametrize("horizon", [1, BASE - 1, BASE, BASE + 1, 4 * BASE, 5 * BASE])
def test_horizons_that_end_with_a_block(horizon: int) -> None:
    aggregator = ToeplitzAggregator(GaussianNoiseGenerator(1.0), horizon)
    start = aggregator.value_generator.initialize()
    found = steps(aggregator, horizon, aggregator._first(start))
    np.testing.assert_allclose(found, aggregator.whole(horizon, start), rtol=1e-11, atol=1e-12)
