"""A device reports once, keeps no value, and says what is wrong with its memory."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.local import Client
from sfumato.local.client import label, mechanism_of, reports
from support.canary import overheard, sightings

BOUNDS = {"age": sf.Interval(0, 120), "income": sf.Interval(0, 200_000)}


MADE = sf.BPM(4, "auto", 2)


def test_a_device_reports_once_whatever_its_value_becomes(tmp_path: Path) -> None:
    memory = tmp_path / "mine.json"
    first = Client(MADE, BOUNDS, memory).report([37, 41_000])
    assert Client(MADE, BOUNDS, memory).report([99, 1]) == first
    assert memory.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [memory]
    with pytest.raises(sf.UsageError, match="second report"):
        Client(sf.BPM(8, "auto", 2), BOUNDS, memory).report([37, 41_000])
    assert Client(MADE, BOUNDS).report([37, 41_000]) != first


def test_a_device_that_was_second_hands_out_the_report_of_the_first(tmp_path: Path) -> None:
    memory = tmp_path / "mine.json"
    one, two = Client(MADE, BOUNDS, memory), Client(MADE, BOUNDS, memory)
    assert two._remembered() is None
    first = one.report([37, 41_000])
    two._remembered = lambda: None if not two._report else first  # type: ignore[method-assign]
    del two._remembered  # both looked before either wrote: the link decides
    assert two._kept(reports(MADE, np.array([[0.5, 0.5]]))[0]) == first


def test_a_device_keeps_no_value(tmp_path: Path) -> None:
    secret = 37.81240913
    client = Client(MADE, BOUNDS, tmp_path / "mine.json")
    report = client.report([secret, 41_000])
    assert sightings(secret, client, report, vars(client)) == []
    assert secret.hex().encode() not in pickle.dumps(client)
    for call in (
        lambda: client.report([secret]),
        lambda: Client(MADE, BOUNDS).report([secret, float("nan")]),
    ):
        assert overheard(secret, call) == []


def test_a_memory_that_leads_nowhere_is_an_error_of_its_own(tmp_path: Path) -> None:
    memory = tmp_path / "mine.json"
    memory.symlink_to(tmp_path / "gone" / "elsewhere.json")
    with pytest.raises(sf.DataError, match="does not hold a report"):
        Client(MADE, BOUNDS, memory).report([37, 41_000])
    assert list(tmp_path.iterdir()) == [memory]


def test_a_memory_that_vanishes_is_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(MADE, BOUNDS, tmp_path / "mine.json")
    monkeypatch.setattr(client, "_remembered", lambda: None)
    with pytest.raises(sf.DataError, match="removed"):
        client.report([37, 41_000])


@pytest.mark.parametrize(
    "bounds", [[(0, 1)], [(1, 0), (0, 1)], [(0, float("inf")), (0, 1)], "ab", [(0, None), (0, 1)]]
)
def test_bounds_are_public_and_complete(bounds: object) -> None:
    with pytest.raises(sf.UsageError):
        Client(MADE, bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [MADE, sf.MultivariateLaplace("1/3", 3)], ids=str)
def test_labels_are_read_back(made: sf.BPM | sf.MultivariateLaplace) -> None:
    assert mechanism_of(label(made)) == made
    for text in (
        "",
        "bpm",
        "bpm,epsilon=1,L=auto,dimension=2",
        "bpm,epsilon=x,L=1,dimension=2",
        "laplace,epsilon=1,dimension=99999999",
    ):
        with pytest.raises((sf.DataError, sf.UsageError)):
            mechanism_of(text)
