"""Shared by all tests: hypothesis profiles, and where long evidence is written."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parent.parent
hypothesis.settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.register_profile("deep", deadline=None, max_examples=2_000)
hypothesis.settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--evidence", type=Path, help="folder for the figures of the long tests")


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """Write the figures of a long test, with the commit they hold for, where --evidence says."""
    folder: Path | None = request.config.getoption("--evidence")

    def write(name: str, figures: object) -> None:
        print(name, json.dumps(figures))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            page = {"test": request.node.nodeid, "commit": _commit(), "python": platform.python_version(), "figures": figures}
            (folder / f"{name}.json").write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")

    return write


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
