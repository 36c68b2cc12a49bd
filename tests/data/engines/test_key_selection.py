"""Keys are selected where they are counted: on every engine as from the cube of a scan."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from conformance import reader_contract
from conformance.kinds import people, table
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import CountingReader, count, select, selects, source
from sfumato.data.registry import open_reader
from sfumato.lattice import KeyAxis, Lattice
from sfumato.mechanisms.key_rules import KeyRule
from support.postgres import address

ROWS = people(400, seed=21)


POSTGRES_TYPES = {
    "double": "float8",
    "int64": "int8",
    "int16": "int2",
    "int8": "int2",
    "bool": "bool",
    "decimal128(12, 4)": "numeric(12, 4)",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "string": "text",
}


def on_a_server(held: pa.Table) -> CountingReader:
    rows = [list(row.values()) for row in held.to_pylist()]
    plain = [
        each.type.value_type if isinstance(each.type, pa.DictionaryType) else each.type
        for each in held.schema
    ]
    columns = ", ".join(
        f"{name} {POSTGRES_TYPES[str(type_)]}"
        for name, type_ in zip(held.column_names, plain, strict=True)
    )
    name = f"keys_{next(NUMBERS)}"
    with psycopg.connect(address()) as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copied:
            for row in rows:
                copied.write_row(row)
    return opened(f"{address()}&table={name}")


def opened(where: str) -> CountingReader:
    reader = open_reader(where, ("x",), None)
    assert isinstance(reader, CountingReader)
    return reader


NUMBERS = itertools.count()
ENGINES: dict[str, Callable[[pa.Table], CountingReader]] = {
    "postgres": on_a_server,
}
MOST_DEEP = list(ENGINES)

ONE_RULE = reader_contract.RULES_OF_KEYS[0]
"""What a rule decides of groups, the contract asks of all rules."""


@pytest.mark.parametrize("engine", MOST_DEEP)
@pytest.mark.parametrize("limit", [pytest.param(None, marks=pytest.mark.deep), 2])
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


@pytest.mark.parametrize("engine", MOST_DEEP)
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


@pytest.mark.parametrize("engine", MOST_DEEP)
@pytest.mark.parametrize(
    "column",
    [
        pa.array([7, 7, -3, 2**62, None] * 30, pa.int64()),
        pa.array([1, 2, 3, 1, None] * 30, pa.int8()),
        pa.array([True, False, None, True, True] * 30),
        pa.array(["", "x", "x y", "é", None] * 30),
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
        shown = select(src, needs, ONE_RULE, key=bytes(32))
        assert reader_contract.laid(shown, needs.lattice) == reader_contract.decided(cube, ONE_RULE)


@pytest.mark.parametrize("engine", MOST_DEEP)
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
    shown = select(src, needs, ONE_RULE, key=bytes(32))
    assert reader_contract.laid(shown, needs.lattice) == reader_contract.decided(cube, ONE_RULE)


@pytest.mark.parametrize("engine", MOST_DEEP)
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


# --- how much memory it takes ---------------------------------------------------------------------

ON_SPARK = """
import os
import signal
import sys
import warnings
from hashlib import sha256
from pathlib import Path

warnings.simplefilter("ignore")
os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

from pyspark.sql import SparkSession

import sfumato as sf
from sfumato.histogram import keys as selection
from sfumato.mechanisms.key_rules import KeyRule

way, keys, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
settings = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
session = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
session.sparkContext.setLogLevel("OFF")


class Dying(KeyRule):
    # Once, a worker is killed when it has decided about one batch and handed it on.
    def shown_of(self, batches):
        for batch in batches:
            yield self.shown(batch)
            if not (folder / "died").exists():
                (folder / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)


if way == "killed":
    selection.KeyRule = Dying
more = session.range(keys // 100 * 40).selectExpr("100 * (id div 40) AS id")
shops = session.range(keys).union(more).selectExpr("concat('shop number ', id) AS shop")
source = sf.source(shops, sf.Domain(shop=sf.Keys()), name="shops")
with sf.testing.deterministic(8), sf.Publisher(source, budget=sf.ApproxDP("1", "1e-6")) as pub:
    release = pub.release(sf.Histogram("shop"), epsilon="1", delta="1e-6")
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
session.stop()
seen = sha256(repr((release.cell_names("shop"), release.values.tolist())).encode()).hexdigest()
print(release.values.size, int(peak) // 1024, seen)
"""


def measured(script: str, way: str, keys: int, folder: Path) -> tuple[dict[str, Any], str]:
    """How many keys were shown, the driver's peak in MiB, and the seconds; and what was shown."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, way, str(keys), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    shown, peak, *seen = done.stdout.split()
    seconds = round(time.perf_counter() - start, 1)
    figures = {"way": way, "keys": keys, "shown": int(shown), "peak_mib": int(peak)}
    return figures | {"seconds": seconds}, "".join(seen)


def is_expected(figures: dict[str, Any]) -> bool:
    """Keys of 41 rows are always shown, and those of one row once in a million."""
    many: int = figures["keys"] // 100
    found: int = figures["shown"]
    return many <= found <= many + 60


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none")
def test_memory_grows_with_the_keys_that_are_shown(
    tmp_path: Path, evidence: Callable[[str, object], None]
) -> None:
    """Of 10^7 keys 10^5 are shown: the driver's peak stays flat but for these."""
    found = [measured(ON_SPARK, "new", 10**power, tmp_path)[0] for power in (5, 6, 7)]
    assert all(map(is_expected, found))
    assert found[-1]["peak_mib"] < found[0]["peak_mib"] + 100
    evidence("keys_on_engines", {"spark": found})


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none")
def test_a_worker_that_is_killed_changes_no_released_value(tmp_path: Path) -> None:
    figures, seen = measured(ON_SPARK, "new", 10**5, tmp_path)
    assert is_expected(figures)
    assert not (tmp_path / "died").exists()
    killed, seen_again = measured(ON_SPARK, "killed", 10**5, tmp_path)
    assert (tmp_path / "died").exists()
    assert is_expected(killed)
    assert seen_again == seen
