"""Noise for running totals beside its peers: microseconds a step, whole horizons, and the search for buffered parameters.

Every figure is a median of at least five runs in this process. The price of the bare draw stands beside each step: what a step costs
beyond it is the aggregator's own. Peers that are not installed are left out (dpcrpy, jax-privacy); dpcrpy draws from numpy's
global generator and jax-privacy from a public seed: neither is private as it stands.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sfumato.bench.tables import Row, medians
from sfumato.streaming import (
    BLT,
    Aggregator,
    BLTAggregator,
    EfficientTreeAggregator,
    GaussianNoiseGenerator,
    Spec,
    ToeplitzAggregator,
    TreeAggregator,
)
from sfumato.streaming.blt import _fewest, _optimal

HORIZON = 2**14

KINDS: dict[str, Callable[[GaussianNoiseGenerator, int], Aggregator]] = {
    "tree": lambda values, _: TreeAggregator(values),
    "efficient tree": lambda values, _: EfficientTreeAggregator(values),
    "buffered Toeplitz": BLTAggregator,
    "square-root Toeplitz": ToeplitzAggregator,
}


def walk(aggregator: Aggregator, steps: int) -> None:
    state = aggregator.init_state()
    for _ in range(steps):
        _, state = aggregator.get_cumsum_and_update(state)


def draws(generator: GaussianNoiseGenerator, count: int) -> None:
    state = generator.initialize()
    for _ in range(count):
        _, state = generator.next(state)


def stepping(name: str, what: str, specs: Any, steps: int, runs: int) -> Row:
    generator = GaussianNoiseGenerator(1.0, specs)
    aggregator = KINDS[name](generator, HORIZON)
    bare = medians(lambda: draws(generator, steps), runs)
    wall, process = medians(lambda: walk(aggregator, steps), runs)
    row = {"who": "sfumato", "method": name, "value": what, "steps": steps, "us a step wall": wall / steps * 1e6}
    return row | {"us a step cpu": process / steps * 1e6, "us a bare draw cpu": bare[1] / steps * 1e6, "over one draw": process / bare[1]}


def offline(name: str, steps: int, runs: int) -> Row:
    wall, process = medians(lambda: KINDS[name](GaussianNoiseGenerator(1.0), steps).whole(steps), runs)
    return {"who": "sfumato", "method": name, "value": "whole horizon", "steps": steps, "s wall": wall, "s cpu": process}


def search(horizon: int) -> Row:
    """Find parameters with nothing remembered."""
    _fewest.cache_clear()
    _optimal.cache_clear()
    wall, process = time.perf_counter(), time.process_time()
    blt = BLT.for_horizon(horizon)
    row = {"who": "sfumato", "method": f"parameters, {len(blt.theta)} buffers", "steps": horizon, "loss": blt.loss()}
    return row | {"s wall": time.perf_counter() - wall, "s cpu": time.process_time() - process}


def numpy_draw(runs: int) -> Row:
    generator = np.random.default_rng()
    wall, process = medians(lambda: generator.standard_normal(10**6, dtype=np.float32), runs)
    row = {"who": "numpy (inexact)", "method": "bare draw", "value": "10^6 float32", "steps": 1}
    return row | {"us a step wall": wall * 1e6, "us a step cpu": process * 1e6}


def dpcrpy(steps: int, runs: int) -> list[Row]:
    """Its counters add the data and the noise, and draw from numpy's global generator."""
    try:
        from dpcrpy import BinMech, Honaker
        from dpcrpy.framework.noiMech import GaussNoiMech
    except ImportError:
        return []

    def work(kind: Any) -> None:
        counter = kind(kOrder=steps.bit_length(), noiMech=GaussNoiMech(sigma0=1.0))
        for _ in range(steps):
            counter.dpRelease(0.0)

    found = []
    for name, kind in (("tree", BinMech), ("efficient tree", Honaker)):
        wall, process = medians(partial(work, kind), runs)
        row = {"who": "dpcrpy", "method": name, "value": "scalar", "steps": steps}
        found.append(row | {"us a step wall": wall / steps * 1e6, "us a step cpu": process / steps * 1e6})
    return found


def jax_privacy(runs: int) -> list[Row]:
    """Its buffered Toeplitz noise, compiled, for 10^6 float32, and its search for the parameters."""
    try:
        import jax
        from jax_privacy.matrix_factorization import buffered_toeplitz
    except ImportError:
        return []
    jax.config.update("jax_enable_x64", True)  # its parameters are refused in single precision
    begun = time.perf_counter(), time.process_time()
    blt = buffered_toeplitz.optimize(n=HORIZON)
    spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
    found: list[Row] = [{"who": "jax-privacy", "method": "parameters", "steps": HORIZON, "s wall": spent[0], "s cpu": spent[1]}]
    for what, shape, steps in (("scalar", (), 500), ("10 doubles", (10,), 500), ("10^6 float32", (10**6,), 16)):
        template = jax.ShapeDtypeStruct(shape, "float32" if math.prod(shape) > 10 else "float64")
        wall, process = medians(jax_walk(blt.inverse_as_streaming_matrix(), template, steps), runs)
        row = {"who": "jax-privacy", "method": "buffered Toeplitz", "value": what, "steps": steps}
        found.append(row | {"us a step wall": wall / steps * 1e6, "us a step cpu": process / steps * 1e6})
    return found


def jax_walk(inverse: Any, template: Any, steps: int) -> Callable[[], None]:
    """Noise of each step, drawn and correlated in one compiled function."""
    import jax

    def step(state: Any, key: Any) -> Any:
        key, own = jax.random.split(key)
        noise, state = inverse.multiply_next(jax.random.normal(own, template.shape, template.dtype), state)
        return noise, state, key

    compiled = jax.jit(step)

    def work() -> None:
        state, key = inverse.init_multiply(template), jax.random.key(1)
        for _ in range(steps):
            noise, state, key = compiled(state, key)
            noise.block_until_ready()

    return work


def rows(quick: bool = False) -> list[Row]:
    """Measure everything, one row a method and kind of value."""
    runs, scalars, arrays, large = (5, 4000, 1000, 8) if quick else (7, HORIZON, 4000, 32)
    found = []
    for name in KINDS:
        toeplitz = name == "square-root Toeplitz"
        found.append(stepping(name, "scalar", None, min(scalars, 1000) if toeplitz else scalars, runs))
        found.append(stepping(name, "10 doubles", (10,), min(arrays, 200) if toeplitz else arrays, runs))
        if not toeplitz:
            found.append(stepping(name, "10^6 float32", Spec((10**6,), "float32"), large, 5))
    found.append(numpy_draw(runs))
    found += [offline(name, 10**5 if quick else 10**6, 5) for name in KINDS]
    found += [search(horizon) for horizon in (2**10, 2**14, 2**20, 10**7)]
    return [*found, *dpcrpy(min(scalars, 4000), 5), *jax_privacy(5)]
