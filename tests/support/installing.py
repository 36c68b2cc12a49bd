"""A folder that holds an installed package, and processes beside it.

The folder has the package's module, and the metadata that an installer writes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RUN = """
import contextlib, io, json, sys
from sfumato.cli import run
found = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def installed(folder: Path, package: str, code: str, **questions: str) -> Path:
    """Install a package of one module, which declares questions: command's name = "Class"."""
    module = package.replace("-", "_")
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name.replace('_', '-')} = {module}:{kind}" for name, kind in questions.items()]
    (metadata / "entry_points.txt").write_text(
        "\n".join(["[console_scripts]", "other = os:getcwd", "[sfumato.questions]", *lines, ""])
    )
    return folder


def python(folder: Path, code: str, *words: str, site: str = "site") -> str:
    """What a process of its own prints, beside installed packages."""
    paths = os.pathsep.join([str(folder / site), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    called = [sys.executable, "-c", code, *words]
    return subprocess.run(
        called, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


def sfumato(folder: Path, *commands: list[str], site: str = "site") -> list[tuple[int, str, str]]:
    """Run command lines, one after another, beside installed packages.

    Return their exit codes, stdout and stderr.
    """
    return [
        tuple(found) for found in json.loads(python(folder, RUN, json.dumps(commands), site=site))
    ]
