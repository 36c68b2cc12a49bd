"""m quantiles of one axis at once: JointExp on lattice edges.

Sums of exp-weighted terms over prefixes, suffixes and windows of an array are formed by additions
only. A sum is kept as a pair: an integer reference P, exact, and a double s, so that the sum is
s * exp(rate * P). P is the largest exponent among the terms, so s is at least the weight of that
term. Differences of prefix sums, which lose small sums beside large ones, are never taken.

Guarantee: pure epsilon-DP for one person, and (epsilon^2 / 8)-zCDP; numerical slack is charged.
Sensitivity: D = 2r under replace, 2r (1 - the least gap) under add-remove
(``selection.joint_sensitivity``).
Holds because
    *The law.* Non-decreasing tuples of edges (``distinct``: increasing ones) have weight
    exp(a max(u, M - U)), a = epsilon' / (2 D). The utility u is minus the sum over j of
    |n(o_j) - n(o_(j-1)) - n (q_j - q_(j-1))|, and M is the largest u of any tuple. u and M move by
    at most D, so max(u, M - U) does. With d_j = n(o_j) - n q_j the terms are |d_j - d_(j-1)|, so a
    tuple with some |d_j| has u <= -2 |d_j|.
    *The clamp.* U = C / a with C at least 48 above the logarithm of the number of tuples: a draw
    reaches it with a probability below e^-48, and then by its exact law. F = e^-C is the least
    weight. A draw takes either an even tuple, with mass F times their number, and keeps it if
    u < M - U; or one of the chain below, and keeps it if u >= M - U; otherwise it starts afresh.
    Every tuple with u >= M - U has |d_j| <= (U - M) / 2, so the chain needs the edges in such
    windows only.
    *The chain.* alpha_j(g) sums the weights of all beginnings that end with o_j in group g. It is
    held as beta e^(a A), A the exact integer of the best beginning. Terms are added, never
    subtracted (see above), so that beta has a small relative error. k quantiles in a group of w
    edges are C(w + k - 1, k) multisets (``distinct``: C(w, k) sets), and are drawn as one.
    *Slack.* Let every computed factor exp(x), x in [-700, 0], be right to 2^-41, which IEEE
    libraries exceed a thousandfold. A stage then adds at most delta = (32 + edges / 2^14) 2^-41 +
    2^-38 to the error of ln beta. The draws along the chain are exact given the doubles, and their
    denominators are the sums that the doubles stand for, so the errors of a path telescope: ln P of
    every tuple is within eta = 2 (m + 2) delta of the law's. The weights are made for epsilon' =
    epsilon - 4 r eta: a person's r rows may lie in r nodes or labels, each of which adds 2 eta to
    the loss and 4 eta to its range, which zCDP rests on.
Not covered: the time a draw takes depends on the data.
Source: Gillenwater, Joseph, Kulesza, *Differentially Private Quantiles*, ICML 2021, Alg. 1; range
and zCDP: Cesar, Rogers 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.basics import Array, decimal, positive
from sfumato.errors import Infeasible, InternalError, UsageError
from sfumato.mechanisms.noise import Script, Selection
from sfumato.mechanisms.selection import Ranks, common_denominator, joint_sensitivity
from sfumato.privacy import Unit
from sfumato.random.bits import Bits
from sfumato.random.discrete import index_by_weight, multiset, subset

# --- sums of weights ------------------------------------------------------------------------------

# The exponent of an empty sum.
NEVER = -(2**61)

# Terms added one after the other at most: it bounds the relative error of a sum.
BLOCK = 2**14


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class Terms:
    """Terms weight * exp(rate * exponent).

    ``exponents``: int64 ndarray; ``weights``: float64 ndarray of the same shape.
    """

    exponents: Array
    weights: Array


def exp_of(rate: float, difference: Array) -> Array:
    """exp(rate * difference) for integer differences, which are at most 0: float64 ndarray."""
    return np.exp(rate * difference.astype(np.float64))


def running(terms: Terms, rate: float, span: float) -> Terms:
    """Sums of the first 1, 2, ... terms.

    ``span`` bounds how far rate * P may rise within a block: below it, a common reference of the
    block loses no term that is within 690 - span of the largest. Sums before the first term of any
    weight are empty: the exponents of such terms, which may lie on either side of NEVER, are no
    references.
    """
    sums = _nothing(len(terms.weights))
    weighty = np.flatnonzero(terms.weights)
    if not len(weighty):
        return sums
    first = int(weighty[0])
    exponents = terms.exponents[first:]
    weights = terms.weights[first:]
    peaks = np.maximum.accumulate(exponents)
    sums.exponents[first:] = peaks
    carry = 0.0
    carry_exponent = NEVER
    for start, stop in _blocks(peaks, rate, span):
        reference = int(peaks[stop - 1])
        block = weights[start:stop] * exp_of(rate, exponents[start:stop] - reference)
        # The sum of all blocks before comes over at this block's reference.
        lowered = rate * float(carry_exponent - reference)
        block[0] += carry * float(np.exp(lowered))
        np.cumsum(block, out=block)
        carry = float(block[-1])
        carry_exponent = reference
        # Each sum goes back to its own peak, so that it is at least the weight of its largest term.
        above_peak = (reference - peaks[start:stop]).astype(np.float64)
        sums.weights[first + start : first + stop] = block * np.exp(rate * above_peak)
    if not np.isfinite(sums.weights).all():
        raise InternalError("A sum of exponentials is not finite.")
    return sums


def _blocks(peaks: Array, rate: float, span: float) -> list[tuple[int, int]]:
    """Cut where the peak has risen by ``span`` or after 2^14 terms."""
    size = len(peaks)
    if size <= BLOCK and rate * float(peaks[-1] - peaks[0]) <= span:
        return [(0, size)]
    steps = np.floor(rate * (peaks - peaks[0]).astype(np.float64) / span)
    cuts = np.union1d(np.flatnonzero(np.diff(steps)) + 1, np.arange(BLOCK, size, BLOCK)).tolist()
    return list(zip([0, *cuts], [*cuts, size], strict=True))


def windows(
    terms: Terms, starts: Array, stops: Array, rate: float, span: float
) -> list[tuple[Array, Terms]]:
    """Sums over terms[starts[i] : stops[i]], where both ends never decrease with i and no window is
    empty.

    Returns
    -------
    list of (indices, sums)
        Which windows get which parts; a window's sum is the sum of its parts, of which there are at
        most two.

    Method: the first window's end is a checkpoint; each window that begins before it is a suffix up
    to the checkpoint and a prefix beyond it; the next window opens the next checkpoint. So each
    term is in at most one suffix and one prefix scan.
    """
    parts: list[tuple[Array, Terms]] = []
    first = 0
    while first < len(starts):
        checkpoint = int(stops[first])
        last = int(np.searchsorted(starts, checkpoint, side="left"))
        low = int(starts[first])
        high = int(stops[last - 1])
        up_to = _take(terms, np.arange(low, checkpoint)[::-1])
        suffixes = running(up_to, rate, span)
        which = np.arange(first, last)
        parts.append((which, _take(suffixes, checkpoint - 1 - starts[first:last])))
        beyond = first + int(np.searchsorted(stops[first:last], checkpoint, side="right"))
        if beyond < last:
            prefixes = running(_take(terms, np.arange(checkpoint, high)), rate, span)
            which = np.arange(beyond, last)
            parts.append((which, _take(prefixes, stops[beyond:last] - checkpoint - 1)))
        first = last
    return parts


def _take(terms: Terms, index: Array) -> Terms:
    return Terms(terms.exponents[index], terms.weights[index])


def total(parts: list[Terms], rate: float) -> Terms:
    """Add sums entry by entry."""
    peaks = np.maximum.reduce([part.exponents for part in parts])
    sums = np.zeros(len(peaks))
    for part in parts:
        sums += part.weights * exp_of(rate, part.exponents - peaks)
    return Terms(peaks, sums)


# --- the mechanism --------------------------------------------------------------------------------

# The largest C for which e^-C and the sums beside it stay far from the ends of doubles.
LARGEST_CLAMP = 640.0

# How far, in nats, terms of one sum may lie apart: exp(-690) is still a normal double.
LARGEST_EXPONENT = 690.0

# Nats by which C exceeds the logarithm of the number of tuples.
BEYOND = 48.0


def joint_slack(quantiles: int, edges: int, unit: Unit) -> Fraction:
    """By how much less than its epsilon a selection runs: 4 r eta, where eta bounds the error of ln
    P of any tuple.
    """
    stage = Fraction(32, 2**41) + Fraction(edges, 2**55) + Fraction(1, 2**38)
    eta = 2 * (quantiles + 2) * stage
    return 4 * unit.rows_per_person * eta


def clamp_of(number: int) -> Fraction:
    """C in nats, for so many outcomes."""
    return Fraction(math.ceil(math.log(number) + BEYOND))


def rounded_rate(rate: Fraction) -> Fraction:
    """The rate a, rounded down to what a double holds exactly."""
    magnitude = rate.numerator.bit_length() - rate.denominator.bit_length()
    # A double holds a rate of 52 bits exactly.
    scale = Fraction(2) ** (52 - magnitude)
    return Fraction(math.floor(rate * scale)) / scale


def joint_rate(
    quantiles: int, epsilon: Fraction, slack: Fraction, sensitivity: Fraction | int
) -> Fraction:
    """The rate a: epsilon less the slack, over twice the sensitivity, rounded down to a double."""
    left = positive(epsilon, "epsilon") - slack
    if left <= 0:
        raise UsageError(
            f"{quantiles} quantiles at epsilon {decimal(epsilon)}",
            "that is less than the numerical slack",
            "Choose a larger epsilon, or a coarser lattice",
        )
    return rounded_rate(left / (2 * sensitivity))


@lru_cache(maxsize=1024)
def tuples(quantiles: int, edges: int, distinct: bool = False) -> int:
    """How many tuples there are to choose from.

    Raises
    ------
    Infeasible
        If there are fewer edges than distinct quantiles, or so many tuples that doubles cannot tell
        the best from the rest.
    """
    if distinct and edges < quantiles:
        raise Infeasible(
            f"{quantiles} distinct edges",
            f"only {edges} are allowed",
            "Ask for fewer quantiles, or on a finer lattice",
        )
    if distinct:
        number = math.comb(edges, quantiles)
    else:
        number = math.comb(edges + quantiles - 1, quantiles)
    if math.log(number) + BEYOND + 1 > LARGEST_CLAMP:
        raise Infeasible(
            f"{quantiles} quantiles at once over {edges} edges",
            "there are too many tuples to choose from",
            'Ask for fewer, on a coarser lattice, or with method="recursive"',
        )
    return number


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class _Stage:
    """One quantile's window of groups, and the sums of the beginnings that enter it or end in it.

    Attributes
    ----------
    start, stop : int
        The window is the groups [start, stop).
    offsets : int64 ndarray of shape (groups,)
        d of each, scaled by the common denominator of the quantiles.
    entered : Terms
        Beginnings whose quantile is the first in its group: they came from a lower one.
    ended : Terms
        All beginnings that end in the group.
    """

    start: int
    stop: int
    offsets: Array
    entered: Terms
    ended: Terms


class JointLaw:
    """The law of a tuple of edges. Made of true counts: it is drawn from and thrown away.

    Parameters
    ----------
    ranks : Ranks
        The allowed edges.
    at : sequence of Fraction
        m increasing quantiles, strictly between 0 and 1.
    epsilon : Fraction
        What the selection spends; above ``joint_slack``.
    unit : Unit
        What one person can change. In a node of a tree, or of a table divided by labels, give what
        ``selection.nested`` returns.
    distinct : bool
        True: edges increase strictly, so that no box between two of them is empty of volume.

    Raises
    ------
    Infeasible
        If there are too few edges or too many tuples: both are public.
    UsageError
        If epsilon is at most ``joint_slack``, or the quantiles are no quantiles.

    >>> from sfumato.random import current
    >>> ranks = Ranks.of_counts(np.full(1000, 1_000_000))
    >>> quartiles = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    >>> JointLaw(ranks, quartiles, Fraction(1), Unit()).draw(current())
    array([250, 500, 750])
    """

    def __init__(
        self,
        ranks: Ranks,
        at: Sequence[Fraction],
        epsilon: Fraction,
        unit: Unit,
        *,
        distinct: bool = False,
    ) -> None:
        self._ranks = ranks
        self._distinct = distinct
        # All ranks are scaled by the common denominator, so that offsets and utilities are
        # integers.
        self._at, self._whole = common_denominator(at)
        self._number = tuples(len(at), ranks.edges, distinct)
        self._clamp = self._clamp_of(self._number)
        # Targets are shares of all rows, so that the end of the axis is where it shall be.
        self._expected = ranks.total
        self._end_offset = 0
        # Ranks are scaled by the common denominator, and so is their sensitivity.
        slack = joint_slack(len(self._at), self._ranks.edges, unit)
        sensitivity = joint_sensitivity([Fraction(q, self._whole) for q in self._at], unit)
        self._make(joint_rate(len(self._at), epsilon, slack, sensitivity * self._whole))

    def _make(self, exact_rate: Fraction, near: int | None = None) -> None:
        """Sum up the chain.

        Parameters
        ----------
        exact_rate : Fraction
            The rate a, which a double holds exactly.
        near : int or None
            The utility of some tuple: a lower bound on M. None: that of a good one.
        """
        self._exact_rate = exact_rate
        self._rate = float(exact_rate)
        self._span = LARGEST_EXPONENT - float(self._clamp)
        # u of any tuple is a lower bound on M. So a reach made from it is large enough, and no
        # smaller one is needed.
        lower = self.utility(self.near()) if near is None else near
        self._reach = math.floor(self._clamp / exact_rate) - lower
        stages: list[_Stage] = []
        for j, q in enumerate(self._at):
            start, stop = self._window(q)
            offsets = self._ranks.below[start:stop] * self._whole - q * self._expected
            if j:
                entered = self._enter(stages[-1], start, offsets)
            else:
                entered = Terms(-np.abs(offsets), np.ones(len(offsets)))
            ended = self._end(stages, start, stop, entered)
            stages.append(_Stage(start, stop, offsets, entered, ended))
        self._stages = stages
        last = stages[-1]
        # The last term of u is that from the last quantile to the end of the axis.
        to_end = np.abs(self._end_offset - last.offsets)
        self._finals = Terms(last.ended.exponents - to_end, last.ended.weights)
        self.best = int(self._finals.exponents.max(initial=NEVER))

    def _clamp_of(self, number: int) -> Fraction:
        return clamp_of(number)

    # --- the chain, forwards --------------------------------------------------------------------

    def _window(self, q: int) -> tuple[int, int]:
        """The groups with |d| + |end - d| within reach."""
        target = q * self._expected
        down = (self._reach - self._end_offset) // 2
        up = (self._reach + self._end_offset) // 2
        low = max(-((down - target) // self._whole), 0)
        # More rows than there are would not fit the integers of the array, and exclude nothing.
        high = min((target + up) // self._whole, self._ranks.total)
        start = int(np.searchsorted(self._ranks.below, low))
        return start, int(np.searchsorted(self._ranks.below, high, side="right"))

    def near(self) -> Array:
        """A tuple that is good, if not the best: the edges nearest to the targets, moved apart
        where they are distinct.
        """
        first = self._ranks.first
        below = self._ranks.below
        whole = self._whole
        edges: list[int] = []
        for j, q in enumerate(self._at):
            # The group whose scaled rank is nearest to the target, the upper one of two.
            target = q * self._expected
            at_or_above = int(np.searchsorted(below, -(-target // whole)))
            above = min(at_or_above, len(below) - 1)
            left = max(above - 1, 0)
            left_distance = abs(int(below[left]) * whole - target)
            above_distance = abs(int(below[above]) * whole - target)
            nearest = int(first[left if left_distance < above_distance else above])
            lowest = edges[-1] + self._distinct if edges else int(first[0])
            # Distinct edges leave room for those that follow.
            following = len(self._at) - 1 - j if self._distinct else 0
            highest = int(first[-1]) - 1 - following
            edges.append(min(max(nearest, lowest), highest))
        return np.array(edges)

    def score(self, edges: Array) -> Array:
        """u of tuples, scaled: int64 ndarray of shape (k,) for edges of shape (k, m)."""
        targets = np.array(self._at, dtype=np.int64) * self._expected
        offsets = self._ranks.below[self._ranks.group(edges)] * self._whole - targets
        terms = np.abs(np.diff(offsets, axis=1, prepend=0, append=self._end_offset))
        return np.asarray(-terms.sum(axis=1))

    def utility(self, edges: Array) -> int:
        """u of one tuple, scaled."""
        return int(self.score(edges[None])[0])

    def _enter(self, before: _Stage, start: int, offsets: Array) -> Terms:
        """Sum the beginnings that come to each group from a lower one.

        They come in two parts: the term |d' - d| is d - d' for the groups with d' up to d, which
        are a prefix of the window before, and d' - d for the others below this group, which are a
        window in it.
        """
        size = before.stop - before.start
        groups = np.arange(start, start + len(offsets))
        lower = np.clip(groups - before.start, 0, size)
        prefix = np.searchsorted(before.offsets, offsets, side="right")
        # With no rows at all every d is 0, and the prefix would hold groups that are not lower.
        prefix = np.minimum(prefix, lower)
        ended = before.ended
        parts = []
        reached = np.flatnonzero(prefix)
        if len(reached):
            rising = Terms(ended.exponents + before.offsets, ended.weights)
            sums = running(rising, self._rate, self._span)
            last = prefix[reached] - 1
            came = Terms(sums.exponents[last] - offsets[reached], sums.weights[last])
            parts.append(_spread(came, reached, len(offsets)))
        reached = np.flatnonzero(prefix < lower)
        if len(reached):
            falling = Terms(ended.exponents - before.offsets, ended.weights)
            windowed = windows(falling, prefix[reached], lower[reached], self._rate, self._span)
            for which, sums in windowed:
                groups = reached[which]
                came = Terms(sums.exponents + offsets[groups], sums.weights)
                parts.append(_spread(came, groups, len(offsets)))
        return total(parts, self._rate) if parts else _nothing(len(offsets))

    def _end(self, stages: list[_Stage], start: int, stop: int, entered: Terms) -> Terms:
        """Sum the beginnings that end in each group: those that came with this quantile, or with an
        earlier one and stayed.

        Quantiles that stay in one group share its n(o), so between them only the targets move: from
        quantile i to quantile j that costs n (q_j - q_i), however the edges lie in the group.
        """
        widths = np.diff(self._ranks.first[start : stop + 1])
        j = len(stages)
        parts = [Terms(entered.exponents, entered.weights * widths)]
        for i in range(j - 1, -1, -1):
            low = max(start, stages[i].start)
            high = min(stop, stages[i].stop)
            if low >= high:
                break
            came = stages[i].entered
            stay = (self._at[j] - self._at[i]) * self._expected
            inside = slice(low - stages[i].start, high - stages[i].start)
            ways = self._ways(widths[low - start : high - start], j - i + 1)
            exponents = np.where(ways > 0, came.exponents[inside] - stay, NEVER)
            part = Terms(exponents, came.weights[inside] * ways)
            parts.append(_spread(part, np.arange(low - start, high - start), stop - start))
        return total(parts, self._rate)

    def _ways(self, widths: Array, count: int) -> Array:
        """In how many ways ``count`` quantiles can lie in a group: float64 ndarray."""
        ways = np.ones(len(widths))
        step = -1 if self._distinct else 1
        for i in range(count):
            ways *= (widths + step * i) / (i + 1)
        # More distinct edges than there are: the product may pass 0 and turn negative.
        return np.maximum(ways, 0.0)

    # --- the draw, backwards --------------------------------------------------------------------

    def draw(self, bits: Bits) -> Array:
        """Choose a tuple: int64 ndarray of shape (m,), in order."""
        if isinstance(bits, Script):
            selection = joint_selection(
                self._ranks, len(self._at), self._distinct, self.log_probabilities
            )
            return bits.choose(selection)
        weights = self.final_weights(self.best)
        log_even = math.log(self._number) - float(self._clamp)
        masses = np.array([math.exp(log_even), weights.sum()])
        while True:
            # Each tuple is kept from one of the two sources only, so its weight is what that source
            # gives it.
            chained = index_by_weight(masses, bits) == 1
            if chained:
                edges = self.follow(index_by_weight(weights, bits), bits)
            else:
                edges = self.even(bits)
            # Whether u >= M - U is compared exactly, between rationals.
            worse = self.best - self.utility(edges)
            if chained == (worse * self._exact_rate <= self._clamp):
                return edges

    def final_weights(self, best: int) -> Array:
        """Weigh the groups where the last quantile may lie, relative to exp(a best)."""
        finals = self._finals
        return finals.weights * exp_of(self._rate, finals.exponents - best)

    def even(self, bits: Bits) -> Array:
        """A tuple of allowed edges, every one equally likely."""
        pick = subset if self._distinct else multiset
        places = pick(self._ranks.edges, len(self._at), bits)
        return np.array(places, dtype=np.int64) + int(self._ranks.first[0])

    def follow(self, last: int, bits: Bits) -> Array:
        """Go back from the last quantile's index in its window: where the run in its group began,
        and from where it came.
        """
        pick = subset if self._distinct else multiset
        edges: list[int] = []
        j = len(self._stages) - 1
        index = last
        while True:
            group = self._stages[j].start + index
            i = self._run_start(j, group, bits)
            first, end = self._ranks.first[group : group + 2].tolist()
            places = pick(end - first, j - i + 1, bits)
            edges = [first + place for place in places] + edges
            if i == 0:
                return np.array(edges, dtype=np.int64)
            stage = self._stages[i]
            before = self._stages[i - 1]
            size = min(group, before.stop) - before.start
            ended = before.ended
            within = group - stage.start
            moved = np.abs(int(stage.offsets[within]) - before.offsets[:size])
            exponents = ended.exponents[:size] - moved
            differences = exponents - int(stage.entered.exponents[within])
            masses = ended.weights[:size] * exp_of(self._rate, differences)
            index = index_by_weight(masses, bits)
            j = i - 1

    def _run_start(self, j: int, group: int, bits: Bits) -> int:
        """With which quantile the run in this group began that ends with quantile j."""
        starts: list[int] = []
        exponents: list[int] = []
        weights: list[float] = []
        width = np.diff(self._ranks.first[group : group + 2])
        for i in range(j, -1, -1):
            stage = self._stages[i]
            if not stage.start <= group < stage.stop:
                break
            index = group - stage.start
            ways = self._ways(width, j - i + 1)[0]
            weight = float(stage.entered.weights[index] * ways)
            if weight:
                stay = (self._at[j] - self._at[i]) * self._expected
                starts.append(i)
                weights.append(weight)
                exponents.append(int(stage.entered.exponents[index]) - stay)
        if len(starts) == 1:
            return starts[0]
        differences = np.array(exponents) - max(exponents)
        masses = np.array(weights) * exp_of(self._rate, differences)
        return starts[index_by_weight(masses, bits)]

    # --- for audits -----------------------------------------------------------------------------

    def log_probabilities(self, edges: Array) -> Array:
        """ln P of tuples: float64 ndarray of shape (k,) for edges of shape (k, m).

        For audits: it holds true counts.
        """
        exponents = (self.best - self.score(edges)) * self._rate
        log_total = math.log(float(self.final_weights(self.best).sum()))
        return -np.minimum(exponents, float(self._clamp)) - log_total


def joint_selection(
    ranks: Ranks, size: int, distinct: bool, log_probabilities: Callable[[Array], Array]
) -> Selection:
    """Return what a script must know to choose a tuple in place of the draw."""

    def log_probability(edges: Array) -> float:
        return float(log_probabilities(edges[None])[0])

    return Selection(int(ranks.first[0]), ranks.edges, size, distinct, log_probability)


def _nothing(size: int) -> Terms:
    return Terms(np.full(size, NEVER), np.zeros(size))


def _spread(terms: Terms, where: Array, size: int) -> Terms:
    laid = _nothing(size)
    laid.exponents[where] = terms.exponents
    laid.weights[where] = terms.weights
    return laid
