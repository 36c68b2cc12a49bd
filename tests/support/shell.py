"""Commands of a page, typed into a shell, or run within this process."""

from __future__ import annotations

import io
import os
import runpy
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path

from sfumato.cli import run


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
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.split("=== end\n")[:-1]


def run_all(folder: Path, lines: list[str]) -> list[str]:
    """Run commands within this process, which has imported all that they need.

    Returns what each printed on stdout.
    """
    return [_ran(folder, shlex.split(line, comments=True)) for line in lines]


def _ran(folder: Path, words: list[str]) -> str:
    with chdir(folder), redirect_stdout(io.StringIO()) as printed:
        match words:
            case ["sfumato", *rest]:
                assert run(rest) == 0, words
            case ["python", script]:
                runpy.run_path(script, run_name="__main__")
            case _:
                raise AssertionError(f"no command of ours: {words}")
    return printed.getvalue()


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
