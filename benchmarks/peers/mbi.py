"""mbi (private-pgm): a graphical model that fits noisy tables."""

from __future__ import annotations

import time
import warnings

import numpy as np

ITERATIONS = 10_000
"""Ten times its default, which stops far from the fit on the flights."""


def tables(path: str, names: list[str], asked: list[list[str]], runs: int) -> list[float]:
    """Fit a model to noisy tables, and save its tables; return seconds of each run.

    Parameters
    ----------
    path : str
        An npz file with ``sizes``, the cells of each axis; ``spreads``, the standard deviation of
        the noise on each table; and ``noisy``, of shape (runs, numbers), the tables one after
        another. Beside it ``path + ".fitted.npy"`` is written, of the shape of ``noisy``.
    names : list of str
        The axes.
    asked : list of list of str
        The axes of each table.
    runs : int
    """
    warnings.simplefilter("ignore")
    import jax

    jax.config.update("jax_enable_x64", True)
    from mbi import Domain, LinearMeasurement, estimation

    given = np.load(path)
    sizes = dict(zip(names, given["sizes"].tolist(), strict=True))
    domain = Domain(tuple(names), tuple(given["sizes"].tolist()))
    cells = [int(np.prod([sizes[name] for name in table])) for table in asked]
    found, seconds = [], []
    for run in range(runs):
        parts = np.split(given["noisy"][run].astype(float), np.cumsum(cells)[:-1])
        measured = [
            LinearMeasurement(part, tuple(table), float(spread))
            for part, table, spread in zip(parts, asked, given["spreads"], strict=True)
        ]
        started = time.perf_counter()
        model = estimation.MirrorDescent().estimate(domain, measured, iters=ITERATIONS)
        fitted = [np.asarray(model.project(tuple(table)).datavector()) for table in asked]
        seconds.append(time.perf_counter() - started)
        found.append(np.concatenate(fitted))
    np.save(path + ".fitted.npy", np.array(found))
    return seconds
