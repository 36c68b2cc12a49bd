"""What docs/extending.md adds from outside.

A question and a partitioner, released, stored, drawn, planned and asked.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import sfumato as sf
from conformance import question_contract, reader_contract
from sfumato import extending as ex
from sfumato.answers import registry
from sfumato.answers.loading import standing
from sfumato.audit import audit_question
from sfumato.basics.structs import to_bytes
from sfumato.data.reader import Columns
from sfumato.data.registry import open_reader
from sfumato.ledger import Book
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.publishing.verifying import verify
from support import pages

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The folder of somebody who followed the page, and the names of the session."""
    folder = tmp_path_factory.mktemp("extending")
    with pytest.MonkeyPatch.context() as patch, pages.outside(folder):
        patch.chdir(folder)
        names = pages.follow(PAGE, folder)
        _install(folder)
        yield SimpleNamespace(folder=folder, **names)


def _install(folder: Path) -> None:
    """What installing the page's package leaves behind: its metadata beside its module."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = project["name"].replace("-", "_")
    metadata = folder / f"{name}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = [
        [f"[{group}]", *(f"{name} = {place}" for name, place in entries.items())]
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text(
        "\n".join(line for group in groups for line in group) + "\n"
    )


def test_the_answer_is_what_the_counts_say(followed):
    release = followed.release
    below, reached = np.array(release.counts).reshape(-1, 2).T
    assert release.values.tolist() == (reached / (below + reached)).tolist()
    low, high = release.interval(simultaneous=True)
    assert (low < release.values).all()
    assert (release.values < high).all()
    assert (release.accuracy(simultaneous=True) > release.accuracy()).all()


def test_the_intervals_hold_the_true_shares_as_often_as_they_say(followed):
    """Of 400 intervals at 80% more than 280 hold: P(fewer) < 1e-6.

    The noise is exact, and the interval is a union bound.
    """
    table = followed.visits
    late = np.array(
        [
            np.mean(table["wait"][table["ward"] == ward] >= 4)
            for ward in ("surgery", "children", "heart")
        ]
    )
    rows = {name: table[name] for name in ("wait", "ward")}
    with sf.testing.deterministic(1):
        source = sf.source(followed.pa.table(rows), followed.domain, name="visits")
        publisher = sf.Publisher(source, budget="1000")
        drawn = [
            publisher.release(followed.question, epsilon="0.2", fresh=True) for _ in range(400)
        ]
    held = [
        bool(((low <= late) & (late <= high)).all())
        for low, high in (one.interval(0.8, True) for one in drawn)
    ]
    assert sum(held) >= 280
    assert not drawn[0].guarantee.private


def test_it_is_stored_replayed_and_loaded(followed):
    with sf.Publisher(
        followed.source, ledger=followed.folder / "sfumato.db", account="visits"
    ) as publisher:
        spent = publisher.account.spent
        again = publisher.release(followed.question, epsilon="0.5")
        assert again.replayed
        assert again == followed.release
        assert publisher.account.spent == spent
    loaded = sf.load(followed.folder / "shares.json")
    assert type(loaded) is type(followed.release)
    assert to_bytes(loaded) == to_bytes(followed.release)


def test_a_question_is_the_same_however_its_numbers_are_written(followed):
    """Asked with 4, its answer is stored, signed and read back with 4.0."""
    # Beside another ledger that paid for these persons, the account would be warned of.
    folder = followed.folder / "signed"
    folder.mkdir()
    with sf.Publisher(
        followed.source, ledger=folder / "signed.db", account="visits", budget="1"
    ) as publisher:
        publisher.ledger.signer(create=True)
        release = publisher.release(type(followed.question)("wait", target=4), epsilon="1")
        assert publisher.release(type(followed.question)("wait", target=4.0), epsilon="1").replayed
        loaded = sf.load(release.save(folder / "signed.json"))
        assert verify(loaded, publisher.ledger).ok
    assert standing(loaded).startswith("signed with the key")


def test_questions_and_answers_of_the_page_keep_the_contracts_of_all(followed):
    for question in (*type(followed.question).examples, *followed.DistrictPartitioner.examples):
        for clause in question_contract.QUESTIONS:
            clause(question)
        answer = question_contract.answered(question)
        for clause in (*question_contract.RELEASES, question_contract.has_forms):
            clause(answer)


def test_the_audit_finds_it_sound_and_its_twin_with_half_the_noise_not(followed):
    found = followed.finding
    assert (found.verdict, round(found.exact, 6)) == ("ok", 1)
    assert audit_question(followed.HalfTheNoise("x", target=2.0)).verdict == "EXCEEDS"
    assert (
        audit_question(
            followed.DistrictPartitioner(cuts=((1.0, 2.0),)), cost=sf.ZCDP("0.5")
        ).verdict
        == "ok"
    )


def test_loading_it_imports_nothing(followed, tmp_path):
    probe = (
        "import sys, sfumato as sf\n"
        "try: sf.load('shares.json')\n"
        "except sf.DataError as error: print(error)\n"
        "print('targets' in sys.modules)"
    )
    said = _python(followed.folder, "-c", probe).stdout
    assert "'share', which no imported package has registered" in said
    assert said.splitlines()[-1] == "False"


def test_it_is_drawn_and_reported(followed):
    page = (followed.folder / "report.html").read_text(encoding="utf-8")
    assert followed.release.title in page
    assert "<svg" in page
    assert "each share is within" in page
    assert "surgery" in page
    because = followed.question.proof.because
    assert because[0].upper() + because[1:] in page


RUN = """
import json, sys
from sfumato.cli import run
print(json.dumps([run(words) for words in json.loads(sys.argv[1])]))
"""


def test_a_plan_and_the_command_line_know_it_by_its_entry_point(followed):
    """In a process of its own, in which nobody imported the module."""
    commands = pages.commands(PAGE)
    done = _python(followed.folder, "-c", RUN, json.dumps(commands))
    assert json.loads(done.stdout.splitlines()[-1]) == [0] * len(commands), done.stderr
    assert "each share is within" in (followed.folder / "plan.html").read_text(encoding="utf-8")
    assert "Nothing was spent: this is the stored answer" in done.stderr
    assert "--target FLOAT" in done.stdout
    assert "What is to be reached, within the bounds of the axis." in " ".join(done.stdout.split())
    assert done.stdout.count("share-at-least: Share of x from 2 on") == 4
    assert "<svg" in (followed.folder / "shares.svg").read_text(encoding="utf-8")


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = os.pathsep.join([str(folder), str(Path(sf.__file__).parent.parent)])
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": where},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_partitioner_answers_as_every_partition_does(followed):
    partition = followed.partition
    assert isinstance(partition, sf.Partition)
    assert sorted(set(partition.lower[:, 0])) == [13.0, 13.2, 13.35, 13.5]
    assert sf.load(partition.save(followed.folder / "districts.json")) == partition
    assert partition.sample(100, random_state=1).shape == (100, 2)


def test_outside_questions_are_forgotten_by_the_tests(tmp_path):
    with pages.outside(tmp_path):
        before = registry.questions()
    assert registry.questions() == before


class MeansRelease(
    sf.Release, frozen=True, kw_only=True, eq=False, tag="means", forbid_unknown_fields=True
):
    """An answer whose author forgot that files hold whole numbers."""

    numbers: np.ndarray


class Careless(sf.Question[MeansRelease], frozen=True, tag="careless", forbid_unknown_fields=True):
    """A question with an answer that cannot be read back."""

    proof: ClassVar[ex.Proof] = ex.Proof("none", "it is for a test", "everything", "none")
    array: ClassVar[np.ndarray] = np.array([0.5])

    @property
    def title(self):
        return "Careless"

    def needs(self, domain):
        return sf.Histogram("x", bins=2).needs(domain)

    def preview(self, domain, unit, cost, rows=None):
        return sf.Histogram("x", bins=2).preview(domain, unit, cost, rows)

    def answer(self, counts, unit, cost, noise):
        return MeansRelease(numbers=self.array, guarantee=self.promise(cost, unit, "none", noise))


def test_an_answer_that_cannot_be_read_back_is_not_stored_and_can_be_mended(tmp_path, monkeypatch):
    source = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 1)), name="careless")
    with (
        pages.outside(tmp_path),
        sf.Publisher(source, ledger=tmp_path / "budget.db", account="a", budget="1") as publisher,
    ):
        ex.register(Careless)
        with pytest.raises(sf.UsageError, match="could not be read back") as refused:
            publisher.release(Careless(), epsilon="1")
        assert any("The charge stands" in note for note in refused.value.__notes__)
        monkeypatch.setattr(Careless, "array", np.array([1]))
        assert publisher.release(Careless(), epsilon="1").numbers.tolist() == [1]
        assert publisher.remaining == 0


def test_the_reader_counts_what_the_file_does(followed):
    """The rows of the database are those of the file.

    So at a cost that leaves no noise the answers are the same.
    """
    asked = [followed.question, sf.Histogram(["ward", "wait"], bins={"wait": 24})]
    found = []
    for data in ("visits.parquet", followed.address):
        with sf.Publisher(sf.source(data, followed.domain), budget=10**9) as publisher:
            found.append([one.counts.tolist() for one in publisher.release(asked, epsilon=10**6)])
    assert found[0] == found[1]
    assert sum(found[0][1]) == 5000


def test_the_reader_keeps_the_contract_of_all_readers(followed):
    def opened():
        return open_reader(followed.address, tuple(followed.domain), "patient")

    axes = {axis.name: axis for axis in followed.lattice.axes}
    columns: Columns = {**axes, "patient": None}
    reader_contract.says_what_it_has(opened, columns)
    reader_contract.gives_all_rows_twice(opened, 5000, columns)


def test_the_reader_shows_no_value_of_another_type(followed, tmp_path):
    """SQLite holds text in a column of numbers.

    Such a value is missing, and its row is not counted.
    """
    with sqlite3.connect(tmp_path / "odd.db") as database:
        database.execute("CREATE TABLE t (wait REAL)")
        database.executemany("INSERT INTO t VALUES (?)", [(1.0,), ("secret",), (None,), (5,)])
        database.execute("INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    source = sf.source(
        f"sqlite://{tmp_path / 'odd.db'}?table=t", sf.Domain(wait=sf.Interval(0, 24))
    )
    with sf.Publisher(source, budget=10**9) as publisher:
        assert publisher.release(
            type(followed.question)("wait", 4), epsilon=10**6
        ).counts.tolist() == [1, 1]


def test_the_store_is_a_ledger_and_its_copy_says_what_it_says(followed):
    store = followed.MirroredStore(
        SQLiteStore(followed.folder / "mirrored.db"), followed.folder / "charges.jsonl"
    )
    with sf.Publisher(followed.source, ledger=Book(store), account="visits") as publisher:
        assert publisher.release(followed.question, epsilon="1").replayed
        assert publisher.ledger.verify().ok
        kinds = [entry.kind for entry in publisher.ledger.log()]
    assert [line["kind"] for line in followed.copied] == kinds
    assert "reserve" in kinds


def test_what_cannot_be_mirrored_is_said_and_the_charge_stands(followed, tmp_path):
    store = followed.MirroredStore(SQLiteStore(tmp_path / "budget.db"), tmp_path)
    with pytest.raises(sf.LedgerError, match="the auditor's copy cannot be written"):
        sf.Publisher(followed.source, ledger=Book(store), account="visits", budget="3")
