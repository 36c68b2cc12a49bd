"""jax-privacy: buffered Toeplitz noise, compiled, from a public seed; and its parameter search."""

from __future__ import annotations

import time
from functools import cache

import jax
from jax_privacy.matrix_factorization import buffered_toeplitz

from benchmarks.measuring import medians

# In single precision the parameters are refused.
jax.config.update("jax_enable_x64", True)


def search(horizon: int) -> tuple[float, float]:
    """Wall and processor seconds of one search."""
    wall = time.perf_counter()
    process = time.process_time()
    _found(horizon)
    return time.perf_counter() - wall, time.process_time() - process


def stepping(
    horizon: int, shape: list[int], dtype: str, steps: int, runs: int
) -> tuple[float, float, float, float]:
    """Wall and processor seconds of the parameter search, then of ``steps`` steps (medians)."""
    searched = search(horizon)
    inverse = _found(horizon).inverse_as_streaming_matrix()
    template = jax.ShapeDtypeStruct(tuple(shape), dtype)

    def step(state: object, key: jax.Array) -> tuple[jax.Array, object, jax.Array]:
        key, own = jax.random.split(key)
        draw = jax.random.normal(own, template.shape, template.dtype)
        noise, state = inverse.multiply_next(draw, state)
        return noise, state, key

    compiled = jax.jit(step)

    def work() -> None:
        state = inverse.init_multiply(template)
        key = jax.random.key(1)
        for _ in range(steps):
            noise, state, key = compiled(state, key)
            noise.block_until_ready()

    return (*searched, *medians(work, runs))


@cache
def _found(horizon: int) -> buffered_toeplitz.BufferedToeplitz:
    return buffered_toeplitz.optimize(n=horizon, min_buffers=4, max_buffers=4)
