"""However many threads count, and whatever piece each of them gets, the cubes are the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance import reader_contract
from conformance.kinds import KINDS, people
from data import random_tables
from sfumato.answers import Summed
from sfumato.answers.counts import Needs
from sfumato.data import check as check_module
from sfumato.data import count, source
from sfumato.data.check import check
from sfumato.data.readers import arrow, csv_rows
from sfumato.domain import Cube, GridAxis
from sfumato.domain.domain import Categories, Domain, Interval, Keys
from sfumato.domain.lattice import KeyAxis, Lattice

ROWS = people(500, seed=5)
IN_PIECES = [kind for kind in KINDS if kind.startswith(("parquet", "csv"))]
IN_ONE = ["excel", "arrow", "arrow, reader", "arrow, dataset", "pandas", "polars", "duckdb"]
THREADS = (2, 3, 5, 16)
X = random_tables.grid("x", 2**10)
CODES = Lattice((random_tables.labels("code"),))
SPREAD = Lattice((random_tables.grid("flag", 2), random_tables.labels("word")))
BY_KEYS = [
    Needs(reader_contract.BY_PERSON, 1, sums=(Summed(X, squares=True),)),
    Needs(reader_contract.BESIDE, 1),
]
WORDS = Domain(**{**random_tables.DOMAIN, "word": Keys()}, who=Keys())
BY_WORD = Lattice((random_tables.grid("flag", 2), KeyAxis("word")))
BY_WORD_AND_X = Lattice((random_tables.grid("x", 3), *BY_WORD.axes))
ROWS_ALONE = [
    *(Needs(lattice, 1) for lattice in random_tables.LATTICES),
    Needs(CODES, 1, sums=(Summed(X, squares=True), Summed(random_tables.grid("n", 2**16)))),
]


def numbers_of(counted: Any, cells: Lattice = SPREAD) -> Needs:
    axis = GridAxis("", 0, 64, 64)
    return Needs(Lattice((axis,)), 64, counted=counted, cells=cells)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small table has many pieces."""
    monkeypatch.setattr(arrow, "PIECE_ROWS", 70)
    monkeypatch.setattr(csv_rows, "WINDOW", 2**13)
    monkeypatch.setattr(csv_rows, "LONGEST", 2**12)


def counted(
    threads: int, data: object, needs: list[Needs], domain: Any, **unit: Any
) -> tuple[list[Cube], int]:
    """The cubes, and how many threads were started for them."""
    started: list[threading.Thread] = []
    begin = threading.Thread.start

    def start(self: threading.Thread) -> None:
        started.append(self)
        begin(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_THREADS", str(threads))
        patch.setattr(threading.Thread, "start", start)
        cubes = count(source(data, domain, **unit), needs, key=reader_contract.KEYS[0])
    assert not any(thread.is_alive() for thread in started)
    return cubes, len(started)


def same_on_all_threads(
    made: Callable[[], object], needs: list[Needs], domain: Any, *, apart: bool, **unit: Any
) -> None:
    one, started = counted(1, made(), needs, domain, **unit)
    assert started == 0
    for threads in THREADS:
        several, started = counted(threads, made(), needs, domain, **unit)
        assert bool(started) == apart
        for cube, other in zip(one, several, strict=True):
            reader_contract._same(cube, other)


@pytest.mark.parametrize("kind", [*IN_PIECES, *IN_ONE])
def test_the_cubes_of_rows_are_the_same(kind: str, tmp_path: Path) -> None:
    def made() -> object:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return KINDS[kind](ROWS, folder)

    # A file whose rows are a single piece is read by the calling thread.
    apart = kind in IN_PIECES and kind not in ("parquet", "parquet, file URI")
    same_on_all_threads(made, ROWS_ALONE, random_tables.DOMAIN, apart=apart)


@pytest.mark.parametrize(
    ("kind", "memory"),
    [
        ("parquet, many row groups", "1G"),
        ("csv", "20K"),
        ("parquet, glob", "20K"),
        pytest.param("parquet, many row groups", "20K", marks=pytest.mark.deep),
        pytest.param("csv", "1G", marks=pytest.mark.deep),
        pytest.param("parquet, glob", "1G", marks=pytest.mark.deep),
    ],
)
@pytest.mark.parametrize("limits", reader_contract.LIMITS[1:])
def test_the_cubes_of_bounded_persons_are_the_same(
    limits: dict[str, Any],
    kind: str,
    memory: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In memory and through files, also where a person's rows are cut."""
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    data = KINDS[kind](ROWS, tmp_path)
    needs = ROWS_ALONE if "norm_per_person" not in limits else ROWS_ALONE[1:3]
    same_on_all_threads(lambda: data, needs, random_tables.DOMAIN, apart=True, **limits)


@pytest.mark.parametrize("memory", ["1G", "20K"])
@pytest.mark.parametrize(
    "needs",
    [
        [numbers_of("rows of each person")],
        [numbers_of("cells of each person"), numbers_of("norm of each person")],
        [Needs(SPREAD, 1, counted="persons")],
        [Needs(CODES, 1, counted="persons", sums=(Summed(X, of_person="mean"),))],
    ],
)
def test_the_cubes_of_counted_persons_are_the_same(
    needs: list[Needs], memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    data = KINDS["parquet, many row groups"](ROWS, tmp_path)
    same_on_all_threads(
        lambda: data, needs, random_tables.DOMAIN, apart=True, person="who", rows_per_person=3
    )


@pytest.mark.parametrize("kind", ["parquet, many row groups", "csv", "csv, several"])
@pytest.mark.parametrize("limits", [{}, *reader_contract.LIMITS[1:5]])
def test_the_cubes_of_unknown_keys_are_the_same(
    limits: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    data = KINDS[kind](ROWS, tmp_path)
    domain = reader_contract.PERSONS
    same_on_all_threads(lambda: data, BY_KEYS, domain, apart=True, **limits)


@pytest.mark.parametrize("memory", ["1G", "20K"])
@pytest.mark.parametrize(
    "need",
    [
        Needs(BY_WORD_AND_X, 1, cells=BY_WORD),
        Needs(BY_WORD_AND_X, 1, counted="persons"),
        Needs(BY_WORD, 1, counted="persons", sums=(Summed(X, of_person="mean"),)),
        numbers_of("cells of each person", BY_WORD),
    ],
)
def test_the_cubes_of_persons_in_cells_of_unknown_keys_are_the_same(
    need: Needs, memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered of a row has the number that one thread gave its key."""
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    data = KINDS["parquet, many row groups"](ROWS, tmp_path)
    limits = reader_contract.LIMITS[4]
    same_on_all_threads(lambda: data, [need], WORDS, apart=True, **limits)


@pytest.mark.parametrize(
    ("kind", "memory"),
    [
        ("parquet, many row groups", "20K"),
        ("csv, several", "1G"),
        pytest.param("csv", "20K", marks=pytest.mark.deep),
        pytest.param("pandas", "20K", marks=pytest.mark.deep),
    ],
)
@pytest.mark.parametrize("limits", reader_contract.LIMITS)
def test_a_check_says_the_same(
    limits: dict[str, Any],
    kind: str,
    memory: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What axes, questions and persons lose, and what is lost in reading text."""
    monkeypatch.setenv("SFUMATO_MEMORY", memory)
    # Which rows a person keeps depends on a key, and so may their number.
    monkeypatch.setattr(check_module, "fresh_key", lambda: reader_contract.KEYS[0])
    data = KINDS[kind](ROWS, tmp_path)
    narrow: dict[str, Any] = {"x": Interval(0, 1), "word": Categories(["a"])}
    if "csv" in kind:
        # No price is a date: all of them are lost in reading.
        narrow["price"] = Interval("2020-01-01", "2021-01-01")
    domain = Domain(**{**random_tables.DOMAIN, **narrow})
    needs = ROWS_ALONE[1:3] if "norm_per_person" in limits else ROWS_ALONE
    questions = [(str(number), need) for number, need in enumerate(needs)]
    said = []
    for threads in (1, 2, 5):
        monkeypatch.setenv("SFUMATO_THREADS", str(threads))
        told: list[int] = []
        whole = check(source(data, domain, **limits))
        several = check(
            source(data, random_tables.DOMAIN, **limits),
            questions,
            lambda rows, _: told.append(rows),  # noqa: B023
        )
        assert told == sorted(told)
        assert told[-1] == several.rows == len(ROWS)
        said.append((whole, str(whole), several, str(several)))
    assert any(axis.below or axis.above for axis in whole.axes)
    assert any(axis.n_labels > 1 for axis in whole.axes)
    assert all(words == said[0] for words in said)
