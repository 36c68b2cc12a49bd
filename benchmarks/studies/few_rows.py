"""Quantiles of few rows, beside peers that spend all of epsilon on values and state no rank.

The mean error of a value in ranks, over samples of 300 normal values, at epsilon 1. Peers have what
a release spends on its values, which is four fifths, and all of it. Run: python -m
benchmarks.studies.few_rows
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.peers import absent, ask
from benchmarks.quantiles import LOWER, POINTS, UPPER, drawn_ranks, joint_ranks, points_of
from sfumato.basics.numbers import Array
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.quantiles.methods import AxisMethod

ROWS = 300
SAMPLES = 20
RUNS = 15
"""Releases of each sample."""
SPENT = ("4/5", "1")
"""Of epsilon, on values."""
Draw = Callable[[Array, tuple[Fraction, ...], Fraction], Array]


def table(samples: Array) -> Iterator[str]:
    """Compare ours with the peers, a line of a table each."""
    yield "| who | quantiles | at 4/5 of epsilon | at all of it |"
    yield "|---|---|---|---|"
    for number in (1, 3):
        at = tuple(Fraction(i, number + 1) for i in range(1, number + 1))
        for who, draw in (("sfumato", _ours), ("JointExp", joint_ranks)):
            # Ours pays for ranks beside: at all of epsilon, with another quarter of it.
            cells = [_cell(samples, at, draw, Fraction(spent)) for spent in SPENT]
            yield f"| {who} | {number} | {' | '.join(cells)} |"
        for peer in ("diffprivlib", "opendp"):
            yield f"| {peer} | {number} | {' | '.join(_of_peer(peer, samples, at))} |"


def _cell(samples: Array, at: tuple[Fraction, ...], draw: Draw, epsilon: Fraction) -> str:
    ranks = [[draw(sample, at, epsilon) for _ in range(RUNS)] for sample in samples]
    return _mean_error(np.array(ranks, float), at)


def _ours(values: Array, at: tuple[Fraction, ...], epsilon: Fraction) -> Array:
    """Draw as a question does that spends this much on values, and a quarter of it on ranks."""
    method = AxisMethod(
        "joint", at, POINTS, Unit(), PureDP(epsilon), False, rank_cost=PureDP(epsilon / 4)
    )
    return drawn_ranks(method, *points_of(values))


def _of_peer(peer: str, samples: Array, at: tuple[Fraction, ...]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.npy"
        np.save(path, samples)
        for spent in SPENT:
            values = ask(
                peer,
                "quantiles",
                list[list[list[float]]],
                path=str(path),
                at=[float(q) for q in at],
                lower=LOWER,
                upper=UPPER,
                epsilon=float(Fraction(spent)),
                runs=RUNS,
            )
            if values is None:
                yield absent(peer)
                continue
            pairs = zip(samples, values, strict=True)
            ranks = [np.searchsorted(sample, of_sample) for sample, of_sample in pairs]
            yield _mean_error(np.array(ranks, float), at)


def _mean_error(ranks: Array, at: tuple[Fraction, ...]) -> str:
    """Say the mean distance of ranks from those asked for, and its standard error."""
    errors = np.abs(ranks - ROWS * np.array([float(q) for q in at])).mean(axis=(1, 2))
    return f"{errors.mean():.2f} ({errors.std(ddof=1) / np.sqrt(len(errors)):.2f})"


if __name__ == "__main__":
    normal = np.random.default_rng(5).normal(size=(SAMPLES, ROWS))
    for line in table(np.sort(np.clip(normal, LOWER, UPPER))):
        print(line, flush=True)
