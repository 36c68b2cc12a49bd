"""What a scan counts of each person, beside plain Python, at every limit on memory."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

from data import random_tables
from sfumato.answers.counts import Needs, Summed
from sfumato.data import Source, count, source
from sfumato.domain import Categories, Domain, Interval, Keys, grid_axis
from sfumato.lattice import GridAxis, KeyAxis, LabelAxis, Lattice

KEY = bytes(range(32))
DOMAIN = Domain(
    x=Interval(0, 12, step=1), kind=Categories(["a", "b", "c"]), wage=Interval(0, 100, step=1)
)
CELLS = Lattice((GridAxis("x", 0.0, 12.0, 6), LabelAxis("kind", ("a", "b", "c"))))
WIDE = Lattice((grid_axis("x", DOMAIN["x"], 2**40), grid_axis("wage", DOMAIN["wage"], 2**40)))
WAGE = Summed(grid_axis("wage", DOMAIN["wage"], 100), squares=True)
PERSONS = Needs(CELLS, CELLS.size, counted="persons")
MEMORY = pytest.mark.parametrize("memory", ["1", "20K", "1G"])
Row = dict[str, object]


def people(n_rows: int = 4000, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    columns = {
        "x": draw.integers(0, 12, n_rows),
        "kind": draw.choice(["a", "b", "c"], n_rows),
        "wage": draw.integers(0, 100, n_rows),
        "p": draw.zipf(1.5, n_rows).clip(max=300),
    }
    holed = {name: column.astype(object) for name, column in columns.items()}
    for column in holed.values():
        column[draw.random(n_rows) < 0.05] = None
    return pa.table({name: pa.array(column.tolist()) for name, column in holed.items()})


PEOPLE = people()


def rides(table: pa.Table = PEOPLE, limit: int = 3) -> Source:
    return source(table, DOMAIN, person="p", rows_per_person=limit)


def cells_of_persons(table: pa.Table) -> dict[object, set[tuple[int, ...]]]:
    """The cells in which each person has a row."""
    own: dict[object, list[Row]] = defaultdict(list)
    for row in table.to_pylist():
        if row["p"] is not None:
            own[row["p"]].append(row)
    return {person: set(random_tables.expected(rows, CELLS)) for person, rows in own.items()}


# --- persons --------------------------------------------------------------------------------------


@MEMORY
def test_every_person_is_counted_once_in_each_cell(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    found = count(rides(limit=18), [PERSONS])[0]
    cells = Counter(cell for own in cells_of_persons(PEOPLE).values() for cell in own)
    assert random_tables.found(found) == dict(cells)


@MEMORY
@pytest.mark.parametrize("kind", ["integers", "text"])
def test_persons_in_more_cells_are_counted_in_as_many_as_the_limit(
    memory: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    table = PEOPLE
    if kind == "text":
        table = PEOPLE.set_column(3, "p", PEOPLE["p"].cast(pa.string()))
    cube = count(rides(table), [PERSONS], key=KEY)[0]
    assert cube.total == sum(min(3, len(own)) for own in cells_of_persons(PEOPLE).values())
    monkeypatch.setenv("SFUMATO_MEMORY", "1G")
    assert random_tables.found(cube) == random_tables.found(
        count(rides(table), [PERSONS], key=KEY)[0]
    )


def test_the_order_of_rows_changes_no_count_of_persons() -> None:
    order = np.random.default_rng(1).permutation(len(PEOPLE))
    one, other = (
        count(rides(table), [PERSONS], key=KEY)[0] for table in (PEOPLE, PEOPLE.take(order))
    )
    assert one.counts.tolist() == other.counts.tolist()


def test_another_key_chooses_other_cells() -> None:
    one, other = (count(rides(), [PERSONS], key=key)[0] for key in (KEY, bytes(32)))
    assert one.counts.tolist() != other.counts.tolist()


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_person_moves_persons_by_more_than_the_unit_says(limit: int) -> None:
    """Each person of a small table leaves; in L1, L2 and Linf."""
    table = people(150, seed=5)
    whole = count(rides(table, limit), [PERSONS], key=KEY)[0].counts
    unit = rides(table, limit).unit.counting_persons(limit)
    moved = []
    for leaver in set(cells_of_persons(table)):
        staying = table.filter(pa.array([person != leaver for person in table["p"].to_pylist()]))
        change = np.abs(whole - count(rides(staying, limit), [PERSONS], key=KEY)[0].counts)
        moved.append((change.sum(), (change**2).sum(), change.max()))
    most = np.max(moved, axis=0)
    # Somebody is in as many cells as the limit allows, so all three are reached.
    assert most.tolist() == [unit.counts_l1, unit.counts_l2_squared, unit.largest_cell]
    assert most.tolist() == [limit, limit, 1]


def test_persons_by_key_are_counted() -> None:
    domain = Domain(shop=Keys())
    needs = Needs(Lattice((KeyAxis("shop"),)), 1, counted="persons")
    table = pa.table({"shop": ["x", "x", "y", "x", None], "p": [1, 1, 1, 2, 3]})
    cube = count(source(table, domain, person="p", rows_per_person=9), [needs])[0]
    shown = dict(zip(cube.keys["shop"].to_pylist(), cube.counts.tolist(), strict=True))
    assert shown == {"x": 2, "y": 1}


# --- sums -----------------------------------------------------------------------------------------


def sums_in_plain_python(rows: list[Row], lattice: Lattice) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        wage = row["wage"]
        if isinstance(wage, int):
            for cell in random_tables.expected([row], lattice):
                found[cell] = [
                    a + b for a, b in zip(found[cell], (1, wage, wage * wage), strict=True)
                ]
    return dict(found)


@pytest.mark.parametrize("lattice", [CELLS, WIDE], ids=["dense", "sparse"])
@pytest.mark.parametrize("bounded", [False, True])
@MEMORY
def test_values_are_added_up_beside_the_counts(
    memory: str, bounded: bool, lattice: Lattice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    src = rides(limit=10**6) if bounded else source(PEOPLE, DOMAIN)
    plain, cube = count(src, [CELLS, Needs(lattice, 1, (WAGE,))])
    assert plain.sums is None
    assert cube.sums is not None
    rows = [row for row in PEOPLE.to_pylist() if not bounded or row["p"] is not None]
    wanted = sums_in_plain_python(rows, lattice)
    counts = random_tables.found(cube)
    assert counts == {cell: numbers[0] for cell, numbers in wanted.items()}
    occupied = cube.sums[cube.counts > 0]
    cells = sorted(wanted)
    assert occupied.tolist() == [wanted[cell][1:] for cell in cells]


@MEMORY
def test_bounded_persons_add_the_values_of_the_rows_that_are_counted(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value is in its own cell: so count and sum must agree there, whichever rows are kept."""
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    by_wage = Lattice((grid_axis("wage", DOMAIN["wage"], 100),))
    cube = count(rides(limit=2), [Needs(by_wage, 100, (WAGE,))])[0]
    own = Counter(row["p"] for row in PEOPLE.to_pylist() if None not in (row["p"], row["wage"]))
    assert cube.total == sum(min(2, number) for number in own.values())
    assert cube.sums is not None
    wages = np.arange(100)
    assert cube.sums[:, 0].tolist() == (cube.counts * wages).tolist()
    assert cube.sums[:, 1].tolist() == (cube.counts * wages**2).tolist()


def test_a_need_counts_the_same_alone_and_beside_others() -> None:
    needs = [PERSONS, Needs(CELLS, 18), Needs(CELLS, 18, (WAGE,)), Needs(WIDE, 1, (WAGE,))]
    together = count(rides(), needs, key=KEY)
    for need, cube in zip(needs, together, strict=True):
        alone = count(rides(), [need], key=KEY)[0]
        assert alone.counts.tolist() == cube.counts.tolist()
        assert (alone.sums is None) == (cube.sums is None)
        if alone.sums is not None and cube.sums is not None:
            assert alone.sums.tolist() == cube.sums.tolist()


def test_sums_by_key_stand_beside_their_keys() -> None:
    domain = Domain(shop=Keys(), wage=DOMAIN["wage"])
    table = pa.table({"shop": ["y", "x", "y", "z"], "wage": [3, 50, 4, None]})
    needs = Needs(Lattice((KeyAxis("shop"),)), 1, (WAGE,))
    cube = count(source(table, domain), [needs])[0]
    assert cube.sums is not None
    keys = cube.keys["shop"].to_pylist()
    assert cube.coordinates is not None
    found = {
        keys[place]: (n, *sums)
        for (place,), n, sums in zip(
            cube.coordinates.tolist(), cube.counts.tolist(), cube.sums.tolist(), strict=True
        )
    }
    assert found == {"x": (1, 50, 2500), "y": (2, 7, 25)}
