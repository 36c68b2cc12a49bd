"""The disk of a server is full: nothing is half done, and it goes on when there is room.

The files of a ledger in SQLite are filled in ``tests/ledger/sqlite/test_database.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Book, open_ledger
from sfumato.ledger import postgres_server as database
from support.servers import Server

SIZE = 100 * 2**20  # bytes of the small disk
ANSWER = 150_000  # bytes
MOST = 4_000  # answers: more than any of these disks has room for


def draw(key: str) -> bytes:
    """An answer that no compression shortens; another one each time."""
    return key.encode() + os.urandom(ANSWER)


def spend(book: Book, key: str) -> bytes:
    with book.reserve("trips", key, f"asked {key}", (1, 0), "") as hold:
        return hold.store(draw(key))


def spend_until_refused(book: Book) -> tuple[dict[str, bytes], LedgerError]:
    """What was handed out before the first refusal, and that refusal."""
    handed: dict[str, bytes] = {}
    for number in range(MOST):
        try:
            handed[str(number)] = spend(book, str(number))
        except LedgerError as error:
            return handed, error
    raise AssertionError


def judge(book: Book, handed: dict[str, bytes]) -> None:
    """Go on at the key that was refused; all that was handed out is there, and paid for once."""
    handed[str(len(handed))] = spend(book, str(len(handed)))
    for key, answer in handed.items():
        assert spend(book, key) == answer
    assert book.account("trips").spent == (len(handed), 0)
    assert book.verify().ok


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of its own, which only some users of some machines may make."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-small-"))
    folder.chmod(0o755)  # for the user that servers run as
    asked = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "sfumato", str(folder)]
    try:
        made = subprocess.run(asked, capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    if made:
        yield folder
        subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()
    if not made:
        pytest.skip("this user may mount no file system")


def fill(folder: Path, leave: int) -> Path:
    """Take up all of a disk but some bytes."""
    filler = folder / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(folder).free - leave)
    return filler


def test_a_disk_without_room_for_rows(small_disk: Path) -> None:
    server = Server(place=small_disk)
    log = server.data / "pg_wal"
    shutil.copytree(log, server.folder / "log of changes")
    shutil.rmtree(log)
    log.symlink_to(server.folder / "log of changes")
    if os.geteuid() == 0:
        subprocess.run(["chown", "-hR", "pgserver:", str(server.folder), str(log)], check=True)
    server.start()
    try:
        with open_ledger(server.address) as book:
            book.open_account("trips", "marbles", (10_000, 0))
            filler = fill(small_disk, 2**20)
            handed, refusal = spend_until_refused(book)
            assert "the server has no room left (SQLSTATE 53100)" in str(refusal)
            assert len(handed) > 2
            assert book.account("trips").spent[0] - len(handed) in (0, 1)
            filler.unlink()
            judge(book, handed)
    finally:
        server.close()


@pytest.mark.deep
def test_a_disk_without_room_for_the_log_of_changes(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends by itself, and starts again once there is room."""
    server = Server(place=small_disk, restart_after_crash="off", checkpoint_timeout="1h").start()
    try:
        with open_ledger(server.address) as book:
            book.open_account("trips", "marbles", (10_000, 0))
            filler = fill(small_disk, 3 * 2**20)
            monkeypatch.setattr(database, "PATIENCE", 0.5)
            handed, refusal = spend_until_refused(book)
            assert len(handed) > 2
            assert "Ask again, under the same key" in str(refusal) or "no room" in str(refusal)
            filler.unlink()
            server.stop()
            server.start()
            monkeypatch.undo()
            judge(book, handed)
    finally:
        server.close()


def test_files_that_may_not_grow() -> None:
    server = Server().start(largest=1_500)
    try:
        with open_ledger(server.address) as book:
            book.open_account("trips", "marbles", (10_000, 0))
            handed, refusal = spend_until_refused(book)
            assert len(handed) > 2
            assert "SQLSTATE" in str(refusal)
            server.stop()
            server.start()
            judge(book, handed)
    finally:
        server.close()
