"""The history of a stream is what was shown, wherever its process is killed.

Nothing that was published changes. Nothing is lost or counted twice, and no step has two noises.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.questions.counters.toeplitz import ColumnState
from support import workers
from support.workers import AfterStatement, AtByte, Fate, SoonAfter

COUNTERS = {
    "tree": (sf.Counter(208), {"epsilon": "1"}),
    "toeplitz": (sf.Counter(208, method="toeplitz"), {"rho": "0.5"}),
    "blt": (sf.Counter(208, method="blt"), {"rho": "0.5"}),
    "segments": (sf.Counter(None), {"epsilon": "1"}),
    "calendar": (sf.Counter([str(event) for event in range(1, 209)]), {"epsilon": "1"}),
}
SHORT: dict[str, tuple[sf.Counter, dict[str, str]]] = {
    "short tree": (sf.Counter(8, method="tree"), {"epsilon": "1"}),
    "short toeplitz": (sf.Counter(8, method="toeplitz"), {"rho": "0.5"}),
}


def brought(event: int) -> int:
    """What each event brings."""
    return event * event % 97


def work(place: Path, name: str, events: int) -> None:
    """Push every event from the first on, and show each total once it is returned."""
    counter, cost = (COUNTERS | SHORT)[name]
    out = os.open(place / "shown", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    source = sf.source(np.empty((0, 1)), sf.Domain(x=sf.Interval(0, 1)), name="t")
    budget = sf.ZCDP("0.5") if "rho" in cost else "1"
    publisher = sf.Publisher(source, ledger=place / "b.db", account="a", budget=budget)
    with publisher, publisher.open(counter, key="k", **cost) as stream:
        first = max(
            1, stream.step - 2
        )  # a few are pushed again, as by someone who does not know how far it came
        for event in range(first, events + 1):
            total = stream.push(brought(event), event=event)
            os.write(out, f"{json.dumps([event, total.step, total.value])}\n".encode())
    os.close(out)


def fate(ledger: Path, number: int) -> Fate:
    """One fate after another.

    Of each kind, at places all over the first 43 statements, or 43 kilobytes, of a life.

    To open a ledger with a stream takes about 22 statements, and to push takes 3.
    """
    place = 1 + number * 17 % 43
    return (
        AfterStatement(place),
        SoonAfter(place),
        AtByte(Path(f"{ledger}-wal"), 1000 * place, 43),
    )[number % 3]


def storm(place: Path, name: str, events: int, fates: list[Fate]) -> int:
    """Let one worker after another die by its fate, and the last one come to its end."""
    killed = workers.storm([partial(work, place, name, events)], [fates])
    assert killed == len(fates)
    return killed


def judge(place: Path, name: str, events: int) -> int:
    """Compare what was shown with what is stored, and with what was brought.

    The number of lines that were shown.
    """
    counter, cost = (COUNTERS | SHORT)[name]
    shown = [json.loads(line) for line in (place / "shown").read_text().splitlines()]
    source = sf.source(np.empty((0, 1)), sf.Domain(x=sf.Interval(0, 1)), name="t")
    with sf.Publisher(source, ledger=place / "b.db", account="a") as publisher:
        assert publisher.remaining == 0
        assert len([entry for entry in publisher.ledger.log() if entry.kind == "reserve"]) == 1
        with publisher.open(counter, key="k", **cost) as stream:
            history = stream.history()
            stored = (
                publisher.ledger._opened_secrets()
                .store.database._connection.execute("SELECT state FROM streams")
                .fetchone()[0]
            )  # type: ignore[attr-defined]
        assert publisher.ledger.verify().ok
    assert history.events == tuple(str(event) for event in range(1, events + 1)), (
        "no step lost, none counted twice"
    )
    values = history.values.tolist()
    for event, step, value in shown:
        assert (step, value) == (event, values[event - 1]), "what was shown once is what is stored"
    assert {event for event, _, _ in shown} == set(range(1, events + 1))
    truth = [brought(event) for event in range(1, events + 1)]
    if len(history.values) == history.settled.mechanism.horizon:
        assert stored == b"", "a stream that is over keeps no state"
        return len(shown)
    _, state = msgspec.json.decode(stored)
    if name in ("tree", "calendar"):
        assert state["totals"] == [sum(truth)]
    elif name == "toeplitz":
        assert msgspec.convert(state, ColumnState).values() == truth
    half = 1.5 * history.accuracy(
        "0.999999", simultaneous=True
    )  # false alarms: 1e-9, since tails are exponential
    assert (np.abs(history.values - np.cumsum(truth)) <= half).all()
    return len(shown)


@pytest.mark.parametrize("name", COUNTERS)
def test_killed_all_over_its_work(tmp_path: Path, name: str) -> None:
    """Each kind of stream at other places."""
    first = 7 * list(COUNTERS).index(name)
    storm(
        tmp_path, name, 40, [fate(tmp_path / "b.db", number) for number in range(first, first + 7)]
    )
    judge(tmp_path, name, 40)


@pytest.mark.parametrize("name", ["short tree", "short toeplitz"])
def test_killed_around_its_last_step(tmp_path: Path, name: str) -> None:
    """The step that wipes the secrets is taken once, and whoever opens the stream next cuts the
    log.
    """
    storm(tmp_path, name, 8, [AfterStatement(place) for place in range(36, 52)])
    judge(tmp_path, name, 8)
    assert (
        not (tmp_path / "b.db.secrets-wal").exists()
        or not (tmp_path / "b.db.secrets-wal").stat().st_size
    )


@pytest.mark.deep
@pytest.mark.parametrize("name", COUNTERS)
def test_killed_after_each_statement_and_kilobyte(tmp_path: Path, name: str) -> None:
    """Kills during the first opening, in an empty folder each time, and during four pushes."""
    for place in range(1, 90):
        folder = tmp_path / str(place)
        folder.mkdir()
        storm(
            folder,
            name,
            24,
            [
                AfterStatement(place),
                AtByte(folder / "b.db-wal", 500 * place),
                AfterStatement(1 + place % 34),
            ],
        )
        judge(folder, name, 24)


@pytest.mark.deep
def test_a_thousand_kills(tmp_path: Path, evidence: Callable[[str, object], None]) -> None:
    """A thousand in all, and two hundred of each kind of stream."""
    figures = {"kills": 0, "streams": 0, "steps": 0, "shown": 0}
    kills = dict.fromkeys(COUNTERS, 0)
    names = list(COUNTERS)
    while min(kills.values()) < 200:
        name = names[figures["streams"] % len(names)]
        place = tmp_path / str(figures["streams"])
        place.mkdir()
        first = 40 * figures["streams"]
        kills[name] += storm(
            place, name, 200, [fate(place / "b.db", number) for number in range(first, first + 40)]
        )
        figures["shown"] += judge(place, name, 200)
        figures["streams"] += 1
        figures["steps"] += 200
    figures["kills"] = sum(kills.values())
    evidence("streams", {**figures, "kills_by_stream": kills})
