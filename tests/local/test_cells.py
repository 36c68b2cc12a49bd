"""Floats decide only what is certain, and decimals settle the rest from the same words."""

from __future__ import annotations

import numpy as np
import pytest

from local.laws import RNG, fits
from sfumato.local.bpm import BPM
from sfumato.local.bpm import _sampler as _bpm_sampler
from sfumato.local.mechanism import MultivariateLaplace
from sfumato.local.mechanism import _sampler as _laplace_sampler
from sfumato.random import PublicSeed, override

COUNT = 120_000


@pytest.mark.parametrize(
    "mechanism",
    [BPM(4, "auto", 2), BPM(3, 1, 3), MultivariateLaplace(2, 2), MultivariateLaplace(4, 5)],
    ids=lambda m: m.title,
)
def test_directions_are_uniform(mechanism: BPM | MultivariateLaplace) -> None:
    d = mechanism.dimension
    with override(PublicSeed(f"direction {mechanism.title}")):
        offsets = mechanism.perturb(np.full((COUNT, d), 0.5)) - 0.5
    if isinstance(mechanism, BPM):
        offsets = offsets[np.linalg.norm(offsets, axis=1) < float(mechanism.L)]
    assert fits(*cosines(offsets))
    cube = RNG.uniform(-1, 1, offsets.shape)
    assert not fits(*cosines(cube)), "directions of a cube passed"


def cosines(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the first axis' squared direction cosine, which is Beta(1/2, (d - 1)/2), by
    twentieths; signs of the others apart.
    """
    from scipy import stats

    d = offsets.shape[1]
    squares = offsets[:, 0] ** 2 / (offsets**2).sum(axis=1)
    part = np.minimum((stats.beta.cdf(squares, 0.5, (d - 1) / 2) * 20).astype(int), 19)
    signs = ((offsets > 0) * 2 ** np.arange(d)).sum(axis=1)
    counts = np.bincount(part * 2**d + signs, minlength=20 * 2**d)
    return counts, np.full(len(counts), len(offsets) / len(counts))


SAMPLERS = {
    "bpm 2": lambda: _bpm_sampler(BPM(4, "auto", 2), 3, 2),
    "bpm 3, power": lambda: _bpm_sampler(BPM(2, "0.3", 3), 4, 3),
    "bpm 1": lambda: _bpm_sampler(BPM(4, "auto", 1), 2, 1),
    "two-stage 2": lambda: _bpm_sampler(BPM(4, "0.9", 2), 2, 0),
    "bpm 7": lambda: _bpm_sampler(BPM(16, "auto", 7), 8, 7),
    "laplace 1": lambda: _laplace_sampler(MultivariateLaplace(1, 1)),
    "laplace 5": lambda: _laplace_sampler(MultivariateLaplace(8, 5)),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_floats_and_decimals_agree_wherever_floats_are_certain(name: str) -> None:
    sampler, bits, count = SAMPLERS[name](), PublicSeed(name), 60
    points = np.random.default_rng(0).random((count, sampler.dimension))
    radii = sampler.distance.propose(count, bits)
    cells = np.empty(points.shape)
    directions = sampler._write_directions(cells, bits)
    with np.errstate(divide="ignore", invalid="ignore"):
        is_open = sampler._write_cells(points, radii.values, directions, cells)
    assert radii.doubtful.sum() + is_open.sum() <= 1
    for i in np.flatnonzero(~radii.doubtful):
        direction = sampler._exact_direction(directions, i, bits)
        settled = sampler.settled(points[i], radii.reals(i, bits), direction)
        assert (settled is not None) == radii.accepted[i]
        if settled is not None and not is_open[i]:
            assert settled == cells[i].tolist()


OPEN = [
    BPM(4, "auto", 1),
    BPM(4, "auto", 2),
    BPM(2, "0.3", 3),
    BPM(40, "auto", 40),
    MultivariateLaplace(1, 1),
    MultivariateLaplace(3, 5),
]


@pytest.mark.parametrize("mechanism", OPEN, ids=lambda m: m.title)
def test_reports_that_are_all_settled_are_the_same(
    mechanism: BPM | MultivariateLaplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settling reads the very words that the floats read: with a margin that opens all reports,
    none of them changes.
    """
    points = np.random.default_rng(2).random(
        (400 // (10 + mechanism.dimension), mechanism.dimension)
    )
    seed = f"all open {mechanism.title}"
    sure = mechanism.draw_cells(points, PublicSeed(seed))
    monkeypatch.setattr("sfumato.local.cells._LEAST_MARGIN", 1.0)
    np.testing.assert_array_equal(mechanism.draw_cells(points, PublicSeed(seed)), sure)
    # And the cells that floats give have no say in it.
    monkeypatch.setattr(
        "sfumato.local.cells.np.rint", lambda near, out: np.multiply(near, 0, out=out)
    )
    np.testing.assert_array_equal(mechanism.draw_cells(points, PublicSeed(seed)), sure)


class _Edge:
    """Words that lie at the edges, at the beginning of the first calls, then ordinary ones."""

    private = False

    def __init__(self, seed: str) -> None:
        self._rest, self._calls = PublicSeed(seed), 10

    def words(self, count: int) -> np.ndarray:
        found = self._rest.words(count)
        self._calls -= 1
        if self._calls >= 0:
            edges = np.array(
                [0, 2**64 - 1, 1, 2**63, 2**63 - 1, 1023, 2**64 - 1023], dtype=np.uint64
            )[:count]
            found[: len(edges)] = edges
        return found


def test_words_at_the_edges_are_settled() -> None:
    for mechanism in (
        BPM(4, "auto", 1),
        BPM(4, "auto", 3),
        BPM(2, "0.3", 2),
        MultivariateLaplace(1, 1),
        MultivariateLaplace(1, 4),
    ):
        for count in (1, 12):
            with override(_Edge(mechanism.title)):
                report = mechanism.perturb(np.full((count, mechanism.dimension), 0.5))
            assert np.isfinite(report).all()
    assert mechanism.perturb(np.zeros((0, 4))).shape == (0, 4)
