"""Noise for running totals: microseconds per step, whole horizons, and the parameter search.

Every figure is a median of at least five runs in this process, those of peers in environments of
their own. Beside each step is the time of the bare draw: the rest is the aggregator's own. dpcrpy
draws from numpy's global generator and jax-privacy from a public seed, so neither is private here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import peers
from benchmarks.measuring import Chart, Row, medians, seconds
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
from sfumato.streaming.toeplitz import _fewest, _optimal

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
    """Take all steps."""
    state = aggregator.init_state()
    for _ in range(steps):
        _, state = aggregator.get_cumsum_and_update(state)


def draws(generator: GaussianNoiseGenerator[object], count: int) -> None:
    """Draw the noise of all steps, and nothing else."""
    state = generator.initialize()
    for _ in range(count):
        _, state = generator.next(state)


def stepping(
    name: str, what: str, specs: Spec | tuple[int, ...] | None, steps: int, runs: int
) -> Row:
    """Measure single steps, and the bare draws beside them."""
    generator = GaussianNoiseGenerator(1.0, specs)
    works = (
        partial(draws, generator, steps),
        partial(walk, KINDS[name](generator, HORIZON), steps),
    )
    # In turns, so that a slow spell of the machine meets both; the ratio is a median of runs, too.
    times = np.array([[seconds(work) for work in works] for _ in range(runs + 1)])[1:]
    bare, taken = np.median(times, axis=0).tolist()
    row = _stepped("sfumato", name, what, steps, taken)
    return row | {
        "us a bare draw cpu": bare[1] / steps * 1e6,
        "over one draw": float(np.median(times[:, 1, 1] / times[:, 0, 1])),
    }


def of_horizon(horizon: int, runs: int) -> Row:
    """All steps of a horizon by the square root, whose steps cost more the longer the past is."""
    aggregator = ToeplitzAggregator(GaussianNoiseGenerator(1.0, (10,)), horizon)
    seconds_taken = medians(lambda: walk(aggregator, horizon), runs)
    row = _stepped("sfumato", "square-root Toeplitz", "10 doubles", horizon, seconds_taken)
    return row | {"MB kept": 2 * 10 * 8 * horizon / 1e6}


def offline(name: str, steps: int, runs: int, again: bool = False) -> Row:
    """A whole horizon at once, by a new aggregator or, with ``again``, by the same one."""
    made = KINDS[name](GaussianNoiseGenerator(1.0), steps)

    def work() -> object:
        aggregator = made if again else KINDS[name](made.value_generator, steps)
        return aggregator.whole(steps)

    wall, process = medians(work, runs)
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
    """Measure the parameter search, without what earlier searches found."""
    _fewest.cache_clear()
    _optimal.cache_clear()
    wall, process = seconds(lambda: BLT.for_horizon(horizon))
    # It is remembered now, and costs nothing.
    blt = BLT.for_horizon(horizon)
    return {
        "who": "sfumato",
        "method": f"parameters, {len(blt.theta)} buffers",
        "steps": horizon,
        "loss": blt.loss(),
        "s wall": wall,
        "s cpu": process,
    }


def numpy_draw(runs: int) -> Row:
    """Measure a draw of numpy's normal."""
    generator = np.random.default_rng()
    taken = medians(lambda: generator.standard_normal(10**6, dtype=np.float32), runs)
    return _stepped("numpy (inexact)", "bare draw", "10^6 float32", 1, taken)


def dpcrpy(steps: int, runs: int) -> list[Row]:
    """Measure dpcrpy, if it is installed."""
    found: list[Row] = []
    for method in ("tree", "efficient tree"):
        seconds = peers.ask(
            "dpcrpy", "stepping", tuple[float, float], method=method, steps=steps, runs=runs
        )
        if seconds:
            found.append(_stepped("dpcrpy", method, "scalar", steps, seconds))
    return found


def jax_privacy(runs: int) -> list[Row]:
    """Measure jax-privacy, if it is installed."""
    found: list[Row] = []
    for what, shape, dtype, steps in (
        ("scalar", [], "float64", 500),
        ("10^6 float32", [10**6], "float32", 16),
    ):
        asked = {"horizon": HORIZON, "shape": shape, "dtype": dtype, "steps": steps, "runs": runs}
        times = peers.ask("jax_privacy", "stepping", tuple[float, float, float, float], **asked)
        if times is None:
            continue
        found.append(_stepped("jax-privacy", "buffered Toeplitz", what, steps, times[2:]))
        if not shape:
            # The parameter search is the same for every shape, and shown once.
            found.append(
                {
                    "who": "jax-privacy",
                    "method": "parameters, 4 buffers",
                    "steps": HORIZON,
                    "s wall": times[0],
                    "s cpu": times[1],
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
    """Measure everything: a row for each method and kind of value."""
    runs, scalars, arrays, large = (5, 4000, 1000, 8) if quick else (7, HORIZON, 4000, 32)
    found = []
    for name in KINDS:
        found.append(stepping(name, "scalar", None, scalars, runs))
        found.append(stepping(name, "10 doubles", (10,), arrays, runs))
        # The square root keeps all values, for which there is no room here.
        if name != "square-root Toeplitz":
            found.append(stepping(name, "10^6 float32", Spec((10**6,), "float32"), large, 5))
    found.append(numpy_draw(runs))
    horizons = (10**3, 10**4) if quick else (10**3, 10**4, 10**5)
    found += [of_horizon(horizon, 5) for horizon in horizons]
    steps = 10**5 if quick else 10**6
    found += [offline(name, steps, 5) for name in KINDS]
    found.append(offline("square-root Toeplitz", steps, 5, again=True))
    found += [search(horizon) for horizon in (2**10, 2**14, 2**20, 10**7)]
    return [*found, *dpcrpy(min(scalars, 4000), 5), *jax_privacy(5)]
