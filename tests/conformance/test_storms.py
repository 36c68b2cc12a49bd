"""Many processes spend from one ledger, each killed at many places in its work, on every store.

Nothing is overspent, nothing that was shown is lost, and nothing was shown that was not paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from sfumato.basics import processes as process_identity
from sfumato.ledger import Book, open_ledger
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sqlite import SQLiteStore
from support import workers
from support.servers import Server
from support.storms import EVENT, begin, begin_by_curves, judge, work
from support.workers import AfterStatement, AtByte, Fate, SoonAfter

pytestmark = pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell who has died"
)
KINDS = ("SQLite", "PostgreSQL")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(max_connections="100").start()
    yield server
    server.close()


@pytest.fixture
def open_book(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Callable[[], Book]:
    """Opens the test's ledger, in any process."""
    if kind == "SQLite":
        return lambda: Book(SQLiteStore(tmp_path / "budget.db"))
    address = request.getfixturevalue("server").address
    schema = f"storm_{abs(hash(request.node.nodeid))}"
    return lambda: Book(PostgresStore(address, schema=schema))


def fate(kind: str, place: Path, number: int, *, most: int) -> Fate:
    """One fate after another: of each kind, spread over so many statements or kilobytes."""
    at = 1 + number * 7 % most
    if kind == "PostgreSQL":
        return (AfterStatement(at), SoonAfter(at))[number % 2]
    log = place / "budget.db-wal"
    return (AfterStatement(at), SoonAfter(at), AtByte(log, 1000 * at, most))[number % 3]


@pytest.mark.parametrize(
    ("kind", "stride", "spends", "early"),
    [
        ("SQLite", 5, 100, False),
        ("SQLite", 9, 100, True),
        ("PostgreSQL", 9, 30, False),
        pytest.param("SQLite", 1, 300, False, marks=pytest.mark.deep),
        pytest.param("SQLite", 1, 300, True, marks=pytest.mark.deep),
        pytest.param("PostgreSQL", 1, 300, False, marks=pytest.mark.deep),
        pytest.param("PostgreSQL", 1, 300, True, marks=pytest.mark.deep),
    ],
)
def test_a_worker_killed_after_each_of_its_statements(
    open_book: Callable[[], Book], tmp_path: Path, stride: int, spends: int, early: bool
) -> None:
    """They are those of opening the ledger and of two releases.

    Control: a worker that shows answers before the ledger has them is found out.
    """
    begin(open_book, spends)
    with open_book() as book:
        release = workers.statements(
            lambda: book.reserve("trips", "0-0", "digest of 0-0", (3, 1), "").store(b"noisy")
        )
    opening = workers.statements(lambda: open_book().close())
    last = opening + 2 * release
    fates = [AfterStatement(number) for number in range(1, last + 1, stride)]
    deaths = workers.storm([partial(work, open_book, tmp_path, 0, 1_000, early)], [fates])
    assert deaths == len(fates)
    if early:
        with pytest.raises(AssertionError, match="is stored, byte for byte"):
            judge(open_book, tmp_path, 1)
    else:
        judge(open_book, tmp_path, 1)


@pytest.mark.parametrize(
    ("kind", "stride", "spends"),
    [
        ("SQLite", 9, 60),
        ("PostgreSQL", 9, 30),
        pytest.param("SQLite", 1, 300, marks=pytest.mark.deep),
        pytest.param("PostgreSQL", 1, 300, marks=pytest.mark.deep),
    ],
)
def test_a_worker_by_curves_killed_after_each_of_its_statements(
    open_book: Callable[[], Book], tmp_path: Path, stride: int, spends: int
) -> None:
    paid = begin_by_curves(open_book, spends)
    with open_book() as book:
        release = workers.statements(
            lambda: book.reserve("trips", "0-0", "digest of 0-0", (3, 1), "", event=EVENT).store(
                b"noisy"
            )
        )
    last = workers.statements(lambda: open_book().close()) + 2 * release
    fates = [AfterStatement(number) for number in range(1, last + 1, stride)]
    deaths = workers.storm([partial(work, open_book, tmp_path, 0, 1_000)], [fates])
    assert deaths == len(fates)
    assert judge(open_book, tmp_path, 1)["charged"] == paid


@pytest.mark.parametrize(
    "stride", [pytest.param(9, id="some"), pytest.param(1, marks=pytest.mark.deep, id="each")]
)
def test_a_file_is_whole_wherever_the_opening_of_its_first_account_by_curves_is_killed(
    tmp_path: Path, stride: int
) -> None:
    """The opening gives a file of before what curves need, or does nothing."""

    def of_before(name: str) -> Callable[[], Book]:
        path = tmp_path / name
        with open_ledger(path) as book:
            book.open_account("old", "pure", (100, 0))
            book.reserve("old", "k", "q", (1, 0), "").store(b"noisy")
        return lambda: Book(SQLiteStore(path))

    counted = of_before("count.db")
    last = workers.statements(lambda: begin_by_curves(counted, 5))
    assert last > 50
    for number in range(1, last + 1, stride):
        open_book = of_before(f"{number}.db")
        begun = partial(begin_by_curves, open_book, 5)
        assert workers.storm([begun], [[AfterStatement(number)]]) == 1
        with open_book() as book:
            assert book.verify().ok
            assert book.account("old").spent == (1, 0)
            book.reserve("trips", "k", "q", (0, 0), "", event=EVENT)


@pytest.mark.parametrize("by_curves", [False, True], ids=["by sums", "by curves"])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_processes_lose_nothing_and_never_overspend(
    kind: str, open_book: Callable[[], Book], tmp_path: Path, by_curves: bool
) -> None:
    # So many that the last worker meets its fates even if all others have done all they can.
    if by_curves:
        begin_by_curves(open_book, 38)
    else:
        begin(open_book, 38)
    most = {"SQLite": 59, "PostgreSQL": 44}[kind]
    fates = [
        [fate(kind, tmp_path, 4 * life + name, most=most) for life in range(3)] for name in range(4)
    ]
    deaths = workers.storm(
        [partial(work, open_book, tmp_path, name, 10) for name in range(4)], fates
    )
    assert deaths == 4 * 3
    judge(open_book, tmp_path, 4)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_processes_ten_thousand_spends_two_hundred_kills(
    kind: str,
    open_book: Callable[[], Book],
    tmp_path: Path,
    evidence: Callable[[str, object], None],
) -> None:
    begin(open_book, 10_000)
    most = {"SQLite": 1_500, "PostgreSQL": 200}[kind]
    fates = [
        [fate(kind, tmp_path, 16 * life + name, most=most) for life in range(13 - name % 2)]
        for name in range(16)
    ]
    deaths = workers.storm(
        [partial(work, open_book, tmp_path, name, 10_000) for name in range(16)], fates
    )
    assert deaths == 200
    found = judge(open_book, tmp_path, 16)
    assert found["charged"] == 10_000
    evidence(f"storm_{kind.lower()}", {"processes": 16, "killed": deaths, **found})
