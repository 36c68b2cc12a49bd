"""PostgreSQL servers that a test may stop, kill, copy and follow, each with a folder of its own.

`support.postgres` has the one server that all other tests share.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from support.postgres import package, quick_folder
from support.workers import HANG

SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "40",
    "shared_buffers": "8MB",
    "wal_level": "replica",
    "max_wal_senders": "4",
}
# How often it is looked whether a server has started or ended: this decides no outcome.
PAUSE = 0.02


@cache
def _template() -> Path:
    """A data directory that no server has used yet: copying one is faster than making one."""
    temporary = tempfile.TemporaryDirectory(prefix="sfumato-template-", dir=quick_folder())
    atexit.register(temporary.cleanup)
    folder = Path(temporary.name) / "data"
    folder.parent.chmod(0o755)
    package().PostgresServer(folder)  # so that the package's own user is there
    _own(folder.parent)
    options = ("--auth=trust", "--encoding=utf8", "-U", "postgres", "-N", "--wal-segsize=1")
    _run("initdb", *options, "-D", str(folder), log=folder.parent / "log")
    return folder


def _user() -> str | None:
    """A server refuses to run as root; the package that ships it has a user for that."""
    return "pgserver" if os.geteuid() == 0 else None


def _own(path: Path) -> None:
    user = _user()
    if user is not None:
        shutil.chown(path, user, user)


def _begin(
    command: str, *arguments: str, log: Path, largest: int | None = None
) -> subprocess.Popen[bytes]:
    """Begin one of the server's programs."""
    program = package().POSTGRES_VERSIONS[package().TARGET_POSTGRES_VERSION] / command
    limit = "unlimited" if largest is None else str(2 * largest)  # in half kilobytes
    shell = ["sh", "-c", 'ulimit -S -f "$0"; exec "$@"', limit]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*shell, str(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=_user(),
            env={**os.environ, "LC_ALL": "C"},
            cwd="/",
        )


def _run(command: str, *arguments: str, log: Path) -> None:
    """Run one of the server's programs to its good end."""
    code = _begin(command, *arguments, log=log).wait(HANG)
    assert code == 0, log.read_text()


class Server:
    """One server. It is stopped and removed by `close`.

    Parameters
    ----------
    data : Path or None
        A data directory to begin with, which is copied; None: a new one.
    place : Path or None
        The folder of its files; None: one of its own, in memory where there is room.
    settings : dict of str
        Lines of its configuration.
    """

    def __init__(
        self, data: Path | None = None, *, place: Path | None = None, **settings: str
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sfumato-server-", dir=quick_folder()))
        self.folder.chmod(0o755)
        self.data = (place or self.folder) / "data"
        self.copy(data or _template(), self.data)
        lines = [f"{name} = {value}" for name, value in (SETTINGS | settings).items()]
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write("\n".join(["", *lines, ""]))
        _own(self.folder)
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The URL of its database."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    @staticmethod
    def copy(source: Path, target: Path) -> None:
        """Copy a data directory of a server that is not running."""
        shutil.copytree(source, target)
        for folder, _, names in os.walk(target):
            _own(Path(folder))
            for name in names:
                _own(Path(folder, name))
        target.chmod(0o700)

    def start(self, *, largest: int | None = None) -> Server:
        """Start it, and wait until it answers; ``largest``: kilobytes of a file it may write."""
        import psycopg

        while True:
            if self._process is None or self._process.poll() is not None:
                # Those whom a killed server leaves end a moment later, and hold its memory.
                log = self.log.read_text() if self._process else ""
                assert self._process is None or "in use" in log, log
                place = ("-D", str(self.data), "-k", str(self.folder))
                self._process = _begin("postgres", *place, log=self.log, largest=largest)
            try:
                psycopg.connect(self.address).close()
            except psycopg.OperationalError:
                time.sleep(PAUSE)
            else:
                return self

    def stop(self, by: signal.Signals = signal.SIGINT) -> None:
        """Stop it, and wait for its end.

        By SIGINT it ends connections and writes everything down; by SIGQUIT it stops at once and
        recovers when it starts again; by SIGKILL it cannot even tell the processes that serve
        connections, which notice by themselves.
        """
        if self._process is not None:
            self._process.send_signal(by)
            self._process.wait(HANG)
            self._process = None

    def put_back(self, data: Path) -> None:
        """Put an older copy in the place of its data directory, while it is not running."""
        shutil.rmtree(self.data)
        self.copy(data, self.data)

    def follow(self, **settings: str) -> Server:
        """A second server, not started yet, that follows this one."""
        follower = Server(**settings)
        shutil.rmtree(follower.data)
        base = ("-D", str(follower.data), "-h", str(self.folder), "-U", "postgres", "-w")
        _run("pg_basebackup", *base, "-R", "-X", "stream", "-c", "fast", log=follower.log)
        return follower

    def promote(self) -> None:
        """Let a server that follows another one go on by itself."""
        _run("pg_ctl", "-w", "-D", str(self.data), "promote", log=self.log)

    def ask(self, *queries: str) -> list[Sequence[object]]:
        """Run statements as the owner of the server; the rows of the last."""
        import psycopg

        with closing(psycopg.connect(self.address, autocommit=True)) as db:
            for query in queries:
                found = db.execute(query.encode())
            return list(found.fetchall()) if found.description else []

    def close(self) -> None:
        """Leave nothing of it behind."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)
