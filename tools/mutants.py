"""Plant small faults in the code that privacy rests on, and count the fast tests that fail.

`make mutants` runs it, in hours. cosmic-ray makes the faults: a comparison, an operator, a number
or a condition is changed, one at a time, in a copy of the tree. Of each module a public sample is
taken. A fault is found if a fast test of the module's room fails: first the module's own tests run,
then the others of the room. What is not found is listed, to be read: many of these faults change
nothing, or only cost accuracy or time. `mutants.json` has the figures.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem

ROOT = Path(__file__).parent.parent
ROOMS = {
    "privacy": ["composition", "measures", "unit", "limits", "allocation", "belief"],
    "random": ["bits", "discrete", "inversion", "truncated", "weighted", "normal", "streams"],
    "mechanisms": [
        "noise",
        "thresholds",
        "gaussian_keys",
        "key_rules",
        "bounded_noise",
        "selection",
        "jointexp",
        "joint_total",
        "weighted_sums",
        "sums",
    ],
    "ledger": ["charges", "bindings", "spenders", "entries", "request", "book"],
    "data": ["bounding", "limiting", "row_order", "row_priorities", "persons", "selecting"],
    "streaming": ["sensitivity", "accounting", "tree", "toeplitz", "restarts", "factorised"],
    "local": ["bpm", "laplace", "mechanism"],
    "tables": ["gaussian_design", "laplace_design", "design", "totals"],
    "histogram": ["strategies", "table_noise", "moments", "records", "keys"],
    "risk": ["sensitivity", "bounds", "membership", "laws"],
}
"""The modules whose faults are looked for: what understates noise, cost or sensitivity is there."""

UNREAD = ("BitOr", "RemoveDecorator", "ExceptionReplacer")
"""Operators of cosmic-ray that change types more often than code: annotations are never run."""

SESSION = """\
[cosmic-ray]
module-path = "{module}"
timeout = 300.0
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
    options.add_argument("--sample", type=int, default=20, help="faults of each module")
    options.add_argument("--out", type=Path, help="the folder of mutants.json")
    chosen = options.parse_args()
    python = str(Path(chosen.python).absolute())
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("src", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, tree / name)
        shutil.copy(ROOT / "pyproject.toml", tree)
        for room in chosen.rooms:
            # A test that fails without a fault would find all of them.
            subprocess.run(
                pytest(tree, python, [f"tests/{room}"]), shell=True, cwd=tree, check=True
            )
            for module in ROOMS[room]:
                found = of_module(tree, room, module, python, chosen.sample)
                figures[f"{room}/{module}.py"] = found
                print(f"{room}/{module}.py", json.dumps(found), flush=True)
    if chosen.out:
        page = {"sample": chosen.sample, "figures": figures}
        text = json.dumps(page, indent=1) + "\n"
        (chosen.out / "mutants.json").write_text(text, encoding="utf-8")


def of_module(tree: Path, room: str, module: str, python: str, sample: int) -> dict[str, object]:
    """How many faults of a module were planted and found, and which were not."""
    path = f"src/sfumato/{room}/{module}.py"
    command = pytest(tree, python, [f"tests/{room}/test_{module}.py", f"tests/{room}"])
    session = tree / "session.sqlite"
    session.unlink(missing_ok=True)
    (tree / "session.toml").write_text(SESSION.format(module=path, command=command))
    run(tree, "init", "session.toml", "session.sqlite")
    with use_db(session, WorkDB.Mode.open) as work:
        every = sorted(work.work_items, key=lambda item: str(item.mutations))
        places = [item for item in every if not any(name in operator(item) for name in UNREAD)]
        picked = random.Random(f"{room} {module}").sample(places, min(sample, len(places)))
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
    """The command that runs those of the tests that are there, up to the first that fails."""
    present = " ".join(test for test in tests if (tree / test).exists())
    paths = f"PYTHONPATH={tree / 'src'}:{tree / 'tests'}"
    return f"env {paths} {python} -m pytest -x -q -p no:cacheprovider -m 'not deep' {present}"


def operator(item: WorkItem) -> str:
    """The name of the change that an item makes, such as core/NumberReplacer."""
    return str(item.mutations[0].operator_name)


def run(tree: Path, *words: str) -> None:
    """Run cosmic-ray in the copy of the tree."""
    program = Path(sys.executable).with_name("cosmic-ray")
    subprocess.run([str(program), *words], cwd=tree, check=True)


if __name__ == "__main__":
    main()
