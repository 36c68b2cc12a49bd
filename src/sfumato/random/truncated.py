"""The law of the noise that selects keys optimally: its masses rise to a peak, and fall after it.

pi(n), the probability of keeping a key that n rows have, is the largest that (epsilon, delta)
allows (Desfontaines, Voss, Gipson, Mandayam, PoPETs 2022, Thm 1): pi(0) = 0 and

    pi(n + 1) = min(e^eps pi(n) + delta, 1 - e^-eps (1 - pi(n) - delta), 1).

The noise J has P(J <= n) = pi(n), that is, masses d(n) = pi(n) - pi(n - 1) on 1, ..., last. With
q = e^-eps:

    up to ``turn``   d(n) = delta q^-(n - 1), by the first of the three;
    after it         s(n) = 1 - pi(n) has s(n + 1) = q (s(n) - delta), by the second, until s(n)
                     is at most delta;
    at ``last``      the mass is what is left.

Which of the three is the least at each n is decided between integers, once, at a depth at which it
shows. A tie would be an algebraic equation for e^eps, which has none for delta < 1/2 (Lindemann),
so such a depth exists.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import msgspec

from sfumato.basics import decimal
from sfumato.errors import InternalError, UsageError
from sfumato.random.finite import FiniteSampler
from sfumato.random.inversion import Pair, exp_minus

MOST_STEPS = 2**17
_GUARD_BITS = 64


class Shape(msgspec.Struct, frozen=True):
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
    if not 0 < delta < Fraction(1, 2):
        raise UsageError(
            f"delta = {decimal(delta)}",
            "selecting keys needs a delta above 0 and below 1/2",
            "Choose delta such as 1e-6",
        )
    if float(delta) <= 1e-300:
        raise UsageError(
            f"selecting keys at delta = {decimal(delta, 3)} a row",
            "no key would ever be kept",
            "Choose a larger delta, or a smaller epsilon",
        )
    # Where the law turns, as floats see it: ln((e^eps + 2 delta - 1) / ((e^eps + 1) delta)) / eps.
    # Numerator and denominator are both multiplied by e^-eps, so that a large epsilon does not
    # overflow. The search between integers starts here.
    q = math.exp(-float(epsilon))
    numerator = -math.expm1(-float(epsilon)) + 2 * float(delta) * q
    guess = math.log(numerator / ((1 + q) * float(delta))) / float(epsilon)
    if guess > MOST_STEPS // 3:
        raise UsageError(
            f"selecting keys at epsilon = {decimal(epsilon)} a row",
            "it would need thousands of rows to keep one key",
            "Choose a larger epsilon, or fewer rows per person",
        )
    depth = 128
    while depth <= 2**14:
        candidate = _shape(epsilon, delta, 1 + max(0, math.floor(guess)), depth)
        if candidate is not None:
            return candidate
        depth *= 2
    raise InternalError("The law that selects keys could not be told apart from a tie.")


def _shape(epsilon: Fraction, delta: Fraction, turn: int, depth: int) -> Shape | None:
    """Find the shape from a guess of ``turn``, or None where a comparison is not certain at this
    depth.
    """
    # A walk from the guess to the last n that grows by e^eps.
    while turn > 1:
        grows = _grows(epsilon, delta, turn - 1, depth)
        if grows is None:
            return None
        if grows:
            break
        turn -= 1
    while grows := _grows(epsilon, delta, turn, depth):
        turn += 1
    if grows is None:
        return None
    low, high = _cumulative(epsilon, delta, turn, depth)
    unity = 1 << depth
    scaled_delta = delta * unity
    # The first n from the turn on at which at most delta is left may be so; it must certainly be
    # so.
    left = next(
        (i for i, upper in enumerate(high) if i + 1 >= turn and unity - upper <= scaled_delta),
        None,
    )
    if left is None or unity - low[left] > scaled_delta:
        return None
    half = unity >> 1
    middle = next(i for i, upper in enumerate([*high, unity]) if upper >= half)
    if middle <= left and low[middle] < half:
        return None
    # Index i of the lists is n = i + 1, and the step after ``left`` takes what is left.
    return Shape(turn, left + 2, middle + 1)


def _grows(epsilon: Fraction, delta: Fraction, n: int, depth: int) -> bool | None:
    """Whether pi still grows by e^eps from n to n + 1, having grown so up to n; None where it is
    not certain.

    The condition is e^eps pi(n) + delta <= 1 - e^-eps (1 - pi(n) - delta). Both sides multiplied by
    (1 - q), it is delta e^(n eps) (1 + q) <= 1 - q + 2 delta q.
    """
    work = depth + _GUARD_BITS
    q_low, q_high = exp_minus(epsilon, work)
    # q^n stands below the line, so its ends change places.
    power_low, power_high = exp_minus(n * epsilon, work)
    unity = 1 << work
    scaled_delta = delta * unity
    if power_low == 0:
        # e^(n eps) is above 2^work: the left side is above 1 unless delta is as small as that.
        return False if delta * 2 ** (work - 8) > 1 else None
    left_low = scaled_delta * unity * (unity + q_low) / (power_high * unity)
    left_high = scaled_delta * unity * (unity + q_high) / (power_low * unity)
    right_low = unity - q_high + 2 * scaled_delta * q_low / unity
    right_high = unity - q_low + 2 * scaled_delta * q_high / unity
    if left_high <= right_low:
        return True
    return False if left_low > right_high else None


def _cumulative(
    epsilon: Fraction, delta: Fraction, turn: int, depth: int, last: int = MOST_STEPS
) -> tuple[list[int], list[int]]:
    """Enclose pi(1), pi(2), ... at ``depth`` bits: lists of low and high ends.

    The lists end at ``last`` - 1, or where at most delta is certainly left.
    """
    # Masses start at delta, which has so many bits less than 1.
    work = depth + _GUARD_BITS + delta.denominator.bit_length()
    unity = 1 << work
    q_low, q_high = exp_minus(epsilon, work)
    scaled_delta = (
        (delta.numerator << work) // delta.denominator,
        -(-(delta.numerator << work) // delta.denominator),
    )
    sums = _rising_sums(epsilon, scaled_delta, turn, work)
    low, high = sums[-1]
    left_low = unity - high
    left_high = unity - low
    while len(sums) < last - 1 and left_high > scaled_delta[0]:
        left_low = max(0, (left_low - scaled_delta[1]) * q_low >> work)
        left_high = -(-(left_high - scaled_delta[0]) * q_high >> work)
        sums.append((unity - left_high, unity - left_low))
    spare = work - depth
    lows = [low >> spare for low, _ in sums]
    return lows, [-(-high >> spare) for _, high in sums]


def _rising_sums(epsilon: Fraction, scaled_delta: Pair, turn: int, work: int) -> list[Pair]:
    """Enclose pi(1), ..., pi(turn): sums of masses that grow by e^eps."""
    q_low, q_high = exp_minus(epsilon, work)
    # Masses are made from the peak down, so that each is rounded at the same absolute size: no
    # error grows.
    masses = [_grown(epsilon, scaled_delta, turn - 1, work)]
    for _ in range(turn - 1):
        low, high = masses[-1]
        masses.append((low * q_low >> work, -(-high * q_high >> work)))
    sums: list[Pair] = []
    sum_low = sum_high = 0
    for low, high in reversed(masses):
        sum_low += low
        sum_high = min(sum_high + high, 1 << work)
        sums.append((sum_low, sum_high))
    return sums


def _grown(epsilon: Fraction, scaled_delta: Pair, times: int, work: int) -> Pair:
    """Enclose delta e^(times eps)."""
    if not times:
        return scaled_delta
    shrink_low, shrink_high = exp_minus(times * epsilon, 2 * work)
    low = (scaled_delta[0] << 2 * work) // shrink_high
    high = -(-(scaled_delta[1] << 2 * work) // shrink_low)
    return low, high


@lru_cache(maxsize=16)
def enclosed(epsilon: Fraction, delta: Fraction, depth: int) -> tuple[list[int], list[int]]:
    """Enclose pi(1), ..., pi(last) at ``depth`` bits; pi(last) is 1, exactly."""
    walk = shape(epsilon, delta)
    low, high = _cumulative(epsilon, delta, walk.turn, depth, walk.last)
    return [*low, 1 << depth], [*high, 1 << depth]


@lru_cache(maxsize=16)
def sampler(epsilon: Fraction, delta: Fraction) -> FiniteSampler:
    """The table from which J - 1 is drawn."""
    return FiniteSampler(lambda depth: enclosed(epsilon, delta, depth))
