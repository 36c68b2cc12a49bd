"""Engines count all that a scan counts: the same cubes where nobody's rows are cut."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from conformance.kinds import KINDS, people, table
from data import random_tables
from sfumato.answers.counts import Needs, Summed
from sfumato.answers.person_values import PersonLattice
from sfumato.cube import Cube
from sfumato.data import count, source
from sfumato.domain import Domain
from sfumato.lattice import EdgesAxis, KeyAxis, Lattice

ROWS = people(300, seed=11)
DOMAIN = Domain({**random_tables.DOMAIN, "word": random_tables.DOMAIN["word"], "who": sf.Keys()})
ENGINES = ("postgres",)
MANY = 10**6

X = random_tables.grid("x", 32)
FLAG = random_tables.grid("flag", 2)
WORD = random_tables.labels("word")
CODE = random_tables.labels("code")
AT = random_tables.grid("at", 2**20)
ROWS_OF_PERSON = EdgesAxis("rows", (1.0, 2.0, 3.0, 8.0, 99.0))
FINE = Lattice((X, random_tables.grid("n", 2**30), random_tables.grid("price", 2**20)))

NEEDS: dict[str, Needs] = {
    "sums": Needs(Lattice((WORD,)), 9, (Summed(X, squares=True), Summed(FLAG))),
    "sums of nothing": Needs(Lattice(()), 1, (Summed(X),)),
    "sparse sums": Needs(FINE, 9, (Summed(X, squares=True),)),
    "large sums": Needs(Lattice((CODE,)), 9, (Summed(random_tables.grid("n", 2**31)),)),
    "keys": Needs(Lattice((KeyAxis("who"), CODE)), 9),
    "keys and sums": Needs(Lattice((CODE, KeyAxis("who"))), 9, (Summed(X),)),
}
OF_PERSONS: dict[str, Needs] = {
    "persons": Needs(Lattice((WORD, CODE)), 9, counted="persons"),
    "persons, sparse": Needs(FINE, 9, counted="persons"),
    "persons, keys": Needs(Lattice((KeyAxis("word"),)), 9, counted="persons"),
    "persons, other cells": Needs(
        Lattice((WORD,)), 9, counted="persons", cells=Lattice((WORD, CODE))
    ),
    "means": Needs(
        Lattice((CODE,)), 9, (Summed(X, squares=True, of_person="mean"),), counted="persons"
    ),
    "totals": Needs(
        Lattice((CODE,)),
        9,
        (
            Summed(X, of_person="sum", onto=PersonLattice(-48, 10, -100, 7, 90)),
            Summed(FLAG, of_person="mean", onto=PersonLattice(-5, 3, 2, 4, 9)),
        ),
        counted="persons",
    ),
    "segments": Needs(
        Lattice((EdgesAxis("total", (0.0, 10.0, 30.0, 99.0)), CODE, KeyAxis("word"))),
        9,
        (
            Summed(
                X,
                of_person="sum",
                onto=PersonLattice(0, 1, 0, 1, 98),
                segments=EdgesAxis("total", (0.0, 10.0, 30.0, 99.0)),
            ),
        ),
        counted="persons",
    ),
    "rows of each": Needs(Lattice((ROWS_OF_PERSON,)), 4, counted="rows of each person"),
    "cells of each": Needs(
        Lattice((ROWS_OF_PERSON,)), 4, counted="cells of each person", cells=Lattice((WORD, CODE))
    ),
    "norm of each": Needs(
        Lattice((ROWS_OF_PERSON,)), 4, counted="norm of each person", cells=Lattice((CODE,))
    ),
    "largest of each": Needs(
        Lattice((ROWS_OF_PERSON,)), 4, counted="largest cell of each person", cells=Lattice((CODE,))
    ),
}
LIMITS: dict[str, dict[str, Any]] = {
    "nobody": {},
    "rows": {"person": "who", "rows_per_person": MANY},
    "period": {"person": ["who", "day"], "rows_per_person": MANY},
    "cells": {"person": "who", "rows_per_cell": MANY, "cells_per_person": MANY},
    "norm": {"person": "who", "norm_per_person": MANY},
    "where": {
        "person": "who",
        "rows_per_person": MANY,
        "where": {"x": (0, 5), "word": ["a", "ß", "else"], "day": (None, "2020-02-01")},
    },
}


@pytest.fixture(scope="module", params=ENGINES)
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return KINDS[request.param](ROWS, tmp_path_factory.mktemp(request.param))


def same(one: Cube, other: Cube, what: str) -> None:
    """Bit for bit; keys without a counted row may be listed or not."""
    assert one.lattice == other.lattice, what
    assert one.summed == other.summed, what
    _same_array(one.counts, other.counts, what)
    _same_array(one.sums, other.sums, what)
    if one.keys:
        assert _with_keys(one) == _with_keys(other), what
    else:
        _same_array(one.coordinates, other.coordinates, what)


def _with_keys(cube: Cube) -> list[list[Any]]:
    assert cube.coordinates is not None
    columns = [column.tolist() for column in cube.coordinates.T]
    for place, name in cube.lattice.keyed.items():
        keys = cube.keys[name].to_pylist()
        assert keys == sorted(set(keys))
        columns[place] = [keys[number] for number in columns[place]]
    return columns


def _same_array(one: Any, other: Any, what: str) -> None:
    assert (one is None) == (other is None), what
    if one is not None:
        assert one.dtype == other.dtype, what
        assert one.tolist() == other.tolist(), what


# Others are under a limit on rows, too, or under limits by cell.
MOST_LIMITS = [
    pytest.param(each, marks=pytest.mark.deep) if each in ("rows", "norm") else each
    for each in LIMITS
]


def needs_under(limits: str) -> dict[str, Needs]:
    return NEEDS if limits == "nobody" else {**NEEDS, **OF_PERSONS}


@cache
def scanned(limits: str) -> list[Cube]:
    src = source(table(ROWS), DOMAIN, **LIMITS[limits])
    return count(src, list(needs_under(limits).values()))


@pytest.mark.parametrize("limits", MOST_LIMITS)
def test_an_engine_counts_what_a_scan_counts(held: Any, limits: str) -> None:
    needs = needs_under(limits)
    own = count(source(held, DOMAIN, **LIMITS[limits]), list(needs.values()))
    for name, one, other in zip(needs, own, scanned(limits), strict=True):
        same(one, other, name)


# --- where rows are cut ---------------------------------------------------------------------------


CUT: list[dict[str, Any]] = [
    {"rows_per_person": 3},
    {"rows_per_person": 4, "rows_per_cell": 1},
    {"rows_per_person": 5, "cells_per_person": 2},
    {"norm_per_person": 2},
    {"rows_per_person": 6, "rows_per_cell": 2, "cells_per_person": 3, "norm_per_person": 3},
]


@pytest.mark.parametrize("limits", CUT)
def test_what_is_kept_of_each_person_is_within_all_limits(held: Any, limits: Any) -> None:
    """In each run; and the same in another order of the rows."""
    lattice = Lattice((KeyAxis("who"), CODE))
    key = bytes(range(32))
    src = source(held, DOMAIN, person="who", **limits)
    (cube,) = count(src, [lattice], key=key)
    (again,) = count(src, [lattice], key=key)
    same(cube, again, "another run")
    full, all_rows = {}, count(source(held, DOMAIN), [lattice])[0]
    for of, into in ((cube, full), (all_rows, every := {})):
        names = of.keys["who"].to_pylist()
        for (who, code), number in zip(of.coordinates.tolist(), of.counts.tolist(), strict=True):
            into.setdefault(names[who], {})[code] = number
    unit = src.unit
    for who, all_counts in every.items():
        kept = full.get(who, {})
        assert all(kept[code] <= all_counts[code] for code in kept)
        assert 1 <= sum(kept.values()) <= unit.rows_per_person
        if unit.by_cell:
            allowed = unit.limits
            assert max(kept.values()) <= allowed.largest_cell(unit.rows_per_person)
            assert len(kept) <= (allowed.cells_per_person or MANY)
            assert sum(n**2 for n in kept.values()) <= (allowed.norm_per_person or MANY) ** 2


PERSONS = 3000


def kept_shares(kind: str, folder: Path, **limits: Any) -> np.ndarray:
    """How many of a person's rows of each kind are kept, by persons who all have the same rows.

    The hash is keyed by the person as well, so persons choose independently.
    """
    blank: dict[str, Any] = dict.fromkeys(random_tables.TYPES)
    words = ["a", "a", "a", "ß", "日本"]
    rows = [
        {**blank, "word": word, "who": f"p{person}"} for person in range(PERSONS) for word in words
    ]
    src = source(KINDS[kind](rows, folder), DOMAIN, person="who", **limits)
    (cube,) = count(src, [Lattice((WORD,))], key=bytes(32))
    return cube.counts[:3] / PERSONS


@pytest.mark.parametrize(
    ("limits", "shares"),
    [
        ({"rows_per_person": 1}, (3 / 5, 1 / 5, 1 / 5)),
        pytest.param(
            {"rows_per_person": 2}, (6 / 5, 2 / 5, 2 / 5), marks=pytest.mark.deep, id="two"
        ),
        ({"rows_per_person": 9, "cells_per_person": 1}, (3 / 3, 1 / 3, 1 / 3)),
        pytest.param(
            {"rows_per_person": 9, "rows_per_cell": 1, "cells_per_person": 3},
            (1, 1, 1),
            marks=pytest.mark.deep,
            id="one in each cell",
        ),
        # Rows are taken until a cell would have two: until the second "a" of a random order.
        ({"rows_per_person": 9, "norm_per_person": 1}, (3 / 5, 1 / 5, 1 / 5)),
    ],
)
@pytest.mark.parametrize("kind", ENGINES)
def test_every_row_is_kept_equally_often(
    limits: Any, shares: tuple[float, ...], kind: str, tmp_path: Path
) -> None:
    """By Hoeffding's inequality, a correct choice is this far off with probability 1e-9.

    The keys are fixed, so no outcome depends on luck.
    """
    found = kept_shares(kind, tmp_path, **limits)
    most = np.array([3, 1, 1])
    assert (np.abs(found - shares) <= most * (np.log(2e9) / (2 * PERSONS)) ** 0.5).all()
