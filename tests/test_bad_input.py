"""Each wrong input gets a typed error of three parts.

It spends nothing, and quotes no value of the data.
"""

from __future__ import annotations

import gzip
import os
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from support.canary import overheard

CANARY = 918_273_645
DOMAIN = sf.Domain(age=sf.Interval(0, 120), kind=sf.Categories(["a", "b"]))
COLUMNS = {"age": [31.0, float(CANARY), 40.0], "kind": ["a", "b", str(CANARY)]}


def ask(
    data: object,
    tmp_path: Path,
    question: object | None = None,
    domain: sf.Domain = DOMAIN,
    **cost: object,
) -> None:
    with sf.Publisher(
        sf.source(data, domain), ledger=tmp_path / "b.db", account="a", budget="3"
    ) as publisher:
        publisher.release(question or sf.Histogram("age"), **(cost or {"epsilon": "1"}))  # type: ignore[call-overload]


def spent(tmp_path: Path) -> tuple[int, int]:
    with sf.Publisher(
        sf.source(np.zeros((1, 1)), sf.Domain(x=sf.Interval(0, 1))),
        ledger=tmp_path / "b.db",
        account="a",
        budget="3",
    ) as p:
        return p.account.spent


def parquet(tmp_path: Path, columns: dict[str, list[object]] | None = None) -> Path:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns or COLUMNS), path)
    return path


def truncated(tmp_path: Path) -> Path:
    path = parquet(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    return path


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing file": (lambda p: p / "none.parquet", "none.parquet"),
    "truncated Parquet": (truncated, "t.parquet"),
    "empty Parquet": (lambda p: _touch(p / "t.parquet"), "empty"),
    "empty CSV": (lambda p: csv(p, ""), "empty"),
    "a header in Latin-1": (lambda p: _latin(p / "t.csv"), "not UTF-8"),
    "CSV without a header": (lambda p: csv(p, "\n\n"), "no header"),
    "text in an Interval, Parquet": (
        lambda p: parquet(p, {"age": [f"x{CANARY}"], "kind": ["a"]}),
        "age",
    ),
    "wrong column": (lambda p: parquet(p, {"aeg": [float(CANARY)], "kind": ["a"]}), "did you mean"),
    "not a table": (lambda p: _text(p / "t.parquet", f"hello {CANARY}"), "t.parquet"),
    "a folder": (lambda p: p, "folder"),
    "broken gzip": (lambda p: _broken_gzip(p / "t.csv.gz"), "t.csv.gz"),
}


def _touch(path: Path) -> Path:
    path.touch()
    return path


def _latin(path: Path) -> Path:
    path.write_bytes(f"age,kind,Größe\n{CANARY},a,2\n".encode("latin-1"))
    return path


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _broken_gzip(path: Path) -> Path:
    path.write_bytes(gzip.compress(f"age,kind\n{CANARY},a\n".encode())[:-12])
    return path


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, tmp_path: Path) -> None:
    make, says = FILES[name]
    data = make(tmp_path)
    with pytest.raises(sf.DataError) as refusal:
        ask(data, tmp_path)
    assert says in str(refusal.value)
    assert refusal.value.exit_code == 4
    assert all(part and not part.endswith(".") for part in refusal.value.args)
    assert spent(tmp_path) == (0, 0)
    assert not overheard(CANARY, lambda: ask(data, tmp_path))


@pytest.mark.parametrize(
    "epsilon", ["0", 0, -1, "-0.5", float("nan"), "nan", "inf", "abc", "", True, None, "1e-10", [1]]
)
def test_epsilon(epsilon: object, tmp_path: Path) -> None:
    with pytest.raises(sf.UsageError, match="epsilon"):
        ask(parquet(tmp_path), tmp_path, epsilon=epsilon)
    assert spent(tmp_path) == (0, 0)


@pytest.mark.parametrize("rows", [0, -3, 1.5, True, "2"])
def test_rows_per_person(rows: object) -> None:
    with pytest.raises(sf.UsageError, match="rows_per_person"):
        sf.source(np.zeros((1, 1)), sf.Domain(x=sf.Interval(0, 1)), rows_per_person=rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: sf.Interval(5, 5), sf.UsageError),
        (lambda: sf.Interval(5, 1), sf.UsageError),
        (lambda: sf.Interval(0, float("inf")), sf.UsageError),
        (lambda: sf.Interval(0, float("nan")), sf.UsageError),
        (lambda: sf.Interval(None, 3), sf.BoundsRequired),
        (lambda: sf.Interval("soon", "later"), sf.BoundsRequired),
        (lambda: sf.Interval("2013-01-01", 3), sf.UsageError),
        (lambda: sf.Interval(0, 10, step=3), sf.UsageError),
        (lambda: sf.Interval(0, 10, step=0), sf.UsageError),
        (lambda: sf.Domain(x=sf.Interval), sf.BoundsRequired),
        (lambda: sf.Domain(x=None), sf.BoundsRequired),
        (sf.Domain, sf.UsageError),
        (lambda: sf.Categories([]), sf.UsageError),
        (lambda: sf.Categories("abc"), sf.UsageError),
        (lambda: sf.Categories(["a", "a"]), sf.UsageError),
        (lambda: sf.Plan([]), sf.UsageError),
        (lambda: sf.Plan(["age"]), sf.UsageError),
        (lambda: sf.Plan([sf.Histogram("a")], shares=[1, 2]), sf.UsageError),
        (lambda: sf.UniformPartitioner(partitions=0), sf.UsageError),
        (lambda: sf.UniformPartitioner(theta=-1), sf.UsageError),
    ],
)
def test_parameters(make: Callable[[], object], kind: type[sf.UsageError]) -> None:
    with pytest.raises(kind) as refusal:
        make()
    assert len(refusal.value.args) == 3


@pytest.mark.parametrize(
    "question",
    [
        sf.Histogram("aeg"),
        sf.Histogram("age", bins=1),
        sf.Histogram("age", bins=[3, 2, 1]),
        sf.Histogram("age", bins=[0, 60, 500]),
        sf.Histogram(["age", "kind"], bins={"kind": 3}),
        sf.Histogram(["age", "age"]),
        sf.Histogram("age", bins=2**27),
        sf.UniformPartitioner("kind"),
    ],
    ids=repr,
)
def test_questions_that_do_not_fit_the_domain(question: object, tmp_path: Path) -> None:
    with pytest.raises(sf.UsageError):
        ask(parquet(tmp_path), tmp_path, question)
    assert spent(tmp_path) == (0, 0)


def test_an_empty_table_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"age": pa.array([], pa.float64()), "kind": pa.array([], pa.string())}), path
    )
    ask(path, tmp_path, sf.Histogram(["age", "kind"]))
    ask(path, tmp_path, sf.UniformPartitioner("age"))
    assert spent(tmp_path) == (2_000_000_000, 0)


def test_a_ledger_that_cannot_be_written(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    with pytest.raises(sf.LedgerError):
        sf.Publisher(
            sf.source(path, DOMAIN), ledger=tmp_path / "none" / "b.db", account="a", budget="3"
        )
    _text(tmp_path / "b.db", "this is not a ledger, but it is long enough to be looked at as one")
    with pytest.raises(sf.LedgerError):
        ask(path, tmp_path)


def test_a_ledger_from_another_version(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    ask(path, tmp_path)
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(sf.LedgerError, match="version"):
        ask(path, tmp_path)


def test_a_full_disk(tmp_path: Path) -> None:
    """A child process that may not write files beyond a size.

    The ledger refuses, and the parent finds it whole.
    """
    data = np.random.default_rng(0).random((10, 1))
    domain = sf.Domain(x=sf.Interval(0, 1))
    child = os.fork()
    if child == 0:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        code = 1
        try:
            with sf.Publisher(
                sf.source(data, domain, name="d"), ledger=tmp_path / "b.db", account="a", budget="3"
            ) as publisher:
                for _ in range(40):
                    publisher.release(sf.Histogram("x", bins=10_000), epsilon="0.01", fresh=True)
        except sf.LedgerError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with sf.Publisher(
        sf.source(data, domain, name="d"), ledger=tmp_path / "b.db", account="a", budget="3"
    ) as publisher:
        assert publisher.ledger.verify().ok
        assert 0 < publisher.account.spent[0] < 400_000_000
