"""An even grid in two steps: what its paths spend, which blocks stay one cell, what it gains."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from audit.subjects import partitions as subjects
from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import Scripted, count, neighbours, of_question
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.domain.domain import Domain, Interval
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.privacy.allocation import Shares, units_of
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition import uniform as blocks
from sfumato.questions.partition.growth import Draft
from sfumato.questions.partition.uniform import Budget, blocks_per_axis
from sfumato.random import PublicSeed
from support.partition_growth import spent_on_paths
from support.partitions import ONE, answer, whole

PLANE = Domain(x=Interval(0, 8, step=1), y=Interval(0, 8, step=1))
FOUR = Domain(x=Interval(0, 4, step=1))
ON_FOUR = ((0.5,), (4.0,))
UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
COSTS = [PureDP("1.000000007"), ZCDP("0.123456789012")]
ROWS = tuple(map(tuple, (np.random.default_rng(3).random((60, 2)) ** 2 * 8).tolist()))
STATED = Shares(release=2, partition=1, threshold=3)
FAR = 10**6


@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("shares", [None, STATED], ids=["by fan-out", "stated"])
@pytest.mark.parametrize("partitions", [None, 16], ids=["rule", "given"])
def test_every_path_spends_the_cost_for_every_stop_pattern(partitions, shares, unit, cost):
    """The counts that decide are forced to every pattern of stops, for grids of several sizes."""
    question = sf.UniformPartitioner(partitions=partitions, theta=1, stop_below=1, shares=shares)
    on = count(ROWS, question.needs(PLANE).lattice)
    sizes = set()
    rows = (-FAR, 10, FAR) if partitions is None else (None,)
    for first, stops in product(rows, product((-FAR, FAR), repeat=3)):
        script = stops if first is None else (first, *stops)
        release = question.answer(on, unit, cost, Scripted(script))
        assert set(spent_on_paths(release, unit)) == {whole(cost)}
        assert units_of(release.cost) == units_of(cost)
        assert set(release.spent.tolist()) == {float(whole(cost))}
        sizes.add(len(release.counts))
    assert len(sizes) > 3


@given(
    st.integers(1000, 10**12),
    st.none() | st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)),
    st.booleans(),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
def test_parts_of_the_cost_add_up_in_integers(total, weights, counts_rows, per_axis):
    shares = None if weights is None else Shares(*map(Fraction, weights))
    budget = Budget.of(total, shares, counts_rows=counts_rows)
    layout = budget.layout(lambda units: per_axis)
    for_cells = budget.after_rows - layout.for_blocks
    assert for_cells >= budget.least_for_cells > 0
    assert layout.for_blocks == 0 or budget.least_for_blocks <= layout.for_blocks < total
    assert counts_rows == (budget.rows is not None)
    assert layout.blocks == blocks_per_axis(per_axis)
    assert all(b <= m for b, m in zip(layout.blocks, layout.cells, strict=True))


def test_the_fan_out_of_the_first_noisy_count_divides_the_rest():
    """The second solution of the source's issue 1: 1 to f^(1/3), after a fiftieth for the rows."""
    budget = Budget.of(50_000, None, counts_rows=True)
    assert (budget.rows, budget.after_rows) == (1000, 49_000)
    # 16 x 16 cells in 4 x 4 blocks: a block holds 16 cells.
    assert budget.layout(lambda units: [16, 16]).for_blocks == int(49_000 / (1 + 16 ** (1 / 3)))
    # No fan-out leaves the blocks, or the cells, without a share.
    assert budget.layout(lambda units: [2048, 2048]).for_blocks > 49_000 // 15
    assert budget.least_for_blocks > 0


def test_a_quiet_block_stays_one_cell_and_a_crowded_one_is_divided():
    question = sf.UniformPartitioner("x", partitions=16, stop_below=20)
    line = Domain(x=Interval(0, 16, step=1))
    data = ((0.5,),) * 100 + ((9.5,),) * 19 + ((15.5,),) * 20
    release = question.answer(count(data, question.needs(line).lattice), Unit(), ONE, Scripted())
    order = np.argsort(release.lower[:, 0])
    assert release.lower[order, 0].tolist() == [0, 1, 2, 3, 4, 8, 12, 13, 14, 15]
    assert release.depth[order].tolist() == [2, 2, 2, 2, 1, 1, 2, 2, 2, 2]
    assert release.counts[order].tolist() == [100, 0, 0, 0, 0, 19, 0, 0, 0, 20]
    assert release.inner.count.tolist() == [100, 0, 19, 20]
    assert release.count(x=(8, 12)).value == pytest.approx(19)


@pytest.mark.parametrize("rows", [19, 20])
def test_few_rows_in_all_leave_one_cell(rows):
    question = sf.UniformPartitioner("x", theta=0.1, stop_below=20)
    line = Domain(x=Interval(0, 16, step=1))
    release = question.answer(
        count(((0.5,),) * rows, question.needs(line).lattice), Unit(), ONE, Scripted()
    )
    assert (len(release.counts) > 1) == (rows == 20)


def test_cells_are_those_of_the_uniform_grid():
    """Blocks begin and end where cells do, so a grid that nothing stops is the usual one."""
    line = Domain(x=Interval(0, 1000, step=1), y=Interval(0, 700, step=1))
    usual = answer(sf.UniformPartitioner(partitions=500), line, ((1.0, 1.0),))
    steps = answer(
        sf.UniformPartitioner(partitions=500, shares=Shares(threshold=0)), line, ((1.0, 1.0),)
    )
    corners = [np.hstack([each.lower, each.upper]) for each in (usual, steps)]
    assert sorted(map(tuple, corners[0])) == sorted(map(tuple, corners[1]))
    assert steps.noise == usual.noise
    assert steps.inner is None


def test_shares_set_the_noise_of_each_count():
    release = answer(sf.UniformPartitioner(theta=0.1, shares=STATED), PLANE, ROWS, cost=PureDP(6))
    scales = [law.scale for law in release.laws]
    assert scales == [Fraction(1, 2), Fraction(1), Fraction(1, 3)]
    # The rows come first, then 3 x 3 blocks.
    assert release.inner.which.tolist() == [1] + [2] * 9


@pytest.mark.parametrize("rows", [0, 30, 5000])
@pytest.mark.parametrize("cost", [ONE, ZCDP("0.5")], ids=str)
def test_the_preview_is_what_the_release_then_has(rows, cost):
    wide = Domain(x=Interval(0, 1), y=Interval(0, 1))
    data = tuple(map(tuple, np.random.default_rng(1).random((rows, 2)).tolist()))
    for question in (
        sf.UniformPartitioner(shares=STATED),
        sf.UniformPartitioner(partitions=rows + 1, shares=STATED),
    ):
        preview = question.preview(wide, Unit(), cost, rows=None if question.partitions else rows)
        release = question.answer(
            count(data or ((np.nan, 0.0),), question.needs(wide).lattice), Unit(), cost, Scripted()
        )
        assert preview.cells == len(release.counts)
        assert preview.law == release.laws[0]
        assert preview.accuracy() == release.accuracy()[0]
    stops = sf.UniformPartitioner(stop_below=1)
    found = stops.preview(wide, Unit(), cost, rows=rows)
    release = answer(stops, wide, data or ((np.nan, 0.0),), cost=cost)
    assert found.cells is None
    if rows == 5000:
        assert found.law.half_width(0.05) == pytest.approx(release.noise.half_width(0.05), abs=1)
    assert "stays one cell" in str(found)


def test_a_preview_without_rows_bounds_what_cells_may_get():
    wide = Domain(x=Interval(0, 1))
    preview = sf.UniformPartitioner(stop_below=5).preview(wide, Unit(), ONE)
    assert preview.law == DiscreteLaplace(Fraction(50, 49))
    assert preview.worst == DiscreteLaplace(Fraction(100, 49))
    for n in (0, 10, 1000, 10**5):
        scale = answer(
            sf.UniformPartitioner(stop_below=5), wide, ((0.5,),) * n or ((np.nan,),)
        ).noise.scale
        assert preview.law.scale <= scale <= preview.worst.scale


@pytest.mark.parametrize(
    "fields",
    [
        {"stop_below": 0},
        {"stop_below": -1},
        {"stop_below": float("nan")},
        {"stop_below": 10**19},
        {"shares": "half"},
        {"shares": Shares(partition=0)},
        {"stop_below": 5, "partitions": 9, "shares": Shares(threshold=0)},
    ],
    ids=str,
)
def test_parameters_that_make_no_sense(fields):
    with pytest.raises(sf.UsageError) as refused:
        sf.UniformPartitioner(**fields)
    assert str(refused.value).count("\n") == 0


def test_a_cost_too_small_for_a_block_is_refused_before_the_data_are_read():
    for question, cost in (
        (sf.UniformPartitioner(stop_below=5), "0.000000049"),
        (sf.UniformPartitioner(stop_below=5, partitions=9), "0.000000100"),
        (sf.UniformPartitioner(shares=Shares(release=50, threshold=1, partition=9)), "5e-9"),
    ):
        with pytest.raises(sf.UsageError):
            question.preview(PLANE, Unit(), PureDP(cost))


def test_stored_forms_are_those_of_today_unless_the_new_fields_are_used():
    assert b"shares" not in to_bytes(sf.UniformPartitioner("x", partitions=3))
    assert b"stop_below" not in to_bytes(sf.UniformPartitioner("x", stop_below=None, shares=None))
    given = sf.UniformPartitioner("x", stop_below=7, shares=STATED)
    assert from_bytes(to_bytes(given), sf.UniformPartitioner) == given


@pytest.mark.parametrize("unit", UNITS[:2], ids=str)
@pytest.mark.parametrize("partitions", [None, 4], ids=["rule", "given"])
def test_blocks_spend_their_epsilon_and_no_more(partitions, unit):
    """Enumerated over all small neighbours; under replace the root's count does not move."""
    question = sf.UniformPartitioner(partitions=partitions, theta=0.01, stop_below=1)
    loss = pure_loss(
        of_question(question, FOUR, unit, PureDP(2)), neighbours(ON_FOUR, unit, 1), (-100, 0, 40)
    ).loss
    assert loss <= 2 * (1 + 1e-9)
    assert loss >= 2 * (0.2 if unit.neighbours == "replace" else 1 - 1e-9)
    rho = renyi_loss(
        of_question(question, FOUR, unit, ZCDP("0.5")),
        neighbours(ON_FOUR, unit, others=0),
        alphas=(1.5, 8),
        decides=True,
    ).loss
    assert rho <= 0.5 * (1 + 1e-9)


def test_the_audit_notices_a_count_of_blocks_that_nothing_paid_for(monkeypatch):
    """The near miss: cells that take what is left as if their blocks had not been counted."""
    question = sf.UniformPartitioner(partitions=4, stop_below=1)
    pairs = neighbours(ON_FOUR, Unit(), others=1)
    right = pure_loss(of_question(question, FOUR, Unit(), PureDP(2)), pairs).loss
    assert right == pytest.approx(2)
    paid = Draft.pay
    monkeypatch.setattr(Draft, "pay", lambda self, nodes, units: paid(self, nodes, units * 9 // 10))
    wrong = pure_loss(of_question(question, FOUR, Unit(), PureDP(2)), pairs).loss
    assert wrong > 2.05


def test_it_is_a_subject_of_the_audit():
    assert [each.unit for each in subjects.subjects() if each.name == "Uniform grid, blocks"] == [
        UNITS[0],
        UNITS[1],
    ]


def test_on_a_crowded_square_stops_lower_the_error_of_ranges():
    """The gain: empty blocks have one noisy count each, and so fewer of them add up."""
    rng = np.random.default_rng(5)
    points = np.clip(rng.normal(0.5, 0.05, (20_000, 2)), 0, 1)
    unit = Domain(x=Interval(0, 1), y=Interval(0, 1))
    ends = np.sort(rng.random((200, 2, 2)), axis=1)
    ranges = {"x": (ends[:, 0, 0], ends[:, 1, 0]), "y": (ends[:, 0, 1], ends[:, 1, 1])}
    inside = (points >= ends[:, 0][:, None]) & (points < ends[:, 1][:, None])
    true = inside.all(axis=2).sum(axis=1)
    on = count(tuple(map(tuple, points.tolist())), sf.UniformPartitioner().needs(unit).lattice)

    def error(question):
        """The mean error, relative to the truth or to a thousandth of the rows."""
        found = [
            question.answer(on, Unit(), ONE, PublicSeed(seed)).count(**ranges).value - true
            for seed in range(4)
        ]
        return np.mean(np.abs(found) / np.maximum(true, 20))

    assert error(sf.UniformPartitioner(stop_below=20)) < 0.6 * error(sf.UniformPartitioner())


def test_blocks_are_laid_by_this_module(monkeypatch):
    """Nothing is counted twice: where the only block is the root, its count is the test."""
    laid = []
    grown = blocks.grow
    monkeypatch.setattr(
        blocks,
        "grow",
        lambda draft, layout, stop: laid.append(layout) or grown(draft, layout, stop),
    )
    line = Domain(x=Interval(0, 16, step=1))
    answer(sf.UniformPartitioner("x", theta=1000, stop_below=1), line, ((0.5,),) * 40)
    assert [(each.blocks, each.for_blocks) for each in laid] in ([([1], 0)], [])
