"""Plant small faults in the code that privacy rests on, and count the fast tests that fail.

`make mutants` runs it, in hours. cosmic-ray makes the faults: a comparison, an operator, a number
or a condition is changed, one at a time, in a copy of the tree. Of each module a public sample is
taken. A fault is found if a fast test of the module's room fails: first the tests run that import
the module, then the others of the room. What is not found is listed, to be read: many of these
faults change nothing, or only cost accuracy or time. `mutants.json` has the figures.

A module or a folder of tests that is not there ends the run before any fault is planted. Otherwise
pytest would fail for want of tests, and every fault would count as found.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem

ROOT = Path(__file__).parent.parent
ROOMS = {
    "privacy": ["measures", "unit", "limits", "allocation", "belief"],
    "random": ["bits", "discrete", "finite", "inversion", "truncated", "normal", "streams"],
    "mechanisms": [
        "noise",
        "noise_sums",
        "thresholds",
        "gaussian_keys",
        "bounded_noise",
        "selection",
        "jointexp",
        "joint_total",
    ],
    "ledger": ["book", "charge", "journal", "entries", "secrets", "store"],
    "data": ["bounding", "priorities", "row_order", "person_records", "tallies", "key_selection"],
    "streaming": ["accounting", "tree", "toeplitz", "restarts", "factorised"],
    "local": ["bpm", "mechanism"],
    "questions/tables": ["gaussian_design", "design", "totals"],
    "questions/histogram": ["strategies", "table_noise", "statistics", "records", "keys"],
    "risk": ["sensitivity", "bounds", "membership"],
}
"""The modules whose faults are looked for: what understates noise, cost or sensitivity is there.

The tests of a room are in the folder of its last name in tests/.
"""

UNREAD = ("BitOr", "RemoveDecorator", "ExceptionReplacer")
"""Operators of cosmic-ray that change types more often than code: annotations are never run."""

SESSION = """\
[cosmic-ray]
module-path = "{module}"
timeout = {timeout}
excluded-modules = []
test-command = "{command}"

[cosmic-ray.distributor]
name = "local"
"""


def main() -> None:
    """Read the options, test each module, and write the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--python", default=sys.executable, help="which has the tests' packages")
    options.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    options.add_argument("--modules", nargs="+", help="only these modules of the rooms")
    options.add_argument("--sample", type=int, default=20, help="faults of each module")
    options.add_argument("--out", type=Path, help="the folder of mutants.json")
    chosen = options.parse_args()
    python = str(Path(chosen.python).absolute())
    modules = {room: wanted(room, chosen.modules) for room in chosen.rooms}
    unknown = {*(chosen.modules or ())} - {name for names in modules.values() for name in names}
    if unknown:
        raise SystemExit(f"Not in ROOMS: {', '.join(sorted(unknown))}")
    tests = {
        (room, module): tests_of(ROOT, room, module) for room in modules for module in modules[room]
    }
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("src", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, tree / name)
        shutil.copy(ROOT / "pyproject.toml", tree)
        for room in [room for room in modules if modules[room]]:
            # A test that fails without a fault would find all of them.
            command = pytest(tree, python, [f"tests/{folder_of(room)}"])
            start = time.monotonic()
            if subprocess.run(command, shell=True, cwd=tree, check=False).returncode:
                raise SystemExit(f"The tests of {room} must pass before a fault is planted")
            # What takes longer counts as found, so a slow machine must not reach it.
            timeout = max(300, 10 * (time.monotonic() - start))
            for module in modules[room]:
                path = f"src/sfumato/{room}/{module}.py"
                command = pytest(tree, python, tests[room, module])
                session = SESSION.format(module=path, timeout=timeout, command=command)
                found = of_module(tree, path, session, chosen.sample)
                figures[f"{room}/{module}.py"] = found
                print(f"{room}/{module}.py", json.dumps(found), flush=True)
    if chosen.out:
        page = {"sample": chosen.sample, "figures": figures}
        text = json.dumps(page, indent=1) + "\n"
        (chosen.out / "mutants.json").write_text(text, encoding="utf-8")


def wanted(room: str, modules: list[str] | None) -> list[str]:
    """Those modules of a room that were chosen."""
    return [module for module in ROOMS[room] if modules is None or module in modules]


def folder_of(room: str) -> str:
    """The folder in tests/ that has the tests of a room."""
    return room.rpartition("/")[2]


def tests_of(root: Path, room: str, module: str) -> list[str]:
    """The tests of a module: the files of its room that import it, then the room's folder."""
    path = root / "src" / "sfumato" / room / f"{module}.py"
    if not path.is_file():
        raise SystemExit(f"{path.relative_to(root)} is not there: correct ROOMS")
    folder = root / "tests" / folder_of(room)
    files = sorted(folder.rglob("test_*.py"))
    name = ".".join(("sfumato", *room.split("/"), module))
    own = [str(file.relative_to(root)) for file in files if name in imports(file, root)]
    if not files:
        raise SystemExit(f"{folder.relative_to(root)} has no tests: correct ROOMS")
    return [*own, str(folder.relative_to(root))]


@cache
def imports(file: Path, root: Path) -> set[str]:
    """The modules that a file imports, or whose names it imports from a room's face."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {each.name for each in node.names}
            found |= {node.module, *(f"{node.module}.{name}" for name in names)}
            found |= set(behind(node.module, names, root))
    return found


def behind(room: str, names: set[str], root: Path) -> Iterator[str]:
    """The modules from which a room's face has some names."""
    path = root / "src" / Path(*room.split("."))
    for face in (path / "__init__.pyi", path / "__init__.py"):
        if not face.is_file():
            continue
        for node in ast.parse(face.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and names & {each.name for each in node.names}:
                yield f"{room}.{node.module}" if node.level else str(node.module)


def of_module(tree: Path, path: str, settings: str, sample: int) -> dict[str, object]:
    """How many faults of a module were planted and found, and which were not."""
    session = tree / "session.sqlite"
    session.unlink(missing_ok=True)
    (tree / "session.toml").write_text(settings)
    run(tree, "init", "session.toml", "session.sqlite")
    with use_db(session, WorkDB.Mode.open) as work:
        every = sorted(work.work_items, key=lambda item: str(item.mutations))
        places = [item for item in every if not any(name in operator(item) for name in UNREAD)]
        picked = random.Random(path).sample(places, min(sample, len(places)))
        work.clear()
        work.add_work_items(picked)
    run(tree, "exec", "session.toml", "session.sqlite")
    with use_db(session, WorkDB.Mode.open) as work:
        results = list(work.completed_work_items)
    missed = [
        f"line {item.mutations[0].start_pos[0]}: {operator(item)}"
        for item, result in results
        if result.test_outcome == TestOutcome.SURVIVED
    ]
    return {
        "planted": len(results),
        "found": len(results) - len(missed),
        "not found": sorted(missed),
    }


def pytest(tree: Path, python: str, tests: list[str]) -> str:
    """The command that runs the tests, in this order, up to the first that fails."""
    paths = f"PYTHONPATH={tree / 'src'}:{tree / 'tests'}"
    files = " ".join(tests)
    return f"env {paths} {python} -m pytest -x -q -p no:cacheprovider -m 'not deep' {files}"


def operator(item: WorkItem) -> str:
    """The name of the change that an item makes, such as core/NumberReplacer."""
    return str(item.mutations[0].operator_name)


def run(tree: Path, *words: str) -> None:
    """Run cosmic-ray in the copy of the tree."""
    program = Path(sys.executable).with_name("cosmic-ray")
    subprocess.run([str(program), *words], cwd=tree, check=True)


if __name__ == "__main__":
    main()
