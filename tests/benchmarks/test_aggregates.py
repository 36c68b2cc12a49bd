"""Errors of means by group, as the benchmark takes them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import aggregates, peers

TABLE = aggregates.Table(
    "doc", np.array([0, 0, 1]), np.array([1.0, 3.0, 8.0]), bounds=(0, 10), step=1
)


def test_errors_are_about_the_true_means_of_groups() -> None:
    answers = np.array([[3.0, 8.0], [1.0, 9.0]])
    assert aggregates._squared_errors(TABLE, answers).tolist() == [1.0, 0.5]


def test_answers_that_are_beyond_the_bounds_or_not_known_lie_within_them() -> None:
    answers = np.array([[-7.0, np.nan]])
    assert aggregates._squared_errors(TABLE, answers).tolist() == [4.0, 9.0]


def test_our_draws_are_near_the_truth_and_differ() -> None:
    table = aggregates.mixture(10**5)
    question = aggregates.Mean("value", by="group")
    draws = aggregates._our_means(table, question, 3)
    assert draws.shape == (3, 16)
    assert len(np.unique(draws[:, 0])) == 3


def test_a_peer_that_is_not_installed_has_no_row(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(peers.FOLDER, str(tmp_path_factory.mktemp("none")))
    found = aggregates._errors(TABLE, 50)
    assert [row["what"] for row in found] == [aggregates.OURS, aggregates.WITH_CLIP]
    assert found[0]["MSE over ours"] == 1
