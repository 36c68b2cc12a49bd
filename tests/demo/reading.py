"""The demo's report as a reader sees it, and what a true statement about it means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.answers.estimate import Estimate

SURE = 1 - Fraction(1, 10**9)
ALPHA = 1e-9
# Where each answer stands on the page.
BY_MONTH = 0
CITIES = 1
LATE = 2
MEANS = 3
QUANTILES = 4
TABLES = 5
PERSONS = 6
NORMS = 7
DESTINATIONS = 8
TOTALS = 9
CLUSTERS = 10


@dataclass(frozen=True)
class Answer:
    """One answer as a reader of the page sees it."""

    title: str
    caption: str
    accuracy: str
    counted: str
    rows: list[list[str]]


def inside(text: str, pattern: str) -> str:
    """The group of the first match."""
    found = re.search(pattern, text, re.DOTALL)
    assert found is not None
    return found[1]


def numbers(cells: list[list[str]], column: int) -> np.ndarray:
    """A column of numbers, without the mark of totals that a limit may have cut."""
    signs = str.maketrans({",": "", "−": "-", "△": ""})
    return np.array([float(row[column].translate(signs)) for row in cells])


def near(noisy: Any, half: Any, least: Any, most: Any) -> bool:
    """Whether noisy counts are within their half-width of a truth that lies between two ends."""
    noisy, half, least, most = (np.asarray(x, float) for x in (noisy, half, least, most))
    return bool(((noisy >= least - half) & (noisy <= most + half)).all())


def covers(estimate: Estimate, truth: float) -> bool:
    """Whether an interval contains the truth, but for rounding."""
    return estimate.low - 1e-9 <= truth <= estimate.high + 1e-9


# --- how many aircraft there are, and the limits that follow ---
