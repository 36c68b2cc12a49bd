"""Types of option values that click itself does not read strictly enough."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from sfumato.basics.numbers import MOST_DIGITS, float_of_text, whole_of_text
from sfumato.basics.text import kind_of
from sfumato.errors import shown


class Reading(click.ParamType):  # type: ignore[type-arg]  # before click 8.4 it takes no parameter
    """Text that a function reads, or refuses by returning None.

    Click's own numbers accept underscores and the digits of every script.
    """

    def __init__(self, name: str, read: Callable[[str], object], wanted: str) -> None:
        self.name = name
        self.read = read
        self.wanted = wanted

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Read a value from the command line; one that is read already passes as it is."""
        found = self.read(value) if isinstance(value, str) else value
        if found is None:
            digits = f" of at most {MOST_DIGITS} digits" if len(str(value)) > MOST_DIGITS else ""
            self.fail(f"{shown(value)} is not {self.wanted}{digits}.", param, ctx)
        return found


class Several(Reading):
    """Values separated by commas."""

    def __init__(self, each: click.ParamType[object]) -> None:
        super().__init__(each.name, str, "a list")
        self.each = each

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[object, ...]:
        """Read each of the values."""
        parts = value.split(",") if isinstance(value, str) else [value]
        stripped = (part.strip() if isinstance(part, str) else part for part in parts)
        return tuple(self.each.convert(part, param, ctx) for part in stripped)


class LedgerPlace(click.ParamType):  # type: ignore[type-arg]  # as above
    """Where a ledger is: the path of a file, or the address of a database."""

    name = "path"

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | Path:
        """Leave an address as it is: a path would join its slashes."""
        text = os.fspath(value)
        return Path(text) if kind_of(text) is None else text


INTEGER = Reading("integer", whole_of_text, "a whole number")
FLOAT = Reading("float", float_of_text, "a finite number")
LEDGER = LedgerPlace()
