"""What a tree and the steps after it spend, read from the noise itself, adds up to the cost."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.partition.privtree import PrivTreePartitioner


@pytest.mark.parametrize(
    "unit", [{}, {"rows_per_person": 2, "neighbours": "replace"}], ids=["add-remove", "replace"]
)
def test_the_tree_and_the_steps_spend_the_cost(monkeypatch, unit):
    made, laws = PrivTreePartitioner.law_at, []
    monkeypatch.setattr(
        PrivTreePartitioner,
        "law_at",
        lambda self, *words: laws.append(made(self, *words)) or laws[-1],
    )
    rows = np.random.default_rng(0).random((2000, 2))
    src = sf.source(rows, sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1)), name="rows", **unit)
    with sf.Publisher(src, budget=2) as publisher:
        found = publisher.release(sf.KMeans(3, method="privtree"), epsilon=1)
    r, moved = src.unit.rows_per_person, src.unit.counts_l1
    tests = Fraction(r * (4 if unit else 3)) / laws[-1][0].scale
    counts = max(moved / law.scale for law in found.partition.laws)
    steps = sum(
        moved * step.clip_radius / step.sum_law.scale + moved / step.count_law.scale
        for step in found.steps
    )
    assert Fraction(999, 1000) <= tests + counts + steps <= 1
