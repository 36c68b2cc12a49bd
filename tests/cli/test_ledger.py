"""``sfumato ledger``: accounts are opened, listed and verified."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import sfumato as sf
from support import postgres

Run = Callable[..., tuple[int, str, str]]


def test_an_account_is_opened_listed_and_verified(sfumato: Run) -> None:
    assert sfumato("ledger", "init", "people", "--epsilon", "2", "--ledger", "b.db")[0] == 0
    assert sfumato("ledger", "init", "people", "--epsilon", "3", "--ledger", "b.db")[0] == 2
    assert sfumato("release", "plan.toml", "--ledger", "b.db")[0] == 0
    code, out, _ = sfumato("ledger", "log", "--ledger", "b.db")
    assert code == 0
    assert [line.split("\t")[3] for line in out.splitlines()[1:]] == [
        "open",
        "bind",
        "reserve",
        "store",
        "hand",
    ]
    code, out, _ = sfumato("ledger", "verify", "--ledger", "b.db")
    assert code == 0
    head = out.split("Head: ")[1].strip()
    assert sfumato("ledger", "verify", "--ledger", "b.db", "--head", head)[0] == 0
    assert sfumato("ledger", "verify", "--ledger", "b.db", "--head", "2:" + "0" * 64)[0] == 5
    assert sfumato("ledger", "show", "--ledger", "none.db")[0] == 5


def test_a_target_that_is_refused_leaves_no_ledger(sfumato: Run) -> None:
    paid = ("--rho", "0.5", "--widens-to", "5.2,1e-6", "--ledger", "new.db")
    assert "would not fit" in sfumato("ledger", "init", "a", *paid)[2]
    assert not Path("new.db").exists()


def test_a_ledger_on_a_server_does_all_that_one_in_a_file_does(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address reaches the server as it was typed, and its password reaches no message."""
    address = postgres.address().replace("postgres:@", "postgres:hunter2@")
    place = ("--ledger", address)
    # Other tests may have left accounts in this database.
    assert sfumato("ledger", "init", "on a server", "--epsilon", "2", *place)[0] == 0
    assert sfumato("ledger", "init", "on a server", "--epsilon", "3", *place)[0] == 2
    said = []
    for command in (
        ("release", "plan.toml", "--out", "released", *place),
        ("release", "plan.toml", *place),
        ("ledger", "show", *place),
        ("ledger", "log", *place),
        ("ledger", "verify", *place),
        ("ledger", "export", *place),
        ("ledger", "key", *place),
        ("doctor", *place),
    ):
        code, out, err = sfumato(*command)
        assert code == 0, (command, err)
        said += [out, err]
    (release, *_) = Path("released").glob("*.json")
    code, *texts = sfumato("verify", str(release), *place)
    assert code == 0
    assert not any("hunter2" in text for text in (*said, *texts))
    assert sfumato("verify", str(release))[0] == 2
    monkeypatch.setenv("SFUMATO_LEDGER", place[1])
    assert sfumato("verify", str(release))[0] == 0
    # There was no key yet when it was released: that is no fault of it.
    code, _, err = sfumato("verify", str(release), "--key", "0" * 64)
    assert (code, "not signed. Whoever may read the ledger can" in err) == (4, True)
    found = json.loads(sfumato("ledger", "show", "--json", *place)[1])
    assert "on a server" in json.dumps(found)


def test_a_ledger_moves_to_another_store(sfumato: Run) -> None:
    assert sfumato("release", "plan.toml", "--ledger", "b.db")[0] == 0
    code, out, err = sfumato("ledger", "migrate", "b.db", "c.db")
    assert code == 0
    assert out.endswith(" entries and 0 streams to the ledger 'c.db'\n")
    assert "Nothing can be charged to the ledger 'b.db'" in err
    assert "stored answer" in sfumato("release", "plan.toml", "--ledger", "c.db")[2]
    assert sfumato("release", "plan.toml", "--fresh", "--ledger", "b.db")[0] == 5
    for listed in ("show", "log"):
        for as_json in ([], ["--json"]):
            old, new = (sfumato("ledger", listed, *as_json, "--ledger", f"{at}.db") for at in "bc")
            assert old[:2] == new[:2]
            assert " ".join(old[2].split()).startswith("The ledger was moved to the ledger 'c.db'")
            assert not new[2]
    os.chmod("b.db.secrets", 0o644)
    assert sfumato("ledger", "show", "--ledger", "b.db")[::2] == (0, "")
    os.remove("b.db.secrets")
    assert sfumato("ledger", "show", "--ledger", "b.db")[::2] == (0, "")


def test_no_release_makes_a_ledger_in_a_database(sfumato: Run, tmp_path: Path) -> None:
    """A database that was not meant is left as it is, and no new budget is spent from."""
    name = f"meant_otherwise_{postgres.schema_of(tmp_path)}"
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    wrong = postgres.address().replace("/postgres?", f"/{name}?")
    place = ("--ledger", wrong)
    ask = ("histogram", "people.parquet", "--axis", "kind=a,b", "--epsilon", "1", "--budget", "1")
    Path("steps.txt").write_text("3\n")
    steps = ("stream", "steps.txt", "--horizon", "9", "--epsilon", "1", "--budget", "1")
    for command in (
        ("release", "plan.toml"),
        ask,
        (*steps, "--key", "k"),
        ("ledger", "spender", "add", "ann", "--ceiling", "1"),
    ):
        code, out, err = sfumato(*command, *place)
        assert (code, out) == (5, ""), command
        assert "there is no ledger in this database" in err
        assert "`sfumato ledger init`" in err
    ages = sf.source("people.parquet", sf.Domain(age=sf.Interval(0, 120)))
    with pytest.raises(sf.LedgerError, match="there is no ledger in this database"):
        sf.Publisher(ages, ledger=wrong, account="a", budget="1")
    with psycopg.connect(wrong) as db:
        query = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'sfumato%'"
        assert db.execute(query).fetchone() == (0,)
    assert sfumato("ledger", "init", "default", "--epsilon", "1", *place)[0] == 0
    assert sfumato(*ask, *place)[0] == 0


def test_a_ledger_that_is_new_is_said_to_be(sfumato: Run) -> None:
    said = "The ledger b.db is new: it knows of nothing that was spent before."
    assert said in sfumato("release", "plan.toml", "--ledger", "b.db")[2]
    assert said not in sfumato("release", "plan.toml", "--ledger", "b.db")[2]
    code, _, err = sfumato("ledger", "spender", "add", "ann", "--ceiling", "1", "--ledger", "c.db")
    assert (code, Path("c.db").exists()) == (5, False), err


CURVES = ("--epsilon", "2", "--delta", "1e-6", "--composition", "curves")


def test_a_ledger_of_the_newest_format_needs_no_upgrade(sfumato: Run) -> None:
    assert sfumato("ledger", "init", "people", *CURVES, "--ledger", "b.db")[0] == 0
    code, out, err = sfumato("ledger", "upgrade", "b.db", "new.db")
    assert (code, out) == (0, "Nothing to do: the ledger 'b.db' is in the newest format.\n")
    assert "Go on with the ledger as it is" in err
    assert sfumato("ledger", "upgrade", "b.db", "new.db", "--json")[1] == '{"upgraded":false}\n'
    assert not Path("new.db").exists()
    assert sfumato("ledger", "upgrade", "none.db", "new.db")[0] == 5
    assert sfumato("ledger", "show", "--ledger", "b.db")[0] == 0


def test_a_ledger_is_copied_into_the_newest_format(sfumato: Run) -> None:
    assert sfumato("ledger", "init", "people", "--epsilon", "2", "--ledger", "b.db")[0] == 0
    head = sfumato("ledger", "verify", "--ledger", "b.db")[1].split()[-1]
    code, out, err = sfumato("ledger", "upgrade", "b.db", "new.db")
    assert (code, out) == (0, "Copied 1 entry and 0 streams to the ledger 'new.db'\n")
    assert "Nothing can be charged to the ledger 'b.db' any more" in err
    assert sfumato("ledger", "verify", "--head", head, "--ledger", "new.db")[0] == 0
    assert sfumato("ledger", "init", "people", "--epsilon", "2", "--ledger", "new.db")[0] == 0
    assert sfumato("ledger", "init", "counts", *CURVES, "--ledger", "new.db")[0] == 0
    assert "was moved" in sfumato("ledger", "show", "--ledger", "b.db")[2]
    assert "was moved" in sfumato("account", "--ledger", "b.db")[2]


def test_how_an_account_adds_up_is_stated_at_its_opening(sfumato: Run) -> None:
    def init(name: str, *stated: str) -> tuple[int, str, str]:
        return sfumato("ledger", "init", name, *stated, "--ledger", "b.db")

    assert init("counts", *CURVES)[0] == 0
    assert init("counts", *CURVES)[0] == 0
    code, _, err = init("counts", "--epsilon", "2", "--delta", "1e-6")
    assert (code, "by curves, fixed at its opening" in err) == (2, True)
    assert "Add --delta" in init("other", "--epsilon", "2", "--composition", "curves")[2]
    assert init("rho", "--rho", "0.5", "--widens-to", "5.4,1e-6")[0] == 0
    assert "Write --rho 0.5 --widens-to" in init("rho 2", "--rho", "0.5", "--widens-to", "5.4")[2]
    assert "would not fit" in init("rho 2", "--rho", "0.5", "--widens-to", "5.2,1e-6")[2]
    code, out, _ = sfumato("ledger", "widen", "rho", "--ledger", "b.db")
    assert (code, "epsilon = 5.4, delta = 0.000001" in out) == (0, True)
    code, _, err = sfumato("ledger", "widen", "counts", "--ledger", "b.db")
    assert (code, "no target was stated" in err) == (2, True)
    for ceiling, expected in (("1,1e-7", 0), ("1", 2), ("0", 0)):
        act = ("ledger", "spender", "set" if ceiling == "0" else "add", "ann")
        asked = ("--account", "counts", "--ceiling", ceiling, "--ledger", "b.db")
        assert sfumato(*act, *asked)[0] == expected
    log = sfumato("ledger", "log", "--ledger", "b.db")[1]
    assert "total epsilon = 2, delta = 0.000001, by curves" in log
    assert "may be widened to epsilon = 5.4, delta = 0.000001, by curves" in log
    assert "widened to epsilon = 5.4" in log
    assert sfumato("ledger", "verify", "--ledger", "b.db")[0] == 0


FROM_0_1 = Path(__file__).parents[1] / "fixtures" / "v0_1" / "odd.sqlite"


@pytest.mark.parametrize(
    "command",
    [
        ("ledger", "upgrade", "old.db", "new.db"),
        ("ledger", "migrate", "old.db", "new.db"),
        *(("ledger", name, "--ledger", "old.db") for name in ("show", "log", "verify", "export")),
        ("ledger", "key", "--ledger", "old.db"),
        ("ledger", "init", "more", "--epsilon", "2", "--ledger", "old.db"),
        ("release", "plan.toml", "--ledger", "old.db"),
    ],
    ids=" ".join,
)
def test_a_ledger_of_version_0_1_is_left_to_version_0_2_0(
    sfumato: Run, command: tuple[str, ...]
) -> None:
    Path("old.db").write_bytes(FROM_0_1.read_bytes())
    before = sorted(Path().iterdir())
    code, out, err = sfumato(*command)
    assert (code, out) == (5, "")
    assert err == (
        "Error: the ledger 'old.db': version 0.1 of Sfumato wrote it, and this version does not "
        "read it. Version 0.2.0 upgrades it: run `sfumato ledger upgrade OLD NEW` there, and go "
        "on with NEW here.\n"
    )
    assert Path("old.db").read_bytes() == FROM_0_1.read_bytes()
    assert sorted(Path().iterdir()) == before
