"""EUGkM's rule, and the grid that it lays."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import Rescanned, Scripted, count, neighbours, of_question
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteLaplace, count_law
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.uniform import (
    MOST_CELLS,
    UniformPartitioner,
    cells_per_axis,
    eugkm_cells,
)
from sfumato.random import PublicSeed

PLANE = Domain(x=Interval(0, 10), y=Interval(-1, 1), kind=Categories(["a"]))
ONE = PureDP(1)
LINE = Domain(x=Interval(0, 3, step=1))
SQUARE = Domain(x=Interval(0, 2, step=1), y=Interval(0, 2, step=1))
ROWS_ON_LINE = ((0.5,), (1.0,), (3.0,))
ROWS_ON_SQUARE = ((0.0, 0.0), (2.0, 0.0), (1.0, 1.0))
UNITS = [
    Unit(rows_per_person=r, neighbours=neighbours)
    for r in (1, 3)
    for neighbours in ("add-remove", "replace")
]
RULE = UniformPartitioner(theta=1)
NINE_CELLS = UniformPartitioner(partitions=9)
FIRST_DRAWS = (-100, -3, 0, 1, 4, 10, 100)


@pytest.mark.parametrize(
    ("n", "epsilon", "d", "aim", "m"),
    [
        (5000, 0.1, 2, 50, 8),
        (5000, 1, 2, 500, 23),
        (107091, 1, 2, 10709.1, 104),
        (34112, 1, 3, 17357.55778, 26),
        (48841, 1, 6, 341331.855, 9),
    ],
)
def test_vectors_of_the_rule(n, epsilon, d, aim, m):
    found = eugkm_cells(n, epsilon, d=d)
    assert found[0] == pytest.approx(aim, rel=1e-9)
    assert found[1] == m


@given(st.floats(0, 1e300), st.floats(1e-9, 1e3), st.integers(1, 20))
def test_the_product_is_capped_and_checked(n, epsilon, d):
    aim, m = eugkm_cells(n, epsilon, d=d)
    assert m >= 1
    assert m**d <= MOST_CELLS
    assert m**d >= min(aim, 1) * (1 - 1e-9)


def test_ten_axes():
    assert eugkm_cells(10**9, 10, d=10)[1] == 4  # 4^10 = 2^20 is within the cap, 5^10 is not
    assert [eugkm_cells(1e300, 1, d=d)[1] for d in (1, 2, 22, 23)] == [2**22, 2**11, 2, 1]


@pytest.mark.parametrize(
    "cost", [ONE, ApproxDP("0.3", "1e-6"), ZCDP("0.1"), PureDP("0.123456789")], ids=str
)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_noise_spends_the_cost_exactly(cost, rows):
    """The worst cost of a person who changes the total by n and the cells by c in L1."""
    pure = PureDP(cost.epsilon) if isinstance(cost, ApproxDP) else cost
    for relation in ("add-remove", "replace"):
        unit = Unit(rows_per_person=rows, neighbours=relation)
        rows_law, cells_law = UniformPartitioner().laws(cost, unit)
        gone, come = range(rows + 1), range(rows + 1) if relation == "replace" else range(1)
        worst = max(spends(rows_law, abs(a - b), cells_law, a, b) for a in gone for b in come)
        assert worst == (pure.rho if isinstance(pure, ZCDP) else pure.epsilon)
        assert UniformPartitioner(partitions=5).laws(cost, unit) == (None, count_law(pure, unit))


def spends(rows_law, total, cells_law, gone, come):
    if isinstance(cells_law, DiscreteLaplace):
        return total / rows_law.scale + (gone + come) / cells_law.scale
    return Fraction(total**2) / (2 * rows_law.sigma_squared) + Fraction(gone**2 + come**2) / (
        2 * cells_law.sigma_squared
    )


@pytest.mark.parametrize("unit", [Unit(), Unit(rows_per_person=2, neighbours="replace")], ids=str)
@pytest.mark.parametrize("cost", [ONE, ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 500, 5_000])
def test_the_preview_is_what_the_release_then_has(rows, cost, unit):
    question = UniformPartitioner(["x", "y"])
    preview = question.preview(PLANE, unit, cost, rows=rows)
    data = (
        tuple(map(tuple, np.random.default_rng(1).random((rows, 2)).tolist()))
        if rows
        else ((math.nan, 0.0),)
    )
    release = question.answer(count(data, question.needs(PLANE).lattice), unit, cost, Scripted())
    assert release.rows == rows
    assert len(release.counts) == preview.cells
    assert release.noise == preview.law
    assert release.counts.sum() == rows
    assert preview.accuracy() == release.accuracy()[0]
    assert preview.accuracy(simultaneous=True) == release.accuracy(simultaneous=True)[0]


def test_a_preview_without_rows_says_what_it_does_not_know():
    preview = UniformPartitioner().preview(PLANE, Unit(), ONE)
    assert preview.cells is None
    assert "unknown number" in str(preview)
    with pytest.raises(UsageError, match="State rows"):
        preview.accuracy(simultaneous=True)
    assert UniformPartitioner(partitions=7).preview(PLANE, Unit(), ONE).cells == 9


@pytest.mark.parametrize(
    "fields",
    [
        {"partitions": 0},
        {"partitions": -1},
        {"partitions": True},
        {"partitions": 2**22 + 1},
        {"theta": 0},
        {"theta": math.nan},
    ],
)
def test_parameters_that_make_no_sense(fields):
    with pytest.raises(UsageError):
        UniformPartitioner(**fields)


def test_axes_must_be_intervals():
    with pytest.raises(UsageError, match="Interval axes"):
        UniformPartitioner("kind").needs(PLANE)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_few_lattice_points(steps):
    domain = Domain(x=Interval(0, steps, step=1), y=Interval(0, 1))
    question = UniformPartitioner(partitions=100)
    release = question.answer(
        count(((0.5, 0.5),), question.needs(domain).lattice), Unit(), ONE, PublicSeed(1)
    )
    assert release.geometry.shape == (steps, 10)


def test_a_fine_grid_is_counted_again_on_itself():
    question = UniformPartitioner(partitions=1000**2)
    data = tuple(map(tuple, np.random.default_rng(2).random((50, 2)).tolist()))
    domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
    release = question.answer(
        Rescanned(data, question.needs(domain).lattice), Unit(), ONE, Scripted()
    )
    assert release.lattice.shape == (1000, 1000)
    assert np.flatnonzero(release.counts).tolist() == sorted(
        set(release.assign(np.array(data)).tolist())
    )


def test_noise_on_rows_that_is_far_below_leaves_one_cell():
    question = UniformPartitioner(["x", "y"])
    release = question.answer(
        count(((1.0, 0.0),), question.needs(PLANE).lattice), Unit(), ONE, Scripted((-(10**6),))
    )
    assert release.rows < 0
    assert len(release.counts) == 1


def test_shares_are_a_fiftieth_and_the_rest_and_none_is_needed_under_replace():
    assert UniformPartitioner().laws(ONE, Unit()) == (
        DiscreteLaplace(Fraction(50)),
        DiscreteLaplace(Fraction(50, 49)),
    )
    assert UniformPartitioner().laws(ONE, Unit(neighbours="replace")) == (
        DiscreteLaplace(Fraction(2)),
        DiscreteLaplace(Fraction(2)),
    )


@given(st.floats(0, 1e12), st.integers(1, 22))
def test_cells_along_axes_are_enough_and_not_too_many(aim, d):
    m = min(max(1, int(np.ceil(aim ** (1 / d)))), int((2**22) ** (1 / d) + 1e-9))
    cells = cells_per_axis(m, d, aim)
    assert np.prod(cells, dtype=float) <= 4 * max(aim, 1)
    assert np.prod(cells, dtype=float) >= min(aim, float(m) ** d) * (1 - 1e-9)
    assert d > 2 or cells == [m] * d


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(
    ("domain", "universe"), [(LINE, ROWS_ON_LINE), (SQUARE, ROWS_ON_SQUARE)], ids=["line", "square"]
)
def test_the_grid_spends_its_epsilon_and_no_more(domain, universe, unit):
    given = pure_loss(
        of_question(NINE_CELLS, domain, unit, PureDP("2")), neighbours(universe, unit, others=0)
    ).loss
    assert given <= 2 * (1 + 1e-9)
    assert given == pytest.approx(2, rel=0.01)
    others = 1 if unit.rows_per_person == 1 else 0
    noisy = pure_loss(
        of_question(RULE, domain, unit, PureDP("2")),
        neighbours(universe, unit, others),
        FIRST_DRAWS,
    ).loss
    assert noisy <= 2 * (1 + 1e-9)
    assert noisy == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("unit", UNITS[:2], ids=str)
def test_the_grid_spends_its_rho_and_no_more(unit):
    mechanism = of_question(RULE, LINE, unit, ZCDP("0.5"))
    rho = renyi_loss(
        mechanism, neighbours(ROWS_ON_LINE, unit, others=0), alphas=(1.5, 2, 8), decides=True
    ).loss
    assert rho <= 0.5 * (1 + 1e-9)
    assert rho >= 0.5 * 0.97
