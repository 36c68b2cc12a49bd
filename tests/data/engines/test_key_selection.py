"""Keys are selected where they are counted: on every engine as from the cube of a scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from conformance import reader_contract
from conformance.kinds import people, table
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import CountingReader, count, select, selects, source
from sfumato.data.readers.duckdb import DuckRelation
from sfumato.lattice import KeyAxis, Lattice
from sfumato.mechanisms.key_rules import KeyRule

ROWS = people(400, seed=21)


def in_duckdb(held: pa.Table) -> DuckRelation:
    return DuckRelation(duckdb.connect().from_arrow(held))


ENGINES: dict[str, Callable[[pa.Table], CountingReader]] = {"duckdb": in_duckdb}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("limit", [None, 2])
def test_an_engine_selects_as_it_counts(engine: str, limit: int | None) -> None:
    held = table(ROWS)
    reader_contract.selects_as_it_counts(lambda: ENGINES[engine](held), limit=limit)


MANY_CELLS = Lattice(
    (
        random_tables.grid("price", 2**20),
        KeyAxis("who"),
        *(random_tables.grid(name, 2**20) for name in ("x", "n", "at")),
        random_tables.labels("word"),
    )
)


@pytest.mark.parametrize("engine", ENGINES)
def test_all_engines_show_what_the_rule_shows_of_a_scan(engine: str) -> None:
    """Also of keys beside more cells than one integer packs, and under a limit by cell."""
    held = table(ROWS)
    for lattice in (reader_contract.BY_PERSON, reader_contract.BESIDE, MANY_CELLS):
        needs = Needs(lattice, lattice.public_size)
        src = source(ENGINES[engine](held), reader_contract.PERSONS, name="t")
        cube = count(source(held, reader_contract.PERSONS, name="t"), [needs])[0]
        for rule in reader_contract.RULES_OF_KEYS:
            shown = select(src, needs, rule, key=bytes(32))
            assert reader_contract.laid(shown, lattice) == reader_contract.decided(cube, rule)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "column",
    [
        pa.array([7, 7, -3, 2**62, None] * 30, pa.int64()),
        pa.array([1, 2, 3, 1, None] * 30, pa.int8()),
        pa.array([True, False, None, True, True] * 30),
        pa.array(["", "x", "x\0y", "é", None] * 30),
        pa.array(["a"] * 150).dictionary_encode(),
        pa.array([None] * 150, pa.string()),
    ],
    ids=lambda column: str(column.type),
)
def test_keys_of_every_type(engine: str, column: pa.Array) -> None:
    held = pa.table({"shop": column, "at": np.arange(150) % 3})
    domain = sf.Domain(shop=sf.Keys(), at=sf.Interval(0, 3, step=1))
    for question in (sf.Histogram("shop"), sf.Histogram(["at", "shop"])):
        needs = question.needs(domain)
        cube = count(source(held, domain, name="t"), [needs])[0]
        src = source(ENGINES[engine](held), domain, name="t")
        for rule in reader_contract.RULES_OF_KEYS:
            shown = select(src, needs, rule, key=bytes(32))
            assert reader_contract.laid(shown, needs.lattice) == reader_contract.decided(cube, rule)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "unit",
    [
        {"rows_per_cell": 1},
        {"rows_per_cell": 2, "cells_per_person": 3},
        {"norm_per_person": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("counted", ["rows", "persons"])
def test_limits_by_cell_and_counts_of_persons(
    engine: str, unit: dict[str, int], counted: str
) -> None:
    """What is selected from is what the engine counts, under the same choice."""
    held = table(ROWS).append_column("shop", pa.array([row["word"] for row in ROWS]))
    domain = sf.Domain(**random_tables.DOMAIN, shop=sf.Keys())
    needs = sf.Histogram(["shop", "code"], count=counted).needs(domain)
    src = source(ENGINES[engine](held), domain, person="who", rows_per_person=4, **unit)
    assert selects(src, needs)
    cube = count(src, [needs], key=bytes(32))[0]
    for rule in reader_contract.RULES_OF_KEYS:
        shown = select(src, needs, rule, key=bytes(32))
        assert reader_contract.laid(shown, needs.lattice) == reader_contract.decided(cube, rule)


@pytest.mark.parametrize("engine", ENGINES)
def test_conditions_and_other_columns(engine: str) -> None:
    held = table(ROWS).rename_columns(
        ["shop" if name == "word" else name for name in table(ROWS).column_names]
    )
    domain = sf.Domain(place=sf.Keys(column="shop"), x=sf.Interval(-1.5, 8.5))
    for data in (held, ENGINES[engine](held)):
        src = source(data, domain, name="t", where={"x": (0, 4)})
        with sf.testing.deterministic(3), sf.Publisher(src, budget=sf.ApproxDP(9, "0.1")) as pub:
            release = pub.release(sf.Histogram("place"), epsilon=8, delta="0.05")
        assert release.values.size


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_releases_keys_and_never_gives_the_others(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What leaves the rule is all that is read of the groups: of 3,000 keys, three."""
    shops = ["zoo"] * 500 + ["bar"] * 300 + [f"shop {i}" for i in range(3000)]
    held = pa.table({"shop": shops})
    left: list[int] = []
    shown = KeyRule.shown

    def watched(rule: KeyRule, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = shown(rule, batch)
        left.append(found.num_rows)
        return found

    monkeypatch.setattr(KeyRule, "shown", watched)
    reader = ENGINES[engine](held)
    monkeypatch.setattr(type(reader), "count", None)
    src = source(reader, sf.Domain(shop=sf.Keys()), name="shops")
    seen: list[Any] = []
    for _ in range(2):
        with sf.testing.deterministic(5), sf.Publisher(src, budget=sf.ApproxDP(9, "0.1")) as pub:
            seen.append(pub.release(sf.Histogram("shop"), epsilon=1, delta="1e-6"))
    assert seen[0].cell_names("shop") == ["bar", "zoo"]
    assert seen[0].values.tolist() == seen[1].values.tolist()
    assert sum(left) == 4
