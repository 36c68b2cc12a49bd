"""What a scan counts of each person, beside plain Python, at every limit on memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from data import random_tables
from sfumato.answers.counts import Needs, Summed
from sfumato.data import Source, count, source
from sfumato.data.priorities import chosen_by
from sfumato.domain.domain import Categories, Domain, Interval, Keys, grid_axis
from sfumato.domain.lattice import EdgesAxis, GridAxis, KeyAxis, LabelAxis, Lattice
from sfumato.errors import DataError, UsageError

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
    """As long as the same columns choose."""
    needs = [PERSONS, Needs(CELLS, 18), Needs(CELLS, 18, (WAGE,)), Needs(WIDE, 1, (WAGE,))]
    together = count(rides(), needs, key=KEY)
    for need, cube in zip(needs, together, strict=True):
        alone = count(rides(), [need], key=KEY, choice=chosen_by(needs))[0]
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


# --- limits by cell -------------------------------------------------------------------------------

LIMITS = [
    {"rows_per_cell": 2},
    {"cells_per_person": 2},
    {"norm_per_person": 2},
    {"rows_per_cell": 1, "cells_per_person": 3},
    {"rows_per_cell": 2, "norm_per_person": 3},
]


def limited(table: pa.Table, rows: int = 4, **limits: int) -> Source:
    return source(table, DOMAIN, person="p", rows_per_person=rows, **limits)  # type: ignore[arg-type]


def without(table: pa.Table, leaver: object) -> pa.Table:
    """The table in which one person's rows name nobody."""
    others = [None if person == leaver else person for person in table["p"].to_pylist()]
    return table.set_column(3, "p", pa.array(others, pa.int64()))


def ids(limits: dict[str, int]) -> str:
    return " ".join(limits)


@pytest.mark.parametrize("limits", LIMITS, ids=ids)
def test_no_person_moves_a_table_by_more_than_the_unit_says(limits: dict[str, int]) -> None:
    """Persons of a small table leave, one or another: in L1, L2 and Linf, of counts and of sums."""
    table = people(300, seed=5)
    # All in two of six cells of x: so that the limits bind.
    table = table.set_column(0, "x", pa.array([0] * 200 + [2] * 100, pa.int64()))
    src = limited(table, 8, **limits)
    needs = [CELLS, Needs(CELLS, 18, (WAGE,))]
    whole = count(src, needs, key=KEY)
    moved = []
    # Each third, and the one with the most rows.
    persons = Counter(person for person in table["p"].to_pylist() if person is not None)
    for leaver, _ in persons.most_common()[::3]:
        left = count(limited(without(table, leaver), 8, **limits), needs, key=KEY)
        for one, other in zip(whole, left, strict=True):
            change = np.abs(one.counts - other.counts)
            moved.append((change.sum(), (change**2).sum(), change.max()))
        assert whole[1].sums is not None
        assert left[1].sums is not None
        wages = np.abs(whole[1].sums[:, 0] - left[1].sums[:, 0])
        assert wages.sum() <= src.unit.sums_l1(99)
        assert (wages**2).sum() <= src.unit.sums_l2_squared(99)
        assert wages.max() <= 99 * src.unit.largest_cell
    most = np.max(moved, axis=0).tolist()
    claimed = [src.unit.counts_l1, src.unit.counts_l2_squared, src.unit.largest_cell]
    assert all(found <= bound for found, bound in zip(most, claimed, strict=True))
    # The limit on rows alone lets a person move more.
    unlimited = limited(table, 8)
    gone = count(unlimited, [CELLS], key=KEY)[0].counts - whole[0].counts
    assert gone.sum() > 0


@MEMORY
@pytest.mark.parametrize("limits", LIMITS, ids=ids)
def test_memory_changes_no_row_that_is_kept(
    memory: str, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = [Needs(CELLS, 18, (WAGE,)), Needs(WIDE, 1, cells=CELLS)]
    monkeypatch.setenv("SFUMATO_MEMORY", "1G")
    wanted = count(limited(PEOPLE, 9, **limits), needs, key=KEY)
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    found = count(limited(PEOPLE, 9, **limits), needs, key=KEY)
    for one, other in zip(wanted, found, strict=True):
        assert random_tables.found(one) == random_tables.found(other)
    assert wanted[0].sums is not None
    assert found[0].sums is not None
    assert wanted[0].sums.tolist() == found[0].sums.tolist()


def test_limits_may_be_about_other_cells_than_those_counted() -> None:
    """At most one row of a person in each kind, however many values of x they have."""
    by_kind = Lattice(CELLS.axes[1:])
    src = source(PEOPLE, DOMAIN, person="p", rows_per_cell=1, cells_per_person=3)
    cube = count(src, [Needs(CELLS, 18, cells=by_kind)])[0]
    kinds = {
        (row["p"], row["kind"])
        for row in PEOPLE.to_pylist()
        if None not in (row["p"], row["kind"], row["x"])
    }
    assert cube.total == len(kinds)


# --- a period -------------------------------------------------------------------------------------


def days(n_rows: int = 900) -> pa.Table:
    draw = np.random.default_rng(2)
    table = people(n_rows, seed=2)
    numbers = draw.integers(0, 5, n_rows).astype(object)
    numbers[draw.random(n_rows) < 0.1] = None
    return table.append_column("day", pa.array(numbers.tolist(), pa.int32()).cast(pa.date32()))


DAYS = days()
RIDER_DAYS = Counter(
    (row["p"], row["day"])
    for row in DAYS.to_pylist()
    if None not in (row["p"], row["day"], row["x"], row["kind"])
)


@MEMORY
@pytest.mark.parametrize("kind", ["integers", "text"])
def test_a_day_is_part_of_the_person(
    memory: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    table = DAYS if kind == "integers" else DAYS.set_column(3, "p", DAYS["p"].cast(pa.string()))
    src = source(table, DOMAIN, person=["p", "day"], rows_per_person=2)
    assert count(src, [CELLS])[0].total == sum(min(2, n) for n in RIDER_DAYS.values())
    several = source(table, DOMAIN, person=["p", "day"], rows_per_person=99)
    numbers = Needs(
        Lattice((EdgesAxis("rows", (1.0, 2.0, 3.0, 99.0)),)), 3, counted="rows of each person"
    )
    of_rows = Counter(
        (row["p"], row["day"]) for row in DAYS.to_pylist() if None not in (row["p"], row["day"])
    )
    sizes = Counter(min(n, 3) for n in of_rows.values())
    assert count(several, [numbers])[0].counts.tolist() == [sizes[1], sizes[2], sizes[3]]


def test_days_in_text_are_read_as_dates(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("p,day,x\n1,2024-03-01,1\n1,2024-03-01,2\n1,2024-03-02,3\n1,soon,4\n1,,5\n")
    src = source(path, Domain(x=DOMAIN["x"]), person=["p", "day"])
    lattice = Lattice((grid_axis("x", DOMAIN["x"], 12),))
    src.require([lattice])
    assert count(src, [lattice])[0].total == 2


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([20240301]), "declares dates"),
        (pa.array(["2024-03-01"]), "declares dates"),
        (pa.array([0], pa.timestamp("us")), "a period is a date"),
    ],
)
def test_a_period_that_is_no_date_is_refused(column: pa.Array, words: str) -> None:
    table = pa.table({"p": [1], "x": [1], "day": column})
    src = source(table, Domain(x=DOMAIN["x"]), person=["p", "day"])
    with pytest.raises(DataError, match=words):
        src.require([Lattice((grid_axis("x", DOMAIN["x"], 12),))])


def test_a_period_that_the_domain_declares_otherwise_is_refused() -> None:
    table = pa.table({"p": [1], "x": [1]})
    src = source(table, Domain(x=DOMAIN["x"]), person=["p", "x"])
    with pytest.raises(UsageError, match="declares it as no dates"):
        src.require([Lattice((grid_axis("x", DOMAIN["x"], 12),))])
