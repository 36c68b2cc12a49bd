"""Every reader keeps the contract: the library's own, one of somebody else's, and one that counts by itself."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from conformance import contract, toys
from conformance.kinds import KINDS, people
from conformance.toys import Database, DatabaseReader, Pile, PileReader
from data import made
from sfumato.data import count, registry, source
from sfumato.data.reader import Columns, CountingReader, Reader, RowReader
from sfumato.data.registry import open_reader, register_reader
from sfumato.domain import Interval, grid_axis

ROWS = people(200, seed=2)
CANARY = "8675309"
X = made.LATTICES[:1]
ONCE = ("arrow, reader",)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both toys are registered, as long as the test runs."""
    monkeypatch.setattr(registry, "_outside", [])
    register_reader(PileReader)
    register_reader(DatabaseReader)


def opened(data: object) -> Any:
    return open_reader(data, tuple(made.DOMAIN), "who")


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    data = KINDS[kind](ROWS, tmp_path)

    def fresh() -> Any:
        return opened(KINDS[kind](ROWS, tmp_path) if kind in ONCE else data)

    contract.says_what_it_has(fresh)
    contract.gives_all_rows_twice(fresh, len(ROWS), once=kind in ONCE)


def test_an_array_keeps_the_contract() -> None:
    array = np.random.default_rng(0).normal(size=(200, 2))
    columns: Columns = {name: grid_axis(name, Interval(-1, 1), 4) for name in "ab"}
    fresh = partial(open_reader, array, ("a", "b"), None)
    contract.says_what_it_has(fresh, columns)
    contract.gives_all_rows_twice(fresh, 200, columns)  # type: ignore[arg-type]


@pytest.mark.usefixtures("registered")
def test_a_reader_of_somebody_elses_keeps_the_contract() -> None:
    pile = Pile(ROWS)
    fresh = partial(opened, pile)
    assert isinstance(fresh(), PileReader)
    contract.says_what_it_has(fresh)
    contract.gives_all_rows_twice(fresh, len(ROWS))
    contract.says_types_without_values(lambda rows: PileReader(Pile(rows)), ROWS)
    for data in (pile, PileReader(pile)):
        cube = count(source(data, made.DOMAIN), X)[0]
        assert made.found(cube) == made.expected(ROWS, X[0])


def test_every_reader_that_is_registered_is_in_this_suite(tmp_path: Path) -> None:
    seen = {"NumpyArray"}
    for number, make in enumerate(KINDS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen.add(type(opened(make(ROWS, folder))).__name__)
    assert {reader.__name__ for reader in registry.readers()} == seen


@pytest.mark.parametrize("twin", toys.ROWS_BROKEN)
def test_a_reader_of_rows_that_breaks_the_contract_is_caught(
    twin: Callable[[Pile], PileReader],
) -> None:
    def keep_it() -> None:
        contract.gives_all_rows_twice(lambda: twin(Pile(ROWS)), len(ROWS))
        contract.says_types_without_values(lambda rows: twin(Pile(rows)), ROWS)

    with pytest.raises((AssertionError, KeyError)):
        keep_it()


@pytest.mark.parametrize(
    ("twin", "words"),
    [
        (toys.OtherType, "'x'"),
        (toys.OtherIds, "ids of persons"),
        (toys.OtherColumns, "without the column"),
    ],
)
def test_types_that_change_while_rows_are_read_are_refused(
    twin: Callable[[Pile], PileReader], words: str
) -> None:
    """Whether a cast succeeds would tell a value; and an id of another type would be another person."""
    src = source(twin(Pile(ROWS)), made.DOMAIN, person="who")
    src.require(X)
    with pytest.raises(sf.DataError, match=words) as caught:
        count(src, X)
    assert caught.value.__context__ is None
    publisher = sf.Publisher(source(twin(Pile(ROWS)), made.DOMAIN, person="who"), budget=1)
    with pytest.raises(sf.DataError, match=words):
        publisher.check(sf.Histogram("x"))


# --- counting ---------------------------------------------------------------------------------------------------------


def counting_contract(twin: Callable[[Database], DatabaseReader]) -> None:
    def made_of(rows: Any) -> CountingReader:
        return twin(Database(rows))

    contract.says_what_it_has(lambda: made_of(ROWS))
    contract.counts_as_a_scan(lambda: made_of(ROWS), PileReader(Pile(ROWS)))
    contract.bounds_persons(lambda: made_of(ROWS), ROWS, limit=2)
    contract.chooses_alike(made_of)


def test_a_reader_that_counts_keeps_the_contract() -> None:
    counting_contract(DatabaseReader)


@pytest.mark.parametrize("twin", toys.COUNTING_BROKEN)
def test_a_reader_that_counts_wrongly_is_caught(twin: Callable[[Database], DatabaseReader]) -> None:
    with pytest.raises((AssertionError, sf.DataError)):
        counting_contract(twin)


def test_cubes_for_other_cells_than_were_asked_for_are_refused() -> None:
    with pytest.raises(sf.DataError, match="other cells"):
        count(source(toys.Swaps(Database(ROWS)), made.DOMAIN), made.LATTICES[:2])


@pytest.mark.usefixtures("registered")
def test_a_release_from_an_engine_that_counts() -> None:
    """Two scans of one release see one state, the key is in no query, and no row comes to Python."""
    database = Database(ROWS)
    queries: list[str] = []
    database.connection.set_trace_callback(queries.append)
    reader = DatabaseReader(database)
    with sf.Publisher(
        source(reader, made.DOMAIN, person="who", rows_per_person=2), budget=10**7
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
    histogram = sf.Publisher(source(database, made.DOMAIN), budget=10**7).release(
        sf.Histogram("x", bins=7), epsilon=10**6
    )
    assert {(i,): n for i, n in enumerate(histogram.values.tolist()) if n} == made.expected(
        ROWS, X[0]
    )


def test_a_reader_of_both_kinds_counts_by_itself_and_can_be_checked() -> None:
    class Both(PileReader, CountingReader):
        def count(self, needs: Any, unit: Any, key: bytes, progress: Any) -> list[Any]:
            return DatabaseReader(Database(self.pile.rows)).count(needs, unit, key, progress)

    src = source(Both(Pile(ROWS)), made.DOMAIN)
    assert made.found(count(src, X)[0]) == made.expected(ROWS, X[0])
    assert sf.Publisher(src, budget=1).check(sf.Histogram("x")).rows == len(ROWS)


# --- the registry -----------------------------------------------------------------------------------------------------


def test_what_is_registered_reads_before_any_stream_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine's own reader knows better than the protocol that its objects speak, too."""
    monkeypatch.setattr(registry, "_outside", [])

    class Streams:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"x": [1.0]}).__arrow_c_stream__(requested_schema)

    class Own(PileReader):
        @classmethod
        def of(cls, data: object, axes: Sequence[str], person: str | None) -> Own | None:
            return cls(Pile([])) if isinstance(data, Streams) else None

    assert type(opened(Streams())).__name__ == "Stream"
    register_reader(Own)
    assert isinstance(opened(Streams()), Own)
    assert not isinstance(opened(pa.table({"x": [1.0]})), Own)


def test_a_class_that_is_defined_again_replaces_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_outside", [])

    def define() -> type[Reader]:
        class Again(PileReader):
            @classmethod
            def of(cls, data: object, axes: Sequence[str], person: str | None) -> Again | None:
                return cls(data) if isinstance(data, Pile) else None

        return register_reader(Again)

    define()
    second = define()
    assert registry._outside == [second]
    assert type(opened(Pile(ROWS))) is second


def test_classes_that_cannot_be_registered() -> None:
    class Half(RowReader):
        name = "half"

    class Neither(Reader):
        pass

    class Blind(RowReader):
        def names(self) -> list[str]:
            return []

        def schema(self, columns: Columns) -> pa.Schema:
            return pa.schema([])

        def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
            yield from ()

    for bad, words in (
        (Half, "batches and names and schema"),
        (Neither, "neither"),
        (5, "neither"),
        (Blind, "does not implement of"),
    ):
        with pytest.raises(sf.UsageError, match=words):
            register_reader(bad)  # type: ignore[type-var]
    assert {Half, Neither, Blind} & set(registry.readers()) == set()


def test_packages_name_their_readers_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked for when nothing known reads an object, and never for a file."""
    monkeypatch.setattr(registry, "_outside", [])
    looked: list[str] = []

    def installed(*, group: str) -> list[importlib.metadata.EntryPoint]:
        looked.append(group)
        return [importlib.metadata.EntryPoint("pile", "conformance.toys:PileReader", group)]

    monkeypatch.setattr(registry, "entry_points", installed)
    registry.discover.cache_clear()
    try:
        opened("no-such-file.csv")
        opened(pa.table({"x": [1.0]}))
        assert looked == []
        assert isinstance(opened(Pile(ROWS)), PileReader)
        assert looked == [registry.GROUP] == ["sfumato.readers"]
        with pytest.raises(sf.UsageError, match="source of type object"):
            opened(object())
        assert looked == [registry.GROUP]
    finally:
        registry.discover.cache_clear()


def test_an_address_can_be_a_readers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_outside", [])
    with pytest.raises(sf.UsageError, match="only local files"):
        opened("pile://here")

    class Addressed(PileReader):
        @classmethod
        def of(cls, data: object, axes: Sequence[str], person: str | None) -> Addressed | None:
            return cls(Pile(ROWS)) if isinstance(data, str) and data.startswith("pile://") else None

    register_reader(Addressed)
    assert isinstance(opened("pile://here"), Addressed)
    assert not isinstance(opened("here.csv"), Addressed)


# --- errors -----------------------------------------------------------------------------------------------------------


class Failing(PileReader):
    """Quotes a value wherever it is told to fail."""

    def __init__(self, place: str, error: Callable[[], BaseException]) -> None:
        super().__init__(Pile(ROWS))
        self.place, self.error = place, error

    def at(self, place: str) -> None:
        if place == self.place:
            try:
                raise ValueError(CANARY)
            except ValueError:
                raise self.error()  # noqa: B904 - careless, as others' code may be

    def names(self) -> list[str]:
        self.at("names")
        return super().names()

    def schema(self, columns: Columns) -> pa.Schema:
        self.at("schema")
        return super().schema(columns)

    def label(self, name: str | None) -> str:
        self.at("label")
        return super().label(name)

    def rows(self) -> int | None:
        self.at("rows")
        return None

    def snapshot(self) -> Any:
        self.at("snapshot")
        return super().snapshot()

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        self.at("batches")
        for batch in super().batches(columns):
            yield batch
            self.at("second batch")


class FailingCount(Failing, CountingReader):
    def count(self, *_: Any) -> Any:
        self.at("count")


PLACES = ("names", "schema", "label", "rows", "snapshot", "batches", "second batch", "count")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "error", [partial(RuntimeError, CANARY), partial(sf.DataError, "t", "refused", "Mend it")]
)
def test_what_an_engine_says_is_withheld(place: str, error: Callable[[], BaseException]) -> None:
    kind = FailingCount if place == "count" else Failing
    src = source(kind(place, error), made.DOMAIN)

    def ask() -> None:
        _ = src.label
        with sf.data.snapshot(src):  # type: ignore[attr-defined]
            count(src, X, progress=lambda done, total: None)

    with pytest.raises(sf.DataError) as caught:
        ask()
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_reader_that_says_nothing_of_its_state_is_a_data_set_of_its_own() -> None:
    """Otherwise the answers of one table would be found under the label of another."""

    class Silent(PileReader):
        in_memory = False

    one, other = (source(Silent(Pile(ROWS)), made.DOMAIN) for _ in range(2))
    assert "" != one.label == one.label != other.label
