"""How much one person can change what is published: exact likelihood ratios, found by running the production code.

Nothing about a mechanism is derived again here. It is run under a script (``runs.Scripted``), which hands out chosen integers
as noise and records the law that each was asked from. What a mechanism publishes is then a function of rows and script, and

    P(output | rows) = the product of the recorded probabilities of the script that leads from those rows to that output.

For a neighbour that script is searched for, and believed only when the neighbour, run with it, publishes *the same bytes*: so
bounds, edges or cells that follow the data show as a likelihood of nought. That there is one script only is what
``check_additive`` establishes: each published number moves one for one with its own draw, and leaves earlier numbers alone.

Which outputs to look at. For Laplace noise on additive numbers |o - f'| - |o - f| is largest at o = f, by the triangle
inequality, in every coordinate at once: the output of the all-zero script attains the supremum. Where the first draw decides
what comes next (the number of rows, which lays a grid) its values are enumerated, and the draws after it are zero.
Mechanisms that are not additive (an unpaid retry loop) are refused; ``lower_bound`` enumerates all their scripts in a box.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from sfumato.audit.laws import log_mass, log_sum, renyi, support
from sfumato.audit.runs import (
    Draws,
    Exhausted,
    Mechanism,
    NotAdditive,
    Pair,
    Published,
    Rows,
    Scripted,
)
from sfumato.mechanisms.noise import Law

FAR, CHECKED = 1000, 8
ALPHAS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)


@dataclass(frozen=True)
class Loss:
    """The largest loss found, in the measure that was asked for, and between which data sets."""

    loss: float
    pair: Pair = ((), ())


def pure_loss(
    mechanism: Mechanism, pairs: Iterable[Pair], first_draws: Sequence[int] = (0,)
) -> Loss:
    """The largest ln P(output | one) / P(output | other) over pairs and over the outputs described at the top.

    Raises
    ------
    NotAdditive
        If the mechanism's numbers do not follow its draws one for one, or it draws randomness that is not recorded.
    """
    pairs = list(pairs)
    run = _checked(mechanism, pairs, first_draws)
    return _largest((run.ratio(pair, first), pair) for pair, first in product(pairs, first_draws))


def renyi_loss(
    mechanism: Mechanism,
    pairs: Iterable[Pair],
    alphas: Sequence[float] = ALPHAS,
    decides: bool = False,
) -> Loss:
    """The largest D_alpha(one || other) / alpha over pairs and orders: rho-zCDP promises at most rho.

    ``decides``: the first draw decides what comes next, and its values are enumerated; the divergences of what comes next
    are averaged as the definition has it, not bounded by their maximum.

    Raises
    ------
    NotAdditive
        As ``pure_loss``.
    """
    pairs = list(pairs)
    run = _checked(mechanism, pairs, (0,))
    divergence = run.averaged if decides else run.divergence
    return _largest(
        (divergence(pair, alpha) / alpha, pair) for pair, alpha in product(pairs, alphas)
    )


def lower_bound(mechanism: Mechanism, one: Rows, other: Rows, *, reach: int, draws: int) -> float:
    """A lower bound on ln P(output | one) / P(output | other), from all scripts of up to ``draws`` draws within ``reach``.

    For mechanisms that are not additive. What is cut off counts fully for ``other``: the bound is valid whatever happens there.
    """
    law, _ = _explore(mechanism, one, reach, draws)
    against, cut = _explore(mechanism, other, reach, draws)
    return max(math.log(mass / (against.get(output, 0.0) + cut)) for output, mass in law.items())


def check_additive(mechanism: Mechanism, rows: Rows, first_draws: Sequence[int]) -> None:
    """Check that a script and an output determine each other: see the top of this file.

    On scripts that reach into every corner: all noise far below, all far above, and mixed. Data-dependent loops, clipping and
    rounding show at one of them. Beyond its first ``CHECKED`` numbers a release is taken to go on as it began.

    Raises
    ------
    NotAdditive
        If they do not.
    """
    rng = np.random.default_rng(len(rows))
    mixed = [
        (first, *(int(x) for x in rng.integers(-9, 10, CHECKED)))
        for first in (first_draws[0], first_draws[-1])
    ]
    for base in (*mixed, (-FAR,) * CHECKED, (FAR,) * CHECKED):
        seen, noise = _under(mechanism, rows, base)
        if seen.everything != _under(mechanism, rows, base)[0].everything:
            raise NotAdditive(
                "the same draws led to two outputs: there is randomness that no recorded law describes"
            )
        if len(seen.numbers) != len(noise.values):
            raise NotAdditive(f"{len(noise.values)} draws led to {len(seen.numbers)} numbers")
        for i in range(min(len(seen.numbers), CHECKED)):
            moved, _ = _under(
                mechanism, rows, (*noise.values[:i], noise.values[i] + 1, *noise.values[i + 1 :])
            )
            if moved.numbers[: i + 1] != (*seen.numbers[:i], seen.numbers[i] + 1):
                raise NotAdditive(f"number {i} does not move one for one with its draw")


# --- how it is done -----------------------------------------------------------------------------------------------------


class _Runner:
    """Runs a mechanism under scripts, remembers the outcomes, and finds the script that leads to an output."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._known: dict[tuple[Rows, Draws], tuple[Published, Scripted]] = {}
        self._shifts: dict[tuple[Pair, Draws], list[tuple[Law, int]] | None] = {}

    def __call__(self, rows: Rows, script: Draws) -> tuple[Published, Scripted]:
        key = (tuple(sorted(rows, key=repr)), script)
        if key not in self._known:
            self._known[key] = _under(self.mechanism, rows, script)
        return self._known[key]

    def solve(self, rows: Rows, target: Published) -> Draws | None:
        """The script under which these rows publish ``target`` to the last byte, or None."""
        script, reached = (0,) * len(target.numbers), -1
        while True:
            got, _ = self(rows, script)
            off = [
                i
                for i, (a, b) in enumerate(zip(got.numbers, target.numbers, strict=False))
                if a != b
            ]
            if not off:
                return script if got.everything == target.everything else None
            if off[0] <= reached:
                return None
            reached = off[0]
            moved = list(script)
            for i in off:
                moved[i] += target.numbers[i] - got.numbers[i]
            script = tuple(moved)

    def ratio(self, pair: Pair, first: int) -> float:
        """The log-likelihood ratio at the output of one that a first draw and zeros lead to."""
        found, noise = self(pair[0], (first,))
        script = self.solve(pair[1], found)
        return (
            math.inf
            if script is None
            else noise.log_likelihood() - self(pair[1], script)[1].log_likelihood()
        )

    def divergence(self, pair: Pair, alpha: float, prefix: Draws = ()) -> float:
        """D_alpha of the draws that follow a prefix: independent, so that it adds up."""
        key = (pair, prefix)
        if key not in self._shifts:
            self._shifts[key] = self._shifted(pair, prefix)
        shifts = self._shifts[key]
        return (
            math.inf
            if shifts is None
            else math.fsum(renyi(law, shift, alpha) for law, shift in shifts)
        )

    def _shifted(self, pair: Pair, prefix: Draws) -> list[tuple[Law, int]] | None:
        """The laws of the draws that follow a prefix, and how far the neighbour's draws must lie from them; None: out of reach."""
        found, noise = self(pair[0], prefix)
        script, skip = self.solve(pair[1], found), len(prefix)
        if script is None:
            return None
        moves = zip(noise.noise_laws()[skip:], noise.values[skip:], script[skip:], strict=True)
        return [(law, abs(needed - had)) for law, had, needed in moves if needed != had]

    def averaged(self, pair: Pair, alpha: float) -> float:
        """D_alpha of all draws, where the first one decides what comes next."""
        (here, noise), (there, _) = (self(rows, ()) for rows in pair)
        law, shift = noise.noise_laws()[0], here.numbers[0] - there.numbers[0]
        reach, drift = (
            support(law, 40)[-1],
            math.ceil(alpha * abs(shift)),
        )  # the integrand of a Gaussian lies at alpha * shift
        values = np.arange(-reach - drift, reach + drift + 1)
        rest = np.array([self.divergence(pair, alpha, (int(v),)) for v in values])
        here_at, there_at = (
            np.array([log_mass(law, int(v) + move) for v in values]) for move in (0, shift)
        )
        terms = alpha * here_at + (1 - alpha) * there_at + (alpha - 1) * rest
        return log_sum(terms) / (alpha - 1)


def _under(mechanism: Mechanism, rows: Rows, script: Draws) -> tuple[Published, Scripted]:
    noise = Scripted(script)
    return mechanism(rows, noise), noise


def _checked(mechanism: Mechanism, pairs: list[Pair], first_draws: Sequence[int]) -> _Runner:
    for rows in {rows for pair in pairs for rows in pair}:
        check_additive(mechanism, rows, first_draws)
    return _Runner(mechanism)


def _largest(found: Iterable[tuple[float, Pair]]) -> Loss:
    loss, pair = max(found, key=lambda entry: entry[0])
    return Loss(max(loss, 0.0), pair)


def _explore(
    mechanism: Mechanism, rows: Rows, reach: int, draws: int
) -> tuple[dict[bytes, float], float]:
    law: defaultdict[bytes, float] = defaultdict(float)
    waiting: list[Draws] = [()]
    while waiting:
        script = waiting.pop()
        noise = Scripted(script, closed=True)
        try:
            seen = mechanism(rows, noise)
        except Exhausted as wanted:
            if len(script) + wanted.size <= draws:
                waiting += [
                    script + more for more in product(range(-reach, reach + 1), repeat=wanted.size)
                ]
        else:
            law[seen.everything] += math.exp(noise.log_likelihood())
    return dict(law), max(0.0, 1 - math.fsum(law.values()))
