"""Values of persons beside plain Python: nulls, NaN, text, days, limits, memory, order, formats."""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import random_tables
from sfumato.answers.counts import Needs, PersonLattice, PersonStatistic, Summed
from sfumato.data import count, source
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval, Keys, grid_axis
from sfumato.domain.lattice import EdgesAxis, GridAxis, KeyAxis, LabelAxis, Lattice

KEY = bytes(range(32))
ALL = 10**6  # cells: more than any person has
DOMAIN = Domain(
    x=Interval(0, 12, step=1), kind=Categories(["a", "b", "c"]), wage=Interval(-10, 90, step=0.5)
)
CELLS = Lattice((GridAxis("x", 0.0, 12.0, 6), LabelAxis("kind", ("a", "b", "c"))))
SPARSE = Lattice((grid_axis("x", DOMAIN["x"], 2**40), grid_axis("wage", DOMAIN["wage"], 2**40)))
ROWS = grid_axis("wage", DOMAIN["wage"], 200)
# In units of a quarter: rows start at -10 with steps of 1/2.
MEANS = PersonLattice(row_start=-40, row_step=2, start=-40, step=1, most=398)
SUMS = PersonLattice(row_start=-40, row_step=2, start=-80, step=3, most=150)
SUMMED = (
    Summed(ROWS, squares=True, of_person="mean", onto=MEANS),
    Summed(ROWS, of_person="sum", onto=SUMS),
    Summed(ROWS, of_person="mean"),
)
MEMORY = pytest.mark.parametrize("memory", ["1", "20K", "1G"])
PERSONS = pytest.mark.parametrize("person", ["p", "text", ["p", "day"], ["text", "day"]], ids=str)
Person = str | list[str]
Row = dict[str, object]
Cell = tuple[int, ...]


def people(n_rows: int = 1500, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    wages = draw.integers(-30, 200, n_rows) / 2
    wages[draw.random(n_rows) < 0.02] = math.nan
    columns = {
        "x": draw.integers(0, 12, n_rows),
        "kind": draw.choice(["a", "b", "c"], n_rows),
        "wage": wages,
        "p": draw.zipf(1.4, n_rows).clip(max=60),
        "day": draw.integers(0, 3, n_rows),
    }
    holed = {name: column.astype(object) for name, column in columns.items()}
    for column in holed.values():
        column[draw.random(n_rows) < 0.04] = None
    table = pa.table({name: pa.array(column.tolist()) for name, column in holed.items()})
    days = table["day"].cast(pa.int32()).cast(pa.date32())
    texts = pa.array([None if p is None else f"person {p}" for p in table["p"].to_pylist()])
    return table.set_column(4, "day", days).append_column("text", texts)


PEOPLE = people()


def needs(lattice: Lattice = CELLS, summed: tuple[Summed, ...] = SUMMED) -> Needs:
    return Needs(lattice, 1, summed, counted="persons")


def counted(
    table: object, need: Needs, person: Person = "p", limit: int = ALL, name: str | None = None
) -> Cube:
    src = source(table, DOMAIN, person=person, rows_per_person=limit, name=name)
    return count(src, [need], key=KEY)[0]


def as_dict(cube: Cube) -> dict[Cell, list[int]]:
    """Of each cell the number of persons, then the sums."""
    counts = random_tables.found(cube)
    assert cube.sums is not None
    sums = cube.sums[cube.counts > 0].tolist()
    found = zip(sorted(counts.items()), sums, strict=True)
    return {cell: [number, *added] for (cell, number), added in found}


# --- plain Python ---------------------------------------------------------------------------------


def rows_by_person(table: pa.Table, person: Person) -> dict[Cell, list[Row]]:
    columns = [person] if isinstance(person, str) else person
    found = defaultdict(list)
    for row in table.to_pylist():
        who = tuple(row[column] for column in columns)
        wage = row["wage"]
        if None not in who and isinstance(wage, float) and not math.isnan(wage):
            found[who].append(row)
    return dict(found)


def number(lattice: PersonLattice, statistic: PersonStatistic, steps: list[int]) -> int:
    value = Fraction(sum(lattice.row_start + lattice.row_step * k for k in steps))
    if statistic == "mean":
        value /= len(steps)
    nearest = math.floor((value - lattice.start) / lattice.step + Fraction(1, 2))
    return min(max(nearest, 0), lattice.most)


def added(steps: list[int]) -> list[int]:
    """What a person adds to a cell: one, then the sums."""
    mean = number(MEANS, "mean", steps)
    plain = number(PersonLattice(0, 1, 0, 1, 199), "mean", steps)
    return [1, mean, mean**2, number(SUMS, "sum", steps), plain]


def in_plain_python(
    table: pa.Table, person: Person, lattice: Lattice, limit: int
) -> dict[Cell, list[int]]:
    found: dict[Cell, list[int]] = defaultdict(lambda: [0] * 5)
    for own in rows_by_person(table, person).values():
        by_cell: dict[Cell, list[int]] = defaultdict(list)
        for row in own:
            wage = row["wage"]
            assert isinstance(wage, float)
            step = math.floor(min(max((wage + 10) * 2, 0), 199))
            for cell in random_tables.expected([row], lattice):
                by_cell[cell].append(step)
        for cell in chosen(table, person, lattice, own, limit) if limit < ALL else by_cell:
            found[cell] = [a + b for a, b in zip(found[cell], added(by_cell[cell]), strict=True)]
    return dict(found)


def chosen(
    table: pa.Table, person: Person, lattice: Lattice, own: list[Row], limit: int
) -> set[Cell]:
    """The cells in which this person alone would be counted by a histogram of persons."""
    alone = pa.Table.from_pylist(own, table.schema)
    need = Needs(lattice, 1, counted="persons")
    return set(random_tables.found(counted(alone, need, person, limit)))


@MEMORY
@PERSONS
@pytest.mark.parametrize("lattice", [CELLS, SPARSE], ids=["dense", "sparse"])
def test_each_person_adds_one_number_to_a_cell(
    memory: str, person: Person, lattice: Lattice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    found = as_dict(counted(PEOPLE, needs(lattice), person))
    assert found == in_plain_python(PEOPLE, person, lattice, ALL)


@MEMORY
@pytest.mark.parametrize("person", ["text", ["p", "day"]], ids=str)
@pytest.mark.parametrize("limit", [1, 2])
def test_persons_in_more_cells_are_counted_where_a_histogram_counts_them(
    memory: str, person: Person, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the person's rows in these cells are added up, however many they are."""
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    found = as_dict(counted(PEOPLE, needs(), person, limit))
    assert found == in_plain_python(PEOPLE, person, CELLS, limit)


HOLED_ROWS = st.fixed_dictionaries(
    {
        "x": st.none() | st.integers(-1, 13),
        "kind": st.sampled_from(["a", "b", "c", "z", None]),
        "wage": st.none()
        | st.sampled_from([math.nan, math.inf, -math.inf, -0.0])
        | st.integers(-50, 250).map(lambda halves: halves / 2),
        "p": st.none() | st.integers(0, 3),
        "day": st.none() | st.dates(dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
        "text": st.sampled_from([None, "", "one", "two", "ßth"]),
    }
)


@given(
    rows=st.lists(HOLED_ROWS, max_size=40),
    person=st.sampled_from(["p", "text", ["p", "day"], ["text", "day"]]),
    limit=st.sampled_from([1, 2, ALL]),
    batch=st.integers(1, 40),
    memory=st.sampled_from(["1", "1G"]),
)
def test_any_table_is_added_up_as_in_plain_python(
    rows: list[Row], person: Person, limit: int, batch: int, memory: str
) -> None:
    table = pa.Table.from_pylist(rows, PEOPLE.schema)
    wanted = in_plain_python(table, person, CELLS, limit)
    batches = pa.Table.from_batches(table.to_batches(max_chunksize=batch), table.schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_MEMORY", memory)
        assert as_dict(counted(batches, needs(), person, limit)) == wanted


@MEMORY
@pytest.mark.parametrize("limit", [1, ALL])
def test_persons_may_be_counted_by_their_number(
    memory: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each person is counted in the segment of their mean: a clip can then be chosen."""
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    segments = EdgesAxis("wage", (0.0, 100.0, 130.0, 250.0, 398.0))
    by_segment = Lattice((*CELLS.axes, segments))
    summed = Summed(ROWS, squares=True, of_person="mean", onto=MEANS, segments=segments)
    cube = counted(PEOPLE, needs(by_segment, (summed,)), "text", limit)
    assert cube.lattice == by_segment
    assert cube.sums is not None
    # The cells of rows alone bound a person: a segment is no cell of its own.
    plain = counted(PEOPLE, needs(summed=SUMMED[:1]), "text", limit)
    assert plain.sums is not None
    assert cube.counts.reshape(-1, 4).sum(axis=1).tolist() == plain.counts.tolist()
    sums = cube.sums.reshape(-1, 4, 2)
    assert sums.sum(axis=1).tolist() == plain.sums.tolist()
    counts = cube.counts.reshape(-1, 4)
    assert (sums[:, 1, 0] >= 100 * counts[:, 1]).all()
    assert (sums[:, 1, 0] <= 129 * counts[:, 1]).all()
    assert (sums[:, 2, 0] >= 130 * counts[:, 2]).all()
    assert counts.sum(axis=0).min() > 0


# --- what must change nothing ---------------------------------------------------------------------


def test_neither_order_nor_batches_change_anything() -> None:
    wanted = as_dict(counted(PEOPLE, needs(), limit=2))
    shuffled = PEOPLE.take(np.random.default_rng(1).permutation(len(PEOPLE)))
    assert as_dict(counted(shuffled, needs(), limit=2)) == wanted
    in_batches = pa.Table.from_batches(shuffled.to_batches(max_chunksize=7))
    assert as_dict(counted(in_batches, needs(), limit=2)) == wanted


def test_other_persons_change_nothing() -> None:
    own = [row for row in PEOPLE.to_pylist() if row["p"] == 1]
    others = [row for row in PEOPLE.to_pylist() if row["p"] != 1]
    alone, rest, together = (
        counted(pa.Table.from_pylist(rows, PEOPLE.schema), needs(), limit=3)
        for rows in (own, others, [*others, *own])
    )
    assert together.counts.tolist() == (alone.counts + rest.counts).tolist()
    assert (together.sums == alone.sums + rest.sums).all()  # type: ignore[operator]


def test_a_need_counts_the_same_beside_others() -> None:
    plain = Needs(CELLS, 1, counted="persons")
    src = source(PEOPLE, DOMAIN, person="p", rows_per_person=3)
    together = count(src, [needs(), plain, CELLS], key=KEY)
    assert as_dict(together[0]) == as_dict(count(src, [needs()], key=KEY)[0])
    assert together[1].sums is None


def parquet(table: pa.Table, folder: Path) -> object:
    pq.write_table(table, folder / "people.parquet", row_group_size=37)
    return folder / "people.parquet"


def csv(table: pa.Table, folder: Path) -> object:
    pa.csv.write_csv(table, folder / "people.csv")
    return folder / "people.csv"


def several_files(table: pa.Table, folder: Path) -> object:
    for part in range(3):
        pq.write_table(table.slice(part * 600, 600), folder / f"part{part}.parquet")
    return str(folder / "part*.parquet")


def polars(table: pa.Table, folder: Path) -> object:
    return pytest.importorskip("polars").from_arrow(table)


def pandas(table: pa.Table, folder: Path) -> object:
    return table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)


FORMATS: list[Callable[[pa.Table, Path], object]] = [
    parquet,
    csv,
    several_files,
    polars,
    pandas,
]


@pytest.mark.parametrize("written", FORMATS)
def test_every_format_gives_the_same(
    written: Callable[[pa.Table, Path], object], tmp_path: Path
) -> None:
    table = PEOPLE.drop_columns(["day"])
    data = written(table, tmp_path)
    found = as_dict(counted(data, needs(), "text", 2, name="people"))
    assert found == as_dict(counted(table, needs(), "text", 2))


def test_keys_stand_beside_their_sums() -> None:
    domain = Domain(shop=Keys(), wage=DOMAIN["wage"])
    table = pa.table(
        {"shop": ["y", "x", "y", "z", "y"], "wage": [3, 50, 4, None, 9], "p": [1, 1, 1, 2, 2]}
    )
    by_shop = Lattice((KeyAxis("shop"),))
    src = source(table, domain, person="p", rows_per_person=9)
    cube = count(src, [needs(by_shop, SUMMED[2:])], key=KEY)[0]
    assert cube.coordinates is not None
    assert cube.sums is not None
    keys = cube.keys["shop"].to_pylist()
    shown = zip(cube.coordinates[:, 0].tolist(), cube.counts.tolist(), cube.sums[:, 0], strict=True)
    # The mean of 3 and 4 lies 27 steps above -10.
    assert {keys[at]: (n, total) for at, n, total in shown} == {"x": (1, 120), "y": (2, 27 + 38)}


# --- what one person changes ----------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_person_moves_sums_by_more_than_the_unit_says(limit: int) -> None:
    """Each person of a small table leaves; in L1, L2 and Linf."""
    table = people(300, seed=5)
    need = needs(summed=SUMMED[:1])
    whole = counted(table, need, limit=limit)
    src = source(table, DOMAIN, person="p", rows_per_person=limit)
    unit = src.unit.counting_persons(limit)
    reached = 0
    assert whole.sums is not None
    for leaver in rows_by_person(table, "p"):
        others = [None if person == leaver[0] else person for person in table["p"].to_pylist()]
        staying = table.set_column(3, "p", pa.array(others, pa.int64()))
        left = counted(staying, need, limit=limit)
        assert left.sums is not None
        change = np.abs(whole.sums[:, 0] - left.sums[:, 0])
        assert change.sum() <= unit.sums_l1(MEANS.most)
        assert (change**2).sum() <= unit.sums_l2_squared(MEANS.most)
        assert change.max() <= MEANS.most
        reached = max(reached, int(np.abs(whole.counts - left.counts).sum()))
    # Somebody is in as many cells as the limit allows.
    assert reached == unit.counts_l1 == limit


@pytest.mark.parametrize("person", [1, 2, 3])
def test_under_keys_nobody_elses_rows_choose_the_keys_of_a_person(person: int) -> None:
    """Keys are numbered as they occur, and that depends on everybody's rows."""
    draw = np.random.default_rng(4)
    n_rows = 300
    table = pa.table(
        {
            "shop": [f"shop {i}" for i in draw.integers(0, 9, n_rows)],
            "wage": draw.integers(0, 90, n_rows).astype(float),
            "p": draw.integers(1, 9, n_rows),
        }
    )
    domain = Domain(shop=Keys(), wage=DOMAIN["wage"])
    need = needs(Lattice((KeyAxis("shop"),)), SUMMED[2:])

    def by_key(rows: pa.Table) -> dict[object, tuple[int, int]]:
        src = source(rows, domain, person="p", rows_per_person=2)
        cube = count(src, [need], key=KEY)[0]
        assert cube.coordinates is not None
        assert cube.sums is not None
        keys = cube.keys["shop"].to_pylist()
        totals = zip(cube.counts.tolist(), cube.sums[:, 0].tolist(), strict=True)
        found = zip(cube.coordinates[:, 0].tolist(), totals, strict=True)
        return {keys[at]: total for at, total in found}

    is_own = np.array(table["p"].to_pylist()) == person
    alone = by_key(table.filter(pa.array(is_own)))
    rest = by_key(table.filter(pa.array(~is_own)))
    reverse = table.take(np.arange(n_rows)[::-1])
    for together in (by_key(table), by_key(reverse)):
        difference = {
            key: (n - rest.get(key, (0, 0))[0], total - rest.get(key, (0, 0))[1])
            for key, (n, total) in together.items()
        }
        assert {key: change for key, change in difference.items() if change != (0, 0)} == alone
    assert len(alone) == 2
