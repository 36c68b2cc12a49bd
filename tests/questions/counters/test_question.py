"""Counters: wrong ones are refused, the page is true, and the noise pays for one person."""

from __future__ import annotations

import itertools
import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.structs import to_bytes
from sfumato.questions.counters.toeplitz import column

PAGE = Path(__file__).parents[3] / "docs" / "counter.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    (printed,) = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    exec(compile(code, PAGE.name, "exec"), {})
    assert capsys.readouterr().out.startswith(printed)


def test_the_guarantee_assumes_that_steps_are_public():
    settled = sf.Counter(5).settle(None, sf.Unit(), sf.PureDP(1))
    assert any(
        line.startswith("Which steps there are") for line in settled.guarantee(True).assumptions
    )


UNITS = [
    sf.Unit(rows_per_person=r, neighbours=which)
    for r in (1, 2)
    for which in ("add-remove", "replace")
]


VALUES = {
    "counts": (1, (0, 1)),
    "sums": (sf.Interval(0, 4, step=1), (0, 4)),
    "signed": (sf.Interval(-3, 2, step=1), (-3, 2)),
}


T = 4


def changes(unit, ends, cells):
    """Return what one person can add to a stream, or exchange in it: arrays of shape (T, cells).

    Values are at the ends of the interval.
    """
    rows = [(step, cell, end) for step in range(T) for cell in range(cells) for end in ends if end]
    tables = []
    for number in range(unit.rows_per_person + 1):
        for chosen in itertools.combinations_with_replacement(rows, number):
            tables.append(np.zeros((T, cells), dtype=int))
            for step, cell, end in chosen:
                tables[-1][step, cell] += end
    return (
        tables
        if unit.neighbours == "add-remove"
        else [one - other for one in tables for other in tables]
    )


@pytest.mark.parametrize("by", [None, sf.Categories(["a", "b"])], ids=["", "by"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("unit", UNITS[:2] + UNITS[2:3], ids=str)
def test_the_noise_of_a_counter_pays_for_what_one_person_can_do(unit, value, by):
    interval, ends = VALUES[value]
    moved = changes(unit, ends, 1 if by is None else 2)
    most = max(int(np.abs(each).sum()) for each in moved)
    for horizon in (1, T, 365):
        mechanism = (
            sf.Counter(horizon, value=interval, by=by)
            .settle(None, unit, sf.PureDP("0.3"))
            .mechanism
        )
        assert mechanism.law.scale == most * mechanism.levels / Fraction("0.3")
    assert sf.Counter(None, value=interval, by=by).settle(
        None, unit, sf.PureDP("0.3")
    ).mechanism.scale == most / Fraction("0.3")
    mechanism = (
        sf.Counter(T, value=interval, by=by, method="toeplitz")
        .settle(None, unit, sf.ZCDP("0.3"))
        .mechanism
    )
    first = column(T, mechanism.precision).astype(object)
    matrix = np.array([[first[i - j] if i >= j else 0 for j in range(T)] for i in range(T)])
    largest = max(int(((matrix @ each) ** 2).sum()) for each in moved)
    assert mechanism.law.sigma_squared >= largest / (2 * Fraction("0.3"))
    rounded = (
        sf.Counter(T, value=interval, by=by, method="blt")
        .settle(None, unit, sf.ZCDP("0.3"))
        .mechanism
    )
    norm = int(max(np.square(np.cumsum(each, axis=0)[-1]).sum() for each in moved))
    assert rounded.law.sigma_squared > norm * 4**rounded.precision / (2 * Fraction("0.3"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"horizon": 0},
        {"horizon": 2.5},
        {"horizon": True},
        {"horizon": 10**8},
        {"value": 2},
        {"value": "x"},
        {"value": sf.Interval("2013-01-01", "2014-01-01")},
        {"by": 3},
        {"method": "magic"},
        {"late": "no"},
    ],
    ids=repr,
)
def test_wrong_counters(wrong: dict[str, object]) -> None:
    with pytest.raises(sf.UsageError) as refusal:
        sf.Counter(**({"horizon": 5} | wrong))  # type: ignore[arg-type]
    assert len(refusal.value.args) == 3


def test_a_preview_keeps_its_documented_keys():
    preview = sf.Counter(9).preview(None, sf.Unit(rows_per_person=2), sf.PureDP(1))
    assert {"machine", "grain", "reach"} <= set(json.loads(to_bytes(preview)))
