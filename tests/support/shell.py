"""A shell in which the commands of a page are typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def type_all(folder: Path, lines: list[str], path: str) -> list[str]:
    """Type commands into one shell; return what each printed on stdout."""
    script = "set -e\n" + "\n".join(f"{line}\necho '=== end'" for line in lines)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("=== end\n")[:-1]


def installed(folder: Path) -> str:
    """A PATH on which `sfumato` is the command of this tree, and `python` runs these tests."""
    programs = folder / "bin"
    programs.mkdir()
    for name, words in {"sfumato": "-m sfumato ", "python": ""}.items():
        program = programs / name
        text = f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n'
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    return f"{programs}{os.pathsep}{os.environ['PATH']}"
