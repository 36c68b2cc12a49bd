"""The law of the noise that selects keys optimally: masses that grow by exp(epsilon) up to a peak and fall by it after.

pi(n), the probability of keeping a key that n rows have, is the largest that (epsilon, delta) allows (Desfontaines, Voss,
Gipson, Mandayam, PoPETs 2022, Thm 1): pi(0) = 0 and

    pi(n + 1) = min(e^eps pi(n) + delta, 1 - e^-eps (1 - pi(n) - delta), 1).

The step J has P(J <= n) = pi(n), that is masses d(n) = pi(n) - pi(n - 1) on 1, ..., last. With q = e^-eps:
d(n) = delta q^-(n - 1) up to ``turn``; then s(n) = 1 - pi(n) has s(n + 1) = q (s(n) - delta), until it is at most delta, and
the last step takes what is left. Which of the three is the least at each n is decided between integers, once, at a depth at
which it shows; a tie would be an algebraic equation for e^eps, which has none for delta < 1/2 (Lindemann).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.errors import InternalError, UsageError
from sfumato.numbers import decimal
from sfumato.random.enclosure import Pair, exp_minus
from sfumato.random.steps import Steps

MOST_STEPS = 2**17
LARGEST_DELTA = Fraction(1, 2)
_GUARD = 64
_DEEPEST = 2**14


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the law turns, where it ends, and its median, which stands for no noise at all.

    Attributes
    ----------
    turn : int
        The last n at which pi grows as fast as e^eps allows.
    last : int
        The least n with pi(n) = 1.
    middle : int
        The least n with pi(n) >= 1/2.
    """

    turn: int
    last: int
    middle: int


@lru_cache(maxsize=64)
def shape(epsilon: Fraction, delta: Fraction) -> Shape:
    """Find the shape of the law.

    Raises
    ------
    UsageError
        If epsilon is so small that the law has more than 2**17 steps, or delta is not in (0, 1/2).
    """
    if not 0 < delta < LARGEST_DELTA:
        raise UsageError(
            f"delta = {decimal(delta)}",
            "selecting keys needs a delta above 0 and below 1/2",
            "Choose delta such as 1e-6",
        )
    e, d = float(epsilon), float(delta)
    # (e^eps + 2 delta - 1) / ((e^eps + 1) delta), with both sides times e^-eps
    guess = (
        math.log((-math.expm1(-e) + 2 * d * math.exp(-e)) / ((1 + math.exp(-e)) * d)) / e
        if d > 1e-300
        else 0.0
    )
    if d <= 1e-300:
        raise UsageError(
            f"selecting keys at delta = {decimal(delta, 3)} a row",
            "no key would ever be kept",
            "Choose a larger delta, or a smaller epsilon",
        )
    if guess > MOST_STEPS // 3:
        raise UsageError(
            f"selecting keys at epsilon = {decimal(epsilon)} a row",
            "it would need thousands of rows to keep one key",
            "Choose a larger epsilon, or fewer rows per person",
        )
    depth = 128
    while depth <= _DEEPEST:
        found = _shape(epsilon, delta, 1 + max(0, math.floor(guess)), depth)
        if found is not None:
            return found
        depth *= 2
    raise InternalError("The law that selects keys could not be told apart from a tie.")


def _shape(epsilon: Fraction, delta: Fraction, turn: int, depth: int) -> Shape | None:
    """The shape, if all comparisons are certain at this depth."""
    while turn > 1 and (grows := _grows(epsilon, delta, turn - 1, depth)) is not True:
        if grows is None:
            return None
        turn -= 1
    while (grows := _grows(epsilon, delta, turn, depth)) is not False:
        if grows is None:
            return None
        turn += 1
    low, high = _cumulative(epsilon, delta, turn, depth)
    one, unit = 1 << depth, delta * 2**depth
    left = next((i for i, upper in enumerate(high) if i + 1 >= turn and one - upper <= unit), None)
    if left is None or not one - low[left] <= unit:
        return None
    half = one >> 1
    middle = next(i for i, upper in enumerate([*high, one]) if upper >= half)
    return Shape(turn, left + 2, middle + 1) if middle > left or low[middle] >= half else None


def _grows(epsilon: Fraction, delta: Fraction, n: int, depth: int) -> bool | None:
    """Whether e^eps pi(n) + delta <= 1 - e^-eps (1 - pi(n) - delta), pi having grown so up to n; None where it is not certain.

    That is delta e^(n eps) (1 + q) <= 1 - q + 2 delta q, after both sides are multiplied by (1 - q).
    """
    work = depth + _GUARD
    q = exp_minus(epsilon, work)
    power = exp_minus(n * epsilon, work)
    one, d = 1 << work, delta * 2**work
    if power[0] == 0:
        return False if delta * 2 ** (work - 8) > 1 else None
    left = [d * one * (one + q[i]) / (power[1 - i] * one) for i in (0, 1)]
    right = [one - q[1 - i] + 2 * d * q[i] / one for i in (0, 1)]
    if left[1] <= right[0]:
        return True
    return False if left[0] > right[1] else None


def _cumulative(
    epsilon: Fraction, delta: Fraction, turn: int, depth: int, last: int = MOST_STEPS
) -> tuple[list[int], list[int]]:
    """Enclose pi(1), pi(2), ... at ``depth`` bits, up to ``last`` - 1 or until what is left is certainly at most delta."""
    work = depth + _GUARD + delta.denominator.bit_length()
    one = 1 << work
    q = exp_minus(epsilon, work)
    unit = (
        (delta.numerator << work) // delta.denominator,
        -(-(delta.numerator << work) // delta.denominator),
    )
    peak = _grown(epsilon, unit, turn - 1, work)
    steps: list[Pair] = [peak]
    for _ in range(turn - 1):
        low, high = steps[-1]
        steps.append((low * q[0] >> work, -(-high * q[1] >> work)))
    sums: list[Pair] = []
    low = high = 0
    for step in reversed(steps):
        low, high = low + step[0], min(high + step[1], one)
        sums.append((low, high))
    rest_low, rest_high = one - high, one - low
    while len(sums) < last - 1 and rest_high > unit[0]:
        rest_low, rest_high = (
            max(0, (rest_low - unit[1]) * q[0] >> work),
            -(-(rest_high - unit[0]) * q[1] >> work),
        )
        sums.append((one - rest_high, one - rest_low))
    spare = work - depth
    return [low >> spare for low, _ in sums], [-(-high >> spare) for _, high in sums]


def _grown(epsilon: Fraction, unit: Pair, times: int, work: int) -> Pair:
    """Enclose delta e^(times eps)."""
    if not times:
        return unit
    shrink = exp_minus(times * epsilon, 2 * work)
    return (unit[0] << 2 * work) // shrink[1], -(-(unit[1] << 2 * work) // shrink[0])


@lru_cache(maxsize=16)
def enclosed(epsilon: Fraction, delta: Fraction, depth: int) -> tuple[list[int], list[int]]:
    """Enclose pi(1), ..., pi(last) at ``depth`` bits; pi(last) is 1, exactly."""
    found = shape(epsilon, delta)
    low, high = _cumulative(epsilon, delta, found.turn, depth, found.last)
    return [*low, 1 << depth], [*high, 1 << depth]


@lru_cache(maxsize=16)
def sampler(epsilon: Fraction, delta: Fraction) -> Steps:
    """The table from which J - 1 is drawn."""
    return Steps(lambda depth: enclosed(epsilon, delta, depth))
