"""The file of a ledger: who may open it, what a full disk leaves, and what is no ledger."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import traceback
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.errors import LedgerError, SfumatoError
from sfumato.ledger import open_ledger
from sfumato.ledger import sqlite_file as database


def in_child(action, *, user: int | None = None) -> int:
    """Run an action in a forked process, perhaps as another user; 0 if it raised nothing."""
    child = os.fork()
    if child == 0:
        try:
            if user is not None:
                os.setgid(user)
                os.setuid(user)
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_file_and_its_logs_belong_to_their_owner_only(path, release):
    before = os.umask(0)
    try:
        with open_ledger(path) as ledger:
            ledger.open_account("trips", "marbles", (1000, 0))
            release(ledger, "a")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    books = ("budget.db", "budget.db.secrets")
    assert modes == {book + end: 0o600 for book in books for end in ("", "-wal", "-shm")}


def test_every_commit_is_synced(path):
    with open_ledger(path) as ledger:
        db = ledger._store.database._connection
        asked = ("journal_mode", "synchronous", "foreign_keys", "fullfsync")
        assert [db.execute(f"PRAGMA {name}").fetchone()[0] for name in asked] == ["wal", 2, 1, 1]


@pytest.mark.parametrize("create", [True, False])
def test_a_missing_folder_or_file(tmp_path, create):
    with pytest.raises(LedgerError, match="folder does not exist" if create else "no such file"):
        open_ledger(tmp_path / "nowhere" / "budget.db", create=create)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_a_ledger(path):
    path.write_bytes(b"name,age\nada,36\n" * 500)
    with pytest.raises(LedgerError, match="not a ledger"):
        open_ledger(path)
    assert path.read_bytes() == b"name,age\nada,36\n" * 500


def test_a_database_that_is_not_a_ledger_is_left_as_it_was(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE people (name)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        open_ledger(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_ledger(path):
    path.touch()
    with open_ledger(path) as ledger:
        assert ledger.verify().ok


def test_a_newer_version_is_refused(path):
    open_ledger(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(LedgerError, match="version 7, and this library knows versions up to 6"):
        open_ledger(path)


def test_a_file_is_made_at_once_or_not_at_all(path, monkeypatch):
    with monkeypatch.context() as broken:
        script = "CREATE TABLE halfway (x);\nCREATE TABLE halfway (x);\n"
        broken.setattr(database, "script", lambda kind: script)
        with pytest.raises(LedgerError):
            open_ledger(path)
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        assert ledger.verify().ok


def test_a_read_only_file_and_folder(release):
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "budget.db"
        with open_ledger(path) as ledger:
            ledger.open_account("trips", "marbles", (1000, 0))
            release(ledger, "a")
        path.chmod(0o444)

        def refused() -> None:
            with pytest.raises(LedgerError), open_ledger(path) as ledger:
                release(ledger, "b")
            with pytest.raises(LedgerError):
                open_ledger(folder / "new.db")

        for mode in (0o777, 0o555):
            folder.chmod(mode)
            if mode == 0o555:
                assert in_child(refused, user=65534 if os.getuid() == 0 else None) == 0
        folder.chmod(0o755)
        path.chmod(0o600)
        with open_ledger(path) as ledger:
            assert ledger.verify().ok
            assert ledger.account("trips").spent == (10, 0)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def fill(ledger, release) -> tuple[int, SfumatoError]:
    """Release large answers until the disk refuses; how many were handed out, and the refusal."""
    for number in range(1000):
        try:
            release(ledger, str(number), b"x" * 20_000, (1, 0))
        except LedgerError as error:
            return number, error
    raise AssertionError("the disk never filled")


def check_after_full(path, release, done: int) -> None:
    """Nothing that was handed out is lost, the books balance, and work goes on where it stopped."""
    with open_ledger(path) as ledger:
        assert ledger.verify().ok
        charged = sum(entry.kind == "reserve" for entry in ledger.log())
        assert done <= charged <= done + 1
        assert ledger.account("trips").spent == (charged, 0)
        assert all(
            release(ledger, str(number), b"other", (1, 0)) == b"x" * 20_000
            for number in range(done)
        )
        release(ledger, str(done), b"with room again", (1, 0))
        assert ledger.verify().ok


def test_a_full_disk_by_page_count(path, release):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        ledger._store.database._connection.execute("PRAGMA max_page_count = 60")
        done, error = fill(ledger, release)
    assert "the disk is full" in str(error)
    assert done > 3
    check_after_full(path, release, done)


def test_a_file_that_may_not_grow(path, release, tmp_path):
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open_ledger(path) as ledger:
            ledger.open_account("trips", "marbles", (1000, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
            done, error = fill(ledger, release)
            assert "disk" in str(error)
        (tmp_path / "done").write_text(str(done))

    assert in_child(limited) == 0
    check_after_full(path, release, int((tmp_path / "done").read_text()))


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("mount") is None, reason="only root may mount a small disk"
)
def test_a_small_disk(tmp_path, release):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    ).returncode:
        pytest.skip("this machine mounts nothing")
    try:
        path = disk / "budget.db"
        with open_ledger(path) as ledger:
            ledger.open_account("trips", "marbles", (1000, 0))
            done, error = fill(ledger, release)
        assert "disk" in str(error)
        assert done > 3
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        check_after_full(path, release, done)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_is_replaced_while_open(path, release):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        path.rename(path.with_suffix(".moved"))
        with pytest.raises(LedgerError, match="moved or replaced"):
            release(ledger, "a")
        path.with_suffix(".moved").rename(path)
        release(ledger, "a")
        os.link(path, path.with_suffix(".twin"))
        with pytest.raises(LedgerError, match="several names"):
            release(ledger, "b")


def test_an_odd_name(tmp_path, release):
    path = tmp_path / "what? #1 100%.db"
    with open_ledger(str(path)) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        release(ledger, "a")
    assert path.exists()
