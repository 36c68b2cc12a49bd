"""What local mechanisms share, and the simplest of them: multivariate Laplace noise.

They share points in, reports on a public lattice out, and key figures (``LocalMechanism``).

*The multivariate Laplace mechanism* is the simplest metric privacy, and the limit of a large L.

Density of a report x for a point v: proportional to exp(-epsilon |x - v|) on all of R^d; |x - v| is
Gamma(d, rate epsilon) and the direction is uniform. Reports lie on a lattice whose cells are 2^-16
times a power of two near 1 + 2 d / epsilon wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Protocol, TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array, ExplainedStruct, Number, decimal, positive, whole
from sfumato.errors import UsageError, explained_methods, shown
from sfumato.local.cells import CHUNK, Cells, CellSampler
from sfumato.local.constants import Floats
from sfumato.local.distances import DistanceLaw
from sfumato.privacy import Guarantee, MetricDP, Proof, Unit, fill_docstring
from sfumato.random.bits import Bits, current

# --- what mechanisms share ------------------------------------------------------------------------

LARGEST_DIMENSION = 10**5

# How many cells of the lattice span a mechanism's typical report, on each axis.
RESOLUTION = 2**16

SLACK = (
    "none: reports lie on a public lattice, and a float that comes too near to the border of a "
    "cell is computed again from the same random words with as many digits as it takes; "
    "given that log, exp and sqrt of the platform are right to 2^-48"
)
ASSUMPTIONS = (
    "The device adds the noise before anything leaves it.",
    "Each person reports once: several reports of one person add up their epsilons.",
    "The bounds that scale values to [0, 1] were chosen without looking at the data; "
    "distance is measured in scaled units.",
    "AES and the operating system's random seed are sound.",
)
UNIT = Unit(neighbours="replace")

# Writes the cells of reports of some points: both of shape (n, d), cells as whole numbers.
Draw: TypeAlias = Callable[[Floats, Floats], object]


class Mechanism(Protocol):
    """What each local mechanism defines for itself."""

    @property
    def epsilon(self) -> Fraction: ...
    @property
    def dimension(self) -> int: ...
    @property
    def proof(self) -> Proof: ...
    @property
    def background_probability(self) -> float: ...
    @property
    def variance(self) -> float: ...
    @property
    def title(self) -> str: ...
    @property
    def limits(self) -> tuple[int, int]: ...
    def log_density(self, v: np.typing.ArrayLike, x: np.typing.ArrayLike) -> Array: ...
    def perturb(self, points: np.typing.ArrayLike) -> Floats: ...
    def draw_cells(self, points: np.typing.ArrayLike, bits: Bits | None = None) -> Cells: ...
    def place(self, cells: np.typing.ArrayLike, out: Floats | None = None) -> Floats: ...
    def debias(self, mean_of_reports: np.typing.ArrayLike) -> Floats: ...


@explained_methods
class LocalMechanism(ExplainedStruct, frozen=True):
    """What all local mechanisms do in the same way."""

    metric_privacy: ClassVar[str] = (
        "Guarantee: epsilon d_E-privacy (metric privacy) of each report: "
        "P(x | v) <= exp(epsilon |v - v'|) P(x | v')."
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        fill_docstring(cls)

    @property
    def guarantee(self: Mechanism) -> Guarantee:
        """What a report drawn now promises: nothing, if its bits come from a public seed."""
        return Guarantee(
            MetricDP(self.epsilon),
            UNIT,
            self.title,
            self.proof,
            ASSUMPTIONS,
            SLACK,
            current().private,
        )

    def density(self: Mechanism, v: np.typing.ArrayLike, x: np.typing.ArrayLike) -> Array:
        """Density of reports x for points v, shapes (d,) or (n, d), broadcast.

        0 outside the report space.
        """
        return np.exp(self.log_density(v, x))

    def reports_needed(self: Mechanism, error: float) -> int:
        """How many reports of one point give a debiased mean of this root mean squared error."""
        is_number = isinstance(error, int | float | np.integer | np.floating)
        if not is_number or isinstance(error, bool) or not 0 < error < math.inf:
            raise UsageError(
                f"error = {shown(error)}",
                "an error is above 0",
                "Give the distance that would be accurate enough, such as 0.05",
            )
        wanted = self.variance / error**2
        # Beyond doubles: a number that is larger than any that can be compared with it.
        return math.ceil(wanted) if math.isfinite(wanted) else 10**400

    def limit(self: Mechanism, reports: int) -> float:
        """The least mean squared error of any mechanism of this epsilon: d^2 / (epsilon^2 n).

        It bounds unbiased estimates of a common location: each report of an epsilon d_E-private
        mechanism carries Fisher information of trace at most epsilon^2.
        """
        number = whole(
            reports,
            "reports",
            1,
            obstacle="their number is a whole number of at least 1",
            remedy="Give a number such as 10_000",
        )
        return self.dimension**2 / (float(self.epsilon) ** 2 * number)

    def check_cells(self: Mechanism, cells: np.typing.ArrayLike) -> Cells:
        """Read the cells of reports that somebody sent: int64, shape (n, d)."""
        given = np.atleast_2d(np.asarray(cells))
        if given.ndim != 2 or given.shape[1] != self.dimension or given.dtype.kind not in "iu":
            raise UsageError(
                "cells of reports",
                "they are not whole numbers of the mechanism's shape",
                f"Give integers of shape (n, {self.dimension})",
            )
        least, most = self.limits
        if given.size and not (least <= int(given.min()) and int(given.max()) <= most):
            raise UsageError(
                "cells of reports",
                "a report lies outside the report space",
                "Give reports of this mechanism",
            )
        return given.astype(np.int64)


def check_dimension(dimension: object) -> int:
    """Read the number of axes."""
    return whole(
        dimension,
        "dimension",
        1,
        LARGEST_DIMENSION,
        obstacle=f"it is a whole number from 1 to {LARGEST_DIMENSION:,}",
        remedy="Give the number of axes",
    )


def read_array(values: np.typing.ArrayLike, dimension: int, name: str) -> Floats:
    """Read numbers of shape (d,) or (n, d), without NaN. No message quotes them."""
    try:
        given = np.asarray(values)
        # A cast to doubles would drop imaginary parts.
        array = None if given.dtype.kind == "c" else given.astype(np.float64)
    except (TypeError, ValueError):
        array = None
    what = f"{name} in {dimension} dimensions"
    if array is None:
        raise UsageError(
            what, "they are not an array of numbers", f"Give an array of shape (n, {dimension})"
        )
    if array.ndim not in (1, 2) or array.shape[-1] != dimension:
        raise UsageError(
            what,
            f"the array has shape {array.shape}",
            f"Give an array of shape (n, {dimension}) or ({dimension},)",
        )
    if np.isnan(array).any():
        raise UsageError(
            what,
            "a value is missing (NaN)",
            "Who has no value makes no report: drop such rows first",
        )
    return array


def in_blocks(points: np.typing.ArrayLike, dimension: int, draw: Draw) -> Floats:
    """Read points and draw for a few at a time: float64 ndarray of shape (n, d)."""
    given = np.atleast_2d(read_array(points, dimension, "points"))
    reports = np.empty(given.shape)
    # Freed untouched: from then on glibc keeps freed blocks of up to this size, and does not page
    # them in anew for each of the many temporary arrays below.
    np.empty(2**21)
    # So many rows that what they need stays in the processor's cache. Drawing a distance takes as
    # much memory and time as six coordinates, about.
    rows = max(64, CHUNK // (dimension + 6))
    clamped = np.empty((min(rows, len(given)), dimension))
    for start in range(0, len(given), rows):
        part = given[start : start + rows]
        # Clamping never takes two points further apart, so it keeps the guarantee.
        np.clip(part, 0.0, 1.0, out=clamped[: len(part)])
        draw(clamped[: len(part)], reports[start : start + rows])
    return reports


def reports_of(mechanism: Mechanism, points: np.typing.ArrayLike, draw: Draw) -> Floats:
    """Perturb points as they were given: one point gives one report, shape (d,)."""

    def report(part: Floats, target: Floats) -> None:
        draw(part, target)
        mechanism.place(target, target)

    reports = in_blocks(points, mechanism.dimension, report)
    return reports[0] if np.ndim(points) == 1 else reports


# --- multivariate Laplace noise -------------------------------------------------------------------

# Cells that are read from others lie within this of 0; a report beyond it has no chance of
# happening.
FARTHEST = 2**40


@explained_methods
class MultivariateLaplace(LocalMechanism, frozen=True, tag="laplace"):
    """Perturb points on their owner's device with noise whose density falls with the Euclidean
    distance.

    Parameters
    ----------
    epsilon : str, int, Fraction, Decimal or float
        Above 0, per unit of distance in the unit cube.
    dimension : int
        d, the number of axes.

    Attributes
    ----------
    variance : float
        Of one report, summed over the axes: d (d + 1) / epsilon^2.
    ldp_level : float
        epsilon sqrt d: the plain local privacy between any two points of the cube.

    Raises
    ------
    UsageError
        epsilon is not above 0, the dimension is not from 1 to 100,000, points have another shape or
        hold NaN.

    {metric_privacy}
    {proof}

    >>> MultivariateLaplace(epsilon=2, dimension=2).variance
    1.5
    """

    epsilon: Number
    dimension: int

    proof: ClassVar[Proof] = Proof(
        sensitivity="|x - v| moves by at most the distance of two points.",
        because=(
            "the normaliser is the same for all points; reports are rounded to a public lattice, "
            "which is post-processing, and their cells are drawn without error."
        ),
        not_covered=(
            "several reports of one person add up; that a person takes part; "
            "the time a report takes."
        ),
        source=(
            "Chatzikokolakis, Andres, Bordenabe, Palamidessi 2013; Fernandes, Dras, McIver 2019."
        ),
    )
    background_probability: ClassVar[float] = 0.0
    signal_probability: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))
        msgspec.structs.force_setattr(self, "dimension", check_dimension(self.dimension))
        if not Fraction(1, 10**9) <= self.epsilon <= 10**9:
            raise UsageError(
                f"epsilon = {decimal(self.epsilon)}",
                "it lies between 1e-9 and 1e9",
                "Choose epsilon in that range",
            )

    @property
    def log_normalizer(self) -> float:
        """Log density at the true point: ln(epsilon^d / (S_d Gamma(d)))."""
        d = self.dimension
        return (
            d * math.log(self.epsilon)
            - d / 2 * math.log(math.pi)
            + math.lgamma(d / 2 + 1)
            - math.lgamma(d + 1)
        )

    @property
    def variance(self) -> float:
        """Total variance of one report."""
        return self.dimension * (self.dimension + 1) / float(self.epsilon) ** 2

    @property
    def ldp_level(self) -> float:
        """Plain local differential privacy between any two points of the unit cube."""
        return float(self.epsilon) * math.sqrt(self.dimension)

    @property
    def title(self) -> str:
        """In words."""
        return f"multivariate Laplace mechanism in {self.dimension} dimensions"

    def log_density(self, v: np.typing.ArrayLike, x: np.typing.ArrayLike) -> Array:
        """Log density of reports x for points v, shapes (d,) or (n, d), broadcast."""
        points = read_array(v, self.dimension, "points")
        reports = read_array(x, self.dimension, "reports")
        distances = np.linalg.norm(reports - points, axis=-1)
        logs: Array = self.log_normalizer - float(self.epsilon) * distances
        # One pair of points gives a number, not an array of no dimensions.
        plain: Array = logs[()]
        return plain

    def debias(self, mean_of_reports: np.typing.ArrayLike) -> Floats:
        """The mean itself: reports are unbiased."""
        return read_array(mean_of_reports, self.dimension, "means of reports")

    @property
    def width(self) -> Fraction:
        """Width of a cell of the lattice: a power of two."""
        spread = 1 + 2 * self.dimension / float(self.epsilon)
        # Multiplying the number of a cell by a power of two does not round.
        return Fraction(2) ** math.ceil(math.log2(spread)) / RESOLUTION

    def perturb(self, points: np.typing.ArrayLike) -> Floats:
        """Draw one report for each point of the unit cube, shape (n, d) or (d,): float64 of the
        same shape, on the lattice.
        """
        bits = current()
        sampler = _sampler(self)
        return reports_of(self, points, lambda part, target: sampler.draw(part, bits, target))

    def draw_cells(self, points: np.typing.ArrayLike, bits: Bits | None = None) -> Cells:
        """Draw the lattice cell of one report for each point: int64, shape (n, d)."""
        source = bits or current()
        sampler = _sampler(self)
        return in_blocks(
            points, self.dimension, lambda part, target: sampler.draw(part, source, target)
        ).astype(np.int64)

    def place(self, cells: np.typing.ArrayLike, out: Floats | None = None) -> Floats:
        """Centres of cells as points: float64 like ``cells``, in ``out`` if it is given."""
        points: Floats = np.add(cells, 0.5, out=out)
        points *= float(self.width)
        return points

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest cell that is read."""
        return -FARTHEST, FARTHEST

    def __str__(self) -> str:
        epsilon = decimal(self.epsilon)
        lines = [
            f"Multivariate Laplace, epsilon = {epsilon} per unit of distance, "
            f"{self.dimension} dimensions:",
            f"  plain local privacy between any two points: epsilon = {self.ldp_level:.4g}",
            f"  a centroid within 0.05 takes {self.reports_needed(0.05):,} reports",
        ]
        return "\n".join(lines)


@lru_cache(maxsize=64)
def _sampler(mechanism: MultivariateLaplace) -> CellSampler:
    # The distance of a point in d dimensions has the factor r^(d - 1) of its sphere: Gamma(d).
    distance = DistanceLaw(mechanism.dimension, mechanism.epsilon, radius=None, ball=0)
    return CellSampler(mechanism.dimension, distance, Fraction(0), mechanism.width)
