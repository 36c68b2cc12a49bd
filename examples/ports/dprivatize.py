"""DPrivatize's partitioners: each sentence of its page, and its table of budgets.

Run it with ``python examples/ports/dprivatize.py``. Each line shows what the page says, what is
here, and whether they are the same or why ours differs.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from beside import beside, holds
from scipy import optimize

import sfumato as sf
from sfumato.questions.partition.uniform import eugkm_cells

EPSILON, THETA, N = 1.0, 10.0, 5000
POINTS = np.random.default_rng(1).normal(0.5, 0.05, (N, 2)).clip(0, 1)
DOMAIN = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))


@contextmanager
def publisher() -> Iterator[sf.Publisher]:
    """Publish the points, with a ledger that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        source = sf.source(POINTS, DOMAIN, name="points")
        ledger = Path(folder) / "budget.db"
        with sf.Publisher(source, ledger=ledger, account="ports", budget=100) as found:
            yield found


def counts_of_number() -> None:
    """ "M = (N~ epsilon / theta)^(2d / 2 + d)": the number of cells, and the formula of theta."""
    exponent = "the exponent is 2d / (2 + d): the page lacks a pair of parentheses"
    for d in (1, 2, 3):
        printed = (N * EPSILON / THETA) ** (2 * d / 2 + d)
        meant = (N * EPSILON / THETA) ** (2 * d / (2 + d))
        aim, _ = eugkm_cells(N, EPSILON, d=d)
        beside(f"cells for {N} points and d = {d}, as printed", printed, aim, exponent)
        beside(f"cells for {N} points and d = {d}, as EUGkM has it", meant, aim)
    beside("theta, as it is set by experiment", 10, int(sf.UniformPartitioner().theta))
    alpha, beta = 0.5, 0.02
    for d in (1, 2, 3):
        printed = math.sqrt(alpha / (2 * beta**2))
        best = least_error_theta(alpha, beta, d)
        if d == 1:
            beside("theta = sqrt(alpha / (2 beta^2)), d = 1", printed, best, rel=1e-4)
        else:
            reason = f"the least error is at d times that, {d} here"
            beside(f"theta = sqrt(alpha / (2 beta^2)), d = {d}", printed, best, reason)
            beside(f"d sqrt(alpha / (2 beta^2)), d = {d}", d * printed, best, rel=1e-4)


def least_error_theta(alpha: float, beta: float, d: int) -> float:
    """The theta whose grid has the least error, found by a search for the best M.

    A query covers a share alpha of M cells, with noise of standard deviation sqrt(2 alpha M) /
    epsilon. Rows in cells that it cuts add beta N / M^(1/d), where beta depends on the data.
    """

    def error(log_m: float) -> float:
        m = math.exp(log_m)
        return math.sqrt(2 * alpha * m) / EPSILON + beta * N / m ** (1 / d)

    found = optimize.minimize_scalar(error, bounds=(-5, 40), options={"xatol": 1e-12})
    return N * EPSILON / math.exp(found.x) ** ((2 + d) / (2 * d))


def uniform() -> None:
    """ "Divides the data space into equal-sized cells"; "N~ = N + Lap(1 / epsilon)"."""
    with publisher() as pub:
        by_rule = pub.release(sf.UniformPartitioner(), epsilon="1")
        given = pub.release(sf.UniformPartitioner(partitions=100), epsilon="1")
    sides = given.upper - given.lower
    holds("the cells are equal in size, up to a lattice cell", np.ptp(sides) <= 2 / 4096)
    beside("cells for the specified number of partitions, 100", 100, len(given.counts))
    reason = (
        "the count takes a fiftieth of the cost; the page spends epsilon on it and again on cells"
    )
    beside("scale of the noise on N, as printed", 1.0, 50.0, reason)
    holds("N~ is near N", abs(by_rule.rows - N) < 50 * 21)
    beside("the budget of every path", [EPSILON], sorted(set(by_rule.spent.tolist())))


def binary() -> None:
    """ "Two equal-sized cells", "a fanout of 2", "After two iterations ... 4 cells"."""
    with publisher() as pub:
        one = pub.release(sf.BinaryPartitioner(depth=1), epsilon="1")
        two = pub.release(sf.BinaryPartitioner(depth=2), epsilon="1")
        stopped = pub.release(sf.BinaryPartitioner(depth=8, stop_below=200), epsilon="1")
        fixed = pub.release(
            sf.BinaryPartitioner(depth=4, shares=sf.Shares(release=1, threshold=0)), epsilon="1"
        )
    beside("cells after one iteration in 2D", 2, len(one.counts))
    beside("cells after two iterations, as in a quad-tree", 4, len(two.counts))
    holds("each of the four has a quarter of the space", np.ptp(two.upper - two.lower) == 0)
    holds("no privacy budget is required for a fixed depth", fixed.inner is None)
    early = stopped.depth < stopped.depth.max()
    holds("the sooner splitting stops, the less noise a cell has", _less_noise(stopped, early))
    beside("the budget of every path, stopped early or not", [EPSILON], _spent(stopped))


def _less_noise(release: sf.Partition, early: np.ndarray) -> bool:
    """A cell one level above the last has paid for as many tests as those below it."""
    most = release.scale[~early].max()
    return bool((release.scale[early] <= most).all() and release.scale[early].min() < most)


def _spent(release: sf.Partition) -> list[float]:
    return sorted(set(release.spent.tolist()))


def median() -> None:
    """ "A KD-tree-like partitioning ... selects medians using an exponential mechanism."""
    with publisher() as pub:
        tree = pub.release(sf.MedianPartitioner(depth=2), epsilon="20")
    beside("cells of two levels with a fanout of 2", 4, len(tree.counts))
    share = tree.consistent().counts / N
    holds("each cell holds about a quarter of the points", np.abs(share - 0.25).max() < 0.05)


def multi_quantile() -> None:
    """ "Selects 'm' quantiles using an exponential mechanism, following the JointExp function."""
    with publisher() as pub:
        even = pub.release(sf.MultiQuantilePartitioner("x", depth=1, fanout=5), epsilon="20")
        uneven = pub.release(
            sf.MultiQuantilePartitioner("x", depth=1, at=[0.5, 0.9, 0.99]), epsilon="20"
        )
    beside("boxes of m = 4 quantiles", 5, len(even.counts))
    order = np.argsort(uneven.lower[:, 0])
    share = uneven.consistent().counts[order] / N
    holds(
        "uneven quantiles are where they are asked for",
        np.abs(share - [0.5, 0.4, 0.09, 0.01]).max() < 0.05,
    )


def parts(release: sf.Partition) -> tuple[float, float, float]:
    """What the path to a deepest cell spent on the cell, on where it lies, and on tests.

    The counts of one level share a law. What is left of epsilon was spent on choices; a uniform
    grid chooses by its first count, that of the root.
    """
    scales = [float(law.scale) for law in release.laws]
    levels = dict.fromkeys(release.inner.which.tolist())
    on_levels = [1 / scales[which] for which in levels]
    cell = 1 / release.scale[release.depth == release.depth.max()].max()
    if release.made_by == "Uniform grid":
        return cell, on_levels[0], sum(on_levels[1:])
    return cell, EPSILON - cell - sum(on_levels), sum(on_levels)


def budgets() -> None:
    """The table: which of the three budgets each partitioner has, and ISSUE #1."""
    three = sf.Shares(release=3, partition=1, threshold=2)
    settings = {"shares": three, "stop_below": 20}
    questions = {
        "Uniform": (sf.UniformPartitioner(**settings), ["YES", "YES", "YES"]),
        "Median": (sf.MedianPartitioner(depth=3, **settings), ["YES", "YES", "YES"]),
        "Multi Quantile": (
            sf.MultiQuantilePartitioner(depth=2, fanout=3, **settings),
            ["YES", "YES", "YES"],
        ),
        "Binary": (
            sf.BinaryPartitioner(depth=3, stop_below=20, shares=sf.Shares(release=1, threshold=1)),
            ["YES", "NO", "YES"],
        ),
    }
    with publisher() as pub:
        for name, (question, table) in questions.items():
            release = pub.release(question, epsilon="1")
            here = ["YES" if part > 1e-9 else "NO" for part in parts(release)]
            beside(f"{name}: epsilon_release, _partition, _threshold", table, here)
            beside(f"{name}: the budget of every path", [EPSILON], _spent(release))
        by_fan_out = pub.release(sf.UniformPartitioner(stop_below=20), epsilon="1")
    cells = len(by_fan_out.counts)
    holds(
        "ISSUE #1, solution 2: the first count determines the fan-out, and the rest is allocated",
        by_fan_out.inner is not None and _spent(by_fan_out) == [EPSILON],
    )
    whole, _ = eugkm_cells(N, EPSILON, d=2)
    holds("quiet blocks stay one cell, so that there are fewer cells", cells < whole)
    # At most 2048 x 2048 cells lie in 45 x 45 blocks.
    holds(
        "the leaf nodes cannot take too much: blocks keep a fourteenth at the largest fan-out",
        1 / (1 + (2048 / 45) ** (2 / 3)) > 1 / 14,
    )


if __name__ == "__main__":
    counts_of_number()
    uniform()
    binary()
    median()
    multi_quantile()
    budgets()
