"""The rows by which a question is found again under its key, or under its own tag."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple


class NameRow(NamedTuple):
    """The name of a question in an account: its key, its tag (an HMAC), and a random digest."""

    key: str
    tag: bytes
    digest: str


class NameRows(ABC):
    """The secret rows that naming a question needs, within one transaction."""

    @abstractmethod
    def value(self, name: str) -> bytes | None:
        """One of the values that are kept by name."""

    @abstractmethod
    def of_key(self, account: str, key: str) -> NameRow | None:
        """The name that has a key."""

    @abstractmethod
    def of_tag(self, account: str, tag: bytes) -> NameRow | None:
        """The name that was made for a question, and not given by a user."""

    @abstractmethod
    def keep(self, account: str, name: NameRow, *, derived: bool) -> None:
        """Write a name. ``derived``: its key was made for the question, and not given by a user.

        It replaces an older name with the same key, or one that was made for the same question.
        """
