"""A user's script as two type checkers and an editor see it.

``mypy --strict`` and ``basedpyright``, strict by its first line.

The package is found as an installed one is: by the path of the interpreter and its ``py.typed``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sfumato as sf
from support import pages

HERE = Path(__file__).parent
SCRIPTS = ("script.py", "notebook.py", "mistakes.py")
ROOT = HERE.parent.parent
STUB = Path(sf.__file__).with_suffix(".pyi")
REPORTED = re.compile(r"(\w+\.py):(\d+):.*\berror: .*")
MYPY = (
    "mypy",
    "--strict",
    "--config-file",
    "",
    "--follow-imports",
    "silent",
    "--cache-dir",
    "cache",
    "--disable-error-code",
    "import-untyped",
)
BASEDPYRIGHT = ("basedpyright", "--pythonpath", sys.executable, "--level", "error")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(MYPY, id="mypy", marks=pytest.mark.deep),  # it reads the whole library anew
        pytest.param(BASEDPYRIGHT, id="basedpyright"),
    ],
)
def reported(request, tmp_path_factory):
    """What a checker reports, by file and line.

    It reads the scripts here, and the modules on the page about extending.
    """
    folder = tmp_path_factory.mktemp("typing")
    for script in SCRIPTS:
        shutil.copy(HERE / script, folder)
    for name, text in pages.files(ROOT / "docs" / "extending.md"):
        (folder / name).write_text(text, encoding="utf-8")
    scripts = sorted(path.name for path in folder.glob("*.py"))
    command = [sys.executable, "-m", *request.param, *scripts]
    found = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parent.parent)}
    done = subprocess.run(
        command, cwd=folder, env=found, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr  # there are mistakes
    lines: dict[str, dict[int, str]] = {script: {} for script in scripts}
    for match in REPORTED.finditer(done.stdout):
        lines[match[1]][int(match[2])] = match[0]
    return lines


@pytest.mark.parametrize("script", ["script.py", "notebook.py"])
def test_a_users_script_is_accepted(reported, script):
    assert not reported[script], reported[script]


def test_the_modules_on_the_page_about_extending_are_accepted(reported):
    others = {name: lines for name, lines in reported.items() if name not in SCRIPTS}
    assert {"targets.py", "districts.py"} <= set(others)
    assert not any(others.values()), others


def test_each_mistake_is_reported_and_nothing_else(reported):
    lines = (HERE / "mistakes.py").read_text(encoding="utf-8").splitlines()
    expected = {number for number, line in enumerate(lines, 1) if "# mistake: " in line}
    assert set(reported["mistakes.py"]) == expected, reported["mistakes.py"]
    assert len(expected) == 18


def _names(stub: Path) -> list[str]:
    """What a stub imports under a name, and what it takes from another stub as a whole."""
    text = stub.read_text(encoding="utf-8")
    whole = re.findall(r"^from \.(\w+) import \*", text, flags=re.M)
    return re.findall(r"^from \S+ import \w+ as (\w+)(?: +#.*)?$", text, flags=re.M) + [
        name for other in whole for name in _names(stub.parent / other / "__init__.pyi")
    ]


def test_the_stub_names_what_the_door_opens():
    assert sorted(_names(STUB)) == sf.__all__


@pytest.mark.parametrize("name", sf.__all__)
def test_an_editor_finds_a_docstring(name):
    found = getattr(sf, name)
    text = (found if name == "__version__" else found.__doc__) or ""
    assert text.strip()
    assert not text.startswith(f"{name}("), "the docstring is the one that dataclasses make up"


def test_a_wheel_holds_the_stub_and_says_that_it_is_typed(tmp_path):
    wheel = pytest.importorskip("hatchling.builders.wheel", reason="make venv installs hatchling")
    (built,) = wheel.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(built).namelist()
    stubs = {f"sfumato/{stub.relative_to(STUB.parent)}" for stub in STUB.parent.rglob("*.pyi")}
    assert {"sfumato/py.typed", "sfumato/__init__.pyi"} | stubs <= set(names)
    assert not [name for name in names if "__pycache__" in name]
