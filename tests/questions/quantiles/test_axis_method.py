"""The methods of one axis: which one is chosen, and that its parts spend the cost exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms.jointexp import JointLaw
from sfumato.mechanisms.selection import Ranks
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.quantiles.cells import Cells
from sfumato.questions.quantiles.methods import AxisMethod, choose_by_halving, method_for
from sfumato.random.bits import current
from support import selections, ties
from support.quantile_data import SELECTIONS, cells_of, drawn_points
from support.selections import data_sets, moves, worst

ORDER = [2, 0, 3, 1]  # the middle first, then the widest gap
HALF = (Fraction(1, 2),)
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
PAIR = (Fraction(1, 3), Fraction(1, 2))
UNEVEN = (Fraction(1, 5), Fraction(1, 4), Fraction(9, 10))
UNITS = [Unit(r, relation) for r in (1, 2) for relation in ("add-remove", "replace")]


@pytest.mark.parametrize(
    ("m", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (100, 7)]
)
@pytest.mark.parametrize("cost", [sf.PureDP("1"), sf.ZCDP("0.5")], ids=str)
def test_every_path_of_halving_spends_the_cost(m, levels, cost):
    at = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    axis_method = AxisMethod("recursive", at, 1000, sf.Unit(), cost, False)
    assert axis_method.levels == levels
    deepest = []
    choose_by_halving(
        Cells(np.zeros(0, np.int64), np.zeros(0, np.int64), 1000),
        at,
        lambda ranks, q, which, level: deepest.append(level) or 500,
    )
    assert max(deepest) + 1 == levels
    if isinstance(cost, sf.PureDP):
        assert sum(epsilon for _, epsilon in axis_method.shares) == 1
    else:
        assert (
            Fraction("0.499999")
            < sum(epsilon**2 / 8 for _, epsilon in axis_method.shares)
            <= Fraction(1, 2)
        )


def test_auto_chooses_by_public_parameters():
    assert [method_for("auto", m, 2**20) for m in (1, 9, 10, 1000, 1001)] == [
        "joint",
        "joint",
        "recursive",
        "recursive",
        "tree",
    ]
    assert [method_for("auto", m, 2**12) for m in (100, 101)] == ["recursive", "tree"]
    assert method_for("auto", 101, 2**12, pure=False) == "recursive"
    assert method_for("auto", 9, 10**40) == "recursive"  # too many tuples to select from at once


def law_of(axis_method, chosen):
    return lambda counts: axis_method.log_probabilities(cells_of(counts), chosen)


def axis_method_of(method, at, size, unit, cost=None, **more):
    return AxisMethod(method, at, size, unit, cost or PureDP("1"), False, True, **more)


@pytest.mark.parametrize("unit", UNITS[:2], ids=str)
def test_the_law_with_ties_is_the_one_stated(unit):
    """Joint and by halving, for every small data set and every tuple of edges."""
    chosen = selections.tuples(range(9), 2)
    for counts in data_sets(2, 4):
        fine = ties.dealt(counts, ORDER)
        for method, cost, law in (
            ("joint", PureDP("1"), lambda fine: ties.joint(fine, list(PAIR), 1.0, unit, chosen)),
            (
                "recursive",
                PureDP("1"),
                lambda fine: ties.halving(fine, list(PAIR), 1.0, unit, chosen, flips=True),
            ),
        ):
            if unit.neighbours == "add-remove":
                found = law_of(
                    axis_method_of(method, PAIR, 2, unit, cost, most_subcells=4), chosen
                )(counts)
                assert found == pytest.approx(law(fine), abs=1e-7)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("method", SELECTIONS)
@pytest.mark.parametrize("at", [HALF, PAIR, QUARTILES], ids=len)
def test_no_more_is_spent_than_claimed_where_rows_tie(unit, method, at):
    """All data sets of up to four rows in two cells, all edges of their sub-cells.

    All neighbours are tried, under both relations.
    """
    parts = 4 if len(at) < 3 else 2
    axis_method = axis_method_of(method, at, 2, unit, most_subcells=parts)
    chosen = selections.tuples(range(axis_method.edges), len(at))
    most = 3 - (method == "recursive" and unit.rows_per_person == 2)
    assert 0.2 < worst(law_of(axis_method, chosen), list(data_sets(2, most)), unit) <= 1 + 1e-9


def test_rows_that_move_with_their_number_are_caught():
    """Broken: all rows of a cell in one sub-cell, which their number names."""
    chosen = selections.tuples(range(9), 3)
    data = [(rows,) for rows in range(9)]

    def broken(counts):
        fine = np.zeros(8, int)
        fine[counts[0] % 8] = counts[0]
        return JointLaw(Ranks.of_counts(fine), UNEVEN, Fraction(1), Unit()).log_probabilities(
            chosen
        )

    assert worst(broken, data, Unit()) > 1.05
    assert (
        worst(
            law_of(axis_method_of("joint", UNEVEN, 1, Unit(), most_subcells=8), chosen),
            data,
            Unit(),
        )
        <= 1 + 1e-9
    )


def test_an_atom_in_both_nodes_is_caught():
    """Broken: the rows of the chosen cell stay on both sides of it.

    One row then counts in two nodes of a level.
    """
    apart = [
        sum(abs(a - b) for a, b in zip(x, y, strict=True))
        for x in data_sets(2, 4)
        for y in moves(x, Unit())
    ]
    assert max(apart) == 1
    law = lambda counts: 2 * selections.single(counts, Fraction(1, 4), 1.0, 0.75, range(3))  # noqa: E731 - two nodes with the same rows
    assert worst(law, list(data_sets(2, 4)), Unit()) > 1.05


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("cost", [PureDP("1"), ZCDP("0.1")], ids=str)
@pytest.mark.parametrize("method", [*SELECTIONS, "tree"])
@pytest.mark.parametrize("m", [1, 3, 9])
def test_an_atom_is_the_answer_where_a_quantile_lies_inside_it(m, method, cost, neighbours):
    """Seven rows of ten lie in one cell."""
    counts = np.full(100, 30)
    counts[37] = 7000
    at = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    axis_method = axis_method_of(method, at, 100, Unit(neighbours=neighbours), cost)
    below = np.concatenate([[0], np.cumsum(counts)])
    targets = below[-1] * np.array([float(q) for q in at])
    inside = (targets > below[37] + 300) & (targets < below[38] - 300)
    for _ in range(5):
        assert (drawn_points(axis_method, cells_of(counts), current())[inside] == 37).all()
