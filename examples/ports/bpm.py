"""BPM's public code, in its README's words: the Basic Example, the scripts, the tables.

Source: "BPM: Bounded Perturbation Mechanism for Privacy-Preserving K-means Clustering", which
implements Yang, Tjuawinata, Lam, "K-means clustering with local d_chi-privacy".
Run it: python examples/ports/bpm.py
"""

# ruff: noqa: N803, N806 (names of the source)

from __future__ import annotations

import math
import warnings

import numpy as np
from beside import beside, holds
from sklearn.datasets import make_blobs

import sfumato as sf
from sfumato.basics.kmeans import kmeans as plain_kmeans
from sfumato.basics.kmeans import sse
from sfumato.local.clustering import METHODS
from sfumato.local.table import diagnose, sweep

SAMPLES = 10_000
DROPPED = "the source drops a factor exp(-k L) in B_L, so its density jumps at L"
NOT_NAMED = "the source does not name the data of its table; these are of its Basic Example"
MORE_SIGNAL = "the source's reports lie nearer to the points than epsilon allows"
SOURCES_TABLE = (
    (1.0, 0.3, 8.63, 1399),
    (2.0, 0.3, 4.02, 597),
    (4.0, 0.3, 5.03, 772),
    (4.0, 0.5, 1.79, 211),
)
"""epsilon, L, SSE and SSE increase in percent: "Example Results (2D data, 3 clusters)"."""


def basic_example() -> np.ndarray:
    """ "Basic Example", call for call."""
    # Generate data
    X, _ = make_blobs(n_samples=300, n_features=2, centers=3, random_state=42)

    # Normalize to [0,1]^d. The data's own range is not private: for persons, give public bounds.
    X_normalized = np.asarray((X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)))

    # Run private K-means
    kmeans = sf.PrivateKMeans(
        n_clusters=3,
        epsilon=2.0,  # Privacy budget
        L=0.3,  # Threshold distance
        random_state=42,
    )
    kmeans.fit(X_normalized)

    # Compute SSE
    print(f"SSE: {kmeans.compute_sse(X_normalized):.4f}")
    holds("L is the threshold distance", float(kmeans.mechanism_.L) == 0.3)
    holds("the server sees perturbed data only", kmeans.reports_.shape == X_normalized.shape)
    holds("server-side: standard k-means, if asked for", "naive" in METHODS)
    return X_normalized


def mathematical_formulas() -> None:
    """ "Mathematical Formulas", Lemma 4 and Theorem 8, in two dimensions."""
    k, L = 2.0, 0.3
    ball = 2 * math.pi * (1 - math.exp(-k * L) * (1 + k * L)) / k**2
    mu = ball + math.exp(-k * L) * ((1 + 2 * L) ** 2 - math.pi * L**2)
    bpm = sf.BPM(epsilon=2, L="0.3", dimension=2)
    beside("lambda_L = mu_L^(-1)", 1 / mu, math.exp(bpm.log_normalizer))
    beside("p_L = B_L / mu_L", ball / mu, bpm.ball_probability)
    center = np.array([0.5, 0.5])
    for r in (0.0, 0.15, 0.3, 0.45):
        source = math.exp(-k * min(r, L)) / mu
        beside(
            f"f_v(x) at distance {r}", source, float(bpm.density(center, center + np.array([r, 0])))
        )
    others = np.random.default_rng(0).random((200, 2))
    x = np.random.default_rng(1).uniform(-L, 1 + L, (200, 2))
    apart = np.linalg.norm(others - center, axis=1)
    lost = np.abs(bpm.log_density(center, x) - bpm.log_density(others, x))
    holds("Theorem 8: epsilon d_E-privacy when k is epsilon", (lost <= k * apart + 1e-12).all())


def debug_bpm() -> None:
    """``debug_bpm.py``: samples inside the ball, the report space, the density."""
    bpm = sf.BPM(epsilon=2, L="0.3", dimension=2)
    beside("samples expected inside the ball, %", 21.8, 100 * bpm.ball_probability, DROPPED)
    found = diagnose(bpm, SAMPLES)
    beside("samples inside the ball, %", 22.5, round(100 * found.inside, 1), DROPPED)
    # Six standard errors: the sampler is exact, so this fails about twice in 10^9 runs.
    near = abs(found.inside - found.expected) < 6 * found.standard_error
    holds("samples inside the ball are about p_L", near)
    holds("all samples in [-L, 1+L]^d", found.in_space)
    center = np.array([0.5, 0.5])
    at = [
        float(bpm.density(center, center + np.array([r, 0]))) for r in (0, 0.1, 0.2, 0.3, 0.4, 0.5)
    ]
    holds("density decreases up to L, then is constant", at[0] > at[1] > at[2] > at[3])
    holds("constant beyond L", np.allclose(at[3:], at[3]))


def test_bpm(X_normalized: np.ndarray) -> None:
    """``test_bpm.py``: the two-stage sampling of Algorithm 2 stays in the report space."""
    bpm = sf.BPM(epsilon=4, L="0.5", dimension=2)
    for method in ("mixture", "two-stage"):
        reports = bpm.perturb(X_normalized, method=method)
        holds(f"{method}: all reports in R_L", ((reports >= -0.5) & (reports <= 1.5)).all())


def test_optimal_L() -> None:  # noqa: N802
    """``test_optimal_L.py``: "Optimal L depends on epsilon and data dimension"."""
    autos = [sweep(epsilon=epsilon, dimension=2, points=3).auto for epsilon in (1, 2, 4)]
    holds(f"optimal L depends on epsilon: {autos}", autos == sorted(autos, reverse=True))
    deeper = sweep(epsilon=2, dimension=4, points=3).auto
    holds(f"optimal L depends on the dimension: {deeper} in four", deeper > autos[1])


def example_results(X_normalized: np.ndarray) -> None:
    """ "Example Results": SSE over epsilon and L, and its increase."""
    best = sse(X_normalized, plain_kmeans(X_normalized, 3, tries=4))
    beside("Standard (no privacy): SSE", 0.58, round(best, 2), NOT_NAMED)
    for epsilon, L, theirs, increase in SOURCES_TABLE:
        kmeans = sf.PrivateKMeans(
            n_clusters=3, epsilon=epsilon, L=L, random_state=42, method="naive"
        )
        kmeans.fit(X_normalized)
        naive = kmeans.compute_sse(X_normalized)
        kmeans.method = "aware"
        found = kmeans.fit_reports(kmeans.reports_).compute_sse(X_normalized)
        row = f"epsilon {epsilon:g}, L {L:g}"
        beside(f"{row}: SSE", theirs, [round(found, 2)], MORE_SIGNAL)
        beside(f"{row}: SSE increase, %", increase, [round(100 * (found / best - 1))], NOT_NAMED)
        print(f"{row}: standard k-means on our reports has SSE {naive:.2f}")


def key_differences() -> None:
    """ "Key Differences from Traditional Mechanisms", at epsilon 2."""
    for d in (1, 2, 4, 8):
        whole = sf.MultivariateLaplace(epsilon=2, dimension=d)
        # Laplace noise of epsilon / d on each axis has the variance 2 (d / epsilon)^2 there.
        gain = 2 * d**3 / 2**2 / whole.variance
        beside(f"{d} axes: traditional O(d^3) over ours", 2 * d**2 / (d + 1), gain)
    bounded = sf.BPM(epsilon=2, L="auto", dimension=8).variance
    raw = "debiased, a report has d (d + 1) / epsilon^2 and more; O(d) is of reports in a small box"
    beside("variance growth of BPM", "O(d)", f"O(d^2): {bounded:.3g} for d = 8", raw)


def main() -> None:
    """Run the source's scripts in turn."""
    with warnings.catch_warnings():
        # 300 reports are few, and the library warns of it. The source says nothing.
        warnings.simplefilter("ignore", UserWarning)
        X_normalized = basic_example()
        mathematical_formulas()
        debug_bpm()
        test_bpm(X_normalized)
        test_optimal_L()
        example_results(X_normalized)
        key_differences()


if __name__ == "__main__":
    main()
