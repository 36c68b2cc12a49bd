"""What each method spends on all small neighbours, by the production code; faults are caught."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import NotAdditive, Published, count, neighbours, of_counts, published
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.clustering import KMeans, lloyd, methods
from sfumato.questions.clustering.lloyd import (
    HALF,
    TYPICAL_MEAN,
    Space,
    nearest,
    private_step,
    step_laws,
)
from sfumato.questions.partition.privtree import PrivTreePartitioner
from support.laws import loss

LINE = Lattice((GridAxis("x", 0.0, 3.0, 3),))
PLANE = Lattice((GridAxis("x", 0.0, 3.0, 3), GridAxis("y", 0.0, 2.0, 2)))
CORNERS = ((0.0, 0.0), (3.0, 2.0))
UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
ONE = PureDP(1)


def asked(method, lattice, unit, cost, k=2):
    question = KMeans(k, method=method)
    return of_counts(lattice, lambda cube, noise: question.answer(cube, unit, cost, noise))


@pytest.mark.parametrize(
    ("method", "unit"),
    [
        *(("eugkm", unit) for unit in UNITS),
        *(("dplloyd", unit) for unit in (UNITS[0], UNITS[-1])),
        *(pytest.param("dplloyd", unit, marks=pytest.mark.deep) for unit in UNITS[1:-1]),
    ],
    ids=str,
)
def test_the_whole_answer(method, unit):
    found = pure_loss(
        asked(method, PLANE, unit, ONE), neighbours(CORNERS, unit, others=0), (-3, 40)
    ).loss
    assert 0.98 <= found <= 1 + 1e-9


def short_steps(unit, cost, radius, laws=None, lattice=PLANE, step=private_step):
    """Two steps from given centres with a short radius, as they refine a tree's."""
    space, start = (
        Space(lattice),
        np.array([[-HALF // 4] * len(lattice.axes), [HALF // 3] * len(lattice.axes)]),
    )
    half = PureDP(cost.epsilon / 2) if isinstance(cost, PureDP) else ZCDP(cost.rho / 2)
    laws = laws or step_laws(half, unit, radius, space.d)

    def run(rows, noise):
        where, centres, steps = space.rows(count(rows, lattice)), start, []
        for _ in range(2):
            steps.append(step(where, centres, centres, radius, laws, noise))
            centres = steps[-1].moved(space.extent)
        return Published(tuple(int(x) for s in steps for x in (*s.sums, *s.counts)), steps)

    return run


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("radius", [1000, HALF // 5, HALF // 2])
def test_steps_of_a_short_reach(unit, radius):
    pairs = neighbours(
        ((0.0, 0.0), (1.5, 0.0), (3.0, 2.0)), unit, others=1 if unit.rows_per_person == 1 else 0
    )
    found = pure_loss(short_steps(unit, ONE, radius), pairs).loss
    assert 0.95 <= found <= 1 + 1e-9


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_steps_of_a_short_reach_concentrated(unit):
    pairs = neighbours(((0.0, 0.0), (1.5, 0.0), (3.0, 2.0)), unit, others=0)
    rho = renyi_loss(short_steps(unit, ZCDP(1), HALF // 5), pairs, alphas=(1.5, 8.0)).loss
    assert (
        0.4 <= rho <= 1 + 1e-9
    )  # under replace the worst pair shares a group and lies on both sides of its centre


def test_concentrated_lloyd():
    for unit in UNITS[:2]:
        found = renyi_loss(
            asked("dplloyd", LINE, unit, ZCDP(8)),
            neighbours(((0.5,), (3.0,)), unit, others=0),
            (1.5, 8.0),
            decides=True,
        ).loss
        assert 0.98 * 8 <= found <= 8 * (1 + 1e-9)


# --- broken mechanisms


def swapped(cost, unit, radius, d):
    """The split between a sum and the count the wrong way round, as in the field's common code."""
    typical = (4 * d * TYPICAL_MEAN**2) ** (1 / 3)
    one = cost.epsilon / Fraction(d + typical)
    return DiscreteLaplace(
        unit.counts_l1 * Fraction(radius, d) / (one * Fraction(typical))
    ), DiscreteLaplace(unit.counts_l1 / one)


def test_the_swapped_split_is_found_out(monkeypatch):
    lattice = Lattice(tuple(GridAxis(f"a{i}", 0.0, 2.0, 2) for i in range(10)))
    pairs = [((), ((0.0,) * 10,)), (((2.0,) * 10,), ())]
    assert pure_loss(asked("dplloyd", lattice, Unit(), ONE), pairs).loss == pytest.approx(
        1, rel=0.01
    )
    monkeypatch.setattr(methods, "step_laws", swapped)
    assert pure_loss(asked("dplloyd", lattice, Unit(), ONE), pairs).loss == pytest.approx(
        0.02 + 0.98 * 1.21, rel=0.01
    )


def test_rows_that_are_not_clipped_are_found_out(monkeypatch):
    pairs = neighbours(CORNERS, Unit(), others=0)
    monkeypatch.setattr(lloyd, "clip", lambda differences, radius, euclidean: differences)
    assert pure_loss(short_steps(Unit(), ONE, HALF // 5), pairs).loss > 2


def test_replace_treated_as_add_remove_is_found_out():
    pairs = neighbours(CORNERS, Unit(neighbours="replace"), others=0)
    assert pure_loss(short_steps(Unit(), ONE, HALF // 5), pairs).loss > 1.7


def skipping(where, centres, origins, radius, laws, noise):
    """Noise for groups that hold somebody only: the test for emptiness looks at true counts."""
    held = np.unique(nearest(where[0], centres)) if len(where[0]) else np.arange(1)
    part = private_step(where, centres[held], origins[held], radius, laws, noise)
    k, d = centres.shape
    sums, counts = np.zeros((k, d), np.int64), np.zeros(k, np.int64)
    sums[held], counts[held] = part.sums.reshape(-1, d), part.counts
    return lloyd.Step(
        centres.reshape(-1), origins.reshape(-1), radius, sums.reshape(-1), counts, *laws
    )


def test_skipping_empty_clusters_is_found_out():
    with pytest.raises(NotAdditive):
        pure_loss(
            short_steps(Unit(), ONE, HALF // 5, step=skipping),
            neighbours(CORNERS, Unit(), others=1),
        )


def labels(release, cube):
    where, number = Space(cube.lattice).rows(cube)
    return np.repeat(release.predict(Space(cube.lattice).unscale(where)), number).tolist()


def inertia(release, cube):
    where, number = Space(cube.lattice).rows(cube)
    return float(
        (((where / HALF)[:, None, :] - release.scaled_centers) ** 2).sum(axis=2).min(axis=1)
        @ number
    )


@pytest.mark.parametrize("fact", [labels, inertia])
def test_exact_facts_on_the_result_are_found_out(fact):
    question = KMeans(2, method="dplloyd")

    def leaky(rows, noise):
        cube = count(rows, PLANE)
        release = question.answer(cube, Unit(), ONE, noise)
        return Published(published(release).numbers, (release, fact(release, cube)))

    assert pure_loss(leaky, neighbours(CORNERS, Unit(), others=1), (40,)).loss == np.inf


def test_a_release_has_no_labels_and_no_inertia():
    release = KMeans(2, method="dplloyd").answer(count(CORNERS, PLANE), Unit(), ONE, Recorded())
    shown = {name for name in dir(release) if not name.startswith("_")}
    assert release.label_columns == (), "columns with the labels of axes are no labels of rows"
    shown -= {"label_columns"}
    assert not {name for name in shown if "label" in name or "inertia" in name or "loss" in name}


class Recorded:
    """The process' own bits under another name."""

    private = True

    def words(self, count):
        from sfumato.random import current

        return current().words(count)


@pytest.mark.parametrize("cost", [PureDP("1.000000007"), ZCDP("0.3")], ids=str)
@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_what_counting_the_rows_spends_the_rest_leaves(cost, rows_per_person):
    whole = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
    for method, relation in (
        ("dplloyd", "add-remove"),
        ("auto", "add-remove"),
        ("auto", "replace"),
    ):
        unit = Unit(rows_per_person, relation)
        law, rest = KMeans(2, method=method)._rows_law(cost, unit)
        assert loss(law, unit) + (rest.rho if isinstance(rest, ZCDP) else rest.epsilon) == whole


@pytest.mark.parametrize(
    "unit", [{}, {"rows_per_person": 2, "neighbours": "replace"}], ids=["add-remove", "replace"]
)
def test_the_tree_and_the_steps_spend_the_cost(monkeypatch, unit):
    made, laws = PrivTreePartitioner.law_at, []
    monkeypatch.setattr(
        PrivTreePartitioner,
        "law_at",
        lambda self, *words: laws.append(made(self, *words)) or laws[-1],
    )
    rows = np.random.default_rng(0).random((2000, 2))
    src = sf.source(rows, sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1)), name="rows", **unit)
    with sf.Publisher(src, budget=2) as publisher:
        found = publisher.release(sf.KMeans(3, method="privtree"), epsilon=1)
    r, moved = src.unit.rows_per_person, src.unit.counts_l1
    tests = Fraction(r * (4 if unit else 3)) / laws[-1][0].scale
    counts = max(moved / law.scale for law in found.partition.laws)
    steps = sum(
        moved * step.clip_radius / step.sum_law.scale + moved / step.count_law.scale
        for step in found.steps
    )
    assert Fraction(999, 1000) <= tests + counts + steps <= 1
