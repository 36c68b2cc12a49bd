"""Questions of installed packages are commands, and a broken package spoils no other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

import click
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.inspect import type_info

import support.tally
from sfumato.answers import AnyQuestion
from sfumato.basics.structs import to_bytes
from sfumato.cli import histogram as counting
from sfumato.cli import partition, question_command, questions
from sfumato.cli.question_command import command_of, form_of
from sfumato.errors import UsageError
from sfumato.privacy.measures import PureDP
from sfumato.questions.clustering import KMeans
from sfumato.questions.histogram import Histogram
from sfumato.questions.persons import Persons
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.tables import Tables
from support.installing import installed, python, sfumato

TALLY = Path(support.tally.__file__).read_text("utf-8")
DOMAIN = "[domain]\nx = { type = 'interval', lower = 0, upper = 3, step = 1 }\n"
PLAN = (
    f"[source]\npath = 't.parquet'\n{DOMAIN}[budget]\naccount = 'a'\nepsilon = 5\n"
    "[release]\nepsilon = 1\n[[questions]]\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a sound package, and three broken ones: by their module, a type, what they name."""
    found = tmp_path_factory.mktemp("outside")
    installed(
        found / "site",
        "toy-tally",
        TALLY,
        tally="Tally",
        half_tally="HalfTally",
        histogram="Tally",
        zTally="Tally",
    )
    installed(found / "site", "broken-one", "import a_module_that_nobody_has\n", broken="Gone")
    half_made = TALLY.replace("    law: Law\n", "    law: Lawn\n").replace('tag="', 'tag="un-')
    installed(found / "site", "half-made", half_made, unread="Tally")
    installed(found / "site", "not-one", "class Other: ...\n", other="Other")
    pq.write_table(pa.table({"x": [0.5] * 40 + [1.5] * 20}), found / "t.parquet")
    (found / "plan.toml").write_text(f"{PLAN}type = 'tally'\naxis = 'x'\nby_mark = {{ a = 1 }}\n")
    (found / "broken.toml").write_text(f"{PLAN}type = 'broken'\naxis = 'x'\n")
    return found


def test_the_help_lists_it_by_its_metadata_alone(folder: Path) -> None:
    probe = (
        "import sys; from sfumato.cli import cli; cli.main(['--help'], standalone_mode=False)\n"
        "heavy = {'toy_tally', 'broken_one', 'not_one', 'numpy', 'msgspec', 'importlib.metadata'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = python(folder, probe)
    own, others = out.split("Questions of installed packages:")
    assert "histogram  Publish how many rows" in own
    assert "tally" not in own
    assert [line.split() for line in others.splitlines()[1:6]] == [
        ["broken", "From", "the", "package", "broken-one."],
        ["half-tally", "From", "the", "package", "toy-tally."],
        ["other", "From", "the", "package", "not-one."],
        ["tally", "From", "the", "package", "toy-tally."],
        ["unread", "From", "the", "package", "half-made."],
    ]
    # None of them vanishes without a word.
    words = " ".join(others.split())
    no_command = "From the package toy-tally. No command:"
    assert f"histogram {no_command} Sfumato has a command of that name. Ask it in a plan." in words
    assert f"zTally {no_command} the name of a command has lower-case letters" in words
    assert out.splitlines()[-1] == "[]"


SAVED = "saved/01-tally-of-x.json"
ASKED = [
    "tally",
    "t.parquet",
    "--axis",
    "x=0..3/1",
    "--parts",
    "2",
    "--marks",
    "a,b",
    "--marks",
    "c",
    "--positive",
]
ASKED += ["--epsilon", "1", "--budget", "2", "--ledger", "b.db", "--json", "--out", "saved"]
COMMANDS = {
    "help": ["tally", "--help-all"],
    "asked": ASKED,
    "again": ASKED,
    "report": ["report", SAVED, "--out", "page.html"],
    "verify": ["verify", SAVED, "--ledger", "b.db"],
    "preview": ["preview", "plan.toml"],
    "release": ["release", "plan.toml", "--ledger", "p.db", "--json"],
    "histogram": [
        "histogram",
        "t.parquet",
        "--axis",
        "x=0..3/1",
        "--epsilon",
        "1",
        "--ledger",
        "b.db",
    ],
    "audit": ["audit", "--only", "half-tally", "--json"],
}
OF_TABLE = ["tally", "t.parquet", "--axis", "x=0..3/1"]
REFUSED = {
    "it cannot be imported (ModuleNotFoundError: No module named 'a_module_that_nobody_has')": [
        "broken"
    ],
    "'broken' of the package 'broken-one': it cannot be imported": ["preview", "broken.toml"],
    "the question 'broken' of the package": ["audit", "--only", "broken"],
    "its fields cannot be decoded (name 'Lawn' is not defined)": ["unread", "--help"],
    "not_one:Other is not a question": ["other", "--help"],
    "did you mean 'tally'?": ["tall"],
    "it is about one axis, and 2 are left for it": [
        *OF_TABLE,
        "--axis",
        "y=0..3/1",
        "--epsilon",
        "1",
    ],
    "is not a whole number": [*OF_TABLE, "--parts", "two", "--epsilon", "1"],
    "its answer has no picture": [*OF_TABLE, "--epsilon", "1", "--plot", "t.svg"],
}


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, tuple[int, str, str]]:
    """Exit code, stdout and stderr of all these commands, in one process."""
    return dict(
        zip(
            [*COMMANDS, *REFUSED],
            sfumato(folder, *COMMANDS.values(), *REFUSED.values()),
            strict=True,
        )
    )


def test_its_fields_are_options(found: dict[str, tuple[int, str, str]]) -> None:
    code, out, _ = found["help"]
    text = " ".join(out.split())
    assert code == 0
    assert max(map(len, out.splitlines())) <= 100
    assert "How many rows lie in each part of an axis? Noisy counts of equal parts." in text
    assert "--parts INTEGER How many equal parts it has. [default: 3]" in text
    assert "--marks TEXT Words that change nothing." in text
    assert "--positive / --no-positive Show counts below nought as nought." in text
    for common in (
        "--axis TEXT",
        "--epsilon TEXT",
        "--budget TEXT",
        "--ledger PATH",
        "--out PATH",
        "--plot PATH",
        "--json",
    ):
        assert common in text
    assert "--by-mark" not in text  # a table by name has no form as an option


def test_it_is_asked_stored_reported_and_verified(
    folder: Path, found: dict[str, tuple[int, str, str]]
) -> None:
    (answer,) = json.loads(found["asked"][1])
    assert (answer["type"], answer["axis"], len(answer["counts"])) == ("tally-release", "x", 2)
    assert all(count >= 0 for count in answer["counts"])
    assert json.loads(found["again"][1]) == [answer]  # the stored answer
    assert found["report"][1].strip() == "page.html"
    assert "Tally of x" in (folder / "page.html").read_text("utf-8")
    assert found["verify"][1].startswith("It is the answer stored under entry")


def test_a_plan_asks_it_by_its_tag(found: dict[str, tuple[int, str, str]]) -> None:
    assert found["preview"][1].startswith("Histogram of x at epsilon = 1")
    (answer,) = json.loads(found["release"][1])
    assert (answer["type"], len(answer["counts"])) == ("tally-release", 3)


def test_the_audit_catches_its_broken_version_with_half_the_noise(
    found: dict[str, tuple[int, str, str]],
) -> None:
    code, out, _ = found["audit"]
    assert code == 70
    assert {(one["subject"], one["verdict"]) for one in json.loads(out)} == {
        ("half-tally: Tally of x", "EXCEEDS")
    }


def test_broken_packages_stand_in_nobodys_way(found: dict[str, tuple[int, str, str]]) -> None:
    assert [found[name][0] for name in COMMANDS] == [0] * (len(COMMANDS) - 1) + [70]


def test_what_cannot_be_asked_is_one_sentence(found: dict[str, tuple[int, str, str]]) -> None:
    for message in REFUSED:
        code, out, err = found[message]
        assert (code, out) == (2, ""), err
        assert message in err
        assert "report this line" not in err


def test_only_what_is_installed_is_imported(
    folder: Path, found: dict[str, tuple[int, str, str]]
) -> None:
    """The content of a saved file never decides what is imported."""
    assert found["asked"][0] == 0
    loading = f"import sfumato as sf\ntry: sf.load({SAVED!r})\nexcept sf.DataError as e: print(e)"
    message = python(folder, loading)
    assert "it holds a 'tally-release', which no imported package has registered" in message
    assert "Import the package that defines it" in message
    (elsewhere,) = sfumato(folder, ["verify", SAVED, "--key", "0"], site="nowhere")
    assert elsewhere[0] == 4
    assert "tally-release" in elsewhere[2]


@pytest.mark.parametrize(
    ("kind", "reads", "several", "flag"),
    [
        (str, "text", False, False),
        (int | None, "integer", False, False),
        (int | float, "float", False, False),
        (Fraction, "text", False, False),
        (str | int | float, "text", False, False),
        (bool, "boolean", False, True),
        (Literal["a", "b"], "choice", False, False),
        (Sequence[str], "text", True, False),
        (str | Sequence[str] | None, "text", True, False),
        (tuple[int, ...], "integer", True, False),
        (Sequence[Fraction], "text", True, False),
        (dict[str, int], None, False, False),
        (Sequence[Sequence[str]], None, False, False),
        (PureDP, None, False, False),
    ],
)
def test_the_form_of_a_field(kind: object, reads: str | None, several: bool, flag: bool) -> None:
    form = form_of(type_info(kind))
    assert (None if form is None else (form.reads.name, form.several, form.flag)) == (
        None if reads is None else (reads, several, flag)
    )


def test_a_field_without_a_form_must_have_a_default() -> None:
    with pytest.raises(UsageError, match="its field 'by_mark' cannot be written as an option"):
        command_of("strict", Strict)


class Strict(
    support.tally.Tally, frozen=True, kw_only=True, tag="strict-tally", forbid_unknown_fields=True
):
    """By marks."""

    by_mark: dict[str, int] = msgspec.field()


BINARY, QUANTILE, UNIFORM = (partition.METHODS[name] for name in ("binary", "quantile", "uniform"))


@pytest.mark.parametrize(
    ("command", "options", "question"),
    [
        (questions.cluster, "--clusters 5 --method auto", KMeans(5, ("a", "b"))),
        (questions.persons, "--person p --of rows", Persons()),
        (
            questions.persons,
            "--person p --of cells --bins a=5 --most-rows 7",
            Persons(7, "cells", ("a", "b"), {"a": 5}),
        ),
        (questions.quantiles, "--at 0.25,0.5,0.75 --method auto", Quantiles(("a", "b"))),
        (questions.quantiles, "--at 0.1 --by b", Quantiles(("a",), at=["0.1"], by="b")),
        (
            questions.tables,
            "--table a,b --table b --totals 200 --totals b=x:1,y:2 --width 2",
            Tables([["a", "b"], ["b"]], width=2.0, totals={(): 200, ("b",): {"x": 1, "y": 2}}),
        ),
        (questions.tables, "--table a,b --bins 5 --published", Tables([["a", "b"]], bins=5)),
        (
            counting.histogram,
            "--bins a=0,2.5,10 --selection truncated-geometric --count rows",
            Histogram(("a", "b"), bins={"a": (0, 2.5, 10)}),
        ),
        (partition.partition, "--partitions 9", UNIFORM(("a", "b"), partitions=9)),
        (
            partition.partition,
            "--method quantile --at 0.3,0.6 --shares release=2,partition=1,threshold=1",
            QUANTILE(("a", "b"), at=["0.3", "0.6"]),
        ),
        (
            partition.partition,
            "--method binary --allocation 1,2,4 --depth 2",
            BINARY(("a", "b"), depth=2, allocation=("1", "2", "4")),
        ),
    ],
)
def test_options_make_the_same_question_as_python(
    command: click.Command, options: str, question: AnyQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte: the ledger knows a stored answer by its question."""
    published: list[AnyQuestion] = []
    for module in (question_command, questions, counting, partition):
        monkeypatch.setattr(module, "publish", lambda *given: published.append(given[2]))
    words = ["t.parquet", "--axis", "a=0..10", "--axis", "b=0..5", "--epsilon", "1"]
    command.main([*words, *options.split()], standalone_mode=False)
    assert list(map(to_bytes, published)) == [to_bytes(question)]
