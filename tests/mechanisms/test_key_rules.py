"""The selection of keys in parts: the noise of a key follows from the rule and the key alone."""

from __future__ import annotations

import pickle
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sfumato.audit.runs import Scripted, key_masses, masses
from sfumato.mechanisms.gaussian_keys import ThresholdGaussian, gaussian_key_law
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.mechanisms.thresholds import (
    KeyLaw,
    KeyRule,
    ThresholdLaplace,
    canonical,
    key_law,
    released,
)
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed, current

COST = ApproxDP("1", "1e-3")
LAWS: dict[str, KeyLaw] = {
    "truncated-geometric": key_law(COST, Unit()),
    "threshold": key_law(COST, Unit(), "threshold"),
    "stability": key_law(COST, Unit(neighbours="replace"), "stability"),
    "gaussian": gaussian_key_law(COST, 12, "add-remove") or ThresholdGaussian(Fraction(4), 9),
}
SECRET = bytes(range(32))


def groups(keys: Any, rows_of_key: Any, **more: Any) -> pa.RecordBatch:
    counts = pa.array(rows_of_key, pa.int64())
    return pa.record_batch({"key": keys, "rows_of_key": counts, **more})


def found(batch: pa.RecordBatch) -> dict[Any, int]:
    return dict(zip(batch["key"].to_pylist(), batch["noisy_rows"].to_pylist(), strict=True))


def test_keys_of_no_rows_are_not_shown_and_move_no_other() -> None:
    law = LAWS["threshold"]
    keys, rows = ["a", "b", "c", "d"], [0, 10**6, 0, 10**6]
    assert found(KeyRule(law, SECRET).shown(groups(keys, rows))) == found(
        KeyRule(law, SECRET).shown(groups(["b", "d"], [10**6, 10**6]))
    )


@pytest.mark.parametrize("name", LAWS)
def test_a_key_has_the_same_noise_in_every_part_and_order(name: str) -> None:
    law = LAWS[name]
    draw = random.Random(name)
    keys = [f"key {i}" for i in range(2000)]
    rows = [draw.randrange(1, 2 * law.threshold) for _ in keys]
    whole = found(KeyRule(law, SECRET).shown(groups(keys, rows)))
    assert 0 < len(whole) < len(keys)
    order = list(range(len(keys)))
    draw.shuffle(order)
    again: dict[str, int] = {}
    for start in range(0, len(order), 333):
        part = order[start : start + 333]
        rule = pickle.loads(pickle.dumps(KeyRule(law, SECRET)))
        batch = groups([keys[i] for i in part], [rows[i] for i in part])
        shown = found(rule.shown(batch))
        assert found(rule.shown(batch)) == shown, "a part that is evaluated again"
        again |= shown
    assert again == whole


@pytest.mark.parametrize("name", LAWS)
def test_two_selections_have_noise_of_their_own(name: str) -> None:
    law = LAWS[name]
    batch = groups([f"key {i}" for i in range(4000)], [law.threshold] * 4000)
    one, other = (KeyRule.of(law, current()) for _ in range(2))
    assert one.secret != other.secret
    ones, others = found(one.shown(batch)), found(other.shown(batch))
    shown = np.array([[key in each for key in batch["key"].to_pylist()] for each in (ones, others)])
    # 6.2 standard errors: a false alarm once in 10^9.
    assert abs(float(np.corrcoef(shown.astype(float))[0, 1])) < 6.2 / 4000**0.5


@pytest.mark.parametrize("name", LAWS)
def test_noise_of_many_keys_has_the_law(name: str) -> None:
    """By chi-square over all noisy counts that are shown, and none; a fixed secret, 1e-9.

    Counts at the threshold are judged: about half of the keys are shown.
    """
    law = LAWS[name]
    size = 200_000
    count = law.threshold
    shown = KeyRule(law, SECRET).shown(groups(np.arange(size), [count] * size))
    noise = np.array(list(found(shown).values())) - count
    statistic, freedom = chi_square(noise, law, size)
    assert statistic <= stats.chi2.isf(1e-9, freedom)
    # The same draws, off by one, are noticed.
    statistic, freedom = chi_square(noise + 1, law, size)
    assert statistic > stats.chi2.isf(1e-9, freedom)


def chi_square(noise: np.ndarray, law: KeyLaw, size: int) -> tuple[float, int]:
    """How far noise of at least 0, among so many draws, is from the law; and the freedom."""
    values = np.arange(0, 3 * law.threshold + 50)
    if isinstance(law, ThresholdLaplace):
        mass = masses(DiscreteLaplace(law.scale), values)
    elif isinstance(law, ThresholdGaussian):
        mass = masses(DiscreteGaussian(law.sigma_squared), values)
    else:
        of_law, mass_of_law = key_masses(law)
        mass = np.array(
            [mass_of_law[of_law == value].sum() for value in values.tolist()], dtype=float
        )
    expected = mass * size
    cells = expected >= 25
    observed = np.bincount(np.clip(noise, 0, len(values) - 1), minlength=len(values))
    rest = size - expected[cells].sum(), size - observed[cells].sum()
    terms = (observed[cells] - expected[cells]) ** 2 / expected[cells]
    return float(terms.sum() + (rest[1] - rest[0]) ** 2 / rest[0]), int(cells.sum())


@pytest.mark.parametrize("name", LAWS)
def test_as_many_keys_are_shown_as_by_one_keystream(name: str) -> None:
    """Each count is shown as often as the law says, and as ``released`` shows it."""
    law = LAWS[name]
    size = 20_000
    counts = np.array([max(law.threshold + step, 1) for step in (-8, -3, 0, 3)])
    keys = np.arange(4 * size)
    rows = np.repeat(counts, size)
    shown = found(KeyRule(law, SECRET).shown(groups(keys, rows)))
    old, _ = released(rows, law, PublicSeed(name))
    for place, count in enumerate(counts.tolist()):
        expected = float(law.kept(count))
        near = 6.2 * (expected * (1 - expected) / size) ** 0.5 + 1 / size
        ours = sum(1 for key in shown if key // size == place)
        assert abs(ours / size - expected) <= near
        assert abs(((old // size) == place).sum() / size - expected) <= near


def test_a_key_that_nobody_has_is_never_shown() -> None:
    law = ThresholdLaplace(Fraction(1000), 1)
    batch = groups([f"key {i}" for i in range(100)], [0] * 100)
    assert not found(KeyRule(law, SECRET).shown(batch))


def test_keys_of_other_types_have_noise_of_their_own() -> None:
    """1, "1" and True are three keys; 1 is one key in whatever width."""
    law = ThresholdLaplace(Fraction(10**9), 1)
    many = 2**40
    shown = [
        next(iter(found(KeyRule(law, SECRET).shown(groups(keys, [many]))).values()))
        for keys in (
            pa.array([1], pa.int64()),
            pa.array(["1"]),
            pa.array([True]),
            pa.array([b"\1\0\0\0\0\0\0\0".decode()]),
        )
    ]
    assert len(set(shown)) == 4
    for same in (
        pa.array([1], pa.int8()),
        pa.array([1], pa.uint64()),
        pa.array([1], pa.int32()),
        pa.array([5, 1]).slice(1),
        pa.array([1]).dictionary_encode(),
    ):
        assert found(KeyRule(law, SECRET).shown(groups(same, [many]))) == {1: shown[0]}
    for same in (
        pa.array(["1"], pa.large_string()),
        pa.array(["x", "1"]).slice(1),
        pa.array(["1"]).dictionary_encode(),
        pa.array(["1"], pa.string_view()),
    ):
        assert found(KeyRule(law, SECRET).shown(groups(same, [many]))) == {"1": shown[1]}


def test_the_bytes_of_keys() -> None:
    kind, offsets, data = canonical(pa.array(["é", "", "ab"]).slice(0))
    texts = [data[a:b].tobytes() for a, b in pairwise(offsets)]
    assert texts == ["é".encode(), b"", b"ab"]
    other, offsets, data = canonical(pa.array([-1, 258], pa.int16()))
    numbers = [data[a:b].tobytes() for a, b in pairwise(offsets)]
    assert numbers == [b"\xff" * 8, b"\2\1" + bytes(6)]
    truth, _, data = canonical(pa.array([True, False]))
    assert data.tolist() == [1, 0]
    assert len({kind, other, truth}) == 3


def test_other_columns_and_all_groups_of_a_key_are_kept() -> None:
    law = LAWS["threshold"]
    batch = groups(
        ["a", None, "a", "b", "a"],
        [1000, 1000, 1000, 1, 1000],
        rows=[400, 5, 300, 1, 300],
        cell_1=[0, 1, 2, 0, 4],
    )
    shown = KeyRule(law, SECRET).shown(batch)
    assert shown.schema.names == ["key", "rows", "cell_1", "noisy_rows"]
    assert shown["key"].to_pylist() == ["a", "a", "a"]
    assert shown["rows"].to_pylist() == [400, 300, 300]
    assert shown["cell_1"].to_pylist() == [0, 2, 4]
    assert len(set(shown["noisy_rows"].to_pylist())) == 1


def test_large_batches_are_decided_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = KeyRule(LAWS["threshold"], SECRET)
    batch = groups([f"key {i}" for i in range(1000)], [20] * 1000)
    whole = rule.shown(batch)
    monkeypatch.setattr("sfumato.mechanisms.thresholds._TOGETHER", 7)
    assert rule.shown(batch).equals(whole)
    assert rule.shown(batch.slice(0, 0)).schema.equals(whole.schema)
    assert [part.num_rows for part in rule.shown_of([batch, batch])] == [whole.num_rows] * 2


def test_a_script_decides_in_place_of_a_secret() -> None:
    law = LAWS["threshold"]
    script = Scripted((-3, 0, 5))
    rule = KeyRule.of(law, script)
    batch = groups(["a", "b", "c"], [law.threshold] * 3)
    assert found(rule.shown(batch)) == {"b": law.threshold, "c": law.threshold + 5}
    assert script.laws == [DiscreteLaplace(law.scale)] * 3  # type: ignore[union-attr]


def test_the_secret_is_not_shown_and_repeats_under_a_public_seed() -> None:
    rule = KeyRule.of(LAWS["gaussian"], PublicSeed(1))
    assert rule == KeyRule.of(LAWS["gaussian"], PublicSeed(1))
    assert isinstance(rule.secret, bytes)
    assert rule.secret.hex() not in repr(rule)
    assert repr(rule.secret) not in repr(rule)
