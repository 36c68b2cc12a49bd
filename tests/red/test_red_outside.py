"""Partitions, clusters and streams from outside.

Wrong input ends in an error of three parts, and what cannot be done is not paid for.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.ledger import open_ledger
from sfumato.random import PublicSeed, override
from sfumato.streaming import get_step_idx


def released(question, rows=None, epsilon=1):
    data = np.random.default_rng(0).random((300, 2)) if rows is None else rows
    domain = sf.Domain({name: sf.Interval(0, 1) for name in "xy"[: data.shape[1]]})
    with sf.Publisher(sf.source(data, domain, name="red"), budget=10**6) as publisher:
        return publisher.release(question, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [300, 700, 1000, 3000])
@pytest.mark.parametrize(
    "question", [sf.BinaryPartitioner(depth=3), sf.AdaptiveGridPartitioner(), sf.AutoPartitioner()]
)
def test_noise_that_hardly_ever_comes_has_intervals(question, epsilon):
    """Its variance is a double, but not what is divided by it."""
    found = released(question, np.full((40, 2), 0.3), epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = found.count(x=(0.125, 0.375))
        assert estimate.low <= estimate.value <= estimate.high
        for simultaneous in (False, True):
            assert np.isfinite(found.consistent().accuracy(simultaneous=simultaneous)).all()


def wrong_parameters():
    tree = released(sf.BinaryPartitioner(depth=2))
    return {
        "shares": lambda: sf.MedianPartitioner(shares=(2, 1, 1)),
        "no shares": lambda: sf.BinaryPartitioner(shares=None),
        "allocation": lambda: sf.BinaryPartitioner(depth=2, allocation=3),
        "a cell too far": lambda: tree.half_width([99]),
        "a cell before the first": lambda: tree.half_width([-1]),
        "half a cell": lambda: tree.half_width([0.5]),
        "more points than memory": lambda: tree.sample(10**13),
    }


def wrong_local():
    bpm, points = sf.BPM(epsilon=4, L=1, dimension=2), np.random.default_rng(0).random((50, 2))
    found = sf.PrivateKMeans(n_clusters=2, epsilon=8, method="naive").fit(points)
    return {
        "limit of none": lambda: bpm.limit(0),
        "limit of less": lambda: bpm.limit(-5),
        "error in words": lambda: bpm.reports_needed("x"),
        "no finite error": lambda: bpm.reports_needed(float("inf")),
        "complex": lambda: bpm.perturb([1 + 1j, 0]),
        "seed in words": lambda: sf.PrivateKMeans(n_clusters=2, epsilon=4, random_state="a"),
        "negative seed": lambda: sf.PrivateKMeans(n_clusters=2, epsilon=4, random_state=-1),
        "other axes": lambda: found.predict(points[:, :1]),
        "axes of the sum": lambda: found.compute_sse(np.zeros((3, 3))),
        "reports from elsewhere": lambda: found.fit_reports(np.full((9, 2), 99.0)),
        "reports without end": lambda: sf.PrivateKMeans(
            2, epsilon=4, mechanism="laplace"
        ).fit_reports(np.full((9, 2), np.inf)),
        "a line of reports": lambda: found.fit_reports(np.zeros(9)),
        "reports in words": lambda: found.fit_reports([["a", "b"]] * 9),
    }


def wrong_streams():
    return {
        f"step of {state!r}": lambda state=state: get_step_idx(state)
        for state in ("a", None, (3, 1), (1, 1), (-1,), (), (0.5,))
    }


@pytest.mark.parametrize("cases", [wrong_parameters, wrong_local, wrong_streams])
def test_wrong_input(cases):
    for name, call in cases().items():
        with pytest.raises(sf.UsageError) as refused:
            call()
        assert len(refused.value.args) == 3, name
        assert all(refused.value.args), name


def test_one_person_who_is_no_list():
    src = sf.source(
        pd.DataFrame({"x": [0.5], "p": ["a"]}), sf.Domain(x=sf.Interval(0, 1)), person="p", name="s"
    )
    with (
        sf.Publisher(src, budget=1) as publisher,
        publisher.open(sf.Counter(9), epsilon=1, key="k") as stream,
    ):
        with pytest.raises(sf.UsageError):
            stream.push(1, persons=5)
        assert stream.remaining == 9


def test_one_false_report_does_not_stop_the_server():
    """Any device may send what lies far beyond all noise."""
    mechanism = sf.MultivariateLaplace(epsilon=8, dimension=2)
    with override(PublicSeed(1)):
        reports = mechanism.perturb(
            np.random.default_rng(0).choice([0.2, 0.8], (200, 1)) * np.ones(2)
        )
    reports[0] = 1e7
    found = sf.PrivateKMeans(
        n_clusters=2, epsilon=8, mechanism="laplace", random_state=0
    ).fit_reports(reports)
    assert np.abs(np.sort(found.cluster_centers_[:, 0]) - [0.2, 0.8]).max() < 0.2


def test_a_question_ends_a_sentence_by_itself():
    assert str(sf.DataError("a", "did you mean 'b'?", "Do")) == "a: did you mean 'b'? Do."


CSV = "day,x\n1,0.5\n2,0.7\n"


@pytest.mark.parametrize(
    "words",
    [
        ["stream", "none.csv", "--step", "day", "--horizon", "9", "--key", "k"],
        ["stream", "none.txt", "--horizon", "9", "--key", "k"],
        ["stream", "d.csv", "--step", "days", "--horizon", "9", "--key", "k"],
        ["stream", "d.csv", "--step", "day", "--person", "who", "--horizon", "9", "--key", "k"],
        ["stream", "d.parquet", "--step", "days", "--horizon", "9", "--key", "k"],
        ["stream", "false.parquet", "--step", "day", "--horizon", "9", "--key", "k"],
        ["partition", "d.csv", "--axis", "x=0..1", "--geojson", "d.json"],
    ],
    ids=" ".join,
)
def test_commands_that_cannot_end_well_are_refused_before_the_charge(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text(CSV)
    Path("false.parquet").write_text(CSV)
    pd.DataFrame({"day": [1, 2], "x": [0.5, 0.7]}).to_parquet("d.parquet")
    assert run([*words, "--epsilon", "1", "--budget", "2"]) in (2, 4)
    if Path("sfumato.db").exists():
        with open_ledger(Path("sfumato.db")) as ledger:
            assert not any(any(account.spent) for account in ledger.accounts())


def test_a_stream_of_what_is_not_there_yet(tmp_path, monkeypatch, capsys):
    """An empty file may grow, and a pipe can be read once only."""
    import os
    import threading

    monkeypatch.chdir(tmp_path)
    Path("empty.csv").touch()
    asked = ["--step", "day", "--horizon", "9", "--epsilon", "1", "--budget", "2"]
    assert run(["stream", "empty.csv", *asked, "--key", "a"]) == 0
    os.mkfifo("pipe.csv")
    writer = threading.Thread(target=lambda: Path("pipe.csv").write_text(CSV), daemon=True)
    writer.start()
    assert run(["stream", "pipe.csv", *asked, "--key", "b"]) == 0
    writer.join()
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_centres_are_shown_along_the_axes_of_the_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for value in ("a=0.1", "a=0.9"):
        assert (
            run(
                [
                    "local",
                    "perturb",
                    "--axis",
                    "a=0..1",
                    "--axis",
                    "b=0..1",
                    "--value",
                    value,
                    "--value",
                    "b=1",
                    "--epsilon",
                    "8",
                ]
            )
            == 0
        )
    Path("r.jsonl").write_text(capsys.readouterr().out)
    assert (
        run(
            [
                "local",
                "collect",
                "r.jsonl",
                "--clusters",
                "2",
                "--axis",
                "a=0..20",
                "--epsilon",
                "8",
            ]
        )
        == 2
    )
    assert "all 2 that were read were left out" in capsys.readouterr().err
    assert (
        run(
            [
                "local",
                "collect",
                "r.jsonl",
                "--clusters",
                "2",
                "--axis",
                "a=0..20",
                "--any-mechanism",
            ]
        )
        == 2
    )
    assert "the reports have 2" in capsys.readouterr().err
