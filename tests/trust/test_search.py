"""A search for leaks by chance.

Tables, persons, forms, units and questions are drawn, and two runs are compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from support.artefacts import World, assert_same, both
from support.replay import DivergedError
from trust.tables import DOMAIN, FORMS, PERSON, Row, laid
from trust.test_same_bytes import KEYED, PURE

TRIALS = 400
ODD: list[Any] = [
    None,
    0.0,
    -0.0,
    15.999,
    16.0,
    1e-308,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    2.0**53 + 2,
    0.1 + 0.2,
]
TEXTS: list[str | None] = [
    None,
    "",
    " ",
    "a",
    "b",
    "A",
    "a ",
    "ä",
    "\u202egnp",
    "nan",
    "NULL",
    "1",
    "true",
    "2013-01-01",
    "x" * 500,
    "shop0",
]


def someone(choose: random.Random) -> list[Row]:
    """A person with odd rows."""
    who = choose.choice(["new", "p00", None, "", "x" * 300, "nan"])
    number = choose.choice([0, 1, 2, 7, 60])
    return [
        (who, choose.choice(ODD), choose.choice(ODD), choose.choice(TEXTS), choose.choice(TEXTS))
        for _ in range(number)
    ]


def asked(unit: dict[str, Any], questions: list[Any], keyed: Any) -> Callable[[World, Any], None]:
    """A run of a few questions at a high price, so that selections show something."""

    def run(here: World, table: Any) -> None:
        with sf.Publisher(
            sf.source(table, DOMAIN, **unit), ledger=here.ledger, budget=sf.ApproxDP(10**6, "0.5")
        ) as pub:
            for question in questions:
                here.call(question.title, partial(pub.release, question, epsilon=60))
            here.call("keys", partial(pub.release, keyed, epsilon=200, delta="0.05"))

    return run


@pytest.mark.deep
def test_a_search_finds_no_leak(tmp_path: Path, evidence: Callable[[str, object], None]) -> None:
    choose, tried, artefacts, unlike = random.Random(14), 0, 0, 0
    while tried < TRIALS:
        pair = someone(choose), [*someone(choose), *choose.choice(list(PERSON.values()))[1]]
        unit = {
            "person": choose.choice(["who", "who", None]),
            "rows_per_person": choose.choice([1, 2, 5]),
            "neighbours": choose.choice(["add-remove", "replace"]),
        }
        run = asked(
            unit, choose.sample(list(PURE.values()), 3), choose.choice(list(KEYED.values()))
        )
        try:
            seen = assert_same(
                both(tmp_path / "w", laid(FORMS[choose.choice(sorted(FORMS))], pair), run)
            )
        except DivergedError as error:
            if "a key that was shown" not in str(
                error
            ):  # it was paid for, and cannot be forced on a table without it
                raise
            unlike += 1
        else:
            tried += 1
            artefacts += len(seen)
    figures = {
        "pairs of tables": tried,
        "artefacts compared": artefacts,
        "pairs left out: a key of one table shown": unlike,
    }
    evidence("non-interference", figures)
