"""What all tests share: profiles of hypothesis, patience, and where evidence is written."""

from __future__ import annotations

import os

# Before numpy is imported, here and in the processes that tests start: on cores that are busy with
# other tests, threads of linear algebra wait for each other ten times as long as they compute.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import gc
import json
import platform
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis
import pytest

from sfumato.ledger import postgres_server as server
from sfumato.ledger import sqlite_file as file
from support.evidence import line_of, page_of
from support.postgres import quick_folder
from support.workers import HANG

pytest_plugins = ["support.entropy"]
ROOT = Path(__file__).parent.parent
hypothesis.settings.register_profile("default", deadline=None, max_examples=25, derandomize=True)
hypothesis.settings.register_profile("deep", deadline=None, max_examples=2_000)
hypothesis.settings.load_profile("default")
# A machine under load keeps a ledger busy for as long as it likes.
file.PATIENCE = server.PATIENCE = HANG


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--evidence", type=Path, help="folder for the figures of the long tests")


def pytest_configure(config: pytest.Config) -> None:
    """Tests that are not long keep their files in memory, if there is room.

    A ledger waits for the disk at each of its statements, and hundreds of tests for a ledger.
    """
    folder = quick_folder()
    if config.getoption("markexpr") == "not deep" and folder is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Fourteen thousand tests are kept to the end: nobody looks among them for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # To look as often as Python does by default takes a tenth of the time of many tests.
        gc.set_threshold(20_000)


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """Write the figures of a long test, with the commit they hold for, where --evidence says."""
    folder: Path | None = request.config.getoption("--evidence")

    def write(name: str, figures: object) -> None:
        print(name, json.dumps(figures))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            page = {
                "test": request.node.nodeid,
                "commit": _commit(),
                "python": platform.python_version(),
                "figures": figures,
            }
            (folder / f"{name}.json").write_text(
                json.dumps(page, indent=1) + "\n", encoding="utf-8"
            )

    return write


def _commit() -> str:
    """The commit that is tested, marked if any file but the evidence differs from it."""
    commit = _git("describe", "--always")
    is_changed = _git("status", "--porcelain", "--untracked-files=no", ":!docs/evidence")
    return f"{commit}-dirty" if is_changed else commit or "unknown"


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Write which long tests ran, where --evidence says."""
    folder: Path | None = config.getoption("--evidence")
    if folder is None:
        return
    stats, commit = terminalreporter.stats, _commit()
    ran = {
        r.nodeid: line_of(r.nodeid, r.outcome, r.duration, commit)
        for name in ("passed", "failed", "skipped")
        for r in stats.get(name, [])
        if r.when == "call" or name == "skipped"
    }
    is_selection = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.keyword
    is_part = is_selection or config.option.maxfail
    was_stopped = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    ran_all = config.option.markexpr == "deep" and not is_part and not was_stopped
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "deep.md"
    before = page.read_text("utf-8") if page.exists() else ""
    page.write_text(page_of(before, ran, ran_all=ran_all), encoding="utf-8")
