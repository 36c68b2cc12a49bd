"""The search for the largest epsilon."""

import itertools

import numpy as np

from sfumato import risk
from sfumato.risk import distinct_answers


def test_a_search_takes_few_scans(monkeypatch):
    scans = []
    whole = distinct_answers.Answers.worst
    monkeypatch.setattr(
        distinct_answers.Answers,
        "worst",
        lambda self, rate: scans.append(rate) or whole(self, rate),
    )
    rng = np.random.default_rng(7)
    for universe, query in itertools.product(
        (rng.normal(size=20_000), np.arange(20_000.0), rng.standard_cauchy(20_000)), ("mean", "var")
    ):
        scans.clear()
        risk.optimal_epsilon(universe, 19_999, query)
        assert len(scans) <= 12
