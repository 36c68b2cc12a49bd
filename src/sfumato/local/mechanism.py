"""What local mechanisms share: points in, reports on a public lattice out, and key figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError, shown
from sfumato.local.sampling.cells import CHUNK, Cells
from sfumato.local.sampling.floats import Floats
from sfumato.privacy.guarantee import Guarantee, Proof, fill_docstring
from sfumato.privacy.measures import MetricDP
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits, current

LARGEST_DIMENSION = 10**5
_KEPT_BLOCK = 2**21
_RADIUS_COST = 6
"""Drawing a distance takes about as much memory and time as six coordinates."""

RESOLUTION = 2**16
"""How many cells of the lattice span a mechanism's typical report, on each axis."""

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

Draw: TypeAlias = Callable[[Floats, Floats], object]
"""Writes the cells of reports of some points: both of shape (n, d), cells as whole numbers."""


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
    def log_density(self, v: ArrayLike, x: ArrayLike) -> Array: ...
    def perturb(self, points: ArrayLike) -> Floats: ...
    def draw_cells(self, points: ArrayLike, bits: Bits | None = None) -> Cells: ...
    def place(self, cells: ArrayLike, out: Floats | None = None) -> Floats: ...
    def debias(self, mean_of_reports: ArrayLike) -> Floats: ...


class LocalMechanism(msgspec.Struct, frozen=True):
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

    def density(self: Mechanism, v: ArrayLike, x: ArrayLike) -> Array:
        """Density of reports x for points v, shapes (d,) or (n, d), broadcast.

        0 outside the report space.
        """
        return np.exp(self.log_density(v, x))

    def reports_needed(self: Mechanism, error: float) -> int:
        """How many reports of one point give a debiased mean of this root mean squared error."""
        is_number = isinstance(error, int | float | np.integer | np.floating)
        if not is_number or isinstance(error, bool) or not 0 < error < math.inf:
            remedy = "Give the distance that would be accurate enough, such as 0.05"
            raise UsageError(f"error = {shown(error)}", "an error is above 0", remedy)
        wanted = self.variance / error**2
        # Beyond doubles: a number that is larger than any that can be compared with it.
        return math.ceil(wanted) if math.isfinite(wanted) else 10**400

    def limit(self: Mechanism, reports: int) -> float:
        """The least mean squared error of any mechanism of this epsilon: d^2 / (epsilon^2 n).

        It bounds unbiased estimates of a common location: each report of an epsilon d_E-private
        mechanism carries Fisher information of trace at most epsilon^2.
        """
        if isinstance(reports, bool) or not isinstance(reports, int | np.integer) or reports < 1:
            obstacle = "their number is a whole number of at least 1"
            raise UsageError(
                f"reports = {shown(reports)}", obstacle, "Give a number such as 10_000"
            )
        return self.dimension**2 / (float(self.epsilon) ** 2 * int(reports))

    def check_cells(self: Mechanism, cells: ArrayLike) -> Cells:
        """Read the cells of reports that somebody sent: int64, shape (n, d)."""
        found = np.atleast_2d(np.asarray(cells))
        if found.ndim != 2 or found.shape[1] != self.dimension or found.dtype.kind not in "iu":
            obstacle = "they are not whole numbers of the mechanism's shape"
            raise UsageError(
                "cells of reports", obstacle, f"Give integers of shape (n, {self.dimension})"
            )
        least, most = self.limits
        if found.size and not (least <= int(found.min()) and int(found.max()) <= most):
            obstacle = "a report lies outside the report space"
            raise UsageError("cells of reports", obstacle, "Give reports of this mechanism")
        return found.astype(np.int64)


def check_dimension(dimension: object) -> int:
    """Read the number of axes."""
    if (
        isinstance(dimension, bool)
        or not isinstance(dimension, int | np.integer)
        or not 1 <= dimension <= LARGEST_DIMENSION
    ):
        text = shown(dimension) if isinstance(dimension, int) else type(dimension).__name__
        raise UsageError(
            f"dimension = {text}",
            f"it is a whole number from 1 to {LARGEST_DIMENSION:,}",
            "Give the number of axes",
        )
    return int(dimension)


def read_array(values: ArrayLike, dimension: int, name: str) -> Floats:
    """Read numbers of shape (d,) or (n, d), without NaN. No message quotes them."""
    try:
        given = np.asarray(values)
        found = None if given.dtype.kind == "c" else given.astype(np.float64)
    except (TypeError, ValueError):
        found = None
    asked = f"{name} in {dimension} dimensions"
    if found is None:
        raise UsageError(
            asked, "they are not an array of numbers", f"Give an array of shape (n, {dimension})"
        )
    if found.ndim not in (1, 2) or found.shape[-1] != dimension:
        raise UsageError(
            asked,
            f"the array has shape {found.shape}",
            f"Give an array of shape (n, {dimension}) or ({dimension},)",
        )
    if np.isnan(found).any():
        raise UsageError(
            asked,
            "a value is missing (NaN)",
            "Who has no value makes no report: drop such rows first",
        )
    return found


def in_blocks(points: ArrayLike, dimension: int, draw: Draw) -> Floats:
    """Read points and draw for a few at a time: float64 ndarray of shape (n, d)."""
    given = np.atleast_2d(read_array(points, dimension, "points"))
    found = np.empty(given.shape)
    # Freed untouched: from then on glibc keeps freed blocks of up to this size, and does not page
    # them in anew for each of the many temporary arrays below.
    np.empty(_KEPT_BLOCK)
    # So many rows that what they need stays in the processor's cache.
    rows = max(64, CHUNK // (dimension + _RADIUS_COST))
    clamped = np.empty((min(rows, len(given)), dimension))
    for start in range(0, len(given), rows):
        part = given[start : start + rows]
        # Clamping never takes two points further apart, so it keeps the guarantee.
        np.clip(part, 0.0, 1.0, out=clamped[: len(part)])
        draw(clamped[: len(part)], found[start : start + rows])
    return found


def reports_of(mechanism: Mechanism, points: ArrayLike, draw: Draw) -> Floats:
    """Perturb points as they were given: one point gives one report, shape (d,)."""

    def report(part: Floats, target: Floats) -> None:
        draw(part, target)
        mechanism.place(target, target)

    found = in_blocks(points, mechanism.dimension, report)
    return found[0] if np.ndim(points) == 1 else found
