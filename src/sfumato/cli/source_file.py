"""The type of the argument FILE: a path, or the address of a table in a database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import click

from sfumato.data.addresses import SourceAddress, address_of

SourcePath: TypeAlias = Path | SourceAddress


class SourceFile(click.Path):
    """A path, or an address such as ``postgresql://host/database?table=trips``, as it is written.

    A path of Python would make one slash of two in an address.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> SourcePath:
        """Read the path or the address."""
        address = address_of(value) if isinstance(value, str) else None
        return address or Path(os.fsdecode(super().convert(value, param, ctx)))
