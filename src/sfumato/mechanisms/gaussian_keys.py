"""Selection of keys by Gaussian noise and a threshold, for persons with one row for each key.

``KeyNoise`` is what the laws that select keys have in common, those of ``thresholds`` included: how
often a key is shown, and intervals for it.

Discrete Gaussian noise of variance parameter sigma^2 is added to the count of each key that occurs.
A key is shown, with its noisy count, if that reaches tau. A person changes the counts of at most r
keys by 1 each: sqrt(r) in L2, where several rows of one key could change them by r.

Guarantee: (epsilon, delta) for all keys together, of which of them are shown and their counts.
Holds because: let table D have keys that D' does not have at all: j of them, each held by one
person alone. Then k others differ by 1. Under add-remove j + k <= r; under replace D' may also have
i keys of its own, and j + i + k <= 2 r, with i and j at most r.

*Keys of one person.* One is shown with probability t = P(1 + Z >= tau), any of j with probability
p(j) = 1 - (1 - t)^j. No such output can come from D'.

*The others.* Let P and Q be the laws of their noisy counts. What is shown of them is a function of
these. Each coordinate is moved by 1, so ln P / Q is (2 S + k) / (2 sigma^2) under P, where S is the
sum of k independent draws. The least delta of the pair at epsilon e is therefore

    d(k, e) = P(S >= m) - e^e P(S >= m + k),    m = floor(e sigma^2 - k / 2) + 1.

It grows with k, since a pair of fewer coordinates is a function of one of more.

*Together.* For every set of outputs, P_D - e^eps P_D' <= p(j) + sup [P - e^eps (1 - p(i)) Q]. The
supremum is attained on a set A where P >= e^f Q, f = eps + ln(1 - p(i)), and is at most
d(k, eps) + p(i) / (1 - p(i)) P(A). With any e < f, P(A) <= d(k, e) / (1 - e^(e - f)). So

    delta <= max over j of p(j) + d(K - j, eps), and of it p(r) / (1 - p(r)) P(A) more,

with K = r under add-remove, 2 r under replace. Under add-remove, i or j is 0: the last summand is
left out, because P(A) <= 1 - p(r) makes d + p / (1 - p) P(A) at most p + d.

*Arithmetic.* The sum of k discrete Gaussians is nearly the discrete Gaussian of k sigma^2. By
Poisson's formula each mass differs by a factor of at most (1 + 2.1 e^(-pi^2 sigma^2))^k, which is
below 1 + 1e-10 for sigma >= 2 and k <= 10^6. Tails are sums of positive doubles. Beyond sigma =
2000 they are normal tails from m - 1/2, whose relative error is at most 10 / sigma^2 (midpoint).
Every tail is taken to be off by such a share, in the direction that makes delta larger. So the
slack of finite arithmetic is within delta, not beside it.

The largest delta lies at j = 0 or j = r, for nearly every sigma: both the counts and the keys of
one person may use nearly all of it. Dividing delta between the two would waste half.

Source: Canonne, Kamath, Steinke, NeurIPS 2020 (the noise); Balle, Wang, ICML 2018 (the exact
delta); Korolova et al. 2009; Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, ICML 2020 (the
threshold under Gaussian noise, with delta divided in two).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import msgspec
import numpy as np

from sfumato.basics import Array, least_whole, root
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, IntegerLaw, bell
from sfumato.privacy import ApproxDP, Neighbours
from sfumato.random import bits
from sfumato.random.discrete import check_scale

# --- what all laws that select keys have in common ------------------------------------------------


class KeyNoise(IntegerLaw, frozen=True):
    """Noise on the count of a key, and a threshold that the sum must reach."""

    @property
    def threshold(self) -> int:
        """The least noisy count that is shown."""
        raise NotImplementedError

    def tail(self, x: Array) -> Array:
        """P(noise >= x) for integers x: float64 ndarray like ``x``."""
        raise NotImplementedError

    def kept(self, counts: np.typing.ArrayLike) -> Array:
        """The probability that a key of so many rows is shown: float64 ndarray like ``counts``.

        It is 0 for a key of no rows.
        """
        n = np.asarray(counts)
        return np.where(n > 0, self.tail(self.threshold - n), 0.0)

    def count_kept(self, probability: float) -> int:
        """The least count that is shown with at least this probability."""
        return _least(lambda n: bool(self.kept(n) >= probability))

    def half_width(self, alpha: float) -> int:
        """The smallest integer k with P(|noise| > k) <= alpha."""

        def is_wide_enough(k: int) -> bool:
            return bool(self.tail(np.array(k + 1)) + 1 - self.tail(np.array(-k)) <= alpha)

        return _least(is_wide_enough, start=0)

    def miss_probability(self, a: int) -> float:
        """How often, at most, what is published is off by more than ``a``, whatever the count.

        A key that is not shown is read as a count of 0, as the source's accuracy of stability does.
        The worst count is a + 1: below, not being shown is no error; above, it is rarer.
        """
        lowest = max(self.threshold - a - 1, -a)
        return float(1 - self.tail(np.array(lowest)) + self.tail(np.array(a + 1)))

    def error_bound(self, alpha: float) -> int:
        """The smallest error exceeded with probability at most alpha, whatever the count."""
        return _least(lambda a: self.miss_probability(a) <= alpha, start=0)

    def error_bound_of_cells(self, cells: DiscreteLaplace, alpha: float) -> int:
        """The same for the cells of keys, which are counted with noise of their own.

        A cell of a key that is not shown is read as 0. A cell of n rows lies in a key of at least n
        rows, which is then shown at least as often as a key of n.
        """

        def is_large_enough(a: int) -> bool:
            not_shown = 1 - float(self.kept(a + 1))
            return not_shown + math.exp(cells.log_tail(a)) <= alpha

        return _least(is_large_enough, start=0)

    def interval(self, values: Array, alpha: float) -> tuple[Array, Array]:
        """Intervals for the true counts of keys that were shown: ends, int64 ndarrays like
        ``values``.

        They hold with probability 1 - alpha *given that the key was shown*: keys near the threshold
        were helped by their noise, and an interval that forgets it would miss most of them. n is in
        the interval if and only if neither P(count >= o | shown, n) nor P(count <= o | shown, n) is
        at most alpha / 2; both are monotone in n, because the noise is log-concave.
        """
        seen, back = np.unique(np.asarray(values, np.int64), return_inverse=True)

        def is_large_enough(n: Array) -> Array:
            return ~np.asarray(self.tail(seen - n) <= alpha / 2 * self.tail(self.threshold - n))

        def is_too_large(n: Array) -> Array:
            above = self.tail(seen + 1 - n)
            shown = self.tail(self.threshold - n)
            return above >= (1 - alpha / 2) * shown

        # A key that was shown has at least one row; from ``most`` on every n is too large.
        least = np.ones_like(seen)
        most = seen + self.half_width(alpha / 4) + 2
        low = _first(is_large_enough, least, np.maximum(seen, 1))
        high = _first(is_too_large, low, np.maximum(most, low + 1)) - 1
        shape = np.shape(values)
        return low[back].reshape(shape), np.maximum(high, low)[back].reshape(shape)

    def widths(self, values: Array, alpha: float) -> Array:
        """How far the intervals lie from the noisy counts, on the farther side: int64 ndarray."""
        low, high = self.interval(values, alpha)
        return np.asarray(np.maximum(values - low, high - values))


def check_threshold(tau: int) -> None:
    """Refuse a threshold that is out of range."""
    if not 1 <= tau < 2**62:
        raise UsageError(
            "a threshold",
            "it lies between 1 and 2^62",
            "Choose a larger epsilon or delta, or fewer rows per person",
        )


def _least(holds: Callable[[int], bool], start: int = 1) -> int:
    """The least integer from ``start`` on at which something holds that holds from then on."""
    step = 1
    while not holds(start + step):
        step *= 2
    # After a doubling it is known to fail at half the step.
    low = start + step // 2 if step > 1 else start
    return least_whole(holds, low - 1, start + step)


def _first(holds: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """For each entry the first integer in [low, high] from which on something holds.

    It is known to hold at ``high``.
    """
    low = low.copy()
    high = high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        right = holds(middle)
        low = np.where(right, low, np.minimum(middle + 1, high))
        high = np.where(right, middle, high)
    return low


# --- Gaussian noise and a threshold ---------------------------------------------------------------

MOST_DELTA = Fraction(1, 4)

# The relative error that a tail is assumed to have, if its terms are added up.
SLACK = 1e-9

# The sigma beyond which a tail is that of the normal law.
WIDE = 2000.0

# Terms of a tail so many sigma beyond its first one are below e^-98 of it.
TAIL = 14

# Up to so many keys of one person alone are considered one by one.
SINGLE = 32


class ThresholdGaussian(
    KeyNoise, frozen=True, tag="threshold-gaussian", forbid_unknown_fields=True
):
    """Discrete Gaussian noise, and a threshold ``tau``: a key is shown if its noisy count reaches
    it.

    >>> law = ThresholdGaussian(Fraction(100), 50)
    >>> law.kept([0, 40, 50]).round(3).tolist()
    [0.0, 0.171, 0.52]
    """

    sigma_squared: Fraction
    tau: int

    def __post_init__(self) -> None:
        check_scale(self.sigma_squared, "sigma_squared", power=2)
        check_threshold(self.tau)

    @property
    def threshold(self) -> int:
        return self.tau

    def sample(self, size: int, noise: bits.Bits) -> Array:
        """Draw ``size`` independent values: int64 ndarray of shape (size,)."""
        # A script is asked for the Gaussian law itself: the threshold applies to what it hands out.
        return DiscreteGaussian(self.sigma_squared).sample(size, noise)

    def tail(self, x: Array) -> Array:
        x = np.asarray(x)
        sigma = math.sqrt(self.sigma_squared)
        if sigma > WIDE:
            from scipy.special import ndtr

            return np.asarray(ndtr(-(x - 0.5) / sigma))
        # The table holds P(Z >= 0), P(Z >= 1), ...
        table = _table(self.sigma_squared)
        last = len(table) - 1
        above = table[np.clip(x, 0, last)]
        below = 1 - table[np.clip(1 - x, 0, last)]
        return np.asarray(np.where(x > 0, above, below))

    def __str__(self) -> str:
        sigma = math.sqrt(self.sigma_squared)
        return f"discrete Gaussian noise of sigma {sigma:.6g} and a threshold of {self.tau:,}"


@lru_cache(maxsize=16)
def _table(sigma_squared: Fraction) -> Array:
    """P(Z >= 0), P(Z >= 1), ..., for intervals and curves: nothing is drawn from them."""
    size = math.ceil(3 * TAIL * math.sqrt(sigma_squared)) + 3 * TAIL
    mass = bell(size, float(sigma_squared))
    above = np.cumsum(mass[::-1])[::-1]
    table = np.append(above / (2 * above[0] - 1), 0.0)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=64)
def gaussian_key_law(cost: ApproxDP, keys: int, neighbours: Neighbours) -> ThresholdGaussian | None:
    """Choose noise and the least threshold for persons of at most ``keys`` keys, one row for each.

    Guarantee: ``cost``, for all keys together; see the top of this file.

    Returns
    -------
    ThresholdGaussian or None
        None where this proof gives no law: for a delta above 1/4, or more than 10^6 keys.

    >>> gaussian_key_law(ApproxDP("1", "1e-6"), 12, "add-remove").tau
    79
    """
    most = keys if neighbours == "add-remove" else 2 * keys
    if not 0 < cost.delta <= MOST_DELTA or most > 10**6:
        return None
    best: ThresholdGaussian | None = None
    least = _least_variance(cost, most)
    # A larger variance than the least may allow a smaller threshold.
    for wider in np.linspace(1, 1.5, 26).tolist():
        noise = _Noise(_rounded_up(least * wider), cost, keys, neighbours)
        tau = noise.least_threshold()
        if tau is not None and (best is None or tau < best.tau):
            best = ThresholdGaussian(noise.sigma_squared, tau)
    return best


class _Noise(msgspec.Struct, frozen=True):
    """Noise of a variance, for a person of so many keys."""

    sigma_squared: Fraction
    cost: ApproxDP
    keys: int
    neighbours: Neighbours

    def least_threshold(self) -> int | None:
        """The least threshold that is certainly private; None if none near the least one is."""
        delta = float(self.cost.delta)
        # Any of all keys of one person is shown with probability at most delta.
        of_key = -math.expm1(math.log1p(-delta) / self.keys)
        sigma = math.sqrt(self.sigma_squared)
        tau = 1 + math.floor(sigma * math.sqrt(-2 * math.log(of_key)) + 1)
        while tau > 1 and _tail(tau - 2, float(self.sigma_squared))[0] <= of_key:
            tau -= 1
        # After 64 raises the variance is given up.
        for raised in range(64):
            if self.delta(tau + raised) <= delta * (1 - SLACK):
                return tau + raised
        return None

    def delta(self, tau: int) -> float:
        """An upper bound of the delta that is spent at epsilon with this threshold."""
        tail, slack = _tail(tau - 1, float(self.sigma_squared))
        shown = min(tail * (1 + slack), 1.0)
        most = self.keys if self.neighbours == "add-remove" else 2 * self.keys
        epsilon = float(self.cost.epsilon)
        any_shown = _any(shown, self.keys)
        if any_shown > float(MOST_DELTA):
            return 1.0
        # P(A), with a quarter of epsilon between e and f.
        lower = Fraction(0.75 * epsilon - 2 * any_shown)
        spilt = _delta(most, lower, self.sigma_squared) / -math.expm1(-epsilon / 4)
        if lower <= 0 or spilt > 0.5:
            return 1.0
        worst = max(
            _any(shown, last) + _delta(most - first, self.cost.epsilon, self.sigma_squared)
            for first, last in _blocks(self.keys)
        )
        if self.neighbours == "replace":
            worst += any_shown / (1 - any_shown) * spilt
        return worst


def _any(of_key: float, keys: int) -> float:
    """How often any of so many keys is shown: 1 - (1 - each)^keys."""
    return -math.expm1(keys * math.log1p(-of_key)) if of_key < 1 else 1.0


def _blocks(keys: int) -> list[tuple[int, int]]:
    """Ranges of the number of keys of one person alone, from 0 on: few at first, then more."""
    starts = sorted(
        {*range(min(keys, SINGLE) + 1), *np.geomspace(SINGLE, keys + SINGLE, 64).astype(int)}
    )
    starts = [start for start in starts if start <= keys]
    return [
        (start, min(after - 1, keys))
        for start, after in zip(starts, [*starts[1:], keys + 1], strict=True)
    ]


@lru_cache(maxsize=4096)
def _delta(keys: int, epsilon: Fraction, sigma_squared: Fraction) -> float:
    """An upper bound of d(k, epsilon): see the top of this file."""
    if keys == 0:
        return 0.0
    first = math.floor(epsilon * sigma_squared - Fraction(keys, 2)) + 1
    squared = float(sigma_squared * keys)
    above, slack = _tail(first, squared)
    beyond, other_slack = _tail(first + keys, squared)
    least_beyond = math.exp(epsilon) * beyond * (1 - other_slack)
    excess = above * (1 + slack) - least_beyond
    return max(excess, 0.0) * (1 + SLACK)


def _tail(least: int, squared: float) -> tuple[float, float]:
    """P(S >= least) for discrete Gaussian S, and a bound of its relative error."""
    if least <= 0:
        beyond, slack = _tail(1 - least, squared)
        return 1 - beyond, slack
    sigma = math.sqrt(squared)
    if sigma > WIDE:
        from scipy.special import ndtr

        # Farther out the rule for the midpoint bounds the tail from above only.
        slack = 10 / squared if least <= 10 * sigma else 1.0
        return float(ndtr(-(least - 0.5) / sigma)), slack
    number = math.ceil(TAIL * sigma) + TAIL
    x = np.arange(least, least + number, dtype=float)
    terms = np.exp(-(x**2) / (2 * squared))
    whole = sigma * math.sqrt(2 * math.pi)
    return float(terms.sum() / whole), SLACK


def _least_variance(cost: ApproxDP, most: int) -> float:
    """The least sigma^2 at which counts alone stay within delta, to a relative 1e-4."""
    # From a variance of 4 on, sums of draws have the law that is computed with.
    low = high = max(4.0, most / 2 / float(cost.epsilon))
    while not _is_enough(high, cost, most):
        low = high
        high *= 2
    return root(lambda squared: _is_enough(squared, cost, most), low, high, 1e-4)[1]


def _is_enough(squared: float, cost: ApproxDP, most: int) -> bool:
    return _delta(most, cost.epsilon, _rounded_up(squared)) <= float(cost.delta)


def _rounded_up(squared: float) -> Fraction:
    """At most six significant decimal digits, so that laws print and travel shortly."""
    power = Fraction(10) ** (5 - math.floor(math.log10(squared)))
    return Fraction(math.ceil(squared * power)) / power
