"""Which reader reads an object, and what is imported to find out."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from conformance.kinds import people
from conformance.toys import Pile, PileReader
from data import random_tables
from sfumato.data import registry
from sfumato.data.reader import Columns, Reader, RowReader
from sfumato.data.registry import open_reader, register_reader

ROWS = people(200, seed=2)


def opened(data: object) -> Any:
    return open_reader(data, tuple(random_tables.DOMAIN), "who")


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
        (Neither, "it is no RowReader"),
        (5, "it is no RowReader"),
        (Blind, "does not implement of"),
    ):
        with pytest.raises(sf.UsageError, match=words):
            register_reader(bad)  # type: ignore[type-var]
    assert {Half, Neither, Blind} & set(registry._outside) == set()


def test_packages_name_their_readers_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked for when nothing known reads an object, and never for a file."""
    monkeypatch.setattr(registry, "_outside", [])
    looked: list[str] = []

    def installed(*, group: str) -> list[importlib.metadata.EntryPoint]:
        looked.append(group)
        return [importlib.metadata.EntryPoint("pile", "conformance.toys:PileReader", group)]

    monkeypatch.setattr(importlib.metadata, "entry_points", installed)
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


ALONE = """
import sys


class NotInstalled:
    # As if the other engines were not installed. pyarrow looks for pandas, and works without it.

    def find_spec(self, name, path=None, target=None):
        if name in {others!r}:
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NotInstalled())
{make}
from sfumato.data import count, source
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
domain = Domain(x=Interval(0, 4, step=1))
lattice = Lattice((grid_axis("x", domain["x"], 4),))
for person in (None, "who"):
    assert count(source(data, domain, person=person), [lattice])[0].counts.tolist() == [1, 1, 0, 0]
assert not sys.modules.keys() & set({others!r})
"""


MAKE = {
    "polars": "import polars; data = polars.DataFrame({'x': [0, 1], 'who': ['a', 'b']}).lazy()",
    "duckdb": "import duckdb; "
    "data = duckdb.sql(\"SELECT unnest([0, 1]) AS x, unnest(['a', 'b']) AS who\")",
    "pandas": "import pandas; data = pandas.DataFrame({'x': [0, 1], 'who': ['a', 'b']})",
    "pyarrow": "import pyarrow; data = pyarrow.table({'x': [0, 1], 'who': ['a', 'b']})",
    "file": "import pathlib; "
    "pathlib.Path('t.csv').write_text('x,who\\n0,a\\n1,b\\n'); data = 't.csv'",
}


@pytest.mark.parametrize("engine", MAKE)
def test_one_engine_needs_no_other(engine: str, tmp_path: Path) -> None:
    others = [name for name in ("polars", "duckdb", "pandas") if name != engine]
    script = ALONE.format(others=others, make=MAKE[engine])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
