"""Cells with many rows: dealt to sub-cells they are chosen where a quantile lies inside them, at no cost."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.mechanisms.jointexp import JointLaw
from sfumato.mechanisms.ranks import Ranks
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.quantiles.methods import Cells, Way
from sfumato.quantiles.parts import divided, parts_for, points_of
from sfumato.quantiles.rank_error import half_width
from sfumato.random.bits import PublicSeed, current
from support import selections, ties
from support.selections import data_sets, moves, worst

ORDER = [2, 0, 3, 1]  # the middle first, then the widest gap
HALF, QUARTILES = (Fraction(1, 2),), (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
PAIR, UNEVEN = (Fraction(1, 3), Fraction(1, 2)), (Fraction(1, 5), Fraction(1, 4), Fraction(9, 10))
UNITS = [Unit(r, relation) for r in (1, 2) for relation in ("add-remove", "replace")]
SELECTIONS = ["joint", "recursive"]


def cells_of(counts):
    counts = np.array(counts, dtype=np.int64)
    held = np.flatnonzero(counts)
    return Cells(held, counts[held], len(counts))


def law_of(way, chosen):
    return lambda counts: way.log_probabilities(cells_of(counts), chosen)


def way_of(method, at, size, unit, cost=None, **more):
    return Way(method, at, size, unit, cost or PureDP("1"), False, True, **more)


def test_rows_are_dealt_as_one_would_by_hand():
    for counts in [(0, 0), (1, 3), (4, 9), (2, 0), (7, 1), (100, 5)]:
        found = np.zeros(8, int)
        places, rows = divided(cells_of(counts).positions, cells_of(counts).counts, 4)
        found[places] = rows
        assert tuple(found) == ties.dealt(counts, ORDER)


@pytest.mark.parametrize("parts", [1, 2, 4, 8, 256])
def test_one_row_more_is_one_row_more_in_one_sub_cell(parts):
    size = 3 * parts

    def dense(counts):
        found = np.zeros(size, int)
        cells = cells_of(counts).divided(parts)
        found[cells.positions] = cells.counts
        assert cells.size == size
        assert (np.diff(cells.positions) > 0).all()
        assert (cells.counts > 0).all()
        return found

    for more in range(2 * parts + 2):
        before, after = dense((5, more, 0)), dense((5, more + 1, 0))
        assert sorted(after - before)[-2:] == [0, 1]
        assert (after - before).sum() == 1
    assert np.ptp(dense((0, 1000 * parts, 0))[parts : 2 * parts]) == 0


@pytest.mark.parametrize("unit", UNITS[:2], ids=str)
def test_the_law_with_ties_is_the_one_stated(unit):
    """Joint, by halving with the exponential mechanism and with permute-and-flip: every data set, every tuple of edges."""
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
                found = law_of(way_of(method, PAIR, 2, unit, cost, finest=4), chosen)(counts)
                assert found == pytest.approx(law(fine), abs=1e-7)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("method", SELECTIONS)
@pytest.mark.parametrize("at", [HALF, PAIR, QUARTILES], ids=len)
def test_no_more_is_spent_than_claimed_where_rows_tie(unit, method, at):
    """All data sets of up to four rows in two cells, all edges of their sub-cells, all neighbours: under both relations."""
    parts = 4 if len(at) < 3 else 2
    way = way_of(method, at, 2, unit, finest=parts)
    chosen = selections.tuples(range(way.edges), len(at))
    most = 3 - (method == "recursive" and unit.rows_per_person == 2)
    assert 0.2 < worst(law_of(way, chosen), list(data_sets(2, most)), unit) <= 1 + 1e-9


def test_rounding_the_rows_of_sub_cells_moves_others():
    """Broken: where three rows of a cell become four, evenly spread and rounded, another row moves as well."""
    shift = [
        np.abs(np.subtract(ties.rounded((n,), 8), ties.rounded((n + 1,), 8))).sum()
        for n in range(9)
    ]
    assert max(shift) == 3


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
        worst(law_of(way_of("joint", UNEVEN, 1, Unit(), finest=8), chosen), data, Unit())
        <= 1 + 1e-9
    )


def test_an_atom_in_both_nodes_is_caught():
    """Broken: the rows of the chosen cell stay on both sides of it, so that one row counts in two nodes of a level."""
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
    """Seven rows of ten in one cell: until now all edges were as good as each other for the median."""
    counts = np.full(100, 30)
    counts[37] = 7000
    at = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    way = way_of(method, at, 100, Unit(neighbours=neighbours), cost)
    below = np.concatenate([[0], np.cumsum(counts)])
    targets = below[-1] * np.array([float(q) for q in at])
    inside = (targets > below[37] + 300) & (targets < below[38] - 300)
    for _ in range(5):
        assert (way.draw(cells_of(counts), current())[inside] == 37).all()


@pytest.mark.parametrize("snap", [True, False])
@pytest.mark.parametrize("method", SELECTIONS)
def test_rank_intervals_cover_where_rows_tie(method, snap):
    counts = np.random.default_rng(3).geometric(0.002, 300) * (np.arange(300) % 3 == 0)
    counts[60] = 40_000
    cells, below = cells_of(counts), np.concatenate([[0], np.cumsum(counts)])
    way = Way(method, QUARTILES, 300, Unit(), PureDP("1"), False, snap)
    targets = below[-1] * np.array([0.25, 0.5, 0.75])
    fine = cells.divided(way.parts)
    through = np.concatenate([[0], np.cumsum(np.bincount(fine.positions, fine.counts, fine.size))])
    forced = np.abs(through[:, None] - targets).min(axis=0)
    errors, noise = [], PublicSeed(1)  # luck is to decide nothing
    for _ in range(100):
        edges = way.select(fine, noise)
        low, high = edges // way.parts, -(-edges // way.parts)
        error = np.maximum(0, np.maximum(below[low] - targets, targets - below[high]))
        errors.append(error - forced)
        points = points_of(edges, way.parts, 300, snap)
        assert ((points == low) | (points == high) | (points == 299)).all()
    errors = np.array(errors)
    assert ((errors <= half_width(way, 0.2)).mean(axis=0) >= 0.8).all()
    assert (errors.max(axis=1) <= half_width(way, 0.2, 1)).mean() >= 0.8


@pytest.mark.parametrize("parts", [2, 16, 256])
def test_points_of_edges(parts):
    """On a step's axis the cell, elsewhere its nearer end: the first row of a cell lies between the two."""
    edges = np.arange(3 * parts + 1)
    assert (
        points_of(edges, parts, 3, True).tolist()
        == np.repeat([0, 1, 2], [parts, parts, parts + 1]).tolist()
    )
    rows = np.zeros(3, int)
    rows[1] = 1
    cells = cells_of(rows).divided(parts)
    below = np.searchsorted(cells.positions, edges)
    nearer = points_of(edges, parts, 3, False)
    assert (below == (nearer >= 2)).all()
    assert nearer[0] == 0
    assert nearer[-1] == 3


def test_parts_are_public_and_bounded():
    assert [
        parts_for(cells, 256, flips=False, together=1)
        for cells in (1, 120, 2**16, 2**20, 2**24, 2**40)
    ] == [256, 256, 256, 16, 1, 1]
    assert [parts_for(cells, 256, flips=True, together=1) for cells in (120, 300, 2**12)] == [
        256,
        128,
        16,
    ]
    assert parts_for(2**20, 256, flips=False, together=42) == 16
    few = [parts_for(2**20, 256, flips=False, together=m) for m in (42, 46, 50, 60)]
    assert all(b <= a for a, b in pairwise(few))
    assert few[-1] == 1
