"""Keys that executors select: nothing but the keys that are shown is to be seen.

Neither the number of keys, nor how the groups are cut into parts, decides a byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from conformance.kinds import people, table
from data import random_tables
from sfumato.mechanisms.thresholds import KeyRule
from support.artefacts import World, assert_same, both, differences
from support.spark_tasks import TableInTasks

DOMAIN = sf.Domain(**random_tables.DOMAIN, who=sf.Keys())
OTHERS = [{**row, "who": f"shop {i % 3}"} for i, row in enumerate(people(240, seed=8))]
ONE = {**OTHERS[0], "word": "a"}
PAIRS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a person with a key of their own": ([], [{**ONE, "who": "a key that nobody else has"}]),
    "a person with many keys": ([], [{**ONE, "who": f"only here {i}"} for i in range(40)]),
    "a person who moves": ([{**ONE, "who": "shop 0"}], [{**ONE, "who": "shop 2"}]),
    "a person without a key": ([], [{**ONE, "who": None}]),
    "a person without another value": ([], [{**ONE, "word": None, "who": "shop 1"}]),
}
QUESTIONS = {
    "keys": sf.Histogram("who"),
    "keys beside": sf.Histogram(["word", "who", "x"], bins={"x": 3}),
    "threshold": sf.Histogram("who", selection="threshold"),
}


def asked(here: World, reader: Any) -> None:
    src = sf.source(reader, DOMAIN, name="rows")
    budget = sf.ApproxDP(1000, "0.5")
    with sf.Publisher(src, ledger=here.ledger, account="test", budget=budget) as pub:
        for name, question in QUESTIONS.items():
            ask = lambda question=question: pub.release(question, epsilon=16, delta="0.01")  # noqa: E731
            here.call(name, ask)
        here.call("plan", lambda: pub.release(list(QUESTIONS.values()), epsilon=64, delta="0.01"))
        here.call("log", lambda: list(pub.ledger.log()))


def laid(name: str) -> Any:
    def lay(here: World, which: int) -> Any:
        return TableInTasks(table([*OTHERS, *PAIRS[name][which]]), 2 + which, (5, 64)[which])

    return lay


@pytest.mark.parametrize("name", PAIRS)
def test_two_tables_that_differ_in_one_person_look_the_same(name: str, tmp_path: Path) -> None:
    seen = assert_same(both(tmp_path / "w", laid(name), asked))
    assert not [face for face in seen if face.endswith("raised")]


def test_an_engine_that_shows_a_key_of_one_person_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of keys decides something: the comparison must see it."""
    shown = KeyRule.shown_of

    def many(rule: KeyRule, batches: Any) -> Any:
        held = list(batches)
        if sum(len(batch) for batch in held) > 3:
            print("many keys")
        return shown(rule, held)

    monkeypatch.setattr(KeyRule, "shown_of", many)
    name = "a person with many keys"
    found = differences(*both(tmp_path / "w", laid(name), asked))
    assert any("stdout" in line for line in found)
