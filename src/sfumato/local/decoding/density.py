"""What reports say of a density of any shape: a smooth one on a lattice, as rough as the reports
themselves bear out.

The log density is a quadratic, which every normal law is, plus a Gaussian process in cosines with
Matern's spectrum. First the quadratic alone is fitted, on the unit cube; then both, on a box about
what it found. Each roughness has an evidence (Laplace's approximation of the marginal likelihood),
and the density is the average of the most likely ones, weighed by it: where noise hides the details
there are none, where it does not they come out. No parameter is set by hand for data or noise.

The expected sum of squares is linear in the density, so k-means on the average density has the
least expected sum. A cell of the lattice is a uniform law; its second moment is added to the noise,
which makes the lattice exact to second order.
Source: logistic Gaussian processes: Leonard 1978, Tokdar 2007; evidence: MacKay 1992; spectra:
Matern 1960.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Array
from sfumato.local.decoding.noiselaw import NoiseLaw
from sfumato.local.sampling.floats import Floats

LENGTHS, HEIGHTS = (
    (0.4, 0.15, 0.05),
    (1.0, 2.5, 6.0),
)  # of the process: how far and how high its hills are
FLAT = 0.3  # the height below which the process counts as none
USUAL, FACTOR = 1.0, 0.7  # heights are thought to be log-normal about the first
SMOOTHNESS = 2.0
BROAD, NARROW = (
    30.0,
    10.0,
)  # standard deviations of the quadratic's coefficients on the cube and on the box
REACH, LEAST = 4.0, 0.1  # the box: so many standard deviations to each side, and its least side
FEWEST, MOST = 4, {1: 40, 2: 14}  # cosines on each axis, by dimension
STEPS, RESTED = 15, 0.05  # of Newton; nats below which it rests
_NEVER = 1e-30  # keeps the logarithm of a report that no point explains, in single precision too


@dataclass(frozen=True)
class Fit:
    """The most likely density for one roughness: theta standard normal beforehand, with log density
    ``functions @ theta``.

    ``root`` is Cholesky's of the precision of theta afterwards, ``evidence`` the log of the
    marginal likelihood.
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
        Log likelihood of the reports, averaged over all that was thought possible beforehand.
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
    """Cells of a box and how likely each makes each report: sites (g, d), kernel (n, g), quadratics
    (g, q), cosines (g, m).

    ``rounded`` is the kernel in single precision, which is enough for curvature.
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
        d = self.sites.shape[1]
        spectrum = (1 + self.frequencies * length**2 / (2 * SMOOTHNESS)) ** -(SMOOTHNESS + d / 2)
        rough = (
            self.cosines * (height * np.sqrt(spectrum / spectrum.sum()))
            if height > 0
            else self.cosines[:, :0]
        )
        return np.hstack([broad * self.quadratics, rough])


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
    first = _lattice(points, law, np.tile([0.0, 1.0], (d, 1)), FEWEST)
    normal = _fitted(first, counts, first.functions(1.0, 0.0, BROAD)).shares()
    lattice = _lattice(
        points, law, box := _box(first.sites, normal), _cosines(box, float(counts.sum()), law)
    )
    fits = [_fitted(lattice, counts, lattice.functions(1.0, 0.0, NARROW))]
    thought = [-0.5 * (math.log(FLAT / USUAL) / FACTOR) ** 2]
    for length in LENGTHS:
        fit = fits[0]
        for height in HEIGHTS:
            fit = _fitted(lattice, counts, lattice.functions(length, height, NARROW), fit)
            fits.append(fit)
            thought.append(-0.5 * (math.log(height / USUAL) / FACTOR) ** 2)
    logs = np.array([fit.evidence for fit in fits]) + thought
    weights = np.exp(logs - logs.max())
    evidence = float(logs.max()) + math.log(weights.sum() / np.exp(thought).sum())
    weights /= weights.sum()
    shares = np.sum(
        [weight * fit.shares() for weight, fit in zip(weights, fits, strict=True)], axis=0
    )
    return Density(lattice.sites, lattice.side, shares, fits, weights, evidence)


def _box(sites: Floats, shares: Floats) -> Floats:
    """Where nearly all of a density lies, by its moments: shape (d, 2), inside the unit cube."""
    mean = shares @ sites
    reach = np.maximum(REACH * np.sqrt(shares @ (sites - mean) ** 2), LEAST / 2)
    low = np.clip(mean - reach, 0, 1 - LEAST)
    return np.stack([low, np.clip(mean + reach, low + LEAST, 1)], axis=1)


def _cosines(box: Floats, reports: float, law: NoiseLaw) -> int:
    """Cosines on each axis: up to the frequency at which the noise leaves so many reports nothing
    to say.
    """
    d = len(box)
    scale = float(law.shares @ law.variances) / (d + 1)
    known = (
        math.sqrt(max(reports ** (1 / (d + 1)) - 1, 0) / scale)
        * float((box[:, 1] - box[:, 0]).max())
        / math.pi
    )
    return int(np.clip(math.ceil(known), FEWEST, MOST[d]))


def _lattice(points: Floats, law: NoiseLaw, box: Floats, cosines: int) -> _Lattice:
    d, size = len(box), max(20, 2 * cosines + 2)
    grid = (np.arange(size) + 0.5) / size
    side = (box[:, 1] - box[:, 0]) / size
    apart = [
        (points[:, [axis]] - (box[axis, 0] + side[axis] * size * grid)) ** 2 for axis in range(d)
    ]
    kernel = np.zeros((len(points), size**d))
    for share, variance in zip((1 - law.background) * law.shares, law.variances, strict=True):
        axes = [
            np.exp(-part / (2 * t)) / math.sqrt(2 * math.pi * t)
            for part, t in zip(apart, variance + side**2 / 12, strict=True)
        ]
        kernel += share * _products(axes)
    waves = (
        np.cos(math.pi * np.arange(cosines)[:, None] * grid)
        * np.where(np.arange(cosines) == 0, 1, math.sqrt(2))[:, None]
    )
    orders = np.stack(np.meshgrid(*[np.arange(cosines)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    orders = orders[((orders**2).sum(axis=1) > 0) & ((orders**2).sum(axis=1) < cosines**2)]
    unit = np.stack(np.meshgrid(*[grid] * d, indexing="ij"), axis=-1).reshape(-1, d)
    floor = law.background * math.exp(law.floor) if law.background > 0 else 0.0
    waving = _products([waves[orders[:, axis]] for axis in range(d)]).T
    frequencies = math.pi**2 * (orders**2).sum(axis=1)
    sites, rounded = box[:, 0] + side * size * unit, kernel.astype(np.float32)
    return _Lattice(
        sites, side, kernel, rounded, max(floor, _NEVER), _quadratics(unit), waving, frequencies
    )


def _products(axes: list[Floats]) -> Floats:
    """Outer products of the rows of one or two arrays: shape (n, g) of (n, size) each."""
    return (
        axes[0]
        if len(axes) == 1
        else (axes[0][:, :, None] * axes[1][:, None, :]).reshape(len(axes[0]), -1)
    )


def _quadratics(unit: Floats) -> Floats:
    """Polynomials of degree 1 and 2, uncorrelated and of variance 1 on the lattice."""
    d = unit.shape[1]
    products = [unit[:, i] * unit[:, j] for i in range(d) for j in range(i, d)]
    powers = np.column_stack([unit, *products])
    return np.asarray(np.linalg.qr(powers - powers.mean(axis=0))[0] * math.sqrt(len(unit)))


def _shares(logs: Floats) -> Floats:
    found = np.exp(logs - logs.max())
    return np.asarray(found / found.sum())


def _fitted(lattice: _Lattice, counts: Floats, functions: Floats, near: Fit | None = None) -> Fit:
    """The most likely density, by Newton's steps with Levenberg's damping; from a fit of the same
    functions at other heights.
    """
    from scipy.linalg import cho_factor, cho_solve

    theta, damping = _restarted(functions, near), 1e-3
    value, shares, law = _likelihood(lattice, counts, functions, theta)
    slope, curve = _curved(lattice, counts, functions, theta, shares, law)
    for _ in range(STEPS):
        before, gain = np.diag(curve).copy(), -math.inf
        while gain < 0 and damping < 1e9:
            step = cho_solve(
                cho_factor(curve + damping * np.diag(before), lower=True, check_finite=False),
                slope,
                check_finite=False,
            )
            found = _likelihood(lattice, counts, functions, theta + step)
            gain, damping = found[0] - value, damping * (0.25 if found[0] >= value else 8)
        if gain < 0:
            break
        theta, (value, shares, law) = theta + step, found
        slope, curve = _curved(lattice, counts, functions, theta, shares, law)
        if gain < RESTED:
            break
    root = np.asarray(np.linalg.cholesky(curve), dtype=np.float64)
    return Fit(functions, theta, root, value - float(np.log(np.diag(root)).sum()))


def _restarted(functions: Floats, near: Fit | None) -> Floats:
    """The theta with nearly the same log density, where the other functions are these at other
    scales.
    """
    theta = np.zeros(functions.shape[1])
    if near is not None:
        m = len(near.theta)
        lengths = np.sqrt((functions[:, :m] ** 2).sum(axis=0))
        theta[:m] = near.theta * np.sqrt((near.functions**2).sum(axis=0)) / lengths
    return theta


def _likelihood(
    lattice: _Lattice, counts: Floats, functions: Floats, theta: Floats
) -> tuple[float, Floats, Floats]:
    """The log of likelihood times prior, up to a constant; the shares of the sites, and the density
    at the reports.
    """
    shares = _shares(functions @ theta)
    law = lattice.floor + lattice.kernel @ shares
    return float(counts @ np.log(law)) - 0.5 * float(theta @ theta), shares, law


def _curved(
    lattice: _Lattice, counts: Floats, functions: Floats, theta: Floats, shares: Floats, law: Floats
) -> tuple[Floats, Floats]:
    """The slope at theta, and the precision by outer products of scores."""
    pull = shares * (lattice.kernel.T @ (counts / law))
    slope = functions.T @ (pull - shares * pull.sum()) - theta
    moved = (shares[:, None] * (functions - shares @ functions)).astype(np.float32)
    scores = (lattice.rounded @ moved) * (np.sqrt(counts) / law).astype(np.float32)[:, None]
    exact = scores.astype(
        np.float64
    )  # else rounding of a million reports outweighs the prior, and the sum is no precision any more
    return slope, exact.T @ exact + np.eye(len(theta))
