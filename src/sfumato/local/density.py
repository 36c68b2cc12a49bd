"""A density of any shape from reports: smooth, on a lattice, as rough as the reports bear out.

The log density is a quadratic, which every normal law is, plus a Gaussian process in cosines with
Matern's spectrum. First the quadratic alone is fitted, on the unit cube; then both, on a box about
what it found. Each roughness has an evidence (Laplace's approximation of the marginal likelihood),
and the density is the average of the most likely ones, weighed by it. Where noise hides the details
there are none; where it does not they come out. No parameter is set by hand for data or noise.

The expected sum of squares is linear in the density, so k-means on the average density has the
least expected sum. A cell of the lattice is a uniform law. Its second moment is added to the noise,
which makes the lattice exact to second order.
Source: logistic Gaussian processes: Leonard 1978, Tokdar 2007; evidence: MacKay 1992; spectra:
Matern 1960.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.basics import Array
from sfumato.local.constants import Floats
from sfumato.local.normal_clusters import NoiseLaw

SMOOTHNESS = 2.0
# Standard deviations of the quadratic's coefficients, on the cube and on the box.
BROAD = 30.0
NARROW = 10.0

# The least side of the box.
LEAST_BOX = 0.1

# Cosines on each axis.
FEWEST_COSINES = 4


@dataclass(frozen=True)
class Fit:
    """The most likely density for one roughness.

    Attributes
    ----------
    functions : float64 ndarray of shape (g, p)
        The basis: the log density of the cells is ``functions @ theta``, up to a constant.
    theta : float64 ndarray of shape (p,)
        Standard normal beforehand.
    root : float64 ndarray of shape (p, p)
        Cholesky's of the precision of theta afterwards.
    evidence : float
        Log of the marginal likelihood.
    """

    functions: Floats
    theta: Floats
    root: Floats
    evidence: float

    def shares(self, theta: Floats | None = None) -> Floats:
        """Shares of the sites: those of the fit, or of another theta."""
        return _shares(self.functions @ (self.theta if theta is None else theta))


@dataclass(frozen=True)
class Density:
    """What is known of the density.

    Attributes
    ----------
    sites : float64 ndarray of shape (g, d)
        Centres of the lattice's cells.
    side : float64 ndarray of shape (d,)
        Of a cell.
    shares : float64 ndarray of shape (g,)
        Expected share of each cell.
    fits : list of Fit
    weights : float64 ndarray of shape (fits,)
        How likely each roughness is, given the reports.
    evidence : float
        Log likelihood of the reports, averaged over the prior.
    """

    sites: Floats
    side: Floats
    shares: Floats
    fits: list[Fit]
    weights: Floats
    evidence: float

    def draw(self, rng: np.random.Generator, size: float = 1.0) -> Floats:
        """Shares that may be the true ones: by the normal law about a fit, its standard deviations
        times ``size``.
        """
        from scipy.linalg import solve_triangular

        fit = self.fits[rng.choice(len(self.fits), p=self.weights)]
        step = solve_triangular(
            fit.root, rng.normal(size=len(fit.theta)), lower=True, trans="T", check_finite=False
        )
        return fit.shares(fit.theta + size * step)


@dataclass(frozen=True)
class _Lattice:
    """Cells of a box and how likely each makes each report.

    Attributes
    ----------
    sites : float64 ndarray of shape (g, d)
    side : float64 ndarray of shape (d,)
    kernel : float64 ndarray of shape (n, g)
        Density of each report for a point in each cell.
    rounded : float32 ndarray of shape (n, g)
        The kernel in single precision, which is enough for curvature.
    floor : float
        Density of the background.
    quadratics : float64 ndarray of shape (g, q)
    cosines : float64 ndarray of shape (g, m)
    frequencies : float64 ndarray of shape (m,)
        Squared.
    """

    sites: Floats
    side: Floats
    kernel: Floats
    rounded: Array
    floor: float
    quadratics: Floats
    cosines: Floats
    frequencies: Floats

    def functions(self, length: float, height: float, broad: float) -> Floats:
        """The basis, each function times its standard deviation beforehand."""
        if height <= 0:
            return np.hstack([broad * self.quadratics, self.cosines[:, :0]])
        d = self.sites.shape[1]
        spectrum = (1 + self.frequencies * length**2 / (2 * SMOOTHNESS)) ** -(SMOOTHNESS + d / 2)
        deviations = height * np.sqrt(spectrum / spectrum.sum())
        return np.hstack([broad * self.quadratics, self.cosines * deviations])


def explore(points: Floats, counts: Floats, law: NoiseLaw) -> Density:
    """Find the density behind counted reports in one or two dimensions.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
    counts : float64 ndarray of shape (n,)
        Reports at each point.
    law : NoiseLaw
    """
    d = points.shape[1]
    cube = _lattice(points, law, np.tile([0.0, 1.0], (d, 1)), FEWEST_COSINES)
    normal = _fitted(cube, counts, cube.functions(1.0, 0.0, BROAD)).shares()
    box = _box(cube.sites, normal)
    lattice = _lattice(points, law, box, _cosines(box, float(counts.sum()), law))
    flat = _fitted(lattice, counts, lattice.functions(1.0, 0.0, NARROW))
    fits = [flat]
    # Below a height of 0.3 the process counts as none.
    log_priors = [_log_prior(0.3)]
    # How far and how high the hills of the process are.
    for length in (0.4, 0.15, 0.05):
        # Heights rise from the flat fit on: each starts where the one before ended.
        fit = flat
        for height in (1.0, 2.5, 6.0):
            fit = _fitted(lattice, counts, lattice.functions(length, height, NARROW), fit)
            fits.append(fit)
            log_priors.append(_log_prior(height))
    logs = np.array([fit.evidence for fit in fits]) + log_priors
    weights = np.exp(logs - logs.max())
    evidence = float(logs.max()) + math.log(weights.sum() / np.exp(log_priors).sum())
    weights /= weights.sum()
    shares = np.sum(
        [weight * fit.shares() for weight, fit in zip(weights, fits, strict=True)], axis=0
    )
    return Density(lattice.sites, lattice.side, shares, fits, weights, evidence)


def _log_prior(height: float) -> float:
    """Log density of a height beforehand, up to a constant: log-normal about 1."""
    return -0.5 * (math.log(height) / 0.7) ** 2


def _box(sites: Floats, shares: Floats) -> Floats:
    """Where nearly all of a density lies, by its moments: shape (d, 2), inside the unit cube."""
    mean = shares @ sites
    deviations = np.sqrt(shares @ (sites - mean) ** 2)
    half = np.maximum(4 * deviations, LEAST_BOX / 2)
    low = np.clip(mean - half, 0, 1 - LEAST_BOX)
    return np.stack([low, np.clip(mean + half, low + LEAST_BOX, 1)], axis=1)


def _cosines(box: Floats, reports: float, law: NoiseLaw) -> int:
    """Cosines on each axis: up to the frequency at which the noise leaves so many reports nothing
    to say.
    """
    d = len(box)
    scale = float(law.shares @ law.variances) / (d + 1)
    frequency = math.sqrt(max(reports ** (1 / (d + 1)) - 1, 0) / scale)
    longest = float((box[:, 1] - box[:, 0]).max())
    most = 40 if d == 1 else 14
    return int(np.clip(math.ceil(frequency * longest / math.pi), FEWEST_COSINES, most))


def _lattice(points: Floats, law: NoiseLaw, box: Floats, cosines: int) -> _Lattice:
    """Cells of a box, so many that the highest cosine is seen on them."""
    d = len(box)
    size = max(20, 2 * cosines + 2)
    grid = (np.arange(size) + 0.5) / size
    widths = box[:, 1] - box[:, 0]
    side = widths / size
    unit = np.stack(np.meshgrid(*[grid] * d, indexing="ij"), axis=-1).reshape(-1, d)
    kernel = _kernel(points, law, box[:, 0], side, grid)
    waves, frequencies = _waves(grid, d, cosines)
    return _Lattice(
        sites=box[:, 0] + side * size * unit,
        side=side,
        kernel=kernel,
        rounded=kernel.astype(np.float32),
        floor=law.background_density_above_zero,
        quadratics=_quadratics(unit),
        cosines=waves,
        frequencies=frequencies,
    )


def _kernel(points: Floats, law: NoiseLaw, low: Floats, side: Floats, grid: Floats) -> Floats:
    """Density of each report for a uniform point of each cell: shape (n, g)."""
    size = len(grid)
    d = len(side)
    squared = [
        (points[:, [axis]] - (low[axis] + side[axis] * size * grid)) ** 2 for axis in range(d)
    ]
    kernel = np.zeros((len(points), size**d))
    for share, variance in zip((1 - law.background) * law.shares, law.variances, strict=True):
        # The second moment of a uniform cell adds to the noise.
        totals = variance + side**2 / 12
        axes = [
            np.exp(-part / (2 * t)) / math.sqrt(2 * math.pi * t)
            for part, t in zip(squared, totals, strict=True)
        ]
        kernel += share * _products(axes)
    return kernel


def _waves(grid: Floats, d: int, cosines: int) -> tuple[Floats, Floats]:
    """Products of cosines of the axes, shape (g, m), and their squared frequencies."""
    orders = np.arange(cosines)
    angles = math.pi * orders[:, None] * grid
    waves = np.cos(angles)
    # Of variance 1 on the lattice.
    waves *= np.where(orders == 0, 1, math.sqrt(2))[:, None]
    pairs = np.stack(np.meshgrid(*[orders] * d, indexing="ij"), axis=-1).reshape(-1, d)
    squares = (pairs**2).sum(axis=1)
    # The constant is left out: it does not change shares.
    pairs = pairs[(squares > 0) & (squares < cosines**2)]
    products = _products([waves[pairs[:, axis]] for axis in range(d)]).T
    return products, math.pi**2 * (pairs**2).sum(axis=1)


def _products(axes: list[Floats]) -> Floats:
    """Outer products of the rows of one or two arrays: shape (n, g) of (n, size) each."""
    if len(axes) == 1:
        return axes[0]
    first, second = axes
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def _quadratics(unit: Floats) -> Floats:
    """Polynomials of degree 1 and 2, uncorrelated and of variance 1 on the lattice."""
    d = unit.shape[1]
    products = [unit[:, i] * unit[:, j] for i in range(d) for j in range(i, d)]
    powers = np.column_stack([unit, *products])
    return np.linalg.qr(powers - powers.mean(axis=0))[0] * math.sqrt(len(unit))


def _shares(logs: Floats) -> Floats:
    masses = np.exp(logs - logs.max())
    return np.asarray(masses / masses.sum())


@dataclass(frozen=True)
class _State:
    """One theta: its log likelihood times prior, the shares of the sites, and the density at the
    reports.
    """

    theta: Floats
    value: float
    shares: Floats
    densities: Floats


def _fitted(lattice: _Lattice, counts: Floats, functions: Floats, near: Fit | None = None) -> Fit:
    """Return the most likely density, by Newton's steps with Levenberg's damping.

    ``near`` is a fit of the same functions at other heights, from which it starts.
    """
    theta = np.zeros(functions.shape[1])
    if near is not None:
        # Nearly the same log density: the other functions are these at other scales.
        m = len(near.theta)
        lengths = np.sqrt((functions[:, :m] ** 2).sum(axis=0))
        theta[:m] = near.theta * np.sqrt((near.functions**2).sum(axis=0)) / lengths
    state = _state(lattice, counts, functions, theta)
    slope, curve = _curved(lattice, counts, functions, state)
    damping = 1e-3
    for _ in range(15):
        gain = -math.inf
        while gain < 0 and damping < 1e9:
            step = _newton_step(slope, curve, damping)
            tried = _state(lattice, counts, functions, state.theta + step)
            gain = tried.value - state.value
            damping *= 0.25 if gain >= 0 else 8
        if gain < 0:
            break
        state = tried
        slope, curve = _curved(lattice, counts, functions, state)
        # Nats: what is left to gain is less than that.
        if gain < 0.05:
            break
    root = np.asarray(np.linalg.cholesky(curve), dtype=np.float64)
    # The powers of 2 pi of the integral and of the standard normal prior cancel.
    evidence = state.value - float(np.log(np.diag(root)).sum())
    return Fit(functions, state.theta, root, evidence)


def _newton_step(slope: Floats, curve: Floats, damping: float) -> Floats:
    from scipy.linalg import cho_factor, cho_solve

    damped = curve + damping * np.diag(np.diag(curve))
    factor = cho_factor(damped, lower=True, check_finite=False)
    return np.asarray(cho_solve(factor, slope, check_finite=False))


def _state(lattice: _Lattice, counts: Floats, functions: Floats, theta: Floats) -> _State:
    shares = _shares(functions @ theta)
    densities = lattice.floor + lattice.kernel @ shares
    value = float(counts @ np.log(densities)) - 0.5 * float(theta @ theta)
    return _State(theta, value, shares, densities)


def _curved(
    lattice: _Lattice, counts: Floats, functions: Floats, state: _State
) -> tuple[Floats, Floats]:
    shares = state.shares
    pull = shares * (lattice.kernel.T @ (counts / state.densities))
    slope = functions.T @ (pull - shares * pull.sum()) - state.theta
    moved = (shares[:, None] * (functions - shares @ functions)).astype(np.float32)
    weights = (np.sqrt(counts) / state.densities).astype(np.float32)
    scores = (lattice.rounded @ moved) * weights[:, None]
    # In doubles: otherwise the rounding of a million reports outweighs the prior, and the sum is no
    # precision any more.
    exact = scores.astype(np.float64)
    return slope, exact.T @ exact + np.eye(len(state.theta))
