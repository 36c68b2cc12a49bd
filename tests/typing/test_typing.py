"""A user's script as two type checkers and an editor see it: ``mypy --strict`` and ``basedpyright`` in strict mode.

The package is found as an installed one is: by the path of this interpreter and its ``py.typed``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sfumato as sf

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
STUB = Path(sf.__file__).with_suffix(".pyi")


def _mypy(script: Path, folder: Path) -> str:
    options = ["--strict", "--follow-imports", "silent", "--config-file", "", "--cache-dir", str(folder), "--show-absolute-path"]
    return _checked("mypy", *options, str(script))


def _basedpyright(script: Path, folder: Path) -> str:
    return _checked("basedpyright", "--pythonpath", sys.executable, "--level", "error", str(script))


def _checked(module: str, *options: str) -> str:
    done = subprocess.run([sys.executable, "-m", module, *options], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


CHECKERS = pytest.mark.parametrize("checker", [_mypy, _basedpyright], ids=["mypy", "basedpyright"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy remembers from the first script helps it with the second."""
    return tmp_path_factory.mktemp("mypy")


@CHECKERS
def test_a_users_script_is_accepted(checker, folder):
    out = checker(HERE / "script.py", folder)
    assert re.search(r"^(Success: no issues found|0 errors, 0 warnings)", out, flags=re.M), out


@CHECKERS
def test_each_mistake_is_reported_and_nothing_else(checker, folder):
    script = HERE / "mistakes.py"
    lines = script.read_text(encoding="utf-8").splitlines()
    expected = {number for number, line in enumerate(lines, 1) if "# mistake: " in line}
    out = checker(script, folder)
    assert {int(number) for number in re.findall(r"mistakes\.py:(\d+):.*\berror: ", out)} == expected, out
    assert len(expected) == 18


def test_the_stub_names_what_the_door_opens():
    names = re.findall(r"^from \S+ import \w+ as (\w+)$", STUB.read_text(encoding="utf-8"), flags=re.M)
    assert sorted(names) == sf.__all__


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
    assert {"sfumato/py.typed", "sfumato/__init__.pyi"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
