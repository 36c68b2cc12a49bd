"""jax-privacy's buffered Toeplitz noise, compiled, from a public seed; and its search for the parameters."""

from __future__ import annotations

import time
from functools import cache

import jax
from jax_privacy.matrix_factorization import buffered_toeplitz

from sfumato.bench.measuring import medians

jax.config.update("jax_enable_x64", True)  # the parameters are refused in single precision


def search(horizon: int) -> tuple[float, float]:
    """Wall and processor seconds of one search."""
    wall, process = time.perf_counter(), time.process_time()
    _found(horizon)
    return time.perf_counter() - wall, time.process_time() - process


def stepping(
    horizon: int, shape: list[int], dtype: str, steps: int, runs: int
) -> tuple[float, float, float, float]:
    """Median wall and processor seconds of ``steps`` steps, after the two of the search for the parameters."""
    searched = search(horizon)
    inverse, template = (
        _found(horizon).inverse_as_streaming_matrix(),
        jax.ShapeDtypeStruct(tuple(shape), dtype),
    )

    def step(state: object, key: jax.Array) -> tuple[jax.Array, object, jax.Array]:
        key, own = jax.random.split(key)
        noise, state = inverse.multiply_next(
            jax.random.normal(own, template.shape, template.dtype), state
        )
        return noise, state, key

    compiled = jax.jit(step)

    def work() -> None:
        state, key = inverse.init_multiply(template), jax.random.key(1)
        for _ in range(steps):
            noise, state, key = compiled(state, key)
            noise.block_until_ready()

    return (*searched, *medians(work, runs))


@cache
def _found(horizon: int) -> buffered_toeplitz.BufferedToeplitz:
    return buffered_toeplitz.optimize(n=horizon, min_buffers=4, max_buffers=4)
