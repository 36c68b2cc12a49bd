"""What an addition to the library takes.

It takes one file with the thing and one line in the registry, beside its tests and its page.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import sfumato
import support.tally

HERE = Path(sfumato.__file__).parent
HALVES = '''"""A partition into two halves."""

from typing import ClassVar

from sfumato.answers.question import Question
from sfumato.answers.release import Release
from sfumato.questions.partition.fixed_depth import BinaryPartitioner


class HalvesPartitioner(
    BinaryPartitioner, frozen=True, tag="halves", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are they, in two halves?"""

    depth: int = 1

    examples: ClassVar[tuple[Question[Release], ...]] = ()


HalvesPartitioner.examples = (HalvesPartitioner("x"),)
'''
PROBE = """
import contextlib, io, json
import sfumato as sf
from sfumato.basics.structs import from_plain
from sfumato.answers.question import AnyQuestion
from sfumato.audit.subjects import every
from benchmarks.partition import asked
from sfumato.cli import run

def printed(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(list(words)) == 0
    return " ".join(out.getvalue().split())

def planned(tag, **fields):
    return type(from_plain({"type": tag, **fields}, AnyQuestion)).__name__

added = ("HalvesPartitioner", "Tally", "TallyRelease")
print(json.dumps({
    "public": [name for name in sf.__all__ if name in added],
    "planned": [planned("halves", axes="x"), planned("tally", axis="x")],
    "help": printed("--help"),
    "methods": printed("partition", "--help"),
    "tally": printed("tally", "--help"),
    "audited": [subject.name for subject in every()],
    "measured": list(asked()),
}))
"""


def test_a_partitioner_and_a_question_take_one_file_and_one_line_each(tmp_path: Path) -> None:
    """With its tests and its page a partitioner takes 4 files.

    A question in a folder of its own takes 6: the door names its release, and pyproject.toml the
    floor of its folder.
    """
    copy = tmp_path / "sfumato"
    shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("*.parquet", "__pycache__"))
    (copy / "questions" / "partition" / "halves.py").write_text(HALVES, encoding="utf-8")
    shutil.copy(support.tally.__file__, copy / "questions" / "tallies.py")
    with (copy / "questions" / "__init__.pyi").open("a") as registry:
        registry.write("from .partition.halves import HalvesPartitioner as HalvesPartitioner\n")
        registry.write("from .tallies import Tally as Tally\n")
    with (copy / "__init__.pyi").open("a") as door:
        door.write("from .questions.tallies import TallyRelease as TallyRelease\n")
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    called = [sys.executable, "-c", PROBE]
    done = subprocess.run(
        called, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["public"] == ["HalvesPartitioner", "Tally", "TallyRelease"]
    assert found["planned"] == ["HalvesPartitioner", "Tally"]
    assert "tally Ask sfumato.Tally about one file." in found["help"]
    assert "|halves]" in found["methods"]
    assert "--parts INTEGER How many equal parts it has." in found["tally"]
    assert {"halves: Binary partition of x", "tally: Tally of x"} <= set(found["audited"])
    assert "halves" in found["measured"]
