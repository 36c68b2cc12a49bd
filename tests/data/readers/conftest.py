from __future__ import annotations

from pathlib import Path

import pytest

from data.trips import parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parquet(tmp_path / "d" / "b.parquet", [21, 22])
    parquet(tmp_path / "d" / "a.parquet", [11])
    parquet(tmp_path / "d" / "deep" / "er" / "c.parquet", [31, 32, 33])
    return tmp_path / "d"
