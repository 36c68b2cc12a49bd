"""Whoever pays again for want of a name is told so, once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sfumato as sf

ROWS = np.array([[1.0], [2.0]])
DOMAIN = sf.Domain(x=sf.Interval(0, 4))


@pytest.fixture(autouse=True)
def _not_yet_warned(monkeypatch):
    monkeypatch.setattr("sfumato.errors._said", set())


def asked(tmp_path, *, name=None, data=ROWS, ledger="budget.db", **how):
    path = None if ledger is None else tmp_path / ledger
    with sf.Publisher(sf.source(data, DOMAIN, name=name), ledger=path, budget="5") as publisher:
        return publisher.release(sf.Histogram("x"), epsilon="1", **how)


def test_a_table_without_a_name_warns_once_and_says_what_to_type(tmp_path):
    with pytest.warns(sf.errors.SfumatoWarning, match="name=") as caught:
        asked(tmp_path)
    assert caught[0].filename == __file__
    assert "pays again" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not asked(tmp_path).replayed


@pytest.mark.parametrize("case", ["name", "key", "fresh", "file", "memory"])
def test_it_is_quiet_where_the_answer_is_found_again_or_was_to_be_paid(tmp_path, case):
    how = {
        "name": {"name": "people"},
        "key": {"key": "k"},
        "fresh": {"fresh": True},
        "file": {"data": tmp_path / "x.csv"},
        "memory": {"ledger": None},
    }[case]
    (tmp_path / "x.csv").write_text("x\n1\n2\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="This account is in memory")
        asked(tmp_path, **how)
