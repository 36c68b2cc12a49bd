"""What cannot be answered is refused before the charge, from the domain and the question alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from sfumato.answers.question import AnyQuestion
from sfumato.basics.numbers import MOST_COUNTED, MOST_NUMBERS, MOST_PARTITION_CELLS, MOST_STORED
from sfumato.publishing.plan import Plan

WIDE = sf.Domain(
    x=sf.Interval(0, 1),
    y=sf.Interval(0, 1),
    z=sf.Interval(0, 1),
    label=sf.Categories([f"c{i}" for i in range(500)]),
)
TOO_LARGE: dict[str, Callable[[], AnyQuestion]] = {
    "sixty million bins": lambda: sf.Histogram("x", bins=6 * 10**7),
    "bins of a tiny width": lambda: sf.Histogram("x", width="1e-9"),
    "bins of a width that does not divide the axis": lambda: sf.Histogram("x", width=0.3e-6),
    "several axes": lambda: sf.Histogram(["x", "y", "label"], bins=1000),
    "labels and a grid": lambda: sf.Histogram(["label", "x"], bins=10**6),
    "a grid": lambda: sf.UniformPartitioner(partitions=MOST_PARTITION_CELLS + 1),
    "a deep tree": lambda: sf.BinaryPartitioner(depth=23),
    "a wide tree": lambda: sf.MultiQuantilePartitioner(depth=6, fanout=16),
    "a tree of a depth that no power of two reaches": lambda: sf.MedianPartitioner(depth=10**5000),
    "quantiles by label": lambda: sf.Quantiles(
        ["x", "y", "z"], at=np.linspace(0.001, 0.999, 999).tolist(), by="label"
    ),
    "centres": lambda: sf.KMeans(n_clusters=10**6),
}


def _publisher() -> sf.Publisher:
    rows = {"x": [0.5], "y": [0.5], "z": [0.5], "label": ["c1"]}
    return sf.Publisher(
        sf.source(pytest.importorskip("pyarrow").table(rows), WIDE, name="doc"), budget="100"
    )


@pytest.mark.parametrize("make", TOO_LARGE.values(), ids=TOO_LARGE)
def test_too_large_is_refused_before_the_charge(make: Callable[[], AnyQuestion]) -> None:
    publisher = _publisher()
    with pytest.raises(sf.UsageError):
        publisher.release(make(), epsilon="1")
    with pytest.raises(sf.UsageError):
        sf.preview(make(), domain=WIDE, unit=sf.Unit(), epsilon="1")
    assert publisher.remaining == 100
    assert not any(any(entry.cost) for entry in publisher.ledger.log())


def test_a_plan_is_refused_for_what_its_answers_are_together() -> None:
    publisher = _publisher()
    many = [sf.Histogram("x", bins=MOST_NUMBERS - i) for i in range(3)]
    with pytest.raises(sf.UsageError, match="are stored at once"):
        publisher.release(many, epsilon="1")
    with pytest.raises(sf.UsageError, match="are stored at once"):
        publisher.preview(many, epsilon="1")
    assert publisher.remaining == 100
    trees = [
        sf.PrivTreePartitioner(["x", "y"]),
        sf.AutoPartitioner(["x", "z"]),
        sf.MedianPartitioner(depth=6),
        sf.KMeans(5),
    ]
    assert len(Plan(trees).needs(WIDE)) == 4  # what people ask for fits


def test_a_plan_is_refused_for_what_its_scan_would_count() -> None:
    axes = {f"x{i}": sf.Interval(0, 1) for i in range(8)}
    domain = sf.Domain(**axes, label=sf.Categories([f"c{i}" for i in range(64)]))
    cells = 64 * 2**20
    questions = [sf.Quantiles(name, by="label") for name in axes]
    assert MOST_COUNTED // cells == 4
    Plan(questions[:4]).needs(domain)
    with pytest.raises(sf.UsageError, match="its scan would count"):
        Plan(questions[:5]).needs(domain)


def test_a_counter_is_refused_for_steps_times_categories() -> None:
    axis = sf.Categories([f"c{i}" for i in range(1000)])
    publisher = _publisher()
    with pytest.raises(sf.UsageError, match="16,777,216"):
        publisher.open(sf.Counter(horizon=10**6, by=axis), epsilon="1", key="k")
    assert publisher.remaining == 100


def test_the_least_that_a_number_takes_fits_the_store() -> None:
    """A histogram of the largest size fits the longest value of SQLite whatever its counts are.

    Each takes 20 digits and a comma at most.
    """
    assert len(str(-(2**63))) + 1 == 21
    assert MOST_NUMBERS < MOST_STORED
    assert MOST_STORED * 21 <= 10**9


MEASURE = """
import os, resource, sys, tempfile
import numpy as np, sfumato as sf
kind, n = sys.argv[1], int(sys.argv[2])
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
names = ["x"] if kind == "histogram" else ["x", "y"]
domain = sf.Domain({name: sf.Interval(0, 1) for name in names})
src = sf.source(np.random.default_rng(0).random((1000, len(names))), domain, name="doc")
asked = {
    "histogram": lambda: sf.Histogram("x", bins=n),
    "grid": lambda: sf.UniformPartitioner(partitions=n),
    "tree": lambda: sf.BinaryPartitioner(depth=n.bit_length() - 1),
}[kind]()
with tempfile.TemporaryDirectory() as folder:
    publisher = sf.Publisher(src, ledger=os.path.join(folder, "b.db"), account="a", budget="1")
    release = publisher.release(asked, epsilon="0.000001")
    release.to_frame()
    saved = release.save(os.path.join(folder, "r.json"))
    sf.load(saved)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
    print(peak * 1024 / n, os.path.getsize(saved) / n)
    publisher.close()
"""


@pytest.mark.deep
def test_the_largest_answers_fit_a_laptop(evidence: Callable[[str, object], None]) -> None:
    """At the limit, with noise of scale 10^6.

    It takes 3 GB at most from the scan to the file that was read back, and a tenth of a blob.
    """
    found = {}
    for kind, size in (
        ("histogram", MOST_NUMBERS),
        ("grid", MOST_PARTITION_CELLS),
        ("tree", MOST_PARTITION_CELLS),
    ):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, kind, str(size)],
            capture_output=True,
            text=True,
            check=True,
        )
        memory, stored = map(float, done.stdout.split())
        found[kind] = {
            "cells": size,
            "bytes of memory a cell": round(memory),
            "bytes of JSON a cell": round(stored, 1),
        }
        assert memory * size < 3e9
        assert stored * size < 4e8
    evidence("limits", found)
