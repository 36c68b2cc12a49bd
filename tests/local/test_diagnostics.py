"""Simulated reports agree with the law."""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato.local.table import diagnose, sweep
from sfumato.random import PublicSeed, override


def test_diagnostics_agree_with_the_law() -> None:
    with override(PublicSeed("diagnose")):
        found = diagnose(sf.BPM(2, "0.3", 2), 50_000)
    assert found.in_space
    assert abs(found.inside - found.expected) < 6 * found.standard_error
    assert "all in the report space" in str(found)
    swept = sweep(epsilon=2, dimension=2, points=7)
    assert all(a > b for a, b in zip(swept.variance, swept.variance[1:], strict=False))
    assert swept.limit == 1.5
    assert swept.variance[-1] == pytest.approx(swept.limit, rel=0.01)
