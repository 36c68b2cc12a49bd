"""The public code of BPM, in its own words and calls, with Sfumato.

Source: "BPM: Bounded Perturbation Mechanism for Privacy-Preserving K-means Clustering", which
implements Yang, Tjuawinata, Lam, "K-means clustering with local d_chi-privacy". Each part below
names the script or the section of its README that it follows. Where our numbers differ from the
source's, the line says why.
"""

# ruff: noqa: N803, N806 (names of the source)

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import make_blobs

import sfumato as sf
from sfumato.local.diagnostics import diagnose, sweep
from sfumato.plain_kmeans import kmeans, sse

REPORTS = 20_000
SOURCES_TABLE = (
    (1.0, 0.3, 8.63, 1399),
    (2.0, 0.3, 4.02, 597),
    (4.0, 0.3, 5.03, 772),
    (4.0, 0.5, 1.79, 211),
)
"""epsilon, L, SSE and SSE increase in percent, as in "Example Results (2D data, 3 clusters)"."""


def blobs() -> np.ndarray:
    """The data of "Basic Example".

    The source scales by the data's own minimum and maximum, which is not private. It is done here
    only to have the same points. For data of persons, give public ``bounds`` to PrivateKMeans.
    """
    X, _ = make_blobs(n_samples=300, n_features=2, centers=3, random_state=42)
    return np.asarray((X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)))


def basic_example(X_normalized: np.ndarray) -> None:
    """ "Basic Example", call for call."""
    kmeans = sf.PrivateKMeans(
        n_clusters=3,
        epsilon=2.0,  # Privacy budget
        L=0.3,  # Threshold distance
        random_state=42,
    )
    kmeans.fit(X_normalized)
    print(f"SSE: {kmeans.compute_sse(X_normalized):.4f}")
    if not kmeans.evident_:
        print("The reports do not show where clusters are: the centres are spread evenly.")


def debug_bpm() -> None:
    """``debug_bpm.py``: samples inside the ball, the report space, and the density."""
    bpm = sf.BPM(epsilon=2, L="0.3", dimension=2)
    print(f"p_L = {100 * bpm.ball_probability:.1f}% (source: 21.8%, which drops exp(-k L) in B_L)")
    print(diagnose(bpm, REPORTS))
    center = np.array([0.5, 0.5])
    distances = (0.0, 0.15, 0.3, 0.45)
    densities = [float(bpm.density(center, center + np.array([r, 0]))) for r in distances]
    print("density at distance", dict(zip(distances, np.round(densities, 3).tolist(), strict=True)))


def test_bpm(X_normalized: np.ndarray) -> None:
    """``test_bpm.py``: the two samplers have one law, and reports stay in [-L, 1 + L]^d."""
    bpm = sf.BPM(epsilon=4, L="0.5", dimension=2)
    for method in ("mixture", "two-stage"):
        reports = bpm.perturb(X_normalized, method=method)
        inside = bool(((reports >= -0.5) & (reports <= 1.5)).all())
        print(f"{method}: all of {len(reports)} reports in the report space: {inside}")


def test_optimal_l() -> None:
    """``test_optimal_L.py``: what L costs, and the L that "auto" takes."""
    for epsilon in (1, 2, 4):
        found = sweep(epsilon=epsilon, dimension=2, points=5)
        worst = found.limit / np.asarray(found.variance)
        shown = ", ".join(f"{L:.3g}: {share:.2g}" for L, share in zip(found.L, worst, strict=True))
        print(f"epsilon {epsilon}: auto L = {found.auto:g}; accuracy kept at L = {shown}")
    print("The least distance of a report, as the paper has it, gives L = 0 at these epsilons.")


def example_results(X_normalized: np.ndarray) -> None:
    """ "Example Results": SSE over epsilon and L, beside the source's."""
    best = sse(X_normalized, kmeans(X_normalized, 3, tries=4))
    print("epsilon  L    source SSE  increase   our SSE  increase   k-means on the reports")
    for epsilon, L, theirs, increase in SOURCES_TABLE:
        ours = sf.PrivateKMeans(3, epsilon=epsilon, L=L, random_state=42).fit(X_normalized)
        naive = sf.PrivateKMeans(3, epsilon=epsilon, L=L, random_state=42, method="naive")
        naive.fit_reports(ours.reports_)
        found, plain = ours.compute_sse(X_normalized), naive.compute_sse(X_normalized)
        print(
            f"{epsilon:7.1f} {L:4.1f} {theirs:10.2f} {increase:8d}% {found:9.2f} "
            f"{100 * (found / best - 1):8.0f}% {plain:10.2f} {100 * (plain / best - 1):8.0f}%"
        )
    print(f"Standard (no privacy): SSE = {best:.2f} (source: 0.58, on data that it does not name)")
    print("The source's reports carry more signal than epsilon allows: its density jumps at L.")


def key_differences() -> None:
    """ "Key Differences from Traditional Mechanisms": how the variance of a report grows."""
    print(" d  Laplace, epsilon/d per axis  multivariate Laplace  BPM, L auto")
    for d in (1, 2, 4, 8):
        by_axis = 2 * d**3 / 2**2
        whole = sf.MultivariateLaplace(epsilon=2, dimension=d).variance
        bounded = sf.BPM(epsilon=2, L="auto", dimension=d).variance
        print(f"{d:2d} {by_axis:28.2f} {whole:21.2f} {bounded:12.2f}")
    print("O(d^3) holds for the first. The source's O(d) is that of a report in a small box, most")
    print("of which is noise: debiased, BPM has d (d + 1) / epsilon^2 and more.")


def main() -> None:
    """Run the source's scripts in turn."""
    X_normalized = blobs()
    # 300 reports are few: what the library says of that is printed by the parts.
    warnings.simplefilter("ignore", UserWarning)
    for title, part in (
        ("Basic Example", lambda: basic_example(X_normalized)),
        ("debug_bpm.py", debug_bpm),
        ("test_bpm.py", lambda: test_bpm(X_normalized)),
        ("test_optimal_L.py", test_optimal_l),
        ("Example Results", lambda: example_results(X_normalized)),
        ("Key Differences", key_differences),
    ):
        print(f"\n## {title}")
        part()


if __name__ == "__main__":
    main()
