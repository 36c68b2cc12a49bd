"""Each person keeps at most r rows, chosen uniformly, whoever else is in the table."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

import sfumato as sf
from data import random_tables
from sfumato import testing
from sfumato.answers.counts import Needs
from sfumato.data import count, source
from sfumato.data.bounding import KEY_BYTES, fresh_key
from sfumato.data.priorities import KeyedHash, PersonTokens, chosen_by
from sfumato.data.row_order import CopyNumbers
from sfumato.domain.domain import Categories, Domain, Interval, Keys, grid_axis
from sfumato.domain.lattice import KeyAxis, LabelAxis, Lattice
from sfumato.errors import DataError


def test_a_choice_of_rows_from_a_public_seed_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"p": np.repeat(np.arange(200), 2), "x": np.arange(400.0)}), path)
    domain = sf.Domain(
        x=sf.Interval(0, 400, step=1)
    )  # two choices are alike with a chance of 2^-200
    publisher = sf.Publisher(sf.source(path, domain, person="p"), budget=10**7)

    def release(bins: int) -> list[int]:
        return publisher.release(
            sf.Histogram("x", bins=bins), epsilon=10**5, fresh=True
        ).values.tolist()

    with testing.deterministic(7):
        public = release(400)
    first = release(400)
    assert first != public
    assert first == release(400)  # the same rows again, by a secret


FALSE_ALARM = 1e-9


DOMAIN = Domain(x=Interval(0, 1000, step=1), y=Interval(0, 1))


FINE = Lattice((grid_axis("x", DOMAIN["x"], 1000),))


OTHER = Lattice((grid_axis("y", DOMAIN["y"], 4),))


KEY = bytes(range(KEY_BYTES))


# --- one choice of rows ---------------------------------------------------------------------------


def test_the_order_of_rows_changes_no_cube() -> None:
    frame = _random_frame()
    order = np.random.default_rng(5).permutation(len(frame))
    for r in (1, 3):
        one, other = (_found(table, r) for table in (frame, frame.take(order)))
        assert one == other
        assert _found(frame, r, key=bytes(KEY_BYTES)) != one


def test_other_persons_change_nothing() -> None:
    """Whoever leaves takes their own rows from the cubes, and no others."""
    frame = _random_frame(400)
    persons = np.array([-1 if each is None else each for each in frame["p"].to_pylist()])
    everyone = _found(frame, 2)
    for leaver in (1, 2, 3, 5):
        staying = _found(frame.filter(pa.array(persons != leaver)), 2)
        own = _found(frame.filter(pa.array(persons == leaver)), 2)
        together = [Counter(one) + Counter(other) for one, other in zip(staying, own, strict=True)]
        assert [dict(both) for both in together] == everyone


def test_the_ids_of_other_rows_change_nothing() -> None:
    """A batch in which one id is no number is hashed as if it stood alone."""
    table = pa.table({"x": np.arange(60) % 20, "y": [0.5] * 60, "p": ["7", "8", "x"] * 20})
    alone = [
        _found(table.filter(pa.array([p == person for p in table["p"].to_pylist()])), 3)
        for person in ("7", "8", "x")
    ]
    summed = [sum(map(Counter, several), Counter()) for several in zip(*alone, strict=True)]
    assert [dict(cells) for cells in summed] == _found(table, 3)


def _found(table: pa.Table, r: int, key: bytes = KEY) -> list[dict[tuple[int, ...], int]]:
    cubes = count(source(table, DOMAIN, person="p", rows_per_person=r), [FINE, OTHER], key=key)
    return [random_tables.found(cube) for cube in cubes]


def test_a_lattice_and_its_refinement_keep_the_same_rows_whatever_else_is_missing() -> None:
    """A plan counts x and y; then x alone is counted again, on finer cells."""
    src = source(_random_frame(), DOMAIN, person="p", rows_per_person=2)
    coarse = Lattice((grid_axis("x", DOMAIN["x"], 500),))
    needs = [Needs(coarse, 500), Needs(OTHER, 4)]
    first, _ = count(src, needs, key=KEY)
    again = count(src, [FINE], key=KEY, choice=chosen_by(needs))[0]
    assert random_tables.found(again.on(coarse)) == random_tables.found(first)
    # Under other columns a person keeps other rows: the choice has to be handed on.
    other = count(src, [FINE], key=KEY)[0]
    assert random_tables.found(other.on(coarse)) != random_tables.found(first)


# --- equal chances --------------------------------------------------------------------------------

RUNS = 6000
BAND = (np.log(2 / FALSE_ALARM) / (2 * RUNS)) ** 0.5
"""By Hoeffding's inequality, a share of 6,000 persons is further off with probability 1e-9."""


def _share_of_the_rare(limit: int) -> float:
    """How many of the persons with ten rows of one kind and one of another keep the one."""
    table = pa.table({"x": ([3] * 10 + [700]) * RUNS, "p": np.repeat(np.arange(RUNS), 11)})
    src = source(table, Domain(x=DOMAIN["x"]), person="p", rows_per_person=limit)
    return int(count(src, [FINE], key=KEY)[0].counts[700]) / RUNS


@pytest.mark.parametrize("limit", [1, 4])
def test_every_row_is_as_likely_to_be_kept_however_many_are_alike(limit: int) -> None:
    assert abs(_share_of_the_rare(limit) - limit / 11) < BAND


def _shares_of_norm(limits: dict[str, int]) -> float:
    """The mean of a rare value that a person keeps, who has 79 rows of 1 and one of 9."""
    domain = Domain(x=Interval(0, 10, step=1), group=Categories(["a"]))
    persons = np.repeat(np.arange(RUNS), 80)
    values = np.tile([1] * 79 + [9], RUNS)
    table = pa.table({"x": values, "group": ["a"] * len(values), "p": persons})
    src = source(table, domain, person="p", **limits)
    with testing.deterministic(3):
        release = sf.Publisher(src, budget=9000).release(sf.Mean("x", by="group"), epsilon=9000)
    return float(release.values[0])


@pytest.mark.parametrize(
    "limits",
    [
        {"rows_per_cell": 1, "rows_per_person": 80},
        {"rows_per_cell": 1, "cells_per_person": 1},
        {"norm_per_person": 9},
    ],
    ids=str,
)
def test_limits_by_cell_keep_rare_rows_no_more_often(limits: dict[str, int]) -> None:
    """Also of a person with no more rows than are kept in all: a cell's limit drops some."""
    rare = (_shares_of_norm(limits) - 1) / 8
    assert abs(rare - 1 / 80) < BAND


@pytest.mark.parametrize("limits", [{"norm_per_person": 30}, {"rows_per_cell": 20}], ids=str)
def test_limits_by_cell_keep_the_same_rows_beyond_memory(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nobody else's rows decide which rows of a person are kept: they may fill the memory."""
    draw = np.random.default_rng(8)
    persons = np.concatenate([np.zeros(600, int), draw.integers(1, 400, 19_400)])
    table = pa.table({"x": draw.integers(0, 4, len(persons)), "p": persons})
    src = source(table, Domain(x=Interval(0, 4, step=1)), person="p", rows_per_person=700, **limits)
    needs = [Needs(Lattice((grid_axis("x", src.domain["x"], 4),)), 4)]
    in_memory = count(src, needs, key=KEY)[0].counts.tolist()
    monkeypatch.setenv("SFUMATO_MEMORY", "20K")
    assert count(src, needs, key=KEY)[0].counts.tolist() == in_memory


def test_without_copy_numbers_rare_rows_are_kept_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken twin: copies are kept together, or dropped together."""
    monkeypatch.setattr(CopyNumbers, "number", lambda *_: None)
    assert abs(_share_of_the_rare(1) - 1 / 11) > BAND


def _persons_who_keep_a(n_persons: int = 1000) -> int:
    """Of persons with one row of each of two kinds, at most one row of whom is counted."""
    table = pa.table({"x": [1, 2] * n_persons, "p": np.repeat(np.arange(n_persons), 2)})
    src = source(table, Domain(x=DOMAIN["x"]), person="p")
    return int(count(src, [FINE], key=KEY)[0].counts[1])


def test_persons_with_the_same_rows_keep_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert abs(_persons_who_keep_a() - 500) < (1000 * np.log(2 / FALSE_ALARM) / 2) ** 0.5
    # A broken twin: the person is not hashed, so everybody keeps the same kind of row.
    monkeypatch.setattr(
        PersonTokens, "choice_words", lambda self, persons, _: [np.zeros(len(persons), np.int64)]
    )
    assert _persons_who_keep_a() in (0, 1000)


def _uniform(chosen: list[tuple[int, ...]], per_person: int, r: int) -> bool:
    """Whether subsets of size r, one for each person, look uniform."""
    found = Counter(chosen)
    every = list(combinations(range(per_person), r))
    each = len(chosen) / len(every)
    return sum((found[subset] - each) ** 2 / each for subset in every) < chi2.isf(
        FALSE_ALARM, len(every) - 1
    )


def _subsets(per_person: int, r: int) -> list[tuple[int, ...]]:
    """Which of 0, 1, 2, ... each person keeps, who has a row of each."""
    persons = 10_000
    x = np.tile(np.arange(per_person), persons)
    p = np.repeat(np.arange(persons), per_person)
    domain = Domain(x=DOMAIN["x"], p=Interval(0, persons, step=1))
    both = Lattice((grid_axis("p", domain["p"], persons), grid_axis("x", domain["x"], 1000)))
    src = source(pa.table({"x": x, "p": p}), domain, person="p", rows_per_person=r)
    counts = count(src, [both], key=KEY)[0].counts.reshape(persons, 1000)[:, :per_person]
    assert counts.max() == 1
    return [tuple(row) for row in np.argwhere(counts)[:, 1].reshape(persons, r).tolist()]


def test_every_subset_is_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _uniform(_subsets(6, 2), 6, 2)
    # A broken twin: a choice that leans on small values a little.
    plain = KeyedHash.of

    def leaning(self: KeyedHash, words: list[np.ndarray], start: Any = ()) -> np.ndarray:
        hashed = plain(self, words, start)
        return np.where(words[-1] == 0, hashed - hashed // np.uint64(10), hashed)

    monkeypatch.setattr(KeyedHash, "of", leaning)
    assert not _uniform(_subsets(6, 2), 6, 2)


@pytest.mark.parametrize("allowed", ["100K", "1G"])
def test_through_a_source_the_kept_rows_are_uniform_and_few(
    allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", allowed)  # through files, and in memory
    persons = 20_000
    per_person = 5
    frame = pa.table(
        {
            "x": np.repeat(np.arange(per_person), persons),
            "p": np.tile(np.arange(persons), per_person),
        }
    )
    counts = count(source(frame, Domain(x=DOMAIN["x"]), person="p"), [FINE])[0].counts
    assert counts.sum() == persons
    each = persons / per_person
    assert ((counts[:per_person] - each) ** 2 / each).sum() < chi2.isf(FALSE_ALARM, per_person - 1)


def _random_frame(rows: int = 3000, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 1000, rows).astype(object)
    y = draw.random(rows).astype(object)
    person = draw.zipf(1.5, rows).clip(max=400).astype(object)
    for column in (x, y, person):
        column[draw.random(rows) < 0.1] = None
    return pa.table(
        {
            "x": pa.array(x, pa.int32()),
            "y": pa.array(y, pa.float64()),
            "p": pa.array(person, pa.int64()),
        }
    )


IDS: dict[str, Any] = {
    "int64": lambda ids: ids,
    "uint16": lambda ids: ids.cast(pa.uint16()),
    "text": lambda ids: ids.cast(pa.string()),
    "large text": lambda ids: ids.cast(pa.large_string()),
    "text view": lambda ids: ids.cast(pa.string_view()),
    "bytes": lambda ids: ids.cast(pa.string()).cast(pa.binary()),
    "float with NaN": lambda ids: pa.chunked_array([ids.to_numpy()]),
    "decimal": lambda ids: ids.cast(pa.decimal128(20, 0)),
    "date": lambda ids: ids.cast(pa.int32()).cast(pa.date32()),
    "dictionary": lambda ids: ids.cast(pa.string()).dictionary_encode(null_encoding="encode"),
    "dictionary of integers": lambda ids: ids.dictionary_encode(),
}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("r", [1, 3])
def test_each_lattice_keeps_as_many_rows_as_it_may(kind: str, r: int, tmp_path: Path) -> None:
    plain = _random_frame()
    frame = plain.set_column(2, "p", IDS[kind](plain["p"]))
    tables: list[Any] = [
        frame,
        pa.concat_tables([frame.slice(0, 100), frame.slice(100, 0), frame.slice(100)]),
        pl.from_arrow(frame),
    ]
    if kind not in (
        "text view",
        "dictionary",
    ):  # which Parquet cannot hold, the second because of its null
        pq.write_table(frame, tmp_path / "t.parquet", row_group_size=700)
        tables.append(tmp_path / "t.parquet")
    rows = plain.to_pylist()
    for data in tables:
        for cube, axis in zip(
            count(source(data, DOMAIN, person="p", rows_per_person=r), [FINE, OTHER]),
            "xy",
            strict=True,
        ):
            own = Counter(
                row["p"] for row in rows if row["p"] is not None and row[axis] is not None
            )
            assert cube.total == sum(min(r, count) for count in own.values())
            everyone = random_tables.expected(
                [row for row in rows if row["p"] is not None], cube.lattice
            )
            assert all(count <= everyone[cell] for cell, count in random_tables.found(cube).items())


def test_no_cell_holds_more_than_r_rows_of_one_person() -> None:
    frame = pa.table({"x": [5] * 50_000, "y": [0.1] * 50_000, "p": ["one"] * 50_000})
    for r in (1, 7):
        assert [
            cube.total
            for cube in count(source(frame, DOMAIN, person="p", rows_per_person=r), [FINE, OTHER])
        ] == [r, r]


def test_ids_of_every_length_stay_apart_in_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "x,p\n1,9007199254740992\n1,9007199254740993\n1,NA\n1,\n1,9007199254740993\n"
    )
    domain = Domain(x=DOMAIN["x"], p=Interval(0, 2**62))
    by_person = Lattice((grid_axis("p", domain["p"], 4),))
    with pytest.raises(DataError, match="an axis of other values at the same time"):
        source(tmp_path / "t.csv", domain, person="p").require([FINE, by_person])
    assert (
        count(source(tmp_path / "t.csv", Domain(x=DOMAIN["x"]), person="p"), [FINE])[0].total == 2
    )


def test_one_key_is_one_choice_for_every_lattice_and_scan() -> None:
    src = source(_random_frame(), DOMAIN, person="p", rows_per_person=2)
    key = bytes(KEY_BYTES)
    coarse = Lattice((grid_axis("x", DOMAIN["x"], 500),))
    first, second, alone = *count(src, [FINE, coarse], key=key), count(src, [coarse], key=key)[0]
    assert (
        random_tables.found(first.on(coarse))
        == random_tables.found(second)
        == random_tables.found(alone)
    )


def test_keys_are_fresh() -> None:
    assert len({fresh_key() for _ in range(100)}) == 100
    assert len(fresh_key()) == KEY_BYTES
    src = source(
        pa.table({"x": np.arange(1000), "p": np.arange(1000) % 20}),
        Domain(x=DOMAIN["x"]),
        person="p",
    )
    assert random_tables.found(count(src, [FINE])[0]) != random_tables.found(count(src, [FINE])[0])


def test_sparse_lattices_are_bounded_too() -> None:
    domain = Domain(x=DOMAIN["x"], y=DOMAIN["y"], k=Categories(["a"]))
    frame = _random_frame().append_column("k", pa.array(["a"] * 3000))
    lattice = Lattice((*(grid_axis(name, domain[name], 2**40) for name in "xy"),))
    cube = count(source(frame, domain, person="p", rows_per_person=2), [lattice])[0]
    own = Counter(row["p"] for row in frame.to_pylist() if None not in row.values())
    assert cube.total == sum(min(2, count) for count in own.values())


@pytest.mark.parametrize(
    "limits", [{"rows_per_person": 3}, {"rows_per_person": 9, "rows_per_cell": 2}]
)
def test_a_tie_is_broken_by_nothing_of_others(
    limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hash of two bits ties all the time: others' rows, and keys that are new, move nothing."""
    hashed = KeyedHash.of
    monkeypatch.setattr(KeyedHash, "of", lambda *asked: hashed(*asked) & np.uint64(3 << 62))
    lattice = Lattice((KeyAxis("shop"), LabelAxis("who", ("a", "b"))))
    domain = Domain(shop=Keys(), who=Categories(["a", "b"]))
    draw = np.random.default_rng(5)
    own = [("a", f"shop {shop}") for shop in draw.integers(0, 9, 40)]
    seen = []
    for others in range(0, 60, 4):
        shops = draw.integers(0, 12, others)
        rows = [("b", f"shop {shop}") for shop in shops]
        # Each of the own rows stands somewhere among the others, in its place among its own.
        places = np.sort(draw.integers(0, others + 1, len(own)))[::-1]
        for place, row in zip(places, own[::-1], strict=True):
            rows.insert(place, row)
        who, shop = zip(*rows, strict=True)
        src = source(pa.table({"who": who, "shop": shop}), domain, person="who", **limits)
        (cube,) = count(src, [Needs(lattice, 99)], key=bytes(32))
        cells = zip(cube.coordinates.tolist(), cube.counts.tolist(), strict=True)
        seen.append({cube.keys["shop"][key]: n for (key, label), n in cells if label == 0})
    assert seen == seen[:1] * len(seen)
    assert 0 < sum(seen[0].values()) < len(own)


MOMENTS = pa.array([-86_400, 0, 86_400, 19_000 * 86_400], pa.int64()).view(pa.timestamp("s"))
IN_UNITS = {
    **{unit: MOMENTS.cast(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "date32": MOMENTS.cast(pa.date32()),
    "date64": MOMENTS.cast(pa.date64()),
}


def kept_at_moments(ids: pa.Array, *, as_objects: bool = False) -> list[int]:
    columns = {"p": ids.take(np.repeat(np.arange(4), 40)), "x": np.tile(np.arange(40.0), 4)}
    table = pa.table(columns)
    data = table.to_pandas(timestamp_as_object=True) if as_objects else table
    src = source(data, DOMAIN, person="p", rows_per_person=5)
    return count(src, [FINE], key=bytes(32))[0].counts.tolist()


@pytest.mark.parametrize("unit", [*IN_UNITS, "objects"])
def test_a_person_named_by_a_time_keeps_the_same_rows_in_every_unit(unit: str) -> None:
    expected = kept_at_moments(IN_UNITS["us"])
    ids = IN_UNITS.get(unit, IN_UNITS["us"])
    assert kept_at_moments(ids, as_objects=unit == "objects") == expected
    assert sum(expected) == 20
