"""From reports to clusters: k-means through the noise, whose law the server knows exactly.

k-means run on reports finds the noise: uniform background and far-flung reports pull the centres
apart. Here laws of the points are fitted to reports through the known noise. The centres are those
of k-means on what is known of the points: on an average over the laws that may be true, which has
the least expected sum of squares.
In one and two dimensions there are two kinds of law: a density of any shape on a lattice
(``density``), and k normal clusters (``normal_clusters``), which see what is finer than the
lattice. Each counts by its evidence. In more dimensions there are normal clusters only.
Where reports say little (``says_much``) there are draws from the ``posterior`` instead, or
centres that are spread evenly.

It sees reports only, so it is post-processing: it costs nothing and can be run again. Intervals
come from the same laws, carried through the k-means step; they presume that one of them is about
true.

*Do reports say enough to place clusters* (``says_much``), and where do centres lie that no report
places?

Fits by maximum likelihood presume that reports say much. With little signal their clusters are
noise, and centres that are spread evenly over the cube, without data, have a smaller sum of
squares. So the likelihood of the fit is compared with that of even points. If it is not far beyond
what noise alone reaches, draws from the ``posterior`` take the place of the fit. If the posterior
does not promise much more than even centres, these are taken.

*Do reports look like those of k normal clusters* (``looks_normal``)? If not, how far are the
centres off?

*The test.* Reports are simulated from the fitted clusters through the law of the noise, and
compared with the real ones: for each cluster, the reports nearest to it are cut into classes of
equal expected size along each axis, and by their distance, and a chi-square of two samples is taken
of each cut. Where the clusters are normal, the least of these probabilities, times their number
(Bonferroni), is at most ``RARE`` with that probability. Noise that is wider than the clusters hides
their shape from the test, and from the decoder as well.

*The remedy.* Where the test refuses, twice as many clusters are fitted, which can take the shape of
a cluster that is not normal. How far k-means on these lies from k-means on the others is how far
the presumption has moved the centres: an offset of unknown sign, whose square is added to the
variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sfumato.basics import whole
from sfumato.basics.kmeans import assign, kmeans, single_thread, squared_distances, sse
from sfumato.errors import UsageError, shown
from sfumato.local.bpm import BPM
from sfumato.local.constants import Floats
from sfumato.local.density import Density, explore
from sfumato.local.mechanism import Mechanism, read_array
from sfumato.local.normal_clusters import (
    SOME,
    Clusters,
    NoiseLaw,
    NormalClusters,
    drawn,
    even_density,
    evidence,
    fit,
    fit_from,
    likelihood,
    noise_law,
    scored,
)
from sfumato.local.posterior import Posterior, sample

# --- little signal --------------------------------------------------------------------------------


def says_much(reports: Floats, fitted: NormalClusters, law: NoiseLaw) -> bool:
    """Whether reports are so much likelier by the fitted clusters than by even points that noise
    cannot be the reason.
    """
    # Nats that no noise reaches: twice the log of a likelihood ratio has a mean of one for each
    # parameter.
    enough = 20.0 + 3.0 * len(fitted.vector)
    # Most often 20,000 of many reports say enough, and the rest need not be looked at.
    step = max(1, len(reports) // 20_000)
    if step > 1 and _gain(reports[::step], fitted, law) > enough:
        return True
    return _gain(reports, fitted, law) > enough


def _gain(reports: Floats, fitted: NormalClusters, law: NoiseLaw) -> float:
    """Nats by which the fitted clusters explain reports better than even points."""
    mean, _ = likelihood(fitted.vector, fitted.k, reports, np.ones(len(reports)), law)
    even = np.log(np.maximum(even_density(reports, law), np.finfo(float).tiny))
    return len(reports) * mean - float(even.sum())


def shows_structure(posterior: Posterior, points: Floats, centers: Floats) -> bool:
    """Whether to believe centres, which are the best for points of the posterior."""
    # How many times smaller than that of even centres the expected sum of squares must be: from ten
    # nats of evidence on, a smaller promise is enough. Of centres fitted to noise the posterior
    # promises more than it keeps: it knows the mean of all points long before it knows any cluster.
    least = 1.5 if posterior.evidence < 10.0 else 1.25
    even = spread_evenly(posterior.k, points.shape[1])
    return sse(points, even) >= least * sse(points, centers)


@lru_cache(maxsize=32)
def spread_evenly(k: int, d: int) -> Floats:
    """Centres of k-means on even points of the unit cube: float64 ndarray of shape (k, d).

    Several mirror images are as good. Of these, the one is taken whose farthest centres lie at the
    upper ends of the axes.
    """
    from scipy.stats import qmc

    size = max(2**12, 1 << (16 * k - 1).bit_length())
    even = np.random.default_rng(0).random((size, d))
    if d <= qmc.Sobol.MAXDIM:
        # Sobol points without scrambling lie at the lower corners of their cells.
        even = qmc.Sobol(d, scramble=False).random(size) + 0.5 / size
    centers = kmeans(even, k, seed=0, tries=8)
    skewed = ((centers - 0.5) ** 3).sum(axis=0)
    spread = np.where(skewed < 0, 1 - centers, centers)
    # The cache hands the same array to every caller, so nobody may write to it.
    spread.flags.writeable = False
    return spread


# --- clusters that are not normal -----------------------------------------------------------------

# Of a cut.
CLASSES = 8

# Reports in a class, at least.
FEWEST = 20

SIMULATED = 200_000
RARE = 1e-3


def looks_normal(
    reports: Floats,
    fitted: NormalClusters | Posterior,
    mechanism: Mechanism,
    rng: np.random.Generator,
) -> bool:
    """Whether the reports may come from the fitted clusters."""
    means = fitted.clusters.means
    simulated = _simulated(fitted, mechanism, rng)
    nearest = assign(reports, means)
    nearest_simulated = assign(simulated, means)
    least = 1.0
    cuts = 0
    for j, mean in enumerate(means):
        here = reports[nearest == j] - mean
        there = simulated[nearest_simulated == j] - mean
        if len(here) < CLASSES * FEWEST or len(there) < CLASSES * FEWEST:
            continue
        # Each coordinate is cut, and the distance.
        cuts_here, cuts_there = (
            [*away.T, np.sqrt((away**2).sum(axis=1))] for away in (here, there)
        )
        for seen, expected in zip(cuts_here, cuts_there, strict=True):
            least = min(least, _probability(seen, expected))
            cuts += 1
    return least * max(cuts, 1) > RARE


def _simulated(
    fitted: NormalClusters | Posterior, mechanism: Mechanism, rng: np.random.Generator
) -> Floats:
    """Reports of points drawn from the clusters, by the exact law of the noise: float64 of shape
    (SIMULATED, d).
    """
    from scipy.special import gammainc, gammaincinv

    d = mechanism.dimension
    uniforms = rng.random(SIMULATED)
    points = drawn(fitted.vector, fitted.k, uniforms, rng.normal(size=(SIMULATED, d)))
    directions = rng.normal(size=points.shape)
    directions /= np.sqrt((directions**2).sum(axis=1, keepdims=True))
    k = float(mechanism.epsilon)
    if isinstance(mechanism, BPM):
        # A uniform point of a ball whose radius is Gamma(d + 1), truncated to L: see ``local.bpm``.
        within = gammainc(d + 1, k * float(mechanism.L))
        heights = within * rng.random(SIMULATED)
        radii = gammaincinv(d + 1, heights) / k
        distances = radii * rng.random(SIMULATED) ** (1 / d)
    else:
        distances = rng.gamma(d, 1 / k, SIMULATED)
    reports = np.asarray(points + directions * distances[:, None])
    silent = rng.random(SIMULATED) < mechanism.background_probability
    if silent.any() and isinstance(mechanism, BPM):
        radius = float(mechanism.L)
        reports[silent] = rng.uniform(-radius, 1 + radius, (int(silent.sum()), d))
    return reports


def _probability(seen: Floats, expected: Floats) -> float:
    """Of so large a chi-square, if both samples have one law; the second cuts the classes."""
    from scipy.special import chdtrc

    edges = np.quantile(expected, np.linspace(0, 1, CLASSES + 1)[1:-1])
    counts = np.bincount(np.searchsorted(edges, seen), minlength=CLASSES)
    other_counts = np.bincount(np.searchsorted(edges, expected), minlength=CLASSES)
    both = counts + other_counts
    # Samples of two sizes: each count is scaled by the root of their quotient.
    scale = math.sqrt(len(expected) / len(seen))
    differences = np.square(counts * scale - other_counts / scale)
    statistic = float((differences[both > 0] / both[both > 0]).sum())
    return float(chdtrc(CLASSES - 1, statistic))


def split(clusters: Clusters) -> Floats:
    """Two means for each cluster, on either side of its own: float64 ndarray of shape (2k, d)."""
    k, d = clusters.means.shape
    step = np.zeros((k, d))
    # Along one axis each, by turns.
    step[np.arange(k), np.arange(k) % d] = np.sqrt(clusters.variances)
    both = np.concatenate([clusters.means - step, clusters.means + step])
    return np.asarray(np.clip(both, 0.02, 0.98))


# --- the decoder ----------------------------------------------------------------------------------

# Points that are drawn from the laws.
SYNTHETIC = 24_000

# Laws that are drawn for errors.
REPEATS = 48

RESTARTS = 6
# Parts of the drawn points whose spread shows their own error.
BATCHES = 8

# Degrees of freedom of a standard error.
#
# It is made of 48 laws, of which a median distance uses 37% (its efficiency for normal errors).
FREEDOM = 17


# Standard deviations of the noise: no honest report lies farther from the cube, and a false one
# must not count for more.
FAR = 40

# Cells in the noise's standard deviation, in the cube.
FINE = 8

# The lattice of densities sees no finer.
FINEST = 1 / 64


@dataclass(frozen=True)
class Decoded:
    """What reports say of k clusters.

    Attributes
    ----------
    centers : float64 ndarray of shape (k, d)
        In the unit cube, by falling weight.
    weights : float64 ndarray of shape (k,)
        Share of the persons nearest to each centre.
    center_errors, weight_errors : float64 ndarray of shapes (k, d) and (k,)
        Standard errors.
    clusters : Clusters
        The normal clusters that were fitted.
    in_model : bool
        Whether the reports look like those of so many normal clusters.
    evident : bool
        Whether the reports show where clusters are. If not, the centres are spread evenly over the
        cube, which is as good a guess as any.
    """

    centers: Floats
    weights: Floats
    center_errors: Floats
    weight_errors: Floats
    clusters: Clusters
    in_model: bool
    evident: bool = True

    def half_widths(self, confidence: float) -> Floats:
        """Of the intervals of the centres, one coordinate at a time: float64 ndarray of shape (k,
        d).

        By Student's law: the standard errors are themselves known from a few laws only.
        """
        from scipy.special import stdtrit

        return float(stdtrit(FREEDOM, (1 + confidence) / 2)) * self.center_errors


def check_clusters(n_clusters: object, reports: int) -> int:
    """Read the number of clusters."""
    k = whole(
        n_clusters,
        "n_clusters",
        1,
        obstacle="it is a whole number of at least 1",
        remedy="Give the number of clusters",
    )
    if k > reports:
        raise UsageError(
            f"n_clusters = {shown(k)} of {reports:,} reports",
            "there are more clusters than reports",
            "Ask for fewer clusters",
        )
    return k


def decode(
    reports: Floats, mechanism: Mechanism, n_clusters: int, rng: np.random.Generator
) -> Decoded:
    """Fit clusters to reports of one mechanism.

    Parameters
    ----------
    reports : float64 ndarray of shape (n, d)
    mechanism : BPM or MultivariateLaplace
        The one that the reports were drawn by.
    n_clusters : int
        At most n.
    rng : numpy Generator
        For starts and drawn points: the same reports and seed give the same clusters.

    Raises
    ------
    UsageError
        If there are more clusters than reports, or reports have another shape.
    """
    points = np.atleast_2d(read_array(reports, mechanism.dimension, "reports"))
    k = check_clusters(n_clusters, len(points))
    law = noise_law(mechanism)
    # With a background the mechanism is bounded, and so are its reports.
    if not law.background:
        mean_variance = float(law.shares @ law.variances)
        far = FAR * math.sqrt(mean_variance)
        points = np.clip(points, -far, 1 + far)
    with single_thread():
        known = _known(points, k, law, rng)
        decoded = _centred(known, rng)
        if not decoded.evident:
            return decoded
        if looks_normal(points, known.normals, mechanism, rng):
            return decoded
        return _widened(decoded, points, known, law, rng)


@dataclass(frozen=True)
class _Known:
    """What is known of the points: normal clusters, with their probability against a density, if
    there is one.
    """

    normals: NormalClusters | Posterior
    density: Density | None
    share: float


def _known(reports: Floats, k: int, law: NoiseLaw, rng: np.random.Generator) -> _Known:
    if reports.shape[1] > 2:
        known = _Known(fit(reports, k, law, rng), None, 1.0)
        return _unless_little(known, reports, law, rng)
    mean_variance = float(law.shares @ law.variances)
    width = math.sqrt(mean_variance) / FINE
    fine = _gathered(reports, width)
    coarse = fine if width > FINEST else _gathered(reports, FINEST)
    density = explore(*coarse, law)
    points, weights = _spread_out(density, density.shares)
    means = kmeans(points, k, weights=weights, seed=rng, tries=RESTARTS)
    normals = fit_from(means, *fine, law)
    # Ten nats less likely it is beforehand that points are exactly k normal clusters than that they
    # are not. Both evidences are approximate: a difference of five multiplies the odds by e.
    log_odds = (evidence(normals, *coarse, law) - density.evidence - 10.0) / 5.0
    known = _Known(normals, density, 1 / (1 + math.exp(-min(max(log_odds, -50.0), 50.0))))
    return _unless_little(known, reports, law, rng)


def _unless_little(
    known: _Known, reports: Floats, law: NoiseLaw, rng: np.random.Generator
) -> _Known:
    """Return what is known, or draws from the posterior where reports say little.

    The reports are taken one by one: cells, however fine, are off by some nats in 10^5 reports.
    """
    assert isinstance(known.normals, NormalClusters)
    if says_much(reports, known.normals, law):
        return known
    posterior = sample(reports, known.normals.k, law, rng)
    # From 30 nats of evidence on maximum likelihood is as good as the posterior.
    return known if posterior.evidence > 30.0 else _Known(posterior, None, 1.0)


def _gathered(reports: Floats, width: float) -> tuple[Floats, Floats]:
    """Means and counts of cells much narrower than the noise, which say as much as the reports.

    About the cube, where the density of reports is smooth, cells are wider: a third of the noise's
    standard deviation.
    """
    near = ((reports > -FINE * width) & (reports < 1 + FINE * width)).all(axis=1)
    widths = np.where(near, width, width * FINE / 3)[:, None]
    cells = np.floor(reports / widths).astype(np.int64)
    cells -= cells.min(axis=0)
    flat = cells[:, 0]
    if reports.shape[1] == 2:
        flat = flat * (cells[:, 1].max() + 1) + cells[:, 1]
    # A narrow and a wide cell of the same number are two.
    _, index, counts = np.unique(2 * flat + near, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(index, axis) for axis in reports.T], axis=1) / counts[:, None]
    return means, counts.astype(np.float64)


def _spread_out(density: Density, shares: Floats) -> tuple[Floats, Floats]:
    """Points of a density: 2^d in each cell of the lattice that holds anything."""
    d = density.sites.shape[1]
    kept = shares > 1e-9
    quarters = np.stack(np.meshgrid(*[[-0.25, 0.25]] * d, indexing="ij"), axis=-1)
    corners = quarters.reshape(-1, 1, d) * density.side
    points = (density.sites[kept] + corners).reshape(-1, d)
    weights = np.tile(shares[kept], 2**d)
    return points, weights / weights.sum()


def _centred(known: _Known, rng: np.random.Generator) -> Decoded:
    """k-means on points of the laws that may be true, and how far each moves the centres."""
    points, weights = _likely_points(known, rng)
    clusters = known.normals.clusters
    # From the fitted means, and from starts of its own.
    starts: list[tuple[int | Floats, int]] = [(clusters.means, 1), (known.normals.k, RESTARTS)]
    tried = [
        kmeans(points, start, weights=weights, seed=rng, tries=tries, steps=60)
        for start, tries in starts
    ]
    sums = [
        float(weights @ squared_distances(points, centers_tried).min(axis=1))
        for centers_tried in tried
    ]
    centers = tried[int(np.argmin(sums))]
    evident = not isinstance(known.normals, Posterior) or shows_structure(
        known.normals, points, centers
    )
    if not evident:
        centers = spread_evenly(*centers.shape)
    _, shares = _settled(points, weights, centers)
    center_errors, weight_errors = _errors(known, centers, rng)
    # The two errors are independent, so their squares add up.
    center_errors = np.hypot(center_errors, _drawing_error(points, weights, centers, rng))
    order = np.argsort(-shares, kind="stable")
    return Decoded(
        centers[order],
        shares[order],
        center_errors[order],
        weight_errors[order],
        clusters,
        in_model=True,
        evident=evident,
    )


def _likely_points(known: _Known, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Points of the laws that may be true, and weights: each kind of law by its probability."""
    k = known.normals.k
    d = known.normals.clusters.means.shape[1]
    laws = known.normals.laws
    pairs = math.ceil(known.share * SYNTHETIC / laws / 2)
    # Half of the parameters' standard errors: their normal approximation is too wide where reports
    # say little.
    vectors = known.normals.others(laws, rng, 0.5)
    points = np.concatenate([drawn(vector, k, *_balanced(pairs, d, rng)) for vector in vectors])
    weights = np.full(len(points), known.share / max(len(points), 1))
    if known.density is not None:
        more, shares = _spread_out(known.density, known.density.shares)
        points = np.concatenate([points, more])
        weights = np.concatenate([weights, (1 - known.share) * shares])
    return points[weights > 0], weights[weights > 0]


def _drawing_error(
    points: Floats, weights: Floats, centers: Floats, rng: np.random.Generator
) -> Floats:
    """Standard error of centres from the points that happened to be drawn, by the spread of parts
    of them: shape (k, d).
    """
    part = rng.integers(BATCHES, size=len(points))
    near = np.array(
        [_settled(points[part == i], weights[part == i], centers)[0] for i in range(BATCHES)]
    )
    return np.asarray(near.std(axis=0, ddof=1) / math.sqrt(BATCHES))


def _widened(
    decoded: Decoded, reports: Floats, known: _Known, law: NoiseLaw, rng: np.random.Generator
) -> Decoded:
    """The same centres, with errors that hold what more clusters of normal shape say of them."""
    chosen = rng.choice(len(reports), min(SOME, len(reports)), replace=False)
    everyone = np.ones(len(reports))
    finer = fit_from(split(known.normals.clusters), reports[chosen], everyone[chosen], law)
    finer = scored(finer.vector, reports, everyone, law)
    uniforms, normals = _balanced(SYNTHETIC // 8, reports.shape[1], rng)
    even = np.ones(len(normals)) / len(normals)

    def settled(vector: Floats) -> Floats:
        points = drawn(vector, finer.k, uniforms, normals)
        return _settled(points, even, decoded.centers)[0]

    others = np.array([settled(vector) for vector in finer.others(REPEATS, rng)])
    own = np.maximum(decoded.center_errors, _deviation(others))
    errors = np.hypot(own, settled(finer.vector) - decoded.centers)
    return replace(decoded, center_errors=np.asarray(errors), in_model=False)


def _balanced(pairs: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Uniforms, evenly spread, and normals for ``drawn``, in pairs that differ in the sign of the
    normals alone.

    So the drawn points of a cluster lie about its mean exactly: with independent ones the centres
    would have an error of their own, which is as large as that of 10^5 reports.
    """
    uniforms = (rng.permutation(pairs) + rng.random(pairs)) / max(pairs, 1)
    normals = rng.normal(size=(pairs, d))
    return np.tile(uniforms, 2), np.concatenate([normals, -normals])


def _errors(known: _Known, centers: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Standard errors of centres and weights, by laws that may be true, of each kind in proportion
    to its odds.
    """
    k, d = centers.shape
    count = REPEATS if known.density is None else round(known.share * REPEATS)
    uniforms, normals = _balanced(SYNTHETIC // 16, d, rng)
    even = np.full(len(uniforms), 1 / len(uniforms))
    laws = [
        (drawn(vector, k, uniforms, normals), even) for vector in known.normals.others(count, rng)
    ]
    if known.density is not None:
        laws += [
            _spread_out(known.density, known.density.draw(rng)) for _ in range(REPEATS - count)
        ]
    near = [_settled(points, weights, centers) for points, weights in laws]
    center_errors = _deviation(np.array([moved for moved, _ in near]))
    if isinstance(known.normals, Posterior):
        # The best centres for all laws together are not the middle of those of each.
        offset = np.median([moved for moved, _ in near], axis=0) - centers
        center_errors = np.hypot(center_errors, offset)
    return center_errors, _deviation(np.array([shares for _, shares in near]))


def _deviation(values: Floats) -> Floats:
    """Standard deviation by the median distance from the median: a law that settles elsewhere does
    not count.
    """
    distances = np.abs(values - np.median(values, axis=0))
    return 1.4826 * np.median(distances, axis=0)


def _settled(points: Floats, weights: Floats, centers: Floats) -> tuple[Floats, Floats]:
    """Centres after a few more steps, and the share of the points nearest to each."""
    moved = kmeans(points, centers, weights=weights, steps=20)
    sums = np.bincount(assign(points, moved), weights, minlength=len(moved))
    return moved, sums / weights.sum()
