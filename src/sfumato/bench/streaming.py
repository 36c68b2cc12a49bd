"""Noise for running totals beside its peers: microseconds a step, whole horizons, and the search for buffered parameters.

Every figure is a median of at least five runs in this process, those of peers in environments of their own. The price of the bare
draw stands beside each step: what a step costs beyond it is the aggregator's own. dpcrpy draws from numpy's global generator and
jax-privacy from a public seed: neither is private as it stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from sfumato.bench import peers
from sfumato.bench.measuring import Chart, Row, medians, seconds
from sfumato.streaming import (
    BLT,
    Aggregator,
    BLTAggregator,
    EfficientTreeAggregator,
    GaussianNoiseGenerator,
    Spec,
    ToeplitzAggregator,
    TreeAggregator,
    ValueGenerator,
)
from sfumato.streaming.blt import _fewest, _optimal

CHART = Chart(
    "us a step cpu", ("who", "method", "value"), others=("dpcrpy", "jax-privacy", "numpy (inexact)")
)
HORIZON = 2**14

KINDS: dict[str, Callable[[ValueGenerator[object], int], Aggregator[object]]] = {
    "tree": lambda values, _: TreeAggregator(values),
    "efficient tree": lambda values, _: EfficientTreeAggregator(values),
    "buffered Toeplitz": BLTAggregator,
    "square-root Toeplitz": ToeplitzAggregator,
}


def walk(aggregator: Aggregator[object], steps: int) -> None:
    state = aggregator.init_state()
    for _ in range(steps):
        _, state = aggregator.get_cumsum_and_update(state)


def draws(generator: GaussianNoiseGenerator[object], count: int) -> None:
    state = generator.initialize()
    for _ in range(count):
        _, state = generator.next(state)


def stepping(
    name: str, what: str, specs: Spec | tuple[int, ...] | None, steps: int, runs: int
) -> Row:
    generator = GaussianNoiseGenerator(1.0, specs)
    aggregator = KINDS[name](generator, HORIZON)
    # In turns, so that a slow spell of the machine meets both; the ratio is a median of runs, too.
    turns = [
        [
            seconds(partial(work, steps))
            for work in (partial(draws, generator), partial(walk, aggregator))
        ]
        for _ in range(runs + 1)
    ]
    times = np.array(turns)[1:]
    bare, taken = np.median(times, axis=0).tolist()
    row = _stepped("sfumato", name, what, steps, taken)
    return row | {
        "us a bare draw cpu": bare[1] / steps * 1e6,
        "over one draw": float(np.median(times[:, 1, 1] / times[:, 0, 1])),
    }


def of_horizon(horizon: int, runs: int) -> Row:
    """The square root on small arrays, all steps of a horizon: what a step costs when there is a long past, and what is kept of it."""
    aggregator = ToeplitzAggregator(GaussianNoiseGenerator(1.0, (10,)), horizon)
    row = _stepped(
        "sfumato",
        "square-root Toeplitz",
        "10 doubles",
        horizon,
        medians(lambda: walk(aggregator, horizon), runs),
    )
    return row | {"MB kept": 2 * 10 * 8 * horizon / 1e6}


def offline(name: str, steps: int, runs: int, again: bool = False) -> Row:
    """A whole horizon, with what an aggregator lays out when it is made, or without."""
    made = KINDS[name](GaussianNoiseGenerator(1.0), steps)
    wall, process = medians(
        lambda: (made if again else KINDS[name](made.value_generator, steps)).whole(steps), runs
    )
    what = "whole horizon, again" if again else "whole horizon"
    return {
        "who": "sfumato",
        "method": name,
        "value": what,
        "steps": steps,
        "s wall": wall,
        "s cpu": process,
    }


def search(horizon: int) -> Row:
    """Find parameters with nothing remembered."""
    _fewest.cache_clear()
    _optimal.cache_clear()
    wall, process = time.perf_counter(), time.process_time()
    blt = BLT.for_horizon(horizon)
    row: Row = {
        "who": "sfumato",
        "method": f"parameters, {len(blt.theta)} buffers",
        "steps": horizon,
        "loss": blt.loss(),
    }
    return row | {"s wall": time.perf_counter() - wall, "s cpu": time.process_time() - process}


def numpy_draw(runs: int) -> Row:
    generator = np.random.default_rng()
    return _stepped(
        "numpy (inexact)",
        "bare draw",
        "10^6 float32",
        1,
        medians(lambda: generator.standard_normal(10**6, dtype=np.float32), runs),
    )


def dpcrpy(steps: int, runs: int) -> list[Row]:
    found: list[Row] = []
    for method in ("tree", "efficient tree"):
        seconds = peers.ask(
            "dpcrpy", "stepping", tuple[float, float], method=method, steps=steps, runs=runs
        )
        if seconds:
            found.append(_stepped("dpcrpy", method, "scalar", steps, seconds))
    return found


def jax_privacy(runs: int) -> list[Row]:
    found: list[Row] = []
    for what, shape, dtype, steps in (
        ("scalar", [], "float64", 500),
        ("10^6 float32", [10**6], "float32", 16),
    ):
        asked = {"horizon": HORIZON, "shape": shape, "dtype": dtype, "steps": steps, "runs": runs}
        seconds = peers.ask("jax_privacy", "stepping", tuple[float, float, float, float], **asked)
        if seconds:
            found.append(_stepped("jax-privacy", "buffered Toeplitz", what, steps, seconds[2:]))
            if not shape:
                found.append(
                    {
                        "who": "jax-privacy",
                        "method": "parameters, 4 buffers",
                        "steps": HORIZON,
                        "s wall": seconds[0],
                        "s cpu": seconds[1],
                    }
                )
    return found


def _stepped(who: str, method: str, what: str, steps: int, seconds: tuple[float, float]) -> Row:
    wall, process = (one / steps * 1e6 for one in seconds)
    return {
        "who": who,
        "method": method,
        "value": what,
        "steps": steps,
        "us a step wall": wall,
        "us a step cpu": process,
    }


def rows(quick: bool = False) -> list[Row]:
    """Measure everything, one row a method and kind of value."""
    runs, scalars, arrays, large = (5, 4000, 1000, 8) if quick else (7, HORIZON, 4000, 32)
    found = []
    for name in KINDS:
        found.append(stepping(name, "scalar", None, scalars, runs))
        found.append(stepping(name, "10 doubles", (10,), arrays, runs))
        if name != "square-root Toeplitz":  # which would keep all values
            found.append(stepping(name, "10^6 float32", Spec((10**6,), "float32"), large, 5))
    found.append(numpy_draw(runs))
    found += [of_horizon(horizon, 5) for horizon in (10**3, 10**4, *(() if quick else (10**5,)))]
    found += [offline(name, 10**5 if quick else 10**6, 5) for name in KINDS]
    found.append(offline("square-root Toeplitz", 10**5 if quick else 10**6, 5, again=True))
    found += [search(horizon) for horizon in (2**10, 2**14, 2**20, 10**7)]
    return [*found, *dpcrpy(min(scalars, 4000), 5), *jax_privacy(5)]
