"""``sfumato stream`` stops between two steps: at a signal, or when its reader leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.workers import HANG

COST = ["--epsilon", "1", "--budget", "2", "--ledger", "b.db", "--key", "k"]


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """The limit only ends a hang."""
    until = time.monotonic() + HANG
    while not condition() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert condition()


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_following_a_file_until_a_signal(tmp_path: Path, which: signal.Signals) -> None:
    file, out = tmp_path / "n.txt", tmp_path / "out"
    file.write_text("1\n2\n")
    args = [
        sys.executable,
        "-m",
        "sfumato",
        "stream",
        str(file),
        "--follow",
        "--horizon",
        "9",
        *COST,
    ]
    with out.open("w") as target:
        process = subprocess.Popen(
            args, stdout=target, stderr=subprocess.PIPE, cwd=tmp_path, env=os.environ, text=True
        )
        try:
            wait_for(lambda: out.read_text().count("\n") == 2, process)
            with file.open("a") as more:
                more.write("3\n4")
            wait_for(lambda: out.read_text().count("\n") == 3, process)
            process.send_signal(which)
            err = process.communicate(timeout=HANG)[1]
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert "Stopped after step 3 of 9" in err
    assert [json.loads(line)["step"] for line in out.read_text().splitlines()] == [1, 2, 3], (
        "half a line is no step"
    )


def test_standard_input_in_a_pipe(tmp_path: Path) -> None:
    stream = f"{sys.executable} -m sfumato stream --horizon 99 --epsilon 1 --budget 1 --key k"
    shell = f"seq 30 | {stream} | head -n 2"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert [json.loads(line)["step"] for line in done.stdout.splitlines()] == [1, 2]
    assert "Traceback" not in done.stderr
