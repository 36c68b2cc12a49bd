"""Errors become one sentence and an exit code, on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["histgram"], 2, "did you mean 'histogram'?"),
        (["release"], 2, "it lacks PLAN"),
        (["release", "none.toml"], 4, "there is no such file"),
        (["ledger", "init", "x"], 2, "neither --epsilon nor --rho"),
        (["report", "people.parquet"], 4, "does not hold a release"),
        (["histogram", "people.parquet", "--axis", "age", "--epsilon", "1"], 2, "Write age=0..100"),
        (
            ["histogram", "people.parquet", "--axis", "age=0..", "--epsilon", "1"],
            2,
            "one of its bounds is missing",
        ),
        (
            [
                "histogram",
                "people.parquet",
                "--axis",
                "age=0..9",
                "--bins",
                "many",
                "--epsilon",
                "1",
            ],
            2,
            "neither a number",
        ),
        (
            [
                "histogram",
                "people.parquet",
                "--axis",
                "kind=a,b",
                "--bins",
                "3",
                "--epsilon",
                "1",
                "--budget",
                "1",
            ],
            2,
            "have no bins",
        ),
        (
            [
                "partition",
                "people.parquet",
                "--axis",
                "kind=a,b",
                "--epsilon",
                "1",
                "--budget",
                "1",
            ],
            2,
            "Interval axes",
        ),
    ],
)
def test_wrong_words_get_one_clear_sentence(
    sfumato: Run, args: list[str], code: int, says: str
) -> None:
    found, out, err = sfumato(*args)
    assert (found, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_errors_speak_json_too(sfumato: Run) -> None:
    code, out, err = sfumato("release", "none.toml", "--json")
    assert (code, out) == (4, "")
    assert json.loads(err)["error"] == "DataError"


def test_a_reader_that_goes_away_is_no_error(sfumato: Run) -> None:
    # More than a pipe holds: the command cannot be done before its reader leaves.
    with Path("plan.toml").open("a") as plan:
        plan.write("bins = 20000\n")
    shell = f"{sys.executable} -m sfumato release plan.toml --ledger b.db | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 141
    assert done.stdout.startswith("# Histogram")
    assert "Traceback" not in done.stderr
