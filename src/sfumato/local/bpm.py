"""The bounded perturbation mechanism: reports lie in a box, mostly near the true point.

Density of a report x in R_L = [-L, 1 + L]^d for a point v in [0, 1]^d:
lambda_L exp(-epsilon min(|x - v|, L)).

As exp(-k min(r, L)) = e^(-kL) + integral over t from r to L of k e^(-kt) dt, it is a mixture: with
probability b a uniform point of R_L that knows nothing of v; else a uniform point of the ball of
radius T around v, T a Gamma(d + 1, rate k) variable truncated to [0, L]. The ball lies inside R_L
wherever v is, so b and the constants do not depend on v.

Where the reports lie: on 2^16 cells an axis, each reported by its centre. The cell of the
real-valued x is drawn without error (``offsets``), and uniform cells are plain bits. Rounding is
post-processing, so a report is exactly as private as x.

*The paper's own sampler* (``two_stage_cells``), Algorithms 2 to 4: a coin chooses the ball or the
rest of the space.

The fast sampler is tested against this readable one, which is as exact, and slower. Coins and cells
are drawn without error:

    *Coins.* A word below floor(p 2^64) says yes, one above says no; the one between is continued
    with the next 64 bits of p.
    *Outside the ball* (Algorithm 3): uniform points of R_L, until one lies beyond L. A point is its
    cell, 16 bits an axis, and its place in the cell, 48 bits and as many more as it takes. Floats
    decide where the distance differs from L by more than 2^-36 (1 + 2L) sqrt d, which is 2^10 times
    their error, and decimals elsewhere.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
import numpy as np

from sfumato.answers import drawn
from sfumato.basics import Array, Number, decimal, positive
from sfumato.errors import Infeasible, UsageError, explained_methods, shown
from sfumato.local.cells import Cells, CellSampler
from sfumato.local.constants import (
    DIGITS,
    Constants,
    Flags,
    Floats,
    auto_radius,
    constants,
    context,
    exactly,
    variance,
)
from sfumato.local.distances import DistanceLaw
from sfumato.local.mechanism import (
    RESOLUTION,
    LocalMechanism,
    check_dimension,
    in_blocks,
    read_array,
    reports_of,
)
from sfumato.local.reals import Level, Uniform, norm, settle
from sfumato.privacy import Proof
from sfumato.random.bits import Bits, Words, current

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- the paper's sampler --------------------------------------------------------------------------

_MARGIN = 2.0**-36


def two_stage_cells(
    ball: CellSampler, ball_probability: Decimal, radius: Fraction, points: Floats, bits: Bits
) -> Floats:
    """Algorithm 2: with probability p_L a report inside the ball of radius L, else one outside it.

    ``ball`` is Algorithm 4: a distance of density proportional to r^(d-1) exp(-k r) on [0, L], and
    a uniform direction.
    """
    near = coins(ball_probability, len(points), bits)
    cells = np.empty(points.shape)
    cells[near] = ball.draw(points[near], bits)
    cells[~near] = _outside(points[~near], radius, bits)
    return cells


def coins(probability: Decimal, count: int, bits: Bits) -> Flags:
    """Flip coins of a probability that is known to fifty digits: bool, shape (count,)."""
    # 2^64 has twenty digits, so the product with a number of fifty digits is exact.
    with localcontext(context(DIGITS + 20)):
        whole = int((probability * 2**64).to_integral_value(ROUND_FLOOR))
        rest = probability * 2**64 - whole
    if whole >= 2**64:
        return np.ones(count, dtype=bool)
    words = bits.words(count)
    heads = words < np.uint64(whole)
    # The one word at the border is continued: what is left of p decides it.
    for tie in np.flatnonzero(words == np.uint64(whole)):
        heads[tie] = coins(rest, 1, bits)[0]
    return heads


def _outside(points: Floats, radius: Fraction, bits: Bits) -> Cells:
    """Algorithm 3: uniform in the report space, drawn again while within L of the point."""
    cells = np.empty(points.shape, dtype=np.int64)
    missing = np.arange(len(points))
    while missing.size:
        words = bits.words(missing.size * points.shape[1]).reshape(missing.size, -1)
        beyond = _beyond(points[missing], words, radius, bits)
        cells[missing[beyond]] = (words[beyond] >> np.uint64(48)).astype(np.int64)
        missing = missing[~beyond]
    return cells


def _beyond(points: Floats, words: Words, radius: Fraction, bits: Bits) -> Flags:
    length = float(radius)
    side = 1 + 2 * length
    places = words.astype(np.float64) * (side * 2.0**-64) - length
    squared_distances = ((places - points) ** 2).sum(axis=1)
    room = np.sqrt(squared_distances) - length
    beyond = room > 0
    is_open = np.abs(room) < _MARGIN * side * math.sqrt(points.shape[1])
    for row in np.flatnonzero(is_open):
        beyond[row] = _certainly_beyond(points[row], words[row].tolist(), radius, bits)
    return np.asarray(beyond)


def _certainly_beyond(point: Floats, words: list[int], radius: Fraction, bits: Bits) -> bool:
    """Do what ``_beyond`` does for one report, in decimals."""
    uniforms = [Uniform(word, bits) for word in words]

    def evaluate(level: Level) -> bool:
        length = exactly(radius)
        places = [uniform.known(level.bits) * (1 + 2 * length) - length for uniform in uniforms]
        differences = [x - Decimal(float(v)) for x, v in zip(places, point, strict=True)]
        return level.below(length, norm(differences))

    return settle(evaluate)


# --- the mechanism --------------------------------------------------------------------------------

Method = Literal["mixture", "two-stage"]

# More reports than there are people: where a centroid within 0.1 would take more, a report is
# refused.
MOST_REPORTS = 10**10


@explained_methods
class BPM(LocalMechanism, frozen=True, tag="bpm"):
    """Perturb points on their owner's device, so that no one else ever sees them: k-means with no
    trusted curator.

    Parameters
    ----------
    epsilon : str, int, Fraction, Decimal or float
        Above 0, per unit of distance in the unit cube.
    L : the same, or "auto"
        Above 0: how far a report is drawn to its point. "auto": the smallest L whose variance is
        within 5% of what a larger one could reach; it depends on epsilon and the dimension only.
    dimension : int
        d, the number of axes.

    Attributes
    ----------
    log_normalizer : float
        ln lambda_L, the log density at the true point.
    ball_probability : float
        p_L, the share of reports within L of the true point.
    signal_probability, background_probability : float
        The share of reports that carry a signal, and of those that are uniform and say nothing.
    ldp_level : float
        epsilon min(L, sqrt d): the plain local privacy between any two points of the cube.
    variance : float
        Of one debiased report, summed over the axes, for a point in a corner, the worst place.

    Raises
    ------
    UsageError
        epsilon or L is not above 0, the dimension is not from 1 to 100,000, points have another
        shape or hold NaN.
    Infeasible
        From ``perturb``: a report would hardly carry a signal.

    {metric_privacy}
    {proof}

    >>> bpm = BPM(epsilon=2, L="0.3", dimension=2)
    >>> round(bpm.ball_probability, 12), round(bpm.signal_probability, 6)
    (0.132856866375, 0.025193)
    >>> bpm.perturb([[0.2, 0.9], [0.5, 0.5]]).shape
    (2, 2)
    """

    epsilon: Number
    L: Number
    dimension: int

    proof: ClassVar[Proof] = Proof(
        sensitivity="min(|x - v|, L) moves by at most the distance of two points.",
        because=(
            "the normaliser is the same for all points, as the ball of radius L stays inside the "
            "report space; reports are rounded to a public lattice, which is post-processing, and "
            "their cells are drawn without error."
        ),
        not_covered=(
            "several reports of one person add up; that a person takes part; "
            "the time a report takes."
        ),
        source=(
            "Yang, Tjuawinata, Lam 2022, Thm 8; the public implementation drops a factor exp(-k L) "
            "and is not private."
        ),
    )

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))
        msgspec.structs.force_setattr(self, "dimension", check_dimension(self.dimension))
        asked_radius: object = self.L
        if isinstance(asked_radius, str) and asked_radius == "auto":
            radius = auto_radius(self.epsilon, self.dimension)
        else:
            radius = positive(self.L, "L")
        msgspec.structs.force_setattr(self, "L", radius)
        for name, value in (("epsilon", self.epsilon), ("L", self.L)):
            if not Fraction(1, 10**9) <= value <= 10**9:
                raise UsageError(
                    f"{name} = {decimal(value)}",
                    "it lies between 1e-9 and 1e9",
                    f"Choose {name} in that range",
                )
        if self.epsilon * self.L > 10**12:
            raise UsageError(
                f"epsilon = {decimal(self.epsilon)} with L = {decimal(self.L)}",
                "a privacy loss above 1e12 promises nothing",
                "Choose a smaller epsilon or L",
            )

    # --- the law ----------------------------------------------------------------------------------

    @property
    def _constants(self) -> Constants:
        return constants(self.epsilon, self.L, self.dimension)

    @property
    def log_normalizer(self) -> float:
        """ln lambda_L."""
        return float(self._constants.log_normalizer)

    @property
    def ball_probability(self) -> float:
        """p_L: the share of reports within L of the true point."""
        return float(self._constants.ball_probability)

    @property
    def signal_probability(self) -> float:
        """1 - b: the share of reports that carry a signal."""
        return float(self._constants.signal_probability)

    @property
    def background_probability(self) -> float:
        """b: the share of reports that are uniform on the report space."""
        return float(self._constants.background_probability)

    @property
    def ldp_level(self) -> float:
        """Plain local differential privacy between any two points of the unit cube."""
        return float(self.epsilon) * min(float(self.L), math.sqrt(self.dimension))

    @property
    def variance(self) -> float:
        """Total variance of one debiased report of a corner."""
        return self._corner_variance(self.L)

    def _corner_variance(self, radius: Fraction) -> float:
        """Of a corner, whose squared distance from the centre is d / 4, for some L."""
        return variance(self.epsilon, radius, self.dimension, Decimal(self.dimension) / 4)

    @property
    def title(self) -> str:
        """In words."""
        return (
            f"bounded perturbation mechanism in {self.dimension} dimensions, L = {decimal(self.L)}"
        )

    def log_density(self, v: np.typing.ArrayLike, x: np.typing.ArrayLike) -> Array:
        """Log density of reports x for points v, shapes (d,) or (n, d), broadcast; -inf outside the
        report space.
        """
        points = read_array(v, self.dimension, "points")
        reports = read_array(x, self.dimension, "reports")
        radius = float(self.L)
        distances = np.minimum(np.linalg.norm(reports - points, axis=-1), radius)
        inside = ((reports >= -radius) & (reports <= 1 + radius)).all(axis=-1)
        logs = self.log_normalizer - float(self.epsilon) * distances
        # One pair of points gives a number, not an array of no dimensions.
        return np.where(inside, logs, -np.inf)[()]

    # --- accuracy ---------------------------------------------------------------------------------

    def debias(self, mean_of_reports: np.typing.ArrayLike) -> Floats:
        """Turn a mean of reports into an unbiased estimate of the mean of their points.

        It is (x - b/2) / (1 - b).
        """
        mean = read_array(mean_of_reports, self.dimension, "means of reports")
        self._feasible()
        return (mean - self.background_probability / 2) / self.signal_probability

    def _feasible(self) -> None:
        """Refuse a mechanism whose reports hardly carry a signal."""
        if self.reports_needed(0.1) <= MOST_REPORTS:
            return
        better = auto_radius(self.epsilon, self.dimension)
        # A centroid within 0.1: a hundred times the variance.
        count = self._corner_variance(better) * 100
        with localcontext(context()):
            share = f"{self._constants.signal_probability:.1e}"
        name = f"BPM of epsilon = {decimal(self.epsilon)}, L = {decimal(self.L)}"
        raise Infeasible(
            f"{name} in {self.dimension} dimensions",
            f"a share of {share} of its reports carries a signal, "
            f"so a centroid within 0.1 would take more than {MOST_REPORTS:.0e} reports",
            f'Take L = {decimal(better)} (L="auto"), which needs {count:,.0f} of them, '
            "or a larger epsilon, or fewer dimensions",
        )

    # --- reports ----------------------------------------------------------------------------------

    @property
    def width(self) -> Fraction:
        """Width of a cell of the lattice."""
        return (1 + 2 * Fraction(self.L)) / RESOLUTION

    def perturb(self, points: np.typing.ArrayLike, method: Method = "mixture") -> Floats:
        """Draw one report for each point.

        Parameters
        ----------
        points : array of shape (n, d) or (d,)
            In the unit cube; what lies outside is clamped to it.
        method : {"mixture", "two-stage"}
            The fast sampler, or the paper's Algorithms 2 to 4, slower and easier to read. Both have
            the same law.

        Returns
        -------
        float64 ndarray of the same shape, centres of cells in [-L, 1 + L]^d
        """
        if method not in ("mixture", "two-stage"):
            raise UsageError(
                f"method = {shown(method)}",
                "the sampler is unknown",
                'Choose "mixture" or "two-stage"',
            )
        # Refused before a report is drawn: one without signal would spend epsilon for nothing.
        self._feasible()
        bits = current()
        ball = _sampler(self, self.dimension, 0)
        within = self._constants.ball_probability

        def draw(part: Floats, target: Floats) -> None:
            if method == "mixture":
                self._mixture(part, target, bits)
            else:
                target[:] = two_stage_cells(ball, within, self.L, part, bits)

        return reports_of(self, points, draw)

    def draw_cells(self, points: np.typing.ArrayLike, bits: Bits | None = None) -> Cells:
        """Draw the lattice cell of one report for each point: int64, shape (n, d), each from 0 to
        2^16 - 1.
        """
        self._feasible()
        source = bits or current()
        return in_blocks(
            points, self.dimension, lambda part, target: self._mixture(part, target, source)
        ).astype(np.int64)

    def _mixture(self, points: Floats, target: Floats, bits: Bits) -> None:
        """Write the cells of reports: with probability b a uniform one, else one inside a random
        ball.
        """
        silent = coins(self._constants.background_probability, len(points), bits)
        uniform = uniform_cells(int(silent.sum()), self.dimension, bits)
        ball = _sampler(self, self.dimension + 1, self.dimension)
        # Where few are uniform, drawing a few too many is faster than taking the rows apart.
        if 16 * len(uniform) < len(points):
            ball.draw(points, bits, target)
        else:
            target[~silent] = ball.draw(points[~silent], bits)
        # Written last: where few are uniform, ``draw`` has filled all rows.
        target[silent] = uniform

    def place(self, cells: np.typing.ArrayLike, out: Floats | None = None) -> Floats:
        """Centres of cells as points: float64 like ``cells``, in ``out`` if it is given."""
        points: Floats = np.add(cells, 0.5, out=out)
        points *= float(self.width)
        points -= float(self.L)
        return points

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest cell."""
        return 0, RESOLUTION - 1

    def plot(self, ax: Axes | None = None, reports: int = 100_000) -> Axes:
        """Draw the density of reports against their distance, beside so many simulated ones, on a
        matplotlib Axes.
        """
        return drawn("local.draw_radius", self, ax, reports)

    def __str__(self) -> str:
        signal = f"{100 * self.signal_probability:.3g}% of the reports carry a signal"
        lines = [
            f"BPM, epsilon = {decimal(self.epsilon)} per unit of distance, "
            f"L = {decimal(self.L)}, {self.dimension} dimensions:",
            f"  {signal}; {100 * self.ball_probability:.3g}% lie within L",
            f"  plain local privacy between any two points: epsilon = {self.ldp_level:.4g}",
            f"  a centroid within 0.05 takes {self.reports_needed(0.05):,} reports",
        ]
        return "\n".join(lines)


@lru_cache(maxsize=64)
def _sampler(bpm: BPM, shape: int, ball: int) -> CellSampler:
    """Reports inside the ball of radius L: see ``DistanceLaw`` for ``shape`` and ``ball``."""
    distance = DistanceLaw(shape, bpm.epsilon, bpm.L, ball)
    return CellSampler(bpm.dimension, distance, -bpm.L, bpm.width)


def uniform_cells(count: int, d: int, bits: Bits) -> Cells:
    """Uniform cells of the lattice: 16 bits a coordinate, shape (count, d)."""
    lanes = bits.words(-(-count * d // 4)).view(np.uint16)[: count * d]
    return lanes.reshape(count, d).astype(np.int64)


def centre_reports(bpm: BPM, reports: int) -> Floats:
    """Simulate reports of the cube's centre: float64 of shape (reports, d)."""
    return bpm.perturb(np.full((reports, bpm.dimension), 0.5))


def share_within(bpm: BPM, distances: np.typing.ArrayLike) -> Floats:
    """P(|x - v| <= r) for distances up to L: float64 like ``distances``."""
    shares = [_share_within(bpm, r) for r in np.ravel(distances).tolist()]
    return np.reshape(shares, np.shape(distances))


def _share_within(bpm: BPM, distance: float) -> float:
    near = min(Fraction(distance), bpm.L)
    if near <= 0:
        return 0.0
    whole = constants(bpm.epsilon, bpm.L, bpm.dimension)
    part = constants(bpm.epsilon, near, bpm.dimension)
    with localcontext(context()):
        # A smaller ball under the same exponential: its own p_r, times the quotient of the
        # normalisers.
        log_ratio = whole.log_normalizer - part.log_normalizer
        return float(log_ratio.exp() * part.ball_probability)
