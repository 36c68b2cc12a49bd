"""``sfumato ledger spender`` and ``sfumato ledger roles``, and what people are told."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from sfumato.cli import run
from sfumato.ledger import open_ledger
from sfumato.ledger.postgres_server import BOOK, public_address
from support import mistakes, postgres
from support.mistakes import Mistake

Run = Callable[..., tuple[int, str, str]]
MISTAKES = mistakes.table("roles")
COMMON = "--axis ward=Surgery,Medicine --person patient --rows-per-person 2 --account visits"
PEOPLE = ("carl", "ann", "eve", "stranger")


@dataclass(frozen=True)
class Office:
    """A database of its own, on the server that all tests share, and roles with its name."""

    name: str

    def role(self, who: str) -> str:
        return f"{who}_{self.name}"

    def address(self, who: str) -> str:
        place = postgres.address().replace("/postgres?", f"/{self.name}?")
        return place.replace("postgres:@", f"{self.role(who)}:@")

    def plain(self, text: str) -> str:
        """A text without the name."""
        label = public_address(self.address("ann"))
        return text.replace(repr(label), "AT").replace(f"_{self.name}", "")


def new_office(folder: Path) -> Office:
    office = Office(postgres.schema_of(folder))
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        for who in PEOPLE:
            admin.execute(f"CREATE ROLE {office.role(who)} LOGIN")
        admin.execute(f"CREATE DATABASE {office.name} OWNER {office.role('carl')}")
    return office


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """The office of the table of mistakes, with a file for those who name one."""
    folder = tmp_path_factory.mktemp("office")
    office = new_office(folder)
    mistakes.furnish(folder)
    open_ledger(folder / "budget.db").close()
    carl = ("--ledger", office.address("carl"))
    ann = office.role("ann")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (
            "ledger init visits --epsilon 3",
            "ledger init others --epsilon 3",
            f"ledger roles --analyst {ann} --auditor {office.role('eve')}",
            f"ledger spender add {ann} --account visits --ceiling 0.8",
        ):
            assert run([*shlex.split(command), *carl]) == 0
        yield office


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_mistakes_are_told_in_three_parts_and_enter_nothing(
    mistake: Mistake, office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_ledger(office.address("carl"), create=False) as book:
        before = list(book.log())
        capsys.readouterr()
        who, _, command = mistake.typed.partition("$ sfumato ")
        words = shlex.split(command.replace("...", COMMON))
        named = [
            office.role(word) if word in ("carl", "ann", "ben", "eve") else word for word in words
        ]
        if "--ledger" not in words:
            named += ["--ledger", office.address(who)]
        code = run(named)
        err = office.plain(capsys.readouterr().err)
        whole = f"Error: {mistake.asked}: {mistake.obstacle}. {mistake.remedy}.\n"
        assert (err, code) == (whole, mistake.exit)
        assert list(book.log()) == before


def test_roles_are_given_again_taken_away_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    office = new_office(tmp_path)
    place = ("--ledger", office.address("carl"))
    assert run(["ledger", "init", "visits", "--epsilon", "3", *place]) == 0

    def after(*words: str) -> dict[str, str]:
        capsys.readouterr()
        assert run(["ledger", "roles", *words, "--json", *place]) == 0
        out, err = capsys.readouterr()
        # Only somebody who may spend needs a ceiling.
        assert ("spender add" in err) == ("--analyst" in words)
        found = json.loads(out)
        return {office.plain(each["name"]): each["role"] for each in found}

    ann, eve = office.role("ann"), office.role("eve")
    assert after() == {"carl": "custodian"}
    assert after("--analyst", ann, "--auditor", eve) == {
        "ann": "analyst",
        "carl": "custodian",
        "eve": "auditor",
    }
    assert after("--auditor", ann)["ann"] == "auditor"
    assert after("--analyst", ann, "--analyst", ann)["ann"] == "analyst"
    assert run(["ledger", "roles", "--auditor", ann, "--analyst", ann, *place]) == 2
    assert "two roles are named for it" in capsys.readouterr().err
    assert after()["ann"] == "analyst"
    assert after("--remove", ann, "--remove", eve) == {"carl": "custodian"}
    assert run(["ledger", "verify", *place]) == 0

    # What is printed is what would be run; a custodian is named by an administrator.
    capsys.readouterr()
    words = ["--analyst", ann, "--custodian", eve]
    assert run(["ledger", "roles", *words, "--print", *place]) == 0
    printed = capsys.readouterr().out
    assert after() == {"carl": "custodian"}
    there = postgres.address().replace("/postgres?", f"/{office.name}?")
    with psycopg.connect(there, autocommit=True) as admin:
        for statement in printed.split(";"):
            if statement.strip():
                admin.execute(statement.encode())
    assert after() == {"ann": "analyst", "carl": "custodian", "eve": "custodian"}
    assert run(["ledger", "init", "more", "--epsilon", "1", "--ledger", office.address("eve")]) == 0
    assert run(["ledger", "verify", *place]) == 0


def test_spenders_of_a_file_say_who_they_are(sfumato: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    place = ("--ledger", "b.db")
    assert sfumato("ledger", "init", "people", "--epsilon", "2", *place)[0] == 0
    add = ("ledger", "spender", "add", "ann", "--account", "people", *place)
    assert sfumato(*add, "--ceiling", "0.5")[0] == 0
    assert sfumato("release", "plan.toml", *place)[0] == 2
    assert sfumato("release", "plan.toml", "--spender", "ben", *place)[0] == 2
    code, _, err = sfumato("release", "plan.toml", "--spender", "ann", *place)
    assert code == 0
    assert "for you in account 'people': epsilon = 0 (for all its spenders: epsilon = 1.5)." in err
    change = ("ledger", "spender", "set", "ann", "--account", "people", *place)
    code, out, _ = sfumato(*change, "--ceiling", "1.5", "--json")
    assert code == 0
    assert json.loads(out)[0]["ceiling"] == [1_500_000_000, 0]
    monkeypatch.setenv("SFUMATO_SPENDER", "ann")
    code, _, err = sfumato("release", "plan.toml", "--fresh", *place)
    assert code == 0
    assert "for you in account 'people': epsilon = 0.5 (for all its spenders: epsilon = 1)." in err
    code, out, _ = sfumato("ledger", "spender", "list", "--json", *place)
    (found,) = json.loads(out)
    assert (code, found["name"], found["spent"]) == (0, "ann", [1_000_000_000, 0])
    assert sfumato(*change, "--ceiling", "0")[0] == 0
    assert sfumato("release", "plan.toml", "--fresh", *place)[0] == 3
    code, out, _ = sfumato("ledger", "log", *place)
    assert "ceiling of 'ann' epsilon = 1.5" in out
    assert "'ann': " in out
    assert sfumato("ledger", "verify", *place)[0] == 0


@pytest.mark.parametrize(
    ("comment", "parts"),
    [
        (
            f"sfumato ledger, version {min(BOOK.later) - 1}",
            (
                f"it has version {min(BOOK.later) - 1}, and this library knows {BOOK.version}",
                "With the library that wrote it, move it to a file (`sfumato ledger migrate`); "
                "move that to an empty database with this one",
            ),
        ),
        (
            f"sfumato ledger, version {BOOK.version + 1}",
            (
                f"it has version {BOOK.version + 1}, and this library knows {BOOK.version}",
                "Use the newer library that wrote it",
            ),
        ),
        (
            "somebody's own",
            ("the database has a schema 'sfumato' that is no ledger", "Name another database"),
        ),
        (
            None,
            (
                "there is no ledger in this database, and this role may not make one",
                "Check the address; the custodian makes a ledger there by `sfumato ledger init`",
            ),
        ),
    ],
)
def test_a_database_without_a_ledger_of_this_version_is_refused(
    comment: str | None,
    parts: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    office = new_office(tmp_path)
    who = "ann"
    if comment is not None:
        who = "carl"
        with psycopg.connect(office.address("carl"), autocommit=True) as owner:
            owner.execute("CREATE SCHEMA sfumato")
            owner.execute(f"COMMENT ON SCHEMA sfumato IS '{comment.replace(chr(39), chr(39) * 2)}'")
    capsys.readouterr()
    assert run(["ledger", "init", "a", "--epsilon", "1", "--ledger", office.address(who)]) == 5
    err = office.plain(capsys.readouterr().err)
    assert err == f"Error: the ledger AT: {parts[0]}. {parts[1]}.\n"
