"""Running totals under pure differential privacy: the elder tree, and how wide its noise is.

*Sums of independent discrete Laplace draws* (``laplace_sum_half_width``, ``mixed_half_widths``):
their tails and half-widths.

*One scale.* With q = exp(-1/b), A = (1-q)/(1-qz) and B = (1-q)/(1-q/z), one draw has the generating
function A B, and A B = (A + (q/z) B) / (1 + q). Applied again and again to A^n B^n, until one of
the two is used up, this writes the sum as a mixture. With m factors A left, a component is a
negative binomial variable of m successes less n - m. With m factors B left, it is one of m
successes plus n, below 0. All terms are positive, so nothing cancels.

*Several scales.* The sum is computed by a Fourier transform of its generating function on a circle
that is longer than the range in which its mass lies. Wide draws are put on a coarser lattice of
step g. A draw is a difference of two floor(E) with E exponential, and floor(E) lies less than g
above g floor(E / g), so P(|sum| > k) <= P(|sum of draws of scale b/g| > k/g - n). The rounding
error of the transform is less than ``ROUNDING``, which is added. For probabilities below ``FAINT``
a Chernoff bound is used instead.

*The elder tree* (``ElderTree``).

Write the number t of a step in a mixed system of odd radices k, with digits from -(k-1)/2 to
(k-1)/2. Going from 0 to t digit by digit, in blocks of 1, k, k k', ... steps, one passes through
certain steps. Each step but 0 thus has one *elder*, the step before it on this path. The elder lies
one block away in time, before or *after* it. The noise at a step is the noise at its elder plus one
fresh draw:

    W(0) = 0,   W(t) = W(elder of t) + Z(t),   and step t publishes  a(t) = (true total) + W(t).

Privacy. Let edge t join t to its elder. A value v that is added at step s raises the true totals
from s on by v. The outputs stay the same if Z(t) changes by -v or +v on each edge that crosses s
(one end before s, the other at or after it), because W then changes by -v from s on. The ends of an
edge are neighbouring multiples of its block length, so at most one edge of each of the ``levels``
block lengths crosses s. With Z discrete Laplace of scale b, the probability of each outcome changes
by a factor of at most exp(|v| levels / b). For several rows of a person the logarithms add up. The
factor holds for every outcome by itself, whatever the earlier ones were. It therefore also holds
for increments that are chosen after seeing earlier outputs: given the outputs, the two streams are
fixed. So the stream tells no more than discrete Laplace noise on one number in each level, which
moves by the sum of a person's rows there (``Settled.event``).

Accuracy. The noise at t is a sum of ``edges(t)`` independent draws, at most (k-1)/2 for each level
but the top one. The variance of a binary tree grows like (log2 T)^3, and that of this tree like
(k/4) (log_k 2T)^3.

Source: Andersson, Pagh, Steiner, Torkamani, *Count on Your Elders: Laplace vs Gaussian Noise*,
FORC 2025; Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011 for the binary tree.

*The band of an elder tree* (``band``): half-widths that hold at all steps together, by the law of
its noise.

The noise W at a step is that at its elder plus a fresh draw, so the steps are a tree in which noise
adds up along the branches. The probability that abs(W) is nowhere above its limit is found from the
leaves up. For a node at which W is x let

    G(x) = 1 if abs(x) is within the limit of the node, times the product over its children of
           the mean of G(x + Z) for the child and a fresh draw Z.

The mean is a convolution with the law of Z, which two recursions compute without cancellation. G at
step 0, whose noise is 0, is the probability sought. Limits depend on the number of draws alone, so
nodes with subtrees of one shape and with as many draws have one G.

The limits are those of the union bound, all made narrower by one factor. Steps are correlated, so
the union bound is wider than it need be by a quarter and more.

Holds because
    *Wide draws* are put on a coarser lattice of step g. A draw is a difference of two floor(E) with
    E exponential, and floor(E) lies less than g above g floor(E / g). So a sum of d draws lies
    within g d of g times a sum of draws of scale b / g, and it is within its limit h wherever that
    is within h / g - d.
    *Steps beyond the horizon* on which the noise of others builds are held to their limits too,
    which makes the probability less.
    *Rounding.* All terms are positive; ``BAND_ROUNDING`` is far more than what the sums lose.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array, least_whole
from sfumato.errors import require_fitting
from sfumato.mechanisms import DiscreteLaplace
from sfumato.questions.counters.mechanism import Estimator, Whole
from sfumato.random.bits import Bits

# --- sums of Laplace draws ------------------------------------------------------------------------

ROUNDING = 1e-12
FAINT = 1e-10

# Scales, and the number of draws of each.
Draws: TypeAlias = tuple[tuple[Fraction, int], ...]


def laplace_sum_log_tail(scale: Fraction, draws: int, k: int) -> float:
    """Return ln P(|Z1 + ... + Zn| > k) for an integer k >= 0.

    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> one_draw = DiscreteLaplace(Fraction(7)).log_tail(20)
    >>> abs(laplace_sum_log_tail(Fraction(7), 1, 20) - one_draw) < 1e-12
    True
    """
    from scipy.special import betaincc, gammaln, logsumexp

    b = float(scale)
    n = draws
    q = math.exp(-1 / b)
    success = -math.expm1(-1 / b)
    m = np.arange(1, n + 1)
    log_ways = gammaln(2 * n - m) - gammaln(n) - gammaln(n - m + 1)
    log_both = (2 * n - m) * math.log1p(q)
    log_weights = log_ways - (n - m) / b - log_both
    # P(a negative binomial variable of m successes > k + n - m), for each m
    beyond = betaincc(m, k + 1 + n - m, success)
    with np.errstate(divide="ignore"):
        one_side = float(logsumexp(log_weights + np.log(beyond)))
    return min(0.0, math.log(2) + one_side)


@lru_cache(maxsize=4096)
def laplace_sum_half_width(scale: Fraction, draws: int, alpha: float) -> int:
    """Return the smallest integer k with P(|Z1 + ... + Zn| > k) <= alpha.

    >>> [laplace_sum_half_width(Fraction(10), draws, 0.05) for draws in (1, 27)]
    [30, 145]
    """
    log_alpha = math.log(alpha)
    low = -1
    high = max(1, math.ceil(float(scale)))
    while laplace_sum_log_tail(scale, draws, high) > log_alpha:
        low = high
        high *= 2
    # The tail is above alpha at low and at most alpha at high.
    return least_whole(lambda k: laplace_sum_log_tail(scale, draws, k) <= log_alpha, low, high)


def mixed_half_widths(draws: Draws, alphas: Array) -> Array:
    """Return, for each alpha, a k with P(|sum of all draws| > k) <= alpha.

    It is the smallest such k where the draws are narrow, and a little more where they are wide.

    >>> mixed_half_widths(((Fraction(10), 26), (Fraction(10), 1)), np.array([0.05, 0.01]))
    array([145., 192.])
    """
    alphas = np.asarray(alphas, dtype=float)
    faint = alphas < FAINT
    halves = np.empty(len(alphas))
    if faint.any():
        halves[faint] = _chernoff(draws, alphas[faint])
    if not faint.all():
        step, tails = _tails(draws)
        # The tails fall, so the first k with a tail of at most alpha is found from the end.
        k = len(tails) - np.searchsorted(tails[::-1], alphas[~faint], side="right")
        n_draws = sum(number for _, number in draws)
        halves[~faint] = k if step == 1 else np.ceil(step * (k + n_draws))
    return halves


@lru_cache(maxsize=64)
def _tails(draws: Draws) -> tuple[float, Array]:
    """Return the lattice step, and P(|sum| > k) on the lattice for k = 0, 1, ...

    The tails fall, and are not below the truth.
    """
    deviation = math.sqrt(sum(2 * number * float(scale) ** 2 for scale, number in draws))
    # A standard deviation has 2,048 lattice steps at most.
    step = max(1.0, deviation / 2048)
    scales = [(float(scale) / step, number) for scale, number in draws]
    # Beyond this range lies less mass than ROUNDING, so nothing shows of what wraps around.
    widest = max(scale for scale, _ in scales)
    extent = 60 * widest + 12 * deviation / step + 64
    size = 2 ** math.ceil(math.log2(2 * extent))
    angles = 2 * math.pi * np.arange(size // 2 + 1) / size
    log_transform = np.zeros(len(angles))
    for scale, number in scales:
        q = math.exp(-1 / scale)
        gap = -math.expm1(-1 / scale)
        # The transform of one draw is 1 / (1 + 4 q sin(angle / 2)^2 / (1 - q)^2).
        sines = np.sin(angles / 2) ** 2
        log_transform -= number * np.log1p(4 * q * sines / gap**2)
    mass = np.fft.irfft(np.exp(log_transform), size)[: size // 2].clip(0)
    from_far = np.cumsum(mass[:0:-1])
    tails = 2 * np.append(from_far[::-1], 0) + ROUNDING
    return step, np.asarray(np.append(tails[:-1], 0))


def _chernoff(draws: Draws, alphas: Array) -> Array:
    """Return half-widths by the Chernoff bound at the best t of a grid, for both tails together.

    A draw Z of variance v has E exp(tZ) = 1 / (1 - v (cosh t - 1)).
    """
    variances = [(_variance(scale), number) for scale, number in draws]
    widest = max(variance for variance, _ in variances)
    if not widest:
        return np.zeros(len(alphas))
    # s = v (cosh t - 1) for the widest draw; its moment is finite for s below 1.
    near_zero = np.geomspace(1e-6, 0.5, 200)
    s = np.concatenate([near_zero, 1 - np.geomspace(0.5, 1e-6, 200)])
    # For wide draws t is small, cosh t - 1 is t^2 / 2, and 1 + s / widest would lose its digits.
    t = np.arccosh(1 + s / widest) if widest < 1e12 else np.sqrt(2 * s / widest)
    log_moment = np.zeros(len(s))
    for variance, number in variances:
        log_moment -= number * np.log1p(-s * (variance / widest))
    halves = (log_moment + np.log(2 / alphas)[:, None]) / t
    return np.asarray(np.ceil(halves.min(axis=1)))


def _variance(scale: Fraction) -> float:
    """Return the variance of one draw; below a scale of 1/600 it is 0 among doubles."""
    return 0.0 if scale <= Fraction(1, 600) else DiscreteLaplace(scale).variance


# --- the elder tree -------------------------------------------------------------------------------

MOST_LEVELS = 12


class ElderState(msgspec.Struct, frozen=True):
    """Secret: the true totals, and the noise that the next steps may still build on.

    Attributes
    ----------
    step : int
        How many steps were taken.
    totals : tuple of int
        One true total per category.
    path : tuple of int
        The steps from the eldest to the last step itself; stored as ``places``.
    noise : tuple of tuple of int
        The noise at each step of the path, one integer per category.
    """

    step: int
    totals: Whole
    path: tuple[int, ...] = msgspec.field(name="places")
    noise: tuple[Whole, ...]


class ElderTree(msgspec.Struct, frozen=True, tag="elder-tree", forbid_unknown_fields=True):
    """A tree of ``len(radices) + 1`` levels over ``horizon`` steps.

    Parameters
    ----------
    horizon : int
        The largest number of steps.
    radices : tuple of odd int
        How many blocks of each level make one of the next, from single steps up. The top level has
        as many blocks as are needed.
    law : DiscreteLaplace
        Of each fresh draw. Its scale is the L1 norm of a person's rows, times levels, over epsilon.
    cells : int
        The number of categories; each has noise of its own.

    >>> from fractions import Fraction
    >>> tree = ElderTree(10, (3,), DiscreteLaplace(Fraction(2)))
    >>> [tree.path(step) for step in (1, 2, 3, 4, 5)]
    [[1], [3, 2], [3], [3, 4], [3, 6, 5]]
    """

    horizon: int
    radices: tuple[int, ...]
    law: DiscreteLaplace
    cells: int = 1

    def __post_init__(self) -> None:
        odd = all(radix >= 3 and radix % 2 for radix in self.radices)
        few = len(self.radices) < MOST_LEVELS
        require_fitting(
            odd and few and self.horizon >= 1 and self.cells >= 1,
            "an elder tree for a running total",
            "its horizon, its categories or its radices (odd numbers from 3 on) cannot be",
        )

    @property
    def levels(self) -> int:
        """The largest number of draws that depend on one row."""
        return len(self.radices) + 1

    @property
    def blocks(self) -> tuple[int, ...]:
        """Lengths of the blocks in steps, the longest first."""
        return _blocks(self.radices)

    def path(self, step: int) -> list[int]:
        """Return the steps from the eldest to the step itself.

        Each is the elder of the next one. The elder of the first is step 0.
        """
        at = 0
        steps = []
        for block in self.blocks:
            # The digit nearest to what is left, so that it lies between -(k-1)/2 and (k-1)/2.
            digit = (step - at + block // 2) // block
            stride = block if digit > 0 else -block
            for _ in range(abs(digit)):
                at += stride
                steps.append(at)
        return steps

    def edges(self, steps: Array) -> Array:
        """Return the number of draws in the noise at each step: an int64 ndarray like ``steps``."""
        rest = np.array(steps)
        total = np.zeros_like(steps)
        for block in self.blocks:
            digit = (rest + block // 2) // block
            rest -= digit * block
            total += np.abs(digit)
        return total

    def start(self) -> ElderState:
        """Return the state of no steps: nothing counted, no noise drawn."""
        return ElderState(0, (0,) * self.cells, (), ())

    def step(self, state: ElderState, increment: Whole, noise: Bits) -> tuple[ElderState, Whole]:
        """Add to the totals, draw the noise that is new on the path, publish totals plus noise."""
        step = state.step + 1
        totals = tuple(map(add, state.totals, increment))
        # The noise at a step is drawn once, and the state of the last path is enough to know it.
        # Paths of neighbouring steps separate once and do not meet again, so only the end of a path
        # is new. Steps with one elder follow one another, so an elder that has left the path is
        # not needed again. If the last path passed through this step, its noise is known already:
        # every step has one elder, so the path to it is the beginning of the last path.
        if step in state.path:
            length = state.path.index(step) + 1
            path = state.path[:length]
            known = state.noise[:length]
        else:
            path = tuple(self.path(step))
            # The beginning that the path shares with the last one has its noise.
            shared = 0
            for old, new in zip(state.path, path, strict=False):
                if old != new:
                    break
                shared += 1
            # From the eldest on: the noise at a step is that at its elder plus one fresh draw.
            known = state.noise[:shared]
            fresh = self.law.sample(self.cells * (len(path) - shared), noise).tolist()
            for start in range(0, len(fresh), self.cells):
                elder = known[-1] if known else (0,) * self.cells
                known = (*known, tuple(map(add, elder, fresh[start : start + self.cells])))
        return ElderState(step, totals, path, known), tuple(map(add, totals, known[-1]))

    def estimator(self) -> Estimator:
        """Return the outputs themselves: they are the totals."""
        return lambda output: output

    def variances(self, first: int, last: int) -> Array:
        """Return the variances of the totals: a float64 ndarray of shape (last - first + 1,)."""
        return self.edges(np.arange(first, last + 1)) * self.law.variance

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """Return the smallest k with P(|noise| > k) <= alpha for each step.

        They are whole numbers, as float64, by the exact law of the sum of draws.
        """
        scale = self.law.scale
        edges = self.edges(np.arange(first, last + 1))
        if np.ndim(alpha):
            pairs = zip(edges.tolist(), np.asarray(alpha).tolist(), strict=True)
            halves = [
                laplace_sum_half_width(scale, draws, alpha_of_step)
                for draws, alpha_of_step in pairs
            ]
            return np.array(halves, dtype=float)
        # With one alpha the half-width depends on the number of draws only.
        table = np.zeros(int(edges.max()) + 1)
        for draws in np.flatnonzero(np.bincount(edges)).tolist():
            table[draws] = laplace_sum_half_width(scale, draws, float(alpha))
        return table[edges]

    def laws(self, first: int, last: int) -> list[str]:
        """Describe the error of each total by its number of draws."""
        law = str(self.law)
        edges = self.edges(np.arange(first, last + 1)).tolist()
        return [f"the sum of {draws} draws of {law}" for draws in edges]

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.radices[::-1])) or "none"
        levels = f"{self.levels} levels (radices {shape})"
        return f"an elder tree of {levels} with {self.law} on each draw"


@lru_cache(maxsize=64)
def _blocks(radices: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(radices[:level]) for level in range(len(radices), -1, -1))


@lru_cache(maxsize=256)
def radices_for(horizon: int, whole: bool = False) -> tuple[int, ...]:
    """Choose the radices with the smallest largest variance over the horizon.

    Parameters
    ----------
    horizon : int
        The number of steps.
    whole : bool
        The horizon is a power of 3 and must be one block, so that its last total is one draw away
        from 0.

    >>> radices_for(365), radices_for(10**6)
    ((21,), (17, 17, 17, 17))
    """
    if whole:
        candidates = _of_powers_of_three(round(math.log(horizon, 3)))
    else:
        candidates = [()]
        for levels in range(2, MOST_LEVELS + 1):
            candidates += _balanced(horizon, levels)
    return min(candidates, key=lambda shape: (_largest(horizon, shape), len(shape), shape))


def _largest(horizon: int, radices: tuple[int, ...]) -> int:
    """Bound the largest number of edges, times the squared levels, like which variances grow."""
    block = math.prod(radices)
    top = max(1, -(-(horizon - block // 2) // block))
    edges = top + sum(k // 2 for k in radices)
    return edges * (len(radices) + 1) ** 2


def _balanced(horizon: int, levels: int) -> list[tuple[int, ...]]:
    """List radices near the level-th root of twice the horizon: equal, or two neighbouring ones."""
    root = (2 * horizon) ** (1 / levels)
    shapes = []
    for k in range(max(3, int(root / 2) | 1), int(2 * root) + 4, 2):
        for larger in range(levels - 1):
            shape = (k,) * (levels - 1 - larger) + (k + 2,) * larger
            if math.prod(shape) <= 2 * horizon:
                shapes.append(shape)
    return shapes


def _of_powers_of_three(exponent: int) -> list[tuple[int, ...]]:
    """List all ways to write 3^exponent as a product of powers of 3, in ascending order."""

    def products(exponent: int, least: int) -> list[tuple[int, ...]]:
        if not exponent:
            return [()]
        shapes: list[tuple[int, ...]] = []
        for first in range(least, exponent + 1):
            shapes += [(3**first, *more) for more in products(exponent - first, first)]
        return shapes

    return products(exponent, 1)


# --- bands ----------------------------------------------------------------------------------------

BAND_ROUNDING = 1e-9


def band(tree: ElderTree, first: int, last: int, alpha: float) -> Array:
    """Return half-widths of steps ``first`` to ``last`` that hold at all steps of the horizon.

    They hold for all categories together too. They are whole numbers, as float64.

    >>> from fractions import Fraction
    >>> from sfumato.questions.counters.tree import radices_for
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> tree = ElderTree(30, radices_for(30), DiscreteLaplace(Fraction(10)))
    >>> union_bound = tree.half_widths(1, 30, 0.05 / 30)
    >>> bool((band(tree, 1, 30, 0.05) < 0.95 * union_bound).all())
    True
    """
    limits = _limits(tree, alpha)
    return np.asarray(limits[tree.edges(np.arange(first, last + 1))], dtype=float)


@lru_cache(maxsize=64)
def _limits(tree: ElderTree, alpha: float) -> Array:
    """Return the half-width after each number of draws: int64 ndarray, 0 for no draw."""
    most = int(tree.edges(np.arange(1, tree.horizon + 1)).max())
    # Paths may pass steps beyond the horizon, which have no more draws than one of each block.
    deepest = most + len(tree.blocks)
    alpha_of_total = alpha / (tree.horizon * tree.cells)
    scale = tree.law.scale
    widest = [
        laplace_sum_half_width(scale, draws, alpha_of_total) for draws in range(1, deepest + 1)
    ]
    union = np.array([0, *widest])
    shapes = sum(tree.radices) * deepest
    # Where there are too many shapes of subtrees, or alpha is tiny, the union bound serves.
    if shapes > 4000 or alpha < 1e-6 or union[1] < 4:
        return union
    # Categories are independent.
    wanted = math.log1p(-alpha) / tree.cells
    nodes = _Nodes(tree, deepest)
    low = 0.4
    high = 1.0
    # The factor is found to 1/128 of the widest limits.
    while high - low > 1 / 128:
        middle = (low + high) / 2
        if nodes.log_probability(np.floor(middle * union)) >= wanted:
            high = middle
        else:
            low = middle
    # The upper end holds at all steps: it passed the test, or is the union bound itself.
    return np.floor(high * union).astype(np.int64)


class _Nodes:
    """The nodes of a tree by their shapes.

    Parameters
    ----------
    tree : ElderTree
    deepest : int
        The largest number of draws on a path.
    """

    def __init__(self, tree: ElderTree, deepest: int) -> None:
        self.tree = tree
        self.blocks = tree.blocks
        # The largest digit of each level, the top one first; the top level has all there are.
        self.digits = [tree.horizon, *(radix // 2 for radix in tree.radices[::-1])]
        deviation = math.sqrt(tree.law.variance * deepest)
        # A standard deviation has 256 lattice steps at most.
        self.step = max(1.0, deviation / 256)
        self.q = math.exp(-self.step / float(tree.law.scale))
        self.limits = np.zeros(0, np.int64)
        self.known: dict[tuple[int, ...], Array] = {}

    def log_probability(self, limits: Array) -> float:
        """Return ln P(the noise of no step is above its limit)."""
        draws = np.arange(len(limits))
        fits = limits if self.step == 1 else np.floor(limits / self.step - draws)
        self.limits = fits.astype(np.int64)
        # G rests on the limits, so what is known of other limits does not serve.
        self.known = {}
        if (self.limits[1:] < 1).any():
            return -math.inf
        product = self._children(0, -1, 0, 1, 0)
        probability = float(product[len(product) // 2]) - BAND_ROUNDING
        return math.log(probability) if probability > 0 else -math.inf

    def _children(self, at: int, level: int, done: int, sign: int, draws: int) -> Array:
        """Return the product over the children of a node, on the lattice from -limit to limit."""
        size = 2 * int(self.limits[draws]) + 1 if draws else 1
        product = np.ones(size)
        for lower in range(level + 1, len(self.blocks)):
            for direction in (1, -1):
                product *= self._child_mean(at, lower, 1, direction, draws + 1)
        if level >= 0 and done < self.digits[level]:
            product *= self._child_mean(at, level, done + 1, sign, draws + 1)
        return product

    def _child_mean(self, at: int, level: int, done: int, sign: int, draws: int) -> Array | float:
        """Return the mean of G of one child; 1 if it has no steps within the horizon."""
        child = at + sign * self.blocks[level]
        near = child - sign * (self.blocks[level] // 2)
        far = child + sign * (
            (self.digits[level] - done) * self.blocks[level] + self.blocks[level] // 2
        )
        low = min(near, far)
        high = max(near, far)
        if high < 1 or low > self.tree.horizon:
            return 1.0
        if low >= 1 and high <= self.tree.horizon:
            key: tuple[int, ...] = (level, done, draws)
        else:
            # A subtree that the horizon cuts is like no other, so its place belongs to its key.
            key = (level, done, draws, child, sign)
        if key not in self.known:
            inner = self._children(child, level, done, sign, draws)
            self.known[key] = self._smoothed(inner, int(self.limits[draws - 1]))
        return self.known[key]

    def _smoothed(self, inner: Array, limit: int) -> Array:
        """Return the mean of G(x + Z) for abs(x) <= limit; ``inner`` is G of the child."""
        from scipy.signal import lfilter

        reach = len(inner) // 2
        size = max(reach, limit)
        padded = np.zeros(2 * size + 1)
        padded[size - reach : size + reach + 1] = inner
        forward = lfilter([1.0], [1.0, -self.q], padded)
        # G is symmetric, and so is the law of Z.
        whole = forward + forward[::-1] - padded
        mean = whole * (-math.expm1(math.log(self.q)) / (1 + self.q))
        return np.asarray(mean[size - limit : size + limit + 1])
