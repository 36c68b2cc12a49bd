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
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import sfumato as sf
from data import random_tables
from sfumato import testing
from sfumato.data import count, source
from sfumato.data.bounding import KEY_BYTES, Priorities, fresh_key, kept
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.errors import DataError
from sfumato.lattice import Lattice


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


Rows = list[tuple[int, int, bool]]  # person, priority, whether it counts


def _kept(rows: Rows, r: int) -> set[tuple[int, int]]:
    persons, priorities, counts = zip(*rows, strict=True)
    chosen = kept(np.array(persons), np.array(priorities, np.uint64), np.array(counts, bool), r)
    assert len(set(chosen.tolist())) == len(chosen)
    return {rows[i][:2] for i in chosen}


ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 2**64 - 1) | st.integers(0, 99), st.booleans()),
    min_size=1,
    max_size=60,
    unique_by=lambda row: row[1],
)


@given(ROWS, st.integers(1, 5))
def test_a_person_keeps_the_rows_of_least_priority(rows: Rows, r: int) -> None:
    wanted = set()
    for person in range(7):
        own = sorted(row[1] for row in rows if row[0] == person and row[2])
        wanted |= {(person, priority) for priority in own[:r]}
    assert _kept(rows, r) == wanted


@given(ROWS, st.integers(1, 5), st.integers(0, 6))
def test_the_choice_is_a_map_of_each_person_alone(rows: Rows, r: int, leaver: int) -> None:
    staying = [row for row in rows if row[0] != leaver]
    if staying:
        assert _kept(staying, r) == {row for row in _kept(rows, r) if row[0] != leaver}
        assert _kept(staying[::-1], r) == _kept(staying, r)


def test_priorities_that_differ_in_their_last_bits_only_are_told_apart() -> None:
    assert _kept([(7, 1, True), (7, 0, True), (0, 0, True)], 1) == {(7, 0), (0, 0)}


def _uniform(chosen: np.ndarray, persons: int, per_person: int, r: int) -> bool:
    """Whether subsets of size r look uniform; row i belongs to person i % persons."""
    owner = chosen % persons
    place = chosen // persons
    subsets = [[] for _ in range(persons)]
    for who, where in zip(owner.tolist(), place.tolist(), strict=True):
        subsets[who].append(where)
    found = Counter(tuple(sorted(subset)) for subset in subsets)
    every = list(combinations(range(per_person), r))
    each = persons / len(every)
    return sum((found[subset] - each) ** 2 / each for subset in every) < chi2.isf(
        FALSE_ALARM, len(every) - 1
    )


def test_every_subset_is_as_likely() -> None:
    persons = 30_000
    per_person = 6
    r = 2
    who = np.tile(np.arange(persons), per_person)
    counts = np.ones(len(who), bool)
    assert _uniform(
        kept(who, Priorities(fresh_key()).take(len(who)), counts, r), persons, per_person, r
    )
    # Broken twins: the first r in file order, and a choice that leans on the first row a little.
    assert not _uniform(
        kept(who, np.arange(len(who), dtype=np.uint64), counts, r), persons, per_person, r
    )
    leaning = Priorities(fresh_key()).take(len(who)).copy()
    leaning[:persons] -= leaning[:persons] // np.uint64(10)
    assert not _uniform(kept(who, leaning, counts, r), persons, per_person, r)


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
    with pytest.raises(DataError, match="an axis of numbers at the same time"):
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
