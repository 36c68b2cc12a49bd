"""Half-widths in words, as every sentence on accuracy says them."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from sfumato.answers.digits import DIGITS, NEARLY
from sfumato.basics.numbers import Array


def reach_text(half: Array) -> str:
    """Print half-widths: one, or the smallest and the largest.

    >>> reach_text(np.array([3.843, 4.689])), reach_text(np.array([2.0, 2.0]))
    ('+-3.9 to +-4.7', '+-2')
    """
    ends = (half_width_text(np.nanmin(half)), half_width_text(np.nanmax(half)))
    return " to ".join(f"+-{end}" for end in dict.fromkeys(ends))


def half_width_text(half: float) -> str:
    """Print a half-width in two digits, rounded up; whole numbers have all of theirs.

    Holds because: an interval that is wider contains the truth as often at least.

    >>> half_width_text(0.4634), half_width_text(14.65), half_width_text(1234)
    ('0.47', '15', '1,234')
    """
    if not 0 < half < 10:
        return f"{half:,.0f}" if half == round(half) else f"{math.ceil(half - NEARLY):,}"
    last = Decimal(1).scaleb(math.floor(math.log10(half)) - DIGITS + 1)
    steps = math.ceil(half / float(last) - NEARLY)
    return f"{float(steps * last):.12g}"
