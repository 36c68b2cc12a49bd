"""Axes that are levels of one tree, in a family of tables."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.demo import cities_path
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import LabelAxis, Lattice
from sfumato.questions.tables import trees as uneven
from sfumato.questions.tables.design import estimated
from sfumato.questions.tables.levels import Chains, TreeLevels

TREE = {
    "Germany": {"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]},
    "Norway": {"Oslo": ["Frogner", "Sagene", "Alna"]},
}
LEAVES = ["Munich", "Nuremberg", "Frankfurt", "Frogner", "Sagene", "Alna"]
PLACE = sf.Categories(tree=TREE, levels=["country", "region"], other="elsewhere")
DOMAIN = sf.Domain(place=PLACE, sex=sf.Categories(["f", "m"]), age=sf.Interval(0, 90))
FAMILY = [["country", "sex", "age"], ["region", "age"], ["place"]]


def publisher(rows: int = 3000) -> sf.Publisher:
    rng = np.random.default_rng(4)
    table = pa.table(
        {
            "place": rng.choice([*LEAVES, "Paris"], rows),
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.uniform(0, 90, rows),
        }
    )
    source = sf.source(table, DOMAIN, name="people")
    return sf.Publisher(source, budget=sf.ZCDP("10000"), ledger=None)


def chains() -> Chains:
    names = ["sex", "region", "place", "country"]
    return Chains.of(Lattice(tuple(DOMAIN[name].label_axis(name) for name in names)))


def test_levels_of_a_tree_are_one_chain() -> None:
    found = chains()
    assert found.names == (("sex",), ("country", "region", "place"))
    assert found.levels[1].fanouts == ((3,), (2, 1, 1), (2, 1, 3, 1))
    assert found.finest.names == ("sex", "place")
    assert found.margin(["region", "sex"]) == (1, 2)
    assert found.table((1, 2)) == ("sex", "region")
    assert Chains.stored(found.lattice, found.trees or ()) == found


def test_axes_of_one_column_that_do_not_nest_are_no_levels() -> None:
    one = LabelAxis("one", ("x", "y"), column="c", parts=(("a", "b"), ("c",)))
    two = LabelAxis("two", ("v", "w"), column="c", parts=(("a",), ("b", "c")))
    other = LabelAxis("d", ("a", "b", "c"))
    assert Chains.of(Lattice((one, two, other))).names == (("one",), ("two",), ("d",))
    fewer = LabelAxis("c", ("a", "b"))
    assert Chains.of(Lattice((one, fewer))).names == (("one",), ("c",))
    unlisted = LabelAxis("c", ("a", "b", "c", "else"), other=True)
    assert Chains.of(Lattice((one, unlisted))).names == (("one",), ("c",))


def test_counts_of_margins_are_sums_of_cells() -> None:
    found = chains()
    cells = np.stack(
        [np.random.default_rng(2).integers(0, size, 400) for size in found.finest.shape], axis=1
    )
    dense = Cube.of_cells(found.finest, cells)
    sparse = Cube._sparse(found.finest, cells, np.ones((400, 1), np.int64))
    margins = list(itertools.product(range(2), range(4)))
    of_dense, of_sparse = (found.counts(cube, margins) for cube in (dense, sparse))
    regions = np.array([0, 0, 1, 2, 2, 2, 3])
    assert of_dense[0, 2].reshape(-1).tolist() == np.bincount(regions[cells[:, 1]]).tolist()
    for margin in margins:
        assert np.array_equal(of_dense[margin], of_sparse[margin])
        assert of_dense[margin].sum() == 400


def test_a_family_over_levels_adds_up(tmp_path: Path) -> None:
    release = publisher().release(sf.Tables(FAMILY, bins=3), rho="0.5")
    of_places, of_regions = release["place"].values, release["region"].values
    starts = [0, 2, 3, 6]
    assert np.allclose(np.add.reduceat(of_places, starts), of_regions, atol=1e-9)
    of_countries = np.add.reduceat(of_regions, [0, 2, 3])
    assert np.allclose(of_countries, release["country"].values, atol=1e-9)
    for table in (["country", "age"], ["region", "age"]):
        assert np.allclose(release[table].values.sum(axis=0), release["age"].values, atol=1e-9)
    printed = release["place"].published(), release["region"].published()
    assert np.array_equal(np.add.reduceat(printed[0], starts), printed[1])
    loaded = sf.load(release.save(tmp_path / "family.json"))
    assert np.array_equal(loaded["region", "age"].values, release["region", "age"].values)


def test_counts_are_near_the_truth_at_every_level() -> None:
    release = publisher().release(sf.Tables(FAMILY, bins=3), rho="500")
    for axis in ("country", "region", "place", "sex"):
        histogram = publisher().release(sf.Histogram(axis), rho="500")
        assert np.abs(release[axis].values - histogram.values).max() < 1


def test_names_for_people_keep_the_levels() -> None:
    question = sf.Tables(FAMILY, bins=3, label_names={"Hesse": "Hessen", "Frankfurt": "Main"})
    release = publisher().release(question, rho="0.5")
    people = release.for_people()
    assert np.array_equal(people["region"].values, release["region"].values)
    assert "Hessen" in people["region"].to_frame()["region"].to_pylist()


def test_variances_are_those_of_dense_algebra() -> None:
    """Every estimate is linear in the noise: its variance follows from the matrix itself."""
    release = publisher(10).release(sf.Tables(FAMILY, bins=3), rho="0.5")
    from sfumato.questions.tables.design import estimated

    size = len(release.noisy)
    for table in (["place"], ["region", "age"], ["country", "sex", "age"], []):
        margin = release.chains.margin(table)
        family = release._errors.family
        columns = [
            family.estimate(
                margin, estimated(release.chains.levels, release.measured, unit)
            ).reshape(-1)
            for unit in np.eye(size, dtype=np.int64)
        ]
        matrix = np.array(columns).T
        covariance = np.zeros((size, size))
        at = 0
        for each in release.measured:
            projected = np.eye(1)
            for axis, level in zip(release.chains.levels, each.margin, strict=True):
                identity = np.eye(axis.cells(level))
                own = axis.differences(identity, 0, level) if level else identity
                projected = np.kron(projected, own)
            part = projected @ projected.T * float(each.law.variance)
            covariance[at : at + len(part), at : at + len(part)] = part
            at += len(part)
        dense = np.diag(matrix @ covariance @ matrix.T)
        kinds, places = zip(
            *(axis.kinds(level) for axis, level in zip(release.chains.levels, margin, strict=True)),
            strict=True,
        )
        found = [family.variance_of(margin, paths) for paths in itertools.product(*kinds)]
        laid = np.array(found).reshape([len(kind) for kind in kinds])[np.ix_(*places)]
        assert np.allclose(laid.reshape(-1), dense, rtol=1e-10)


def test_two_levels_of_one_tree_are_no_table() -> None:
    with pytest.raises(sf.UsageError, match="levels of one tree"):
        sf.Tables([["region", "place"]]).needs(DOMAIN)


def test_levels_of_one_tree_connect_tables() -> None:
    assert sf.Tables(["region", ["place", "sex"]]).needs(DOMAIN).lattice.names == ("place", "sex")


@pytest.mark.parametrize(
    "tree",
    [
        TreeLevels(("country", "region"), ((3,), (2, 1))),
        TreeLevels(("country", "region"), ((3,), (4, 0, 0))),
        TreeLevels(("country", "sex"), ((3,), (2, 1, 1))),
        TreeLevels(("country", "region"), ((1, 2), (2, 1, 1))),
    ],
)
def test_levels_that_do_not_fit_their_axes_are_refused(tree: TreeLevels) -> None:
    assert not tree.fits(chains().lattice)


@pytest.mark.parametrize("most_kinds", [uneven.MOST_KINDS, 0], ids=["best", "with even weights"])
def test_variances_of_whole_tables_over_uneven_levels_are_exact(
    most_kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under epsilon whole tables are measured; regions have different numbers of places."""
    monkeypatch.setattr(uneven, "MOST_KINDS", most_kinds)
    rng = np.random.default_rng(1)
    people = pa.table({"place": rng.choice(LEAVES, 9), "sex": ["f"] * 9, "age": [30.0] * 9})
    source = sf.source(people, DOMAIN, name="few")
    with sf.Publisher(source, budget="5", ledger=None) as few:
        release = few.release(sf.Tables(FAMILY, bins=3), epsilon="1")
    assert all(each.whole for each in release.measured)
    levels, family = release.chains.levels, release._errors.family
    units = np.eye(len(release.noisy), dtype=np.int64)
    residuals = [estimated(levels, release.measured, unit) for unit in units]
    laws = [each.law for each in release.measured]
    shapes = [family.nesting.cells(each.margin) for each in release.measured]
    of_draws = np.repeat([law.variance for law in laws], shapes)
    for table in (["place"], ["region"], ["country", "age"], ["sex", "age"], []):
        margin = release.chains.margin(table)
        weights = np.array([family.estimate(margin, of_unit).reshape(-1) for of_unit in residuals])
        dense = of_draws @ weights**2
        found = release._errors.variances(margin).reshape(-1)
        assert np.allclose(found, dense, rtol=1e-10)
        spread = release[table].accuracy().reshape(-1) / np.sqrt(dense)
        assert np.all((spread > 1.7) & (spread < 2.4))


@pytest.mark.deep
@pytest.mark.parametrize("cost", [{"rho": "0.1"}, {"epsilon": "1"}], ids=["rho", "epsilon"])
def test_a_million_cells_of_cities_by_age(
    cost: dict[str, str], evidence: Callable[[str, object], None]
) -> None:
    """Countries and squares of a degree in them, with an age drawn at random for each city."""
    cities = pq.read_table(cities_path())
    degrees = [np.floor(cities[name].to_numpy()).astype(int) for name in ("latitude", "longitude")]
    countries = cities["country"].to_pylist()
    squares = [f"{each} {lat} {lon}" for each, lat, lon in zip(countries, *degrees, strict=True)]
    tree: dict[str, list[str]] = {}
    for country, square in sorted(set(zip(countries, squares, strict=True))):
        tree.setdefault(country, []).append(square)
    ages = np.random.default_rng(7).gamma(4, 10, len(squares))
    domain = sf.Domain(
        square=sf.Categories(tree=tree, levels=["country"]), age=sf.Interval(0, 92, step=1)
    )
    source = sf.source(pa.table({"square": squares, "age": ages}), domain, name="cities")
    budget = sf.ZCDP("1") if "rho" in cost else "1"
    question = sf.Tables([["square", "age"], ["country", "age"], "square"])
    with sf.Publisher(source, budget=budget, ledger=None) as publisher:
        started = time.process_time()
        release = publisher.release(question, **cost)
        answered = time.process_time()
        of_squares, of_countries = (release[name].values for name in ("square", "country"))
        starts = np.cumsum([0, *map(len, tree.values())])[:-1]
        assert np.allclose(np.add.reduceat(of_squares, starts), of_countries, atol=1e-6)
        printed = {name: release[name].published() for name in ("square", "country")}
        rounded = time.process_time()
    assert np.array_equal(np.add.reduceat(printed["square"], starts), printed["country"])
    assert np.array_equal(release["square", "age"].published().sum(axis=1), printed["square"])
    half = release["country"].accuracy()
    counts = np.bincount(np.searchsorted(sorted(tree), countries), minlength=len(tree))
    held = float(np.mean(np.abs(of_countries - counts) <= half))
    assert held > 0.95 - 4 * np.sqrt(0.95 * 0.05 / len(tree))
    evidence(
        f"geography_tables_{next(iter(cost))}",
        {
            "cost": cost,
            "cells": release["square", "age"].values.size,
            "countries": len(tree),
            "squares": len(of_squares),
            "seconds of the processor": {
                "release": answered - started,
                "published()": rounded - answered,
            },
            "peak bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "coverage of countries at 95%": held,
            "half-width of a country": [float(half.min()), float(half.max())],
        },
    )
