"""Two machines, set up differently and with clocks that are an hour off, share one ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfumato.ledger import Book
from sfumato.ledger.postgres import PostgresStore
from support.servers import Server

MACHINES = {
    "an hour behind": {
        "PGTZ": "Pacific/Kiritimati",
        "TZ": "Pacific/Kiritimati",
        "PGDATESTYLE": "SQL, DMY",
        "PGOPTIONS": "-c default_transaction_isolation=serializable -c bytea_output=escape",
        "PGCLIENTENCODING": "LATIN1",
        "LC_ALL": "C",
        "SECONDS_OFF": "-3600",
    },
    "an hour ahead": {
        "PGTZ": "America/St_Johns",
        "TZ": "America/St_Johns",
        "PGDATESTYLE": "German",
        "PGOPTIONS": "-c default_transaction_read_only=on -c synchronous_commit=off "
        "-c intervalstyle=sql_standard -c extra_float_digits=-15 -c search_path=nowhere",
        "PGAPPNAME": "other",
        "SECONDS_OFF": "3600",
    },
}
MACHINE = """
import datetime, json, os, sys, time

off = float(os.environ["SECONDS_OFF"])

class Wrong(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=off)

datetime.datetime = Wrong
right = time.time
time.time = lambda: right() + off

from sfumato.errors import SfumatoError
from sfumato.basics import processes as process_identity
from sfumato.ledger import open_ledger

# Another machine has another boot, so that nobody here knows which of its processes have ended.
process_identity._namespace = lambda: f"machine {off}"

with open_ledger(sys.argv[1]) as book:
    holds = {}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "answer" in asked:
                told = holds[asked["key"]].store(asked["answer"].encode()).decode()
            else:
                hold = book.reserve(
                    "trips", asked["key"], "asked " + asked["key"], (3, 0), "é",
                    wait=0, lease=asked["lease"],
                )
                holds[asked["key"]] = hold
                told = "yours" if hold.stored is None else hold.stored.decode()
        except SfumatoError as error:
            told = str(error)
        print(json.dumps(told), flush=True)
"""
Ask = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server().start()
    yield server
    server.close()


@pytest.fixture
def machines(server: Server, tmp_path: Path) -> Iterator[list[Ask]]:
    """Two programs with nothing in common but the address; each answers one question a line."""
    with Book(PostgresStore(server.address)) as book:
        book.open_account("trips", "marbles", (100, 0))
    programs = []
    for name, settings in MACHINES.items():
        home = tmp_path / name
        home.mkdir()
        given = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        programs.append(
            subprocess.Popen(
                [sys.executable, "-c", MACHINE, server.address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=given | settings,
                cwd=home,
            )
        )

    def asking(program: subprocess.Popen[str]) -> Ask:
        def ask(key: str, *, answer: str | None = None, lease: float = 900.0) -> str:
            assert program.stdin is not None
            assert program.stdout is not None
            asked = {"key": key, "lease": lease}
            if answer is not None:
                asked["answer"] = answer
            print(json.dumps(asked), file=program.stdin, flush=True)
            return str(json.loads(program.stdout.readline()))

        return ask

    yield [asking(program) for program in programs]
    for program in programs:
        program.communicate()
        assert program.returncode == 0


def test_leases_hold_and_charges_stand_once(server: Server, machines: list[Ask]) -> None:
    behind, ahead = machines
    for key, first, second in (("a", behind, ahead), ("b", ahead, behind)):
        assert first(key) == "yours"
        assert "another process is answering" in second(key), "whatever its clock says"
        assert first(key, answer=f"answer {key}") == f"answer {key}"
        assert second(key) == f"answer {key}"
    for key, first, second in (("c", behind, ahead), ("d", ahead, behind)):
        assert first(key, lease=0) == "yours"
        assert second(key) == "yours", "the lease ended at once"
        assert second(key, answer="second") == "second"
        assert first(key, answer="late") == "second", (
            "of two answers, the first that is stored stays"
        )
    with Book(PostgresStore(server.address)) as book:
        assert book.account("trips").spent == (12, 0)
        assert book.verify().ok
        times = [entry.time for entry in book.log() if entry.kind in ("open", "reserve", "resume")]
        assert times == sorted(times), "the server's own time, whoever enters it"
