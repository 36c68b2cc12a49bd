"""The doubles of ``support.replay`` stand at every place where truth meets noise.

The questions that are tried are all there are.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import numpy as np
import pytest

import sfumato as sf
from sfumato.answers.registry import questions
from sfumato.cli import COMMANDS, cli
from support.replay import DivergedError, Tape, through
from trust import test_same_commands
from trust.test_same_bytes import KEYED, PURE

ROOT = Path(sf.__file__).parent
DRAWS = {"sample", "draw", "flip", "words"}
MAY_DRAW = re.compile(rf"\.\s*({'|'.join(DRAWS)})\b")
WITHIN = {
    "random",
    "mechanisms",
    "local",
    "audit",
}  # samplers, mechanisms, devices, and what measures them
LEFT = {
    ("data/bounding.py", "words"),  # the secret that chooses each person's rows
    ("charts/vector.py", "draw"),  # a picture
    ("cli/audit.py", "sample"),  # noise on nothing
    ("questions/counters/toeplitz.py", "sample"),  # machines: the boundary is their step
    ("questions/counters/tree.py", "sample"),
    ("questions/histogram/records.py", "draw"),  # selections: of RankLaw and JointLaw
    ("questions/partition/fixed_depth.py", "draw"),
    ("questions/quantiles/methods.py", "draw"),
    ("questions/quantiles/methods.py", "flip"),
}
CHARTS = {
    "aggregates",
    "streams",
    "histograms",
    "clusters",
    "quantiles",
    "maps",
    "persons",
    "cumulative",
    "risk",
    "windows",
}


def drawn_in(path: Path) -> set[str]:
    """Which draws the code of a module makes; ``charts.histograms.draw`` is none."""
    text = path.read_text("utf-8")
    if not MAY_DRAW.search(text):
        return set()
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call, ast.Attribute) and call.attr in DRAWS]
    return {
        call.attr
        for call in named
        if not (isinstance(call.value, ast.Name) and call.value.id in CHARTS)
    }


def test_nothing_is_drawn_elsewhere() -> None:
    found = {
        (str(path.relative_to(ROOT)), draw)
        for path in ROOT.rglob("*.py")
        for draw in drawn_in(path)
    }
    assert {(path, draw) for path, draw in found if path.split("/")[0] not in WITHIN} == LEFT


def test_every_kind_of_question_is_tried() -> None:
    assert {type(question) for question in [*PURE.values(), *KEYED.values()]} == set(questions())


def takes_a_ledger(command: click.Command | None) -> bool:
    assert command is not None
    return any("--ledger" in option.opts for option in command.params)


def test_every_command_that_spends_is_tried() -> None:
    """A command with a ledger that is not tried would be in this set."""
    context = click.Context(cli)
    spend = {name for name in COMMANDS if takes_a_ledger(cli.get_command(context, name))}
    spend -= {"account", "doctor"}  # which read no data
    written = Path(test_same_commands.__file__).read_text("utf-8")
    assert spend == {name for name in spend if re.search(rf'here\.command\(\s*"{name}"', written)}


def release(tape: Tape, rows: int, question: object = PURE["known"]) -> sf.Release:
    table = np.full((rows, 1), 3.0)
    with (
        through(tape),
        sf.Publisher(sf.source(table, sf.Domain(x=sf.Interval(0, 16, step=1))), budget=9) as pub,
    ):
        return pub.release(question, epsilon=1)  # type: ignore[arg-type, return-value]


def test_a_tape_forces_what_is_published() -> None:
    question, tape = sf.Histogram("x", bins=4), Tape()
    first = release(tape, 10, question)
    tape.rewind()
    assert (release(tape, 10_000, question).values == first.values).all()
    assert (release(Tape(), 10_000, question).values != first.values).any()


def test_another_question_is_noticed() -> None:
    tape = Tape()
    release(tape, 10, sf.Histogram("x", bins=4))
    tape.rewind()
    with pytest.raises(sf.InternalError):
        release(tape, 10, sf.Histogram("x", bins=8))
    assert isinstance(tape.fault, DivergedError)


def test_the_library_is_whole_again_afterwards() -> None:
    before = sf.Histogram("x", bins=4)
    release(Tape(), 10, before)
    from sfumato.mechanisms import noise
    from sfumato.mechanisms.selection import RankLaw
    from sfumato.questions.histogram import question as histogram

    assert histogram.add_noise is noise.add_noise
    assert noise.add_noise.__module__ == "sfumato.mechanisms.noise"
    assert RankLaw.draw.__qualname__ == "RankLaw.draw"
