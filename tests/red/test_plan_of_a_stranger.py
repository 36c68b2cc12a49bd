"""A plan that somebody else wrote does not get at the custodian's password."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli.running import run
from sfumato.data import source
from support.eavesdropper import Eavesdropper

Run = Callable[..., tuple[int, str, str]]

PASSWORD = "open-sesame"
PLAN = """
[source]
path = "{path}"

[domain]
age = {{ type = "interval", lower = 0, upper = 100 }}

[budget]
account = "a"
epsilon = 1

[release]
epsilon = 1

[[questions]]
type = "histogram"
axes = ["age"]
bins = 4
"""


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command in a folder of its own; return its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        code = run(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def own_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The custodian keeps a password, in both of the usual places."""
    kept = tmp_path / "pgpass"
    kept.write_text(f"*:*:*:*:{PASSWORD}\n", encoding="utf-8")
    kept.chmod(0o600)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("PGPASSFILE", str(kept))


def released(command: Run, path: str) -> tuple[int, str]:
    """Run a plan of this source, and give its exit code and what it said."""
    Path("p.toml").write_text(PLAN.format(path=path), encoding="utf-8")
    code, out, err = command("release", "p.toml", "--ledger", "p.db")
    return code, " ".join((out + err).split())


@pytest.mark.parametrize("named", [False, True])
def test_no_password_is_sent_to_a_server_that_a_plan_names(
    named: bool, own_password: None, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor to one that the custodian names as well, which would have to prove that it knows it."""
    if named:
        monkeypatch.setenv("PGHOST", "127.0.0.1")
    with Eavesdropper() as server:
        address = f"postgresql://ada@127.0.0.1:{server.port}/city?table=trips"
        code, said = released(command, address)
    assert code == sf.DataError.exit_code
    assert "reads its table from the PostgreSQL server 127.0.0.1 as ada" in said
    assert server.starts, "nobody asked"
    assert not server.sent
    assert PASSWORD not in said


def test_what_the_custodian_types_stays_free(own_password: None) -> None:
    """So the test above would see a password that is sent."""
    with Eavesdropper() as server:
        address = f"postgresql://ada@127.0.0.1:{server.port}/city?table=trips"
        with pytest.raises(sf.DataError):
            source(address, sf.Domain(age=sf.Interval(0, 100)))._reader.names()
    assert any(PASSWORD in answer for answer in server.sent)


def test_a_relative_path_that_becomes_an_address_is_held_to_the_same(
    own_password: None, command: Run
) -> None:
    with Eavesdropper() as server:
        address = f"./postgresql://db.example:{server.port}/c?hostaddr=127.0.0.1&table=trips"
        code, said = released(command, address)
    assert code == sf.UsageError.exit_code
    assert "its address states hostaddr" in said
    assert not server.starts


def test_a_plan_that_names_another_server_beside_its_host_is_refused(
    own_password: None, command: Run
) -> None:
    with Eavesdropper() as server:
        address = f"postgresql://db.example:{server.port}/c?hostaddr=127.0.0.1&table=trips"
        code, said = released(command, address)
    assert code == sf.UsageError.exit_code
    assert "its address states hostaddr" in said
    assert not server.starts
    assert not Path("p.db").exists()
