"""Every reader keeps the contract: our own, one from outside, and one that counts by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from conformance import reader_contract, toys
from conformance.kinds import KINDS, people
from conformance.toys import Database, DatabaseReader, Pile, PileReader
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import count, registry, source
from sfumato.data.reader import Columns, CountingReader
from sfumato.data.registry import open_reader, register_reader
from sfumato.domain import Interval, grid_axis
from sfumato.lattice import EdgesAxis, Lattice

ROWS = people(200, seed=2)


ONE_LATTICE = random_tables.LATTICES[:1]


ONCE = ("arrow, reader",)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both toys are registered, as long as the test runs."""
    monkeypatch.setattr(registry, "_outside", [])
    register_reader(PileReader)
    register_reader(DatabaseReader)


def opened(data: object) -> Any:
    return open_reader(data, tuple(random_tables.DOMAIN), "who")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    data = KINDS[kind](ROWS, tmp_path)

    def fresh() -> Any:
        return opened(KINDS[kind](ROWS, tmp_path) if kind in ONCE else data)

    reader_contract.says_what_it_has(fresh)
    reader_contract.gives_all_rows_twice(fresh, len(ROWS), once=kind in ONCE)


def test_an_array_keeps_the_contract() -> None:
    array = np.random.default_rng(0).normal(size=(200, 2))
    columns: Columns = {name: grid_axis(name, Interval(-1, 1), 4) for name in "ab"}
    fresh = partial(open_reader, array, ("a", "b"), None)
    reader_contract.says_what_it_has(fresh, columns)
    reader_contract.gives_all_rows_twice(fresh, 200, columns)  # type: ignore[arg-type]


@pytest.mark.usefixtures("registered")
def test_a_reader_of_somebody_elses_keeps_the_contract() -> None:
    pile = Pile(ROWS)
    fresh = partial(opened, pile)
    assert isinstance(fresh(), PileReader)
    reader_contract.says_what_it_has(fresh)
    reader_contract.gives_all_rows_twice(fresh, len(ROWS))
    reader_contract.says_types_without_values(lambda rows: PileReader(Pile(rows)), ROWS)
    for data in (pile, PileReader(pile)):
        cube = count(source(data, random_tables.DOMAIN), ONE_LATTICE)[0]
        assert random_tables.found(cube) == random_tables.expected(ROWS, ONE_LATTICE[0])


def test_a_reader_may_give_its_rows_in_another_order_each_time() -> None:
    """Whatever the order, each person keeps the same rows."""
    reader = toys.OtherOrder(Pile(ROWS))
    reader_contract.gives_all_rows_twice(lambda: toys.OtherOrder(Pile(ROWS)), len(ROWS))
    src = source(reader, random_tables.DOMAIN, person="who", rows_per_person=2)
    first, second = (count(src, ONE_LATTICE, key=bytes(32))[0] for _ in range(2))
    assert reader.scans == 2
    assert random_tables.found(first) == random_tables.found(second)
    assert (
        first.total
        < count(source(PileReader(Pile(ROWS)), random_tables.DOMAIN), ONE_LATTICE)[0].total
    )


def test_every_reader_that_is_registered_is_in_this_suite(tmp_path: Path) -> None:
    # Spark has one session for all of this contract, in tests/data/readers/test_spark.py.
    seen = {"NumpyArray", "SparkTable"}
    for number, make in enumerate(KINDS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen.add(type(opened(make(ROWS, folder))).__name__)
    assert {reader.__name__ for reader in registry.readers()} == seen


@pytest.mark.parametrize("broken_kind", toys.ROWS_BROKEN)
def test_a_reader_of_rows_that_breaks_the_contract_is_caught(
    broken_kind: Callable[[Pile], PileReader],
) -> None:
    def keep_it() -> None:
        reader_contract.gives_all_rows_twice(lambda: broken_kind(Pile(ROWS)), len(ROWS))
        reader_contract.says_types_without_values(lambda rows: broken_kind(Pile(rows)), ROWS)

    with pytest.raises((AssertionError, KeyError)):
        keep_it()


@pytest.mark.parametrize(
    ("broken_kind", "words"),
    [
        (toys.OtherType, "'x'"),
        (toys.OtherIds, "ids of persons"),
        (toys.OtherColumns, "without the column"),
    ],
)
def test_types_that_change_while_rows_are_read_are_refused(
    broken_kind: Callable[[Pile], PileReader], words: str
) -> None:
    """Whether a cast succeeds depends on values, and an id of another type is another person."""
    src = source(broken_kind(Pile(ROWS)), random_tables.DOMAIN, person="who")
    src.require(ONE_LATTICE)
    with pytest.raises(sf.DataError, match=words) as caught:
        count(src, ONE_LATTICE)
    assert caught.value.__context__ is None
    publisher = sf.Publisher(
        source(broken_kind(Pile(ROWS)), random_tables.DOMAIN, person="who"), budget=1
    )
    with pytest.raises(sf.DataError, match=words):
        publisher.check(sf.Histogram("x"))


def counting_contract(broken_kind: Callable[[Database], DatabaseReader]) -> None:
    def made_of(rows: Any) -> CountingReader:
        return broken_kind(Database(rows))

    reader_contract.says_what_it_has(lambda: made_of(ROWS))
    reader_contract.counts_as_a_scan(lambda: made_of(ROWS), PileReader(Pile(ROWS)))
    reader_contract.bounds_persons(lambda: made_of(ROWS), ROWS, limit=2)
    reader_contract.chooses_alike(made_of)


def test_a_reader_that_counts_keeps_the_contract() -> None:
    counting_contract(DatabaseReader)


@pytest.mark.parametrize("broken_kind", toys.COUNTING_BROKEN)
def test_a_reader_that_counts_wrongly_is_caught(
    broken_kind: Callable[[Database], DatabaseReader],
) -> None:
    with pytest.raises((AssertionError, sf.DataError)):
        counting_contract(broken_kind)


@pytest.mark.parametrize("kind", [toys.SelectingReader, toys.EvaluatesTwice])
@pytest.mark.parametrize("limit", [None, 2])
def test_a_reader_that_selects_keys_keeps_the_contract(
    kind: type[toys.SelectingReader], limit: int | None
) -> None:
    """An engine that evaluates each part twice shows the same, too."""
    reader_contract.selects_as_it_counts(lambda: kind(Database(ROWS)), limit=limit)


@pytest.mark.parametrize("broken_kind", toys.SELECTING_BROKEN)
def test_a_reader_that_selects_keys_wrongly_is_caught(
    broken_kind: type[toys.SelectingReader],
) -> None:
    with pytest.raises((AssertionError, sf.DataError)):
        reader_contract.selects_as_it_counts(lambda: broken_kind(Database(ROWS)))


def test_cubes_for_other_cells_than_were_asked_for_are_refused() -> None:
    with pytest.raises(sf.DataError, match="other cells"):
        count(source(toys.Swaps(Database(ROWS)), random_tables.DOMAIN), random_tables.LATTICES[:2])


@pytest.mark.usefixtures("registered")
def test_a_release_from_an_engine_that_counts() -> None:
    """Two scans of a release see one state; no query holds the key; no row comes to Python."""
    database = Database(ROWS)
    queries: list[str] = []
    database.connection.set_trace_callback(queries.append)
    reader = DatabaseReader(database)
    with sf.Publisher(
        source(reader, random_tables.DOMAIN, person="who", rows_per_person=2), budget=10**7
    ) as publisher:
        publisher.release(sf.UniformPartitioner(["x", "price"]), epsilon=10**5)
        key = publisher._answering.counting._row_choice_key
        with pytest.raises(sf.UsageError, match="hands out no rows"):
            publisher.check()
    assert len(reader.seen) > 1
    assert set(reader.seen) == {1}
    assert reader.inside == 0
    assert len(key) == 32
    assert not any(key.hex() in query.lower() or repr(key) in query for query in queries)
    histogram = sf.Publisher(source(database, random_tables.DOMAIN), budget=10**7).release(
        sf.Histogram("x", bins=7), epsilon=10**6
    )
    assert {
        (i,): n for i, n in enumerate(histogram.values.tolist()) if n
    } == random_tables.expected(ROWS, ONE_LATTICE[0])


def test_a_reader_of_both_kinds_counts_by_itself_and_can_be_checked() -> None:
    class Both(PileReader, CountingReader):
        def count(self, needs: Any, unit: Any, key: bytes, progress: Any) -> list[Any]:
            return DatabaseReader(Database(self.pile.rows)).count(needs, unit, key, progress)

    src = source(Both(Pile(ROWS)), random_tables.DOMAIN)
    assert random_tables.found(count(src, ONE_LATTICE)[0]) == random_tables.expected(
        ROWS, ONE_LATTICE[0]
    )
    assert sf.Publisher(src, budget=1).check(sf.Histogram("x")).rows == len(ROWS)


def test_a_reader_that_says_nothing_of_its_state_is_a_data_set_of_its_own() -> None:
    """Otherwise the answers of one table would be found under the label of another."""

    class Silent(PileReader):
        in_memory = False

    one, other = (source(Silent(Pile(ROWS)), random_tables.DOMAIN) for _ in range(2))
    assert "" != one.label == one.label != other.label


def test_what_an_engine_cannot_count_is_refused_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By ``require``, which a publisher calls before the charge."""
    rows = Lattice((EdgesAxis("rows", (1.0, 2.0, 9.0)),))
    of_each = Needs(rows, 2, counted="rows of each person")
    reader = DatabaseReader(Database(ROWS))
    src = source(reader, random_tables.DOMAIN, person="who")
    src.require(ONE_LATTICE)
    for need in (of_each, Needs(ONE_LATTICE[0], 7, counted="persons")):
        with pytest.raises(sf.DataError, match="its engine does not count that"):
            src.require([need])
    monkeypatch.setattr(DatabaseReader, "supports", lambda *_: True)
    src.require([of_each])
