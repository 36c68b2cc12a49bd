"""The scripts written from each source's own words: they run, and their numbers are beside ours."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PORTS = ROOT / "examples" / "ports"
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

# What each source states, and must be found among its numbers.
STATED = {
    "bpm.py": ["21.8", "22.5", "0.58", "8.63", "4.02", "5.03", "1.79", "1399", "597", "772", "211"],
    "dprivatize.py": ["10", "25", "2", "4", "5"],
    "notebook.py": [
        "0.33898835",
        "0.4003158",
        "0.17987348",
        "0.08082237",
        "0.61802372",
        "0.15816999",
        "0.12500781",
        "0.09879847",
        "0.618",
        "0.3062",
        "0.1691776337",
        "0.1512015286",
        "0.3378875901",
        "0.3829392688",
        "0.3829",
        "0.3291788293",
        "0.347697146",
        "0.3292",
        "0.3378877997",
        "0.3829395063",
        "0.5251497701",
        "0.4317199678",
    ],
    "psilence.py": ["29.95732274", "176.0439001", "0.05"],
    "tf_privacy.py": ["0.8164965809", "0.7071067812", "18.7096"],
}


SEEDED = """
import runpy, sys
from sfumato.testing import deterministic

del sys.argv[0]
with deterministic(1):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""What the scripts say of noisy numbers holds nearly always. A test must hold always."""


LONG = {"bpm.py", "dprivatize.py"}
"""They draw noise for seconds."""
SCRIPTS = [pytest.param(name, marks=[pytest.mark.deep] if name in LONG else []) for name in STATED]


@cache
def printed(name: str) -> list[list[str]]:
    """What a script prints, line by line, in columns."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SEEDED, name],
        cwd=PORTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split(" | ") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_number_of_the_source_is_there(name: str) -> None:
    sources = {
        number for line in printed(name) if len(line) > 2 for number in NUMBERS.findall(line[1])
    }
    assert set(STATED[name]) <= sources


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_is_said_only_where_it_is_the_same(name: str) -> None:
    verdicts = {"the same": 0, "corrected": 0}
    for line in printed(name):
        if line[-1] == "holds" or len(line) < 4:
            continue
        _, source, here, verdict = line
        kind = verdict.split(": ")[0]
        if kind not in verdicts:
            continue
        verdicts[kind] += 1
        pairs = list(zip(NUMBERS.findall(source), NUMBERS.findall(here), strict=False))
        alike = all(math.isclose(float(a), float(b), rel_tol=1e-4) for a, b in pairs)
        if kind == "the same":
            assert alike, line
            assert len(NUMBERS.findall(source)) == len(NUMBERS.findall(here)), line
        else:
            assert source != here, line
            assert len(verdict) > len("corrected: ") + 10, line
    assert verdicts["the same"] > 5
    assert verdicts["corrected"] >= 1


def test_a_script_refuses_a_wrong_number() -> None:
    """The near miss: a number of the source that is not what Sfumato gives ends the script."""
    wrong = "from beside import beside; beside('x', 0.3379, 0.3378875900901369)"
    code = subprocess.run(
        [sys.executable, "-c", wrong], cwd=PORTS, capture_output=True, text=True, check=False
    )
    assert code.returncode == 1
    assert "the source says 0.3379" in code.stderr
