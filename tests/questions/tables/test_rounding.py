"""Rounded tables are whole, non-negative, agree exactly, and are near their estimates."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from questions.tables.families import assert_adds_up, finest, noisy_family, pairs, tree
from sfumato.answers.loading import stored_releases
from sfumato.basics.structs import to_bytes
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import LabelAxis, Lattice
from sfumato.errors import Infeasible
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit
from sfumato.questions.tables.levels import Nesting
from sfumato.questions.tables.question import Tables
from sfumato.questions.tables.release import TablesRelease
from sfumato.questions.tables.rounding import rounded
from sfumato.random.bits import current
from sfumato.testing import deterministic


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_random_families_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [tree(np.cumsum(rng.integers(1, 4, rng.integers(1, 3))).tolist()) for _ in range(4)]
    nesting = Nesting(tuple(sizes[: rng.integers(1, 5)]))
    everything = list(itertools.product(*(range(level + 1) for level in finest(nesting))))
    chosen = rng.permutation(len(everything))[: rng.integers(1, 6)]
    tables = [everything[place] for place in chosen]
    found = rounded(
        noisy_family(nesting, tables, mean=float(rng.choice([0, 1, 40])), seed=seed), nesting
    )
    assert list(found) == tables
    assert_adds_up(found, nesting)


FAMILIES = {
    "pairs": (Nesting.plain([5, 6, 7]), pairs(3)),
    "ten binary axes": (Nesting.plain([2] * 10), pairs(10)),
    "one table": (Nesting.plain([6, 5, 4]), [(1, 1, 1)]),
    "places": (Nesting((tree([2, 6, 20]), tree([8]))), [(1, 1), (2, 0), (3, 1)]),
    "triples that share": (
        Nesting.plain([4, 3, 2, 3, 3]),
        [(1, 1, 1, 0, 0), (0, 1, 1, 1, 0), (0, 0, 1, 1, 1)],
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_that_is_not_negative_moves_by_less_than_two(name: str) -> None:
    """Nothing is clipped, so the distance is that of rounding: of the cell, and of its margins."""
    nesting, tables = FAMILIES[name]
    family = noisy_family(nesting, tables, mean=0, noise=0.2, shift=50, seed=3)
    found = rounded(family, nesting)
    assert_adds_up(found, nesting)
    for table in tables:
        assert np.abs(found[table] - family[table]).max() < 2


@pytest.mark.parametrize("name", FAMILIES)
def test_whole_non_negative_families_stay_as_they_are(name: str) -> None:
    nesting, tables = FAMILIES[name]
    full = finest(nesting)
    counts = np.random.default_rng(1).integers(0, 30, nesting.shape(full)).astype(float)
    family = {table: nesting.margin(counts, full, table) for table in tables}
    for table, values in rounded(family, nesting).items():
        np.testing.assert_array_equal(values, family[table])


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("shift", "noise"), [(-100, 3), (-1, 3), (0, 3), (1, 1e7)])
def test_families_of_noise_add_up(name: str, shift: float, noise: float) -> None:
    """A negative total becomes 0, and with it everything."""
    nesting, tables = FAMILIES[name]
    family = noisy_family(nesting, tables, mean=0, noise=noise, shift=shift, seed=8)
    found = rounded(family, nesting)
    assert_adds_up(found, nesting)
    total = max(0, round(float(next(iter(family.values())).sum())))
    assert all(values.sum() == total for values in found.values())


def test_zeros_one_cell_and_huge_counts_add_up() -> None:
    nesting = Nesting.plain([4, 3, 5])
    tables = pairs(3)
    zeros = {table: np.zeros(nesting.shape(table)) for table in tables}
    assert all(not values.any() for values in rounded(zeros, nesting).values())
    one = np.zeros((4, 3, 5))
    one[2, 1, 3] = 7.4
    lonely = {table: nesting.margin(one, (1, 1, 1), table) for table in tables}
    found = rounded(lonely, nesting)
    assert found[1, 1, 0][2, 1, 0] == found[0, 1, 1].sum() == 7
    huge = noisy_family(nesting, tables, mean=1e12, noise=1e11)
    assert_adds_up(rounded(huge, nesting), nesting)


def test_axes_of_one_cell_and_tables_of_no_axis_are_rounded() -> None:
    nesting = Nesting.plain([1, 3])
    family = noisy_family(nesting, [(0, 0), (1, 0), (1, 1)], mean=20)
    assert_adds_up(rounded(family, nesting), nesting)


def test_the_same_estimates_give_the_same_integers() -> None:
    nesting, tables = FAMILIES["pairs"]
    family = noisy_family(nesting, tables)
    one, other = rounded(family, nesting), rounded(family, nesting)
    assert all((one[table] == other[table]).all() for table in tables)


def test_a_table_that_is_asked_is_near_though_a_larger_one_is_asked_too() -> None:
    """The three pairs of axes cannot all be met before the table of all; the third is fitted."""
    nesting = Nesting.plain([6, 7, 8])
    tables = [*pairs(3), (1, 1, 1)]
    family = noisy_family(nesting, tables, mean=2, noise=3, seed=5)
    found = rounded(family, nesting)
    assert_adds_up(found, nesting)
    alone = rounded({(0, 1, 1): family[0, 1, 1]}, nesting)[0, 1, 1]
    off = np.abs(found[0, 1, 1] - alone)
    assert np.sqrt((off**2).mean()) < 2.5


def test_triples_that_share_every_pair_add_up_by_their_joint_table() -> None:
    nesting = Nesting.plain([4, 5, 3, 4])
    tables = [table for table in itertools.product((0, 1), repeat=4) if sum(table) == 3]
    family = noisy_family(nesting, tables, mean=30, noise=1, seed=5)
    found = rounded(family, nesting)
    assert_adds_up(found, nesting)
    for table in tables:
        assert np.sqrt(np.mean((found[table] - family[table]) ** 2)) < 3


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_public_totals_are_kept_whatever_the_estimates_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [tree(np.cumsum(rng.integers(1, 4, rng.integers(1, 3))).tolist()) for _ in range(3)]
    nesting = Nesting(tuple(sizes))
    full = finest(nesting)
    everything = list(itertools.product(*(range(level + 1) for level in full)))
    chosen = [everything[place] for place in rng.permutation(len(everything))[:5]]
    counts = rng.poisson(2, nesting.shape(full))
    known = {table: nesting.margin(counts, full, table) for table in chosen[:2]}
    found = rounded(noisy_family(nesting, chosen[1:], seed=seed), nesting, known=known)
    assert_adds_up({**found, **known}, nesting)


def test_a_family_without_an_order_is_refused_by_its_sizes() -> None:
    nesting = Nesting.plain([40] * 4)
    tables = [table for table in itertools.product((0, 1), repeat=4) if sum(table) == 3]
    family = {table: np.zeros(nesting.shape(table)) for table in tables}
    with pytest.raises(Infeasible, match="no whole numbers may agree in all"):
        rounded(family, nesting)


def test_rounding_brings_total_error_down_not_up_where_counts_are_small() -> None:
    """What it does to accuracy: less squared error over the table, and a bias in small cells."""
    nesting = Nesting.plain([30, 40])
    rng = np.random.default_rng(6)
    truth = rng.poisson(0.2, (30, 40))
    noisy = truth + rng.normal(0, 4, truth.shape)
    found = rounded({(1, 1): noisy}, nesting)[1, 1]
    assert ((found - truth) ** 2).mean() < 0.5 * ((noisy - truth) ** 2).mean()
    assert found[truth == 0].mean() > truth[truth == 0].mean()


# --- of a release ---------------------------------------------------------------------------------


def answered(truth: np.ndarray, tables: list[list[str]], rho: str = "0.02") -> TablesRelease:
    """The answer to tables over axes a, b, c of so many cells."""
    axes = tuple(
        LabelAxis(name, tuple(f"{name}{cell}" for cell in range(size)))
        for name, size in zip("abc", truth.shape, strict=False)
    )
    cube = Cube(Lattice(axes), truth.reshape(-1))
    return Tables(tables).answer(cube, Unit(), ZCDP(rho), current())


def test_a_release_has_whole_numbers_like_its_values() -> None:
    truth = np.random.default_rng(1).poisson(3, (4, 5, 3))
    release = answered(truth, [["a", "b"], ["c", "b"], "a"])
    whole = release.published()
    assert whole.dtype == np.int64
    assert whole.shape == release.values.shape
    assert whole.min() >= 0
    crossed, other = release["b", "a"].published(), release["b", "c"].published()
    assert crossed.shape == (5, 4)
    np.testing.assert_array_equal(crossed.sum(axis=1), other.sum(axis=1))
    np.testing.assert_array_equal(crossed.sum(axis=0), release["a"].published())
    assert release[()].published() == crossed.sum() == release["c"].published().sum()
    np.testing.assert_array_equal(crossed.T.reshape(-1), whole[:20])
    # They are a function of what was released: a saved release has the same.
    np.testing.assert_array_equal(stored_releases(to_bytes([release]))[0].published(), whole)


def test_the_total_of_one_table_is_rounded() -> None:
    release = answered(np.array([7, 9]), [["a"], []], rho="50")
    assert release[()].published().tolist() == 16


def test_tables_that_cannot_all_be_rounded_are_refused_by_name() -> None:
    tables = [table for table in itertools.product((0, 1), repeat=4) if sum(table) == 3]
    family = {table: np.zeros((1,) * 4) for table in tables}
    with pytest.raises(Infeasible, match=r"published\(\) of w x x, x x y"):
        rounded(family, Nesting.plain([40] * 4), ["w x x", "x x y"])


def test_published_numbers_are_as_near_the_truth_as_they_say() -> None:
    """Of 40 releases of 25 numbers each; their half-widths are conservative."""
    truth = np.random.default_rng(1).poisson(1.0, (4, 5))
    held, together = [], []
    with deterministic(5):
        for _ in range(40):
            release = answered(truth, [["a", "b"], "b"], rho="0.05")
            expected = np.concatenate([truth.reshape(-1), truth.sum(axis=0)])
            off = np.abs(release.published() - expected)
            held.append(off <= release.published_accuracy("0.9"))
            together.append((off <= release.published_accuracy("0.9", simultaneous=True)).all())
            assert (release.published_accuracy() >= 0).all()
            # Also where the interval of an estimate lies below 0, nothing is said to be exact.
            assert (release.published_accuracy("0.5") > 0).all()
    assert np.mean(held, axis=0).min() > 0.9 - 4 * np.sqrt(0.9 * 0.1 / 40)
    assert np.mean(together) > 0.9 - 4 * np.sqrt(0.9 * 0.1 / 40)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("nesting", "tables"),
    [
        (Nesting.plain([1000, 1000, 5]), pairs(3)),
        (Nesting((tree([10, 100, 5000]), tree([100]), tree([2]))), [(3, 1, 1), (2, 1, 0)]),
    ],
)
def test_a_million_cells_add_up(nesting: Nesting, tables: list[tuple[int, ...]]) -> None:
    family = noisy_family(nesting, tables)
    assert_adds_up(rounded(family, nesting), nesting)


@pytest.mark.deep
def test_ten_million_cells_of_places_by_age_and_sex(
    evidence: Callable[[str, object], None],
) -> None:
    command = [sys.executable, "-m", "tables.large"]
    paths = os.pathsep.join(["src", "tests", *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    figures = json.loads(done.stdout)
    evidence("published_tables", figures)
    assert figures["peak bytes"] < 2 * 2**30
    for figure in figures["tables"].values():
        estimate = figure["rms error of the estimates"]
        assert figure["rms error of the whole numbers"] < 1.5 * estimate
