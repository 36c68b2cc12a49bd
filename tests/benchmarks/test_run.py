"""Subjects of the benchmark by their names."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.run import SUBJECTS, run
from sfumato.errors import UsageError


def test_an_unknown_subject_is_named_back() -> None:
    with pytest.raises(UsageError, match="did you mean 'noise'"):
        list(run(["noize"]))
    assert list(SUBJECTS) == sorted(SUBJECTS)
    for subject in SUBJECTS:
        assert importlib.import_module(f"benchmarks.{subject}").CHART.names
