"""From reports to clusters: k-means as if the noise were not there, because the server knows its
law exactly.

k-means run on reports finds the noise: uniform background and far-flung reports pull the centres
apart. Here laws of the points are fitted to reports through the known noise, and the centres are
those of k-means on what is known of the points: on an average over the laws that may be true, which
has the least expected sum of squares.
In one and two dimensions there are two kinds of law: a density of any shape on a lattice
(``density``), and k normal clusters (``gaussians``), which see what is finer than the lattice. Each
counts by its evidence. In more dimensions there are normal clusters only.

It sees reports only, so it is post-processing: it costs nothing and can be run again. Intervals
come from the same laws, carried through the k-means step; they presume that one of them is about
true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import UsageError, shown
from sfumato.local.decoding.density import Density, explore
from sfumato.local.decoding.gaussians import SOME, Normals, drawn, evidence, fit, fit_from, scored
from sfumato.local.decoding.misfit import looks_normal, split
from sfumato.local.decoding.mixture import Clusters
from sfumato.local.decoding.noiselaw import NoiseLaw, noise_law
from sfumato.local.mechanism import Mechanism, read_array
from sfumato.local.sampling.floats import Floats
from sfumato.plain_kmeans import assign, kmeans, single_thread, squared_distances

SYNTHETIC, REPEATS, RESTARTS = 24_000, 48, 6
BATCHES = 8
FREEDOM = 17
"""Degrees of freedom of a standard error: 48 laws, of which a median distance uses 37 % (its
efficiency for normal errors).
"""
DOUBT = 0.5  # of the parameters' standard errors: their normal approximation is too wide where reports say little
FAR = 40  # standard deviations of the noise: no honest report lies farther from the cube, and a false one must not count for more
EXACTLY = 10.0  # nats: how much less likely it is beforehand that points are exactly k normal clusters than that they are not
NATS = 5.0  # both evidences are approximate: a difference of this many multiplies the odds by e
FINE, COARSE, FINEST = (
    8,
    3,
    1 / 64,
)  # cells in the noise's standard deviation, in the cube and out of it; the lattice sees no finer


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
    """

    centers: Floats
    weights: Floats
    center_errors: Floats
    weight_errors: Floats
    clusters: Clusters
    in_model: bool

    def half_widths(self, confidence: float) -> Floats:
        """Of the intervals of the centres, one coordinate at a time: float64 ndarray of shape (k,
        d).

        By Student's law: the standard errors are themselves known from a few laws only.
        """
        from scipy.special import stdtrit

        return np.asarray(float(stdtrit(FREEDOM, (1 + confidence) / 2)) * self.center_errors)


def check_clusters(n_clusters: object, reports: int) -> int:
    """Read the number of clusters."""
    if (
        isinstance(n_clusters, bool)
        or not isinstance(n_clusters, int | np.integer)
        or n_clusters < 1
    ):
        raise UsageError(
            f"n_clusters = {shown(n_clusters)}",
            "it is a whole number from 1 on",
            "Give the number of clusters",
        )
    if n_clusters > reports:
        raise UsageError(
            f"n_clusters = {shown(n_clusters)} of {reports:,} reports",
            "there are more clusters than reports",
            "Ask for fewer clusters",
        )
    return int(n_clusters)


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
    found = np.atleast_2d(read_array(reports, mechanism.dimension, "reports"))
    k, law = check_clusters(n_clusters, len(found)), noise_law(mechanism)
    if not law.background:
        far = FAR * math.sqrt(float(law.shares @ law.variances))
        found = np.clip(found, -far, 1 + far)
    with single_thread():
        known = _known(found, k, law, rng)
        decoded = _centred(known, rng)
        if looks_normal(found, known.normals, mechanism, rng):
            return decoded
        return _doubted(decoded, found, known, law, rng)


@dataclass(frozen=True)
class _Known:
    """What is known of the points: normal clusters, with their odds against a density, if there is
    one.
    """

    normals: Normals
    density: Density | None
    share: float


def _known(reports: Floats, k: int, law: NoiseLaw, rng: np.random.Generator) -> _Known:
    if reports.shape[1] > 2:
        return _Known(fit(reports, k, law, rng), None, 1.0)
    width = math.sqrt(float(law.shares @ law.variances)) / FINE
    fine = _gathered(reports, width)
    coarse = fine if width > FINEST else _gathered(reports, FINEST)
    density = explore(*coarse, law)
    points, weights = _spread_out(density, density.shares)
    normals = fit_from(kmeans(points, k, weights=weights, seed=rng, tries=RESTARTS), *fine, law)
    lead = (evidence(normals, *coarse, law) - density.evidence - EXACTLY) / NATS
    return _Known(normals, density, 1 / (1 + math.exp(-min(max(lead, -50.0), 50.0))))


def _gathered(reports: Floats, width: float) -> tuple[Floats, Floats]:
    """Means and counts of cells much narrower than the noise, which tell as much; wider ones about
    the cube, where it is smooth.
    """
    near = ((reports > -FINE * width) & (reports < 1 + FINE * width)).all(axis=1)
    cells = np.floor(reports / np.where(near, width, width * FINE / COARSE)[:, None]).astype(
        np.int64
    )
    cells -= cells.min(axis=0)
    flat = (
        2
        * (
            cells @ np.append(cells.max(axis=0)[1:] + 1, 1)
            if reports.shape[1] == 2
            else cells[:, 0]
        )
        + near
    )
    _, index, counts = np.unique(flat, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(index, axis) for axis in reports.T], axis=1) / counts[:, None]
    return means, counts.astype(np.float64)


def _spread_out(density: Density, shares: Floats) -> tuple[Floats, Floats]:
    """Points of a density: 2^d in each cell of the lattice that holds anything."""
    d = density.sites.shape[1]
    kept = shares > 1e-9
    corners = (
        np.stack(np.meshgrid(*[[-0.25, 0.25]] * d, indexing="ij"), axis=-1).reshape(-1, 1, d)
        * density.side
    )
    points = (density.sites[kept] + corners).reshape(-1, d)
    weights = np.tile(shares[kept], 2**d)
    return points, weights / weights.sum()


def _centred(known: _Known, rng: np.random.Generator) -> Decoded:
    """k-means on points of the laws that may be true, and how far each of these moves the centres."""
    k, d = known.normals.k, known.normals.clusters.means.shape[1]
    size = math.ceil(known.share * SYNTHETIC / REPEATS / 2)
    doubtful = known.normals.others(REPEATS, rng, DOUBT)
    points = np.concatenate([drawn(each, k, *_balanced(size, d, rng)) for each in doubtful])
    weights = np.full(len(points), known.share / max(len(points), 1))
    if known.density is not None:
        more, shares = _spread_out(known.density, known.density.shares)
        points, weights = (
            np.concatenate([points, more]),
            np.concatenate([weights, (1 - known.share) * shares]),
        )
    points, weights = points[weights > 0], weights[weights > 0]
    starts: list[tuple[int | Floats, int]] = [(known.normals.clusters.means, 1), (k, RESTARTS)]
    tried = [
        kmeans(points, start, weights=weights, seed=rng, tries=tries, steps=60)
        for start, tries in starts
    ]
    centers = min(
        tried, key=lambda found: float(weights @ squared_distances(points, found).min(axis=1))
    )
    shares = _settled(points, weights, centers)[1]
    errors = _errors(known, centers, rng)
    errors[0] = np.hypot(errors[0], _drawing_error(points, weights, centers, rng))
    order = np.argsort(-shares, kind="stable")
    return Decoded(
        centers[order],
        shares[order],
        errors[0][order],
        errors[1][order],
        known.normals.clusters,
        in_model=True,
    )


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


def _doubted(
    decoded: Decoded, reports: Floats, known: _Known, law: NoiseLaw, rng: np.random.Generator
) -> Decoded:
    """The same centres, with errors that hold what more clusters of normal shape say of them."""
    chosen = rng.choice(len(reports), min(SOME, len(reports)), replace=False)
    everyone = np.ones(len(reports))
    finer = fit_from(split(known.normals.clusters), reports[chosen], everyone[chosen], law)
    finer = scored(finer.vector, reports, everyone, law)
    places, noise = _balanced(SYNTHETIC // 8, reports.shape[1], rng)
    laws = [finer.vector, *finer.others(REPEATS, rng)]
    near = np.array(
        [
            _settled(
                drawn(each, finer.k, places, noise),
                np.ones(len(noise)) / len(noise),
                decoded.centers,
            )[0]
            for each in laws
        ]
    )
    own = np.maximum(decoded.center_errors, _spread(near[1:]))
    errors = np.hypot(own, near[0] - decoded.centers)
    return replace(decoded, center_errors=np.asarray(errors), in_model=False)


def _balanced(pairs: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Uniforms, evenly spread, and normals for ``drawn``, in pairs that differ in the sign of the
    normals alone.

    So the drawn points of a cluster lie about its mean exactly: with independent ones the centres
    would have an error of their own, which is as large as that of 10^5 reports.
    """
    places = (rng.permutation(pairs) + rng.random(pairs)) / max(pairs, 1)
    noise = rng.normal(size=(pairs, d))
    return np.tile(places, 2), np.concatenate([noise, -noise])


def _errors(known: _Known, centers: Floats, rng: np.random.Generator) -> list[Floats]:
    """Standard errors of centres and weights, by laws that may be true, of each kind in proportion
    to its odds.
    """
    k, d = centers.shape
    count = REPEATS if known.density is None else round(known.share * REPEATS)
    places, noise = _balanced(SYNTHETIC // 16, d, rng)
    laws = [
        (drawn(each, k, places, noise), np.full(len(places), 1 / len(places)))
        for each in known.normals.others(count, rng)
    ]
    if known.density is not None:
        laws += [
            _spread_out(known.density, known.density.draw(rng)) for _ in range(REPEATS - count)
        ]
    near = [_settled(points, weights, centers) for points, weights in laws]
    return [_spread(np.array([found[part] for found in near])) for part in (0, 1)]


def _spread(values: Floats) -> Floats:
    """Standard deviation by the median distance from the median: a law that settles elsewhere does
    not count.
    """
    return np.asarray(1.4826 * np.median(np.abs(values - np.median(values, axis=0)), axis=0))


def _settled(points: Floats, weights: Floats, centers: Floats) -> tuple[Floats, Floats]:
    """Centres after a few more steps, and the share of the points nearest to each."""
    moved = kmeans(points, centers, weights=weights, steps=20)
    return moved, np.bincount(assign(points, moved), weights, minlength=len(moved)) / weights.sum()
