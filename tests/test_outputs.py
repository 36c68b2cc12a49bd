"""What version 0.2 wrote before its inside was rebuilt.

The outputs are the same, and the files still open.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.answers.release import accuracy_sentence
from sfumato.basics.structs import to_bytes
from sfumato.publishing.verifying import verify
from support.outputs import COUNTERS, PLANE, QUESTIONS, outputs, source

BEFORE = Path(__file__).parent / "fixtures" / "v0_2"
SAVED = ("histogram", "keys", "kmeans", "open", "finished")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """The ledger, with the modes that it was written with."""
    for name in ("budget.db", "budget.db.secrets"):
        shutil.copy(BEFORE / name, tmp_path / name)
        os.chmod(tmp_path / name, 0o600)
    return tmp_path / "budget.db"


def hospital(book: Path) -> sf.Publisher:
    return sf.Publisher(source(), ledger=book, account="visits", budget=sf.ApproxDP(9, "0.01"))


def test_every_question_says_and_answers_what_it_did() -> None:
    before = json.loads((BEFORE / "outputs.json").read_text("utf-8"))
    now = dict(outputs())
    assert set(now) == set(before) == {*QUESTIONS, *COUNTERS}
    for name, found in now.items():
        assert json.loads(json.dumps(found)) == before[name], name


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_release_opens_to_the_same_bytes(name: str) -> None:
    path = BEFORE / f"{name}.json"
    release = sf.load(path)
    assert release.loaded
    assert to_bytes(release) == path.read_bytes()


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_release_is_what_the_ledger_has(name: str, book: Path) -> None:
    with hospital(book) as publisher:
        verdict = verify(sf.load(BEFORE / f"{name}.json"), publisher.ledger)
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    ("name", "accuracy", "values_known"),
    [
        ("quantiles", [40] * 3, None),
        ("quantiles_recursive", [82] * 3, None),
        ("quantiles_by_kind", [[[64], [210]]] * 4, 2),
    ],
)
def test_quantiles_whose_ranks_were_not_paid_for_state_what_they_did(
    name: str, accuracy: list[object], values_known: int | None
) -> None:
    path = BEFORE / f"{name}.json"
    release = sf.load(path)
    assert to_bytes(release) == path.read_bytes()
    assert release.accuracy().tolist() == accuracy
    low, high = release.interval()
    assert low.shape == high.shape == release.values.shape
    ends = [axis.ends for axis in release.axes]
    assert {*zip(low.flat, high.flat, strict=True)} == {*ends}
    assert release.facts[0].startswith("Nothing is known of the values but the ends of the axis")
    assert release.ranks is None
    assert (None if release.known is None else int(release.known.sum())) == values_known
    assert "rank" not in release.to_frame().column_names
    assert "rows of the one asked for" in accuracy_sentence(release)
    with pytest.raises(sf.UsageError):
        release.rank_interval()


def test_a_ledger_verifies_and_replays_unpaid(book: Path) -> None:
    with hospital(book) as publisher:
        assert publisher.ledger.verify().ok
        spent = publisher.account.spent
        again = publisher.release(sf.Histogram("x"), epsilon="1")
        plan = [sf.Quantiles("x"), sf.UniformPartitioner(PLANE)]
        both = publisher.release(plan, epsilon="1", key="plan")
        assert publisher.account.spent == spent
        assert publisher.ledger.verify().ok
    assert again.replayed
    assert again == sf.load(BEFORE / "histogram.json")
    assert [one.replayed for one in both] == [True, True]


def test_a_stream_goes_on_where_it_stopped(book: Path) -> None:
    with hospital(book) as publisher:
        with publisher.open(sf.Counter(horizon=5), epsilon="1", key="open") as stream:
            assert stream.history().values.tolist() == sf.load(BEFORE / "open.json").values.tolist()
            for step in range(3):
                stream.push(step)
            assert not stream.remaining
        assert publisher.ledger.verify().ok
