"""The lattice, and the one kernel that sends rows to cells."""

import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sfumato.domain.domain import Interval, grid_axis
from sfumato.domain.lattice import BinsAndMissing, EdgesAxis, GridAxis, KeyAxis, LabelAxis, Lattice
from sfumato.errors import InternalError


def ieee(value: Fraction) -> Fraction | float:
    """Round a rational to the nearest double, ties to even; past the largest one to infinity."""
    try:
        return Fraction(float(value))
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def reference(x: float, lower: float, upper: float, cells: int) -> int:
    """The kernel in rationals, rounded after each of its three operations."""
    if math.isnan(x):
        return -1
    if math.isinf(x):
        return cells - 1 if x > 0 else 0
    scaled = ieee(Fraction(x) - Fraction(lower))
    if isinstance(scaled, Fraction):
        scaled = ieee(scaled * cells)
    if isinstance(scaled, Fraction):
        scaled = ieee(scaled / ieee(Fraction(upper) - Fraction(lower)))
    if isinstance(scaled, float):
        return cells - 1 if scaled > 0 else 0
    return min(max(math.floor(scaled), 0), cells - 1)


BOUNDS = st.floats(-1e100, 1e100)
CELLS = st.integers(1, 2**20)


@st.composite
def axes(draw, cells=CELLS):
    lower, upper = sorted(
        (
            draw(BOUNDS | st.integers(-1000, 1000).map(float)),
            draw(BOUNDS | st.integers(-1000, 1000).map(float)),
        )
    )
    assume(lower < upper)
    return GridAxis("x", lower, upper, draw(cells))


@st.composite
def axis_and_values(draw):
    axis = draw(axes())
    at = axis.points(
        np.array(draw(st.lists(st.integers(0, axis.cells), max_size=8)), dtype=np.int64)
    )
    near = [np.nextafter(at, np.inf), np.nextafter(at, -np.inf)]
    anything = draw(st.lists(st.floats() | st.floats(axis.lower, axis.upper), max_size=8))
    return axis, np.concatenate([at, *near, np.array(anything, dtype=float)])


@given(axis_and_values())
@example(
    (
        GridAxis("x", 0.0, 1.0, 10),
        np.array([0.3, 0.1 * 3, 1.0, -0.0, 5e-324, math.inf, -math.inf, math.nan, 1e308, -1e308]),
    )
)
def test_the_kernel_bit_for_bit(case):
    axis, values = case
    before = values.copy()
    got = axis.locate(values)
    assert got.dtype == np.int64
    assert got.tolist() == [
        reference(x, axis.lower, axis.upper, axis.cells) for x in values.tolist()
    ]
    assert values.tobytes() == before.tobytes()


@given(axis_and_values(), st.integers(0, 12))
def test_refinement_is_exact_to_the_last_bit(case, doublings):
    coarse, values = case
    fine = msgspec.structs.replace(coarse, cells=coarse.cells * 2**doublings)
    assert fine.refines(coarse)
    found = fine.locate(values)
    assert np.where(found < 0, -1, found >> doublings).tolist() == coarse.locate(values).tolist()


def test_only_doublings_refine():
    axis = GridAxis("x", 0.0, 1.0, 12)
    assert not axis.refines(GridAxis("x", 0.0, 1.0, 4))
    assert axis.refines(GridAxis("x", 0.0, 1.0, 3))
    assert not axis.refines(GridAxis("x", 0.0, 2.0, 3))
    assert not axis.refines(GridAxis("y", 0.0, 1.0, 3))
    assert not axis.refines(EdgesAxis("x", (0.0, 1.0)))


@given(axes(st.integers(1, 5000)))
def test_printed_edges_increase_and_end_at_the_bounds(axis):
    edges = axis.edges()
    assert (edges[0], edges[-1]) == (axis.lower, axis.upper)
    assume(
        (axis.upper - axis.lower) / axis.cells
        > 4 * np.spacing(max(abs(axis.lower), abs(axis.upper)))
    )
    assert np.all(np.diff(edges) > 0)


NUMBERS_OF_CELLS = [*range(1, 40), *range(40, 400, 17)]
BOXES = [(-180.0, 180.0), (0.0, 1.0), (0.1, 0.7), (-74.3, -73.7), (0.0, 121.0)]


@pytest.mark.parametrize(("lower", "upper"), BOXES)
def test_printed_edges_are_the_kernels_to_rounding(lower, upper):
    slack = 4 * np.spacing(max(abs(lower), abs(upper)))
    for cells in NUMBERS_OF_CELLS:
        axis, own = GridAxis("x", lower, upper, cells), np.arange(cells)
        assert (axis.locate(axis.edges()[:-1] + slack) == own).all()
        assert (axis.locate(axis.edges()[1:] - slack) == own).all()


@pytest.mark.parametrize(("lower", "upper"), BOXES)
def test_a_printed_edge_belongs_to_the_cell_that_it_opens(lower, upper):
    """Cells are half-open, [a, b), as they are printed.

    The kernel and the printed edges agree on the edges themselves.
    """
    wrong = 0
    for cells in NUMBERS_OF_CELLS:
        axis = GridAxis("x", lower, upper, cells)
        wrong += int((axis.locate(axis.edges()[:-1]) != np.arange(cells)).sum())
    assert wrong == 0


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=10, unique=True).map(sorted),
    st.lists(st.floats(), max_size=10),
)
def test_given_edges(edges, values):
    axis = EdgesAxis("x", tuple(edges))
    values = np.array(values + edges)
    for x, cell in zip(values.tolist(), axis.locate(values).tolist(), strict=True):
        if math.isnan(x):
            assert cell == -1
        else:
            assert cell == 0 or edges[cell] <= x
            assert cell == axis.size - 1 or x < edges[cell + 1]


CROWDED = [*np.geomspace(1e-320, 1e99, 40), *np.arange(40) * 5e-324, *(1e15 + np.arange(40) / 8)]


@given(st.lists(st.floats(-1e99, 1e99) | st.sampled_from(CROWDED), min_size=2, max_size=60))
@example([0.0, 0.0, -0.0, 0.0])
@example([1.0, 2.0])
def test_every_value_lies_where_a_binary_search_puts_it(edges):
    """Also beside edges that are many in little room, and beside those that are there twice."""
    edges = np.sort(edges)
    ends = [math.inf, -math.inf, 0.0, -0.0, 1e308, -1e308]
    near = [np.nextafter(edges, math.inf), np.nextafter(edges, -math.inf)]
    values = np.concatenate([edges, *near, ends])
    cells = EdgesAxis("x", tuple(edges.tolist())).locate(values)
    assert cells.dtype == np.int64
    assert cells.tolist() == np.searchsorted(edges[1:-1], values, side="right").tolist()


@pytest.mark.parametrize(
    ("lower", "upper", "step"),
    [
        (0, 1, 0.01),
        (0, 10, 0.1),
        (0, 100, 0.01),
        (0, 1000, 0.01),
        (0.05, 1.05, 0.01),
        (-5, 5, 0.01),
        (-74.3, -73.7, 0.001),
        (0, 121, 1),
    ],
)
def test_decimal_steps_lie_in_the_cells_that_they_open(lower, upper, step):
    """Cents are typed by people and read as doubles.

    Every one lies in its own cell, and the edge printed is the cent itself.
    """
    interval = Interval(lower, upper, step=step)
    axis = grid_axis("x", interval, interval.natural_cells)
    typed = np.array(
        [
            float(Fraction(str(lower)) + i * Fraction(str(step)))
            for i in range(interval.natural_cells)
        ]
    )
    assert (axis.locate(typed) == np.arange(interval.natural_cells)).all()
    assert (axis.locate(axis.edges()[:-1]) == np.arange(interval.natural_cells)).all()
    assert np.abs(axis.edges()[:-1] - typed).max() <= 2 * np.spacing(max(abs(lower), abs(upper)))


def test_hours_of_two_centuries_lie_in_their_own_cells():
    interval = Interval("1900-01-01T00:00", "2100-01-01T00:00", step=3600)
    axis = grid_axis("t", interval, interval.natural_cells)
    hours = np.random.default_rng(1).integers(0, interval.natural_cells, 100_000)
    assert (axis.locate(interval.numbers[0] + hours * 3.6e9) == hours).all()
    assert (axis.locate(interval.numbers[0] + hours * 3.6e9 + 3.59e9) == hours).all()


@pytest.mark.parametrize("cells", [4, 100, 4096])
def test_a_snapping_axis_refines_exactly(cells):
    interval = Interval(0, cells, step=1)
    coarse, fine = grid_axis("x", interval, cells), grid_axis("x", interval, 8 * cells)
    values = np.random.default_rng(2).random(200_000) * cells
    values[:50_000] = np.nextafter(np.round(values[:50_000]), -np.inf)
    assert fine.refines(coarse)
    assert (fine.locate(values) // 8 == coarse.locate(values)).all()


def test_labels_are_looked_up_by_value_and_kind():
    axis = LabelAxis("k", ("a", 1, True, "else"), other=True)
    values = ["a", 1, np.int64(1), True, "b", None, math.nan, 2]
    assert axis.lookup(values).tolist() == [0, 1, 1, 2, 3, -1, -1, 3]
    assert LabelAxis("k", ("a",)).lookup(["b", None, "a"]).tolist() == [-1, -1, 0]


def test_a_lattice_is_the_product_of_its_axes():
    lattice = Lattice((grid_axis("x", Interval(0, 1), 4), LabelAxis("k", ("a", "b"))))
    assert (lattice.shape, lattice.size, lattice.names) == ((4, 2), 8, ("x", "k"))
    assert lattice.refines(Lattice((grid_axis("x", Interval(0, 1), 2), LabelAxis("k", ("a", "b")))))
    assert not lattice.refines(Lattice((grid_axis("x", Interval(0, 1), 2),)))


def test_each_kind_of_axis_says_what_it_is():
    axes = (
        GridAxis("x", 0.0, 1.0, 2),
        EdgesAxis("day", (0.0, 1.0, 31.0), time="day"),
        LabelAxis("k", ("a", 1)),
        KeyAxis("s"),
    )
    assert [axis.kind for axis in axes] == ["number", "date", "label", "key"]
    assert [axis.has_edges for axis in axes] == [True, True, False, False]
    assert [sorted(axis.value_kinds) for axis in axes] == [
        ["boolean", "number"],
        ["time"],
        ["number", "text"],
        ["boolean", "number", "text"],
    ]
    lattice = Lattice(axes)
    assert lattice.grids == axes[:1]
    assert lattice.keyed == {3: "s"}
    assert lattice.public_size == 2 * 2 * 2


def test_cells_are_named():
    assert GridAxis("x", 0.0, 3.0, 3).cell_names() == ["below 1", "1 to 2", "2 and above"]
    assert GridAxis("x", 0.0, 3.0, 1, step=1.0).cell_names() == ["all values"]
    months = EdgesAxis("day", (0.0, 31.0, 59.0), time="day")
    assert months.cell_names() == ["before 1970-02-01", "1970-02-01 and later"]
    days = GridAxis("day", 0.0, 3.0, 3, time="day", step=1.0)
    assert days.cell_names() == ["1970-01-01 and earlier", "1970-01-02", "1970-01-03 and later"]
    weeks = GridAxis("day", 0.0, 21.0, 3, time="day", step=1.0)
    assert weeks.cell_names()[1] == "1970-01-08 to 1970-01-14"
    times = GridAxis("at", 0.0, 3.0, 3, time="microsecond", step=1.0)
    assert times.cell_names() == times.edge_names()
    assert LabelAxis("k", ("a", 1)).cell_names() == ["a", "1"]
    assert KeyAxis("s").cell_names() == []


def test_a_column_of_labels_keeps_their_type_if_they_have_one():
    assert LabelAxis("k", (1, 2)).cell_values() == [1, 2]
    assert LabelAxis("k", (1, "a")).cell_values() == ["1", "a"]
    assert LabelAxis("k", (1, True)).cell_values() == ["1", "True"]
    assert LabelAxis("k", ()).cell_values() == []


@pytest.mark.parametrize("axis", [LabelAxis("k", ("a",)), KeyAxis("s")], ids=lambda axis: axis.kind)
def test_labels_and_keys_have_no_edges(axis):
    with pytest.raises(InternalError):
        axis.edges()
    with pytest.raises(InternalError):
        axis.scale  # noqa: B018


WHOLE = (
    (GridAxis("x", 0.0, 4.0, 4, snap=True, step=1.0), ["0 and below", "1", "2", "3 and above"]),
    (GridAxis("x", -4.0, 5.0, 3, snap=True, step=1.0), ["-2 and below", "-1 to 1", "2 and above"]),
    (GridAxis("x", 0.0, 3e6, 3, step=1.0), ["999999 and below", "1000000 to 1999999"]),
    (EdgesAxis("x", (0.0, 18.0, 19.0, 65.0), step=1.0), ["17 and below", "18", "19 and above"]),
    (EdgesAxis("x", (0.0, 1.5, 3.0, 4.0), step=1.0), ["1 and below", "2", "3 and above"]),
    (BinsAndMissing(GridAxis("x", 0.0, 2.0, 2, step=1.0)), ["0 and below", "1 and above"]),
)


@pytest.mark.parametrize(("axis", "names"), WHOLE)
def test_bins_of_whole_numbers_are_named_by_them(axis, names) -> None:
    assert axis.cell_names()[: len(names)] == names
    assert axis.edge_names() != axis.cell_names()
    # Each number lies in the cell that names it.
    inner = [(at, name) for at, name in enumerate(names) if name.lstrip("-").isdigit()]
    for at, name in inner:
        assert axis.locate(np.array([float(name)])).tolist() == [at]


@pytest.mark.parametrize(
    "axis",
    [
        GridAxis("x", 0.0, 4.0, 4),
        GridAxis("x", 0.5, 4.5, 4, step=1.0),
        GridAxis("x", 0.0, 4.0, 4, step=0.5),
        # A cell without a whole number.
        EdgesAxis("x", (0.0, 1.2, 1.8, 4.0), step=1.0),
        GridAxis("x", 0.0, 4.0, 4, time="microsecond", step=1.0),
    ],
)
def test_other_bins_are_named_by_their_edges(axis) -> None:
    assert axis.whole_names() == []
    assert axis.cell_names() == axis.edge_names()


@given(
    st.integers(-(2**39), 2**39),
    st.sampled_from([1, 2, 3, 24, 1000, 2**26]),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 1005), min_size=1),
    st.sampled_from([None, 1.0]),
)
def test_whole_numbers_lie_in_the_cells_of_their_doubles(lower, cells, values, step):
    axis = GridAxis(
        "x", float(lower), float(lower + cells), cells, snap=step is not None, step=step
    )
    assert axis.holds_whole_numbers
    near = [min(max(lower + value, -(2**63)), 2**63 - 1) for value in values]
    whole = np.array([*values, *near, lower, lower + cells - 1, lower + cells], np.int64)
    assert axis.locate_whole(whole).tolist() == axis.locate(whole.astype(float)).tolist()


@pytest.mark.parametrize(
    "axis",
    [
        GridAxis("x", 0.0, 24.0, 12),
        GridAxis("x", 0.5, 24.5, 24),
        GridAxis("x", 0.0, 2.0**27, 2**27),
        GridAxis("x", 2.0**41, 2.0**41 + 2, 2),
        GridAxis("x", 0.0, 24.0, 24, "day"),
    ],
    ids=str,
)
def test_other_axes_hold_more_than_whole_numbers(axis):
    assert not axis.holds_whole_numbers
