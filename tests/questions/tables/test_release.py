"""Intervals of tables hold as often as they say, one by one and all at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.domain.cube import Cube
from sfumato.privacy.measures import CentralMeasure
from sfumato.questions.tables.asked import named
from sfumato.random import current

DOMAIN = sf.Domain(
    hour=sf.Interval(0, 6, step=1),
    carrier=sf.Categories(list("abcd")),
    origin=sf.Categories(list("xyz")),
)
QUESTION = sf.Tables([["hour", "carrier"], ["carrier", "origin"], "hour"])
COSTS: dict[str, CentralMeasure] = {
    "laplace": sf.PureDP("0.5"),
    "gaussian": sf.ZCDP("0.02"),
    "narrow gaussian": sf.ZCDP("1"),
}


def figures_of(cost: CentralMeasure, trials: int) -> dict[str, list[float]]:
    """How often intervals held, of each table and margin: one by one, and all of it at once."""
    lattice = QUESTION.needs(DOMAIN).lattice
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 40, lattice.size)
    cube = Cube(lattice, counts)
    whole = counts.reshape(lattice.shape)
    tables = [("hour", "carrier"), ("carrier", "origin"), ("hour",), ("carrier",), ()]
    truth = {
        table: whole.sum(axis=tuple(at for at, n in enumerate(lattice.names) if n not in table))
        for table in tables
    }
    held = {table: np.zeros(2) for table in tables}
    every = 0.0
    first = QUESTION.answer(cube, sf.Unit(2), cost, current())
    half = {(t, s): first[t].accuracy("0.95", s) for t in tables for s in (False, True)}
    all_half = first.accuracy("0.95", True)
    asked = np.concatenate([truth[table].reshape(-1) for table in first.tables])
    for _ in range(trials):
        release = QUESTION.answer(cube, sf.Unit(2), cost, current())
        for table in tables:
            error = np.abs(release[table].values - truth[table])
            held[table][0] += np.mean(error <= half[table, False])
            held[table][1] += bool((error <= half[table, True]).all())
        every += bool((np.abs(release.values - asked) <= all_half).all())
    found = {named(table): (held[table] / trials).tolist() for table in tables}
    return found | {"all tables at once": [every / trials]}


def require_coverage(figures: dict[str, list[float]], trials: int, errors: float) -> None:
    """None is lower than 95% by more than some standard errors, and none says nothing.

    Of so few trials only the largest table has enough cells to tell 95% from 99.5% at 1e-9.
    """
    least = 0.95 - errors * (0.95 * 0.05 / trials) ** 0.5
    for name, found in figures.items():
        assert all(each >= least for each in found), name
    of_cells = list(figures) if trials >= 1000 else ["hour x carrier"]
    least_misses = 0.01 if trials >= 1000 else 0.005
    assert all(figures[name][0] < 1 - least_misses for name in of_cells if len(figures[name]) > 1)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
def test_thirty_families(cost: CentralMeasure) -> None:
    require_coverage(figures_of(cost, 30), 30, 9)


@pytest.mark.deep
def test_ten_thousand_families(evidence: Callable[[str, object], None]) -> None:
    found = {name: figures_of(cost, 10_000) for name, cost in COSTS.items()}
    for figures in found.values():
        require_coverage(figures, 10_000, 4)
    evidence("coverage_of_tables", found)


@pytest.mark.parametrize("cost", [COSTS["laplace"], COSTS["gaussian"]], ids=str)
def test_errors_have_the_variances_that_are_stated(cost: CentralMeasure) -> None:
    """The mean square of the errors is the variance, within what so few releases can tell."""
    lattice = QUESTION.needs(DOMAIN).lattice
    cube = Cube(lattice, np.zeros(lattice.size, np.int64))
    squares = dict.fromkeys([("hour", "carrier"), ("carrier", "origin"), ("origin",)], 0.0)
    trials = 100
    for _ in range(trials):
        release = QUESTION.answer(cube, sf.Unit(), cost, current())
        for table in squares:
            squares[table] += float(np.mean(release[table].values ** 2)) / trials
    family = release._errors.family
    for table, square in squares.items():
        stated = family.variance_of(release.chains.margin(table))
        cells = release[table].values.size
        # Independent cells would have this standard error; those of a margin hang together.
        width = 6.5 * (6 / (trials * min(cells, 3))) ** 0.5
        assert abs(square / stated - 1) < width


def test_tables_of_one_axis_in_any_order_have_the_same_errors() -> None:
    lattice = QUESTION.needs(DOMAIN).lattice
    cube = Cube(lattice, np.zeros(lattice.size, np.int64))
    release = QUESTION.answer(cube, sf.Unit(), sf.PureDP(1), current())
    for one, other in itertools.permutations(["hour", "carrier"]):
        half = release[one, other].accuracy()
        assert half.shape == release[one, other].values.shape
        assert np.unique(half).size == 1


def test_variances_are_laid_out_like_values() -> None:
    tree = {"north": ["a", "b", "c"], "south": ["d"]}
    domain = sf.Domain(
        town=sf.Categories(tree=tree, levels=["region"]), sex=sf.Categories(["f", "m"])
    )
    rows = sf.source(pa.table({"town": ["a"], "sex": ["f"]}), domain, name="one")
    question = sf.Tables([["sex", "town"], "region"])
    release = sf.Publisher(rows, budget=sf.ZCDP("1")).release(question, rho="0.001")
    across = release["town", "sex"]
    assert across.variances.shape == across.values.shape == (4, 2)
    np.testing.assert_array_equal(across.variances, release["sex", "town"].variances.T)
    assert release.variances.shape == release.values.shape
    normal = 1.959964 * np.sqrt(release.variances)
    assert (release.accuracy() >= 0.999 * normal).all()
    # The half-widths of a few sums are near the least ones.
    assert (release.accuracy() <= 1.006 * normal).all()


ALONE = sf.Domain(
    ward=sf.Categories(["only"]),
    sex=sf.Categories(["f", "m"]),
    town=sf.Categories(tree={"north": ["a"], "south": ["b"]}, levels=["region"]),
)


@pytest.mark.parametrize("cost", [{"epsilon": "1"}, {"rho": "0.5"}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    "tables",
    [["ward"], [["ward", "sex"], "sex"], [["region", "ward"], ["town", "sex"]]],
    ids=["one cell", "one label", "one town in each region"],
)
def test_an_axis_of_one_label_has_no_residual_and_is_shown(
    tables: list[str | list[str]], cost: dict[str, str]
) -> None:
    rows = pa.table({"ward": ["only"] * 3, "sex": ["f", "m", "m"], "town": ["a", "b", "b"]})
    budget = sf.ZCDP(1) if "rho" in cost else sf.PureDP(1)
    with sf.Publisher(sf.source(rows, ALONE, name="rows"), budget=budget) as publisher:
        release = publisher.release(sf.Tables(tables), **cost)
    sums = [release[table].values.sum() for table in release.tables]
    assert np.allclose(sums, release[()].values)
    assert release.published().shape == release.values.shape
    assert release.to_frame().num_rows
