"""The exact audit: the largest privacy loss between small neighbouring data sets.

The mechanism is the code that publishes, and nothing about it is derived again here. It runs under
a script (``runs.Scripted``): the script supplies chosen integers in place of noise, and records the
law that each was drawn from. The output is then a function of rows and script, and

    P(output | rows) = the product of the recorded probabilities of the script
                       that leads from those rows to that output.

To find the probability of the same output under a neighbour, its script is searched for. The script
is believed only if the neighbour, run with it, publishes *the same bytes*. So an output whose
bounds, edges or cells depend on the data has probability zero under the neighbour, and the loss is
unbounded. ``check_additive`` establishes that there is only one such script: each published number
moves one for one with its own draw, and does not change earlier numbers.

One output is enough for Laplace noise on additive numbers: |o - f'| - |o - f| is largest at o = f,
by the triangle inequality, in every coordinate at once, so the output of the all-zero script
attains the supremum. Where the first draw decides what comes next (a noisy number of rows sets the
size of a grid), its values are enumerated, and the draws after it are zero.

Mechanisms that are not additive, such as a retry loop, are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np

from sfumato.audit.runs import (
    Draws,
    Mechanism,
    NotAdditive,
    Pair,
    Published,
    Rows,
    Scripted,
    log_mass,
    log_sum,
    renyi,
    run_script,
    support,
    with_draw,
)
from sfumato.basics import root
from sfumato.mechanisms import Law
from sfumato.privacy import ZCDP, CentralMeasure

# Noise so large that clipping or a comparison with the data would show.
FAR = 1000
# How many numbers of an output ``check_additive`` moves.
CHECKED = 8
# Tried where the first draw decides how many others there are.
FIRST_DRAWS = (-100, -3, 0, 1, 4, 10, 40, 100)
# How closely a least epsilon is enclosed, as a share of it.
CLOSE = 1e-15
ALPHAS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)


@dataclass(frozen=True)
class Loss:
    """The largest loss found, in the measure asked for, and the data sets that show it."""

    loss: float
    pair: Pair = ((), ())


def largest(losses: Iterable[tuple[float, Pair]]) -> Loss:
    """Return the largest loss and its pair of data sets; 0 where all are negative."""
    loss, pair = max(losses, key=lambda of_pair: of_pair[0])
    return Loss(max(loss, 0.0), pair)


def least_epsilon(spent: Callable[[float], float], delta: float, most: float) -> float:
    """Return the least epsilon at which no more than delta is spent; infinity if it is above most.

    Parameters
    ----------
    spent : callable
        From an epsilon to the delta that is spent beside it, which falls.
    delta, most : float
    """
    if spent(0.0) <= delta:
        return 0.0
    if spent(most) > delta:
        return math.inf
    # The upper end of what encloses it: there no more than delta is spent.
    _, epsilon = root(lambda level: spent(level) <= delta, 0.0, most, CLOSE)
    return epsilon


def additive_loss(
    mechanism: Mechanism, pairs: Sequence[Pair], claim: CentralMeasure, alphas: Sequence[float]
) -> Loss:
    """Return the largest loss of numbers that move one for one with their draws.

    Where the first draw decides how many there are, several values of it are tried.
    """
    sizes = {len(mechanism(pairs[0][0], Scripted((first,))).numbers) for first in FIRST_DRAWS}
    first_draws = FIRST_DRAWS if len(sizes) > 1 else (0,)
    if isinstance(claim, ZCDP):
        return renyi_loss(mechanism, pairs, alphas, decides=len(first_draws) > 1)
    return pure_loss(mechanism, pairs, first_draws)


def pure_loss(
    mechanism: Mechanism, pairs: Iterable[Pair], first_draws: Sequence[int] = (0,)
) -> Loss:
    """Return the epsilon that is spent: the largest ln P(output | one) / P(output | other).

    Parameters
    ----------
    mechanism : callable
        From rows and bits to ``Published``.
    pairs : iterable of pairs of data sets
        Neighbours, in both orders.
    first_draws : sequence of int
        Values of the first draw to enumerate, where it decides what comes next.

    Raises
    ------
    NotAdditive
        If the mechanism's numbers do not follow its draws one for one, or if it uses randomness
        that is not recorded.
    """
    pairs = list(pairs)
    runner = _checked(mechanism, pairs, first_draws)
    return largest(
        (runner.log_ratio(pair, first), pair) for pair, first in product(pairs, first_draws)
    )


def renyi_loss(
    mechanism: Mechanism,
    pairs: Iterable[Pair],
    alphas: Sequence[float] = ALPHAS,
    decides: bool = False,
) -> Loss:
    """Return the rho that is spent: the largest Renyi divergence D_alpha(one || other) / alpha.

    Parameters
    ----------
    mechanism, pairs
        As for ``pure_loss``.
    alphas : sequence of float
        Orders of the divergence, above 1.
    decides : bool
        Whether the first draw decides what comes next. Its values are then enumerated, and the
        divergences of what comes next are averaged as the definition says, not bounded by their
        maximum.

    Raises
    ------
    NotAdditive
        As ``pure_loss``.
    """
    pairs = list(pairs)
    runner = _checked(mechanism, pairs, (0,))
    divergence = runner.averaged_divergence if decides else runner.divergence
    return largest(
        (divergence(pair, alpha) / alpha, pair) for pair, alpha in product(pairs, alphas)
    )


def check_additive(mechanism: Mechanism, rows: Rows, first_draws: Sequence[int]) -> None:
    """Check that a script and an output determine each other: see the top of this file.

    The scripts that are tried have all noise far below zero, all far above, or mixed. A loop that
    depends on the data, clipping or rounding shows under one of them. Only the first ``CHECKED``
    numbers are tried: beyond them a release is assumed to go on as it began.

    Raises
    ------
    NotAdditive
        If they do not.
    """
    rng = np.random.default_rng(len(rows))
    scripts = [
        (first, *(int(x) for x in rng.integers(-9, 10, CHECKED)))
        for first in (first_draws[0], first_draws[-1])
    ]
    scripts += [(-FAR,) * CHECKED, (FAR,) * CHECKED]
    for script in scripts:
        output, noise = run_script(mechanism, rows, script)
        again, _ = run_script(mechanism, rows, script)
        if output.everything != again.everything:
            raise NotAdditive(
                "the same draws led to two outputs: "
                "there is randomness that no recorded law describes"
            )
        draws = noise.values
        if len(output.numbers) != len(draws):
            raise NotAdditive(f"{len(draws)} draws led to {len(output.numbers)} numbers")
        for i in range(min(len(output.numbers), CHECKED)):
            moved, _ = run_script(mechanism, rows, with_draw(tuple(draws), i, draws[i] + 1))
            # Later numbers may change: a first draw may decide how many there are.
            if moved.numbers[: i + 1] != (*output.numbers[:i], output.numbers[i] + 1):
                raise NotAdditive(f"number {i} does not move one for one with its draw")


# --- running under scripts ------------------------------------------------------------------------


def solved(
    run: Callable[[Rows, Draws], tuple[Published, Scripted]],
    rows: Rows,
    script: Draws,
    places: Sequence[int],
    target: Published,
) -> Draws | None:
    """Return the script under which rows publish ``target`` to the last byte; None if none does.

    Parameters
    ----------
    run : callable
        Returns the output of a script, and what the mechanism asked for.
    rows : tuple of rows
    script : tuple of int
        Where the search begins.
    places : sequence of int
        Which of its draws are published, in the order of the numbers. Others stay as they are.
    target : Published
    """
    draws = list(script)
    last_mended = -1
    while True:
        output, _ = run(rows, tuple(draws))
        both = enumerate(zip(output.numbers, target.numbers, strict=False))
        # Where one output has more numbers, none of those compared is wrong, and the bytes tell.
        wrong = [i for i, (number, wanted) in both if number != wanted]
        if not wrong:
            return tuple(draws) if output.everything == target.everything else None
        # A draw does not change earlier numbers, so each round mends at least one more number.
        # If it does not, no script leads there.
        if wrong[0] <= last_mended or wrong[-1] >= len(places):
            return None
        last_mended = wrong[0]
        for i in wrong:
            draws[places[i]] += target.numbers[i] - output.numbers[i]


class _Runner:
    """Runs a mechanism under scripts, keeps the outcomes, and finds the script to an output."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._run = cache(partial(run_script, mechanism))
        self._shifts = cache(self._shifted)

    def __call__(self, rows: Rows, script: Draws) -> tuple[Published, Scripted]:
        # A mechanism sees counts, so the order of rows does not matter.
        return self._run(tuple(sorted(rows, key=repr)), script)

    def solve(self, rows: Rows, target: Published) -> Draws | None:
        """The script under which these rows publish ``target`` to the last byte; None if none."""
        size = len(target.numbers)
        return solved(self, rows, (0,) * size, range(size), target)

    def log_ratio(self, pair: Pair, first: int) -> float:
        """Return ln P(output | one) / P(output | other) for the output of (first, 0, 0, ...)."""
        rows, other = pair
        output, noise = self(rows, (first,))
        script = self.solve(other, output)
        if script is None:
            return math.inf
        _, noise_of_other = self(other, script)
        return noise.log_likelihood() - noise_of_other.log_likelihood()

    def divergence(self, pair: Pair, alpha: float, prefix: Draws = ()) -> float:
        """D_alpha of the draws that follow a prefix. They are independent, so it adds up."""
        shifts = self._shifts(pair, prefix)
        if shifts is None:
            return math.inf
        return math.fsum(renyi(law, shift, alpha) for law, shift in shifts)

    def _shifted(self, pair: Pair, prefix: Draws) -> list[tuple[Law, int]] | None:
        """Return the laws of the draws after a prefix, each with the shift of the neighbour's draw.

        None if no draws of the neighbour lead to the same output.
        """
        rows, other = pair
        output, noise = self(rows, prefix)
        script = self.solve(other, output)
        if script is None:
            return None
        start = len(prefix)
        draws = zip(noise.noise_laws()[start:], noise.values[start:], script[start:], strict=True)
        return [(law, abs(needed - drawn)) for law, drawn, needed in draws if needed != drawn]

    def averaged_divergence(self, pair: Pair, alpha: float) -> float:
        """D_alpha of all draws, where the first one decides what comes next."""
        rows, other = pair
        output, noise = self(rows, ())
        output_of_other, _ = self(other, ())
        law = noise.noise_laws()[0]
        shift = output.numbers[0] - output_of_other.numbers[0]
        # The integrand of a Gaussian is centred at alpha * shift, not at 0.
        reach = support(law, 40)[-1] + math.ceil(alpha * abs(shift))
        values = np.arange(-reach, reach + 1)
        log_p = np.array([log_mass(law, int(value)) for value in values])
        log_q = np.array([log_mass(law, int(value) + shift) for value in values])
        rest = np.array([self.divergence(pair, alpha, (int(value),)) for value in values])
        terms = alpha * log_p + (1 - alpha) * log_q + (alpha - 1) * rest
        return log_sum(terms) / (alpha - 1)


def _checked(mechanism: Mechanism, pairs: list[Pair], first_draws: Sequence[int]) -> _Runner:
    """Return a runner of a mechanism that was found to be additive on all these data sets."""
    for rows in {rows for pair in pairs for rows in pair}:
        check_additive(mechanism, rows, first_draws)
    return _Runner(mechanism)
