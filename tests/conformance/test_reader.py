"""Every reader keeps the contract: our own, and one from outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from conformance import reader_contract, toys
from conformance.kinds import KINDS, names_of_readers, people, table
from conformance.toys import Pile, PileReader
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import count, registry, select_in_engine, source
from sfumato.data.reader import Columns, Reader
from sfumato.data.registry import open_reader, register_reader
from sfumato.domain.domain import Interval, grid_axis
from sfumato.domain.lattice import Lattice
from support.spark_tasks import TableInTasks

ROWS = people(200, seed=2)


ONE_LATTICE = random_tables.LATTICES[:1]


ONCE = ("arrow, reader",)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy is registered, as long as the test runs."""
    monkeypatch.setattr(registry, "_outside", [])
    register_reader(PileReader)


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
    assert names_of_readers() == seen


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


def test_a_reader_that_says_nothing_of_its_state_is_a_data_set_of_its_own() -> None:
    """Otherwise the answers of one table would be found under the label of another."""

    class Silent(PileReader):
        in_memory = False

    one, other = (source(Silent(Pile(ROWS)), random_tables.DOMAIN) for _ in range(2))
    assert "" != one.label == one.label != other.label


def test_a_reader_that_would_count_by_itself_is_told_to_hand_out_rows() -> None:
    """Version 0.2 had such readers; one that is registered learns what to implement instead."""

    class Counting(Reader):
        def names(self) -> list[str]:
            return []

        def schema(self, columns: Columns) -> Any:
            raise NotImplementedError

        def count(self, *_: object) -> list[object]:
            return []

    with pytest.raises(
        sf.UsageError, match=r"registering Counting: it is no RowReader\. Derive it"
    ):
        register_reader(Counting)


def test_a_reader_may_refuse_what_is_to_be_counted_before_the_charge() -> None:
    class Refusing(PileReader):
        def require(self, needs: Any, unit: Any) -> None:
            raise sf.DataError("the pile", "it is locked", "Unlock it")

    src = source(Refusing(Pile(ROWS)), random_tables.DOMAIN, name="pile")
    with sf.Publisher(src, budget=1) as publisher:
        with pytest.raises(sf.DataError, match="it is locked"):
            publisher.release(sf.Histogram("x", bins=7), epsilon=1)
        assert publisher.account.spent == (0, 0)


def test_a_table_may_be_read_in_several_pieces() -> None:
    class Pieces(PileReader):
        def pieces(self, columns: Columns) -> Any:
            return [
                partial(PileReader(Pile(part)).batches, columns) for part in (ROWS[:9], ROWS[9:])
            ]

    for limits in reader_contract.LIMITS[:3]:
        own, whole = (
            count(
                source(reader(Pile(ROWS)), random_tables.DOMAIN, **limits),
                ONE_LATTICE,
                key=bytes(32),
            )
            for reader in (Pieces, PileReader)
        )
        reader_contract._same(own[0], whole[0])


@pytest.mark.parametrize("limit", [None, 2])
def test_tasks_of_spark_select_keys_as_they_count(limit: int | None) -> None:
    reader_contract.selects_as_it_counts(lambda: TableInTasks(table(ROWS)), limit=limit)


@pytest.mark.parametrize("keyed", [False, True])
def test_tasks_of_spark_count_cells_that_no_one_integer_packs(keyed: bool) -> None:
    fine = [random_tables.grid(name, 2**30) for name in ("x", "n", "price")]
    lattice = Lattice((*fine, *reader_contract.BY_PERSON.axes)) if keyed else Lattice(tuple(fine))
    need = Needs(lattice, 1)
    tasks, rows = (
        source(data, reader_contract.PERSONS, person="who", rows_per_person=2)
        for data in (TableInTasks(table(ROWS)), table(ROWS))
    )
    own, scan = (count(src, [need], key=bytes(32))[0] for src in (tasks, rows))
    reader_contract._same(own, scan)
    if keyed:
        rule = reader_contract.RULES_OF_KEYS[0]
        shown = select_in_engine(tasks, need, rule, key=bytes(32))
        assert reader_contract.laid(shown, lattice) == reader_contract.decided(scan, rule) != []
