"""Half-widths in words, as every sentence on accuracy says them."""

from __future__ import annotations

import math

import numpy as np

from sfumato.arrays import Array


def reach_text(half: Array) -> str:
    """Print half-widths: one, or the smallest and the largest; large ones are rounded up."""
    ends = (_end_text(np.nanmin(half)), _end_text(np.nanmax(half)))
    return " to ".join(f"+-{end}" for end in dict.fromkeys(ends))


def _end_text(end: float) -> str:
    return f"{math.ceil(end):,}" if end >= 100 or end == round(end) else f"{end:.4g}"
