"""How large an answer may be.

The limits follow from the domain and the question alone, so that what is too large is refused
before the charge.

A release holds integers. Measured at the limits, noise of scale 10^6, with counting, noise, JSON,
storing, reading back and saving: 120 bytes of memory for each number of a histogram, 210 for each
cell of a grid, 620 for each cell of a tree (``make deep`` repeats it). JSON takes 8, 8 and 42 bytes
of them, and at most 21 for a number: 20 digits and a comma.
"""

from __future__ import annotations

from sfumato.errors import UsageError

MOST_NUMBERS = 2**24
"""Of one answer: at 120 bytes each, 2 GB of memory; as JSON at most 350 MB."""

MOST_PARTITION_CELLS = 2**22
"""Of one partition: at 620 bytes each 2.6 GB."""

MOST_STORED = 10**9 // 21
"""Of all answers of a plan: they are stored as one value, and SQLite's longest has 10^9 bytes."""

MOST_COUNTED = 2**28
"""Cells that one scan counts in arrays, for all questions of a plan: 2 GB at 8 bytes each."""


def require_numbers(asked: str, numbers: int) -> None:
    """Refuse an answer that no memory holds.

    Raises
    ------
    UsageError
        If there are more than 2^24 numbers.
    """
    if numbers > MOST_NUMBERS:
        obstacle = f"it would have {numbers:,} cells, and the limit is {MOST_NUMBERS:,}"
        raise UsageError(asked, obstacle, "Take fewer bins or fewer axes")


def require_plan(asked: str, numbers: int, counted: int) -> None:
    """Refuse a plan whose answers cannot be counted or stored together.

    Raises
    ------
    UsageError
        If its answers may hold more numbers than the ledger stores at once, or its scan would fill
        too many cells.
    """
    if numbers > MOST_STORED:
        obstacle = (
            f"its answers may hold {numbers:,} numbers, and {MOST_STORED:,} are stored at once"
        )
        raise UsageError(asked, obstacle, "Ask its questions in several plans, or take fewer cells")
    if counted > MOST_COUNTED:
        obstacle = f"its scan would count {counted:,} cells, and the limit is {MOST_COUNTED:,}"
        raise UsageError(asked, obstacle, "Ask its questions in several plans, or take fewer cells")
