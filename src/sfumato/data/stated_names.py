"""The names that a user states of a source: of its person column, its data set and its version."""

from __future__ import annotations

import unicodedata

from sfumato.domain.times import iso_text
from sfumato.errors import UsageError


def check_person(person: object) -> None:
    """Refuse what names no column, and no pair of columns."""
    columns = list(person) if isinstance(person, list | tuple) else [person]
    if person is not None and not all(isinstance(each, str) and each for each in columns):
        raise UsageError(
            f"person = {type(person).__name__}",
            "it must be a text that is not empty, or a list of two",
            "Give the name of the column, or leave it out",
        )


def version_text(version: object) -> object:
    """Write a version as text, so that 2 and "2" are the same version."""
    if isinstance(version, int) and not isinstance(version, bool):
        return str(version)
    return iso_text(version)


def public_text(option: str, text: object) -> str | None:
    """Check a text that receipts print and that is part of the ledger's keys."""
    if text is None:
        return None
    if not isinstance(text, str) or not text:
        raise UsageError(
            f"{option} = {type(text).__name__}",
            "it must be a text that is not empty",
            "Give a text, a whole number or a date"
            if option == "version"
            else "Give a name, or leave it out",
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise UsageError(
            option, "it holds a control character", "Use letters, digits, spaces and signs"
        )
    return text
