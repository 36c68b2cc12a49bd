"""A ledger moves between stores whole, once, and the old one pays for nothing afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from conformance.stores import STORES, filled, public_rows, secret_rows
from ledger.adding import add_one, open_stream
from sfumato.errors import LedgerError
from sfumato.ledger import Book, Store
from sfumato.ledger.moving import COPIED, migrate
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sqlite import SQLiteSecretRows, SQLiteStore
from sfumato.ledger.store import MOVED
from support.postgres import address, schema_of

DURABLE = ("SQLite in a file", "PostgreSQL")
PAIRS = [(one, other) for one in (*DURABLE, "memory") for other in DURABLE]


class Reopened:
    """A store that may be closed and asked for again, on the same rows."""

    def __init__(self, make: Callable[[Path], Store], folder: Path) -> None:
        folder.mkdir()
        self._make = make
        self._folder = folder
        self._last: Store | None = None

    def __call__(self) -> Store:
        if self._last is None or "Memory" not in type(self._last).__name__:
            self._last = self._make(self._folder)
        return self._last


def lived_in(store: Store) -> Book:
    """A book with an answered key, one that is left, a stream on its way and one that is over."""
    book = Book(store)
    book.open_account("trips", "marbles", (1000, 0))
    book.signer(create=True)
    with book.reserve("trips", None, "a question", (10, 0), "") as hold:
        hold.store(b"noisy")
    with book.reserve("trips", "left", "another", (10, 0), ""):
        pass
    stream = open_stream(book)
    for number in range(3):
        stream.take(f"e{number}", add_one, [b"someone"])
    return book


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_everything_moves_and_goes_on(one: str, other: str, tmp_path: Path) -> None:
    source = Reopened(STORES[one], tmp_path / "source")
    target = Reopened(STORES[other], tmp_path / "target")
    book = lived_in(source())
    head = book.verify().head
    before = public_rows(source())
    signer = book.signer()
    done = migrate(source(), target())
    assert (done.entries, done.streams) == (len(list(before["entries"])), 1)
    assert public_rows(target()) == before
    moved = Book(target())
    assert moved.verify(head).ok
    assert moved.signer() == signer
    with moved.reserve("trips", None, "a question", (10, 0), "") as hold:
        assert hold.stored == b"noisy"
    stream = open_stream(moved)
    assert stream.take("e1", add_one)[1] is False  # found again
    assert stream.take("e3", add_one, [b"someone"])[0].number == 4
    assert moved.verify().ok


def _seeds(store: Store) -> dict[tuple[str, str], bytes]:
    secrets = store.secrets(create=False)
    try:
        return secrets.reading(lambda rows: dict(rows.seeds()))
    finally:
        secrets.close()


@pytest.mark.parametrize("one", DURABLE)
@pytest.mark.parametrize("other", DURABLE)
def test_no_seed_of_a_later_answer_stays_behind(one: str, other: str, tmp_path: Path) -> None:
    """An answer that the new ledger stores has noise that nobody reads in the old one."""
    source = Reopened(STORES[one], tmp_path / "source")
    target = Reopened(STORES[other], tmp_path / "target")
    book = lived_in(source())
    with book.reserve("trips", None, "not yet answered", (10, 0), "", seed=bytes(range(64))):
        pass
    before = _seeds(source())
    assert bytes(range(64)) in before.values()
    migrate(source(), target())
    assert _seeds(target()) == before
    assert _seeds(source()) == {}
    for path in (tmp_path / "source").iterdir():
        assert bytes(range(64)) not in path.read_bytes()


def test_the_old_ledger_pays_for_nothing_and_takes_no_step(tmp_path: Path) -> None:
    make = Reopened(STORES["SQLite in a file"], tmp_path / "source")
    book = lived_in(make())
    stream = open_stream(book)
    target = Reopened(STORES["memory"], tmp_path / "target")
    migrate(make(), target())
    for old in (book, Book(make())):  # one that was open all the time, and a new one
        with pytest.raises(LedgerError, match="was moved to the ledger in memory"):
            old.reserve("trips", None, "more", (1, 0), "")
        assert old.verify().ok
    for tokens in ([], [b"someone"]):
        with pytest.raises(LedgerError, match="was moved to"):
            stream.take("late", add_one, tokens)
    with pytest.raises(LedgerError, match="was moved to"):
        migrate(make(), SQLiteStore(tmp_path / "third.db"))


@pytest.mark.parametrize("name", DURABLE)
def test_a_charge_that_moved_has_one_answer(name: str, tmp_path: Path) -> None:
    source = Reopened(STORES[name], tmp_path / "source")
    target = Reopened(STORES["SQLite in a file"], tmp_path / "target")
    book = lived_in(source())
    slow = book.reserve("trips", "slow", "a slow question", (10, 0), "", lease=0.0)
    migrate(source(), target())
    with pytest.raises(LedgerError, match="was moved to"):
        slow.store(b"one draw")
    for key, asked in (("slow", "a slow question"), ("left", "another")):
        with pytest.raises(LedgerError, match="was moved to"):
            book.reserve("trips", key, asked, (10, 0), "")
    assert book.reserve("trips", None, "a question", (10, 0), "").stored == b"noisy"
    assert book.verify().ok
    with Book(target()).reserve("trips", "slow", "a slow question", (10, 0), "") as hold:
        assert hold.store(b"another draw") == b"another draw"


def test_there_is_no_second_copy_in_a_store_of_the_same_name(tmp_path: Path) -> None:
    source = Reopened(STORES["SQLite in a file"], tmp_path / "source")
    lived_in(source())
    migrate(source(), PostgresStore(address(), schema=schema_of(tmp_path / "one")))
    other = PostgresStore(address(), schema=schema_of(tmp_path / "other"))
    with pytest.raises(LedgerError, match="copied to another store of this name"):
        migrate(source(), other)
    Book(other).open_account("trips", "marbles", (1, 0))
    with pytest.raises(LedgerError, match="another ledger in it"):
        migrate(source(), other)


def test_a_move_waits_for_a_step_that_is_under_way(tmp_path: Path) -> None:
    name = schema_of(tmp_path)
    book = lived_in(PostgresStore(address(), schema=name))
    with psycopg.connect(address()) as stepping:
        stepping.execute(f'SET search_path = "{name}_secrets"')
        number, seal = stepping.execute("SELECT stream, seal FROM streams").fetchone() or (0, "")
        step = "SELECT take_step(%s, %s, 4, 'e', '4', 'linked', '4', 3, 'sealed')"
        stepping.execute(step, (number, seal))
        with psycopg.connect(address()) as moving:
            moving.execute(f'SET search_path = "{name}_secrets"')
            with pytest.raises(psycopg.errors.LockNotAvailable):
                moving.execute("LOCK TABLE about IN EXCLUSIVE MODE NOWAIT")
        stepping.rollback()
    assert book.verify().ok


@pytest.mark.parametrize("cut_after", ["mark", "public"])
def test_a_move_that_was_cut_off_goes_on(
    cut_after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Reopened(STORES["SQLite in a file"], tmp_path / "source")
    lived_in(source())
    before = public_rows(source())
    target = Reopened(STORES["SQLite in a file"], tmp_path / "target")
    name = {"mark": "_copy_public", "public": "_copy_secret"}[cut_after]

    def cut(*given: object, **stated: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"sfumato.ledger.moving.{name}", cut)
        with pytest.raises(KeyboardInterrupt):
            migrate(source(), target())
    with pytest.raises(LedgerError, match="was moved to"):
        Book(source()).reserve("trips", None, "more", (1, 0), "")
    migrate(source(), target())
    assert public_rows(target()) == before
    kept = secret_rows(source().secrets(create=False))
    values = kept["values"]
    assert isinstance(values, dict)
    kept["values"] = {name: values[name] for name in values if name not in (MOVED, COPIED)}
    assert secret_rows(target().secrets(create=False)) == kept
    assert migrate(source(), target()).streams == 1  # nothing more to do


def test_a_store_with_a_ledger_in_it_is_no_target(tmp_path: Path) -> None:
    source = SQLiteStore(tmp_path / "a.db")
    lived_in(source)
    with pytest.raises(LedgerError, match="there is a ledger in it"):
        migrate(SQLiteStore(tmp_path / "a.db"), filled(SQLiteStore(tmp_path / "b.db")))
    assert Book(SQLiteStore(tmp_path / "a.db")).reserve("trips", None, "more", (1, 0), "")


def test_a_ledger_that_was_edited_stays_where_it_is(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a.db")
    lived_in(store)
    store.writing(lambda rows: rows._db.execute("DROP TRIGGER entries_stay"))
    store.writing(lambda rows: rows._db.execute("DELETE FROM entries WHERE sequence = 5"))
    with pytest.raises(LedgerError, match="Restore a copy that verifies"):
        migrate(SQLiteStore(tmp_path / "a.db"), SQLiteStore(tmp_path / "b.db"))


def test_seeds_are_wiped_from_the_disk_of_a_moved_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of the secrets keeps the log uncut: the commit itself must reach the disk."""
    source = Reopened(STORES["SQLite in a file"], tmp_path / "source")
    book = lived_in(source())
    with book.reserve("trips", None, "not yet answered", (10, 0), "", seed=bytes(range(64))):
        pass
    synchronous: list[int] = []
    plain = SQLiteSecretRows.wipe_seed

    def wipe_seed(rows: SQLiteSecretRows, account: str, key: str) -> None:
        synchronous.extend(level for (level,) in rows._ask("PRAGMA synchronous"))
        plain(rows, account, key)

    monkeypatch.setattr(SQLiteSecretRows, "wipe_seed", wipe_seed)
    migrate(source(), Reopened(STORES["SQLite in a file"], tmp_path / "target")())
    assert synchronous
    assert min(synchronous) >= 2, "FULL, not NORMAL"
